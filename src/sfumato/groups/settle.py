"""Settling drawn coordinates into categories and missing cells, with exactly the group's counts.

The mean of a one-hot block times the count *is* the group's category count, and the same holds for missing
cells. So discrete columns need nothing but the moments: the counts go to the rows whose drawn values are highest,
which keeps categories tied to numbers; the rest of the row follows (`sfumato.groups.follow`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import compiled
from sfumato.groups.follow import caution, follow
from sfumato.groups.model import Groups
from sfumato.records import CATEGORY_SCALE, Block, BlockKind, Layout

__all__ = ["category_counts", "missing_counts", "settle"]


def settle(values: NDArray[np.float64], groups: Groups, layout: Layout) -> NDArray[np.float64]:
    """Settle every discrete block of rows drawn group after group; works in place and returns the rows.

    What is not yet settled follows each move by the group's regression, so that association inside a group lasts.
    A layout of numbers alone is left as it was drawn.
    """
    indicators = {block.column: block for block in layout if block.kind is BlockKind.MISSING}
    if not indicators and all(block.kind is BlockKind.NUMBER for block in layout):
        return values
    starts = np.concatenate([[0], np.cumsum(groups.count)]).astype(np.int64)
    covariance, ridge = groups.covariance, caution(groups, layout)
    absent = {}
    for block in layout:
        if block.kind is BlockKind.MISSING:
            continue
        gone, away = np.zeros(len(groups), dtype=np.int64), np.zeros(len(values), dtype=np.bool_)
        if block.column in indicators:
            indicator = indicators[block.column]
            gone, absent[block] = missing_counts(groups, indicator), away
            drawn = values[:, indicator.where].copy()
            settle_missing(drawn, starts, gone, away)
            follow(values, drawn, indicator.start, starts, covariance, ridge)
        if block.kind is BlockKind.CATEGORY:
            drawn = values[:, block.where].copy()
            settle_categories(drawn, starts, category_counts(groups, block, gone), away, CATEGORY_SCALE)
            drawn[away] = block.fill
            follow(values, drawn, block.start, starts, covariance, ridge)
    for block, away in absent.items():
        if block.kind is BlockKind.NUMBER:
            widen_present(values[:, block.start], groups, block, missing_counts(groups, indicators[block.column]))
        values[away, block.where] = block.fill
    return values


def missing_counts(groups: Groups, indicator: Block) -> NDArray[np.int64]:
    """Count the missing cells of a column in each group, from the mean of its indicator alone."""
    exact = groups.mean[:, indicator.start] * groups.count
    return np.clip(np.rint(exact).astype(np.int64), 0, groups.count)


def widen_present(drawn: NDArray[np.float64], groups: Groups, block: Block, missing: NDArray[np.int64]) -> None:
    """Spread a number's present cells about their mean, in place: the fills took part of the group's variance.

    With p of n cells present the rows were drawn with p/n of the present cells' variance, so they widen by sqrt(n/p).
    """
    present = np.maximum(groups.count - missing, 1)
    centre = (groups.mean[:, block.start] * groups.count - missing * block.fill[0]) / present
    widened = np.sqrt(groups.count / present) - 1.0
    drawn += np.repeat(widened, groups.count) * (drawn - np.repeat(centre, groups.count))


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
    counts: NDArray[np.int64] = np.floor(exact).astype(np.int64)
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
            order = np.argsort(-drawn[first:last, 0], kind="mergesort")
            for place in range(counts[group]):
                absent[first + order[place]] = True
        for row in range(first, last):
            drawn[row, 0] = 1.0 if absent[row] else 0.0


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
