"""Groups that a release copies: what does not vary inside a group is drawn as it is."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sfumato.records import BlockKind, Layout

__all__ = ["columns_of_blocks", "count_alike"]

Column = tuple[NDArray[np.generic], bool]


def columns_of_blocks(values: NDArray[np.float64], layout: Layout) -> list[Column]:
    """Coordinates of each column, and whether it is one of numbers."""
    columns: dict[str, tuple[list[NDArray[np.float64]], bool]] = {}
    for block in layout:
        parts, number = columns.get(block.column, ([], False))
        columns[block.column] = ([*parts, values[:, block.where]], number or block.kind is BlockKind.NUMBER)
    return [(np.hstack(parts), number) for parts, number in columns.values()]


def count_alike(columns: Iterable[Column], labels: NDArray[np.int64]) -> int:
    """Rows in groups that vary in no column of numbers, and at most in one other column.

    A group's mean is then its record; where one column of categories varies, its counts are kept, so that the rows of
    the group are its records in another order.

    Examples
    --------
    >>> age, town = np.array([30.0, 30.0, 30.0, 41.0]), np.array(["Bari", "Oslo", "Oslo", "Oslo"])
    >>> count_alike([(age, True), (town, False)], np.array([0, 0, 1, 1]))
    2
    """
    if not len(labels):
        return 0
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    moving, other = np.zeros(len(first), dtype=np.bool_), np.zeros(len(first), dtype=np.int64)
    for cells, number in columns:
        differs = cells != cells[first[group]]
        varies = np.bincount(group[differs.reshape(len(group), -1).any(axis=1)], minlength=len(first)) > 0
        if number:
            moving |= varies
        else:
            other += varies
    return int((~moving & (other <= 1))[group].sum())
