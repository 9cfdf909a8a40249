"""A codec that was fitted on some rows, with mean and deviation of its numbers as all rows have them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sfumato.tables.codec import Codec, EncodedColumn
from sfumato.tables.grid import extent_of_numbers, fitting_moments
from sfumato.tables.moved_columns import own_units

__all__ = ["rescale"]


def rescale(codec: Codec, moments: Mapping[str, tuple[float, float]]) -> Codec:
    """The codec with other means and deviations of some columns, which are told in its own coordinates.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.tables.schema import Schema
    >>> table = pa.table({"pay": [0.5, 1.25, 7.0]})
    >>> codec = Codec.fit(table, Schema.infer(table))
    >>> twice = rescale(codec, {"pay": (0.0, 2.0)})
    >>> bool((twice.encode(table).values * 2.0 == codec.encode(table).values).all())
    True
    """
    told = [(column, moments.get(column.field.name)) for column in codec.columns]
    return Codec(codec.schema, tuple(column if found is None else _rescaled(column, *found) for column, found in told))


def _rescaled(column: EncodedColumn, mean: float, deviation: float) -> EncodedColumn:
    grid = column.grid
    if grid is None or deviation <= 0.0:
        return column
    mean, scale = fitting_moments(column.mean + column.scale * mean, column.scale * deviation, grid)
    centre, unit = own_units(grid, mean, scale, column.field) or (None, None)
    within = extent_of_numbers(column.field, grid, mean, scale, column.kind)
    number = dataclasses.replace(column.blocks[0], centre=centre, scale=unit, extent=within)
    return dataclasses.replace(column, blocks=(number, *column.blocks[1:]), mean=mean, scale=scale)
