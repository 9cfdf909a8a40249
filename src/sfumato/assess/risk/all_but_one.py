"""Nearest rows on all columns but one, for every column in one pass over the rows."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import compiled, fixed, inner

__all__ = ["nearest_but_one"]

_CHUNK = 512  # rows whose distances are held at a time, so that they stay in the fastest memory

_Matrix = NDArray[np.float64]
_Places = NDArray[np.int64]


def nearest_but_one(rows: _Matrix, queries: _Matrix, column_of: _Places, count: int) -> _Places:
    """Find for each column the nearest rows of each query in the coordinates of all other columns, exactly.

    A search for each column would sum the same squares again: here each column's part is summed once and taken off the
    whole. Rows at the same distance come in their order.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
    queries : ndarray of shape (q, d)
    column_of : ndarray of shape (d,)
        The column of each coordinate, from 0.
    count : int
        How many neighbours, at most m.

    Returns
    -------
    ndarray of shape (columns, q, count)

    Examples
    --------
    >>> rows = np.array([[0.0, 5.0], [4.0, 0.0]])
    >>> nearest_but_one(rows, np.array([[0.0, 0.0]]), np.array([0, 1]), 1).ravel().tolist()
    [1, 0]
    """
    if not 0 < count <= len(rows):
        raise ValueError(f"{count} neighbours were asked of {len(rows)} rows")
    across, asked, owner = fixed(rows.T, np.float64), fixed(queries, np.float64), fixed(column_of, np.int64)
    found = np.zeros((int(column_of.max()) + 1, len(queries), count), dtype=np.int64)
    threads = min(os.cpu_count() or 1, 8)
    ends = np.linspace(0, len(queries), threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        jobs = [
            pool.submit(_search, across, asked, owner, found, begin, end)
            for begin, end in pairwise(ends)
            if begin < end
        ]
        for job in jobs:
            job.result()
    return found


@inner
def _keep(whole: _Matrix, part: _Matrix, least: _Matrix, found: _Places, start: int, width: int) -> None:
    """Sort those of a chunk's rows that are nearer than the farthest found so far into what was found."""
    last = len(least) - 1
    for r in range(width):
        apart = whole[r] - part[r]
        if apart < least[last]:
            at = last
            while at > 0 and least[at - 1] > apart:
                least[at], found[at] = least[at - 1], found[at - 1]
                at -= 1
            least[at], found[at] = apart, start + r


@compiled
def _search(across: _Matrix, asked: _Matrix, owner: _Places, found: _Places, begin: int, end: int) -> None:
    """Search for queries begin to end; ``across`` holds the rows as columns."""
    columns, _, count = found.shape
    d, m = across.shape
    part, whole = np.empty((columns, _CHUNK)), np.empty(_CHUNK)
    least = np.full((end - begin, columns, count), np.inf)
    for start in range(0, m, _CHUNK):  # all queries meet a chunk while it is at hand
        for i in range(begin, end):
            part[:] = 0.0
            for t in range(d):
                x, own, line = asked[i, t], part[owner[t]], across[t, start : start + _CHUNK]
                for r in range(len(line)):
                    gap = x - line[r]
                    own[r] += gap * gap
            whole[:] = 0.0
            for c in range(columns):
                for r in range(_CHUNK):
                    whole[r] += part[c, r]
            for c in range(columns):
                _keep(whole, part[c], least[i - begin, c], found[c, i], start, min(_CHUNK, m - start))
