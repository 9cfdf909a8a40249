"""Sheets of workbooks, .xlsx and .ods: unpacked within bounds before the library that knows them sees a byte."""

from __future__ import annotations

import datetime
import io
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from sfumato.core.errors import BadInput, OptionError, TableError, shown

__all__ = ["MOST_CELLS", "WORKBOOKS", "Sheet", "column_of_cells", "read_workbook"]

WORKBOOKS = (".xlsx", ".ods")
"""Endings of workbooks that are read."""

MOST_CELLS = 20_000_000
"""Cells of a sheet or table that are read at most."""

MOST_BYTES = 1 << 29
_MOST_PARTS = 2_000
_BLOCK = 1 << 20
_EXACT = 2**53
_REFUSED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError, OSError)


@dataclass(frozen=True)
class Sheet:
    """Name of the sheet or table that was read, and the names of the others."""

    name: str
    others: tuple[str, ...] = ()
    what: str = "Sheet"


def read_workbook(
    path: Path, sheet: str | None = None, *, most_bytes: int | None = None
) -> tuple[list[str], list[pa.Array], Sheet]:
    """Names, columns and sheet of a table in a workbook: its first row names the columns, empty rows are passed over.

    Columns of numbers, of dates and of true and false keep their types; all others are texts.

    Parameters
    ----------
    path : Path
    sheet : str, optional
        Without it, the first.
    most_bytes : int, optional
        Bytes that the file may unpack to; 512 MiB unless told.

    Raises
    ------
    TableError
        For a file that is damaged, protected, unpacks to more, or spans more than 20 million cells.
    """
    try:
        import python_calamine as calamine
    except ImportError:
        raise OptionError("reading .xlsx and .ods needs python-calamine; install sfumato[excel]") from None
    damaged = TableError(f"{shown(path)} is not a readable {path.suffix.lower()} file; it may be damaged or protected")
    try:
        packed = _repacked(path, MOST_BYTES if most_bytes is None else most_bytes)
    except _REFUSED:
        raise damaged from None
    try:
        with calamine.CalamineWorkbook.from_filelike(packed) as book:
            names = book.sheet_names
            chosen = _chosen(names, sheet, path)
            rows = book.get_sheet_by_name(chosen.name).to_python()
    except BadInput:
        raise
    except (calamine.CalamineError, OSError, ValueError, OverflowError):  # their own words may quote a cell
        raise damaged from None
    except BaseException as error:  # a panic of the library has no class that could be named
        if type(error).__name__ != "PanicException":
            raise
        raise damaged from None
    filled = [row for row in rows if any(cell != "" for cell in row)]
    if not filled:
        raise TableError(f"the sheet {shown(chosen.name)} of {shown(path)} is empty; name another with --sheet")
    header, *body = filled
    columns = [[row[place] for row in body] for place in range(len(header))]
    kept = [place for place, name in enumerate(header) if name != "" or any(cell != "" for cell in columns[place])]
    return [_text(header[place]) for place in kept], [column_of_cells(columns[place]) for place in kept], chosen


def _chosen(names: Sequence[str], sheet: str | None, path: Path) -> Sheet:
    if not names:
        raise TableError(f"{shown(path)} has no sheets; bring one with a table")
    name = names[0] if sheet is None else sheet
    if name not in names:
        raise OptionError(f"there is no sheet {shown(name)}; there are {', '.join(map(shown, names[:20]))}")
    return Sheet(name, tuple(other for other in names if other != name))


def _repacked(path: Path, most_bytes: int) -> io.BytesIO:
    """Parts of a workbook that are XML within bounds, packed anew: sizes that a file only states are not believed."""
    packed, left = io.BytesIO(), most_bytes
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as again:
        parts = archive.infolist()
        if len(parts) > _MOST_PARTS or len({part.filename for part in parts}) < len(parts):
            raise zipfile.BadZipFile
        for part in parts:
            if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile
            with archive.open(part) as file:
                data = file.read(left + 1)
            left -= len(data)
            if left < 0:
                raise TableError(
                    f"{shown(path)} unpacks to more than {max(1, most_bytes >> 20)} MiB; save its sheet as CSV"
                )
            if part.filename == "mimetype" or _is_bounded_xml(data, path):
                again.writestr(zipfile.ZipInfo(part.filename), data)
    packed.seek(0)
    return packed


def _is_bounded_xml(data: bytes, path: Path) -> bool:
    """Tell whether a part is XML; one that spans too many cells is refused."""
    extent = _Extent(path)
    parser = expat.ParserCreate()
    parser.StartElementHandler = extent.start
    parser.EndElementHandler = extent.end
    parser.StartDoctypeDeclHandler = extent.doctype
    try:
        for begin in range(0, len(data), _BLOCK):
            parser.Parse(data[begin : begin + _BLOCK], False)
        parser.Parse(b"", True)
    except expat.ExpatError:
        return False
    return True


class _Extent:
    """Counts the cells that a sheet spans, as both formats place and repeat them."""

    def __init__(self, path: Path) -> None:
        self.path = path
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
        if self.width * self.height > MOST_CELLS:
            raise TableError(
                f"a sheet of {shown(self.path)} spans more than {MOST_CELLS} cells; remove stray cells far from the "
                "table, or save it as CSV"
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
    """A column of one type, texts where it has several; an empty text is a missing cell."""
    kinds = {type(cell) for cell in cells if cell != ""}
    present = [None if cell == "" else cell for cell in cells]
    if kinds == {int}:
        return pa.array(present, pa.int64())
    if kinds and kinds <= {int, float}:
        numbers = [None if cell is None else float(cell) for cell in present]
        whole = all(number is None or (number.is_integer() and abs(number) < _EXACT) for number in numbers)
        return pa.array(numbers, pa.float64()).cast(pa.int64()) if whole else pa.array(numbers, pa.float64())
    if kinds == {bool}:
        return pa.array(present, pa.bool_())
    if kinds == {datetime.date}:
        return pa.array(present, pa.date32())
    if kinds and kinds <= {datetime.date, datetime.datetime}:
        return pa.array([None if cell is None else _moment(cell) for cell in present], pa.timestamp("us"))
    return pa.array(["" if cell is None else _text(cell) for cell in present], pa.string())


def _moment(cell: datetime.date) -> datetime.datetime:
    return cell if isinstance(cell, datetime.datetime) else datetime.datetime(cell.year, cell.month, cell.day)


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < _EXACT:
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, datetime.date | datetime.time) else str(cell)
