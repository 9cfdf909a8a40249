"""A table of more columns than records in as many columns as it has records, with the same distances.

The n records of a table span at most n - 1 directions. Their squared distances follow from the n x n matrix of inner
products (the Gram matrix), and so do coordinates along those directions: a triangular root of that matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import compiled, fixed

__all__ = ["in_fewer_columns"]

_BLOCK = 512  # columns whose inner products are summed at a time


def in_fewer_columns(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Find coordinates of records with the distances they had, at most as many columns as there are records.

    Sums are taken in one order whatever the machine, so that the same table gives the same coordinates everywhere.

    Notes
    -----
    Cost O(n^2 d + n^3). Squared distances are exact but for rounding, some 1e-15 n of the largest of them.
    """
    n, d = values.shape
    centre = values.mean(axis=0)
    gram = np.zeros((n, n))
    for first in range(0, d, _BLOCK):
        part = values[:, first : first + _BLOCK] - centre[first : first + _BLOCK]
        _add_products(fixed(part.T, np.float64), gram)
    root = np.zeros((n, n))
    rank = _root(gram, root)
    return np.ascontiguousarray(root[: max(rank, 1)].T)


@compiled
def _add_products(across: NDArray[np.float64], gram: NDArray[np.float64]) -> None:
    """Add the inner products of the columns of ``across`` to the lower half of a matrix, four rows at a time."""
    d, n = across.shape
    for first in range(0, n, 4):
        if first + 4 <= n:
            for t in range(d):
                a, b, c, e = across[t, first], across[t, first + 1], across[t, first + 2], across[t, first + 3]
                for j in range(first + 4):
                    x = across[t, j]
                    gram[first, j] += a * x
                    gram[first + 1, j] += b * x
                    gram[first + 2, j] += c * x
                    gram[first + 3, j] += e * x
        else:
            for i in range(first, n):
                for t in range(d):
                    a = across[t, i]
                    for j in range(i + 1):
                        gram[i, j] += a * across[t, j]


@compiled
def _root(gram: NDArray[np.float64], root: NDArray[np.float64]) -> int:
    """Fill the rows of ``root`` so that root.T @ root is the matrix whose lower half is given (pivoted Cholesky).

    Returns how many rows there are: the rank, as far as rounding shows it.
    """
    n = gram.shape[0]
    left, done = np.empty(n), np.zeros(n, dtype=np.bool_)
    for i in range(n):
        left[i] = gram[i, i]
    least = left.max() * n * np.finfo(np.float64).eps
    for k in range(n):
        p = 0
        for i in range(n):
            if not done[i] and (done[p] or left[i] > left[p]):
                p = i
        if left[p] <= least:
            return k
        for i in range(n):
            root[k, i] = gram[p, i] if i <= p else gram[i, p]
        for m in range(k):
            by = root[m, p]
            for i in range(n):
                root[k, i] -= by * root[m, i]
        by = np.sqrt(left[p])
        for i in range(n):
            root[k, i] = 0.0 if done[i] else root[k, i] / by
            left[i] -= root[k, i] * root[k, i]
        done[p] = True
    return int(n)
