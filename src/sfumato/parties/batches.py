"""Rows and groups in pieces for the engine: few shapes, because each has to be prepared, and little padding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_CELLS", "Batch", "batches", "padded", "padded_choice", "row_blocks"]

MOST_CELLS = 2**20
"""Numbers that go into one call of the engine, about: it needs some thousand bytes for each."""

_FEW_ROWS = 4096
_FEW_CELLS = 2**17  # so little work that a second shape costs more to prepare than padding to the first


def padded(count: int) -> int:
    """Round a size up to one of few: four in each doubling, so at most a quarter more.

    Examples
    --------
    >>> [padded(count) for count in (1, 7, 9, 1000, 1030)]
    [1, 7, 10, 1024, 1280]
    """
    step = max(1, 1 << max(0, (count - 1).bit_length() - 3))
    return -(-count // step) * step


def padded_choice(count: int) -> int:
    """Round the size of a choice up: to a power of two where preparing another size costs more than filling this one.

    Examples
    --------
    >>> [padded_choice(count) for count in (7, 600, 1030, 5000)]
    [8, 1024, 2048, 5120]
    """
    power = 1 << max(0, (count - 1).bit_length())
    return power if power <= _FEW_ROWS else padded(count)


def row_blocks(rows: int, wide: int) -> tuple[int, int]:
    """Split rows so that a block has about `MOST_CELLS` numbers at most; gives how many blocks, and rows of each.

    All blocks are of one size; the last may reach a little beyond the rows.

    Examples
    --------
    >>> row_blocks(100_000, 8), row_blocks(100_000, 100)
    ((1, 100000), (10, 10000))
    """
    blocks = max(1, -(-rows * wide // MOST_CELLS))
    size = -(-rows // blocks)
    return -(-rows // size), size


@dataclass(frozen=True, eq=False)
class Batch:
    """Some groups, brought to one number of rows.

    Parameters
    ----------
    groups : ndarray of shape (c,)
    rows : ndarray of shape (c, s)
        Places of their rows where rows stand group after group; the first of a group stands again where rows lack.
    real : ndarray of shape (c, s)
        Which rows are not such repetitions.
    """

    groups: NDArray[np.int64]
    rows: NDArray[np.int64]
    real: NDArray[np.bool_]


def batches(sizes: NDArray[np.int64], wide: int) -> Iterator[Batch]:
    """Collect groups of about equal size, so that the engine sees few shapes and little padding.

    Parameters
    ----------
    sizes : ndarray of shape (g,)
    wide : int
        Numbers of each row.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    largest = int(sizes.max())
    together = len(sizes) * largest * wide <= _FEW_CELLS
    brought = np.array([largest if together else min(largest, padded(size)) for size in sizes.tolist()])
    for rows in np.unique(brought).tolist():
        same = np.flatnonzero(brought == rows)
        for groups in np.array_split(same, max(1, -(-len(same) * rows * wide // MOST_CELLS))):
            if len(groups):
                place = np.arange(rows)
                real = place < sizes[groups, None]
                yield Batch(groups, starts[groups, None] + np.where(real, place, 0), real)
