"""A leaf: a handful of neighbouring groups with their records, and what the moves of a search know of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import inner, whole

__all__ = ["Leaf", "highest_but", "mark", "measure", "refresh", "squared_gap", "write_gaps"]


class Leaf(NamedTuple):
    """The records of a leaf and the groups they are in; slots of size 0 are free.

    ``own`` is each record's squared distance to its own centre, ``distance[g, i]`` that of record i to centre g, and
    ``bar`` the highest level inside a group. ``gaps[i, j]`` is the squared distance of two records: where it was
    written all else follows from it, whatever the number of columns, and centres are not kept; where it is empty
    distances follow from values and centres.

    Time is counted in changes of groups, by ``clock``. ``changed[g]`` is when group g last changed, ``looked[i]`` when
    the moves of record i were last looked at, ``tried[g]`` when group g was last tried to be split: what has not
    changed since need not be looked at again.
    """

    values: NDArray[np.float64]
    level: NDArray[np.int64]
    label: NDArray[np.int64]
    own: NDArray[np.float64]
    centre: NDArray[np.float64]
    distance: NDArray[np.float64]
    size: NDArray[np.int64]
    bar: NDArray[np.int64]
    gaps: NDArray[np.float64]
    clock: NDArray[np.int64]
    changed: NDArray[np.int64]
    looked: NDArray[np.int64]
    tried: NDArray[np.int64]


@inner
def mark(leaf: Leaf, group: int) -> None:
    """Note that a group has changed."""
    leaf.clock[0] += 1
    leaf.changed[group] = leaf.clock[0]


@inner
def squared_gap(leaf: Leaf, i: int, j: int) -> float:
    """Squared distance of two records."""
    if leaf.gaps.shape[0] > 0:
        return float(leaf.gaps[i, j])
    apart = 0.0
    for t in range(leaf.values.shape[1]):
        gap = leaf.values[i, t] - leaf.values[j, t]
        apart += gap * gap
    return apart


@inner
def write_gaps(leaf: Leaf) -> None:
    """Write the squared distances of all pairs of records; column by column, so that processors can do many at once."""
    n, d = leaf.values.shape
    across = np.empty((d, n))
    for i in range(n):
        for t in range(d):
            across[t, i] = leaf.values[i, t]
    for i in range(n):
        for j in range(i + 1):
            leaf.gaps[i, j] = 0.0
        for t in range(d):
            x = across[t, i]
            for j in range(i):
                gap = x - across[t, j]
                leaf.gaps[i, j] += gap * gap
        for j in range(i):
            leaf.gaps[j, i] = leaf.gaps[i, j]


@inner
def measure(leaf: Leaf, group: int) -> None:
    """Bring the distances to a centre, and those of its own records, up to date."""
    for i in range(leaf.values.shape[0]):
        total = 0.0
        for t in range(leaf.values.shape[1]):
            gap = leaf.values[i, t] - leaf.centre[group, t]
            total += gap * gap
        leaf.distance[group, i] = total
        if leaf.label[i] == group:
            leaf.own[i] = total


@inner
def refresh(leaf: Leaf, group: int) -> None:
    """Compute a group anew from its labels; an empty one lies infinitely far."""
    n, d = leaf.values.shape
    size, bar = whole(0), 0
    for i in range(n):
        if leaf.label[i] == group:
            size += 1
            bar = max(bar, leaf.level[i])
    leaf.size[group] = size
    leaf.bar[group] = bar
    if size == 0:
        for i in range(n):
            leaf.distance[group, i] = np.inf
        return
    if leaf.gaps.shape[0] > 0:
        _measure_by_gaps(leaf, group, size)
        return
    for t in range(d):
        leaf.centre[group, t] = 0.0
    for i in range(n):
        if leaf.label[i] == group:
            for t in range(d):
                leaf.centre[group, t] += leaf.values[i, t]
    for t in range(d):
        leaf.centre[group, t] /= size
    measure(leaf, group)


@inner
def _measure_by_gaps(leaf: Leaf, group: int, size: int) -> None:
    """Distances to a centre: the mean squared distance to its records, less half of that among them."""
    n = leaf.label.shape[0]
    for i in range(n):
        leaf.distance[group, i] = 0.0
    for j in range(n):
        if leaf.label[j] == group:
            for i in range(n):
                leaf.distance[group, i] += leaf.gaps[j, i]
    among = 0.0
    for j in range(n):
        if leaf.label[j] == group:
            among += leaf.distance[group, j]
    among /= 2.0 * size * size
    for i in range(n):
        leaf.distance[group, i] = max(leaf.distance[group, i] / size - among, 0.0)
        if leaf.label[i] == group:
            leaf.own[i] = leaf.distance[group, i]


@inner
def highest_but(leaf: Leaf, group: int, record: int) -> int:
    """Highest level in a group without one of its records."""
    bar = 0
    for i in range(leaf.label.shape[0]):
        if i != record and leaf.label[i] == group:
            bar = max(bar, leaf.level[i])
    return bar
