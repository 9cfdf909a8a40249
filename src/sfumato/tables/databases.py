"""Read and write SQLite files within limits, and report database errors without any cell of data."""

from __future__ import annotations

import datetime
import errno
import os
import re
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from sfumato.core.errors import OptionError, TableError, shown
from sfumato.tables.workbook import MOST_CELLS, Sheet, column_of_cells

__all__ = ["SQLITE", "read_query", "read_sqlite", "without_cells", "write_sqlite"]

SQLITE = (".sqlite", ".sqlite3", ".db")
"""Endings of SQLite files that are read."""

_LONGEST = 1 << 24  # bytes of a cell
_ROWS = 10_000  # fetched at once


def read_sqlite(
    path: Path, name: str | None = None, *, most_bytes: int | None = None, most_cells: int = MOST_CELLS
) -> tuple[list[str], list[pa.Array], Sheet]:
    """Column names, columns and table name from an SQLite file; without ``name``, from its only table.

    Columns of one type keep it, others are texts; ``most_bytes`` is what their cells may come to. Views
    and virtual tables are not read: they are programs of the file.

    Raises
    ------
    OptionError
        If there is no such table, or there are several to choose from.
    TableError
        For a file that is damaged, a table without any row, of more than ``most_cells``, or with binary cells.
    """
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            connection.execute("pragma trusted_schema = off")
            connection.execute("pragma cell_size_check = on")
            chosen = _find_table(connection, name, path)
            wanted = chosen.name.replace('"', '""')
            found = connection.execute(f'select * from "{wanted}"')  # noqa: S608 (a name of the file's own, quoted)
            names = [column[0] for column in found.description]
            rows: list[tuple[object, ...]] = []
            size = 0
            for row in found:  # one at a time: a row is as long as a cell may be
                rows.append(row)
                size += sum(len(cell) if isinstance(cell, str | bytes) else 8 for cell in row)
                if len(rows) * len(names) > most_cells:
                    raise TableError(
                        f"a table of {shown(path)} has more than {most_cells} cells; use a URL with --query"
                    )
                if most_bytes is not None and size > most_bytes:
                    raise TableError(
                        f"a table of {shown(path)} has more than {max(1, most_bytes >> 20)} MiB; if that is right, "
                        "grant it more with --most-bytes"
                    )
    except (sqlite3.Error, UnicodeError, OverflowError, MemoryError):  # their own words may quote a cell
        raise TableError(f"{shown(path)} is not a readable SQLite file; it may be damaged or misnamed") from None
    columns = [[row[place] for row in rows] for place in range(len(names))]
    for column, cells in zip(names, columns, strict=True):
        binary = sum(isinstance(cell, bytes) for cell in cells)
        if binary:
            raise TableError(
                f"column {column!r} holds {binary} binary cells; use a URL with --query that leaves it out"
            )
    return names, [column_of_cells(["" if cell is None else cell for cell in cells]) for cells in columns], chosen


def _find_table(connection: sqlite3.Connection, name: str | None, path: Path) -> Sheet:
    """Find the named table, or the only one."""
    listed = connection.execute("select name, sql from sqlite_master where type = 'table' order by name").fetchmany(
        _ROWS
    )
    tables = [
        str(table)
        for table, sql in listed
        if not str(table).startswith("sqlite_") and not str(sql).upper().startswith("CREATE VIRTUAL")
    ]
    if not tables:
        raise TableError(f"{shown(path)} has no tables; provide one with rows")
    known = ", ".join(map(shown, tables[:20]))
    if name is None and len(tables) > 1:
        raise OptionError(f"{shown(path)} has the tables {known}; name one with --sheet")
    if name is not None and name not in tables:
        raise OptionError(f"there is no table {shown(name)}; there are {known}")
    chosen = tables[0] if name is None else name
    return Sheet(chosen, tuple(other for other in tables if other != chosen), "Table")


_FAULTS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_CANTOPEN: errno.EIO,
}
"""Errors of SQLite that are of the disk, and not of the table."""


