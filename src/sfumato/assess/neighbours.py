"""Exact nearest rows in blocks of bounded memory: a tree in few coordinates, comparing with every row in many."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

__all__ = ["TREE", "nearest"]

TREE = 12
"""Coordinates up to which a tree finds neighbours faster than comparing with every row."""

_PART = 250  # queries that one thread looks up at a time
_Matrix = NDArray[np.float64]
_Places = NDArray[np.int64]


def nearest(
    rows: _Matrix, queries: _Matrix, count: int = 1, *, own: NDArray[np.int64] | None = None
) -> tuple[_Places, _Matrix]:
    """Find the nearest rows of each query, exactly; never a matrix of all distances.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    queries : ndarray of shape (q, d)
    count : int
        How many neighbours; at most n, or n - 1 with ``own``.
    own : ndarray of shape (q,), optional
        The place of each query among the rows, where it is one of them: it is not its own neighbour. A twin is.

    Returns
    -------
    places, distances : ndarrays of shape (q, count)
        Euclidean distances, in rising order.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [5.0]])
    >>> nearest(rows, rows, own=np.arange(3))[0].ravel().tolist()
    [1, 0, 1]
    """
    wanted = count if own is None else count + 1
    if not 0 < wanted <= len(rows):
        raise ValueError(f"{wanted} neighbours were asked of {len(rows)} rows")
    places = _tree_search(rows, queries, wanted) if rows.shape[1] <= TREE else _full_search(rows, queries, wanted)
    if own is not None:
        places = _without(places, own)
    return _by_distance(rows, queries, places)


def _without(places: _Places, own: NDArray[np.int64]) -> _Places:
    """Strike each query's own place out, or the last neighbour where twins have crowded it out."""
    stays = places != own[:, None]
    stays[stays.all(axis=1), -1] = False
    return np.asarray(places[stays].reshape(len(places), -1))


def _by_distance(rows: _Matrix, queries: _Matrix, places: _Places) -> tuple[_Places, _Matrix]:
    """Measure again, exactly: a search that expands the square leaves rounding where the distance is 0."""
    squares = np.empty(places.shape)
    for column in range(places.shape[1]):
        squares[:, column] = ((queries - rows[places[:, column]]) ** 2).sum(axis=1)
    order = np.argsort(squares, axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1), np.sqrt(np.take_along_axis(squares, order, axis=1))


def _tree_search(rows: _Matrix, queries: _Matrix, count: int) -> _Places:
    from scipy.spatial import KDTree

    tree = KDTree(rows, leafsize=32, balanced_tree=False)
    ranks = np.arange(1, count + 1)
    parts = [queries[start : start + _PART] for start in range(0, len(queries), _PART)]
    if len(parts) < 2:
        return np.asarray(tree.query(queries, k=ranks)[1], dtype=np.int64)
    # not with the tree's own workers: they go on after an interrupt, over memory that is gone by then
    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    try:
        found = list(pool.map(lambda part: tree.query(part, k=ranks)[1], parts))
    finally:
        pool.shutdown(cancel_futures=True)
    return np.asarray(np.concatenate(found), dtype=np.int64)


def _full_search(rows: _Matrix, queries: _Matrix, count: int) -> _Places:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(rows)
    return np.asarray(search.kneighbors(queries, return_distance=False), dtype=np.int64)
