"""Spreadsheets: sheets of .xlsx and .ods files, and texts that are taken for formulas.

A file is unpacked within bounds before a library sees a byte of it. A cell or name that begins with ``=``, ``+``,
``-``, ``@``, a tab or a return is run when a CSV file is opened by a spreadsheet; negative numbers are not. An
apostrophe before it makes it text. One more is put where there are some already, so that taking one away always gives
the text back.
"""

from __future__ import annotations

import datetime
import io
import itertools
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import BadInput, OptionError, TableError, shown
from sfumato.core.facts import FormulaTexts
from sfumato.tables.cells import NUMBER, is_text, written_type
from sfumato.tables.header import Header, find_header, sheet_rows_from

__all__ = [
    "MOST_CELLS",
    "WORKBOOKS",
    "FormulaCount",
    "Sheet",
    "as_text",
    "column_of_cells",
    "quote_formulas",
    "read_workbook",
    "unquote_formulas",
    "unquoted_names",
    "write_opendocument",
    "write_workbook",
]

WORKBOOKS = (".xlsx", ".ods")
"""Endings of workbooks that are read."""

MOST_CELLS = 20_000_000
"""Cells of a sheet or table that are read at most."""

MOST_BYTES = 1 << 29
_MOST_PARTS = 2_000
_MOST_NAMED = 20  # sheets in a sentence
_BLOCK = 1 << 20
_EXACT = 2**53
_BATCH = 1_000
_MOST_ROWS, _MOST_COLUMNS, _LONGEST = 1_048_575, 16_384, 32_767  # of a sheet, below its header; characters of a cell
_FIRST_YEAR = 1901  # earlier days have no number that all programs agree on
_WRITTEN = datetime.datetime(2000, 1, 1)  # in place of the day of writing, so that equal tables give equal files
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
    """Names, columns, sheet and header of a table in a workbook; empty rows are passed over.

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
        Bytes that the file may unpack to; 512 MiB unless told.
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
        packed = _repacked(path, MOST_BYTES if most_bytes is None else most_bytes, most_cells)
    except _REFUSED:
        raise damaged from None
    try:
        with calamine.CalamineWorkbook.from_filelike(packed) as book:
            names = book.sheet_names
            chosen = _chosen(names, sheet, path)
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
    """Number of the first row with a cell."""
    return next((place for place, row in enumerate(rows, 1) if _is_filled(row)), 1)


def _is_table(rows: list[list[Any]]) -> bool:
    """Whether there are two rows with two cells or more."""
    wide = (row for row in rows if sum(cell != "" for cell in row) > 1)
    return sum(1 for _ in itertools.islice(wide, 2)) == 2


def _only_table(
    first: Sheet, rows: list[list[Any]], others: dict[str, list[list[Any]]], path: Path
) -> tuple[Sheet, list[list[Any]]]:
    """The only other sheet that holds a table, in place of a first one that holds none."""
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


def _chosen(names: Sequence[str], sheet: str | None, path: Path) -> Sheet:
    if not names:
        raise TableError(f"{shown(path)} has no sheets; bring one with a table")
    name = names[0] if sheet is None else sheet
    if name not in names:
        raise OptionError(f"there is no sheet {shown(name)}; there are {', '.join(map(shown, names[:_MOST_NAMED]))}")
    return Sheet(name, tuple(other for other in names if other != name))


def _repacked(path: Path, most_bytes: int, most_cells: int) -> io.BytesIO:
    """Parts of a workbook that are XML within bounds, packed anew: sizes that a file only states are not believed.

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
            size, xml = _looked_through(archive, part, left, _Extent(path, most_cells))
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


def _looked_through(archive: zipfile.ZipFile, part: zipfile.ZipInfo, most: int, extent: _Extent) -> tuple[int, bool]:
    """Bytes that a part unpacks to, or one more than it may, and whether it is XML; too many cells are refused."""
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
    """Counts the cells that a sheet spans, as both formats place and repeat them."""

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
    return pa.array(["" if cell is None else as_text(cell) for cell in present], pa.string())


