"""Working through leaves: records are copied in, grouped or improved, and written back in group order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import compiled, inner
from sfumato.mechanisms.condense.leaf import Leaf, measure, refresh, write_gaps
from sfumato.mechanisms.condense.search import descend, fit_widths, kick
from sfumato.mechanisms.condense.trees import start_groups

__all__ = ["SPARE", "improve_leaves", "start_leaves", "width_leaves"]

SPARE = 8
"""Free slots of a leaf, for groups that are split."""

_KICKED = 2048  # records of a leaf, above which the distances of all pairs would take more than 32 MB


@compiled
def start_leaves(
    values: NDArray[np.float64],
    level: NDArray[np.int64],
    order: NDArray[np.int64],
    bounds: NDArray[np.int64],
    first: int,
    last: int,
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    centres: NDArray[np.float64],
) -> None:
    """Group the records of leaves ``first`` to ``last``: leaf l holds ``order[bounds[l]:bounds[l + 1]]``.

    Puts each leaf's records in group order in place; sizes and centres of its groups stand from ``bounds[l]`` on, and
    their number in ``counts[l]``.
    """
    d = values.shape[1]
    for leaf in range(first, last):
        low, n = bounds[leaf], bounds[leaf + 1] - bounds[leaf]
        local, own_level = np.empty((n, d)), np.empty(n, dtype=np.int64)
        rows, label = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        for i in range(n):
            rows[i] = order[low + i]
            own_level[i] = level[rows[i]]
            for t in range(d):
                local[i, t] = values[rows[i], t]
        groups = start_groups(local, own_level, label)
        counts[leaf] = _write_back(local, label, rows, groups, low, order, sizes, centres)


@compiled
def improve_leaves(
    values: NDArray[np.float64],
    level: NDArray[np.int64],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    group_order: NDArray[np.int64],
    bounds: NDArray[np.int64],
    places: NDArray[np.int64],
    first: int,
    last: int,
    passes: int,
    kicks: int,
    tries: int,
    lowest: int,
    seed: np.uint64,
    out_order: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    centres: NDArray[np.float64],
    gains: NDArray[np.float64],
) -> None:
    """Search leaves ``first`` to ``last``: leaf l holds the groups ``group_order[bounds[l]:bounds[l + 1]]``.

    The records of leaf l are written in group order from ``places[l]`` on, and so are sizes and centres of its groups.
    Without kicks there are so many passes of moves. With kicks moves go on until they settle, and a leaf is kicked so
    often at the most, each group with so many tries; a leaf of very many records is not kicked.
    """
    d = values.shape[1]
    state = np.empty(1, dtype=np.uint64)
    for leaf in range(first, last):
        low, n = places[leaf], places[leaf + 1] - places[leaf]
        groups = bounds[leaf + 1] - bounds[leaf]
        slots = groups + SPARE
        rows = np.empty(n, dtype=np.int64)
        members, target = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        key, row = np.empty(n), np.empty(slots)
        kicked = kicks > 0 and n <= _KICKED
        work = _empty_leaf(n, d, slots, n if kicked else 0)
        _fill(values, level, order, starts, group_order, bounds[leaf], groups, rows, work)
        if kicked:
            state[0] = seed ^ np.uint64(low)
            gains[leaf] = kick(work, kicks, tries, lowest, state, members, target, key, row)
        else:
            gains[leaf] = descend(work, passes, lowest, members, target, key, row)
        counts[leaf] = _write_back(work.values, work.label, rows, slots, low, out_order, sizes, centres)


@compiled
def width_leaves(
    values: NDArray[np.float64],
    level: NDArray[np.int64],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    group_order: NDArray[np.int64],
    bounds: NDArray[np.int64],
    places: NDArray[np.int64],
    first: int,
    last: int,
    passes: int,
    lowest: int,
    floor: float,
    out_order: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    centres: NDArray[np.float64],
) -> None:
    """Search leaves ``first`` to ``last`` for groups of different width; arguments as of `improve_leaves`."""
    for leaf in range(first, last):
        low, n = places[leaf], places[leaf + 1] - places[leaf]
        groups = bounds[leaf + 1] - bounds[leaf]
        rows = np.empty(n, dtype=np.int64)
        work = _empty_leaf(n, values.shape[1], groups, 0)
        _fill(values, level, order, starts, group_order, bounds[leaf], groups, rows, work)
        fit_widths(work, passes, lowest, floor)
        counts[leaf] = _write_back(work.values, work.label, rows, groups, low, out_order, sizes, centres)


@inner
def _empty_leaf(n: int, d: int, slots: int, paired: int) -> Leaf:
    """Room for a leaf, with that for the distances of ``paired`` records to each other."""
    return Leaf(
        np.empty((n, d)),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n),
        np.empty((slots, d)),
        np.empty((slots, n)),
        np.empty(slots, dtype=np.int64),
        np.empty(slots, dtype=np.int64),
        np.empty((paired, paired)),
        np.ones(1, dtype=np.int64),
        np.ones(slots, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.zeros(slots, dtype=np.int64),
    )


@inner
def _fill(
    values: NDArray[np.float64],
    level: NDArray[np.int64],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    group_order: NDArray[np.int64],
    first_group: int,
    groups: int,
    rows: NDArray[np.int64],
    work: Leaf,
) -> None:
    """Copy the records of some groups into a leaf and measure their distances."""
    d = values.shape[1]
    for group in range(work.size.shape[0]):
        work.size[group] = 0
        work.bar[group] = 0
        for t in range(d):
            work.centre[group, t] = 0.0
        for place in range(work.label.shape[0]):
            work.distance[group, place] = np.inf
    i = 0
    for group in range(groups):
        held = group_order[first_group + group]
        first, last = starts[held], starts[held + 1]
        for place in range(first, last):
            rows[i] = order[place]
            work.label[i] = group
            work.level[i] = level[rows[i]]
            work.bar[group] = max(work.bar[group], work.level[i])
            for t in range(d):
                work.values[i, t] = values[rows[i], t]
                work.centre[group, t] += values[rows[i], t] / (last - first)
            i += 1
        work.size[group] = last - first
    if work.gaps.shape[0] > 0:
        write_gaps(work)
    for group in range(groups):
        if work.gaps.shape[0] > 0:
            refresh(work, group)
        else:
            measure(work, group)


@inner
def _write_back(
    local: NDArray[np.float64],
    label: NDArray[np.int64],
    rows: NDArray[np.int64],
    slots: int,
    low: int,
    order: NDArray[np.int64],
    sizes: NDArray[np.int64],
    centres: NDArray[np.float64],
) -> int:
    """Write a leaf's records in group order, and sizes and centres of the groups that hold any."""
    n, d = local.shape
    size, spot = np.empty(slots, dtype=np.int64), np.empty(slots, dtype=np.int64)
    number = np.empty(slots, dtype=np.int64)
    for group in range(slots):
        size[group] = 0
    for i in range(n):
        size[label[i]] += 1
    made, place = 0, low
    for group in range(slots):
        spot[group] = place
        number[group] = low + made
        place += size[group]
        if size[group] > 0:
            sizes[low + made] = size[group]
            for t in range(d):
                centres[low + made, t] = 0.0
            made += 1
    for i in range(n):
        group = label[i]
        order[spot[group]] = rows[i]
        spot[group] += 1
        for t in range(d):
            centres[number[group], t] += local[i, t] / size[group]
    return made
