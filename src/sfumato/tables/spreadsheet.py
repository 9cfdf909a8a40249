"""Write .xlsx and .ods files, and protect against texts that a spreadsheet would run as formulas.

A cell or name that begins with ``=``, ``+``,
``-``, ``@``, a tab or a return is run when a CSV file is opened by a spreadsheet; negative numbers are not. An
apostrophe before it makes it text. One more is put where there are some already, so that taking one away always gives
the text back.
"""

from __future__ import annotations

import datetime
import re
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import OptionError
from sfumato.tables.cells import NUMBER, is_text, written_type
from sfumato.tables.facts import FormulaTexts
from sfumato.tables.workbook import EXACT, as_text

__all__ = [
    "FormulaCount",
    "quote_formulas",
    "unquote_formulas",
    "unquoted_names",
    "write_opendocument",
    "write_workbook",
]

_BATCH = 1_000
_MOST_ROWS, _MOST_COLUMNS, _LONGEST = 1_048_575, 16_384, 32_767  # of a sheet, below its header; characters of a cell
_FIRST_YEAR = 1901  # earlier days have no number that all programs agree on
_WRITTEN = datetime.datetime(2000, 1, 1)  # in place of the day of writing, so that equal tables give equal files


def write_workbook(table: pa.Table, path: Path) -> None:
    """Write a table as the only sheet of an .xlsx file; texts are never written as formulas.

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
    entries: dict[str, object] = {"strings_to_numbers": False, "strings_to_formulas": False, "strings_to_urls": False}
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as work, path.open("wb") as file:
        output = _FirstErrorFile(file)
        try:
            with xlsxwriter.Workbook(output, {**entries, "constant_memory": True, "tmpdir": work}) as book:
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


class _FirstErrorFile:
    """A file that raises its first error only once, because zip writers retry when they are closed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.fault: OSError | None = None

    def write(self, data: bytes) -> int:
        """Write, unless an error occurred before."""
        self._try(self._file.write, data)
        return len(data)

    def seek(self, place: int, whence: int = 0) -> int:
        """Seek, unless an error occurred before."""
        self._try(self._file.seek, place, whence)
        return self.tell()

    def flush(self) -> None:
        """Flush, unless an error occurred before."""
        self._try(self._file.flush)

    def tell(self) -> int:
        """The position; arbitrary after an error."""
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
    elif isinstance(cell, int | float | Decimal) and -EXACT < cell < EXACT:
        sheet.write_number(row, place, cell)
    elif type(cell) in forms and _is_day_of_sheets(cell):
        sheet.write_datetime(row, place, cell, forms[type(cell)])
    else:
        sheet.write_string(row, place, cell if isinstance(cell, str) else as_text(cell))


def _is_day_of_sheets(cell: Any) -> bool:
    finer = getattr(cell, "microsecond", 0) % 1_000
    return not finer and getattr(cell, "tzinfo", None) is None and getattr(cell, "year", _FIRST_YEAR) >= _FIRST_YEAR


