"""Compact grouping: groups of lower sum of squares than the paper's, in time that grows almost as the table.

A principal-axis tree cuts the records into leaves, each leaf is grouped from its extremes inwards, and then rounds of
local search improve neighbouring groups over fresh random trees of their centres, first by moves and then, as far as
the table affords it, by kicks. Every round begins with what the one before it left and never raises the sum of squares,
so kicks can only lower what moves alone have reached. Leaves are disjoint and their
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

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import compiled, fixed
from sfumato.core.progress import tell
from sfumato.methods.condense.leaves import (
    GroupedRecords,
    LeafResults,
    Leaves,
    Search,
    empty_results,
    improve_leaves,
    start_leaves,
    width_leaves,
)
from sfumato.methods.condense.trees import Span, principal_tree, random_tree

__all__ = [
    "EFFORTS",
    "CompactSearch",
    "Grouping",
    "WorkerThreads",
    "collect",
    "compact_groups",
    "even",
    "first_grouping",
    "grow_tree",
    "improved_grouping",
    "in_fewer_columns",
    "widened_grouping",
]

_START_RECORDS = 128  # records of a leaf of the start, or 24 times the level
_HIGH = 2.0  # times the median: from there on a level is much higher than the others
_FOLDED = 2048  # records of a table with more columns, above which its inner products cost more than they save
_FEWEST_KICKS = 2  # in a leaf and round: for less its distances are not worth computing
_WORTH = 1e-4  # share of the sum of squares: after a round of kicks that gains less, groups are shaken
_SHAKEN = 16  # one group in 16 is dissolved to leave a local optimum
_HOPELESS = 0.005  # share above the best: groups that are still there a round after they were shaken do not come back
_ALONE = 20_000  # records below which threads cost more than they give


@dataclass(frozen=True)
class Effort:
    """How long to search.

    ``rounds`` of ``passes`` each, and ``more`` rounds for every doubling of the table beyond 100,000 records, so that
    the result stays as good. Then as many rounds of kicks, or fewer where they no longer gain: ``kicks`` is how many a
    table of 1,000 records affords in each leaf and round, one of n affords 1,000/n as many; ``tries`` is how often a
    group may be kicked in vain, and ``shakes`` how often the search goes on from the best groups with some dissolved.
    """

    rounds: int
    more: int
    passes: int
    kicks: int
    tries: int
    shakes: int


EFFORTS = {
    "fast": Effort(rounds=3, more=0, passes=1, kicks=0, tries=0, shakes=0),
    "default": Effort(rounds=8, more=1, passes=2, kicks=40, tries=3, shakes=2),
    "thorough": Effort(rounds=24, more=4, passes=2, kicks=400, tries=12, shakes=24),
}


@dataclass(frozen=True)
class CompactSearch:
    """What else the search takes into account.

    Parameters
    ----------
    threads : int, optional
        By default as many as the machine lends; the partition does not depend on it.
    widths : bool
        Search on for groups of different width, tight where records are dense, at some cost in the sum of squares:
        better for a miner that asks which of several sets of groups lies nearest.
    among : int
        Records of a table that these are a partition of: the search is as long as it would be for that.
    """

    threads: int | None = None
    widths: bool = False
    among: int = 0


def compact_groups(
    values: Floats,
    levels: Ints,
    rng: np.random.Generator,
    *,
    effort: str = "default",
    search: CompactSearch | None = None,
) -> list[Ints]:
    """Group records compactly, each group at least as large as the highest level inside it.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    levels : ndarray of shape (n,)
        Privacy level of each record; none above n.
    rng : numpy.random.Generator
    effort : {"fast", "default", "thorough"}
    search : CompactSearch, optional

    Returns
    -------
    list of ndarray
        The groups as rows of values.
    """
    values, levels = fixed(values, np.float64), fixed(levels, np.int64)
    plan, search = EFFORTS[effort], search or CompactSearch()
    n, d = values.shape
    seeds = rng.integers(2**63, size=64, dtype=np.uint64)
    doublings = max(0, round(np.log2(max(n, search.among) / 100_000.0)))
    legs = (EFFORTS["default"], plan) if effort == "thorough" else (plan,)  # so it never ends above the default
    workers = _lent() if search.threads is None else search.threads
    with WorkerThreads(workers if n >= _ALONE else 1) as team:
        grouping = first_grouping(values, levels, team)
        if n < d and n <= _FOLDED:
            values = fixed(in_fewer_columns(values), np.float64)
            grouping = grouping._replace(centres=_centres(values, grouping))
        rounds = 0
        for place, leg in enumerate(legs):
            first, rounds = rounds, leg.rounds + leg.more * doublings
            for done in range(first, rounds):
                tell("grouping", (place + (1 + done) / (2 + rounds)) / len(legs))
                seed = seeds[done % len(seeds)] + np.uint64(done)
                grouping = improved_grouping(values, levels, grouping, leg.passes, 0, 0, seed, team)
            kicks = leg.kicks * 1000 // max(n, 100)
            if kicks >= _FEWEST_KICKS:
                grouping = _kicked(values, levels, grouping, leg, kicks, np.roll(seeds, first), team)
        for done in range(rounds if search.widths else 0):
            grouping = widened_grouping(values, levels, grouping, seeds[-1 - done % len(seeds)], team)
    tell("grouping", 1.0)
    return np.split(grouping.order, grouping.starts[1:-1])


def _kicked(
    values: Floats,
    levels: Ints,
    grouping: Grouping,
    plan: Effort,
    kicks: int,
    seeds: NDArray[np.uint64],
    team: WorkerThreads,
) -> Grouping:
    """Search by rounds of kicks for the best grouping, which is never worse than the given one.

    Once a round gains hardly anything, some groups of the best are dissolved and the search goes on from there: where
    all groups are as small as they may be, records can only be exchanged, and few groups less give them room. Shaken
    groups that are far above the best a round later are left: where there is no structure, what was dissolved is lost.
    """
    best, least = grouping, _ssq(values, grouping)
    before, shakes = least, plan.shakes
    for done in range(plan.rounds):
        seed = seeds[-1 - done % len(seeds)] + np.uint64(done)
        grouping = improved_grouping(values, levels, grouping, 0, kicks, plan.tries, seed, team)
        after = _ssq(values, grouping)
        if after < least:
            best, least = grouping, after
        if after > before * (1.0 - _WORTH) or after > least * (1.0 + _HOPELESS):
            if shakes == 0:
                break
            shakes -= 1
            grouping, after = _shaken(values, levels, best, seed), np.inf
        before = after
    return best


def _shaken(values: Floats, levels: Ints, grouping: Grouping, seed: np.uint64) -> Grouping:
    """Dissolve some groups at random: each record goes to the nearest group that stays and meets its level."""
    sizes = np.diff(grouping.starts)
    labels = np.empty(len(values), dtype=np.int64)
    labels[grouping.order] = np.repeat(np.arange(len(sizes)), sizes)
    chosen = np.random.default_rng(seed).permutation(len(sizes))[: max(1, len(sizes) // _SHAKEN)]
    stays = np.delete(np.arange(len(sizes)), chosen)
    for group in chosen.tolist():
        rows = grouping.order[grouping.starts[group] : grouping.starts[group + 1]]
        if len(stays) == 0 or levels[rows].max() > sizes[stays].max() + 1:
            continue  # there is nowhere to go
        for row in rows.tolist():
            gaps = ((grouping.centres[stays] - values[row]) ** 2).sum(axis=1)
            labels[row] = stays[np.argmin(np.where(sizes[stays] + 1 >= levels[row], gaps, np.inf))]
    order = np.argsort(labels, kind="stable")
    starts = np.append(np.flatnonzero(np.diff(labels[order], prepend=-1)), len(values))
    shaken = Grouping(order, starts, np.empty((0, 0)))
    return shaken._replace(centres=_centres(values, shaken))


def _lent() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def first_grouping(values: Floats, levels: Ints, team: WorkerThreads) -> Grouping:
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


def _filled(values: Floats, levels: Ints, high: Ints, low: Ints) -> tuple[Ints, Ints]:
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


def _ssq(values: Floats, grouping: Grouping) -> float:
    """Sum the squared distances of all records to the centres of their groups."""
    own = np.repeat(grouping.centres, np.diff(grouping.starts), axis=0)
    return float(((values[grouping.order] - own) ** 2).sum())


def _centres(values: Floats, grouping: Grouping) -> Floats:
    """Means of the groups."""
    sizes = np.diff(grouping.starts)
    return np.asarray(np.add.reduceat(values[grouping.order], grouping.starts[:-1], axis=0) / sizes[:, None])


def _start(values: Floats, levels: Ints, team: WorkerThreads) -> Grouping:
    """Cut records into leaves along principal axes and group each leaf from its extremes inwards."""
    n, d = values.shape
    values, levels = fixed(values, np.float64), fixed(levels, np.int64)
    typical = int(np.median(levels))
    unit = typical if (levels == typical).all() else 1
    order, key = np.arange(n), np.empty(n)

    def cut(low: int, high: int, depth: int, bounds: Ints) -> int:
        most = max(_START_RECORDS, 24 * typical)
        return principal_tree(values, levels, most, unit, order, key, Span(low, high, depth), bounds)

    bounds = grow_tree(n, cut, team)
    made = empty_results(len(bounds) - 1, n, d)._replace(order=order)
    team.each(lambda first, last: start_leaves(values, levels, bounds, first, last, made), even(len(made.counts)))
    return collect(made, bounds)


_BLOCK = 512  # columns whose inner products are summed at a time


def in_fewer_columns(values: Floats) -> Floats:
    """Find coordinates of records with the distances they had, at most as many columns as there are records.

    Sums are taken in one order whatever the machine, so that the same table gives the same coordinates everywhere.

    Notes
    -----
    Cost O(n^2 d + n^3). Squared distances are exact but for rounding, some 1e-15 n of the largest of them.
    """
    n, d = values.shape
    centre = values.mean(axis=0)
    gram = np.zeros((n, n))
    for first in range(0, d, _BLOCK):
        part = values[:, first : first + _BLOCK] - centre[first : first + _BLOCK]
        _add_products(fixed(part.T, np.float64), gram)
    root = np.zeros((n, n))
    rank = _root(gram, root)
    return np.ascontiguousarray(root[: max(rank, 1)].T)


@compiled
def _add_products(across: Floats, gram: Floats) -> None:
    """Add the inner products of the columns of ``across`` to the lower half of a matrix, four rows at a time."""
    d, n = across.shape
    for first in range(0, n, 4):
        if first + 4 <= n:
            for t in range(d):
                a, b, c, e = across[t, first], across[t, first + 1], across[t, first + 2], across[t, first + 3]
                for j in range(first + 4):
                    x = across[t, j]
                    gram[first, j] += a * x
                    gram[first + 1, j] += b * x
                    gram[first + 2, j] += c * x
                    gram[first + 3, j] += e * x
        else:
            for i in range(first, n):
                for t in range(d):
                    a = across[t, i]
                    for j in range(i + 1):
                        gram[i, j] += a * across[t, j]


@compiled
def _root(gram: Floats, root: Floats) -> int:
    """Fill the rows of ``root`` so that root.T @ root is the matrix whose lower half is given (pivoted Cholesky).

    Returns how many rows there are: the rank, as far as rounding shows it.
    """
    n = gram.shape[0]
    left, done = np.empty(n), np.zeros(n, dtype=np.bool_)
    for i in range(n):
        left[i] = gram[i, i]
    least = left.max() * n * np.finfo(np.float64).eps
    for k in range(n):
        p = 0
        for i in range(n):
            if not done[i] and (done[p] or left[i] > left[p]):
                p = i
        if left[p] <= least:
            return k
        for i in range(n):
            root[k, i] = gram[p, i] if i <= p else gram[i, p]
        for m in range(k):
            by = root[m, p]
            for i in range(n):
                root[k, i] -= by * root[m, i]
        by = np.sqrt(left[p])
        for i in range(n):
            root[k, i] = 0.0 if done[i] else root[k, i] / by
            left[i] -= root[k, i] * root[k, i]
        done[p] = True
    return int(n)


_LEAF_GROUPS = 32  # groups searched together, or more that hold so few records
_FEW_RECORDS = 160
_LEAF_RECORDS = 1024  # and about this number of records at most
_FROZEN = 4096  # a group of more records is left as it is: searching it would cost its square
_TOP = 5  # levels of a tree that are built before its parts are handed to threads
_CHUNKS = 64  # parts of a round that threads take one after the other
_WIDTH_PASSES = 8
_WIDTH_FLOOR = 1e-3  # of the records' own variance: narrower than that no group is worth being


class Grouping(NamedTuple):
    """Records in group order: group g holds ``order[starts[g]:starts[g + 1]]``."""

    order: Ints
    starts: Ints
    centres: Floats


class WorkerThreads:
    """Threads that work through parts; one thread works alone."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def __enter__(self) -> WorkerThreads:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def each(self, work: Callable[[int, int], object], cuts: Ints) -> list[object]:
        """Do the work between each two cuts and give the results in order."""
        parts = [(low, high) for low, high in pairwise(cuts.tolist()) if low < high]
        if self._pool is None:
            return [work(low, high) for low, high in parts]
        return list(self._pool.map(lambda part: work(*part), parts))


