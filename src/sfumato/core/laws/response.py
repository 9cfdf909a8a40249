"""Randomized response among k answers, by any matrix of chances [Warner 1965; Kairouz, Oh, Viswanath 2014].

For many values, answers that stand for sets of values tell more than a response at the same epsilon. Every value has a
set of answers, all sets are equally large and any two share equally many answers; an answer of one's own set is
e^epsilon times likelier than another [Ye, Barg 2018, subset selection]. The sets are the hyperplanes of a projective
space over a field of q elements, with q near e^epsilon + 1 [Feldman, Nelson, Nguyen, Talwar 2022]: an answer is one
number, not a list of values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.laws.exact import FINEST, check_codes, check_outputs
from sfumato.core.laws.finite import Amplified, Extremes

__all__ = ["Response", "choose_design", "subset_response"]

_SUM = 1e-9  # how far the chances of a row may be from 1 together, for they are written as decimals
_MOST = 4000  # answers: the matrix has their square


@dataclass(frozen=True)
class Response(Amplified):
    """Answer y for the truth x with the chance in row x and column y of a matrix.

    A row is brought to multiples of 2^-53: each chance is rounded down, though never to 0 from above it, and the
    largest of the row (of equals the first) takes what is left. For an answer a whole number below 2^53 is drawn
    uniformly and looked up among the row's sums, so it has exactly these chances; ``probabilities`` and ``gamma`` are
    of them.

    Parameters
    ----------
    matrix : tuple of tuples of float
        Rows are inputs, columns outputs; each row adds up to 1.

    Examples
    --------
    >>> Response(((0.75, 0.25), (0.25, 0.75))).gamma
    3.0
    >>> round(Response.for_epsilon(4, 1.5).epsilon, 12)
    1.5
    """

    wraps: ClassVar[bool] = False  # no: answers have no order

    matrix: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        try:
            rows = tuple(tuple(float(chance) for chance in row) for row in self.matrix)
        except (TypeError, ValueError):
            raise OptionError("a response matrix must be a list of rows of numbers") from None
        if len(rows) < 2 or len({len(row) for row in rows}) > 1 or len(rows[0]) < 1:
            raise OptionError("a response matrix needs a row for each of two or more values, all of one length")
        if max(len(rows), len(rows[0])) > _MOST:
            raise OptionError(f"a response matrix has at most {_MOST} rows and columns; use keep-or-replace")
        wrong = sum(1 for row in rows if not (min(row) >= 0 and abs(math.fsum(row) - 1.0) <= _SUM))
        if wrong:
            raise OptionError(f"{wrong} rows of the response matrix are not chances that add up to 1; correct them")
        object.__setattr__(self, "matrix", rows)

    @classmethod
    def for_epsilon(cls, size: int, epsilon: float) -> Response:
        """Matrix that keeps the most information under a wanted epsilon [Kairouz, Oh, Viswanath 2014].

        The truth has the chance e^epsilon / (e^epsilon + size - 1), every other answer 1 / (e^epsilon + size - 1).

        Notes
        -----
        Optimal for mutual information and Kullback-Leibler divergence where epsilon is not small; for small epsilon
        answers of two values ("binary") can tell more. Cost O(size^2).
        """
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < math.inf:
            raise OptionError("the epsilon of a response must be a number above 0")
        if isinstance(size, bool) or not isinstance(size, int) or not 2 <= size <= _MOST:
            raise OptionError(f"a response is among 2 to {_MOST} values; list wider ones, as a level of a hierarchy")
        less = math.exp(-epsilon)  # divided by e^epsilon, which may be too large for a double
        truth, other = 1.0 / (1.0 + (size - 1) * less), less / (1.0 + (size - 1) * less)
        return cls(tuple((other,) * x + (truth,) + (other,) * (size - 1 - x) for x in range(size)))

    @property
    def size(self) -> int:
        """Number of inputs."""
        return len(self.matrix)

    @property
    def outputs(self) -> range:
        """All outputs."""
        return range(len(self.matrix[0]))

    @cached_property
    def weights(self) -> NDArray[np.int64]:
        """The chances as whole numbers of 2^-53, rows are inputs."""
        chances = np.array(self.matrix, dtype=np.float64)
        whole = np.floor(chances * FINEST).astype(np.int64)
        whole[(chances > 0) & (whole == 0)] = 1
        largest = chances.argmax(axis=1)
        whole[np.arange(len(whole)), largest] += FINEST - whole.sum(axis=1)
        whole.flags.writeable = False
        return whole

    @cached_property
    def extremes(self) -> Extremes:
        """Highest and lowest chance of each output."""
        pairs = zip(self.weights.max(axis=0).tolist(), self.weights.min(axis=0).tolist(), strict=True)
        return tuple((Fraction(high, FINEST), Fraction(low, FINEST)) for high, low in pairs)

    def randomize(self, codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw an output for each input."""
        x = check_codes(codes, self.size)
        drawn = rng.integers(0, FINEST, size=x.size)
        answers = np.empty(x.size, dtype=np.int64)
        order = np.argsort(x.ravel(), kind="stable")
        ends = np.searchsorted(x.ravel()[order], np.arange(self.size + 1))
        for row in np.unique(x):
            rows = order[ends[row] : ends[row + 1]]
            answers[rows] = np.searchsorted(np.cumsum(self.weights[row]), drawn[rows], side="right")
        return answers.reshape(x.shape)

    def probabilities(self, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
        """P[output | input], a row for each output: the matrix transposed."""
        return np.asarray(self.weights.T[check_outputs(outputs, self.outputs)] / FINEST, dtype=np.float64)


_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)


