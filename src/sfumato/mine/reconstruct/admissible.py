"""What counts do not rule out: ranges over all distributions that fit them, however rough these are.

A band around a smoothed estimate shows how far chance moves the estimate, not how far smoothing has drawn it from the
truth. Here no estimate is needed. Of all distributions, those are admissible that fit the counts almost as well as the
best one: their chi-square exceeds the least by no more than the square of the normal quantile. The band of a quantity
is its range over them (one-at-a-time strict bounds: Stark 1992; Rust, O'Leary 1994; Patil, Kuusela, Hobbs 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Admissible", "Plain"]

_TOTAL = 1000.0  # times the square root of n: how firmly probabilities add up to 1
_RIDGE = 1e-10  # of the mean diagonal: keeps a pair of like columns apart
_TURNS = 12  # for each input: pivots after which a range is given up
_NEAR = 1e-10
_EXPECTED = 5.0  # records that a cell of a chi-square test should have

_Vector = NDArray[np.float64]
_Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Admissible:
    """The distributions that fit counts, by the quadratic form of their chi-square.

    Parameters
    ----------
    gram : ndarray of shape (inputs, inputs)
    slope : ndarray of shape (inputs,)
        Chi-square is p' gram p - 2 slope' p and a constant.
    best : ndarray of shape (inputs,)
        The distribution that fits best.
    radius : float
        By how much chi-square may exceed the least.
    fit : float
        P-value of the counts under the best one.
    """

    gram: _Matrix
    slope: _Vector
    best: _Vector
    radius: float
    fit: float

    @classmethod
    def of(cls, counts: _Vector, chances: _Matrix, level: float) -> Self:
        """Distributions that fit one count vector, at a level for one quantity at a time.

        A count has the variance of its expected value under the best fit and the radius more: a cell that nobody was
        found in may have a few people, as the exact bounds of a small count say.
        """
        from scipy.optimize import nnls
        from scipy.special import ndtri

        n, inputs = float(counts.sum()), len(chances)
        radius = float(ndtri((1.0 + level) / 2.0)) ** 2
        expected = (counts + 1.0) * n / (n + len(counts))
        best = np.zeros(inputs)
        form, target = chances, counts
        for _ in range(2):  # the second time with the variances of the first fit
            spread = np.sqrt(expected + radius)
            form, target = n * chances.T / spread[:, None], counts / spread
            total = np.full((1, inputs), _TOTAL * math.sqrt(n))
            best = nnls(np.vstack([form, total]), np.r_[target, total[0, 0]], maxiter=60 * inputs)[0]
            expected = n * best @ chances
        gram = form.T @ form
        gram.flat[:: inputs + 1] += _RIDGE * np.trace(gram) / inputs
        return cls(gram, form.T @ target, best, radius, _fit(counts, chances, best))

    def range(self, weights: _Vector) -> tuple[float, float] | None:
        """Least and largest weighted sum of the probabilities; None where it could not be found."""
        low, high = self._least(weights), self._least(-weights)
        return None if low is None or high is None else (low, -high)

    def _least(self, weights: _Vector) -> float | None:
        """Follow the minimum of chi-square + 2 t weights' p from t = 0 until chi-square has risen by the radius.

        Between two turns, where an input comes in or goes out, the minimum moves along a straight line in t.
        """
        gram, slope = self.gram, self.slope
        support = np.flatnonzero(self.best > 0.0).tolist()
        highest, now = math.inf, 0.0
        for _ in range(_TURNS * len(slope)):
            columns = gram[:, support]
            try:
                at, along, level, fall = _line(columns, support, slope, weights)
            except np.linalg.LinAlgError:
                return None
            start, rise = float(at @ columns[support] @ at - 2.0 * slope[support] @ at), float(weights[support] @ along)
            highest = start + self.radius if math.isinf(highest) else highest  # the first is the best fit
            until = math.sqrt(max(highest - start, 0.0) / rise) if rise > 0.0 else math.inf
            leaves = _first(at, along, now)
            fall[support] = 0.0  # they are in
            joins = _first(level, fall, now)
            if min(until, leaves[0], joins[0]) == math.inf:  # no distribution has less
                return float(weights[support] @ (at - now * along))
            if until <= min(leaves[0], joins[0]):
                return float(weights[support] @ (at - max(until, now) * along))
            if leaves[0] <= joins[0]:
                now = leaves[0]
                support.pop(leaves[1])
                if not support:
                    return None
            else:
                now = joins[0]
                support.append(joins[1])
        return None


@dataclass(frozen=True, eq=False, repr=False)
class Plain:
    """The plain solution with its covariance: for laws that tell every input alike, where nothing else is needed.

    Of very many inputs that hardly anybody has, chance lifts as many as it would sink below 0. Distributions that fit
    cannot sink, so sums over many of them would be too large; the plain solution is unbiased.

    Parameters
    ----------
    middle : ndarray of shape (inputs,)
        Weighted least squares, also below 0.
    covariance : ndarray of shape (inputs, inputs)
    radius : float
        Square of the deviations to either side.
    fit : float
        P-value of the counts: of what the solution leaves over, and of probabilities below 0.
    """

    middle: _Vector
    covariance: _Matrix
    radius: float
    fit: float

    @classmethod
    def of(cls, counts: _Vector, chances: _Matrix, level: float) -> Self:
        """Solution of one count vector; cost O(m^3)."""
        from scipy.special import chdtrc, gammaincc, ndtri

        radius = float(ndtri((1.0 + level) / 2.0)) ** 2
        spread = np.sqrt(counts + radius)
        scaled = chances * (counts.sum() / spread)
        covariance = np.linalg.inv(scaled @ scaled.T)
        middle = covariance @ (scaled @ (counts / spread))
        inputs, outputs = chances.shape
        # if nobody had any value, half of the inputs would be below 0: mean 1/2 and variance 5/4 of a squared deviation
        below = float((np.minimum(middle, 0.0) ** 2 / np.diag(covariance)).sum())
        fit = float(gammaincc(inputs / 5.0, below / 2.5))
        if outputs > inputs:
            left = counts - counts.sum() * middle @ chances
            fit = min(1.0, 2.0 * min(fit, float(chdtrc(outputs - inputs, float((left**2 / (counts + radius)).sum())))))
        return cls(middle, covariance, radius, fit)

    def range(self, weights: _Vector) -> tuple[float, float]:
        """Where a weighted sum of the probabilities may lie."""
        middle = float(weights @ self.middle)
        reach = math.sqrt(self.radius * float(weights @ self.covariance @ weights))
        return middle - reach, middle + reach

    def ranges(self, begins: NDArray[np.int64]) -> tuple[_Vector, _Vector]:
        """Where the sums over cells of neighbouring inputs may lie."""
        middle = np.add.reduceat(self.middle, begins)
        summed = np.add.reduceat(np.add.reduceat(self.covariance, begins, axis=0), begins, axis=1)
        reach = np.sqrt(self.radius * np.diag(summed))
        return middle - reach, middle + reach


def _line(columns: _Matrix, support: list[int], slope: _Vector, weights: _Vector) -> tuple[_Vector, ...]:
    """Probabilities of a support that make chi-square + 2 t weights' p least, adding up to 1, and prices.

    Both are straight lines in t: the first less t times the second, the third less t times the fourth.
    """
    many = len(support)
    system = np.ones((many + 1, many + 1))
    system[:many, :many], system[many, many] = columns[support], 0.0
    right = np.zeros((many + 1, 2))
    right[:many, 0], right[:many, 1], right[many, 0] = slope[support], weights[support], 1.0
    solution: _Matrix = np.asarray(np.linalg.solve(system, right).T, dtype=np.float64)
    at, along = solution[0, :many], solution[1, :many]
    level, fall = columns @ at - slope + solution[0, many], columns @ along - weights + solution[1, many]
    return at, along, level, fall


def _first(level: _Vector, fall: _Vector, now: float) -> tuple[float, int]:
    """When and where level - t fall first reaches 0 after now."""
    when = np.full(len(level), np.inf)
    np.divide(level, fall, out=when, where=fall > _NEAR * max(1.0, np.abs(fall).max()))
    where = int(when.argmin())
    return max(float(when[where]), now), where


def _fit(counts: _Vector, chances: _Matrix, best: _Vector) -> float:
    """P-value of the counts under the best fit: Pearson's chi-square, less a degree of freedom for each that it used.

    Outputs that should have few records are taken together with their neighbours.
    """
    from scipy.special import chdtrc

    n = float(counts.sum())
    expected = n * best @ chances
    total = np.cumsum(expected)
    group = np.floor(np.maximum(total - 1e-9 * n, 0.0) / _EXPECTED).astype(np.int64)
    _, group = np.unique(group, return_inverse=True)
    wanted = np.bincount(group, weights=expected)
    if len(wanted) > 1 and wanted[-1] < _EXPECTED:
        group[group == len(wanted) - 1] -= 1
        wanted = np.bincount(group, weights=expected)
    found = np.bincount(group, weights=counts)
    used = best > _NEAR
    merged = np.zeros((int(used.sum()), len(wanted)))
    np.add.at(merged.T, group, chances[used].T)
    freedom = len(wanted) - int(np.linalg.matrix_rank(merged, tol=1e-6))
    if freedom < 1:
        return 1.0
    statistic = float(((found - wanted) ** 2 / np.maximum(wanted, 1e-12)).sum())
    return float(chdtrc(freedom, statistic))
