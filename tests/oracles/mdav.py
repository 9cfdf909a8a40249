"""MDAV transcribed from its definition (Domingo-Ferrer and Torra 2005, sec. 3), in plain NumPy.

Slow on purpose: records are named by their rows, and every mean and every distance is computed anew.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Group = frozenset[int]


def mdav(x: Floats, k: int) -> list[Group]:
    """Maximum distance to average vector."""
    left = set(range(len(x)))
    groups: list[Group] = []
    while len(left) >= 3 * k:
        r = most_distant(x, left, average(x, left))
        s = most_distant(x, left, x[r])
        for seed in (r, s):
            group = nearest(x, left, x[seed], k)
            groups.append(group)
            left -= group
    if len(left) >= 2 * k:
        group = nearest(x, left, x[most_distant(x, left, average(x, left))], k)
        groups.append(group)
        left -= group
    if left:
        groups.append(frozenset(left))
    return groups


def average(x: Floats, rows: set[int]) -> Floats:
    """Give the average record."""
    return np.asarray(x[sorted(rows)].mean(axis=0))


def most_distant(x: Floats, rows: set[int], point: Floats) -> int:
    """Give the record most distant from a point."""
    return max(sorted(rows), key=lambda row: float(((x[row] - point) ** 2).sum()))


def nearest(x: Floats, rows: set[int], point: Floats, k: int) -> Group:
    """Give the k records nearest to a point, which is one of them."""
    return frozenset(sorted(rows, key=lambda row: (float(((x[row] - point) ** 2).sum()), row))[:k])
