"""Compact grouping: groups of lower sum of squares than the paper's, in time that grows almost as the table.

A principal-axis tree cuts the records into leaves, each leaf is grouped from its extremes inwards, and then rounds of
local search improve neighbouring groups over fresh random trees of their centres. Leaves are disjoint and their
randomness hangs on their place, so the partition is the same for any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import fixed
from sfumato.condense.leaves import improve_leaves, start_leaves
from sfumato.condense.trees import principal_tree, random_tree
from sfumato.progress import tell

__all__ = ["EFFORTS", "Effort", "Grouping", "Team", "compact_groups", "first_grouping", "improved_grouping"]

_START_RECORDS = 128  # records of a leaf of the start, or 24 times the level
_LEAF_GROUPS = 32  # groups searched together, or more that hold so few records
_FEW_RECORDS = 160
_LEAF_RECORDS = 1024  # and about so many records at the most
_FROZEN = 4096  # a group of more records is left as it is: searching it would cost its square
_TOP = 5  # levels of a tree that are built before its parts are handed to threads
_CHUNKS = 64  # parts of a round that threads take one after the other
_HIGH = 2.0  # times the median: from there on a level is much higher than the others
_ALONE = 20_000  # records below which threads cost more than they give


@dataclass(frozen=True)
class Effort:
    """How long to search.

    ``rounds`` of ``passes`` each, and ``more`` rounds for every doubling of the table beyond 100,000 records, so that
    the result stays as good. ``kicks`` is how many disturbances a table of 1,000 records affords in each leaf and
    round; one of n affords 1,000/n as many.
    """

    rounds: int
    more: int
    passes: int
    kicks: int


EFFORTS = {
    "fast": Effort(rounds=3, more=0, passes=1, kicks=0),
    "default": Effort(rounds=8, more=1, passes=2, kicks=20),
    "thorough": Effort(rounds=24, more=4, passes=2, kicks=200),
}


class Grouping(NamedTuple):
    """Records in group order: group g holds ``order[starts[g]:starts[g + 1]]``."""

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    centres: NDArray[np.float64]


def compact_groups(
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    effort: str = "default",
    threads: int | None = None,
) -> list[NDArray[np.int64]]:
    """Group records compactly, each group at least as large as the highest level inside it.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    levels : ndarray of shape (n,)
        Privacy level of each record; none above n.
    rng : numpy.random.Generator
    effort : {"fast", "default", "thorough"}
    threads : int, optional
        By default as many as the machine lends; the partition does not depend on it.

    Returns
    -------
    list of ndarray
        The groups as rows of values.
    """
    values, levels = fixed(values, np.float64), fixed(levels, np.int64)
    plan = EFFORTS[effort]
    n = len(values)
    seeds = rng.integers(2**63, size=64, dtype=np.uint64)
    rounds = plan.rounds + plan.more * max(0, round(np.log2(n / 100_000.0)))
    kicks = plan.kicks * 1000 // max(n, 100)
    workers = _lent() if threads is None else threads
    with Team(workers if n >= _ALONE else 1) as team:
        grouping = first_grouping(values, levels, team)
        for done in range(rounds):
            tell("grouping", (1 + done) / (1 + rounds))
            seed = seeds[done % len(seeds)] + np.uint64(done)
            grouping = improved_grouping(values, levels, grouping, plan.passes, kicks, seed, team)
    tell("grouping", 1.0)
    return np.split(grouping.order, grouping.starts[1:-1])


def _lent() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


def _grow_tree(n: int, cut: Callable[[int, int, int, NDArray[np.int64]], int], team: Team) -> NDArray[np.int64]:
    """Build the top of a tree alone and its parts by threads; give where leaves begin, and the end."""
    bounds = np.empty(n + 1, dtype=np.int64)
    tops = cut(0, n, _TOP, bounds)
    top = np.append(bounds[:tops], n)

    def part(low: int, high: int) -> NDArray[np.int64]:
        own = np.empty(high - low + 1, dtype=np.int64)
        return own[: cut(low, high, -1, own)]

    parts = team.each(part, top)
    return np.concatenate([*parts, [n]]).astype(np.int64)


def first_grouping(values: NDArray[np.float64], levels: NDArray[np.int64], team: Team) -> Grouping:
    """Make the first groups: all records together or, where few levels are much higher, those apart, as is better.

    A record of a very high level makes its whole neighbourhood one group. Where such records are scattered it may cost
    less to put them into few groups of their own.
    """
    together = _start(values, levels, team)
    apart = levels > _HIGH * np.median(levels)
    if not apart.any():
        return together
    high, low = np.flatnonzero(apart), np.flatnonzero(~apart)
    high, low = _filled(values, levels, high, low)
    if len(low) < levels[low].max(initial=1):
        return together
    parts = [first_grouping(values[rows], levels[rows], team) for rows in (high, low)]
    separate = Grouping(
        np.concatenate([high[parts[0].order], low[parts[1].order]]),
        np.concatenate([parts[0].starts, parts[1].starts[1:] + len(high)]),
        np.concatenate([parts[0].centres, parts[1].centres]),
    )
    return min(together, separate, key=lambda grouping: _ssq(values, grouping))


def _filled(
    values: NDArray[np.float64], levels: NDArray[np.int64], high: NDArray[np.int64], low: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bring records of high levels up to the highest of them, with those nearest to what they then make together."""
    lacking = int(levels[high].max()) - len(high)
    if lacking <= 0:
        return high, low
    centre = values[high].mean(axis=0)
    for _ in range(4):
        gaps = ((values[low] - centre) ** 2).sum(axis=1)
        nearest = np.argsort(gaps, kind="stable")[:lacking]
        centre = values[np.append(high, low[nearest])].mean(axis=0)
    return np.append(high, low[nearest]), np.delete(low, nearest)


