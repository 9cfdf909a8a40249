"""What every mechanism for transactions promises, the rules that its owner names, and randomization [JS07, sec. 3.3].

Transactions are randomized one by one, so that supports can be estimated and no transaction be read.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.distributions.operators import OPERATORS, OperatorName, TransactionOperator
from sfumato.core.errors import OptionError, shown
from sfumato.core.facts import Fact
from sfumato.core.itemsets import Bitmaps, Transactions, least_count, partial_counts
from sfumato.methods.protocol import check_parameters
from sfumato.transactions.estimate import check_share
from sfumato.transactions.facts import TransactionsRandomized
from sfumato.transactions.table import TransactionTable

__all__ = [
    "USUAL",
    "NamedRuleMethod",
    "SanitizedTransactions",
    "TransactionMechanism",
    "TransactionRandomization",
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


_MADE_UP = 10
"""Entries for each true one that what is usual makes up at most."""

MOST_ENTRIES = 1 << 24
"""Entries that randomized transactions may come to unless more are allowed; more are refused before any is drawn."""

USUAL: Mapping[str, Mapping[str, float]] = {
    "flip": {"keep": 0.9, "insert": 0.1},
    "uniform": {"keep": 0.5},
    "cut-and-paste": {"cutoff": 3},
    "select-a-size": {"gamma": 19.0},
}
"""Defaults of each operator; `default_insert` besides, but for the first two."""

_PARAMETERS = ("keep", "insert", "cutoff", "gamma")
_INSERT = 0.1


@dataclass(frozen=True)
class TransactionRandomization:
    """Randomizes every transaction by itself.

    Parameters
    ----------
    operator : {"usual", "flip", "uniform", "cut-and-paste", "select-a-size"}
        Usual is flip where that makes up at most 10 entries for each true one, which is computed from the numbers of
        items and entries alone; select-a-size where there are more items. With a parameter named it is flip.
    keep : float, optional
        flip, uniform: chance that an item of the transaction stays; by default 0.9 and 0.5.
    insert : float, optional
        Chance that an item which is not in the transaction comes in; not for uniform. By default 0.1, and for the last
        two operators fewer if the number of items is so large that more than 10 would be added for each true one.
    cutoff : int, optional
        cut-and-paste: most items that are cut out of the transaction on purpose, by default 3.
    gamma : float, optional
        select-a-size: the most by which odds between two transactions of one size may change, by default 19.
    most_entries : int
        Entries that the randomized transactions may come to, by expectation; more are refused before any is drawn.
    """

    takes_rules: ClassVar[bool] = False  # nothing is named that it should hide
    method: ClassVar[str] = "randomize-transactions"

    operator: Literal["usual", "flip", "uniform", "cut-and-paste", "select-a-size"] = "usual"
    keep: float | None = None
    insert: float | None = None
    cutoff: int | None = None
    gamma: float | None = None
    most_entries: int = MOST_ENTRIES

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.most_entries < 1:
            raise OptionError("most_entries must be a whole number from 1 on; it bounds the entries that are made")
        if self.operator == "usual":
            if all(getattr(self, name) is None for name in _PARAMETERS):
                return
            object.__setattr__(self, "operator", "flip")
        for name, value in USUAL.get(self.operator, {}).items():
            chosen = getattr(self, name)
            object.__setattr__(self, name, value if chosen is None else type(value)(chosen))
        self.law(Transactions.of([[0]]))

    def law(self, transactions: Transactions) -> TransactionOperator:
        """The operator for these transactions: the given one, or the default for the number of items."""
        insert, width = default_insert(transactions), transactions.width
        if self.operator == "usual":
            name: OperatorName = "flip" if insert == _INSERT else "select-a-size"
            return TransactionRandomization(name, insert=insert).law(transactions)
        if self.insert is not None or self.operator not in OPERATORS[2:]:
            insert = self.insert  # type: ignore[assignment]
        return TransactionOperator(self.operator, width, self.keep, insert, self.cutoff, self.gamma)

    def sanitize(
        self, table: TransactionTable, *, rules: Sequence[TransactionRule] = (), rng: np.random.Generator
    ) -> SanitizedTransactions:
        """Randomized transactions, and the true size of each where supports can only be estimated with it."""
        if rules:
            raise OptionError("randomizing hides no rules; leave them out")
        law, sizes, entries = self.law(table.transactions), table.transactions.sizes, len(table.transactions.items)
        inserted = (len(sizes) * law.width - entries) * (law.insert or 0.0)
        if entries + inserted > self.most_entries:
            raise OptionError(
                f"about {inserted:,.0f} random entries would be added to {entries:,} true ones, since any of "
                f"{law.width:,} items may be inserted; drop --operator and --insert, use --insert "
                f"{default_insert(table.transactions):g}, or allow it with --most-entries "
                f"{_rounded_up(entries + inserted)}"
            )
        drawn = law.randomize(table.transactions, rng)
        longest = int(sizes.max(initial=0)) if law.by_size else 0
        epsilon = law.epsilon_up_to(longest)
        fact = TransactionsRandomized(
            law.name, law.width, law.keep, law.insert, law.cutoff, law.gamma, longest, epsilon, table.declared,
            self.operator == "usual",
        )  # fmt: skip
        shown = sizes if law.shows_size else None
        return SanitizedTransactions(dataclasses.replace(table, transactions=drawn, sizes=shown), (fact,))


def default_insert(transactions: Transactions) -> float:
    """Chance for an item to come in: 0.1, or so much less that 10 come in for each true one, to two digits."""
    entries = len(transactions.items)
    free = len(transactions) * transactions.width - entries
    chance = _INSERT if free <= 0 else min(_INSERT, _MADE_UP * max(entries, 1) / free)
    return chance if chance == _INSERT else _rounded_down(chance)


def _rounded_down(number: float) -> float:
    """The number to two digits, or a little less."""
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    return float(f"{math.floor(number / step + 1e-9) * step:.2g}")


def _rounded_up(number: float) -> int:
    """The number to two digits, or a little more."""
    step = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return int(step * (math.floor(number / step) + 2))
