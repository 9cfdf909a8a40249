"""Entries of baskets made unknown, so that rules may or may not hold [JS07, sec. 2.2.1.2].

Items that were there and items that were not both become unknown, or the origin of a question mark would be plain. A
set's support lies between the baskets that surely hold it and those that may; a rule's confidence between the least of
the one over the most of the other, and the other way round.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import RulesBlocked
from sfumato.core.itemsets.baskets import Baskets, are_within, distinct_keys
from sfumato.core.itemsets.estimate import check_share, merged
from sfumato.core.itemsets.mining import least_count
from sfumato.mechanisms.transactions.protocol import BasketRule, SanitizedBaskets, count_sets
from sfumato.tables.baskets import BasketTable

__all__ = ["Interval", "RuleBlocking", "rule_intervals"]

Interval = tuple[float, float]
_HAIR = 1e-9


@dataclass(frozen=True)
class RuleBlocking:
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

    min_support: float = 0.01
    min_confidence: float = 0.5
    margin: float = 0.1
    zeros: float = 1.0

    def __post_init__(self) -> None:
        check_share("min_support", self.min_support)
        check_share("min_confidence", self.min_confidence)
        for name in ("margin", "zeros"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not 0 <= self.margin < 1:
            raise OptionError("margin must be at least 0 and below 1; it is a share of the threshold")
        if not 0 < self.zeros <= 10:
            raise OptionError("zeros must be above 0 and at most 10, or every question mark would be an item")

    @property
    def method(self) -> str:
        """Its name in certificates."""
        return "block-rules"

    @property
    def takes_rules(self) -> bool:
        """The owner names what is to be hidden."""
        return True

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
    ) -> tuple[Baskets, np.ndarray[tuple[int], np.dtype[np.int64]]]:
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
        width = np.int64(held.width)
        inside = np.isin(held.items, np.array(rule.items, dtype=np.int32))
        counts = np.bincount(held.rows[inside], minlength=len(held))
        chosen = rng.choice(np.flatnonzero(counts == len(rule.items)), needed, replace=False)
        victims = rng.choice(np.array(rule.right), needed)
        ones = chosen * width + victims
        zeros = [self._zeros(original, rule, item, int((victims == item).sum()), rng) for item in rule.right]
        return held.without(ones), np.concatenate([ones, *zeros])

    def _zeros(
        self, original: Baskets, rule: BasketRule, item: int, ones: int, rng: np.random.Generator
    ) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Baskets that lack an item and are most like those that hold it: with the most other items of the rule."""
        others = [each for each in rule.items if each != item]
        inside = np.isin(original.items, np.array(others, dtype=np.int32))
        alike = np.bincount(original.rows[inside], minlength=len(original))
        has = np.bincount(original.rows[original.items == item], minlength=len(original)) > 0
        free = np.flatnonzero(~has)
        order = np.lexsort((rng.random(len(free)), -alike[free]))
        wanted = free[order[: round(self.zeros * ones)]]
        return np.asarray(wanted * np.int64(original.width) + item)


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