def _ssq(values: NDArray[np.float64], grouping: Grouping) -> float:
    """Sum the squared distances of all records to the centres of their groups."""
    own = np.repeat(grouping.centres, np.diff(grouping.starts), axis=0)
    return float(((values[grouping.order] - own) ** 2).sum())


def _start(values: NDArray[np.float64], levels: NDArray[np.int64], team: Team) -> Grouping:
    """Cut records into leaves along principal axes and group each leaf from its extremes inwards."""
    n, d = values.shape
    values, levels = fixed(values, np.float64), fixed(levels, np.int64)
    typical = int(np.median(levels))
    unit = typical if (levels == typical).all() else 1
    order, key = np.arange(n), np.empty(n)

    def cut(low: int, high: int, depth: int, bounds: NDArray[np.int64]) -> int:
        most = max(_START_RECORDS, 24 * typical)
        return principal_tree(values, levels, most, unit, order, key, low, high, depth, bounds)

    bounds = _grow_tree(n, cut, team)
    sizes, centres = np.empty(n, dtype=np.int64), np.empty((n, d))
    counts = np.zeros(len(bounds) - 1, dtype=np.int64)

    def group(first: int, last: int) -> None:
        start_leaves(values, levels, order, bounds, first, last, sizes, counts, centres)

    team.each(group, _even(len(counts)))
    return _collect(order, bounds, sizes, counts, centres)


def improved_grouping(
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
    grouping: Grouping,
    passes: int,
    kicks: int,
    seed: np.uint64,
    team: Team,
) -> Grouping:
    """Search neighbouring groups once, over a fresh random tree of their centres."""
    n, d = values.shape
    values, levels = fixed(values, np.float64), fixed(levels, np.int64)
    weight = np.diff(grouping.starts)
    most_groups = max(_LEAF_GROUPS, _FEW_RECORDS * len(weight) // n)
    small = np.flatnonzero(weight <= _FROZEN)
    frozen = np.flatnonzero(weight > _FROZEN)
    group_order, key = small.copy(), np.empty(len(weight))

    def cut(low: int, high: int, depth: int, bounds: NDArray[np.int64]) -> int:
        return random_tree(
            grouping.centres, weight, most_groups, _LEAF_RECORDS, seed, group_order, key, low, high, depth, bounds
        )

    bounds = _grow_tree(len(small), cut, team) if len(small) else np.zeros(1, dtype=np.int64)
    places = np.concatenate([[0], np.cumsum(weight[group_order])])[bounds]
    order, sizes, centres = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty((n, d))
    counts, gains = np.zeros(len(bounds) - 1, dtype=np.int64), np.zeros(len(bounds) - 1)
    lowest = int(levels.min())

    def search(first: int, last: int) -> None:
        improve_leaves(
            values, levels, grouping.order, grouping.starts, group_order, bounds, places, first, last, passes, kicks,
            lowest, seed, order, sizes, counts, centres, gains,
        )  # fmt: skip

    team.each(search, _even(len(counts)))
    end = int(places[-1])
    for group in frozen:
        rows = grouping.order[grouping.starts[group] : grouping.starts[group + 1]]
        order[end : end + len(rows)] = rows
        sizes[end], centres[end] = len(rows), grouping.centres[group]
        places, counts = np.append(places, end + len(rows)), np.append(counts, 1)
        end += len(rows)
    return _collect(order, places, sizes, counts, centres)


def _even(parts: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, parts, min(parts, _CHUNKS) + 1).astype(np.int64))


def _collect(
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
