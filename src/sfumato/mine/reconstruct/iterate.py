"""The iterative Bayes rule on cells [JS07, ch. 4] for many count vectors at once, and when to stop [errata JS07.3]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.progress import tell
from sfumato.mine.reconstruct.channel import Channel

__all__ = [
    "LIMIT",
    "STOPS",
    "ChiSquare",
    "Likelihood",
    "Path",
    "Step",
    "Stop",
    "bayes_step",
    "iterate",
    "log_likelihood",
    "make_stop",
]

STOPS = ("likelihood", "chi-square")
"""The stops by name."""

_SHARE = 0.01  # of the threshold [JS07, ch. 4]
_LEVEL = 0.95
_PRICE = 1.5  # of a free parameter, in log-likelihood: Akaike's, with the correction for mixtures [Bozdogan 1993]
_SPENT = 0.01  # free parameters an iteration uses when there are hardly any left
_PACE = 0.5
_PLENTY = 10.0  # plain records for each cell, from which nothing need be smoothed
_QUICK = 0.01  # share from which the maximum is near enough to go there
_CLOSE = 0.0025  # of a share: what is left to gain is then a twentieth of the sampling deviation


@dataclass(frozen=True, eq=False)
class Step:
    """What one iteration did, a row for each count vector."""

    done: int
    """Iterations before this one."""
    records: NDArray[np.float64]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    gain: NDArray[np.float64]
    """By how much the log-likelihood rose."""


class Stop(Protocol):
    """Says of each row whether the iteration has come far enough."""

    def ends(self, step: Step) -> NDArray[np.bool_]:
        """Judge one iteration."""
        ...


class ChiSquare:
    """Stop when successive estimates differ by 1 % of the threshold of the chi-square test [JS07, ch. 4].

    The statistic is n sum_p (Pr'_p - Pr_p)^2 / Pr_p, the threshold that of m - 1 degrees of freedom at 5 %. So it
    depends on the number of intervals m and on n: with more records it goes on longer, with more intervals it stops
    sooner. It measures how fast the estimate moves, not how far it has to go: under wide noise it stops early.
    """

    def __init__(self, inputs: int) -> None:
        from scipy.stats import chi2

        self.threshold = _SHARE * float(chi2.ppf(_LEVEL, max(inputs - 1, 1)))

    def ends(self, step: Step) -> NDArray[np.bool_]:
        """Judge one iteration."""
        moved = (step.after - step.before) ** 2
        parts = np.divide(moved, step.before, out=np.zeros_like(moved), where=step.before > 0.0)
        return np.asarray(step.records * parts.sum(axis=1) <= self.threshold)


class Likelihood:
    """Stop when an iteration gains no more than sampling noise would give it.

    EM closes the gap to the maximum of the likelihood in direction j by the share l_j at each iteration
    (`Channel.shares`), so after t iterations it has used sum_j 1 - (1 - l_j)^t free parameters. A parameter must gain
    1.5 in log-likelihood (AIC3, which is for mixtures): iteration t + 1 is worth it while it gains more than the price
    of the sum_j l_j (1 - l_j)^t that it uses up. Once these are spent, it also ends when as many iterations again, at
    this pace, would gain less than 0.5 together: it has arrived.

    Nothing is smoothed where there is plenty: where the worst direction lets 1 % or more through and the records tell
    as much about it as ten plain ones for each cell, it goes on to the maximum of the likelihood.

    Notes
    -----
    The shares are those at the uniform start. Where the truth is concentrated they overstate the freedom, and the
    iteration ends a little early.
    """

    def __init__(self, channel: Channel) -> None:
        self._shares = channel.shares

    def ends(self, step: Step) -> NDArray[np.bool_]:
        """Judge one iteration."""
        price = _arrival(self._shares, step.done, step.records)
        smoothed = ~_plenty(self._shares, step.records)
        price[smoothed] = np.maximum(price[smoothed], _PRICE * _used(self._shares, step.done))
        return np.asarray(step.gain <= price)


def _used(shares: NDArray[np.float64], done: int) -> float:
    """Free parameters that the next iteration uses up."""
    return float((shares * (1.0 - shares) ** done).sum())


def _plenty(shares: NDArray[np.float64], records: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell for which rows every direction is known so well that nothing need be smoothed."""
    worst = float(shares.min(initial=1.0))
    return np.asarray((worst >= _QUICK) & (records * worst >= _PLENTY * (len(shares) + 1)))


def _arrival(shares: NDArray[np.float64], done: int, records: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gain at which the iteration of each row has arrived; below 0 while it still uses up parameters."""
    pace = -1.0 if _used(shares, done) > _SPENT else _PACE / (done + 1)
    return np.where(_plenty(shares, records), _CLOSE * shares.min(initial=1.0), pace)


def make_stop(name: str, channel: Channel) -> Stop:
    """Stop of a name.

    Raises
    ------
    OptionError
        For an unknown name.
    """
    if name == "likelihood":
        return Likelihood(channel)
    if name == "chi-square":
        return ChiSquare(channel.inputs)
    raise OptionError(f"there is no stop {name!r}; choose one of {', '.join(STOPS)}")


LIMIT = 5000
"""Iterations after which it ends in any case."""

_Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Path:
    """Where the iteration ended, a row for each count vector."""

    probability: _Matrix
    iterations: NDArray[np.int64]
    stopped: NDArray[np.bool_]
    """Whether the stop ended it; else the limit did."""


def bayes_step(counts: _Matrix, channel: Channel, pr: _Matrix, mixed: _Matrix) -> _Matrix:
    """Apply Bayes' rule once, to every row.

    Implements [JS07, ch. 4], with a(p, s) = f_Y(m(I_s) - m(I_p)) or, for EM, the chance of I_s given I_p::

        Pr'(X in I_p) = 1/n sum_s N(I_s) a(p, s) Pr(X in I_p) / sum_t a(t, s) Pr(X in I_t)

    Parameters
    ----------
    counts : ndarray of shape (rows, k)
        N(I_s).
    channel : Channel
        Its matrix is a, of shape (m, k).
    pr : ndarray of shape (rows, m)
        Pr(X in I_p).
    mixed : ndarray of shape (rows, k)
        The denominators, pr times the matrix.

    Notes
    -----
    Cost O(m k) a row; memory that of the matrix. An empty cell says nothing, whatever its denominator.
    """
    n = counts.sum(axis=1, keepdims=True)
    weights = np.divide(counts, mixed, out=np.zeros_like(mixed), where=counts > 0.0)
    estimate: _Matrix = pr * channel.unmix(weights) / n
    return np.asarray(estimate / estimate.sum(axis=1, keepdims=True))  # the sum is 1 but for rounding


def log_likelihood(counts: _Matrix, mixed: _Matrix) -> NDArray[np.float64]:
    """sum_s N(I_s) ln q_s of each row; columns may be scaled, which adds a constant."""
    logs = np.log(mixed, out=np.zeros_like(mixed), where=counts > 0.0)
    return np.asarray((counts * logs).sum(axis=1))


def iterate(counts: _Matrix, channel: Channel, stop: Stop, *, limit: int = LIMIT, start: _Matrix | None = None) -> Path:
    """Begin uniform and apply Bayes' rule until the stop says that it is enough, row by row.

    Parameters
    ----------
    counts : ndarray of shape (rows, outputs)
        Each row has at least one record, none of them in a column that the matrix does not reach.
    channel : Channel
    stop : Stop
    limit : int
    start : ndarray of shape (rows, inputs), optional
        In place of the uniform distribution.
    """
    rows = len(counts)
    pr = np.full((rows, channel.inputs), 1.0 / channel.inputs) if start is None else start.copy()
    path = Path(pr.copy(), np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.bool_))
    left = np.arange(rows)
    mixed = channel.mix(pr)
    height = log_likelihood(counts, mixed)
    for done in range(limit):
        if not len(left):
            break
        after = bayes_step(counts, channel, pr, mixed)
        mixed = channel.mix(after)
        higher = log_likelihood(counts, mixed)
        ended = stop.ends(Step(done, counts.sum(axis=1), pr, after, higher - height))
        path.probability[left], path.iterations[left], path.stopped[left] = after, done + 1, ended
        stay = ~ended
        pr, height = after, higher
        if ended.any():
            left, counts, pr, mixed, height = left[stay], counts[stay], pr[stay], mixed[stay], height[stay]
        if done % 64 == 63:
            tell("reconstruct", 1.0 - len(left) / rows)
    return path
