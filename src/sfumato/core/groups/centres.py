"""Group centres, and the nearest centre of each record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.core.arrays import Floats, Ints

__all__ = ["centroids", "nearest_centre", "squared_distances", "ssq"]

_BLOCK = 4_000_000  # distances held at once


def centroids(values: Floats, groups: Sequence[Ints]) -> Floats:
    """Centroid of each group."""
    sizes = np.array([len(group) for group in groups])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.asarray(np.add.reduceat(values[np.concatenate(groups)], starts, axis=0) / sizes[:, None])


def squared_distances(points: Floats, centres: Floats) -> Floats:
    """Squared distance of every point to every centre, by differences to avoid cancellation."""
    gaps = points[:, None, :] - centres[None, :, :]
    return np.asarray(np.einsum("ijk,ijk->ij", gaps, gaps))


def nearest_centre(rows: Floats, centres: Floats) -> Ints:
    """Nearest centre of each row, the first of equals; computed in blocks of bounded size.

    Examples
    --------
    >>> nearest_centre(np.array([[1.0], [4.0]]), np.array([[0.0], [5.0], [-5.0]])).tolist()
    [0, 1]
    """
    from scipy.spatial.distance import cdist

    block = max(1, _BLOCK // max(1, len(centres)))
    places = np.empty(len(rows), dtype=np.int64)
    for first in range(0, len(rows), block):
        squares = cdist(rows[first : first + block], centres, "sqeuclidean")
        places[first : first + block] = np.argmin(squares, axis=1)
    return places


def ssq(points: Floats) -> float:
    """Sum of squared distances of points to their centroid."""
    return float(((points - points.mean(axis=0)) ** 2).sum())
