"""Randomization operators of values and of transactions, with known probabilities [JS07, sec. 3].

Value-class membership: the interval, the rounded value or the parent is sent, not the value [JS07, sec. 3.2.2].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.domains import Dates, Integers, Labels, Reals
from sfumato.core.distributions.finite import KeepOrReplace, Mixture, Operator, Response, ShiftModulo
from sfumato.core.distributions.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteUniform,
    Law,
    check_codes,
    check_outputs,
    exact,
    rational,
)
from sfumato.core.errors import OptionError, TableError
from sfumato.core.itemsets import Transactions, are_within

__all__ = [
    "MOST_SIZE",
    "OPERATORS",
    "Additive",
    "KeepOrReplace",
    "Membership",
    "Mixture",
    "Operator",
    "OperatorName",
    "Response",
    "ShiftModulo",
    "TransactionOperator",
    "hypergeometric",
    "interval_classes",
    "likelihoods",
    "parent_classes",
    "rounding_classes",
    "transition",
]

_MOST = 5_000_000  # places, whose classes are listed one by one


def interval_classes(domain: Integers | Reals, edges: Sequence[Any]) -> tuple[tuple[int, ...], Labels]:
    """Interval of each code, and the intervals' names; an interval includes its lower edge only.

    The ends of the domain may be among the edges or left out.

    Examples
    --------
    >>> interval_classes(Integers(0, 5), [2, 4])
    ((0, 0, 1, 1, 2, 2), Labels(values=('0..1', '2..3', '4..5')))
    >>> interval_classes(Reals(0.0, 2.0, 0.5), [0, 1, 2])
    ((0, 0, 1, 1, 1), Labels(values=('[0, 1)', '[1, 2]')))
    >>> interval_classes(Dates("2020-01-01", "2020-01-03", "day"), ["2020-01-02"])
    ((0, 1, 1), Labels(values=('2020-01-01..2020-01-01', '2020-01-02..2020-01-03')))
    """
    _check_size(domain.size)
    low, high = exact(domain.low), exact(domain.high)
    cuts = [exact(edge) for edge in _counted(domain, edges)]
    if any(a >= b for a, b in pairwise(cuts)) or any(not low <= cut <= high for cut in cuts):
        raise OptionError("edges of intervals must rise and lie inside the domain; correct the list")
    cuts = [cut for cut in cuts if low < cut < high]
    if isinstance(domain, Integers) and any(cut.denominator != 1 for cut in cuts):
        raise OptionError("edges of intervals of whole numbers must be whole numbers")
    first = [int(-((low - cut) // exact(domain.step))) for cut in cuts]  # the first place at or above the cut
    starts = [0, *first]
    if any(a >= b for a, b in pairwise([*starts, domain.size])) or len(starts) < 2:
        raise OptionError("edges must cut the domain into two or more intervals, each with a place of the grid")
    cells = np.repeat(np.arange(len(starts)), np.diff([*starts, domain.size]))
    return tuple(cells.tolist()), Labels(tuple(_interval_names(domain, [low, *cuts, high])))


def rounding_classes(domain: Integers | Reals, to: float) -> tuple[tuple[int, ...], Integers | Reals]:
    """Class of each code when values are rounded half up to a multiple of ``to``, and the multiples.

    Examples
    --------
    >>> rounding_classes(Integers(0, 6), 5)
    ((0, 0, 0, 1, 1, 1, 1), Reals(low=0.0, high=5.0, grid=5.0))
    """
    _check_size(domain.size)
    low, step, unit = exact(domain.low), exact(domain.step), exact(to)
    if unit <= step:
        raise OptionError("rounding must be to more than one step of the domain, else it changes nothing")
    whole = low.denominator * step.denominator * unit.denominator  # all three are whole numbers of 1/whole
    a, s, u = (int(number * whole) for number in (low, step, unit))
    if max(abs(a), s * domain.size, u) >= 2**60:
        raise OptionError("the numbers of rounding are out of proportion; choose a coarser grid")
    multiples = (2 * (a + s * np.arange(domain.size, dtype=np.int64)) + u) // (2 * u)
    first, last = int(multiples[0]), int(multiples[-1])
    if first == last:
        raise OptionError("rounding makes all values of the domain one; round to less")
    if set(np.diff(multiples).tolist()) - {0, 1}:
        raise OptionError("some multiples would never be sent; round to a whole number of steps")
    released: Integers | Reals = Reals(float(first * unit), float(last * unit), float(unit))
    return tuple((multiples - first).tolist()), released


def parent_classes(domain: Labels, parents: Mapping[str, str]) -> tuple[tuple[int, ...], Labels]:
    """Parent of each label, and the parents in order of first occurrence.

    Examples
    --------
    >>> parent_classes(Labels(("flu", "cold", "burn")), {"flu": "illness", "cold": "illness", "burn": "injury"})
    ((0, 0, 1), Labels(values=('illness', 'injury')))
    """
    missing = sum(1 for label in domain.values if label not in parents)
    if missing or len(parents) != domain.size:
        count = missing or len(parents) - domain.size
        raise OptionError(f"{count} labels of taxonomy and domain do not match; name each label once")
    names = tuple(dict.fromkeys(parents[label] for label in domain.values))
    if len(names) < 2:
        raise OptionError("a taxonomy with one parent releases no information; give it two or more")
    place = {name: index for index, name in enumerate(names)}
    return tuple(place[parents[label]] for label in domain.values), Labels(names)


def _counted(domain: Integers | Reals, edges: Sequence[Any]) -> list[Any]:
    """Edges as numbers; those of dates are counts."""
    if isinstance(domain, Dates):
        if not all(isinstance(edge, str) for edge in edges):
            raise OptionError("edges of intervals of dates are dates such as 2020-01-31; write them so")
        return [domain.count(edge) for edge in edges]
    if any(isinstance(edge, str) for edge in edges):
        raise OptionError("edges of intervals of numbers must be numbers; correct the list")
    return list(edges)


def _interval_names(domain: Integers | Reals, edges: list[Fraction]) -> list[str]:
    if isinstance(domain, Integers):
        ends = [*(edge - 1 for edge in edges[1:-1]), edges[-1]]
        if isinstance(domain, Dates):
            first, last = (domain.written([int(edge) - domain.low for edge in each]) for each in (edges[:-1], ends))
            return [f"{start}..{end}" for start, end in zip(first, last, strict=True)]
        return [f"{start}..{end}" for start, end in zip(edges, ends, strict=False)]
    names = [f"[{float(start):g}, {float(end):g})" for start, end in pairwise(edges)]
    return [*names[:-1], names[-1][:-1] + "]"]


def _check_size(size: int) -> None:
    if size > _MOST:
        raise OptionError(f"classes are listed for at most {_MOST:,} values; choose a coarser grid")


@dataclass(frozen=True)
class Membership:
    """Each value is sent as its class; nothing is random.

    Parameters
    ----------
    size : int
    cells : tuple of int
        Class of each place, 0, 1, ..., each one in use.

    Examples
    --------
    >>> Membership(4, (0, 0, 1, 1)).probabilities([1])
    array([[0., 0., 1., 1.]])
    """

    wraps: ClassVar[bool] = False  # no: nothing moves

    size: int
    cells: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", tuple(self.cells))
        if len(self.cells) != self.size or self.size < 2:
            raise OptionError("membership needs the class of each value of the domain")
        if set(self.cells) != set(range(max(self.cells) + 1)):
            raise OptionError("the classes of a membership are counted 0, 1, 2, ... and each holds a value")

    @property
    def outputs(self) -> range:
        """All classes."""
        return range(max(self.cells) + 1)

    @property
    def gamma(self) -> float:
        """Infinite: a class excludes the values of all others."""
        return math.inf if len(self.outputs) > 1 else 1.0

    @property
    def epsilon(self) -> float:
        """The logarithm of gamma."""
        return math.log(self.gamma)

    @cached_property
    def _classes(self) -> Ints:
        return np.array(self.cells, dtype=np.int64)

    def randomize(self, codes: Ints, rng: np.random.Generator) -> Ints:  # noqa: ARG002
        """Class of each input; the generator is not used."""
        return np.asarray(self._classes[check_codes(codes, self.size)])

    def probabilities(self, outputs: Ints) -> Floats:
        """P[output | input], a row for each output."""
        y = check_outputs(outputs, self.outputs)
        return np.asarray(y[:, None] == self._classes, dtype=np.float64)


_LARGEST_EXPONENT = 709.0  # of e, in a double


@dataclass(frozen=True)
class Additive:
    """The code plus integer noise; outputs may lie beyond the ends of the domain.

    Laplace noise bounds what an output tells: gamma is e^(range / scale), with the range of the *declared* domain.
    Gaussian noise does not (far out one input is any number of times likelier than another), and bounded noise proves
    facts [errata JS07.4].

    Parameters
    ----------
    size : int
    law : DiscreteLaplace, DiscreteGaussian or DiscreteUniform
        With a step of 1 place.

    Examples
    --------
    >>> Additive(101, DiscreteLaplace(50.0)).epsilon
    2.0
    >>> Additive(101, DiscreteUniform(50.0)).outputs
    range(-50, 151)
    """

    wraps: ClassVar[bool] = False  # no: outputs go on beyond the ends

    size: int
    law: Law

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 2:
            raise OptionError("an operator needs a domain of at least two values")
        if self.law.step != 1:
            raise OptionError("noise on the places of a domain has a step of 1; give its size in places")

    @property
    def outputs(self) -> range | None:
        """All outputs; None if there are infinitely many."""
        if not isinstance(self.law, DiscreteUniform):
            return None
        return range(-self.law.steps, self.size + self.law.steps)

    @property
    def gamma(self) -> float:
        """Amplification: largest ratio of the probabilities of one output under two inputs."""
        return math.exp(self.epsilon) if self.epsilon <= _LARGEST_EXPONENT else math.inf

    @property
    def epsilon(self) -> float:
        """Local differential privacy: for Laplace noise range / scale, else infinite."""
        return (self.size - 1) * self._decay if isinstance(self.law, DiscreteLaplace) else math.inf

    @property
    def _decay(self) -> float:
        """Log ratio of neighbouring probabilities under Laplace noise, as an exact fraction."""
        return 1.0 / float(rational(self.law.scale)) if isinstance(self.law, DiscreteLaplace) else 0.0

    def randomize(self, codes: Ints, rng: np.random.Generator) -> Ints:
        """Draw an output for each input."""
        x = check_codes(codes, self.size)
        return np.asarray(x + self.law.draw(x.shape, rng), dtype=np.int64)

    def probabilities(self, outputs: Ints) -> Floats:
        """P[output | input], a row for each output."""
        return self.law.pmf(self._noise(outputs))

    def likelihoods(self, outputs: Ints) -> Floats:
        """Rows proportional to P[output | input], scaled to a maximum of 1 so that they do not underflow."""
        k = np.abs(self._noise(outputs)).astype(np.float64)
        nearest = k.min(axis=1, keepdims=True)
        if isinstance(self.law, DiscreteLaplace):
            return np.asarray(np.exp((nearest - k) * self._decay))
        if isinstance(self.law, DiscreteGaussian):
            return np.asarray(np.exp((nearest - k) * (nearest + k) / (2.0 * self.law.sd**2)))
        return np.where(k <= self.law.steps, 1.0, 0.0)

    def _noise(self, outputs: Ints) -> Ints:
        y = np.asarray(outputs, dtype=np.int64) if self.outputs is None else check_outputs(outputs, self.outputs)
        return np.asarray(y[:, None] - np.arange(self.size))


def transition(operator: Operator) -> Floats:
    """Matrix of all probabilities, a row for each input and a column for each output.

    Examples
    --------
    >>> transition(KeepOrReplace(3, 0.5))
    array([[0.5 , 0.25, 0.25],
           [0.25, 0.5 , 0.25],
           [0.25, 0.25, 0.5 ]])
    """
    if operator.outputs is None:
        raise OptionError("there is no end to the outputs of this noise, so it has no matrix; ask for single outputs")
    return np.ascontiguousarray(operator.probabilities(np.arange(operator.outputs.start, operator.outputs.stop)).T)


def likelihoods(operator: Operator, outputs: Ints) -> Floats:
    """Rows proportional to P[output | input], scaled to a maximum of 1 so that none underflows."""
    if isinstance(operator, Additive):
        return operator.likelihoods(outputs)
    rows = operator.probabilities(outputs)
    largest = rows.max(axis=1, keepdims=True)
    return np.asarray(rows / np.where(largest > 0, largest, 1.0))


OperatorName = Literal["flip", "uniform", "cut-and-paste", "select-a-size"]
OPERATORS: tuple[str, ...] = get_args(OperatorName)
MOST_SIZE = 5_000
"""Items of a transaction of shown size."""

_SINGULAR = 1e10  # condition of a transition from which on rounding would be taken for data
_AT_ONCE = 4_000_000  # entries that are drawn at once
_PARAMETERS = {
    "flip": ("keep", "insert"),
    "uniform": ("keep",),
    "cut-and-paste": ("cutoff", "insert"),
    "select-a-size": ("gamma", "insert"),
}


@dataclass(frozen=True)
class TransactionOperator:
    """One way to randomize transactions over the given number of different items.

    Parameters
    ----------
    name : {"flip", "uniform", "cut-and-paste", "select-a-size"}
    width : int
        Items that there are; any of them may come into a transaction.
    keep : float, optional
        flip, uniform: chance that an item of the transaction stays.
    insert : float, optional
        Chance that an item which is not in the transaction comes in; for uniform as many come in as went.
    cutoff : int, optional
        cut-and-paste: most items that are cut out of the transaction on purpose.
    gamma : float, optional
        select-a-size: amplification, the most by which odds between two transactions of one size may change [EGS03].
    """

    name: OperatorName
    width: int
    keep: float | None = None
    insert: float | None = None
    cutoff: int | None = None
    gamma: float | None = None

    def __post_init__(self) -> None:
        if self.name not in _PARAMETERS:
            raise OptionError(f"there is no such operator; choose one of {', '.join(OPERATORS)}")
        for field in ("keep", "insert", "cutoff", "gamma"):
            if (getattr(self, field) is None) == (field in _PARAMETERS[self.name]):
                needs = " and ".join(f"--{word}" for word in _PARAMETERS[self.name])
                raise OptionError(f"the operator {self.name!r} takes {needs} and nothing else; check the options")
        for field in ("keep", "insert"):
            chance = getattr(self, field)
            if chance is not None and not 0 < chance < 1:
                raise OptionError(f"{field} must be a probability above 0 and below 1")
        if self.keep is not None and self.insert is not None and self.keep <= self.insert:
            raise OptionError("keep must be above insert, or the items that come in drown those that stay")
        if self.cutoff is not None and self.cutoff < 1:
            raise OptionError("cutoff must be 1 or more; it is how many items are cut out of a transaction at most")
        if self.gamma is not None and not 1 < self.gamma < 1e12:
            raise OptionError("gamma must be above 1 and below 1e12; 19 lets 5 % become 50 % at most")

    @property
    def shows_size(self) -> bool:
        """Whether estimating needs the true size of each transaction, which is then released beside it."""
        return self.name in ("cut-and-paste", "select-a-size")

    @property
    def by_size(self) -> bool:
        """Whether what it does depends on the size of a transaction; the sizes of uniform ones stay as they are."""
        return self.name != "flip"

    def kept(self, size: int) -> Floats:
        """Chances that 0, 1, ... of the items of a transaction of a given size stay or come back [EGSA02, sec. 4.1]."""
        return _kept(self, size)

    def transition(self, length: int, size: int) -> Floats:
        """Chances, column by column, that of a set of which l items were in the transaction l' are afterwards."""
        return _transition(self, length, size)

    def weights(self, length: int, size: int) -> Floats:
        """What each transaction adds to the estimate of a set's count, by how many of its items it now holds.

        The last row of the inverse of the transition: its mean over the operator's chance is 1 where the transaction
        held the whole set, and 0 elsewhere. All 0 where a transaction of this size cannot have held it.

        Raises
        ------
        OptionError
            If the transition cannot be undone: what is cut out gives no information on sets longer than the cutoff.
        """
        if self.by_size and size < length:
            return np.zeros(length + 1)
        if self.name == "flip":
            assert self.keep is not None
            assert self.insert is not None
            there, lacking = 1 - self.insert, -self.insert
            held = np.arange(length + 1)
            return np.asarray(there**held * lacking ** (length - held) / (self.keep - self.insert) ** length)
        matrix = self.transition(length, size)
        if np.linalg.cond(matrix) > _SINGULAR:
            raise OptionError(
                f"the randomization gives no information on sets of {length} items in transactions of {size}; look for "
                "shorter ones"
            )
        return np.asarray(np.linalg.solve(matrix.T, np.eye(length + 1)[length]))

    def undone(self, length: int, size: int) -> Floats:
        """Inverse of the transition: what transactions with l' of a set's items now tell of those with l before.

        All 0 where a transaction of this size cannot have held the whole set. Its last row are the weights.
        """
        if self.by_size and size < length:
            return np.zeros((length + 1, length + 1))
        weights = self.weights(length, size)
        inverse = np.linalg.inv(self.transition(length, size if self.by_size else length))
        inverse[length] = weights
        return np.asarray(inverse)

    def spread(self, length: int, size: int) -> Floats:
        """Variance of what a transaction adds to the estimate of a set's count, by how many of its items it held."""
        if self.by_size and size < length:
            return np.zeros(length + 1)
        variance = self.weights(length, size) ** 2 @ self.transition(length, size if self.by_size else length)
        variance[length] -= 1.0
        return np.asarray(np.maximum(variance, 0.0))

    def epsilon(self, size: int) -> float:
        """Logarithm of the amplification over transactions of this size [EGS03].

        For flip, where sizes are not shown, over any two transactions: as many items as there are may differ.
        """
        if self.name == "flip":
            return self.width * self.item_epsilon
        if size == 0:
            return 0.0
        if self.gamma is not None:
            return math.log(self.gamma)
        held, logs = np.arange(size + 1), _log_choose(size, np.arange(size + 1))
        with np.errstate(divide="ignore"):
            chances = np.log(self.kept(size)) - logs
        if self.insert is not None:
            chances += held * math.log((1 - self.insert) / self.insert)
        else:
            chances -= _log_choose(self.width - size, size - held)
        return float(chances.max() - chances.min())

    def epsilon_up_to(self, longest: int) -> float:
        """The same over all sizes up to the longest."""
        if not self.by_size:
            return self.epsilon(0)
        return max((self.epsilon(size) for size in range(1, longest + 1)), default=0.0)

    @property
    def item_epsilon(self) -> float:
        """Of flip: how far the odds that one item is in a transaction can change for who knows all its other items."""
        if self.keep is None or self.insert is None:
            raise ValueError("items are flipped one by one by flip alone")
        return max(math.log(self.keep / self.insert), math.log((1 - self.insert) / (1 - self.keep)))

    def check(self, sizes: Ints) -> None:
        """Refuse transactions that it cannot be used on."""
        longest = int(sizes.max(initial=0))
        if self.by_size and longest > MOST_SIZE:
            raise TableError(f"a transaction has {longest} items, more than {MOST_SIZE}; use flip, or split it")
        if self.name == "uniform" and 2 * longest > self.width:
            raise TableError(
                f"uniform randomization needs twice as many items as the longest transaction has; there are "
                f"{self.width} "
                f"and it has {longest}: take flip"
            )

    def randomize(self, transactions: Transactions, rng: np.random.Generator) -> Transactions:
        """The transactions, each randomized by itself."""
        if transactions.width != self.width:
            raise ValueError("the operator is for another number of items")
        sizes = transactions.sizes
        self.check(sizes)
        kept, added = self._draw_counts(sizes, rng)
        parts, ends = [], np.cumsum(sizes + added)
        first = 0
        while first < len(transactions):
            base = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, base + _AT_ONCE)))
            part = transactions.take(np.arange(first, min(last, len(transactions))))
            parts.append(_drawn(part, kept[first:last], added[first:last], rng))
            first = last
        return _joined(parts, self.width)

    def _draw_counts(self, sizes: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """How many items stay in each transaction, and how many come in; drawn from tables of 53 bits."""
        from scipy.stats import binom

        kept, added = np.zeros_like(sizes), np.zeros_like(sizes)
        for size in np.unique(sizes).tolist():
            same = np.flatnonzero(sizes == size)
            kept[same] = np.searchsorted(np.cumsum(self.kept(size))[:-1], rng.random(len(same)), side="right")
            if self.insert is None:
                added[same] = size - kept[same]
                continue
            outside = self.width - size
            chances = binom.cdf(np.arange(outside), outside, self.insert)
            added[same] = np.searchsorted(chances, rng.random(len(same)), side="right")
        return kept, added


def _drawn(transactions: Transactions, kept: Ints, added: Ints, rng: np.random.Generator) -> Transactions:
    """Number of transactions with the given numbers of own items and of others."""
    rows, width = transactions.rows, np.int64(transactions.width)
    order = np.lexsort((rng.integers(0, 1 << 62, size=len(rows)), rows))
    rank = np.empty(len(rows), dtype=np.int64)
    rank[order] = np.arange(len(rows)) - transactions.starts[rows]
    own = transactions.keys()
    stays = own[rank < kept[rows]]
    wanted, come = np.repeat(np.arange(len(transactions)), added), np.empty(0, dtype=np.int64)
    while len(wanted):  # whoever meets an item of the transaction, or one that came in before, draws again
        keys = wanted * width + rng.integers(0, width, size=len(wanted))
        fresh = np.zeros(len(keys), dtype=np.bool_)
        fresh[np.unique(keys, return_index=True)[1]] = True
        fresh &= ~are_within(keys, own) & ~are_within(keys, come)
        come = np.sort(np.concatenate([come, keys[fresh]]))
        wanted = wanted[~fresh]
    places, items = np.divmod(np.concatenate([stays, come]), width)
    return Transactions.from_pairs(places, items, len(transactions), int(width), distinct=True)


def _joined(parts: list[Transactions], width: int) -> Transactions:
    items = np.concatenate([*(part.items for part in parts), np.empty(0, dtype=np.int32)])
    starts = np.concatenate(
        [[0], np.cumsum(np.concatenate([*(part.sizes for part in parts), np.empty(0, dtype=np.int64)]))]
    )
    return Transactions(items, starts.astype(np.int64), width)


def _log_choose(total: Ints | int, some: Ints) -> Floats:
    """Logarithms of binomial coefficients; what cannot be chosen has minus infinity."""
    from scipy.special import gammaln

    within = (some >= 0) & (some <= total)
    safe = np.where(within, some, 0)
    logs = gammaln(total + 1) - gammaln(safe + 1) - gammaln(total - safe + 1)
    return np.asarray(np.where(within, logs, -np.inf))


def _binomial(count: Ints, trials: int | Ints, chance: float) -> Floats:
    """Binomial probability of each number of successes."""
    from scipy.special import xlog1py, xlogy

    count = np.asarray(count)
    return np.asarray(np.exp(_log_choose(trials, count) + xlogy(count, chance) + xlog1py(trials - count, -chance)))


def hypergeometric(count: Ints | int, total: int, marked: Ints | int, drawn: Ints | int) -> Floats:
    """Hypergeometric probability of each number of marked items in a draw without replacement."""
    count, marked, drawn = np.asarray(count), np.asarray(marked), np.asarray(drawn)
    logs = _log_choose(marked, count) + _log_choose(total - marked, drawn - count) - _log_choose(total, drawn)
    return np.asarray(np.exp(logs))


@lru_cache(maxsize=4096)
def _kept(operator: TransactionOperator, size: int) -> Floats:
    held = np.arange(size + 1)
    if operator.keep is not None:
        return np.asarray(_binomial(held, size, operator.keep))
    assert operator.insert is not None
    if operator.cutoff is not None:
        chances = np.zeros(size + 1)
        for cut in range(min(operator.cutoff, size) + 1):
            whole = cut == size and size < operator.cutoff
            share = 1 - size / (operator.cutoff + 1) if whole else 1 / (operator.cutoff + 1)
            chances[cut:] += share * _binomial(held[cut:] - cut, size - cut, operator.insert)
        return chances
    assert operator.gamma is not None
    noise = _binomial(held, size, operator.insert)
    best = noise
    for least in range(1, size + 1):  # more weight on transactions that keep at least ``least``, if that keeps most
        tilted = noise * np.where(held >= least, operator.gamma, 1.0)
        tilted /= tilted.sum()
        best = tilted if tilted @ held > best @ held else best
    return np.asarray(best / best.sum())


@lru_cache(maxsize=4096)
def _transition(operator: TransactionOperator, length: int, size: int) -> Floats:
    """Of a set's items that were in the transaction those stay that are among the kept; the others come in."""
    kept, held = operator.kept(size), np.arange(size + 1)
    matrix = np.zeros((length + 1, length + 1))
    for before in range(min(length, size) + 1):
        lacking = length - before
        for stay in range(before + 1):
            chances = kept * hypergeometric(stay, size, before, held)
            for come in range(lacking + 1):
                if operator.insert is not None:
                    enter: Any = _binomial(np.asarray(come), lacking, operator.insert)
                else:
                    enter = hypergeometric(come, operator.width - size, lacking, size - held)
                matrix[stay + come, before] += float((chances * enter).sum())
    return matrix
