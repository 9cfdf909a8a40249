"""Attrition: hand the excess records of higher groups down to better fitting lower ones [AY05, fig. 5]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.groups.distances import centroids, squared_distances

__all__ = ["attrition", "closest_viable"]

_BLOCK = 4_000_000  # distances held at once


def attrition(
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
    lower: list[NDArray[np.int64]],
    upper: list[NDArray[np.int64]],
    p: int,
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Move records of H_p that a group can spare to the closest viable group of H_{p-1}.

    Implements Attrition [AY05, fig. 5].

    Parameters
    ----------
    values : ndarray of shape (n, d)
    levels : ndarray of shape (n,)
    lower, upper : list of ndarray
        H_{p-1} and H_p, groups as rows of values.
    p : int
        The privacy level of H_p.

    Returns
    -------
    lower, upper : list of ndarray

    Notes
    -----
    Improve(X) is the distance to the own centroid minus that to the closest viable one, the figure's sign (errata
    AY05.4); only points with Improve > 0 move, at most p' - p from a group of p'. A group is viable for X when it has
    at least level(X) records with X in it. Centroids are those at the start, as in the figure's first loop.
    """
    spare = [index for index, group in enumerate(upper) if len(group) > p]
    if not lower or not spare:
        return lower, upper
    low_centres = centroids(values, lower)
    low_sizes = np.array([len(group) for group in lower])
    gained: list[list[NDArray[np.int64]]] = [[group] for group in lower]
    upper = list(upper)
    for index in spare:
        group = upper[index]
        points = values[group]
        current = np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1))  # Distc(X, p)
        other, target = closest_viable(points, levels[group], low_centres, low_sizes)  # Disto(X, p-1)
        improve = current - other
        best = np.argsort(-improve, kind="stable")[: len(group) - p]
        moved = best[improve[best] > 0.0]
        for point in moved:
            gained[target[point]].append(group[point : point + 1])
        upper[index] = np.delete(group, moved)
    return [np.concatenate(parts) for parts in gained], upper


def closest_viable(
    points: NDArray[np.float64],
    levels: NDArray[np.int64],
    centres: NDArray[np.float64],
    sizes: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Give the distance to, and the index of, the closest group that would be large enough for each point.

    The distance is infinite where no group is viable.
    """
    distance = np.empty(len(points))
    target = np.empty(len(points), dtype=np.int64)
    block = max(1, _BLOCK // max(1, centres.size))
    for first in range(0, len(points), block):
        part = slice(first, first + block)
        squared = squared_distances(points[part], centres)
        squared[sizes[None, :] + 1 < levels[part, None]] = np.inf
        target[part] = np.argmin(squared, axis=1)
        distance[part] = np.sqrt(squared.min(axis=1))
    return distance, target
