"""Spreadsheets: texts that they take for formulas, and a table written as the only sheet of an .ods file.

A cell or name that begins with ``=``, ``+``, ``-``, ``@``, a tab or a return is run when a CSV file is opened by a
spreadsheet; negative numbers are not. An apostrophe before it makes it text. One more is put where there are some
already, so that taking one away always gives the text back.
"""

from __future__ import annotations

import datetime
import re
import zipfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import OptionError
from sfumato.core.facts import FormulaTexts
from sfumato.tables.cells import NUMBER, is_text, written_type
from sfumato.tables.workbook import as_text, refuse_unfit

__all__ = ["FormulaCount", "quote_formulas", "unquote_formulas", "unquoted_names", "write_opendocument"]

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
_BATCH = 1_000
_EXACT = 2**53


def write_opendocument(table: pa.Table, path: Path) -> None:
    """Write a table as the only sheet of an .ods file, a batch of rows at a time; equal tables give equal files.

    Numbers, true and false, dates and times of day keep their types; whole numbers beyond 2^53 and moments with a time
    zone are texts, and lengths of time are counted in seconds.

    Raises
    ------
    OptionError
        For a table that no sheet can hold, or texts with characters that the format has no way to write.
    """
    refuse_unfit(table)
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
