"""How much released records tell: bands around a reconstruction, and what the records are worth in plain ones.

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

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import OptionError, TooFew
from sfumato.core.progress import tell
from sfumato.survey.reconstruct.channel import Channel, shares_let_through

__all__ = [
    "LEAST",
    "Admissible",
    "Bands",
    "Plain",
    "cell_bands",
    "effective_records",
    "refuse_too_few",
    "refuse_worthless",
    "resolved_directions",
]

_MOST = 100  # inputs whose ranges are followed one by one
_MANY_ALIKE = 100  # inputs of a law that tells all of them alike, from which their own counts are enough
_ALIKE = 0.02  # least share of information over the largest, for a law to tell all alike
_OUTPUTS = 256
_FINEST = 400  # inputs that a fit is judged with


@dataclass(frozen=True, eq=False)
class Bands:
    """Where the probability of each cell may lie; not-a-number where nothing can be said.

    Parameters
    ----------
    lower, upper : ndarray of shape (cells,)
    fit : float
        P-value of the counts under the distribution that fits them best.
    known : Admissible or Plain
        What is known of the probabilities of ``blocks``.
    blocks : ndarray of int
        First input of each block.
    """

    lower: Floats
    upper: Floats
    fit: float
    known: Admissible | Plain
    blocks: Ints


def cell_bands(counts: Floats, channel: Channel, begins: Ints, level: float, *, most: int = _MOST) -> Bands:
    """Band of each cell, which holds its true probability at the level whatever the distribution is.

    Parameters
    ----------
    counts : ndarray of shape (outputs,)
    channel : Channel
    begins : ndarray of int
        First input of each cell.
    level : float
    most : int
        Inputs beyond which neighbours are taken together.

    Notes
    -----
    The range over all distributions that fit [`Admissible`]. Of more inputs than ``most`` neighbours are joined: no
    cell has more than its block. Where a law tells many inputs all alike (keep-or-replace) each is known from its own
    count, and the plain solution with its deviation is the band.
    """
    shares = channel.shares
    alike = bool(len(shares) and shares[-1] >= _ALIKE * shares[0])
    single = np.arange(channel.inputs)
    if alike and len(shares) >= _MANY_ALIKE:
        plain = Plain.of(counts, channel.chances, level)
        return _bands(plain.ranges(begins), plain.fit, plain, single)
    blocks = _blocks(begins, channel.inputs, most)
    chances, seen = _merge(channel.chances, counts, blocks)
    admissible = Admissible.of(seen, chances, level)
    found, fit = _ranges(admissible, begins, blocks, channel.inputs), admissible.fit
    if alike:
        return _bands(found, fit, Plain.of(counts, channel.chances, level), single)
    if len(blocks) < channel.inputs <= _FINEST:  # a law is not to be doubted for what is coarse here
        fit = Admissible.of(*_merge(channel.chances, counts, single)[::-1], level).fit
    return _bands(found, fit, admissible, blocks)


def _bands(found: tuple[Floats, Floats], fit: float, known: Admissible | Plain, blocks: Ints) -> Bands:
    lower, upper = (np.clip(each, 0.0, 1.0) for each in found)
    return Bands(lower, upper, fit, known, blocks)


def _blocks(begins: Ints, inputs: int, most: int) -> Ints:
    """First input of each block: single inputs, or runs of neighbours for the given number of blocks."""
    if inputs <= most:
        return np.arange(inputs)
    if len(begins) <= most and len(begins) < inputs:  # parts of cells are joined, and cells are not
        ends = np.r_[begins[1:], inputs]
        each = max(most // len(begins), 1)
        return np.concatenate(
            [
                np.unique(np.linspace(a, b, each, endpoint=False).astype(np.int64))
                for a, b in zip(begins, ends, strict=True)
            ]
        )
    return np.arange(0, inputs, -(-inputs // most))


def _merge(chances: Floats, counts: Floats, blocks: Ints) -> tuple[Floats, Floats]:
    """Chances and counts with inputs joined to blocks and neighbouring outputs joined where they are many."""
    inputs, outputs = chances.shape
    if len(blocks) < inputs:
        sizes = np.diff(np.r_[blocks, inputs])
        chances = np.add.reduceat(chances, blocks, axis=0) / sizes[:, None]
    if outputs > _OUTPUTS:
        first = np.arange(0, outputs, -(-outputs // _OUTPUTS))
        return np.add.reduceat(chances, first, axis=1), np.add.reduceat(counts, first)
    return chances, counts


def _ranges(admissible: Admissible, begins: Ints, blocks: Ints, inputs: int) -> tuple[Floats, Floats]:
    """Range of each cell; of a cell that shares its block with others, from nothing to the block's largest."""
    cells = len(begins)
    ends = np.r_[begins[1:], inputs]
    last = np.r_[blocks[1:], inputs]
    lower, upper = np.zeros(cells), np.full(cells, np.nan)
    known: dict[tuple[int, int], tuple[float, float] | None] = {}
    for cell, (start, end) in enumerate(zip(begins, ends, strict=True)):
        first, past = int(np.searchsorted(blocks, start, side="right")) - 1, int(np.searchsorted(blocks, end))
        if (first, past) not in known:
            weights = np.zeros(len(blocks))
            weights[first:past] = 1.0
            known[first, past] = admissible.range(weights)
        found = known[first, past]
        if found is None:
            lower[cell] = np.nan
            continue
        whole = blocks[first] == start and last[past - 1] == end
        lower[cell], upper[cell] = (found[0] if whole else 0.0), found[1]
        tell("bands", (cell + 1) / cells)
    return lower, upper


