"""Read sheets of .xlsx and .ods files and tables of SQLite files, within limits."""

from __future__ import annotations

import datetime
import errno
import io
import itertools
import os
import re
import shutil
import sqlite3
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.parsers import expat

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from sfumato.core.errors import BadInput, OptionError, TableError, shown
from sfumato.tables.header import Header, find_header, sheet_rows_from

__all__ = [
    "EXACT",
    "MOST_CELLS",
    "SQLITE",
    "WORKBOOKS",
    "Sheet",
    "as_text",
    "column_of_cells",
    "read_query",
    "read_sqlite",
    "read_workbook",
    "without_cells",
    "write_sqlite",
]

WORKBOOKS = (".xlsx", ".ods")
"""Endings of workbooks that are read."""

MOST_CELLS = 20_000_000
"""Cells of a sheet or table that are read at most."""

EXACT = 2**53
"""Whole numbers below it are exact in a sheet."""

MOST_BYTES = 1 << 29
_MOST_PARTS = 2_000
_MOST_NAMED = 20  # sheets in a sentence
_BLOCK = 1 << 20
_REFUSED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError, OSError)


@dataclass(frozen=True)
class Sheet:
    """Name of the sheet or table that was read, and the names of the others."""

    name: str
    others: tuple[str, ...] = ()
    what: str = "Sheet"
    detected: bool = False  # not the first, but the only one that holds a table


def read_workbook(
    path: Path,
    sheet: str | None = None,
    *,
    header_row: int | None = None,
    most_bytes: int | None = None,
    most_cells: int = MOST_CELLS,
) -> tuple[list[str], list[pa.Array], Sheet, Header]:
    """Names, columns, sheet and header of a table in a workbook; empty rows are skipped.

    Columns of numbers, of dates and of true and false keep their types; all others are texts.

    Parameters
    ----------
    path : Path
    sheet : str, optional
        Without it, the first, or the only one that holds a table.
    header_row : int, optional
        Row that names the columns, as a spreadsheet counts, of the first sheet if none is named; without it, the first
        with a cell, or the one below a title.
    most_bytes : int, optional
        Bytes that the file may unpack to; 512 MiB by default.
    most_cells : int
        Cells that a sheet may span, empty ones between others among them.

    Raises
    ------
    TableError
        For a file that is damaged, protected, unpacks to more, or spans more cells; and for a header that is only
        likely.
    """
    try:
        import python_calamine as calamine
    except ImportError:
        raise OptionError("reading .xlsx and .ods needs python-calamine; install sfumato[excel]") from None
    damaged = TableError(f"{shown(path)} is not a readable {path.suffix.lower()} file; it may be damaged or protected")
    try:
        packed = _repack_within_limits(path, MOST_BYTES if most_bytes is None else most_bytes, most_cells)
    except _REFUSED:
        raise damaged from None
    try:
        with calamine.CalamineWorkbook.from_filelike(packed) as book:
            names = book.sheet_names
            chosen = _find_sheet(names, sheet, path)
            rows = _rows_of(book, chosen.name)
            if sheet is None and header_row is None and chosen.others and not _is_table(rows):
                others = {}
                for other in chosen.others:
                    with suppress(calamine.CalamineError):  # one that cannot be read holds no table
                        others[other] = _rows_of(book, other)
                chosen, rows = _only_table(chosen, rows, others, path)
    except BadInput:
        raise
    except (calamine.CalamineError, OSError, ValueError, OverflowError):  # their own words may quote a cell
        raise damaged from None
    except BaseException as error:  # a panic of the library has no class that could be named
        if type(error).__name__ != "PanicException":
            raise
        raise damaged from None
    name = f"the sheet {shown(chosen.name)} of {shown(path)}"
    found = Header(header_row) if header_row is not None else find_header(rows) or Header(_first_filled(rows))
    if not any(map(_is_filled, rows)):
        raise TableError(f"{name} is empty; name another with --sheet")
    if not found.sure:
        raise TableError(
            f"row {_first_filled(rows)} of {name} looks like a title and row {found.row} like the header; give "
            f"--header-row {found.row}, or --header-row {_first_filled(rows)} if that row names the columns"
        ).propose(header_row=found.row)
    header, *body = filter(_is_filled, sheet_rows_from(rows, found.row, name))
    columns = [[row[place] for row in body] for place in range(len(header))]
    kept = [place for place, name in enumerate(header) if name != "" or any(cell != "" for cell in columns[place])]
    return (
        [as_text(header[place]) for place in kept],
        [column_of_cells(columns[place]) for place in kept],
        chosen,
        found,
    )


