"""Centroids, nearest centroids and sums of squares of groups given as lists of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["centroids", "closest", "squared_distances", "ssq"]

_BLOCK = 4_000_000  # distances held at once


def centroids(values: NDArray[np.float64], groups: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Give the centroid of each group."""
    sizes = np.array([len(group) for group in groups])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.asarray(np.add.reduceat(values[np.concatenate(groups)], starts, axis=0) / sizes[:, None])


def squared_distances(points: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the squared distance of every point to every centre, by differences (no cancellation)."""
    gaps = points[:, None, :] - centres[None, :, :]
    return np.asarray(np.einsum("ijk,ijk->ij", gaps, gaps))


def closest(points: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.int64]:
    """Give the nearest centre of each point; the first of equals. Works in blocks of bounded size."""
    block = max(1, _BLOCK // max(1, centres.size))
    return np.concatenate(
        [
            np.argmin(squared_distances(points[first : first + block], centres), axis=1)
            for first in range(0, len(points), block)
        ]
    )


def ssq(points: NDArray[np.float64]) -> float:
    """Sum of squared distances of points to their centroid."""
    return float(((points - points.mean(axis=0)) ** 2).sum())
