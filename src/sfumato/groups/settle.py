"""Settling drawn coordinates into categories and missing cells, with exactly the group's counts.

The mean of a one-hot block times the count *is* the group's category count, and the same holds for missing
cells. So discrete columns need nothing but the moments: the counts go to the rows whose drawn values are highest,
which keeps categories tied to numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import compiled
from sfumato.groups.model import Groups
from sfumato.records import CATEGORY_SCALE, Block, BlockKind, Layout

__all__ = ["category_counts", "missing_counts", "settle"]


def settle(values: NDArray[np.float64], groups: Groups, layout: Layout) -> NDArray[np.float64]:
    """Settle every discrete block of rows drawn group after group; works in place and returns the rows."""
    starts = np.concatenate([[0], np.cumsum(groups.count)]).astype(np.int64)
    missing_blocks = {block.column: block for block in layout if block.kind is BlockKind.MISSING}
    for block in layout:
        if block.kind is BlockKind.MISSING:
            continue
        indicator = missing_blocks.get(block.column)
        absent = np.zeros(len(values), dtype=np.bool_)
        gone = np.zeros(len(groups), dtype=np.int64)
        if indicator is not None:
            gone = missing_counts(groups, indicator)
            settle_missing(values[:, indicator.start], starts, gone, absent)
        if block.kind is BlockKind.CATEGORY:
            counts = category_counts(groups, block, gone)
            settle_categories(values[:, block.where], starts, counts, absent, CATEGORY_SCALE)
        values[absent, block.where] = block.fill
    return values


def missing_counts(groups: Groups, indicator: Block) -> NDArray[np.int64]:
    """Count the missing cells of a column in each group, from the mean of its indicator alone."""
    exact = groups.mean[:, indicator.start] * groups.count
    return np.clip(np.rint(exact).astype(np.int64), 0, groups.count)


def category_counts(groups: Groups, block: Block, missing: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count each category in each group, from the means of its block alone.

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
    counts = np.floor(exact).astype(np.int64)
    lacking = present - counts.sum(axis=1)
    for group in np.flatnonzero(lacking != 0):
        remainder = exact[group] - counts[group]
        for category in np.argsort(-remainder, kind="stable")[: max(lacking[group], 0)]:
            counts[group, category] += 1
        short = present[group] - counts[group].sum()
        if short:  # no mass at all, or more than the remainders can hold
            counts[group, int(np.argmax(exact[group]))] += short
    return counts


@compiled
def settle_missing(
    drawn: NDArray[np.float64], starts: NDArray[np.int64], counts: NDArray[np.int64], absent: NDArray[np.bool_]
) -> None:
    """Mark as missing the rows of each group whose indicator was drawn highest, and set the indicator."""
    for group in range(len(counts)):
        first, last = starts[group], starts[group + 1]
        if counts[group] > 0:
            order = np.argsort(-drawn[first:last], kind="mergesort")
            for place in range(counts[group]):
                absent[first + order[place]] = True
        for row in range(first, last):
            drawn[row] = 1.0 if absent[row] else 0.0


@compiled
def settle_categories(
    drawn: NDArray[np.float64],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    absent: NDArray[np.bool_],
    scale: float,
) -> None:
    """Give each group's categories to its present rows, the highest drawn value first."""
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
