"""Strata of a stream: the category that keeps records apart, read off the coordinates of records and of groups.

Records of one category alone are in a group, so the mean of a group has the coordinates of that category, and a state
need not hold it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.records import BlockKind
from sfumato.tables.codec import Codec, EncodedColumn
from sfumato.tables.field import Kind
from sfumato.tables.schema import Schema

__all__ = ["LISTED", "category_places", "check_strata", "strata_of"]

LISTED = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
"""Kinds of columns whose categories are known."""


def check_strata(schema: Schema, strata: str | None) -> None:
    """Refuse a column of strata without categories: what keeps groups apart must be known before it arrives."""
    if strata is None:
        return
    field = schema[strata]
    if field.kind not in LISTED:
        raise OptionError(
            f"column {strata!r} is {field.kind.value}, and strata of a stream are categories; declare it nominal or "
            "ordinal in the schema"
        )


def strata_of(values: NDArray[np.float64], codec: Codec, strata: str | None) -> NDArray[np.int64] | None:
    """Stratum of each record or group with these coordinates; None if groups are not kept apart."""
    if strata is None:
        return None
    return category_places(values, next(column for column in codec.columns if column.field.name == strata))


def category_places(values: NDArray[np.float64], column: EncodedColumn) -> NDArray[np.int64]:
    """Place in its categories of the value that each record with these coordinates has in a column."""
    block = column.blocks[0]
    if column.grid is not None:
        most = len(column.field.domain.categories or ()) if column.field.kind in LISTED else 0
        numbers = column.grid.to_numbers(values[:, block.start] * column.scale + column.mean)
        return np.asarray(np.clip(np.rint(numbers), 0, most - 1), dtype=np.int64)
    if block.kind is BlockKind.CODE:
        return block.places(values)
    return np.asarray(np.argmax(values[:, block.where], axis=1), dtype=np.int64)