def grow_tree(n: int, cut: Callable[[int, int, int, Ints], int], team: WorkerThreads) -> Ints:
    """Build the top of a tree alone and its parts by threads; give where leaves begin, and the end."""
    bounds = np.empty(n + 1, dtype=np.int64)
    tops = cut(0, n, _TOP, bounds)
    top = np.append(bounds[:tops], n)

    def part(low: int, high: int) -> Ints:
        own = np.empty(high - low + 1, dtype=np.int64)
        return own[: cut(low, high, -1, own)]

    parts = team.each(part, top)
    return np.concatenate([*parts, [n]]).astype(np.int64)


def improved_grouping(
    values: Floats,
    levels: Ints,
    grouping: Grouping,
    passes: int,
    kicks: int,
    tries: int,
    seed: np.uint64,
    team: WorkerThreads,
) -> Grouping:
    """Search neighbouring groups once, over a fresh random tree of their centres; never raises the sum of squares.

    By ``passes`` of moves or, if there are ``kicks`` for each leaf, by kicks with a number of tries for each group.
    """
    records = _grouped(values, levels, grouping)
    how = Search(passes, kicks, tries, int(levels.min()), seed)

    def search(first: int, last: int, leaves: Leaves, made: LeafResults) -> None:
        improve_leaves(records, leaves, first, last, how, made)

    return _over_leaves(values, grouping, seed, team, search)