def _moment(cell: datetime.date) -> datetime.datetime:
    return cell if isinstance(cell, datetime.datetime) else datetime.datetime(cell.year, cell.month, cell.day)


def as_text(cell: Any) -> str:
    """A cell as text: whole numbers without decimals, dates and times as ISO 8601 has them."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < _EXACT:
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, datetime.date | datetime.time) else str(cell)


def write_workbook(table: pa.Table, path: Path) -> None:
    """Write a table as the only sheet of an .xlsx file, without a cell that could be run: texts stay texts.

    Numbers, true and false, and dates keep their types; whole numbers beyond 2^53, days before 1901 and moments finer
    than a millisecond are texts, and lengths of time are counted in seconds.

    Raises
    ------
    OptionError
        For a table that no sheet can hold: too many rows or columns, a text too long, or a row without any value.
    """
    try:
        import xlsxwriter
    except ImportError:
        raise OptionError("writing .xlsx needs XlsxWriter; install sfumato[excel]") from None
    _refuse_unfit(table)
    told: dict[str, Any] = {"strings_to_numbers": False, "strings_to_formulas": False, "strings_to_urls": False}
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as work, path.open("wb") as file:
        output = _FaultyOnce(file)
        try:
            with xlsxwriter.Workbook(output, {**told, "constant_memory": True, "tmpdir": work}) as book:
                _fill_workbook(book, table)
        except xlsxwriter.exceptions.FileCreateError as error:
            raise error.args[0] from None
        if output.fault is not None:
            raise output.fault


def _fill_workbook(book: Any, table: pa.Table) -> None:
    book.set_properties({"created": _WRITTEN})
    sheet = book.add_worksheet("table")
    forms = {kind: book.add_format({"num_format": form}) for kind, form in _NUMBER_FORMS.items()}
    for place, name in enumerate(table.column_names):
        sheet.write_string(0, place, name)
    row = 0
    for part in table.to_batches(max_chunksize=_BATCH):
        columns = [column.to_pylist() for column in part.columns]
        for cells in zip(*columns, strict=True):
            row += 1
            for place, cell in enumerate(cells):
                _write_cell(sheet, row, place, cell, forms)


class _FaultyOnce:
    """A file whose first fault is kept: a writer of zip files that met it would try again when it is thrown away."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.fault: OSError | None = None

    def write(self, data: bytes) -> int:
        """Write, unless there was a fault."""
        self._try(self._file.write, data)
        return len(data)

    def seek(self, place: int, whence: int = 0) -> int:
        """Go to a place, unless there was a fault."""
        self._try(self._file.seek, place, whence)
        return self.tell()

    def flush(self) -> None:
        """Flush, unless there was a fault."""
        self._try(self._file.flush)

    def tell(self) -> int:
        """The place; anywhere once there was a fault."""
        return 0 if self.fault is not None or self._file.closed else self._file.tell()

    def _try(self, call: Callable[..., object], *values: object) -> None:
        if self.fault is None and not self._file.closed:
            try:
                call(*values)
            except OSError as error:
                self.fault = error


_NUMBER_FORMS: dict[type, str] = {
    datetime.date: "yyyy-mm-dd",
    datetime.datetime: "yyyy-mm-dd hh:mm:ss.000",
    datetime.time: "hh:mm:ss",
}


def _write_cell(sheet: Any, row: int, place: int, cell: Any, forms: dict[type, Any]) -> None:
    if cell is None or cell != cell:
        return
    if isinstance(cell, datetime.timedelta):
        cell = cell.total_seconds()
    if isinstance(cell, bool):
        sheet.write_boolean(row, place, cell)
    elif isinstance(cell, int | float | Decimal) and -_EXACT < cell < _EXACT:
        sheet.write_number(row, place, cell)
    elif type(cell) in forms and _is_day_of_sheets(cell):
        sheet.write_datetime(row, place, cell, forms[type(cell)])
    else:
        sheet.write_string(row, place, cell if isinstance(cell, str) else as_text(cell))


