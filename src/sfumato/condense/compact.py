"""Compact grouping: groups of lower sum of squares than the paper's, in time that grows almost as the table.

A principal-axis tree cuts the records into leaves, each leaf is grouped from its extremes inwards, and then rounds of
local search improve neighbouring groups over fresh random trees of their centres. Leaves are disjoint and their
randomness hangs on their place, so the partition is the same for any number of threads.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import fixed
from sfumato.condense.leaves import start_leaves
from sfumato.condense.rounds import Grouping, Team, collect, even, grow_tree, improved_grouping, widened_grouping
from sfumato.condense.trees import principal_tree
from sfumato.progress import tell

__all__ = ["EFFORTS", "Effort", "compact_groups", "first_grouping"]

_START_RECORDS = 128  # records of a leaf of the start, or 24 times the level
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


def compact_groups(
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    effort: str = "default",
    threads: int | None = None,
    widths: bool = False,
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
    widths : bool
        Search on for groups of different width, tight where records are dense, at some cost in the sum of squares:
        better for a miner that asks which of several sets of groups lies nearest.

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
        for done in range(rounds if widths else 0):
            grouping = widened_grouping(values, levels, grouping, seeds[-1 - done % len(seeds)], team)
    tell("grouping", 1.0)
    return np.split(grouping.order, grouping.starts[1:-1])


def _lent() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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

    bounds = grow_tree(n, cut, team)
    sizes, centres = np.empty(n, dtype=np.int64), np.empty((n, d))
    counts = np.zeros(len(bounds) - 1, dtype=np.int64)

    def group(first: int, last: int) -> None:
        start_leaves(values, levels, order, bounds, first, last, sizes, counts, centres)

    team.each(group, even(len(counts)))
    return collect(order, bounds, sizes, counts, centres)
