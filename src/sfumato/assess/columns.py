"""The columns of two tables side by side, as the measures read them, and keys by which equal rows are found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.tables.codec import Codec
from sfumato.tables.schema import Field, Kind

__all__ = ["Cells", "ColumnPair", "bits_of", "read_cells", "read_pairs", "row_keys"]

_ODD = np.uint64(0x9E37_79B9_7F4A_7C15)
_MIX = np.uint64(0xBF58_476D_1CE4_E5B9)


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """One column of one table: numbers in their own units, or places in the categories, and what is missing."""

    values: NDArray[np.float64]
    absent: NDArray[np.bool_]

    @property
    def present(self) -> NDArray[np.float64]:
        """The values of the cells that are not missing."""
        return self.values[~self.absent]


@dataclass(frozen=True, eq=False, repr=False)
class ColumnPair:
    """One column of the original and of the released table."""

    field: Field
    original: Cells
    released: Cells

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.field.name

    @property
    def is_number(self) -> bool:
        """Whether the values have an order: numbers, dates and ordinal places."""
        return self.field.kind not in (Kind.NOMINAL, Kind.BOOLEAN)

    @property
    def has_missing(self) -> bool:
        """Whether a cell is missing in either table."""
        return bool(self.original.absent.any() or self.released.absent.any())


def read_cells(table: pa.Table, codec: Codec) -> tuple[Cells, ...]:
    """Read the encoded columns of a table; a category that the original does not have counts as missing."""
    cells = []
    for field in codec.schema.encoded:
        if field.kind in (Kind.NOMINAL, Kind.BOOLEAN):
            codes, absent = codec.codes(table, field.name, unseen="mean")
            values = np.where(absent, 0, codes).astype(np.float64)
        else:
            values, absent = codec.numbers(table, field.name, unseen="mean")
        cells.append(Cells(values, absent))
    return tuple(cells)


def read_pairs(original: pa.Table, released: pa.Table, codec: Codec) -> tuple[ColumnPair, ...]:
    """Read the encoded columns of both tables side by side."""
    sides = zip(codec.schema.encoded, read_cells(original, codec), read_cells(released, codec), strict=True)
    return tuple(ColumnPair(field, first, second) for field, first, second in sides)


def bits_of(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Bits of numbers, the two zeros as one.

    Examples
    --------
    >>> bits_of(np.array([0.0, -0.0])).tolist()
    [0, 0]
    """
    return (values + 0.0).view(np.uint64)


def row_keys(columns: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Mix the cells of each row into one number; equal rows have equal keys, and others as good as never.

    Examples
    --------
    >>> keys = row_keys([np.array([1, 1, 2], dtype=np.uint64), np.array([5, 5, 5], dtype=np.uint64)])
    >>> keys[0] == keys[1], keys[0] == keys[2]
    (np.True_, np.False_)
    """
    keys: NDArray[np.uint64] | None = None
    for bits in columns:
        keys = np.zeros(len(bits), dtype=np.uint64) if keys is None else keys
        keys = (keys ^ bits) * _ODD
        keys = (keys ^ (keys >> np.uint64(29))) * _MIX
        keys ^= keys >> np.uint64(32)
    if keys is None:
        raise ValueError("rows without columns have no keys")
    return keys