def _rows_of(book: Any, sheet: str) -> list[list[Any]]:
    return list(map(list, book.get_sheet_by_name(sheet).iter_rows()))


def _is_filled(row: list[Any]) -> bool:
    return any(cell != "" for cell in row)


def _first_filled(rows: list[list[Any]]) -> int:
    """Number of the first row with a non-empty cell."""
    return next((place for place, row in enumerate(rows, 1) if _is_filled(row)), 1)


def _is_table(rows: list[list[Any]]) -> bool:
    """Whether at least two rows have at least two cells."""
    wide = (row for row in rows if sum(cell != "" for cell in row) > 1)
    return sum(1 for _ in itertools.islice(wide, 2)) == 2


def _only_table(
    first: Sheet, rows: list[list[Any]], others: dict[str, list[list[Any]]], path: Path
) -> tuple[Sheet, list[list[Any]]]:
    """The only other sheet with a table, if the first sheet has none."""
    tables = {name: found for name, found in others.items() if _is_table(found)}
    if not tables:
        return first, rows
    if len(tables) > 1:
        listed = ", ".join(map(shown, list(tables)[:_MOST_NAMED]))
        raise TableError(
            f"the first sheet {shown(first.name)} of {shown(path)} holds no table and {len(tables)} others do "
            f"({listed}); name one with --sheet"
        ).propose(sheet=next(iter(tables)))
    name = next(iter(tables))
    return Sheet(name, (first.name, *(other for other in first.others if other != name)), detected=True), tables[name]


def _find_sheet(names: Sequence[str], sheet: str | None, path: Path) -> Sheet:
    if not names:
        raise TableError(f"{shown(path)} has no sheets; provide one with a table")
    name = names[0] if sheet is None else sheet
    if name not in names:
        raise OptionError(f"there is no sheet {shown(name)}; there are {', '.join(map(shown, names[:_MOST_NAMED]))}")
    return Sheet(name, tuple(other for other in names if other != name))


def _repack_within_limits(path: Path, most_bytes: int, most_cells: int) -> io.BytesIO:
    """XML parts of a workbook within size limits, repacked, because declared sizes are not trusted.

    Every part is looked through a block at a time before any of it is kept.
    """
    packed, left = io.BytesIO(), most_bytes
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as again:
        parts = archive.infolist()
        if len(parts) > _MOST_PARTS or len({part.filename for part in parts}) < len(parts):
            raise zipfile.BadZipFile
        for part in parts:
            if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile
            size, xml = _scan_part(archive, part, left, _Extent(path, most_cells))
            left -= size
            if left < 0:
                raise TableError(
                    f"{shown(path)} unpacks to more than {max(1, most_bytes >> 20)} MiB; save its sheet as CSV"
                )
            if part.filename == "mimetype" or xml:
                with archive.open(part) as file, again.open(zipfile.ZipInfo(part.filename), "w") as copy:
                    shutil.copyfileobj(file, copy, _BLOCK)
    packed.seek(0)
    return packed


def _scan_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo, most: int, extent: _Extent) -> tuple[int, bool]:
    """Unpacked bytes of a part, at most one above the limit, and whether it is XML; refuse too many cells."""
    parser = expat.ParserCreate()
    parser.StartElementHandler = extent.start
    parser.EndElementHandler = extent.end
    parser.StartDoctypeDeclHandler = extent.doctype
    size, xml = 0, True
    with archive.open(part) as file:
        while size <= most and (block := file.read(min(_BLOCK, most + 1 - size))):
            size += len(block)
            try:
                if xml:
                    parser.Parse(block, False)
            except expat.ExpatError:
                xml = False
    try:
        if xml:
            parser.Parse(b"", True)
    except expat.ExpatError:
        xml = False
    return size, xml