LEAST = 30.0
"""Plain records that the coarsest feature must be known as well as from."""


def effective_records(channel: Channel, probability: Floats, records: int) -> float:
    """Number of plain records that would tell the distribution as precisely.

    In direction j the n released records tell what n l_j plain ones would (`shares_let_through`); the number is the
    mean over the directions, so the Fisher information is that of this number of plain records. Where the noise
    treats all directions alike (randomized response among equally likely answers) it is exact in each of them. Else
    coarse features are known better than it says, fine ones worse; `resolved_directions` counts those known at all.

    The distribution is the estimate with one record added to every cell. Without noise it is n.
    """
    cells = channel.inputs
    if cells == 1 or not records:
        return float(records)
    smoothed = (records * probability + 1.0) / (records + cells)
    shares = shares_let_through(channel.chances, smoothed)
    return float(records * shares.mean())


def resolved_directions(channel: Channel, records: int) -> int:
    """Count the directions in which the records tell as much as one plain record or more."""
    return int((channel.shares * records >= 1.0).sum())


def _records_needed(channel: Channel, least: float = LEAST) -> float:
    """How many records must be released for the coarsest feature to be known as from ``least`` plain ones.

    Infinite where the noise lets nothing through.
    """
    best = float(channel.shares[0]) if channel.inputs > 1 else 1.0
    return math.inf if best <= 1e-12 else float(math.ceil(least / best - 1e-9))


def check_precision(bands: float, least: float) -> None:
    """Refuse a level of bands that is no probability, and a number of plain records that is none."""
    if isinstance(bands, bool) or not 0 < bands < 1:
        raise OptionError("the level of bands must lie between 0 and 1")
    if isinstance(least, bool) or not 0 <= least < float("inf"):
        raise OptionError("the least number of plain records must be 0 or more")


def refuse_too_few(channel: Channel, records: int, least: float) -> None:
    """Refuse where even the coarsest feature would be guesswork.

    The coarsest feature is the direction that the noise lets through best, in practice: are people in the lower or
    the upper part of the domain. Known as from 30 plain records, a half is known to 9 points (one standard
    deviation).

    Raises
    ------
    TooFew
        With the number that would be needed.
    """
    if not records:
        raise TooFew("0 records are too few: there is nothing to reconstruct from; collect some")
    needed = _records_needed(channel, least)
    if records >= needed:
        return
    if math.isinf(needed):
        raise TooFew("this noise carries no information, so no number of records is enough; use a weaker noise")
    raise TooFew(
        f"{records} records are too few for this noise: at least {needed:.0f} are needed to resolve the coarsest "
        f"feature of the distribution as well as {least:g} plain records would; collect more, or use a weaker noise"
    )


_WORTH = 2.0  # plain records, below which even the mean over all directions is guesswork


def refuse_worthless(worth: float, records: int, cells: int, least: float) -> None:
    """Refuse where the records are worth hardly any plain one at this number of cells.

    Raises
    ------
    TooFew
        With what they are worth.
    """
    if least and cells > 2 and worth < _WORTH:
        raise TooFew(
            f"{records} records are too few to tell {cells} cells under this noise: they are worth about {worth:.1g} "
            "without noise; ask for fewer intervals, collect more, or use a weaker noise"
        )


