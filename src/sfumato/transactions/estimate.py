"""Supports of itemsets behind randomized or blocked transactions, with intervals [JS07, sec. 2.9, 3.3, 2.2.1.2].

The count of a set is estimated by undoing the operator's transition between the numbers of its items that transactions
held and hold [EGSA02, sec. 5]; transactions of each size are undone by themselves. Only estimates that passed a
threshold are reported, and an interval that holds the truth in 95 % of all draws holds it less often among those that
passed by chance (the winner's curse): theirs are conditional on having passed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.distributions.operators import MOST_SIZE, TransactionOperator, hypergeometric
from sfumato.core.errors import OptionError, TooFew
from sfumato.core.itemsets import Bitmaps, Transactions, distinct_keys, least_count, partial_counts

if TYPE_CHECKING:
    from sfumato.core.itemsets.mining import Itemsets

__all__ = [
    "LEVEL",
    "SELECTED_LEVEL",
    "CountEstimates",
    "Estimates",
    "bisect",
    "check_share",
    "classes_of",
    "edges",
    "estimate_counts",
    "estimate_itemsets",
    "interval_itemsets",
    "least_significant",
    "selected_ends",
    "simultaneous_deviations",
    "wilson_ends",
]

LEVEL = 0.95
"""Confidence of every interval of an estimated support or rule."""

_EVERYWHERE = 0.005  # error rate of the simultaneous bound below which no lower end goes
SELECTED_LEVEL = LEVEL + _EVERYWHERE
"""Confidence given the selection; with the simultaneous bound's error rate it leaves `LEVEL`."""

_HALVINGS = 50


def edges(above: Floats, level: float) -> tuple[Floats, Floats]:
    """Shortest region that holds a normal estimate so often, given that it passed a threshold.

    ``above`` is how many standard deviations the mean lies above the threshold; the region is in standard deviations
    from the mean. Far above it is the usual symmetric one; near and below it begins at the threshold.

    Examples
    --------
    >>> [round(float(edge), 2) for edge in edges(np.array(9.0), 0.95)]
    [-1.96, 1.96]
    >>> [round(float(edge), 2) for edge in edges(np.array(0.0), 0.95)]
    [-0.0, 1.96]
    """
    from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

    half = ndtri((1.0 + level * ndtr(above)) / 2.0)
    cut = half > above
    upper = np.where(cut, -ndtri_exp(log_ndtr(above) + np.log1p(-level)), half)
    return np.asarray(np.where(cut, -above, -half)), np.asarray(upper)


def selected_ends(
    estimates: Floats, threshold: float, slope: float, rest: Floats, *, most: float, candidates: float
) -> tuple[Floats, Floats]:
    """Ends of the 95 % interval of each estimate that passed a threshold, given that it did.

    Where T is the truth, the estimate is normal with mean T and variance ``slope`` * T + ``rest``. The interval holds
    every T, from 0 to ``most``, for which the estimate lies in the shortest region of the normal distribution cut off
    at the threshold: the conditional interval of Weinstein, Fithian, Benjamini (Journal of the American Statistical
    Association, 2013; for genome scans Zhong, Prentice, Biostatistics, 2008). It holds the truth in 95 % of the cases
    in which the number is shown, whatever the truth and however many candidates there were, and becomes the usual
    interval where the estimate is well above the threshold. Intervals adjusted for the false coverage rate (Benjamini,
    Yekutieli, same journal, 2005) would hold on average over the shown ones only, and would widen all of them, also
    those far from the threshold, by the number of candidates. A conditional interval can be very long just above the
    threshold. Its lower end therefore stops at a simultaneous bound over all ``candidates``, to which 0.5 of the 5 %
    are given: the hybrid of Andrews, Kitagawa, McCloskey (Quarterly Journal of Economics, 2024).
    """
    deviations = simultaneous_deviations(candidates)

    def region(truth: Floats) -> tuple[Floats, Floats, Floats]:
        spread = np.sqrt(np.maximum(slope * truth + rest, 1e-300))
        lower, upper = edges((truth - threshold) / spread, SELECTED_LEVEL)
        return (estimates - truth) / spread, lower, upper

    def too_low(truth: Floats) -> Bools:
        where, _, upper = region(truth)
        return np.asarray(where > upper)

    def still_in(truth: Floats) -> Bools:
        where, lower, _ = region(truth)
        return np.asarray(where >= lower)

    middle = np.clip(estimates, 0.0, most)
    low = bisect(too_low, np.zeros_like(middle), middle)
    high = bisect(still_in, middle, np.full_like(middle, most))
    return np.maximum(low, wilson_ends(estimates, slope, rest, deviations)[0]), high


