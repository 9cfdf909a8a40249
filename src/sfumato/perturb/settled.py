"""Categories and missing cells of rows that got noise: the counts of each group, given to the rows with most of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.groups.model import Groups
from sfumato.groups.settle import category_counts, missing_counts, settle_categories, settle_missing
from sfumato.records import CATEGORY_SCALE, BlockKind, Layout

__all__ = ["settle_noised"]


def settle_noised(
    values: NDArray[np.float64], count: NDArray[np.int64], mean: NDArray[np.float64], layout: Layout
) -> NDArray[np.float64]:
    """Settle every discrete block of noised rows that stand group after group; works in place and returns the rows.

    Each group keeps the counts of its categories and missing cells; they go to the rows whose noised coordinates are
    highest. Nothing of the original is looked at but the groups' means, so what the noise guarantees stays guaranteed.
    Numbers stay as the noise left them.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    count : ndarray of shape (g,)
        Records of each group.
    mean : ndarray of shape (g, d)
        Mean of each group before the noise.
    layout : tuple of Block
    """
    indicators = {block.column: block for block in layout if block.kind is BlockKind.MISSING}
    if not indicators and all(block.kind is BlockKind.NUMBER for block in layout):
        return values
    groups = _moments(count, mean)
    starts = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    for block in layout:
        if block.kind is BlockKind.MISSING:
            continue
        gone, away = np.zeros(len(count), dtype=np.int64), np.zeros(len(values), dtype=np.bool_)
        if block.column in indicators:
            indicator = indicators[block.column]
            gone = missing_counts(groups, indicator)
            drawn = values[:, indicator.where].copy()
            settle_missing(drawn, starts, gone, away)
            values[:, indicator.where] = drawn
        if block.kind is BlockKind.CATEGORY:
            drawn = values[:, block.where].copy()
            settle_categories(drawn, starts, category_counts(groups, block, gone), away, CATEGORY_SCALE)
            values[:, block.where] = drawn
        values[away, block.where] = block.fill
    return values


def _moments(count: NDArray[np.int64], mean: NDArray[np.float64]) -> Groups:
    """Give counts and means as groups; settling looks at nothing else, so the scatter is an empty shell."""
    g, d = mean.shape
    shell = np.broadcast_to(np.zeros(1), (g, d, d))
    return Groups(count, mean, shell, np.zeros(g), np.zeros(g, dtype=np.int64))
