"""Repair cells that do not fit a column: set other forms to missing, round finer values to the step.

Only in columns whose schema says so (``repair``), as an inferred one does where cells of few persons do not fit what
all others are; elsewhere such a cell is an error.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats
from sfumato.tables.cells import (
    absent_cells,
    is_text,
    plain,
    read_codes,
    read_numbers,
    write_numbers,
)
from sfumato.tables.dates import is_monthly
from sfumato.tables.field import Field, Kind
from sfumato.tables.grid import WIDEST, nearest_on_step
from sfumato.tables.rules import decimals_of_field
from sfumato.tables.schema import Schema

__all__ = ["repair_table"]


def repair_table(table: pa.Table, schema: Schema, *, level: object = None) -> pa.Table:
    """A table with the repairable cells fixed; the same table if all cells fit.

    A column that says the privacy ``level`` of each row stays as it is: what someone asks for is not rounded.
    """
    for field in schema.encoded:
        if field.repair and field.name in table.column_names and field.name != level:
            place, column = table.column_names.index(field.name), table.column(field.name)
            table = table.set_column(place, field.name, _repair_column(column, field))
    return table


def _repair_column(column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray | pa.Array:
    if pa.types.is_dictionary(column.type):
        return column
    array = plain(column) if is_text(column.type) else column.combine_chunks()
    if field.kind in (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL):
        if not field.domain.categories:
            return column
        codes, absent = read_codes(column, field)
        return _set_missing(array, (codes < 0) & ~absent)
    values, absent = read_numbers(column, field)
    array = _set_missing(array, ~absent & (np.isnan(values) | _is_too_large(values, field)))
    return array if is_monthly(field) else _round_cells(array, values, field)


def _set_missing(array: pa.Array, strays: Bools) -> pa.Array:
    """Cells with some set to missing."""
    return pc.if_else(pa.array(strays), pa.scalar(None, array.type), array) if strays.any() else array


def _is_too_large(values: Floats, field: Field) -> Bools:
    """Numbers beyond all others, too large for a double with the decimals of the column."""
    low, high, decimals = field.domain.low, field.domain.high, decimals_of_field(field)
    if decimals is None or not isinstance(low, int | float) or not isinstance(high, int | float):
        return np.zeros(len(values), dtype=np.bool_)
    widest = WIDEST / 2 / 10.0**decimals
    return np.asarray(((values < low) | (values > high)) & (np.abs(values) >= widest))


def _round_cells(array: pa.Array, values: Floats, field: Field) -> pa.Array:
    """Cells rounded to the step of the column; dates are rounded down."""
    absent = absent_cells(array, field.missing)
    known = np.where(absent, 0.0, values)
    nearest = np.floor(known) if field.kind is Kind.DATE else nearest_on_step(known, field, array.type)
    off = ~absent & (nearest != values)
    if not off.any():
        return array
    return pc.if_else(pa.array(off), write_numbers(np.where(off, nearest, 0.0), ~off, field, array.type), array)
