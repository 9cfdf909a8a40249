"""A direct regularised solution of the same equations, to compare the iteration with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.randomize.reconstruct.channel import Channel

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Ridge", "onto_simplex"]

_PENALTIES = np.logspace(-8.0, 6.0, 113)  # relative to the largest eigenvalue; eight to a decade
_LEVEL = 1e-6  # of the roughness: a little of the plain square, so that the penalty is definite

_Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Ridge:
    """Least squares with a penalty on roughness [Tikhonov], brought back to probabilities.

    Minimises sum_s (q_s - N_s/n)^2 + alpha |D (p - u)|^2 with q = pA, u uniform and D the differences of neighbours (of
    all cells from u, where they have no order). Alpha has the least expected error as Mallows' C_p tells it: the sum of
    squares plus 2 trace(H S), H the hat matrix and S the variances of the relative counts, which are known. What comes
    out is projected onto the probabilities.

    Parameters
    ----------
    right : ndarray of shape (outputs, inputs)
        Takes relative counts, less those of the uniform distribution, to their coordinates.
    basis : ndarray of shape (inputs, inputs)
    size : ndarray of shape (inputs,)
        How well each coordinate is told.
    uniform : ndarray of shape (outputs,)
        Chances of the outputs under u.
    alpha : float
    """

    right: _Matrix
    basis: _Matrix
    size: NDArray[np.float64]
    uniform: NDArray[np.float64]
    alpha: float

    @classmethod
    def fit(cls, counts: NDArray[np.float64], channel: Channel, *, ordered: bool) -> Self:
        """Choose alpha for one count vector; cost O(m^3 + m^2 k)."""
        from scipy.linalg import eigh

        matrix, n = channel.matrix, counts.sum()
        uniform = matrix.mean(axis=0)
        difference = counts / n - uniform
        size, basis = eigh(matrix @ matrix.T, _roughness(channel.inputs, ordered=ordered))
        size = np.maximum(size, 0.0)
        right = matrix.T @ basis
        along = difference @ right
        spread = (counts / n**2) @ right**2  # of the coordinates, from the variances of the counts
        penalties = _PENALTIES * size.max()
        left = size + penalties[:, None]  # a row for each penalty
        misfit = ((along / left) ** 2 * size - 2.0 * along**2 / left).sum(axis=1)  # less a constant
        best = int(np.argmin(misfit + 2.0 * (spread / left).sum(axis=1)))
        return cls(right, basis, size, uniform, float(penalties[best]))

    def solve(self, counts: NDArray[np.float64], *, less: float = 1.0) -> NDArray[np.float64]:
        """Give the probabilities for one count vector or several, with the penalty divided by ``less``."""
        share = counts / counts.sum(axis=-1, keepdims=True)
        along = (share - self.uniform) @ self.right / (self.size + self.alpha / less)
        return onto_simplex(along @ self.basis.T + 1.0 / len(self.size))


def _roughness(inputs: int, *, ordered: bool) -> _Matrix:
    level = np.eye(inputs)
    if not ordered:
        return level
    steps = np.diff(level, axis=0)
    return np.asarray(steps.T @ steps + _LEVEL * level)


def onto_simplex(points: _Matrix) -> _Matrix:
    """Give the nearest probabilities to each row [Held, Wolfe, Crowder 1974].

    Examples
    --------
    >>> onto_simplex(np.array([0.8, 0.5, -0.1]))
    array([0.65, 0.35, 0.  ])
    """
    rows = np.atleast_2d(points)
    falling = -np.sort(-rows, axis=1)
    above = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = (falling > above).sum(axis=1) - 1
    near = np.maximum(rows - above[np.arange(len(rows)), last][:, None], 0.0)
    return np.asarray((near / near.sum(axis=1, keepdims=True)).reshape(np.shape(points)))
