"""Rules with one item on their right and between what their confidence lies, behind randomized or blocked transactions.

[JS07, sec. 2.2.1.2 and 3.3.]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.distributions.operators import TransactionOperator
from sfumato.core.itemsets import Bitmaps, Transactions, partial_counts
from sfumato.transactions.estimate import (
    SELECTED_LEVEL,
    Estimates,
    bisect,
    check_share,
    classes_of,
    edges,
    estimate_counts,
    simultaneous_deviations,
)

__all__ = ["RuleEstimates", "confidence_bounds", "estimate_rules", "interval_rules"]

Rule = tuple[tuple[int, ...], tuple[int, ...]]
_CHUNK = 20_000  # rules at once


@dataclass(frozen=True, eq=False, repr=False)
class RuleEstimates:
    """Rules with their support and confidence, and between what the confidence lies.

    Parameters
    ----------
    rules : tuple of pairs of tuples of int
        Left and right side of each.
    support, confidence : array
    low, high : array
        Of randomized transactions a 95 % confidence interval given that the rule is shown; else certain bounds.
    """

    rules: tuple[Rule, ...]
    support: Floats
    confidence: Floats
    low: Floats
    high: Floats

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        return f"RuleEstimates({len(self)})"


@dataclass(frozen=True, eq=False, repr=False)
class _Pairs:
    """Estimated counts of whole sets and of their left sides, with variances and covariances, a number a rule."""

    whole: Floats
    left: Floats
    slopes: tuple[float, float]
    rests: tuple[Floats, Floats]
    covariance: Floats

    def take(self, selected: Bools) -> _Pairs:
        rests = self.rests[0][selected], self.rests[1][selected]
        return _Pairs(self.whole[selected], self.left[selected], self.slopes, rests, self.covariance[selected])


def estimate_rules(
    operator: TransactionOperator,
    released: Transactions,
    sizes: Ints | None,
    found: Estimates,
    *,
    min_support: float,
    min_confidence: float,
    longest: int,
) -> RuleEstimates:
    """Rules whose confidence in the true transactions is estimated at this or more, of sets that were found frequent.

    Notes
    -----
    A rule has the confidence f if D = (count of the whole set) - f (count of its left side) is 0 on average, so all f
    that D does not refute are its interval (Fieller, Journal of the Royal Statistical Society B, 1954). A rule is
    shown because two estimates passed a threshold: support and confidence. Given what of the count of the left side
    does not depend on D, each of the two says that D lies above a number; D is judged by the normal distribution cut
    off there, as supports are (`selected_ends`; polyhedral selection: Lee, Sun, Sun, Taylor, Annals of Statistics,
    2016).
    """
    check_share("min_confidence", min_confidence)
    kinds, classes = classes_of(operator, released, sizes)
    used = np.unique([item for some in found.sets for item in some]).astype(np.int64)
    bitmaps = Bitmaps.of(released, used, classes)
    parts = [(np.empty(0), np.empty(0), np.empty(0), np.empty(0))]
    named: list[Rule] = []
    threshold = min_support * len(released)
    for length in range(2, longest + 1):
        sets = np.array([some for some in found.sets if len(some) == length], dtype=np.int64).reshape(-1, length)
        for place in range(length if len(sets) else 0):
            pairs = _estimate_pairs(operator, bitmaps, kinds, sets, place)
            selected = (pairs.whole >= min_confidence * pairs.left) & (pairs.left > 0)
            candidates = float(longest * length * math.comb(released.width, length))
            low, high = _ends(pairs.take(selected), threshold, min_confidence, candidates)
            confidence = np.minimum(pairs.whole[selected] / pairs.left[selected], 1.0)
            parts.append((pairs.whole[selected] / len(released), confidence, low, high))
            named += _named(sets[selected], place)
    support, confidence, low, high = (np.concatenate(each) for each in zip(*parts, strict=True))
    return RuleEstimates(tuple(named), support, confidence, low, high)


def _named(sets: Ints, place: int) -> list[Rule]:
    """Rules of sets, with the item at this place on their right."""
    left = np.delete(sets, place, axis=1)
    return [(tuple(items), (item,)) for items, item in zip(left.tolist(), sets[:, place].tolist(), strict=True)]


def _estimate_pairs(operator: TransactionOperator, bitmaps: Bitmaps, kinds: Ints, sets: Ints, place: int) -> _Pairs:
    """Counts of sets and of the same without the item at one place."""
    length, fewer = sets.shape[1], np.delete(sets, place, axis=1)
    whole, left = (estimate_counts(operator, bitmaps, kinds, each) for each in (sets, fewer))
    both = np.stack([operator.weights(length, int(size)) for size in kinds])
    alone = np.stack([operator.weights(length - 1, int(size)) for size in kinds])
    covariance = np.empty(len(sets))
    for first in range(0, len(sets), _CHUNK):
        some = slice(first, first + _CHUNK)
        held, rest = partial_counts(bitmaps, sets[some]), partial_counts(bitmaps, fewer[some])
        lacking = held[:, :, 0]  # by number of items of the set, without the item on the right
        products = np.einsum("sc,c->s", lacking, both[:, 0] * alone[:, 0])
        for shown in range(length):
            having = rest[:, :, shown] - lacking
            products += np.einsum("sc,c->s", having, both[:, shown + 1] * alone[:, shown])
            if shown + 1 < length:
                lacking = held[:, :, shown + 1] - having
                products += np.einsum("sc,c->s", lacking, both[:, shown + 1] * alone[:, shown + 1])
        covariance[some] = products
    limit = whole.deviation() * left.deviation()
    covariance = np.clip(covariance - whole.counts, 0.0, limit)
    return _Pairs(whole.counts, left.counts, (whole.slope, left.slope), (whole.rest, left.rest), covariance)


def _ends(pairs: _Pairs, threshold: float, least: float, candidates: float) -> tuple[Floats, Floats]:
    """Ends of the interval of each confidence."""

    def region(share: Floats) -> tuple[Floats, Floats, Floats]:
        """Where D lies in standard deviations, and the region that it would lie in if this were the confidence."""
        left_variance = pairs.slopes[1] * pairs.left + pairs.rests[1]
        variance = pairs.slopes[0] * share * pairs.left + pairs.rests[0]
        variance = variance + share**2 * left_variance - 2.0 * share * pairs.covariance
        spread = np.sqrt(np.maximum(variance, 1e-9))
        difference = pairs.whole - share * pairs.left
        follows = (pairs.covariance - share * left_variance) / spread**2  # change of the left count with D
        fixed = pairs.left - follows * difference
        above = np.full_like(share, np.inf)
        for slope, bound in (
            (1.0 + (share - least) * follows, -(share - least) * fixed),
            (1.0 + share * follows, threshold - share * fixed),
        ):
            cut = np.divide(bound, slope, out=np.full_like(share, -np.inf), where=slope > 1e-6)
            above = np.minimum(above, -np.minimum(cut, difference) / spread)
        lower, upper = edges(above, SELECTED_LEVEL)
        return difference / spread, lower, upper

    def too_low(share: Floats) -> Bools:
        where, _, upper = region(share)
        return np.asarray(where > np.minimum(upper, most))

    def still_in(share: Floats) -> Bools:
        where, lower, _ = region(share)
        return np.asarray(where >= lower)

    most = simultaneous_deviations(candidates)
    middle = np.clip(pairs.whole / pairs.left, 0.0, 1.0)
    return bisect(too_low, np.zeros_like(middle), middle), bisect(still_in, middle, np.ones_like(middle))


def interval_rules(
    held: Transactions, unknown: Transactions | None, found: Estimates, min_confidence: float
) -> RuleEstimates:
    """Rules that may have this confidence in transactions with unknown entries, of sets that may be frequent."""
    check_share("min_confidence", min_confidence)
    named: list[Rule] = []
    support: list[float] = []
    for some, share in zip(found.sets, found.support.tolist(), strict=True):
        named += [
            (some[:place] + some[place + 1 :], (some[place],)) for place in range(len(some) if len(some) > 1 else 0)
        ]
        support += [share] * (len(some) if len(some) > 1 else 0)
    low, high = confidence_bounds(held, unknown, named)
    selected = high >= min_confidence - 1e-12
    rules = tuple(rule for rule, keep in zip(named, selected.tolist(), strict=True) if keep)
    return RuleEstimates(
        rules, np.array(support)[selected], (low[selected] + high[selected]) / 2.0, low[selected], high[selected]
    )


def confidence_bounds(held: Transactions, unknown: Transactions | None, rules: Sequence[Rule]) -> tuple[Floats, Floats]:
    """Least and greatest confidence of each rule, over all ways to settle the unknown entries.

    The least has the right side absent where it is unknown, and the left side present where it is, unless the
    transaction certainly holds the right side, for then it would count for the rule. The greatest has the right side
    present, and the left side too where the right side may be. It is anything from 0 to 1 if no transaction can hold
    the left side.

    Examples
    --------
    >>> held, unknown = Transactions.of([[0, 1], [0], [1]], 2), Transactions.of([[], [1], [0]], 2)
    >>> [end.tolist() for end in confidence_bounds(held, unknown, [((0,), (1,))])]
    [[0.5], [1.0]]
    """
    width, count = held.width, len(held)
    low, high = np.zeros(len(rules)), np.ones(len(rules))
    items = np.unique([item for rule in rules for side in rule for item in side]).astype(np.int64)
    more = held if unknown is None else unknown
    rows, codes = np.r_[held.rows, held.rows, more.rows], np.r_[held.items, held.items + width, more.items + width]
    both = Transactions.from_pairs(rows, codes.astype(np.int64), count, 2 * width)  # certainly held, and possibly held
    bitmaps = Bitmaps.of(both, np.r_[items, items + width])

    def counts(sets: list[tuple[int, ...]]) -> Ints:
        return partial_counts(bitmaps, sets)[:, 0, -1] if sets and sets[0] else np.full(len(sets), count)

    shapes = np.array([(len(left), len(right)) for left, right in rules]).reshape(-1, 2)
    for shape in np.unique(shapes, axis=0):
        places = np.flatnonzero((shapes == shape).all(axis=1))
        for first in range(0, len(places), _CHUNK):
            some = places[first : first + _CHUNK]
            sure = [rules[place] for place in some.tolist()]
            perhaps = [tuple(tuple(item + width for item in side) for side in rule) for rule in sure]
            lefts, lefts_perhaps = counts([left for left, _ in sure]), counts([left for left, _ in perhaps])
            whole, whole_perhaps = (counts([(*left, *right) for left, right in each]) for each in (sure, perhaps))
            sure_right = counts([(*wide[0], *rule[1]) for rule, wide in zip(sure, perhaps, strict=True)])
            sure_left = counts([(*rule[0], *wide[1]) for rule, wide in zip(sure, perhaps, strict=True)])
            most = lefts_perhaps - sure_right + whole
            low[some] = np.where(most > 0, whole / np.maximum(most, 1), lefts_perhaps > 0)
            reach = lefts + whole_perhaps - sure_left
            high[some] = np.where(reach > 0, whole_perhaps / np.maximum(reach, 1), lefts_perhaps == 0)
    return low, high
