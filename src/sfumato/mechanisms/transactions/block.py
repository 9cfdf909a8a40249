"""Entries of baskets made unknown, so that rules may or may not hold [JS07, sec. 2.2.1.2].

Items that were there and items that were not both become unknown, or the origin of a question mark would be plain. A
set's support lies between the baskets that surely hold it and those that may; a rule's confidence between the least of
the one over the most of the other, and the other way round.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import RulesBlocked
from sfumato.core.itemsets.baskets import Baskets, are_within, distinct_keys
from sfumato.core.itemsets.estimate import merged
from sfumato.core.itemsets.mining import least_count
from sfumato.mechanisms.transactions.protocol import BasketRule, OfNamedRules, SanitizedBaskets, count_sets, holding
from sfumato.tables.baskets import BasketTable

__all__ = ["Interval", "RuleBlocking", "rule_intervals"]

Interval = tuple[float, float]
Keys = NDArray[np.int64]
_HAIR = 1e-9


@dataclass(frozen=True)
class RuleBlocking(OfNamedRules):
    """Makes entries unknown until every rule that the owner names may be below a threshold.

    Parameters
    ----------
    min_support, min_confidence : float
        From which on a rule holds.
    margin : float
        How far below the threshold the lower end of its support, or of its confidence, must be, as a share of it.
    zeros : float
        Items that were not there and become unknown, for each one that was.
    """

    method: ClassVar[str] = "block-rules"

    min_support: float = 0.01
    min_confidence: float = 0.5
    margin: float = 0.1
    zeros: float = 1.0

    def __post_init__(self) -> None:
        self.check_thresholds()
        for name in ("margin", "zeros"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not 0 <= self.margin < 1:
            raise OptionError("margin must be at least 0 and below 1; it is a share of the threshold")
        if not 0 < self.zeros <= 10:
            raise OptionError("zeros must be above 0 and at most 10, or every question mark would be an item")

    def sanitize(
        self, table: BasketTable, *, rules: Sequence[BasketRule], rng: np.random.Generator
    ) -> SanitizedBaskets:
        """Baskets with unknown entries in which no named rule surely holds.

        Raises
        ------
        PrivacyRefusal
            Where a rule surely holds all the same.
        """
        held, unknown = table.baskets, np.empty(0, dtype=np.int64)
        for rule in sorted(rules, key=lambda each: len(each.items)):
            held, fresh = self._block(held, table.baskets, rule, rng)
            unknown = distinct_keys(np.concatenate([unknown, fresh]))
        places, items = np.divmod(unknown[~are_within(unknown, held.keys())], held.width)
        blocked = Baskets.from_pairs(places, items, len(held), held.width, distinct=True)
        open_ = sum(not self.is_blocked(held, blocked, rule) for rule in rules)
        if open_:
            raise PrivacyRefusal(f"{open_} rules surely hold all the same, so nothing is released; lower --margin")
        fact = RulesBlocked(len(rules), self.min_support, self.min_confidence, self.margin)
        return SanitizedBaskets(dataclasses.replace(table, baskets=held, unknown=blocked), (fact,))

    def is_blocked(self, held: Baskets, unknown: Baskets, rule: BasketRule) -> bool:
        """Whether the lower end of a rule's support or confidence is below the threshold less the margin."""
        support, confidence = rule_intervals(held, unknown, rule)
        low = 1.0 - self.margin
        return support[0] < low * self.min_support - _HAIR or (
            bool(rule.left) and confidence[0] < low * self.min_confidence - _HAIR
        )

    def _block(
        self, held: Baskets, original: Baskets, rule: BasketRule, rng: np.random.Generator
    ) -> tuple[Baskets, Keys]:
        """Baskets without what becomes unknown for a rule, and these entries."""
        whole, left = count_sets(held, [rule.items, rule.left])
        most_left = count_sets(original, [rule.left])[0]
        low = 1.0 - self.margin
        needed = whole - least_count(low * self.min_support, len(held)) + 1
        if rule.left:
            by_confidence = int(np.floor(whole - low * self.min_confidence * max(left, most_left) + _HAIR)) + 1
            needed = min(needed, by_confidence)
        if needed <= 0:
            return held, np.empty(0, dtype=np.int64)
        free = rng.permutation(holding(held, rule.items))
        parts = np.array_split(np.arange(needed), len(rule.right))
        ones: list[Keys] = []
        zeros: list[Keys] = []
        for item, part in zip(rule.right, parts, strict=True):
            likeness = _likeness(original, item)
            chosen, free = free[: len(part)], free[len(part) :]
            ones.append(chosen * np.int64(held.width) + item)
            zeros.append(self._zeros(original, item, likeness, chosen, rng))
        gone = np.concatenate(ones)
        return held.without(gone), np.concatenate([gone, *zeros])

    def _zeros(
        self, original: Baskets, item: int, likeness: NDArray[np.float64], ones: Keys, rng: np.random.Generator
    ) -> Keys:
        """Entries of baskets that lack an item and look as much like holders of it as those that lost it do."""
        has = np.bincount(original.rows[original.items == item], minlength=len(original)) > 0
        free = rng.permutation(np.flatnonzero(~has))
        free = free[np.argsort(-likeness[free], kind="stable")]
        wanted = np.sort(rng.permutation(np.resize(-likeness[ones], round(self.zeros * len(ones)))))
        places = np.searchsorted(-likeness[free], wanted)
        steps = np.arange(len(places))
        places = np.maximum.accumulate(places - steps) + steps  # each basket once: the next one that is less alike
        if len(places) and places[-1] >= len(free):  # where there are none left, those before
            last = np.minimum(places, len(free) - 1 - steps[::-1])
            places = last[last >= 0]
        return np.asarray(free[np.unique(places)] * np.int64(original.width) + item)


def _likeness(baskets: Baskets, item: int) -> NDArray[np.float64]:
    """How much each basket looks as if it held an item, by its other items: naive Bayes on all other baskets."""
    rows, items = baskets.rows, baskets.items
    has = np.bincount(rows[items == item], minlength=len(baskets)) > 0
    mine = has[rows]
    inside = np.bincount(items[mine], minlength=baskets.width)[items] - mine
    outside = baskets.counts[items] - inside - 1  # of other baskets
    odds = np.log((inside + 1.0) / has.sum().clip(1)) - np.log((outside + 1.0) / (~has).sum().clip(1))
    odds[items == item] = 0.0
    return np.asarray(np.bincount(rows, weights=odds, minlength=len(baskets)), dtype=np.float64)


def rule_intervals(held: Baskets, unknown: Baskets, rule: BasketRule) -> tuple[Interval, Interval]:
    """Between what the support and the confidence of a rule lie, for all that unknown entries tell.

    Examples
    --------
    >>> held, unknown = Baskets.of([[0, 1], [0], [1]], 2), Baskets.of([[], [1], []], 2)
    >>> support, confidence = rule_intervals(held, unknown, BasketRule((0,), (1,)))
    >>> [round(end, 2) for end in (*support, *confidence)]
    [0.33, 0.67, 0.5, 1.0]
    """
    possible, total = merged(held, unknown), len(held)
    (low, low_left), (high, high_left) = (count_sets(each, [rule.items, rule.left]) for each in (held, possible))
    most = 1.0 if low_left == 0 else min(1.0, high / low_left)
    return (low / total, high / total), (low / max(high_left, 1), most)