def widened_grouping(
    values: Floats, levels: Ints, grouping: Grouping, seed: np.uint64, team: WorkerThreads
) -> Grouping:
    """Search neighbouring groups once for groups of different width, over a fresh random tree of their centres.

    Records are searched as seen from the first of them. Equal records then lie at exactly 0, so do their means, and no
    group of them looks narrower than another because its mean was rounded otherwise.
    """
    origin = values[0]
    seen = values - origin
    grouping = grouping._replace(centres=grouping.centres - origin)
    records, how = _grouped(seen, levels, grouping), Search(_WIDTH_PASSES, 0, 0, int(levels.min()), seed)
    floor = max(_WIDTH_FLOOR * float(seen.var(axis=0).sum()), np.finfo(np.float64).tiny)

    def search(first: int, last: int, leaves: Leaves, made: LeafResults) -> None:
        width_leaves(records, leaves, first, last, how, floor, made)

    widened = _over_leaves(seen, grouping, seed, team, search)
    return widened._replace(centres=widened.centres + origin)


def _grouped(values: Floats, levels: Ints, grouping: Grouping) -> GroupedRecords:
    return GroupedRecords(fixed(values, np.float64), fixed(levels, np.int64), grouping.order, grouping.starts)


def _over_leaves(
    values: Floats,
    grouping: Grouping,
    seed: np.uint64,
    team: WorkerThreads,
    search: Callable[[int, int, Leaves, LeafResults], None],
) -> Grouping:
    """Cut the centres of groups into leaves by a random tree and search each leaf."""
    n, d = values.shape
    weight = np.diff(grouping.starts)
    most_groups = max(_LEAF_GROUPS, _FEW_RECORDS * len(weight) // n)
    small = np.flatnonzero(weight <= _FROZEN)
    frozen = np.flatnonzero(weight > _FROZEN)
    group_order, key = small.copy(), np.empty(len(weight))

    def cut(low: int, high: int, depth: int, bounds: Ints) -> int:
        span = Span(low, high, depth)
        return random_tree(grouping.centres, weight, (most_groups, _LEAF_RECORDS), seed, group_order, key, span, bounds)

    bounds = grow_tree(len(small), cut, team) if len(small) else np.zeros(1, dtype=np.int64)
    places = np.concatenate([[0], np.cumsum(weight[group_order])])[bounds]
    leaves, made = Leaves(group_order, bounds, places), empty_results(len(bounds) - 1, n, d)
    team.each(lambda first, last: search(first, last, leaves, made), even(len(made.counts)))
    end, counts = int(places[-1]), made.counts
    for group in frozen:
        rows = grouping.order[grouping.starts[group] : grouping.starts[group + 1]]
        made.order[end : end + len(rows)] = rows
        made.sizes[end], made.centres[end] = len(rows), grouping.centres[group]
        places, counts = np.append(places, end + len(rows)), np.append(counts, 1)
        end += len(rows)
    return collect(made._replace(counts=counts), places)


def even(parts: int) -> Ints:
    """Cut the parts into portions, one for each thread."""
    return np.unique(np.linspace(0, parts, min(parts, _CHUNKS) + 1).astype(np.int64))


def collect(made: LeafResults, places: Ints) -> Grouping:
    """Gather the groups that leaves left behind at their places."""
    skipped = np.cumsum(made.counts) - made.counts
    held = np.repeat(places[:-1] - skipped, made.counts) + np.arange(made.counts.sum())
    return Grouping(made.order, np.concatenate([[0], np.cumsum(made.sizes[held])]), made.centres[held])