def _refuse_unfit(table: pa.Table) -> None:
    """Refuse a table that a sheet cannot hold: too many rows or columns, too long texts, or an empty row."""
    if table.num_rows > _MOST_ROWS or table.num_columns > _MOST_COLUMNS:
        raise OptionError(
            f"a sheet holds {_MOST_ROWS} rows of {_MOST_COLUMNS} columns and the table has {table.num_rows} of "
            f"{table.num_columns}; choose another --format"
        )
    empty = None
    for name, column in zip(table.column_names, table.columns, strict=True):
        gone, texts = pc.is_null(column, nan_is_null=True), _texts(column)
        if texts is not None:
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
    """Counts texts that a spreadsheet would run as formulas, over the parts of a table."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = sum(re.match(_BEGINS, name) is not None for name in names)
        self.cells: dict[str, int] = {}

    def add(self, part: pa.Table | pa.RecordBatch) -> None:
        """Count the cells of more rows."""
        for name, column in zip(part.schema.names, part.columns, strict=True):
            texts = _texts(column)
            found = 0 if texts is None else int(pc.sum(_are_formulas(texts)).as_py() or 0)
            if found:
                self.cells[name] = self.cells.get(name, 0) + found

    def facts(self, *, quoted: bool) -> tuple[FormulaTexts, ...]:
        """Facts about these texts; none if there are none."""
        if not self.names and not self.cells:
            return ()
        return (FormulaTexts(tuple(sorted(self.cells)), sum(self.cells.values()), self.names, quoted),)


def quote_formulas(part: pa.Table) -> pa.Table:
    """Put an apostrophe before every cell and name that a spreadsheet would run as a formula."""
    return _each_text(part, _quote_texts)


def unquote_formulas(part: pa.Table) -> pa.Table:
    """Remove the apostrophes that `quote_formulas` added."""
    return _each_text(part, _unquote_texts)


def unquoted_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names without the apostrophes that `quote_formulas` added."""
    return tuple(_unquote_texts(pa.array(list(names), pa.string())).to_pylist())


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


def _quote_texts(texts: pa.Array) -> pa.Array:
    would_run = _are_formulas(pc.utf8_ltrim(texts, "'"))
    return pc.if_else(would_run, pc.binary_join_element_wise(pa.scalar("'", texts.type), texts, ""), texts)


def _unquote_texts(texts: pa.Array) -> pa.Array:
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
    """Write a table as the only sheet of an .ods file, batch by batch; equal tables give equal files.

    Numbers, true and false, dates and times of day keep their types; whole numbers beyond 2^53 and moments with a time
    zone are texts, and lengths of time are counted in seconds.

    Raises
    ------
    OptionError
        For a table that no sheet can hold, or texts with characters that the format has no way to write.
    """
    _refuse_unfit(table)
    _refuse_control_characters(table)
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


def _refuse_control_characters(table: pa.Table) -> None:
    for name, column in zip(table.column_names, table.columns, strict=True):
        strange, texts = int(re.search(_UNWRITABLE, name) is not None), _texts(column)
        if texts is not None:
            strange += pc.sum(pc.match_substring_regex(texts, _UNWRITABLE)).as_py() or 0
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
    kind, value = _typed_value(cell)
    if kind is None:
        lines = "".join(f"<text:p>{_preserve_spaces(line)}</text:p>" for line in re.split("\n", value))
        return f'<table:table-cell office:value-type="string">{lines}</table:table-cell>'
    name = {"boolean": "boolean-value", "date": "date-value", "time": "time-value"}.get(kind, "value")
    return f'<table:table-cell office:value-type="{kind}" office:{name}={quoteattr(value)}/>'


def _typed_value(cell: Any) -> tuple[str | None, str]:
    """Type and value of a cell in the file format; no type for texts."""
    if isinstance(cell, datetime.timedelta):
        cell = cell.total_seconds()
    if isinstance(cell, bool):
        return "boolean", "true" if cell else "false"
    if isinstance(cell, int | float | Decimal) and -EXACT < cell < EXACT:
        return "float", repr(cell) if isinstance(cell, float) else str(cell)
    if isinstance(cell, datetime.date) and getattr(cell, "tzinfo", None) is None:
        return "date", cell.isoformat()
    if isinstance(cell, datetime.time):
        seconds = f"{cell.second:02d}" + (f".{cell.microsecond:06d}" if cell.microsecond else "")
        return "time", f"PT{cell.hour:02d}H{cell.minute:02d}M{seconds}S"
    return None, cell if isinstance(cell, str) else as_text(cell)


def _preserve_spaces(line: str) -> str:
    """Text with runs of spaces and outer spaces preserved as the format requires."""
    pieces = re.split("(^ +|  +| +$)", line)
    return "".join(
        f'<text:s text:c="{len(piece)}"/>' if piece and not piece.strip(" ") else escape(piece) for piece in pieces
    )