class _Extent:
    """Counts the cells that a sheet spans, including repeated ones."""

    def __init__(self, path: Path, most_cells: int) -> None:
        self.path, self.most_cells = path, most_cells
        self.row = self.column = self.width = self.height = 0
        self.row_repeats = self.cell_repeats = 1
        self.inside = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        if local == "c":
            self._place(attributes.get("r", ""))
            self._span()
        elif local == "row":
            self.row, self.column = _number(attributes.get("r", "")) or self.row + 1, 0
        elif local == "table":
            self.row = self.column = 0
        elif local == "table-row":
            self.row_repeats, self.column = _repeats(attributes, "table:number-rows-repeated"), 0
            self.row += self.row_repeats
        elif local in ("table-cell", "covered-table-cell"):
            self.column += _repeats(attributes, "table:number-columns-repeated")
            self.inside = True
            if any(key.endswith("value-type") for key in attributes):
                self._span()
        elif local == "p" and self.inside:
            self._span()

    def end(self, name: str) -> None:
        if name.endswith("table-cell"):
            self.inside = False

    def doctype(self, *_: Any) -> None:
        raise zipfile.BadZipFile

    def _place(self, where: str) -> None:
        letters = where.rstrip("0123456789")
        self.column += 1
        if letters and letters.isascii() and letters.isalpha() and len(letters) <= 6:
            self.column = 0
            for letter in letters.upper():
                self.column = 26 * self.column + ord(letter) - 64
            self.row = _number(where[len(letters) :]) or self.row
        elif where:
            raise zipfile.BadZipFile

    def _span(self) -> None:
        self.width, self.height = max(self.width, self.column), max(self.height, self.row)
        if self.width * self.height > self.most_cells:
            raise TableError(
                f"a sheet of {shown(self.path)} spans more than {self.most_cells} cells; remove stray cells far from "
                "the table, or save it as CSV"
            )


def _number(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise zipfile.BadZipFile
    return int(text)


def _repeats(attributes: dict[str, str], name: str) -> int:
    return _number(attributes.get(name, "")) or 1


def column_of_cells(cells: list[Any]) -> pa.Array:
    """A column of one type, or of texts if types differ; empty texts are missing cells."""
    kinds = {type(cell) for cell in cells if cell != ""}
    present = [None if cell == "" else cell for cell in cells]
    if kinds == {int}:
        return pa.array(present, pa.int64())
    if kinds and kinds <= {int, float}:
        numbers = [None if cell is None else float(cell) for cell in present]
        whole = all(number is None or (number.is_integer() and abs(number) < EXACT) for number in numbers)
        return pa.array(numbers, pa.float64()).cast(pa.int64()) if whole else pa.array(numbers, pa.float64())
    if kinds == {bool}:
        return pa.array(present, pa.bool_())
    if kinds == {datetime.date}:
        return pa.array(present, pa.date32())
    if kinds and kinds <= {datetime.date, datetime.datetime}:
        return pa.array([None if cell is None else _moment(cell) for cell in present], pa.timestamp("us"))
    return pa.array(["" if cell is None else as_text(cell) for cell in present], pa.string())


def _moment(cell: datetime.date) -> datetime.datetime:
    return cell if isinstance(cell, datetime.datetime) else datetime.datetime(cell.year, cell.month, cell.day)


def as_text(cell: Any) -> str:
    """A cell as text: integers without decimals, dates and times in ISO 8601."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < EXACT:
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, datetime.date | datetime.time) else str(cell)


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


def without_cells(message: str, query: str) -> str:
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
    for word in message.strip()[:_MOST_CHARACTERS].partition("\n")[0].split()[:_MOST_WORDS]:
        bare = word.strip("\"'`:;,.()[]").lower()
        known = bare in _WORDS or bare in asked
        if known or kept[-1:] != [_LEFT_OUT]:
            kept.append(word if known else _LEFT_OUT)
    return " ".join(kept) if any(word != _LEFT_OUT for word in kept) else ""


def read_query(url: str, query: str) -> tuple[list[str], list[Any]]:
    """Column names and columns of a query's result, through SQLAlchemy."""
    import sqlalchemy

    try:
        engine = sqlalchemy.create_engine(url)
        with engine.connect() as connection:
            result = connection.execute(sqlalchemy.text(query))
            names = [str(name) for name in result.keys()]  # noqa: SIM118 (a result, not a dict)
            columns = list(zip(*result.fetchall(), strict=True)) or [()] * len(names)
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as error:  # its own words may hold a password or a cell
        message = without_cells(str(getattr(error, "orig", None) or ""), query)
        hint = f"the database could not answer ({message or type(error).__name__})"
        raise TableError(f"{hint}; check URL, driver and query") from None
    return names, columns
