"""Titles above a header, and a first sheet without a table: recognized if the rows show it, and otherwise proposed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import xlsxwriter

import sfumato as sf
from sfumato.core.errors import BadInput, OptionError, TableError
from sfumato.tables.files import read_file
from sfumato.tables.header import find_header
from sfumato.tables.source import open_source
from tests.messy_hospital import COLUMNS, VISITS, write_workbook

ROWS = [[30 + row % 40, "ABC"[row % 3], f"P{row}"] for row in range(40)]
HEADER = ["age", "ward", "patient"]


def workbook(path: Path, **sheets: list[list[Any]]) -> Path:
    with xlsxwriter.Workbook(path) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                for place, cell in enumerate(row):
                    if cell != "":
                        sheet.write(number, place, cell)
    return path


def csv_of(path: Path, *lines: str, rows: list[list[Any]] = ROWS, mark: str = ";") -> Path:
    path.write_text("\n".join([*lines, *(mark.join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return path


def test_the_hospital_workbook_is_read_from_its_second_sheet_below_its_title(tmp_path: Path) -> None:
    table, form = read_file(write_workbook(tmp_path / "visits.xlsx"))
    assert (tuple(table.column_names), table.num_rows) == (COLUMNS, VISITS)
    assert form.sheet is not None
    assert (form.sheet.name, form.sheet.detected, form.header_row) == ("Aufnahmen", True, 3)
    assert form.found == ("The header is row 3; 1 row above it is skipped; --header-row names another.",)
    told, given = read_file(tmp_path / "visits.xlsx", sheet="Aufnahmen", header_row=3)
    assert told.equals(table)
    assert given.found == ()


@pytest.mark.parametrize("titles", [["Report of 2023"], ["Report of 2023", ""], ["", "Report 2023, and later", ""]])
def test_a_title_above_csv_is_left_out_in_memory_and_in_parts(tmp_path: Path, titles: list[str]) -> None:
    path = csv_of(tmp_path / "people.csv", *titles, ";".join(HEADER))
    table, form = read_file(path)
    assert (table.column_names, table.num_rows) == (HEADER, len(ROWS))
    assert form.header_row == len(titles) + 1
    assert f"The header is line {len(titles) + 1}; 1 line above it is skipped" in form.found[0]
    source = open_source(path)
    assert source.form.found == form.found
    assert source.head(HEADER, 100).equals(table)
    assert open_source(path, header_row=len(titles) + 1).head(HEADER, 100).equals(table)


def test_a_title_that_a_spreadsheet_exported_with_empty_cells_is_left_out(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "people.csv", "Report of 2023;;", ";;", "Patients;;", ";".join(HEADER))
    table, form = read_file(path)
    assert (table.column_names, form.header_row) == (HEADER, 4)
    assert "2 lines above it are skipped" in form.found[0]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_a_file_without_a_title_is_read_as_ever(tmp_path: Path, mark: str) -> None:
    rows = [[row, f"{row},5" if mark != "," else row / 2, "x y" if row % 2 else ""] for row in range(30)]
    table, form = read_file(csv_of(tmp_path / "people.csv", mark.join("abc"), rows=rows, mark=mark))
    assert (table.column_names, form.header_row, form.found, form.delimiter) == (["a", "b", "c"], 1, (), mark)


@pytest.mark.parametrize(
    "rows",
    [
        [["Report", "", ""], ["Ann", "Ulm", "yes"], ["Bob", "Bonn", "no"], ["Eve", "Ulm", "no"], ["Dan", "Ulm", "yes"]],
        [["Report", "", ""], ["Ann", 31, "yes"], ["Bob", 42, "no"], ["Eve", 53, "no"], ["Dan", 64, "yes"]],
        [["Report", "", ""], ["a", "b", "c"], [1, 2, 3]],
    ],
)
def test_a_row_of_data_is_never_taken_for_the_header(rows: list[list[Any]]) -> None:
    found = find_header(rows)
    assert found is None or not found.sure


def test_a_header_that_is_only_likely_is_proposed_with_its_sheet_and_row(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", visits=[["Report"], HEADER, ["30", "A", "P1"], ["31", "B", "P2"]])
    with pytest.raises(
        TableError,
        match=r"row 1 of the sheet 'visits' of '.*t\.xlsx' looks like a title and row 2 like the header; give "
        r"header_row=2, or header_row=1 if that row names the columns",
    ) as told:
        read_file(path)
    assert dict(told.value.proposed) == {"header_row": 2}
    assert read_file(path, header_row=2)[0].column_names == HEADER


def test_a_sheet_whose_table_begins_further_down_counts_rows_as_a_spreadsheet_does(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", visits=[[], [], ["", *HEADER], *(["", *row] for row in ROWS)])
    table, form = read_file(path)
    assert (table.column_names, form.header_row, form.found) == (HEADER, 3, ())
    assert read_file(path, header_row=3)[0].equals(table)
    with pytest.raises(OptionError, match=r"row 2 of the sheet 'visits' of .* is empty; name the row of its header"):
        read_file(path, header_row=2)


def test_of_several_other_tables_one_is_to_be_named(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", notes=[["Remarks"]], first=[HEADER, *ROWS], second=[HEADER, *ROWS])
    with pytest.raises(
        BadInput, match=r"the first sheet 'notes' of .* holds no table and 2 others do \('first', 'second'\)"
    ):
        read_file(path)
    assert read_file(path, sheet="second")[0].num_rows == len(ROWS)


@pytest.mark.parametrize(
    ("row", "words"), [(0, "counted from 1"), (60, "so none is line 60"), (2, "line 2 of .* is empty")]
)
def test_a_header_row_that_is_not_there_is_refused(tmp_path: Path, row: int, words: str) -> None:
    path = csv_of(tmp_path / "people.csv", "Report", "", ";".join(HEADER))
    with pytest.raises(OptionError, match=words):
        read_file(path, header_row=row)


def test_a_file_that_names_its_columns_itself_has_no_header_row(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"age": [1, 2]}), tmp_path / "people.parquet")
    reads: tuple[Any, ...] = (read_file, open_source)
    for read in reads:
        with pytest.raises(OptionError, match="names its columns itself; drop header_row="):
            read(tmp_path / "people.parquet", header_row=3)


def test_python_reads_sheets_and_headers_by_the_names_of_the_options(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", other=[["x", "y"], [1, 2], [3, 4]], visits=[["Report"], HEADER, *ROWS])
    assert sf.inspect(path, sheet="visits", header_row=2).names == tuple(HEADER)
    with pytest.warns(UserWarning, match=r"The header is row 2; 1 row above it is skipped; header_row= names another$"):
        assert sf.inspect(path, sheet="visits").names == tuple(HEADER)


def test_names_that_look_the_same_are_refused(tmp_path: Path) -> None:
    for names in (("age", "ag\u200be"), ("é", "e\u0301"), ("age", "age "), ("a b", "a\u00a0b"), ("x", "x\ufeff")):
        path = csv_of(tmp_path / "people.csv", ";".join([*names, "c"]))
        with pytest.raises(TableError, match=r"columns 1 and 2 of .* have names that look the same"):
            read_file(path)
        with pytest.raises(TableError, match="columns 1 and 2 of the table have names that look the same"):
            sf.inspect(pd.DataFrame({name: [1, 2] for name in names}))
    assert read_file(csv_of(tmp_path / "people.csv", "a;A;b"))[0].column_names == ["a", "A", "b"]
    letters = ["\ud7df", "\U00012544"]  # unassigned in some versions of Unicode
    assert read_file(csv_of(tmp_path / "people.csv", ";".join([*letters, "c"])))[0].column_names == [*letters, "c"]
