"""ConstructGroups: condensation with a privacy level for each record [AY05, fig. 2]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.condense.attrition import attrition
from sfumato.condense.cannibalize import cannibalize
from sfumato.condense.segment import segment
from sfumato.groups.distances import centroids
from sfumato.progress import tell

__all__ = ["construct_groups", "place_deficient"]


def construct_groups(
    values: NDArray[np.float64], levels: NDArray[np.int64], order: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Group records so that each group is at least as large as the highest level inside it.

    Implements ConstructGroups [AY05, fig. 2]; one level for all records is the homogeneous case.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    levels : ndarray of shape (n,)
        Privacy level p(i) of each record; none above n.
    order : ndarray of shape (n,)
        A random order of the records, for sampling.

    Returns
    -------
    list of ndarray
        The groups as rows of values.

    Notes
    -----
    Departs from the figure (errata AY05.5): where no group of level p can form, its records join D_{p+1} before its
    Segment, and what is left after the last level is placed by `place_deficient`. Followed to the letter, the
    figure loses such records.
    """
    groups = [np.array([row]) for row in np.flatnonzero(levels == 1)]  # H_1
    carried = np.empty(0, dtype=np.int64)
    for p in np.unique(levels[levels > 1]).tolist():
        pool = np.concatenate([carried, np.flatnonzero(levels == p)])
        upper = segment(values, pool, p, order)  # H_p
        if not upper:
            carried = pool
            continue
        carried = np.empty(0, dtype=np.int64)
        lower, upper = cannibalize(values, levels, groups, upper)
        lower, upper = attrition(values, levels, lower, upper, p)
        groups = lower + upper
        tell("grouping", p / int(levels.max()))
    return place_deficient(values, levels, groups, carried)


def place_deficient(
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
    groups: list[NDArray[np.int64]],
    carried: NDArray[np.int64],
) -> list[NDArray[np.int64]]:
    """Place the records that formed no group at any level (errata AY05.5).

    Each joins the group that costs least SSQ and is large enough with it, lower levels first. Those for which no group
    is large enough stand together and join likewise; where no single group makes them enough they take in the one
    that costs least SSQ and try again. If no group ever formed, all records are one.
    """
    if not len(carried):
        return groups
    if not groups:
        return [carried]
    groups = list(groups)
    centres = centroids(values, groups)
    sizes = np.array([len(group) for group in groups])
    waiting = []
    for row in carried[np.lexsort((carried, levels[carried]))]:
        cost = ((centres - values[row]) ** 2).sum(axis=1) * sizes / (sizes + 1)
        cost[sizes + 1 < levels[row]] = np.inf
        target = int(np.argmin(cost))
        if not np.isfinite(cost[target]):
            waiting.append(row)
            continue
        groups[target] = np.append(groups[target], row)
        centres[target] += (values[row] - centres[target]) / (sizes[target] + 1)
        sizes[target] += 1
    together = np.array(waiting, dtype=np.int64)
    while len(together) < (need := int(levels[together].max(initial=0))):
        centre, size = values[together].mean(axis=0), len(together)
        cost = ((centres - centre) ** 2).sum(axis=1) * sizes * size / (sizes + size)
        enough = sizes + size >= need
        if enough.any():
            cost[~enough] = np.inf
        target = int(np.argmin(cost))
        together = np.concatenate([together, groups.pop(target)])
        centres, sizes = np.delete(centres, target, axis=0), np.delete(sizes, target)
    return [*groups, together] if len(together) else groups
