"""The longest axis of a group: the leading eigenvector of its covariance, along which it splits [AY05, sec. 3].

One matrix at a time inside a compiled loop, with the same bits on every machine and for any number of threads, which a
LAPACK does not promise. Householder's reflections make the matrix tridiagonal, bisection finds its largest eigenvalue,
and inverse iteration the vector: 4/3 d^3 operations, where all eigenvectors would cost several times that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import inner

__all__ = ["leading_axis", "padded", "rows_of"]

_CLOSE = 1e-13  # width of the last interval around lambda1, as a share of the largest entry
_LEAST = 1e-30  # stands for a pivot that is zero
_TINY = 1e-200  # squared length of a column that is as good as zero; 2 over less may be infinite
_STEPS = 4  # of inverse iteration; each divides what is not e1 by its share of the gap


@inner
def padded(d: int) -> int:
    """Length of a row of d numbers with room for whole turns of the compiled loops."""
    return (d + 31) // 32 * 32


@inner
def leading_axis(
    triangle: NDArray[np.float64], matrix: NDArray[np.float64], lines: NDArray[np.float64], e1: NDArray[np.float64]
) -> float:
    """Write the leading eigenvector of a symmetric matrix into ``e1`` and give its eigenvalue, which is never negative.

    The upper triangle of d rows is given, one row after the other; ``matrix`` (d, w) and ``lines`` (6, w)
    are for work, with w from `padded`.
    The sign of e1 is that of `sfumato.core.groups.model.eigen`, so that each piece of a split has its side.
    """
    d = e1.shape[0]
    scale = 0.0
    for place in range(triangle.shape[0]):
        scale = max(scale, abs(triangle[place]))
    for t in range(d):
        e1[t] = 0.0
    if scale == 0.0:  # records that are all equal: any axis will do
        e1[0] = 1.0
        return 0.0
    place = 0
    for i in range(d):
        for j in range(i, d):
            matrix[i, j] = triangle[place] / scale
            matrix[j, i] = matrix[i, j]
            place += 1
        for j in range(d, matrix.shape[1]):
            matrix[i, j] = 0.0
    diagonal, off, weight, pivot = lines[0], lines[1], lines[2], lines[3]
    _tridiagonal(matrix, diagonal, off, weight, lines[4], lines[5])
    _inverse_iteration(diagonal, off, pivot, _above_largest(diagonal, off, d), e1)
    for k in range(d - 3, -1, -1):  # back through the reflections, which stand in the columns of the matrix
        dot = 0.0
        for t in range(k + 1, d):
            dot += matrix[t, k] * e1[t]
        for t in range(k + 1, d):
            e1[t] -= weight[k] * dot * matrix[t, k]
    _normalize(e1)
    return max(_variance_along(triangle, e1), 0.0)


@inner
def _tridiagonal(
    matrix: NDArray[np.float64],
    diagonal: NDArray[np.float64],
    off: NDArray[np.float64],
    weight: NDArray[np.float64],
    product: NDArray[np.float64],
    vector: NDArray[np.float64],
) -> None:
    """Reduce the matrix by reflections I - weight v v^T, whose v are left in its columns below the diagonal.

    The long loops run over whole padded rows, zeros and all: that many numbers at a time are less work than few alone.
    """
    d, width = matrix.shape
    for t in range(width):
        vector[t] = 0.0
    for k in range(d - 2):
        vector[k] = 0.0
        norm = 0.0
        for t in range(k + 1, d):
            vector[t] = matrix[t, k]
            norm += vector[t] * vector[t]
        norm = np.sqrt(norm)
        off[k] = -norm if vector[k + 1] > 0.0 else norm
        vector[k + 1] -= off[k]
        length = 0.0
        for t in range(k + 1, d):
            length += vector[t] * vector[t]
            matrix[t, k] = vector[t]
        weight[k] = 2.0 / length if length > _TINY else 0.0
        _times(matrix, vector, k + 1, product)
        half = 0.0
        for t in range(d):
            product[t] = weight[k] * product[t] if t > k else 0.0
            half += product[t] * vector[t]
        for t in range(width):
            product[t] -= 0.5 * weight[k] * half * vector[t]
        for s in range(k + 1, d):
            own, other = vector[s], product[s]
            for t in range(width):
                matrix[s, t] -= own * product[t] + other * vector[t]
    for t in range(d):
        diagonal[t] = matrix[t, t]
    if d > 1:
        off[d - 2] = matrix[d - 1, d - 2]


@inner
def _times(matrix: NDArray[np.float64], vector: NDArray[np.float64], first: int, product: NDArray[np.float64]) -> None:
    """Multiply the rows of a symmetric matrix from ``first`` on with a vector."""
    d, width, s = matrix.shape[0], product.shape[0], first
    for t in range(width):
        product[t] = 0.0
    while s + 4 <= d:
        a, b, c, e = vector[s], vector[s + 1], vector[s + 2], vector[s + 3]
        for t in range(width):
            ab, ce = a * matrix[s, t] + b * matrix[s + 1, t], c * matrix[s + 2, t] + e * matrix[s + 3, t]
            product[t] += ab + ce
        s += 4
    while s < d:
        a = vector[s]
        for t in range(width):
            product[t] += a * matrix[s, t]
        s += 1


@inner
def _above_largest(diagonal: NDArray[np.float64], off: NDArray[np.float64], d: int) -> float:
    """A number just above all eigenvalues of the tridiagonal matrix."""
    low, high = diagonal[0], diagonal[0]
    for t in range(d):
        reach = (abs(off[t - 1]) if t > 0 else 0.0) + (abs(off[t]) if t < d - 1 else 0.0)
        low, high = max(low, diagonal[t]), max(high, diagonal[t] + reach)  # a diagonal entry is no larger than lambda1
    high += _CLOSE
    while high - low > _CLOSE * max(1.0, abs(high)):
        middle = 0.5 * (low + high)
        pivot, below = 1.0, True
        for t in range(d):
            pivot = middle - diagonal[t] - (off[t - 1] * off[t - 1] / pivot if t > 0 else 0.0)
            if pivot <= 0.0:  # an eigenvalue is at least this large (Sturm)
                below = False
                break
        if below:
            high = middle
        else:
            low = middle
    return float(high)


@inner
def _inverse_iteration(
    diagonal: NDArray[np.float64],
    off: NDArray[np.float64],
    pivot: NDArray[np.float64],
    above: float,
    e1: NDArray[np.float64],
) -> None:
    """Solve (above I - T) z = e1 a few times; the matrix is positive definite, so nothing need be pivoted."""
    d = e1.shape[0]
    for t in range(d):
        pivot[t] = above - diagonal[t] - (off[t - 1] * off[t - 1] / pivot[t - 1] if t > 0 else 0.0)
        pivot[t] = max(pivot[t], _LEAST)
        e1[t] = 1.0 + 0.125 * (t % 7)
    for _ in range(_STEPS):
        for t in range(1, d):
            e1[t] += off[t - 1] / pivot[t - 1] * e1[t - 1]
        e1[d - 1] /= pivot[d - 1]
        for t in range(d - 2, -1, -1):
            e1[t] = (e1[t] + off[t] * e1[t + 1]) / pivot[t]
        _normalize(e1)


@inner
def _normalize(vector: NDArray[np.float64]) -> None:
    """Scale to length 1, on the side that `sfumato.core.groups.model.eigen` takes."""
    largest = 0.0
    for t in range(vector.shape[0]):
        largest = max(largest, abs(vector[t]))
    length, side = 0.0, 0.0
    for t in range(vector.shape[0]):
        vector[t] /= largest
        length += vector[t] * vector[t]
        side += np.cos(t + 1.0) * vector[t]
    length = -np.sqrt(length) if side < 0.0 else np.sqrt(length)
    for t in range(vector.shape[0]):
        vector[t] /= length


@inner
def _variance_along(triangle: NDArray[np.float64], e1: NDArray[np.float64]) -> float:
    d, place, total = e1.shape[0], 0, 0.0
    for i in range(d):
        total += triangle[place] * e1[i] * e1[i]
        for j in range(i + 1, d):
            total += 2.0 * triangle[place + j - i] * e1[i] * e1[j]
        place += d - i
    return total


def rows_of(triangle: NDArray[np.float64], d: int) -> NDArray[np.float64]:
    """Full symmetric matrices (g, d, d) of upper triangles (g, d (d + 1) / 2)."""
    i, j = np.triu_indices(d)
    full = np.empty((len(triangle), d, d))
    full[:, i, j] = triangle
    full[:, j, i] = triangle
    return full
