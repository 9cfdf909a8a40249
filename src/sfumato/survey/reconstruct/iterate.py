"""The iterative Bayes rule on cells [JS07, ch. 4] for many count vectors at once, and when to stop [errata JS07.3].

Reconstruction from counts and a bare matrix of chances, for one count vector or thousands. How long to iterate follows
from how well estimates predict records that they have not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import BadInput, OptionError
from sfumato.core.progress import tell
from sfumato.survey.reconstruct.channel import Channel, Ridge

__all__ = [
    "LIMIT",
    "METHODS",
    "STOPS",
    "ChiSquare",
    "Estimate",
    "Folds",
    "Likelihood",
    "Path",
    "Step",
    "Stop",
    "bayes_step",
    "iterate",
    "log_likelihood",
    "make_stop",
    "reconstruct_counts",
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
    records: Floats
    before: Floats
    after: Floats
    gain: Floats
    """By how much the log-likelihood rose."""


class Stop(Protocol):
    """Says of each row whether the iteration has come far enough."""

    def ends(self, step: Step) -> Bools:
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

    def ends(self, step: Step) -> Bools:
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

    def ends(self, step: Step) -> Bools:
        """Judge one iteration."""
        price = _arrival(self._shares, step.done, step.records)
        smoothed = ~_plenty(self._shares, step.records)
        price[smoothed] = np.maximum(price[smoothed], _PRICE * _used(self._shares, step.done))
        return np.asarray(step.gain <= price)


def _used(shares: Floats, done: int) -> float:
    """Free parameters that the next iteration uses up."""
    return float((shares * (1.0 - shares) ** done).sum())


def _plenty(shares: Floats, records: Floats) -> Bools:
    """Tell for which rows every direction is known so well that nothing need be smoothed."""
    worst = float(shares.min(initial=1.0))
    return np.asarray((worst >= _QUICK) & (records * worst >= _PLENTY * (len(shares) + 1)))


def _arrival(shares: Floats, done: int, records: Floats) -> Floats:
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


@dataclass(frozen=True, eq=False)
class Path:
    """Where the iteration ended, a row for each count vector."""

    probability: Floats
    iterations: Ints
    stopped: Bools
    """Whether the stop ended it; else the limit did."""


def bayes_step(counts: Floats, channel: Channel, pr: Floats, mixed: Floats) -> Floats:
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
    estimate: Floats = pr * channel.unmix(weights) / n
    return np.asarray(estimate / estimate.sum(axis=1, keepdims=True))  # the sum is 1 but for rounding


def log_likelihood(counts: Floats, mixed: Floats) -> Floats:
    """sum_s N(I_s) ln q_s of each row; columns may be scaled, which adds a constant."""
    logs = np.log(mixed, out=np.zeros_like(mixed), where=counts > 0.0)
    return np.asarray((counts * logs).sum(axis=1))


def iterate(counts: Floats, channel: Channel, stop: Stop, *, limit: int = LIMIT) -> Path:
    """Begin uniform and apply Bayes' rule until the stop says that it is enough, row by row.

    Parameters
    ----------
    counts : ndarray of shape (rows, outputs)
        Each row has at least one record, none of them in a column that the matrix does not reach.
    channel : Channel
    stop : Stop
    limit : int
    """
    rows = len(counts)
    pr = np.full((rows, channel.inputs), 1.0 / channel.inputs)
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


METHODS = ("em", "bayes", "direct")
"""The ways by name; from a bare matrix bayes and em are the same."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Probabilities of the cells of the truth, with how they were reached.

    Parameters
    ----------
    probability : ndarray of shape (inputs,) or (rows, inputs)
        Each row is non-negative and adds up to 1. A row without records is uniform: nothing is known.
    iterations : ndarray of shape () or (rows,)
        0 if there was nothing to iterate.
    stopped_by : tuple of str
        For each row ``likelihood``, ``chi-square``, ``limit``, ``penalty`` (direct) or ``start`` (nothing to do).
    """

    probability: Floats
    iterations: Ints
    stopped_by: tuple[str, ...]


def reconstruct_counts(
    counts: ArrayLike,
    matrix: ArrayLike | Channel,
    *,
    stop: str = "likelihood",
    method: str = "em",
    ordered: bool = True,
    limit: int = LIMIT,
) -> Estimate:
    """Estimate the distribution of the truth from counts of what was released.

    Parameters
    ----------
    counts : array of shape (outputs,) or (rows, outputs)
        Several rows are estimated together, each with its own stop; they share the matrix.
    matrix : array of shape (inputs, outputs) or Channel
        Row x holds the chances of the outputs given x. A `Channel` keeps what depends on the matrix alone: make one
        where the matrix is used again.
    stop : str
        ``likelihood`` or ``chi-square``.
    method : str
        ``em`` or ``bayes`` (the iteration; from a matrix they are the same), or ``direct`` (a regularised solution, as
        a comparison; the stop is not used).
    ordered : bool
        Whether neighbouring inputs are alike; for ``direct`` alone.
    limit : int
        Iterations after which it ends in any case.

    Raises
    ------
    BadInput
        For counts that are negative, of another length, or at outputs that the matrix never gives.

    Examples
    --------
    >>> reconstruct_counts([400, 600], [[0.75, 0.25], [0.25, 0.75]]).probability.round(2)
    array([0.3, 0.7])
    """
    channel = matrix if isinstance(matrix, Channel) else Channel.of(matrix)
    table = _check_counts(counts, channel)
    rows = np.atleast_2d(table)
    if method not in METHODS:
        raise OptionError(f"there is no method {method!r}; choose one of {', '.join(METHODS)}")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise OptionError("the limit of iterations must be a whole number above 0")
    probability = np.full((len(rows), channel.inputs), 1.0 / channel.inputs)
    iterations = np.zeros(len(rows), dtype=np.int64)
    ended = np.full(len(rows), "start", dtype=object)
    known = np.flatnonzero(rows.sum(axis=1) > 0) if channel.inputs > 1 else np.zeros(0, dtype=np.int64)
    if len(known) and method == "direct":
        ridge = Ridge.of(channel, ordered=ordered)
        probability[known] = np.stack([ridge.solve(each) for each in rows[known]])
        ended[known] = "penalty"
    elif len(known):
        path = iterate(rows[known], channel, make_stop(stop, channel), limit=limit)
        probability[known], iterations[known] = path.probability, path.iterations
        ended[known] = np.where(path.stopped, stop, "limit")
    if table.ndim == 1:
        return Estimate(probability[0], iterations[0], tuple(ended.tolist()))
    return Estimate(probability, iterations, tuple(ended.tolist()))


def _check_counts(counts: ArrayLike, channel: Channel) -> Floats:
    """Counts as doubles, if the matrix can have given them."""
    try:
        table = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput("counts must be numbers, one for each output; check them") from None
    if table.ndim not in (1, 2) or table.shape[-1] != channel.outputs:
        raise BadInput(f"counts need one number for each of the {channel.outputs} outputs of the matrix; check them")
    if not (np.isfinite(table) & (table >= 0)).all():
        raise BadInput("some counts are negative or no numbers; correct them")
    never = ~(channel.matrix > 0).any(axis=0)
    lost = float(table[..., never].sum())
    if lost:
        raise BadInput(f"{lost:g} records lie at outputs that the noise never gives; check that data and noise fit")
    return table


_FOLDS = 5
_EVEN = 1e-3  # share of the uniform distribution in a prediction, so that none is impossible
_LEAD = 2.0  # in log-likelihood, that the smooth solution must have: it can be far off where records are few
_SIGNIFICANT = 1.5  # standard errors that further iterations must gain
_PATIENCE = 100  # iterations without a gain after which the search ends, or as many as were done before it


@dataclass(frozen=True, eq=False, repr=False)
class Folds:
    """Records dealt into five parts by chance, each of which is predicted from the other four.

    Parameters
    ----------
    parts, others : ndarray of shape (5, outputs)
        Counts of each part, and of the other four together.
    channel : Channel
    """

    parts: Floats
    others: Floats
    channel: Channel

    @classmethod
    def of(cls, counts: Floats, channel: Channel) -> Self | None:
        """Deal the records, the same way whenever the counts are the same; None if a part would be empty."""
        rng = np.random.default_rng(20070501)  # nothing private: it decides which counts are predicted from which
        left: Ints = counts.astype(np.int64)
        dealt = []
        for still in range(_FOLDS, 0, -1):
            part = rng.binomial(left, 1.0 / still)
            dealt.append(part.astype(np.float64))
            left = left - part
        parts = np.array(dealt)
        others = counts - parts
        if min(parts.sum(axis=1).min(), others.sum(axis=1).min()) < 1.0:
            return None
        return cls(parts, others, channel)

    def iterate(self, done: int, limit: int) -> tuple[int, Floats]:
        """How many iterations to make, ``done`` or more, and the estimates from the other parts after as many.

        More than ``done`` are worth it if the records held out become likelier by 1.5 standard errors of that gain.
        """
        channel = self.channel
        pr = np.full((_FOLDS, channel.inputs), 1.0 / channel.inputs)
        mixed = channel.mix(pr)
        for _ in range(done):
            pr = bayes_step(self.others, channel, pr, mixed)
            mixed = channel.mix(pr)
        first, base = pr, mixed
        best, highest, error, chosen = done, 0.0, 0.0, pr
        last = done
        while last < limit and last < best + max(done, _PATIENCE):
            pr = bayes_step(self.others, channel, pr, mixed)
            mixed = channel.mix(pr)
            last += 1
            gain, deviation = self._gain(base, mixed)
            if gain > highest:
                best, highest, error, chosen = last, gain, deviation, pr
        return (best, chosen) if highest > _SIGNIFICANT * error else (done, first)

    def prefer_direct(self, ridge: Ridge, iterated: Floats, *, ordered: bool) -> bool:
        """Whether the direct solution predicts the parts better than the iterated estimates do.

        It must be ahead by 2 in log-likelihood, all parts together; of labels, which have no neighbours to be drawn
        to, it must only be ahead.
        """
        direct = np.stack([ridge.solve(each) for each in self.others])
        return self._height(direct) > self._height(iterated) + (_LEAD if ordered else 0.0)

    def _gain(self, before: Floats, after: Floats) -> tuple[float, float]:
        """By how much the parts became likelier, and the standard error of that."""
        seen = self.parts > 0.0
        ratios = np.divide(after, before, out=np.ones_like(after), where=seen & (before > 0.0))
        logs = np.log(ratios, out=np.full_like(ratios, -np.inf), where=ratios > 0.0)
        logs[~seen] = 0.0
        gain, records = float((self.parts * logs).sum()), self.parts.sum()
        if not np.isfinite(gain):
            return -np.inf, 0.0
        return gain, float(np.sqrt(max((self.parts * logs**2).sum() - gain**2 / records, 0.0)))

    def _height(self, probability: Floats) -> float:
        even = (1.0 - _EVEN) * probability + _EVEN / self.channel.inputs
        logs = np.log(even @ self.channel.chances, out=np.zeros_like(self.parts), where=self.parts > 0.0)
        return float((self.parts * logs).sum())
