"""Columns that were moved out of their domain on purpose: written as plain numbers, with no old bound or step."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.tables.cells import Gap, decimals_of_step, is_text, write_numbers
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.grid import Grid
from sfumato.tables.schema import Schema

__all__ = ["exactly_on", "free_field", "free_fields", "own_units", "write_moved"]

_MOST_DECIMALS = 9  # of a grid that is counted in whole numbers of the last decimal


def own_units(grid: Grid, mean: float, scale: float, field: Field) -> tuple[float, float] | None:
    """Give centre and scale of a column in its own units; None where it is no plain number.

    ``mean`` and ``scale`` count in places of the grid.
    """
    if field.kind not in (Kind.CONTINUOUS, Kind.INTEGER):
        return None
    if grid.step is None:
        return mean, scale
    return grid.anchor + grid.step * mean, grid.step * scale


def exactly_on(numbers: NDArray[np.float64], grid: tuple[float, float] | None) -> NDArray[np.float64]:
    """Bring numbers to the grid that they lie on up to rounding: their last bits would tell mean and deviation.

    ``grid`` is a place of it and its step; without one the numbers stay as they are.

    Examples
    --------
    >>> exactly_on(np.array([0.29999999999, 7.0000000001]), (0.0, 0.1)).tolist()
    [0.3, 7.0]
    """
    if grid is None:
        return numbers
    anchor, step = grid
    places = np.rint((numbers - anchor) / step)
    decimals = max(decimals_of_step(step), decimals_of_step(anchor))
    if decimals > _MOST_DECIMALS:
        return np.asarray(anchor + places * step)
    scale = 10.0**decimals
    return np.asarray((np.rint(anchor * scale) + places * np.rint(step * scale)) / scale)


def write_moved(
    numbers: NDArray[np.float64], absent: NDArray[np.bool_], field: Field, kind: pa.DataType, gap: Gap = None
) -> pa.Array:
    """Write the moved numbers of a column: as text where it came as text, else as doubles."""
    return write_numbers(numbers, absent, free_field(field), kind if is_text(kind) else pa.float64(), gap)


def free_field(field: Field) -> Field:
    """Give the field of a column whose numbers were moved: continuous, without domain and format."""
    return dataclasses.replace(field, kind=Kind.CONTINUOUS, domain=Domain(), format=None)


def free_fields(schema: Schema, moved: Collection[str]) -> Schema:
    """Free the moved columns of a schema from domains that no longer hold; those of the others stay.

    Examples
    --------
    >>> schema = Schema((Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0, high=120)),))
    >>> free_fields(schema, {"age"})["age"].domain.describe()
    'observed'
    """
    return Schema(tuple(free_field(field) if field.name in moved else field for field in schema))
