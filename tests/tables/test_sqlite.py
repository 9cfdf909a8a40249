"""Tables of SQLite files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sfumato.core.errors import OptionError, TableError
from sfumato.tables.files import read_file
from sfumato.tables.workbook import Sheet


def database(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


PEOPLE = ('create table "pe""ople" (age, town, big)', 'insert into "pe""ople" values (30, \'Ulm\', 9007199254740993)')


def test_the_only_table_of_a_file_is_read_with_its_types(tmp_path: Path) -> None:
    path = database(tmp_path / "p ?#.db", *PEOPLE, 'insert into "pe""ople" values (null, \'\', 1)')
    table, form = read_file(path)
    assert table.to_pydict() == {"age": [30, None], "town": ["Ulm", ""], "big": [9007199254740993, 1]}
    assert form.sheet == Sheet('pe"ople', (), "Table")


def test_of_several_tables_one_is_named(tmp_path: Path) -> None:
    path = database(tmp_path / "p.sqlite", *PEOPLE, "create table other (x)", "insert into other values (1.5), ('NA')")
    with pytest.raises(OptionError, match="sheet="):
        read_file(path)
    with pytest.raises(OptionError, match="there is no table"):
        read_file(path, sheet="people")
    assert read_file(path, sheet="other")[0].to_pydict() == {"x": ["1.5", "NA"]}


def test_views_are_not_read_and_binary_cells_are_counted(tmp_path: Path) -> None:
    path = database(tmp_path / "p.db", "create view v as select 1 as x")
    with pytest.raises(TableError, match="no tables"):
        read_file(path)
    database(path, "create table t (x)", "insert into t values (x'00ff')")
    with pytest.raises(TableError, match="column 'x' holds 1 binary cells"):
        read_file(path)
    with pytest.raises(OptionError, match="there is no table"):
        read_file(path, sheet="v")


def test_an_undecodable_cell_is_refused_and_not_shown(tmp_path: Path) -> None:
    path = database(tmp_path / "p.db", "create table t (x)", "insert into t values (cast(x'63616e617279ff' as text))")
    with pytest.raises(TableError, match="damaged") as caught:
        read_file(path)
    assert "canary" not in str(caught.value)
    (tmp_path / "no.db").write_bytes(b"not a database, but long enough to look into" * 20)
    with pytest.raises(TableError, match="damaged"):
        read_file(tmp_path / "no.db")
