"""Texts that a spreadsheet takes for formulas: counted, written harmless, and read back.

A cell or name that begins with ``=``, ``+``, ``-``, ``@``, a tab or a return is run when a CSV file is opened by a
spreadsheet; negative numbers are not. An apostrophe before it makes it text. One more is put where there are some
already, so that taking one away always gives the text back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.facts import FormulaTexts
from sfumato.tables.cells import NUMBER, is_text

__all__ = ["FormulaCount", "quote_formulas", "unquote_formulas", "unquoted_names"]

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
    return column.cast(pa.large_string() if pa.types.is_string_view(kind) else kind)


def _are_formulas(texts: pa.Array) -> pa.Array:
    begins, number = (pc.match_substring_regex(texts, pattern) for pattern in (_BEGINS, NUMBER))
    return pc.fill_null(pc.and_(begins, pc.invert(number)), False)


def _quoted(texts: pa.Array) -> pa.Array:
    would_run = _are_formulas(pc.utf8_ltrim(texts, "'"))
    return pc.if_else(would_run, pc.binary_join_element_wise(pa.scalar("'", texts.type), texts, ""), texts)


def _unquoted(texts: pa.Array) -> pa.Array:
    would_run = _are_formulas(pc.utf8_ltrim(texts, "'"))
    return pc.if_else(would_run, pc.replace_substring_regex(texts, "^'", ""), texts)