def _is_day_of_sheets(cell: Any) -> bool:
    finer = getattr(cell, "microsecond", 0) % 1_000
    return not finer and getattr(cell, "tzinfo", None) is None and getattr(cell, "year", _FIRST_YEAR) >= _FIRST_YEAR


def _refuse_unfit(table: pa.Table) -> None:
    """Refuse a table that no sheet can hold: too many rows or columns, a text too long, or a row without any value."""
    if table.num_rows > _MOST_ROWS or table.num_columns > _MOST_COLUMNS:
        raise OptionError(
            f"a sheet holds {_MOST_ROWS} rows of {_MOST_COLUMNS} columns and the table has {table.num_rows} of "
            f"{table.num_columns}; choose another --format"
        )
    empty = None
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        gone = pc.is_null(column, nan_is_null=True)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            texts = column.cast(kind)
            longer = pc.sum(pc.greater(pc.utf8_length(texts), _LONGEST)).as_py()
            if longer:
                raise OptionError(
                    f"column {name!r} holds {longer} texts longer than the {_LONGEST} characters of a sheet's cell; "
                    "choose another --format"
                )
            gone = pc.or_kleene(gone, pc.equal(texts, ""))
        empty = gone if empty is None else pc.and_(empty, gone)
    lost = 0 if empty is None else pc.sum(empty).as_py()
    if lost:
        raise OptionError(
            f"{lost} rows have no value at all, which a sheet cannot tell from none; choose another --format"
        )


_BEGINS = r"(?s)^[=+\-@\t\r]."


class FormulaCount:
    """Counts over the parts of a table the texts that a spreadsheet takes for formulas."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = sum(_are_formulas(pa.array(list(names), pa.string())).to_pylist())
        self.cells: dict[str, int] = {}

    def add(self, part: pa.Table | pa.RecordBatch) -> None:
        """Count the cells of more rows."""
        for name, column in zip(part.schema.names, part.columns, strict=True):
            texts = _texts(column)
            found = 0 if texts is None else int(pc.sum(_are_formulas(texts)).as_py() or 0)
            if found:
                self.cells[name] = self.cells.get(name, 0) + found

    def facts(self, *, quoted: bool) -> tuple[FormulaTexts, ...]:
        """State what was found; nothing where there is nothing."""
        if not self.names and not self.cells:
            return ()
        return (FormulaTexts(tuple(sorted(self.cells)), sum(self.cells.values()), self.names, quoted),)


def quote_formulas(part: pa.Table) -> pa.Table:
    """Put an apostrophe before every cell and name that a spreadsheet would run."""
    return _each_text(part, _quoted)


def unquote_formulas(part: pa.Table) -> pa.Table:
    """Take away what `quote_formulas` put there."""
    return _each_text(part, _unquoted)


def unquoted_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names as they were before `quote_formulas`."""
    return tuple(_unquoted(pa.array(list(names), pa.string())).to_pylist())


def _each_text(part: pa.Table, change: Callable[[pa.Array], pa.Array]) -> pa.Table:
    columns = []
    for column in part.columns:
        texts = _texts(column)
        columns.append(column if texts is None else change(texts))
    return pa.table(columns, names=change(pa.array(part.schema.names, pa.string())).to_pylist())


def _texts(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array | None:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not is_text(kind):
        return None
    return column.cast(written_type(kind))


def _are_formulas(texts: pa.Array) -> pa.Array:
    begins, number = (pc.match_substring_regex(texts, pattern) for pattern in (_BEGINS, NUMBER))
    return pc.fill_null(pc.and_(begins, pc.invert(number)), False)


def _quoted(texts: pa.Array) -> pa.Array:
    would_run = _are_formulas(pc.utf8_ltrim(texts, "'"))
    return pc.if_else(would_run, pc.binary_join_element_wise(pa.scalar("'", texts.type), texts, ""), texts)


def _unquoted(texts: pa.Array) -> pa.Array:
    would_run = _are_formulas(pc.utf8_ltrim(texts, "'"))
    return pc.if_else(would_run, pc.replace_substring_regex(texts, "^'", ""), texts)


_KIND = "application/vnd.oasis.opendocument.spreadsheet"
_MANIFEST = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" manifest:version="1.2">'
    f'<manifest:file-entry manifest:full-path="/" manifest:version="1.2" manifest:media-type="{_KIND}"/>'
    '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>'
)
_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.2">'
    '<office:body><office:spreadsheet><table:table table:name="table">'
)
_TAIL = "</table:table></office:spreadsheet></office:body></office:document-content>"
_UNWRITABLE = "[\x00-\x09\x0b-\x1f\ufffe\uffff]"  # XML has no way to write these, or readers lose them, as tabs


