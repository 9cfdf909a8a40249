from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.core.errors import TableError, no_column
from sfumato.tables.files import FileForm, FileFormat, read_file, read_sql, write_file
from sfumato.tables.workbook import without_cells


def test_csv_cells_stay_texts(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n1,"x,y"\n007,\n')
    table, form = read_file(tmp_path / "t.csv")
    assert table.to_pydict() == {"a": ["1", "007"], "b": ["x,y", ""]}
    assert form == FileForm(FileFormat.CSV, ",")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_delimiter_is_found_and_written_again(tmp_path: Path, delimiter: str) -> None:
    text = f"a{delimiter}b\n1{delimiter}x\n2{delimiter}y\n"
    (tmp_path / "t.csv").write_text(text)
    table, form = read_file(tmp_path / "t.csv")
    write_file(table, tmp_path / "again.csv", form)
    assert (tmp_path / "again.csv").read_text() == text


@pytest.mark.parametrize(
    "cells",
    [
        ["plain", "text"],
        ["a,b", 'quo"te', "new\nline", "", " blank "],
        ["ü", "日本", "😀"],
    ],
)
def test_written_csv_reads_back_the_same(tmp_path: Path, cells: list[str]) -> None:
    for table in (pa.table({"t": cells}), pa.table({"t": cells, "u,v": [str(place) for place in range(len(cells))]})):
        write_file(table, tmp_path / "t.csv", FileForm(FileFormat.CSV))
        assert read_file(tmp_path / "t.csv")[0].to_pydict() == table.to_pydict()


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather"])
def test_typed_files_keep_their_types(tmp_path: Path, name: str) -> None:
    table = pa.table({"a": pa.array([1, None], pa.int16()), "b": pa.array(["x", "y"]).dictionary_encode()})
    form = FileForm(FileFormat.PARQUET if name.endswith("parquet") else FileFormat.ARROW)
    write_file(table, tmp_path / name, form)
    again, read_form = read_file(tmp_path / name)
    assert again.equals(table)
    assert read_form == form


def test_a_compressed_file_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfa,b\r\n1,2\r\n"))
    assert read_file(tmp_path / "t.csv.gz")[0].to_pydict() == {"a": ["1"], "b": ["2"]}


def test_an_undecodable_byte_far_into_a_file_is_found(tmp_path: Path) -> None:
    data = b"a,b\n" + b"1,2\n" * 1_500_000 + b"\xff,2\n"
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(TableError, match=f"offset {len(data) - 4}"):
        read_file(tmp_path / "t.csv")


def test_a_query_is_read_from_a_database(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "people.db")) as connection:
        connection.execute("create table people (age integer, town text)")
        connection.executemany("insert into people values (?, ?)", [(30, "Ulm"), (None, "Bari")])
        connection.commit()
    table, form = read_sql(f"sqlite:///{tmp_path / 'people.db'}", "select age, town from people order by town")
    assert table.to_pydict() == {"age": [None, 30], "town": ["Bari", "Ulm"]}
    assert form.format is FileFormat.CSV


def test_a_database_error_shows_neither_password_nor_cell(tmp_path: Path) -> None:
    with pytest.raises(TableError) as caught:
        read_sql("sqlite:////no/such/folder/secretpassword.db", "select 'canary' from nothing")
    assert "secretpassword" not in str(caught.value)
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "(unable to open database file); check URL" in str(caught.value)
    with pytest.raises(TableError, match=r"\(no such table: peple\)"):
        read_sql(f"sqlite:///{tmp_path / 'new.db'}", "select 'canary' from peple")


def test_of_what_a_database_says_only_usual_words_and_names_of_the_query_are_repeated() -> None:
    said = 'invalid value "4711" for column age: Ada Byron (born 1815)\nDETAIL: secret'
    assert without_cells(said, "select age from people where n = 4711") == "invalid value ... for column age: ..."
    assert without_cells('FATAL: password authentication failed for user "root"', "select 1") == (
        "... password authentication failed for user ..."
    )
    assert without_cells("Ada", "select 'Ada'") == ""


def test_a_misspelt_column_is_answered_with_the_one_that_was_meant() -> None:
    assert no_column("Incme", ["age", "income"]) == "there is no column 'Incme'; did you mean 'income'?"
    assert no_column("x", ["age", "income"]) == "there is no column 'x'; the columns are 'age', 'income'"


def test_a_folder_is_called_one_and_not_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "people.csv").mkdir()
    with pytest.raises(TableError, match=r"people.csv' is a folder; name a file in it"):
        read_file(tmp_path / "people.csv")
