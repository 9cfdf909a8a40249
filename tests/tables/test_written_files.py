"""Tables written as workbooks and SQLite files, and read back."""

from __future__ import annotations

import datetime
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import OptionError, TableError
from sfumato.tables.files import FileForm, FileFormat, read_file, read_table, write_file
from tests.examples import examples

DAY = datetime.date(2020, 1, 31)
CELLS = pa.table(
    {
        "whole": [1, None, 3],
        "number": [0.5, 1.25, None],
        "truth": [True, False, None],
        "day": [DAY, None, DAY],
        "moment": pa.array([datetime.datetime(2020, 1, 31, 10, 30)] * 3, pa.timestamp("us")),
        "text": ["=1+1", "01234", "https://example.org"],
        "label": pa.array(["a", "b", "a"]).dictionary_encode(),
    }
)


@pytest.mark.parametrize("ending", ["xlsx", "ods", "sqlite"])
def test_cells_come_back_as_they_went_in(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"table.{ending}"
    write_file(CELLS, path, FileForm(FileFormat(ending)))
    read = read_file(path)[0].to_pydict()
    expected = CELLS.to_pydict()
    if ending == "sqlite":
        expected |= {"truth": [1, 0, None], "day": ["2020-01-31", "", "2020-01-31"]}
        expected["moment"] = ["2020-01-31 10:30:00"] * 3
    assert read == expected


@pytest.mark.parametrize(("ending", "part"), [("xlsx", "xl/worksheets/sheet1.xml"), ("ods", "content.xml")])
def test_a_workbook_holds_no_formula_no_link_and_no_hour_of_writing(tmp_path: Path, ending: str, part: str) -> None:
    for name in ("one", "two"):
        write_file(CELLS, tmp_path / f"{name}.{ending}", FileForm(FileFormat(ending)))
    with zipfile.ZipFile(tmp_path / f"one.{ending}") as book:
        sheet = book.read(part)
        assert b"<f>" not in sheet
        assert b"formula" not in sheet
        assert b"hyperlink" not in sheet
    assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


TEXTS = st.text(
    st.characters(
        codec="utf-8", exclude_characters=[chr(code) for code in range(32) if code != 10] + ["\ufffe", "\uffff"]
    )
)


@examples(40)
@given(st.lists(TEXTS, min_size=1, max_size=4), st.lists(st.floats(-1e9, 1e9), min_size=4, max_size=4))
def test_any_text_and_number_of_an_ods_file_comes_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], numbers: list[float]
) -> None:
    path = tmp_path_factory.mktemp("ods") / "t.ods"
    table = pa.table({" a  b ": [f".{text}" for text in texts], "n": numbers[: len(texts)]})
    write_file(table, path, FileForm(FileFormat.ODS))
    assert read_file(path)[0].to_pydict() == table.to_pydict()


def test_texts_that_ods_would_lose_are_refused_by_their_count(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="column 'a' holds 2 texts with control characters"):
        write_file(pa.table({"a": ["x\ty", "\x01", "z"]}), tmp_path / "t.ods", FileForm(FileFormat.ODS))


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"a": ["x" * 40_000]}),
        pa.table({"a": [1, None], "b": ["x", ""]}),
        pa.table({f"c{place}": [1] for place in range(16_385)}),
    ],
)
def test_what_no_sheet_holds_is_refused(tmp_path: Path, table: pa.Table) -> None:
    with pytest.raises(OptionError, match="choose another form="):
        write_file(table, tmp_path / "t.xlsx", FileForm(FileFormat.XLSX))
    with pytest.raises(OptionError, match="choose another form="):
        write_file(table, tmp_path / "t.ods", FileForm(FileFormat.ODS))


def test_days_that_sheets_do_not_know_are_texts(tmp_path: Path) -> None:
    table = pa.table({"born": [datetime.date(1899, 5, 1)], "big": [2**60]})
    write_file(table, tmp_path / "t.xlsx", FileForm(FileFormat.XLSX))
    assert read_file(tmp_path / "t.xlsx")[0].to_pydict() == {"born": ["1899-05-01"], "big": [str(2**60)]}


PEOPLE = pa.table(
    {
        "age": [20 + row % 50 for row in range(60)],
        "born": [datetime.date(1950 + row % 50, 1 + row % 12, 5) for row in range(60)],
        "town": ["Ulm", "Bari", "=Oslo"] * 20,
        "pay": pa.array([None if row % 9 == 0 else 1.5 * row for row in range(60)]),
        "ill": [row % 3 == 0 for row in range(60)],
    }
)


@pytest.mark.parametrize("ending", ["xlsx", "ods", "sqlite", "parquet", "arrow"])
def test_a_release_of_any_format_is_verified_and_evaluated(tmp_path: Path, ending: str) -> None:
    sf.sanitize(PEOPLE, k=5, seed=1, report=False).save(tmp_path / "out", form=ending)
    found = sf.verify(tmp_path / "out" / "release")
    assert {check.name for check in found if not check.holds} == {"made for release"}
    assert "dates by month" in {check.name for check in found}
    table = read_file(tmp_path / "out" / "release" / f"table.{ending}")[0]
    assert table.column_names == PEOPLE.column_names


def test_no_more_of_a_database_is_read_than_is_granted(tmp_path: Path) -> None:
    write_file(PEOPLE, tmp_path / "t.sqlite", FileForm(FileFormat.SQLITE))
    assert read_file(tmp_path / "t.sqlite", most_bytes=10_000)[0].num_rows == 60
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as connection, connection:
        connection.execute("update released set town = printf('%.9000c', 'x')")
    with pytest.raises(TableError, match="grant it more"):
        read_file(tmp_path / "t.sqlite", most_bytes=10_000)


def test_a_file_is_read_from_python_as_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    rows = "".join(f"{row % 40},5;{row % 7}\n" for row in range(80))
    path.write_text(f"size;kind\n{rows}", encoding="utf-8")
    assert read_table(path).column("size")[0].as_py() == "0.5"
    assert sf.inspect(path)["size"].kind.value == "continuous"
    assert sf.inspect(str(path))["size"].kind.value == "continuous"
    assert sf.sanitize(path, k=5, seed=1, report=False).table.num_rows == 80
