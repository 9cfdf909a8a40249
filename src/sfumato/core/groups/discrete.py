"""Categories and missing cells of drawn rows: each group gets exactly the counts in its statistics.

A drawn coordinate that is moved to a category carries along what its group's covariance ties to it: the linear
regression of the other coordinates on it, held back so that no record is copied. Columns that have very many categories
are settled by rank inside a group.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.compiled import compiled
from sfumato.core.groups import Groups
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout

__all__ = [
    "as_numbers",
    "assign_codes",
    "carry_along",
    "category_counts",
    "coded_blocks",
    "discretize",
    "discretize_noised",
    "missing_counts",
    "ranked_rows",
    "ridges",
]

_TINY = 1e-12  # variance of a category or an indicator that is rounding alone


def ridges(groups: Groups, layout: Layout) -> Floats:
    """Ridge penalty of each group's regression: number of varying discrete columns over the group size.

    A record's squared deviation in a discrete block is at most 1, so with this ridge its weight in its own fit (its
    leverage) is at most 1/2. Without a ridge a category that one record of the group holds would bring back that very
    record: its conditional mean *is* the record. The ridge fades as groups grow.
    """
    variance = np.diagonal(groups.scatter, axis1=1, axis2=2) / groups.count[:, None]
    varying = np.zeros(len(groups))
    for block in layout:
        if block.kind is not BlockKind.NUMBER:
            varying += variance[:, block.where].max(axis=1) > _TINY
    return np.asarray(varying / groups.count)


@compiled
def carry_along(values: Floats, settled: Floats, start: int, starts: Ints, covariance: Floats, ridge: Floats) -> None:
    """Set some coordinates of drawn rows and shift the others by their regression on the change.

    One coordinate at a time, which equals the joint ridge regression. The covariances become those of what is
    left to settle, given what is settled; the settled coordinates have none.
    """
    d = values.shape[1]
    live = np.empty(d, dtype=np.int64)
    column = np.empty(d)
    for group in range(len(ridge)):
        sigma = covariance[group]
        lives = 0
        for i in range(d):
            if sigma[i, i] > 0.0:
                live[lives] = i
                lives += 1
        for offset in range(settled.shape[1]):
            place = start + offset
            if sigma[place, place] <= _TINY:
                continue
            weight = 1.0 / (sigma[place, place] + ridge[group])
            for a in range(lives):
                column[a] = sigma[live[a], place]
            for row in range(starts[group], starts[group + 1]):
                moved = (settled[row, offset] - values[row, place]) * weight
                for a in range(lives):
                    values[row, live[a]] += column[a] * moved
            for a in range(lives):
                for b in range(lives):
                    sigma[live[a], live[b]] -= column[a] * weight * column[b]
        for offset in range(settled.shape[1]):
            sigma[start + offset, :] = 0.0
            sigma[:, start + offset] = 0.0
    for row in range(values.shape[0]):
        for offset in range(settled.shape[1]):
            values[row, start + offset] = settled[row, offset]


def discretize(values: Floats, groups: Groups, layout: Layout) -> Floats:
    """Assign categories to all discrete blocks of rows drawn group after group; works in place.

    What is not yet discrete follows each move by the group's regression, so that association inside a group lasts.
    A layout of numbers alone is left as it was drawn.
    """
    if all(block.kind is BlockKind.NUMBER for block in layout):
        return values
    starts, covariance, ridge = _starts(groups), groups.covariance, ridges(groups, layout)
    absent = _place_blocks(
        values,
        groups,
        layout,
        lambda drawn, start: carry_along(values, drawn, start, starts, covariance, ridge),
    )
    for block, (missing, away) in absent.items():
        if block.kind is BlockKind.NUMBER:
            widen_present(values[:, block.start], groups, block, missing)
        values[away, block.where] = block.fill
    return values


def discretize_noised(values: Floats, count: Ints, mean: Floats, layout: Layout) -> Floats:
    """Assign categories to all discrete blocks of noisy rows in group order; works in place.

    Each group keeps the counts of its categories and missing cells; they go to the rows whose noised coordinates are
    highest. Nothing of the original is looked at but ``mean``, of each group before the noise, so what the noise
    guarantees stays guaranteed. Numbers stay as the noise left them.
    """

    def put(drawn: Floats, start: int) -> None:
        values[:, start : start + drawn.shape[1]] = drawn

    for block, (_, away) in _place_blocks(values, _moments(count, mean), layout, put).items():
        values[away, block.where] = block.fill
    return values


def _place_blocks(
    values: Floats, groups: Groups, layout: Layout, put: Callable[[Floats, int], None]
) -> dict[Block, tuple[Ints, Bools]]:
    """Count and mark each block's missing cells per group; ``put`` writes the block's new cells."""
    indicators = {block.column: block for block in layout if block.kind is BlockKind.MISSING}
    starts, absent = _starts(groups), {}
    for block in layout:
        if block.kind is BlockKind.MISSING:
            continue
        missing, away = np.zeros(len(groups), dtype=np.int64), np.zeros(len(values), dtype=np.bool_)
        if block.column in indicators:
            indicator = indicators[block.column]
            missing = missing_counts(groups, indicator)
            absent[block] = missing, away
            drawn = values[:, indicator.where].copy()
            place_missing(drawn, starts, missing, away)
            put(drawn, indicator.start)
        if block.kind is BlockKind.CATEGORY:
            drawn = values[:, block.where].copy()
            place_categories(drawn, starts, category_counts(groups, block, missing), away, CATEGORY_SCALE)
            drawn[away] = block.fill
            put(drawn, block.start)
    return absent


def _starts(groups: Groups) -> Ints:
    return np.concatenate([[0], np.cumsum(groups.count)]).astype(np.int64)


def missing_counts(groups: Groups, indicator: Block) -> Ints:
    """Missing cells of a column in each group, from the mean of its indicator alone."""
    exact = groups.mean[:, indicator.start] * groups.count
    return np.clip(np.rint(exact).astype(np.int64), 0, groups.count)


def widen_present(drawn: Floats, groups: Groups, block: Block, missing: Ints) -> None:
    """Rescale a column's present cells about their mean, in place, to restore the variance lost to imputation.

    With p of n cells present the rows were drawn with p/n of the present cells' variance, so they widen by sqrt(n/p).
    """
    present = np.maximum(groups.count - missing, 1)
    centre = (groups.mean[:, block.start] * groups.count - missing * block.fill[0]) / present
    widened = np.sqrt(groups.count / present) - 1.0
    drawn += np.repeat(widened, groups.count) * (drawn - np.repeat(centre, groups.count))


def category_counts(groups: Groups, block: Block, missing: Ints) -> Ints:
    """Count of each category in each group, from the block's means alone.

    Of a real group the counts are whole and come out exactly; of a group that was split from statistics they are
    rounded by largest remainder, so that they still add up to the group's present cells.
    """
    sums = groups.mean[:, block.where] * groups.count[:, None]
    exact = np.maximum((sums - missing[:, None] * np.asarray(block.fill)) / CATEGORY_SCALE, 0.0)
    present = groups.count - missing
    total = exact.sum(axis=1)
    uneven = np.abs(total - present) > 1e-6
    scale = np.divide(present, total, out=np.ones(len(total)), where=uneven & (total > 0))
    exact = exact * scale[:, None]
    near = np.rint(exact)
    exact = np.where(np.abs(exact - near) < 1e-6, near, exact)
    counts: Ints = np.floor(exact).astype(np.int64)
    lacking = present - counts.sum(axis=1)
    for group in np.flatnonzero(lacking != 0):
        remainder = np.round(exact[group] - counts[group], 9)  # of equal ones, which round differently, the first
        for category in np.argsort(-remainder, kind="stable")[: max(lacking[group], 0)]:
            counts[group, category] += 1
        short = present[group] - counts[group].sum()
        if short:  # no mass at all, or more than the remainders can hold
            counts[group, int(np.argmax(np.round(exact[group], 9)))] += short
    return counts


@compiled
def place_missing(drawn: Floats, starts: Ints, counts: Ints, absent: Bools) -> None:
    """Mark as missing the rows of each group with the highest drawn indicator, and set the indicator."""
    for group in range(len(counts)):
        first, last = starts[group], starts[group + 1]
        if counts[group] > 0:
            order = np.argsort(-drawn[first:last, 0], kind="mergesort")
            for place in range(counts[group]):
                absent[first + order[place]] = True
        for row in range(first, last):
            drawn[row, 0] = 1.0 if absent[row] else 0.0


@compiled
def place_categories(drawn: Floats, starts: Ints, counts: Ints, absent: Bools, scale: float) -> None:
    """Assign each group's categories to its present rows, highest drawn value first."""
    categories = counts.shape[1]
    for group in range(counts.shape[0]):
        first, last = starts[group], starts[group + 1]
        held = np.flatnonzero(counts[group])
        if len(held) == 1:
            for row in range(first, last):
                drawn[row, :] = 0.0
                drawn[row, held[0]] = scale
            continue
        size = last - first
        wanted = np.full(size * len(held), -np.inf)
        for row in range(size):
            if not absent[first + row]:
                for place in range(len(held)):
                    wanted[row * len(held) + place] = drawn[first + row, held[place]]
        left = counts[group].copy()
        chosen = np.full(size, -1)
        for pair in np.argsort(-wanted, kind="mergesort"):
            row, category = pair // len(held), held[pair % len(held)]
            if chosen[row] < 0 and left[category] > 0 and not absent[first + row]:
                chosen[row] = category
                left[category] -= 1
        for row in range(size):
            for category in range(categories):
                drawn[first + row, category] = scale if chosen[row] == category else 0.0


