"""A known matrix of chances from cells of the truth to cells of what was released, and how much it lets through."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core.arrays import Floats
from sfumato.core.errors import OptionError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Channel", "Ridge", "onto_simplex", "shares_let_through"]

_SUM = 1e-6
"""How far a row of chances may be from 1; the chances of a response are written as decimals."""

_SMALL = 10_000  # entries of a matrix that is quickly multiplied as it is
_FEW = 0.03  # share of entries up to which a sparse product is faster than a dense one


@dataclass(frozen=True, eq=False, repr=False)
class Channel:
    """Chances of every output cell given every input cell.

    Parameters
    ----------
    matrix : ndarray of shape (inputs, outputs)
        Row x holds P[output | input x]; what the iteration works with. Use `Channel.of` to have the rows checked.
    exact : ndarray of shape (inputs, outputs), optional
        The chances themselves, where the matrix only stands for them (noise at midpoints).

    Examples
    --------
    >>> Channel.of([[0.75, 0.25], [0.25, 0.75]])
    Channel(inputs=2, outputs=2)
    """

    matrix: Floats
    exact: Floats | None = None

    @classmethod
    def of(cls, matrix: ArrayLike) -> Self:
        """Check a matrix and take it.

        Raises
        ------
        OptionError
            For a matrix whose rows are not chances that add up to 1.
        """
        try:
            chances = np.array(matrix, dtype=np.float64)
        except (TypeError, ValueError):
            raise OptionError("a transition matrix must be rows of numbers, all of one length") from None
        if chances.ndim != 2 or 0 in chances.shape:
            raise OptionError("a transition matrix needs a row for each input and a column for each output")
        good = (chances >= 0).all(axis=1) & (np.abs(chances.sum(axis=1) - 1.0) <= _SUM)
        if not good.all():
            wrong = int((~good).sum())
            raise OptionError(f"{wrong} rows of the transition matrix are not chances that add up to 1; correct them")
        chances.flags.writeable = False
        return cls(chances)

    def __repr__(self) -> str:
        return f"Channel(inputs={self.inputs}, outputs={self.outputs})"

    @property
    def inputs(self) -> int:
        """Number of cells of the truth, m."""
        return int(self.matrix.shape[0])

    @property
    def outputs(self) -> int:
        """Number of cells of what is released."""
        return int(self.matrix.shape[1])

    @property
    def chances(self) -> Floats:
        """The chances themselves, rows add up to 1."""
        return self.matrix if self.exact is None else self.exact

    def mix(self, probability: Floats) -> Floats:
        """Chances of the outputs, a row for each row of probabilities."""
        if self._sparse is None:
            return np.asarray(probability @ self.matrix)
        floor, rest, _ = self._sparse
        return np.asarray(probability @ rest + floor * probability.sum(axis=1, keepdims=True))

    def unmix(self, weights: Floats) -> Floats:
        """Multiply weights of the outputs, a row each, with the transposed matrix."""
        if self._sparse is None:
            return np.asarray(weights @ self.matrix.T)
        floor, _, turned = self._sparse
        return np.asarray(weights @ turned + floor * weights.sum(axis=1, keepdims=True))

    @cached_property
    def _sparse(self) -> tuple[float, csr_array, csr_array] | None:
        """The lowest chance and what is above it, where that is little: laws that replace by anything or reach near."""
        floor = float(self.matrix.min())
        above = self.matrix > floor
        if self.matrix.size < _SMALL or above.mean() > _FEW:
            return None
        from scipy.sparse import csr_array

        rest = np.where(above, self.matrix - floor, 0.0)
        return floor, csr_array(rest), csr_array(rest.T)

    @cached_property
    def shares(self) -> Floats:
        """Share of the information that each direction keeps at the uniform distribution, largest first (m - 1,)."""
        return shares_let_through(self.chances, np.full(self.inputs, 1.0 / self.inputs))


def shares_let_through(matrix: Floats, probability: Floats) -> Floats:
    """Share of Fisher information that the noise lets through, for each direction in which p can change.

    The information of n released records about p is n A diag(1/q) A', with q = pA; of n plain records it is
    n diag(1/p). The shares are the eigenvalues of the first against the second, less the one of the total mass, which
    is always known. A share of 0.04 says: in this direction 100 released records tell what 4 plain ones would. They are
    also the rates at which EM closes the gap to the maximum of the likelihood.

    Notes
    -----
    Cost O(m^2 k) for k outputs, and O(m^3).
    """
    q = probability @ matrix
    reached = q > 0.0
    scaled = np.sqrt(probability)[:, None] * matrix[:, reached] / np.sqrt(q[reached])
    inputs, outputs = scaled.shape
    product = scaled @ scaled.T if inputs <= outputs else scaled.T @ scaled
    found = np.clip(np.linalg.eigvalsh(product)[::-1], 0.0, 1.0)
    shares = np.zeros(inputs)
    shares[: min(inputs, outputs)] = found[:inputs]
    return shares[1:]


_PENALTIES = np.logspace(-8.0, 6.0, 113)  # relative to the largest eigenvalue; eight to a decade
_LEVEL = 1e-6  # of the roughness: a little of the plain square, so that the penalty is definite


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
        Precision of each coordinate.
    uniform : ndarray of shape (outputs,)
        Chances of the outputs under u.
    """

    right: Floats
    basis: Floats
    size: Floats
    uniform: Floats

    @classmethod
    def of(cls, channel: Channel, *, ordered: bool) -> Self:
        """What depends on the matrix alone; cost O(m^3 + m^2 k)."""
        from scipy.linalg import eigh

        matrix = channel.matrix
        size, basis = eigh(matrix @ matrix.T, _roughness(channel.inputs, ordered=ordered))
        return cls(matrix.T @ basis, basis, np.maximum(size, 0.0), matrix.mean(axis=0))

    def solve(self, counts: Floats) -> Floats:
        """Probabilities for one count vector, with the penalty that it asks for."""
        n = counts.sum()
        along = (counts / n - self.uniform) @ self.right
        spread = (counts / n**2) @ self.right**2  # of the coordinates, from the variances of the counts
        penalties = _PENALTIES * self.size.max()
        left = self.size + penalties[:, None]  # a row for each penalty
        misfit = ((along / left) ** 2 * self.size - 2.0 * along**2 / left).sum(axis=1)  # less a constant
        best = int(np.argmin(misfit + 2.0 * (spread / left).sum(axis=1)))
        return onto_simplex(along / left[best] @ self.basis.T + 1.0 / len(self.size))


def _roughness(inputs: int, *, ordered: bool) -> Floats:
    level = np.eye(inputs)
    if not ordered:
        return level
    steps = np.diff(level, axis=0)
    return np.asarray(steps.T @ steps + _LEVEL * level)


def onto_simplex(points: Floats) -> Floats:
    """Nearest probabilities to each row [Held, Wolfe, Crowder 1974].

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