def write_sqlite(table: pa.Table, path: Path) -> None:
    """Write a table named ``released`` into a new SQLite file.

    Numbers keep their type, true and false are 1 and 0, lengths of time are counted in seconds, and dates and times are
    texts such as 2020-01-31 10:00:00.
    """
    names = [name.replace('"', '""') for name in table.column_names]
    kinds = [_kind_of(column.type) for column in table.columns]
    columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(names, kinds, strict=True))
    marks = ", ".join("?" * len(names))
    try:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"create table released ({columns})")
            for part in table.to_batches(max_chunksize=_ROWS):
                cells = [map(_stored, column.to_pylist()) for column in part.columns]
                connection.executemany(f"insert into released values ({marks})", zip(*cells, strict=True))  # noqa: S608
    except (sqlite3.Error, OverflowError) as error:  # their own words may quote a cell
        fault = _FAULTS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if fault is not None:
            raise OSError(fault, os.strerror(fault)) from None
        raise OptionError(
            f"SQLite cannot hold this table of {table.num_columns} columns ({type(error).__name__}); choose another "
            "--format"
        ) from None


def _kind_of(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "integer"
    return "real" if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else "text"


def _stored(cell: Any) -> Any:
    if isinstance(cell, datetime.timedelta):
        return cell.total_seconds()
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(sep=" ")
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return float(cell) if isinstance(cell, Decimal) else cell


_USUAL = """
a aggregate all ambiguous an and appear argument arguments at authentication be by can cannot clause closed
column columns connect connection could database denied disk division does driver encrypted entry error exist
failed file for from from-clause function group has have host image in incomplete input invalid is key locked
lost malformed many match missing more must name near no not number of one only open operator or out parameter
password permission query read-only readonly referenced refused relation role schema server statement such
syntax table tables the time timed timeout to token too type unable unknown unrecognized used user value view
wrong you zero
"""
_WORDS = frozenset(_USUAL.split())
_TEXTS, _NAMES = re.compile(r"'[^']*'"), re.compile(r"[^\W\d]\w*(?:\.\w+)*")
_LEFT_OUT, _MOST_WORDS, _MOST_CHARACTERS = "...", 30, 2_000


def without_cells(said: str, query: str) -> str:
    """First line of a database error, reduced to usual words and names from the query.

    Examples
    --------
    >>> without_cells("no such column: incme", "select incme from people")
    'no such column: incme'
    >>> without_cells('invalid input for type integer: "Ada"', "select age from people where name = 'Ada'")
    'invalid input for type ...'
    """
    asked = set(_NAMES.findall(_TEXTS.sub(" ", query.lower())))
    kept: list[str] = []
    for word in said.strip()[:_MOST_CHARACTERS].partition("\n")[0].split()[:_MOST_WORDS]:
        bare = word.strip("\"'`:;,.()[]").lower()
        known = bare in _WORDS or bare in asked
        if known or kept[-1:] != [_LEFT_OUT]:
            kept.append(word if known else _LEFT_OUT)
    return " ".join(kept) if any(word != _LEFT_OUT for word in kept) else ""


def read_query(url: str, query: str) -> tuple[list[str], list[Any]]:
    """Column names and columns of a query's result, through SQLAlchemy."""
    try:
        import sqlalchemy
    except ImportError:
        raise OptionError("reading a database needs SQLAlchemy; install sfumato[sql]") from None
    try:
        engine = sqlalchemy.create_engine(url)
        with engine.connect() as connection:
            result = connection.execute(sqlalchemy.text(query))
            names = [str(name) for name in result.keys()]  # noqa: SIM118 (a result, not a dict)
            columns = list(zip(*result.fetchall(), strict=True)) or [()] * len(names)
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as error:  # its own words may hold a password or a cell
        said = without_cells(str(getattr(error, "orig", None) or ""), query)
        hint = f"the database could not answer ({said or type(error).__name__})"
        raise TableError(f"{hint}; check URL, driver and query") from None
    return names, columns