def simultaneous_deviations(candidates: float) -> float:
    """Deviations that no estimate exceeds its true value by, with probability 99.5 % over all of them."""
    from scipy.special import ndtri_exp

    return float(-ndtri_exp(np.log(_EVERYWHERE) - np.log(max(candidates, 1.0))))


def wilson_ends(estimates: Floats, slope: float, rest: Floats, deviations: float) -> tuple[Floats, Floats]:
    """Bounds of T whose estimate, of variance ``slope`` * T + ``rest``, lies within the deviations (as Wilson's)."""
    shift = deviations**2 * slope / 2.0
    half = deviations * np.sqrt(np.maximum(slope * estimates + rest + (shift / deviations) ** 2, 0.0))
    return estimates + shift - half, estimates + shift + half


def bisect(holds: Callable[[Floats], Bools], start: Floats, end: Floats) -> Floats:
    """Where a condition that holds from ``start`` on ceases to hold; ``start`` or ``end`` where it never does."""
    low, high = start.copy(), end.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        inside = holds(middle)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.asarray((low + high) / 2.0)


_MOST_CANDIDATES = 2_000_000
"""Sets of one length that are looked at; more are refused."""

_Z = 1.959963984540054
_CHUNK = 20_000
_ALL_SETS = 0.1  # weight of what holds of all sets of a length on average, beside what those at hand tell
Counts = Floats


@dataclass(frozen=True, eq=False, repr=False)
class CountEstimates:
    """How many transactions seem to have held each of some sets, and how far that may be off.

    Where T transactions held a set, the variance of its estimate is ``slope`` * T + ``rest``: the one part is of
    transactions that held it, the other of those that held some of its items.
    """

    counts: Counts
    slope: float
    rest: Counts

    def deviation(self, held: Counts | float | None = None) -> Counts:
        """Standard deviation at a true support; by default the estimated one."""
        true = np.maximum(self.counts if held is None else held, 0.0)
        return np.asarray(np.sqrt(self.slope * true + self.rest))

    def ends(self) -> tuple[Counts, Counts]:
        """95 % confidence interval of each count, of sets that were named before the transactions were seen.

        As Wilson's interval, each count is judged by the variance that it would give itself: where few transactions
        decide, an estimate that came out low has a low variance of its own too, and would be trusted too much.
        """
        return wilson_ends(self.counts, self.slope, self.rest, _Z)

    def selected_ends(self, shown: Bools, least: float, transactions: int, candidates: float) -> tuple[Counts, Counts]:
        """95 % confidence intervals of the sets shown because their estimate passed the threshold."""
        counts, rest = self.counts[shown], self.rest[shown]
        return selected_ends(counts, least, self.slope, rest, most=float(transactions), candidates=candidates)


@dataclass(frozen=True, eq=False, repr=False)
class Estimates:
    """Sets of items with the share of transactions that held each, and between what that share lies.

    Parameters
    ----------
    sets : tuple of tuple of int
    support, low, high : array
        Shares of all transactions. The ends of randomized transactions are 95 % confidence intervals given that the set
        is shown (`selected_ends`); those of blocked ones are certain.
    deviation : array
        Standard deviation of the estimate; 0 of blocked transactions.
    untold : int
        Sets that were looked at and about which the noise tells too little: the threshold is two deviations away
        from 0 or less, or more where many sets are looked at.
    """

    sets: tuple[tuple[int, ...], ...]
    support: Counts
    low: Counts
    high: Counts
    deviation: Counts
    untold: int = 0

    def __len__(self) -> int:
        return len(self.sets)

    def __repr__(self) -> str:
        return f"Estimates({len(self)} sets)"