_TOTAL = 1000.0  # times the square root of n: how firmly probabilities add up to 1
_RIDGE = 1e-10  # of the mean diagonal: keeps a pair of like columns apart
_TURNS = 12  # for each input: pivots after which a range is given up
_NEAR = 1e-10
_EXPECTED = 5.0  # records that a cell of a chi-square test should have


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

    gram: Floats
    slope: Floats
    best: Floats
    radius: float
    fit: float

    @classmethod
    def of(cls, counts: Floats, chances: Floats, level: float) -> Self:
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

    def range(self, weights: Floats) -> tuple[float, float] | None:
        """Least and largest weighted sum of the probabilities; None if it could not be found."""
        low, high = self._least(weights), self._least(-weights)
        return None if low is None or high is None else (low, -high)

    def _least(self, weights: Floats) -> float | None:
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
    """The plain solution with its covariance: for laws that tell every input alike, if nothing else is needed.

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

    middle: Floats
    covariance: Floats
    radius: float
    fit: float

    @classmethod
    def of(cls, counts: Floats, chances: Floats, level: float) -> Self:
        """Solution of one count vector; cost O(m^3)."""
        from scipy.special import chdtrc, gammaincc, ndtri

        radius = float(ndtri((1.0 + level) / 2.0)) ** 2
        spread = np.sqrt(counts + radius)
        scaled = chances * (counts.sum() / spread)
        covariance = np.linalg.inv(scaled @ scaled.T)
        middle = covariance @ (scaled @ (counts / spread))
        inputs, outputs = chances.shape
        # if no one had any value, half of the inputs would be below 0: mean 1/2 and variance 5/4 of a squared deviation
        below = float((np.minimum(middle, 0.0) ** 2 / np.diag(covariance)).sum())
        fit = float(gammaincc(inputs / 5.0, below / 2.5))
        if outputs > inputs:
            left = counts - counts.sum() * middle @ chances
            fit = min(1.0, 2.0 * min(fit, float(chdtrc(outputs - inputs, float((left**2 / (counts + radius)).sum())))))
        return cls(middle, covariance, radius, fit)

    def range(self, weights: Floats) -> tuple[float, float]:
        """Where a weighted sum of the probabilities may lie."""
        middle = float(weights @ self.middle)
        reach = math.sqrt(self.radius * float(weights @ self.covariance @ weights))
        return middle - reach, middle + reach

    def ranges(self, begins: Ints) -> tuple[Floats, Floats]:
        """Where the sums over cells of neighbouring inputs may lie."""
        middle = np.add.reduceat(self.middle, begins)
        summed = np.add.reduceat(np.add.reduceat(self.covariance, begins, axis=0), begins, axis=1)
        reach = np.sqrt(self.radius * np.diag(summed))
        return middle - reach, middle + reach


def _line(columns: Floats, support: list[int], slope: Floats, weights: Floats) -> tuple[Floats, ...]:
    """Probabilities of a support that make chi-square + 2 t weights' p least, adding up to 1, and prices.

    Both are straight lines in t: the first less t times the second, the third less t times the fourth.
    """
    many = len(support)
    system = np.ones((many + 1, many + 1))
    system[:many, :many], system[many, many] = columns[support], 0.0
    right = np.zeros((many + 1, 2))
    right[:many, 0], right[:many, 1], right[many, 0] = slope[support], weights[support], 1.0
    solution: Floats = np.asarray(np.linalg.solve(system, right).T, dtype=np.float64)
    at, along = solution[0, :many], solution[1, :many]
    level, fall = columns @ at - slope + solution[0, many], columns @ along - weights + solution[1, many]
    return at, along, level, fall


def _first(level: Floats, fall: Floats, now: float) -> tuple[float, int]:
    """When and where level - t fall first reaches 0 after now."""
    when = np.full(len(level), np.inf)
    np.divide(level, fall, out=when, where=fall > _NEAR * max(1.0, np.abs(fall).max()))
    where = int(when.argmin())
    return max(float(when[where]), now), where


def _fit(counts: Floats, chances: Floats, best: Floats) -> float:
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
