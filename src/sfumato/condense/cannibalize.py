"""Cannibalize: dissolve lower groups whose records fit better among the higher ones [AY05, fig. 4]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.groups.distances import centroids, closest, ssq

__all__ = ["cannibalize", "cost_of_joining"]


def cannibalize(
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
    lower: list[NDArray[np.int64]],
    upper: list[NDArray[np.int64]],
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Dissolve groups of H_{p-1} into H_p where that lowers the sum of squares.

    Implements Cannibalize [AY05, fig. 4].

    Parameters
    ----------
    values : ndarray of shape (n, d)
    levels : ndarray of shape (n,)
    lower, upper : list of ndarray
        H_{p-1} and H_p, groups as rows of values.

    Returns
    -------
    lower, upper : list of ndarray

    Notes
    -----
    The qualitative test compares SSQ exactly (errata AY05.6). The numerical test dissolves a group that is smaller
    than a level inside it (errata AY05.5). Each group is tested against H_p as the groups before it left it.
    """
    if not upper:
        return lower, upper
    centres = centroids(values, upper)
    sizes = np.array([len(group) for group in upper])
    joined: list[list[NDArray[np.int64]]] = [[group] for group in upper]
    kept = []
    for group in lower:
        points = values[group]
        nearest = closest(points, centres)
        cost, touched = cost_of_joining(points, nearest, centres, sizes)
        deficient = len(group) < levels[group].max()
        if not deficient and cost >= ssq(points):
            kept.append(group)
            continue
        for target, (centre, size) in touched.items():
            joined[target].append(group[nearest == target])
            centres[target], sizes[target] = centre, size
    return kept, [np.concatenate(parts) for parts in joined]


def cost_of_joining(
    points: NDArray[np.float64],
    nearest: NDArray[np.int64],
    centres: NDArray[np.float64],
    sizes: NDArray[np.int64],
) -> tuple[float, dict[int, tuple[NDArray[np.float64], int]]]:
    """Count by how much SSQ grows when each point joins its group, and what those groups become.

    A point that joins a group of size n at squared distance q from its centroid adds q*n/(n+1) and moves the
    centroid by 1/(n+1) of the way (errata AY05.6).
    """
    cost = 0.0
    touched: dict[int, tuple[NDArray[np.float64], int]] = {}
    for point, target in zip(points, nearest.tolist(), strict=True):
        centre, size = touched.get(target, (centres[target], int(sizes[target])))
        gap = point - centre
        cost += float(gap @ gap) * size / (size + 1)
        touched[target] = (centre + gap / (size + 1), size + 1)
    return cost, touched
