"""Operators that randomize a transaction of items by itself, and what they let through.

EGSA02: A. Evfimievski, R. Srikant, R. Agrawal, J. Gehrke: Privacy Preserving Mining of Association Rules. KDD 2002, the
thesis's reference 19 [JS07, sec. 2.9, 3.3]; flipping every item is of Rizvi and Haritsa, VLDB 2002. EGS03: Evfimievski,
Gehrke, Srikant, PODS 2003.

All of them treat items alike: of a transaction of m items a random number from 0 to m is kept, drawn from a
distribution, and each other item is added independently, or as many are added as were removed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import OptionError, TableError
from sfumato.core.itemsets.transactions import Transactions, are_within

__all__ = ["MOST_SIZE", "OPERATORS", "OperatorName", "TransactionOperator", "hypergeometric"]

OperatorName = Literal["flip", "uniform", "cut-and-paste", "select-a-size"]
OPERATORS: tuple[str, ...] = get_args(OperatorName)
Law = Floats
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

    def kept(self, size: int) -> Law:
        """Chances that 0, 1, ... of the items of a transaction of a given size stay or come back [EGSA02, sec. 4.1]."""
        return _kept(self, size)

    def transition(self, length: int, size: int) -> Law:
        """Chances, column by column, that of a set of which l items were in the transaction l' are afterwards."""
        return _transition(self, length, size)

    def weights(self, length: int, size: int) -> Law:
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

    def undone(self, length: int, size: int) -> Law:
        """Inverse of the transition: what transactions with l' of a set's items now tell of those with l before.

        All 0 where a transaction of this size cannot have held the whole set. Its last row are the weights.
        """
        if self.by_size and size < length:
            return np.zeros((length + 1, length + 1))
        weights = self.weights(length, size)
        inverse = np.linalg.inv(self.transition(length, size if self.by_size else length))
        inverse[length] = weights
        return np.asarray(inverse)

    def spread(self, length: int, size: int) -> Law:
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


def _log_choose(total: Ints | int, some: Ints) -> Law:
    """Logarithms of binomial coefficients; what cannot be chosen has minus infinity."""
    from scipy.special import gammaln

    within = (some >= 0) & (some <= total)
    safe = np.where(within, some, 0)
    logs = gammaln(total + 1) - gammaln(safe + 1) - gammaln(total - safe + 1)
    return np.asarray(np.where(within, logs, -np.inf))


def _binomial(count: Ints, trials: int | Ints, chance: float) -> Law:
    """Binomial probability of each number of successes."""
    from scipy.special import xlog1py, xlogy

    count = np.asarray(count)
    return np.asarray(np.exp(_log_choose(trials, count) + xlogy(count, chance) + xlog1py(trials - count, -chance)))


def hypergeometric(count: Ints | int, total: int, marked: Ints | int, drawn: Ints | int) -> Law:
    """Hypergeometric probability of each number of marked items in a draw without replacement."""
    count, marked, drawn = np.asarray(count), np.asarray(marked), np.asarray(drawn)
    logs = _log_choose(marked, count) + _log_choose(total - marked, drawn - count) - _log_choose(total, drawn)
    return np.asarray(np.exp(logs))


@lru_cache(maxsize=4096)
def _kept(operator: TransactionOperator, size: int) -> Law:
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
def _transition(operator: TransactionOperator, length: int, size: int) -> Law:
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