def write_opendocument(table: pa.Table, path: Path) -> None:
    """Write a table as the only sheet of an .ods file, a batch of rows at a time; equal tables give equal files.

    Numbers, true and false, dates and times of day keep their types; whole numbers beyond 2^53 and moments with a time
    zone are texts, and lengths of time are counted in seconds.

    Raises
    ------
    OptionError
        For a table that no sheet can hold, or texts with characters that the format has no way to write.
    """
    _refuse_unfit(table)
    _refuse_marks(table)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr(zipfile.ZipInfo("mimetype"), _KIND)  # first and not packed, by which the kind is known
        book.writestr(_entry("META-INF/manifest.xml"), _MANIFEST)
        with book.open(_entry("content.xml"), "w", force_zip64=True) as content:
            content.write(_HEAD.encode())
            content.write(_row(table.column_names).encode())
            for part in table.to_batches(max_chunksize=_BATCH):
                columns = [column.to_pylist() for column in part.columns]
                content.write("".join(_row(cells) for cells in zip(*columns, strict=True)).encode())
            content.write(_TAIL.encode())


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)  # of 1980: the day of writing would make equal tables differ
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _refuse_marks(table: pa.Table) -> None:
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        strange = int(re.search(_UNWRITABLE, name) is not None)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            strange += pc.sum(pc.match_substring_regex(column.cast(kind), _UNWRITABLE)).as_py() or 0
        if strange:
            raise OptionError(
                f"column {name!r} holds {strange} texts with control characters, which .ods has no way to write; "
                "choose another --format"
            )


def _row(cells: Any) -> str:
    return f"<table:table-row>{''.join(map(_cell, cells))}</table:table-row>"


def _cell(cell: Any) -> str:
    if cell is None or cell != cell:
        return "<table:table-cell/>"
    kind, value = _typed(cell)
    if kind is None:
        lines = "".join(f"<text:p>{_spaced(line)}</text:p>" for line in re.split("\n", value))
        return f'<table:table-cell office:value-type="string">{lines}</table:table-cell>'
    name = {"boolean": "boolean-value", "date": "date-value", "time": "time-value"}.get(kind, "value")
    return f'<table:table-cell office:value-type="{kind}" office:{name}={quoteattr(value)}/>'


def _typed(cell: Any) -> tuple[str | None, str]:
    """Type of a cell and its value as the format writes it; no type for texts."""
    if isinstance(cell, datetime.timedelta):
        cell = cell.total_seconds()
    if isinstance(cell, bool):
        return "boolean", "true" if cell else "false"
    if isinstance(cell, int | float | Decimal) and -_EXACT < cell < _EXACT:
        return "float", repr(cell) if isinstance(cell, float) else str(cell)
    if isinstance(cell, datetime.date) and getattr(cell, "tzinfo", None) is None:
        return "date", cell.isoformat()
    if isinstance(cell, datetime.time):
        seconds = f"{cell.second:02d}" + (f".{cell.microsecond:06d}" if cell.microsecond else "")
        return "time", f"PT{cell.hour:02d}H{cell.minute:02d}M{seconds}S"
    return None, cell if isinstance(cell, str) else as_text(cell)


def _spaced(line: str) -> str:
    """Text in which no run of spaces is lost: readers take several for one, and none at the ends."""
    pieces = re.split("(^ +|  +| +$)", line)
    return "".join(
        f'<text:s text:c="{len(piece)}"/>' if piece and not piece.strip(" ") else escape(piece) for piece in pieces
    )