def _moments(count: Ints, mean: Floats) -> Groups:
    """Counts and means as groups; the scatter is empty, because discretizing does not use it."""
    g, d = mean.shape
    shell = np.broadcast_to(np.zeros(1), (g, d, d))
    return Groups(count, mean, shell, np.zeros(g), np.zeros(g, dtype=np.int64))


def coded_blocks(layout: Layout) -> list[tuple[Block, int | None]]:
    """Blocks of long category lists, each with the coordinate of its missing indicator, if any."""
    marks = {block.column: block.start for block in layout if block.kind is BlockKind.MISSING}
    return [(block, marks.get(block.column)) for block in layout if block.kind is BlockKind.CODE]


def as_numbers(layout: Layout) -> Layout:
    """The layout with the coordinates of long category lists treated as numbers."""
    return tuple(
        dataclasses.replace(block, kind=BlockKind.NUMBER, fill=block.fill or (0.0,))
        if block.kind is BlockKind.CODE
        else block
        for block in layout
    )


def ranked_rows(rows: Floats, groups: Ints, block: Block, mark: int | None) -> Ints:
    """Rows with a present cell, group after group, in order of the coordinate."""
    there = np.arange(len(rows)) if mark is None else np.flatnonzero(rows[:, mark] < 0.5)
    return there[np.lexsort((rows[there, block.start], groups[there]))]


def assign_codes(drawn: Floats, groups: Ints, block: Block, mark: int | None, coordinates: Floats) -> None:
    """Assign coordinates of categories to rows in group order and ascending; works in place.

    The lowest drawn coordinate of a group takes its lowest, so that a category goes on with the other columns.
    """
    drawn[ranked_rows(drawn, groups, block, mark), block.start] = coordinates
    if mark is not None:
        drawn[drawn[:, mark] > 0.5, block.start] = block.fill[0] if block.fill else 0.0
