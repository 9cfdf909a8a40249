"""First lines as spreadsheets, R and pandas write them: columns without a name, titles."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.core.errors import TableError
from sfumato.tables.files import FileForm, FileFormat, read_file, write_file
from sfumato.tables.source import open_source


def _read(tmp_path: Path, text: str) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    (tmp_path / "people.csv").write_text(text)
    table, form = read_file(tmp_path / "people.csv")
    return table.to_pydict(), form.notes


@pytest.mark.parametrize("blank", ["", " "])
def test_an_empty_last_column_without_a_name_is_left_out_with_a_word(tmp_path: Path, blank: str) -> None:
    cells, notes = _read(tmp_path, f"age;town;{blank};\n31;Ulm;{blank};\n45;Bari;;\n")
    assert cells == {"age": ["31", "45"], "town": ["Ulm", "Bari"]}
    assert notes == ("2 columns without name and cells are left out.",)


def test_the_row_names_of_another_tool_are_called_row(tmp_path: Path) -> None:
    cells, notes = _read(tmp_path, '"","age","town"\n"1",31,"Ulm"\n"2",45,"Bari"\n')
    assert cells == {"row": ["1", "2"], "age": ["31", "45"], "town": ["Ulm", "Bari"]}
    assert notes == ("The first column has no name: it is called 'row'.",)


@pytest.mark.parametrize("header", ["age,,town", ",row,town"])
def test_cells_without_a_name_that_nobody_can_guess_are_refused(tmp_path: Path, header: str) -> None:
    with pytest.raises(TableError, match="1 column without a name"):
        _read(tmp_path, f"{header}\n31,1,Ulm\n45,2,Bari\n")


def test_a_table_whose_columns_all_lack_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="has no columns; it needs a header"):
        _read(tmp_path, ",\n,\n,\n")


def test_a_title_above_the_header_is_told_from_ragged_rows(tmp_path: Path) -> None:
    with pytest.raises(
        TableError, match=r"line 1 of .* looks like a title and line 2 like the header; give header_row=2"
    ):
        _read(tmp_path, "# people of 2020\nage,town\n31,Ulm\n")
    with pytest.raises(TableError, match=r"line 1 of .* has 1 cells and no row below has as many; if another line"):
        _read(tmp_path, "# people of 2020\n7,2\n31,Ulm\n")


@pytest.mark.parametrize("head", [b"\n\nage\n", b"\r\n\r\nage\r\n", b"\xef\xbb\xbf\nage\n", b"age\n"])
def test_empty_lines_before_the_header_of_one_column_are_no_cells_and_those_after_it_are(
    tmp_path: Path, head: bytes
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(head + b"30\n\n40\n")
    source = open_source(path)
    assert source.head(source.schema.names, 10).to_pydict() == {"age": ["30", "", "40"]}
    assert read_file(path)[0].to_pydict() == {"age": ["30", "", "40"]}


@pytest.mark.parametrize("cell", ["\rz", "a\rb", "a\r", "\r\n", 'a"\r'])
def test_a_cell_with_a_return_comes_back_from_csv(tmp_path: Path, cell: str) -> None:
    path, cells = tmp_path / "table.csv", {"age": ["1", "2"], "word": [cell, "plain"]}
    write_file(pa.table(cells), path, FileForm(FileFormat.CSV))
    assert read_file(path)[0].to_pydict() == cells
    opened = open_source(path)
    assert opened.head(opened.schema.names, 10).to_pydict() == cells
