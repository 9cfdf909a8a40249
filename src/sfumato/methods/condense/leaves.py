"""Local search in leaves of neighbouring groups: records are copied in, improved by moves and kicks, and written back.

A kick dissolves one group or two whatever it costs. It is judged only after the moves have settled, against groups
that had settled too: compared with groups that could still improve, a kick that only did harm would look like a gain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import compiled, inner, whole
from sfumato.methods.condense.moves import (
    NONE,
    RELOCATE,
    SWAP,
    Leaf,
    best_move,
    dissolve,
    highest_but,
    measure,
    refresh,
    relocate,
    split,
    swap,
    write_gaps,
)
from sfumato.methods.condense.trees import below, squared_gap, start_groups

__all__ = [
    "GroupedRecords",
    "LeafResults",
    "Leaves",
    "Search",
    "empty_results",
    "improve_leaves",
    "start_leaves",
    "width_leaves",
]

_SPARE = 8
"""Free slots of a leaf, for groups that are split."""

_KICKED = 2048  # records of a leaf, above which the distances of all pairs would take more than 32 MB


class GroupedRecords(NamedTuple):
    """Records and their levels, in group order: group g holds ``order[starts[g]:starts[g + 1]]``."""

    values: Floats
    level: Ints
    order: Ints
    starts: Ints


class Leaves(NamedTuple):
    """Leaf l holds the groups ``group_order[bounds[l]:bounds[l + 1]]`` and writes its records from ``places[l]`` on."""

    group_order: Ints
    bounds: Ints
    places: Ints


class LeafResults(NamedTuple):
    """What leaves fill in: records in group order, and from the place of a leaf on sizes and centres of its groups.

    ``counts`` are the groups of each leaf, ``gains`` by how much its sum of squares fell.
    """

    order: Ints
    sizes: Ints
    centres: Floats
    counts: Ints
    gains: Floats


def empty_results(leaves: int, records: int, d: int) -> LeafResults:
    """Room for what leaves fill in."""
    order, sizes = np.empty(records, dtype=np.int64), np.empty(records, dtype=np.int64)
    return LeafResults(order, sizes, np.empty((records, d)), np.zeros(leaves, dtype=np.int64), np.zeros(leaves))


class Search(NamedTuple):
    """How leaves are searched: ``passes`` of moves or, if there are ``kicks`` for a leaf, ``tries`` for each group.

    ``lowest`` is the lowest level of all records.
    """

    passes: int
    kicks: int
    tries: int
    lowest: int
    seed: np.uint64


class _Scratch(NamedTuple):
    """Memory for the moves of a leaf."""

    members: Ints
    target: Ints
    key: Floats
    row: Floats


@compiled
def start_leaves(values: Floats, level: Ints, bounds: Ints, first: int, last: int, made: LeafResults) -> None:
    """Group the records of leaves ``first`` to ``last``: leaf l holds ``made.order[bounds[l]:bounds[l + 1]]``.

    Puts each leaf's records in group order in place.
    """
    d = values.shape[1]
    for leaf in range(first, last):
        low, n = bounds[leaf], bounds[leaf + 1] - bounds[leaf]
        local, own_level = np.empty((n, d)), np.empty(n, dtype=np.int64)
        rows, label = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        for i in range(n):
            rows[i] = made.order[low + i]
            own_level[i] = level[rows[i]]
            for t in range(d):
                local[i, t] = values[rows[i], t]
        groups = start_groups(local, own_level, label)
        made.counts[leaf] = _write_back(local, label, rows, groups, low, made)


@compiled
def improve_leaves(
    records: GroupedRecords, leaves: Leaves, first: int, last: int, search: Search, made: LeafResults
) -> None:
    """Search leaves ``first`` to ``last``.

    Without kicks there are passes of moves. With kicks moves go on until they settle; a leaf is kicked so often at
    most, and a very large leaf is not kicked.
    """
    state = np.empty(1, dtype=np.uint64)
    for leaf in range(first, last):
        n, groups = leaves.places[leaf + 1] - leaves.places[leaf], leaves.bounds[leaf + 1] - leaves.bounds[leaf]
        slots, kicked = groups + _SPARE, search.kicks > 0 and n <= _KICKED
        rows = np.empty(n, dtype=np.int64)
        scratch = _Scratch(np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n), np.empty(slots))
        work = _empty_leaf(n, records.values.shape[1], slots, n if kicked else 0)
        _fill(records, leaves, leaf, rows, work)
        if kicked:
            state[0] = search.seed ^ np.uint64(leaves.places[leaf])
            made.gains[leaf] = kick(work, search, state, scratch)
        else:
            made.gains[leaf] = descend(work, search.passes, search.lowest, scratch)
        made.counts[leaf] = _write_back(work.values, work.label, rows, slots, leaves.places[leaf], made)


@compiled
def width_leaves(
    records: GroupedRecords, leaves: Leaves, first: int, last: int, search: Search, floor: float, made: LeafResults
) -> None:
    """Search leaves ``first`` to ``last`` for groups of different width, by passes of moves."""
    for leaf in range(first, last):
        n, groups = leaves.places[leaf + 1] - leaves.places[leaf], leaves.bounds[leaf + 1] - leaves.bounds[leaf]
        rows = np.empty(n, dtype=np.int64)
        work = _empty_leaf(n, records.values.shape[1], groups, 0)
        _fill(records, leaves, leaf, rows, work)
        _fit_widths(work, search.passes, search.lowest, floor)
        made.counts[leaf] = _write_back(work.values, work.label, rows, groups, leaves.places[leaf], made)


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
def _fill(records: GroupedRecords, leaves: Leaves, leaf: int, rows: Ints, work: Leaf) -> None:
    """Copy the records of a leaf and measure their distances."""
    d, first_group = records.values.shape[1], leaves.bounds[leaf]
    groups = leaves.bounds[leaf + 1] - first_group
    for group in range(work.size.shape[0]):
        work.size[group] = 0
        work.bar[group] = 0
        for t in range(d):
            work.centre[group, t] = 0.0
        for place in range(work.label.shape[0]):
            work.distance[group, place] = np.inf
    i = 0
    for group in range(groups):
        held = leaves.group_order[first_group + group]
        first, last = records.starts[held], records.starts[held + 1]
        for place in range(first, last):
            rows[i] = records.order[place]
            work.label[i] = group
            work.level[i] = records.level[rows[i]]
            work.bar[group] = max(work.bar[group], work.level[i])
            for t in range(d):
                work.values[i, t] = records.values[rows[i], t]
                work.centre[group, t] += records.values[rows[i], t] / (last - first)
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
def _write_back(local: Floats, label: Ints, rows: Ints, slots: int, low: int, results: LeafResults) -> int:
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
            results.sizes[low + made] = size[group]
            for t in range(d):
                results.centres[low + made, t] = 0.0
            made += 1
    for i in range(n):
        group = label[i]
        results.order[spot[group]] = rows[i]
        spot[group] += 1
        for t in range(d):
            results.centres[number[group], t] += local[i, t] / size[group]
    return made


_SETTLING = 20  # passes before the first kick and after each: nothing counts until it has settled
_WORTH = 1e-10  # a kick must lower the sum of squares by this share, or it may be rounding


class _Checkpoint(NamedTuple):
    """The groups to go back to: labels, and when what was changed and looked at, as in `Leaf`."""

    label: Ints
    changed: Ints
    looked: Ints
    tried: Ints


@inner
def descend(leaf: Leaf, passes: int, lowest: int, scratch: _Scratch) -> float:
    """Take the best move of each record, then dissolve and split groups, until nothing helps or passes are spent.

    Returns by how much the sum of squares fell.
    """
    total = 0.0
    for _ in range(passes):
        gained = 0.0
        for i in range(leaf.label.shape[0]):
            gain, kind, where = best_move(leaf, i, lowest, scratch.row)
            if kind == RELOCATE:
                relocate(leaf, i, where)
            elif kind == SWAP:
                swap(leaf, i, where)
            gained += gain
        for a in range(leaf.size.shape[0]):
            if leaf.size[a] > 0:
                gained += dissolve(leaf, a, 0.0, scratch.members, scratch.target)
        for a in range(leaf.size.shape[0]):
            if leaf.size[a] > 0:
                gained += split(leaf, a, lowest, scratch.members, scratch.key)
        total += gained
        if gained <= 0.0:
            break
    return total


@inner
def kick(leaf: Leaf, search: Search, state: NDArray[np.uint64], scratch: _Scratch) -> float:
    """Settle, then dissolve one group after the other and settle again, keeping what is better.

    The first kick of a group dissolves it alone, further ones also a random one of those that took its records. A group
    that was kicked in vain in all its tries is not kicked again before it has changed, so that a leaf is left once
    kicks no longer help, or after the most kicks that it affords. Returns by how much the sum of squares fell.
    """
    slots, members, target = leaf.size.shape[0], scratch.members, scratch.target
    first = _sum_of_squares(leaf)
    descend(leaf, whole(_SETTLING), search.lowest, scratch)
    best = _sum_of_squares(leaf)
    kept = _Checkpoint(leaf.label.copy(), leaf.changed.copy(), leaf.looked.copy(), leaf.tried.copy())
    in_vain = np.zeros(slots, dtype=np.int64)
    for _ in range(search.kicks):
        group = _next_kicked(leaf, in_vain, search.tries, below(state, slots))
        if group < 0:
            break
        in_vain[group] += 1
        held = leaf.size[group]
        dissolve(leaf, group, -np.inf, members, target)
        if in_vain[group] > 1 and leaf.size[group] == 0:
            dissolve(leaf, target[below(state, held)], -np.inf, members, target)
        descend(leaf, whole(_SETTLING), search.lowest, scratch)
        now = _sum_of_squares(leaf)
        if now < best - _WORTH * best:
            best = now
            _keep(leaf, kept, in_vain)
        else:
            _restore(leaf, kept)
    return first - best


@inner
def _sum_of_squares(leaf: Leaf) -> float:
    total = 0.0
    for i in range(leaf.own.shape[0]):
        total += leaf.own[i]
    return total


@inner
def _next_kicked(leaf: Leaf, in_vain: Ints, tries: int, start: int) -> int:
    """Find the first group from a place on that has tries left; -1 if there is none."""
    slots = leaf.size.shape[0]
    for step in range(slots):
        group = (start + step) % slots
        if leaf.size[group] > 0 and in_vain[group] < tries:
            return int(group)
    return -1


@inner
def _keep(leaf: Leaf, kept: _Checkpoint, in_vain: Ints) -> None:
    """Make the present groups the kept ones; those that differ may be kicked again."""
    for i in range(kept.label.shape[0]):
        if kept.label[i] != leaf.label[i]:
            in_vain[kept.label[i]] = 0
            in_vain[leaf.label[i]] = 0
        kept.label[i] = leaf.label[i]
        kept.looked[i] = leaf.looked[i]
    for group in range(kept.changed.shape[0]):
        kept.changed[group] = leaf.changed[group]
        kept.tried[group] = leaf.tried[group]


@inner
def _restore(leaf: Leaf, kept: _Checkpoint) -> None:
    """Put records back under their earlier labels and compute the groups that differ; times are what they were."""
    touched = np.zeros(leaf.size.shape[0], dtype=np.bool_)
    for i in range(kept.label.shape[0]):
        if leaf.label[i] != kept.label[i]:
            touched[leaf.label[i]] = True
            touched[kept.label[i]] = True
            leaf.label[i] = kept.label[i]
        leaf.looked[i] = kept.looked[i]
    for group in range(touched.shape[0]):
        leaf.changed[group] = kept.changed[group]
        leaf.tried[group] = kept.tried[group]
        if touched[group]:
            refresh(leaf, group)


_LEAST = 1e-9  # a gain in n * log(width) below this may be rounding


@inner
def _cost(inside: float, size: float, floor: float) -> float:
    """Size times log(variance) of a group; the floor keeps twins from being worth any price."""
    return float(size * np.log(max(inside, 0.0) / size + floor))


@inner
def _fit_widths(leaf: Leaf, passes: int, lowest: int, floor: float) -> float:
    """Take the best move of each record until none helps or passes are spent; give by how much the cost fell."""
    slots = leaf.size.shape[0]
    inside, cost = np.empty(slots), np.empty(slots)
    _sum_up(leaf, inside, cost, floor)
    total = 0.0
    for _ in range(passes):
        gained = 0.0
        for i in range(leaf.label.shape[0]):
            gain, kind, where = _best_move(leaf, inside, cost, i, lowest, floor)
            if kind == RELOCATE:
                relocate(leaf, i, where)
            elif kind == SWAP:
                swap(leaf, i, where)
            if kind != NONE:
                _sum_up(leaf, inside, cost, floor)
            gained += gain
        total += gained
        if gained <= 0.0:
            break
    return total


@inner
def _sum_up(leaf: Leaf, inside: Floats, cost: Floats, floor: float) -> None:
    """Sum the squares inside each group, and give the cost of each."""
    for group in range(inside.shape[0]):
        inside[group] = 0.0
    for i in range(leaf.label.shape[0]):
        inside[leaf.label[i]] += leaf.own[i]
    for group in range(inside.shape[0]):
        cost[group] = _cost(inside[group], leaf.size[group], floor) if leaf.size[group] > 0 else 0.0


@inner
def _best_move(leaf: Leaf, inside: Floats, cost: Floats, i: int, lowest: int, floor: float) -> tuple[float, int, int]:
    """Find what lowers the cost most: nothing, another group for record i, or the place of a later record.

    A record that takes the place of another in a group of size n changes its sum of squares by the difference of their
    squared distances to the centre, less |xi-xj|^2 / n, which is at most 2 * (|xi-c|^2 + |xj-c|^2) / n. That, and
    log(y) >= 1 - 1/y, reject most pairs without touching their coordinates or taking a logarithm.
    """
    a = leaf.label[i]
    here, size, level = leaf.own[i], leaf.size[a], leaf.level[i]
    best, kind, target = _LEAST * size, NONE, -1
    free = size > leaf.bar[a]
    if not free and size > lowest and level == leaf.bar[a]:
        free = size > highest_but(leaf, a, i)
    if free and size > 1:
        left = _cost(inside[a] - here * size / (size - 1.0), size - 1.0, floor)
        for b in range(leaf.size.shape[0]):
            other = leaf.size[b]
            if b != a and other > 0 and other + 1 >= level:
                joined = _cost(inside[b] + leaf.distance[b, i] * other / (other + 1.0), other + 1.0, floor)
                gain = cost[a] + cost[b] - left - joined
                if gain > best:
                    best, kind, target = gain, RELOCATE, b
    width = inside[a] + size * floor
    for j in range(i + 1, leaf.label.shape[0]):
        b = leaf.label[j]
        other = leaf.size[b]
        if b == a or other < level or size < leaf.level[j]:
            continue
        one = inside[a] - here + leaf.distance[a, j]
        two = inside[b] - leaf.own[j] + leaf.distance[b, i]
        most = 2.0 * min(here + leaf.distance[a, j], leaf.own[j] + leaf.distance[b, i])
        narrow = max(one - most / size, 0.0) + size * floor
        slim = max(two - most / other, 0.0) + other * floor
        if size * (width / narrow - 1.0) + other * ((inside[b] + other * floor) / slim - 1.0) <= best:
            continue
        apart = squared_gap(leaf.values, i, leaf.values, j)
        after = _cost(one - apart / size, size, floor) + _cost(two - apart / other, other, floor)
        gain = cost[a] + cost[b] - after
        if gain > best:
            best, kind, target = gain, SWAP, j
    return (best if kind != NONE else 0.0), kind, target