def choose_design(size: int, epsilon: float) -> tuple[int, int] | None:
    """Field and dimension with which frequencies are known best; None where a plain response is as good.

    A rare value's frequency is known to the variance b (1 - b) / (n (a - b)^2), for a and b the chances that its set
    holds the answer of one who has it and of one who has not.

    Examples
    --------
    >>> choose_design(100, 1.0), choose_design(4, 3.0)
    ((3, 4), None)
    """
    best, found = _variance(size, 1, 0, epsilon), None
    for q in _PRIMES:
        for dimension in range(2, 13):
            answers, own, shared = (_points(q, dimension - less) for less in range(3))
            if answers > _MOST:
                break
            if answers < size:
                continue
            variance = _variance(answers, own, shared, epsilon)
            if variance < 0.99 * best:
                best, found = variance, (q, dimension)
            break  # a larger space of the same field is no better
    return found


def subset_response(size: int, epsilon: float) -> Response:
    """Response in which each value has a set of answers, or the plain one where that is as good.

    Examples
    --------
    >>> made = subset_response(100, 1.0)
    >>> len(made.outputs), round(made.epsilon, 9)
    (121, 1.0)
    """
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < math.inf:
        raise OptionError("the epsilon of a subset law must be a number above 0")
    if not 2 <= size <= _MOST:
        raise OptionError(f"a subset law is for 2 to {_MOST} values")
    design = choose_design(size, epsilon)
    if design is None:
        return Response.for_epsilon(size, epsilon)
    q, dimension = design
    points = _space(q, dimension)
    own = (points[:size] @ points.T) % q == 0
    answers, inside, _ = (_points(q, dimension - less) for less in range(3))
    other = math.exp(-epsilon)
    total = inside + (answers - inside) * other
    return Response(tuple(tuple(row) for row in np.where(own, 1.0 / total, other / total).tolist()))


def _points(q: int, dimension: int) -> int:
    """Points of a projective space."""
    return int((q ** (dimension + 1) - 1) // (q - 1)) if dimension >= 0 else 0


def _variance(answers: int, own: int, shared: int, epsilon: float) -> float:
    """Variance of a rare value's frequency for one record; for sets of one answer, that of the plain response."""
    less = math.exp(-epsilon)
    total = own + (answers - own) * less
    a, b = own / total, (shared + (own - shared) * less) / total
    return b * (1.0 - b) / (a - b) ** 2


def _space(q: int, dimension: int) -> NDArray[np.int64]:
    """Points by coordinates, the first that is not 0 being 1, in the order of their digits."""
    rows = []
    for zeros in range(dimension, -1, -1):
        free = dimension - zeros
        digits = np.indices((q,) * free).reshape(free, -1).T if free else np.zeros((1, 0), dtype=np.int64)
        lead = np.zeros((len(digits), zeros + 1), dtype=np.int64)
        lead[:, -1] = 1
        rows.append(np.hstack([lead, digits]))
    return np.vstack(rows)
