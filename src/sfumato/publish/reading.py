"""A released table looked at batch by batch: memory is bounded whatever it unpacks to."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sfumato.errors import BadInput, TableError
from sfumato.scale.source import open_source
from sfumato.tables.cells import bound_to_number, codes_of_cells, is_text, numbers_of_cells
from sfumato.tables.field import Field, Kind
from sfumato.tables.schema import Schema
from sfumato.tables.spreadsheet import FormulaCount, unquote_formulas, unquoted_names

__all__ = ["MOST_BYTES", "LookedAt", "look_at_table"]

MOST_BYTES = 1 << 36
"""Bytes that a released table may have, and unpack to, unless its reader grants more."""

_FREE = 1 << 26  # bytes that any table may unpack to
_CELL = 1 << 10  # bytes of a cell, on average, beyond which a table is not what was certified
_BATCH_CELLS = 1 << 20
_FEWEST_ROWS = 1 << 10


@dataclass(frozen=True)
class LookedAt:
    """What is in the file of a table; ``rows`` stops one batch after those that were certified.

    ``declared`` counts the columns of declared domain and ``outside`` names those of them that leave it.
    """

    names: tuple[str, ...]
    rows: int
    declared: int
    outside: tuple[str, ...]
    formulas: FormulaCount


def look_at_table(
    file: Path, schema: Schema, rows: int, most_bytes: int | None = None, *, quoted: bool = False
) -> LookedAt:
    """Read a released table once and compare it with its schema.

    Parameters
    ----------
    file : path
    schema : Schema
        Whose declared domains must hold; others cannot be looked at from outside.
    rows : int
        Those certified. Reading stops beyond them.
    most_bytes : int, optional
        Bytes that the table may unpack to; by default what as many rows need, and never more than `MOST_BYTES`.
    quoted : bool
        Whether formulas have an apostrophe before them, which is not part of the value.

    Raises
    ------
    TableError
        Where it cannot be read, or unpacks to more.
    """
    source = open_source(file)
    written = source.schema.names
    names = unquoted_names(written) if quoted else tuple(written)
    allowed = min(MOST_BYTES, _FREE + rows * len(names) * _CELL) if most_bytes is None else most_bytes
    declared = [field for field in schema if field.domain.declared and field.name in names]
    outside: dict[str, None] = {}
    formulas = FormulaCount(names)
    seen = size = 0
    for part in source.batches(written, max(_FEWEST_ROWS, _BATCH_CELLS // len(names)), threads=False):
        seen += len(part)
        size += part.nbytes
        if size > allowed:
            raise TableError(
                f"the table unpacks to more than {allowed >> 20} MiB, too much for {rows} rows of {len(names)} columns"
            )
        if seen > rows:
            break
        batch = pa.Table.from_batches([part])
        batch = unquote_formulas(batch) if quoted else batch
        formulas.add(batch)
        for field in declared:
            if field.name not in outside and _leaves(batch.column(field.name), field):
                outside[field.name] = None
    return LookedAt(names, seen, len(declared), tuple(outside), formulas)


def _leaves(cells: pa.ChunkedArray, field: Field) -> bool:
    """Tell whether a cell lies outside the declared domain of its column; CSV writes a missing one as nothing."""
    if is_text(cells.type) and "" not in (*field.missing, *(field.domain.categories or ())):
        field = dataclasses.replace(field, missing=(*field.missing, ""))
    try:
        if field.kind in (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL):
            codes_of_cells(cells, field)
            return False
        numbers, absent = numbers_of_cells(cells, field)
    except BadInput:
        return True
    low, high = (
        None if edge is None else bound_to_number(edge, field) for edge in (field.domain.low, field.domain.high)
    )
    present = numbers[~absent]
    return bool((low is not None and (present < low).any()) or (high is not None and (present > high).any()))
