"""What every mechanism for transactions promises, and the rules that its owner names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.errors import OptionError, shown
from sfumato.core.facts import Fact
from sfumato.core.itemsets import Bitmaps, Transactions, least_count, partial_counts
from sfumato.transactions.estimate import check_share
from sfumato.transactions.table import TransactionTable

__all__ = [
    "NamedRuleMethod",
    "SanitizedTransactions",
    "TransactionMechanism",
    "TransactionRule",
    "count_sets",
    "holding",
    "read_rules",
]

MOST_RULES = 1_000
"""Rules that may be named at once."""


@dataclass(frozen=True, eq=False, repr=False)
class SanitizedTransactions:
    """Transactions that may leave, in the order that they came in, and the facts of how they were made.

    ``at_random`` are the same transactions changed at random to the same end, to compare with; they do not leave.
    """

    table: TransactionTable
    facts: tuple[Fact, ...]
    at_random: Transactions | None = None


@dataclass(frozen=True)
class TransactionRule:
    """Items on the left and on the right of a rule; a set of items to be hidden has nothing on its left."""

    left: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def items(self) -> tuple[int, ...]:
        """All of its items, in rising order."""
        return tuple(sorted((*self.left, *self.right)))


@runtime_checkable
class TransactionMechanism(Protocol):
    """A frozen dataclass of parameters with one pure method; the rules to hide are no parameter, and stay secret."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def method(self) -> str:
        """Its name in certificates."""
        ...

    @property
    def takes_rules(self) -> bool:
        """Whether the owner must name rules."""
        ...

    def sanitize(
        self, table: TransactionTable, *, rules: Sequence[TransactionRule], rng: np.random.Generator
    ) -> SanitizedTransactions:
        """Transactions that can be mined in place of these."""
        ...


class NamedRuleMethod:
    """What mechanisms have in common whose owner names the rules to hide."""

    takes_rules: ClassVar[bool] = True  # the owner names what is to be hidden

    min_support: float
    min_confidence: float

    def check_thresholds(self) -> None:
        """Refuse thresholds that are no shares above 0."""
        check_share("min_support", self.min_support)
        check_share("min_confidence", self.min_confidence)


def holding(transactions: Transactions, items: Sequence[int]) -> Ints:
    """Transactions that hold all of the items."""
    inside = np.isin(transactions.items, np.array(items, dtype=np.int32))
    counts = np.bincount(transactions.rows[inside], minlength=len(transactions))
    return np.flatnonzero(counts == len(items))


def count_sets(transactions: Transactions, sets: Sequence[Sequence[int]]) -> list[int]:
    """How many transactions hold all items of each set; all of them hold the empty one."""
    used = sorted({item for each in sets for item in each})
    bitmaps = Bitmaps.of(transactions, np.array(used, dtype=np.int64))
    return [int(partial_counts(bitmaps, [list(each)])[0, 0, -1]) if each else len(transactions) for each in sets]


def read_rules(
    texts: Sequence[str], table: TransactionTable, *, min_support: float, min_confidence: float
) -> tuple[TransactionRule, ...]:
    """Rules as ``"bread;butter -> milk"`` and sets as ``"bread;butter"``, by the names of items.

    Raises
    ------
    OptionError
        For one that cannot be read, and for those that are no rules of these transactions: it says which.
    """
    if not texts:
        raise OptionError("no rule is named; name some with --rule 'bread;butter -> milk', or --rules FILE")
    if len(texts) > MOST_RULES:
        raise OptionError(f"{len(texts)} rules are named, more than {MOST_RULES}; hide fewer at once")
    rules = []
    for text in texts:
        sides = [[name.strip() for name in side.split(";")] for side in text.split("->")]
        names = [name for side in sides for name in side]
        if len(sides) > 2 or not all(names) or len(set(names)) < len(names) or (len(sides) == 1 and len(names) < 2):
            raise OptionError(f"{shown(text)} is no rule; write it as 'bread;butter -> milk', each item once")
        left, right = sides if len(sides) == 2 else ([], sides[0])
        rules.append(TransactionRule(tuple(sorted(table.codes(left))), tuple(sorted(table.codes(right)))))
    absent = [
        text for text, rule in zip(texts, rules, strict=True) if not _holds(rule, table, min_support, min_confidence)
    ]
    if absent:
        raise OptionError(
            f"{len(absent)} of the rules hold in no such share of these transactions, so there is nothing to hide: "
            f"{', '.join(map(shown, absent[:5]))}{' ...' if len(absent) > 5 else ''}; check names and thresholds"
        )
    return tuple(dict.fromkeys(rules))


def _holds(rule: TransactionRule, table: TransactionTable, min_support: float, min_confidence: float) -> bool:
    if min(rule.items) < 0:
        return False
    whole, left = count_sets(table.transactions, [rule.items, rule.left])
    frequent = whole >= least_count(min_support, len(table.transactions))
    return frequent and (not rule.left or whole >= min_confidence * left - 1e-9)