def check_share(name: str, value: float) -> None:
    """Refuse a threshold that is no share above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise OptionError(f"{name} must be above 0 and at most 1; it is a share of the transactions")


def estimate_counts(
    operator: TransactionOperator, bitmaps: Bitmaps, sizes: Ints, sets: Ints, parts: Ints | None = None
) -> CountEstimates:
    """Transactions that held each set before they were randomized, without bias, and the variance of that.

    ``sizes`` are those of the classes of the bitmaps, and all sets have the same number of items. Given the true
    transactions an estimate's mean over the operator's chance is the true count. ``parts`` are the counts in part,
    where they are known.

    Notes
    -----
    A large transaction rarely shows a whole set and then weighs much, so that a set's own large transactions tell
    little of their number. The distribution of a set's transactions over the sizes is taken from all these sets
    together and mixed with a tenth of that of all sets of this length, so that no size is left without weight.
    """
    length = sets.shape[1]
    undone = np.stack([operator.undone(length, int(size)) for size in sizes])
    totals, pooled = np.empty((len(sets), length + 1)), np.zeros((len(sizes), length + 1))
    for first in range(0, len(sets), _CHUNK):
        some = slice(first, first + _CHUNK)
        counts = partial_counts(bitmaps, sets[some]) if parts is None else parts[some]
        totals[some] = np.einsum("ckl,scl->sk", undone, counts)
        pooled += counts.sum(axis=0)
    slopes = _slopes(operator, sizes, bitmaps.sizes, np.einsum("ckl,cl->ck", undone, pooled))
    return CountEstimates(
        totals[:, length], float(slopes[length]), np.maximum(totals, 0.0)[:, :length] @ slopes[:length]
    )


def _slopes(operator: TransactionOperator, sizes: Ints, transactions: Ints, pooled: Counts | None) -> Counts:
    """Variance that a transaction with a number of items of a set adds, over the estimated sizes."""
    length = 1 if pooled is None else pooled.shape[1] - 1
    spread = np.stack([operator.spread(length, int(size)) for size in sizes])
    shares = _over_sizes(operator, sizes, transactions, length)
    if pooled is not None:
        own = np.maximum(pooled, 0.0)
        whole = own.sum(axis=0)
        shares = np.where(whole > 0, (1 - _ALL_SETS) * own / np.maximum(whole, 1e-300) + _ALL_SETS * shares, shares)
    return np.asarray((shares * spread).sum(axis=0))


def _over_sizes(operator: TransactionOperator, sizes: Ints, transactions: Ints, length: int) -> Counts:
    """Share of each size among transactions by their number of items of a set, for all sets of a length."""
    if not operator.by_size:
        return np.ones((1, length + 1))
    held = np.arange(length + 1)
    chances = np.stack([hypergeometric(held, operator.width, int(size), length) for size in sizes])
    expected = chances * transactions[:, None]
    return np.asarray(expected / np.maximum(expected.sum(axis=0), 1e-300))


def least_significant(operator: TransactionOperator, true_sizes: Ints) -> float:
    """Smallest support of one item that can be estimated, by the noise alone; above 1 none can.

    ``true_sizes`` are those of the transactions; where an operator does not depend on them they are only counted.
    """
    sizes = true_sizes if operator.by_size else np.zeros_like(true_sizes)
    kinds, transactions = np.unique(sizes, return_counts=True)
    rest, slope = _slopes(operator, kinds, transactions, None)
    times = _deviations_needed(operator.width)
    half = times**2 * slope / 2.0
    return float((half + np.sqrt(half**2 + times**2 * len(sizes) * rest)) / len(sizes))


def _deviations_needed(candidates: int) -> float:
    """Deviations between 0 and a threshold: 2, or as many as chance reaches for one of all candidates."""
    from scipy.special import ndtri

    return max(2.0, float(-ndtri(1.0 / max(candidates, 2))))


def estimate_itemsets(
    operator: TransactionOperator, released: Transactions, sizes: Ints | None, min_support: float, *, longest: int = 4
) -> Estimates:
    """Sets that at least this share of the true transactions seems to hold, by Apriori over estimates [EGSA02, sec. 6].

    A set is looked at where all its subsets of one item less are estimated at no more than a standard deviation below
    the threshold: a subset that chance put just below must not hide it. If the threshold is less than two deviations
    above 0, or within what chance reaches for one of all unsupported sets of this length, no estimate is given of
    such a set or of larger ones.

    Parameters
    ----------
    operator : TransactionOperator
    released : Transactions
    sizes : array, optional
        True sizes of the transactions, where the operator shows them.
    min_support : float
    longest : int
    """
    check_share("min_support", min_support)
    kinds, classes = classes_of(operator, released, sizes)
    transactions = len(released)
    candidates = np.arange(released.width)[:, None]
    bitmaps = Bitmaps.of(released, np.empty(0, dtype=np.int64), classes)
    found: list[tuple[tuple[int, ...], Counts]] = []
    untold = 0
    for length in range(1, longest + 1):
        if not len(candidates):
            break
        try:
            parts = _single_parts(released, classes) if length == 1 else None
            counted = estimate_counts(operator, bitmaps, kinds, candidates, parts)
        except OptionError:  # sets too long for the operator to give information on
            untold += len(candidates)
            break
        share, deviation = counted.counts / transactions, counted.deviation(min_support * transactions) / transactions
        significant = deviation <= min_support / _deviations_needed(len(candidates))
        untold += int((~significant).sum())
        frequent = significant & (share >= min_support)
        possible = longest * float(math.comb(released.width, length))  # sets that there are, of each of these lengths
        low, high = counted.selected_ends(frequent, min_support * transactions, transactions, possible)
        numbers = np.column_stack([counted.counts[frequent], low, high, counted.deviation()[frequent]]) / transactions
        found += zip(map(tuple, candidates[frequent].tolist()), numbers, strict=True)
        near = candidates[significant & (share >= min_support - deviation)]
        if length == 1 and not significant.any():
            raise TooFew(
                f"{transactions} transactions are too few for their noise: a support of {min_support:g} is not "
                "significant; " + _enough(operator, kinds[classes])
            )
        if length == 1:
            bitmaps = Bitmaps.of(released, near[:, 0], classes)
        candidates = next_candidates(near)
    support, low, high, deviation = np.array([each[1] for each in found]).reshape(-1, 4).T
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    return Estimates(tuple(each[0] for each in found), support, low, high, deviation, untold)


def _enough(operator: TransactionOperator, sizes: Ints) -> str:
    least = least_significant(operator, sizes)
    return f"raise --min-support to {least:.2g} or more" if least < 1 else "none can, of so few transactions"


def classes_of(operator: TransactionOperator, released: Transactions, sizes: Ints | None) -> tuple[Ints, Ints]:
    """Sizes that there are, and which of them each transaction has; one for all where sizes do not matter."""
    if not operator.by_size:
        return np.zeros(1, dtype=np.int64), np.zeros(len(released), dtype=np.int64)
    if operator.shows_size and sizes is None:
        raise OptionError(f"transactions randomized by {operator.name!r} need the column 'size' to be estimated from")
    kinds, classes = np.unique(released.sizes if sizes is None else sizes, return_inverse=True)
    if kinds.max(initial=0) > min(MOST_SIZE, operator.width):
        raise OptionError(
            "a transaction is larger than any that could be randomized so; the column 'size' is not its own"
        )
    return kinds, classes.astype(np.int64)


def _single_parts(released: Transactions, classes: Ints) -> Ints:
    """How many transactions of each class lack each item, and how many hold it: without a bitmap for each item."""
    sizes = np.bincount(classes, minlength=1)
    held = released.class_counts(classes, len(sizes)).T
    return np.stack([sizes - held, held], axis=2)


def next_candidates(frequent: Ints) -> Ints:
    """Sets of one item more all of whose subsets of one item less are here, as Apriori joins them.

    Examples
    --------
    >>> next_candidates(np.array([[0, 1], [0, 2], [1, 2], [1, 3]])).tolist()
    [[0, 1, 2]]
    """
    known = set(map(tuple, frequent.tolist()))
    joined = list(_joined(sorted(known), known))
    return np.array(joined, dtype=np.int64).reshape(-1, frequent.shape[1] + 1)


def _joined(ordered: list[tuple[int, ...]], known: set[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    made = 0
    for place, one in enumerate(ordered):
        for other in ordered[place + 1 :]:
            if other[:-1] != one[:-1]:
                break
            whole = (*one, other[-1])
            if len(one) < 2 or all(part in known for part in combinations(whole, len(one))):
                made += 1
                if made > _MOST_CANDIDATES:
                    raise OptionError(
                        f"more than {_MOST_CANDIDATES:,} sets of {len(whole)} items may be frequent, for noise hides "
                        "which; raise --min-support or lower --longest"
                    )
                yield whole


def interval_itemsets(
    held: Transactions, unknown: Transactions | None, min_support: float, *, longest: int = 4
) -> tuple[Itemsets, Ints]:
    """Sets that may be frequent in transactions with unknown entries: possible and certain support of each.

    The lower end counts transactions that hold all items for certain, the upper end those that lack none for certain.
    """
    from sfumato.core.itemsets.mining import frequent_itemsets

    check_share("min_support", min_support)
    possible = held if unknown is None else merged(held, unknown)
    found = frequent_itemsets(possible, least_count(min_support, len(held)), longest=longest)
    if unknown is None:
        return found, found.counts
    sure = np.empty(len(found), dtype=np.int64)
    bitmaps = Bitmaps.of(held, np.unique(found.items).astype(np.int64))
    for length in np.unique(found.lengths).tolist():
        sets, places = found.of_length(length)
        sure[places] = partial_counts(bitmaps, sets)[:, 0, -1]
    return found, sure


def merged(one: Transactions, other: Transactions) -> Transactions:
    """Transactions with the entries of both."""
    places, items = np.divmod(distinct_keys(np.concatenate([one.keys(), other.keys()])), max(one.width, 1))
    return Transactions.from_pairs(places, items, len(one), one.width, distinct=True)
