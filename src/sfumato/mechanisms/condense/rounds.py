"""Rounds over leaves: neighbouring groups searched together over random trees of their centres, by threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import fixed
from sfumato.mechanisms.condense.leaves import improve_leaves, width_leaves
from sfumato.mechanisms.condense.trees import random_tree

__all__ = ["Grouping", "Team", "collect", "even", "grow_tree", "improved_grouping", "widened_grouping"]

_LEAF_GROUPS = 32  # groups searched together, or more that hold so few records
_FEW_RECORDS = 160
_LEAF_RECORDS = 1024  # and about so many records at the most
_FROZEN = 4096  # a group of more records is left as it is: searching it would cost its square
_TOP = 5  # levels of a tree that are built before its parts are handed to threads
_CHUNKS = 64  # parts of a round that threads take one after the other
_WIDTH_PASSES = 8
_WIDTH_FLOOR = 1e-3  # of the records' own variance: narrower than that no group is worth being


class Grouping(NamedTuple):
    """Records in group order: group g holds ``order[starts[g]:starts[g + 1]]``."""

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    centres: NDArray[np.float64]


class Team:
    """Threads that work through parts; one thread works alone."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def each(self, work: Callable[[int, int], object], cuts: NDArray[np.int64]) -> list[object]:
        """Do the work between each two cuts and give the results in order."""
        parts = [(low, high) for low, high in pairwise(cuts.tolist()) if low < high]
        if self._pool is None:
            return [work(low, high) for low, high in parts]
        return list(self._pool.map(lambda part: work(*part), parts))


def grow_tree(n: int, cut: Callable[[int, int, int, NDArray[np.int64]], int], team: Team) -> NDArray[np.int64]:
    """Build the top of a tree alone and its parts by threads; give where leaves begin, and the end."""
    bounds = np.empty(n + 1, dtype=np.int64)
    tops = cut(0, n, _TOP, bounds)
    top = np.append(bounds[:tops], n)

    def part(low: int, high: int) -> NDArray[np.int64]:
        own = np.empty(high - low + 1, dtype=np.int64)
        return own[: cut(low, high, -1, own)]

    parts = team.each(part, top)
    return np.concatenate([*parts, [n]]).astype(np.int64)


def improved_grouping(
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
    grouping: Grouping,
    passes: int,
    kicks: int,
    tries: int,
    seed: np.uint64,
    team: Team,
) -> Grouping:
    """Search neighbouring groups once, over a fresh random tree of their centres; never raises the sum of squares.

    By ``passes`` of moves or, where there are ``kicks`` for each leaf, by these, with so many tries for each group.
    """
    values, levels = fixed(values, np.float64), fixed(levels, np.int64)
    lowest = int(levels.min())

    def search(first: int, last: int, tree: _Tree, made: _Made) -> None:
        improve_leaves(
            values, levels, grouping.order, grouping.starts, tree.group_order, tree.bounds, tree.places, first, last,
            passes, kicks, tries, lowest, seed, made.order, made.sizes, made.counts, made.centres, made.gains,
        )  # fmt: skip

    return _over_leaves(values, grouping, seed, team, search)


def widened_grouping(
    values: NDArray[np.float64], levels: NDArray[np.int64], grouping: Grouping, seed: np.uint64, team: Team
) -> Grouping:
    """Search neighbouring groups once for groups of different width, over a fresh random tree of their centres.

    Records are searched as seen from the first of them. Equal records then lie at exactly 0, so do their means, and no
    group of them looks narrower than another because its mean was rounded otherwise.
    """
    origin = values[0]
    seen, levels = fixed(values - origin, np.float64), fixed(levels, np.int64)
    grouping = grouping._replace(centres=grouping.centres - origin)
    lowest = int(levels.min())
    floor = max(_WIDTH_FLOOR * float(seen.var(axis=0).sum()), np.finfo(np.float64).tiny)

    def search(first: int, last: int, tree: _Tree, made: _Made) -> None:
        width_leaves(
            seen, levels, grouping.order, grouping.starts, tree.group_order, tree.bounds, tree.places, first, last,
            _WIDTH_PASSES, lowest, floor, made.order, made.sizes, made.counts, made.centres,
        )  # fmt: skip

    widened = _over_leaves(seen, grouping, seed, team, search)
    return widened._replace(centres=widened.centres + origin)


class _Tree(NamedTuple):
    """Leaf l holds the groups ``group_order[bounds[l]:bounds[l + 1]]`` and writes its records from ``places[l]`` on."""

    group_order: NDArray[np.int64]
    bounds: NDArray[np.int64]
    places: NDArray[np.int64]


class _Made(NamedTuple):
    """What a round over leaves fills in."""

    order: NDArray[np.int64]
    sizes: NDArray[np.int64]
    counts: NDArray[np.int64]
    centres: NDArray[np.float64]
    gains: NDArray[np.float64]


def _over_leaves(
    values: NDArray[np.float64],
    grouping: Grouping,
    seed: np.uint64,
    team: Team,
    search: Callable[[int, int, _Tree, _Made], None],
) -> Grouping:
    """Cut the centres of groups into leaves by a random tree and search each leaf."""
    n, d = values.shape
    weight = np.diff(grouping.starts)
    most_groups = max(_LEAF_GROUPS, _FEW_RECORDS * len(weight) // n)
    small = np.flatnonzero(weight <= _FROZEN)
    frozen = np.flatnonzero(weight > _FROZEN)
    group_order, key = small.copy(), np.empty(len(weight))

    def cut(low: int, high: int, depth: int, bounds: NDArray[np.int64]) -> int:
        return random_tree(
            grouping.centres, weight, most_groups, _LEAF_RECORDS, seed, group_order, key, low, high, depth, bounds
        )

    bounds = grow_tree(len(small), cut, team) if len(small) else np.zeros(1, dtype=np.int64)
    places = np.concatenate([[0], np.cumsum(weight[group_order])])[bounds]
    tree = _Tree(group_order, bounds, places)
    leaves = len(bounds) - 1
    made = _Made(
        np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.zeros(leaves, dtype=np.int64), np.empty((n, d)),
        np.zeros(leaves),
    )  # fmt: skip
    team.each(lambda first, last: search(first, last, tree, made), even(leaves))
    end, counts = int(places[-1]), made.counts
    for group in frozen:
        rows = grouping.order[grouping.starts[group] : grouping.starts[group + 1]]
        made.order[end : end + len(rows)] = rows
        made.sizes[end], made.centres[end] = len(rows), grouping.centres[group]
        places, counts = np.append(places, end + len(rows)), np.append(counts, 1)
        end += len(rows)
    return collect(made.order, places, made.sizes, counts, made.centres)


def even(parts: int) -> NDArray[np.int64]:
    """Cut so many parts into the portions that threads take."""
    return np.unique(np.linspace(0, parts, min(parts, _CHUNKS) + 1).astype(np.int64))


def collect(
    order: NDArray[np.int64],
    places: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    centres: NDArray[np.float64],
) -> Grouping:
    """Gather the groups that leaves left behind at their places."""
    skipped = np.cumsum(counts) - counts
    held = np.repeat(places[:-1] - skipped, counts) + np.arange(counts.sum())
    return Grouping(order, np.concatenate([[0], np.cumsum(sizes[held])]), centres[held])
