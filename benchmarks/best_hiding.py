"""The best that hiding rules can do on a small instance, by an integer program: what the greedy way is measured by.

Hiding with the fewest side effects is NP-hard [JS07, sec. 2.2.1.1], so this is for some hundred transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.itemsets import Transactions, least_count
from sfumato.core.itemsets.mining import Itemsets, frequent_itemsets
from sfumato.transactions.mechanism import TransactionRule, count_sets
from sfumato.transactions.rules import RuleHiding, changes_needed

__all__ = ["BestHiding", "best_hiding", "sets_lost"]

_SECONDS = 60.0


@dataclass(frozen=True, eq=False, repr=False)
class BestHiding:
    """Transactions with the rules hidden: the fewest other sets lost, and with these the fewest changes."""

    transactions: Transactions
    lost: int
    changed: int

    def __repr__(self) -> str:
        return f"BestHiding(lost={self.lost}, changed={self.changed})"


def sets_lost(before: Itemsets, after: Transactions, rules: Sequence[TransactionRule], least: int) -> int:
    """Frequent sets, but for those that hold all items of a rule, that are not frequent any more."""
    watched = _watched(before, rules)
    return sum(count < least for count in count_sets(after, [some for some, _ in watched]))


def _watched(before: Itemsets, rules: Sequence[TransactionRule]) -> list[tuple[tuple[int, ...], int]]:
    secret = [set(rule.items) for rule in rules]
    pairs = zip(before.as_tuples(), before.counts.tolist(), strict=True)
    return [(some, count) for some, count in pairs if not any(each <= set(some) for each in secret)]


def best_hiding(
    transactions: Transactions, rules: Sequence[TransactionRule], how: RuleHiding, *, longest: int = 3
) -> BestHiding:
    """Take items out so that every rule is hidden, with the fewest sets lost and then the fewest entries changed.

    For the strategies that take out. The rules' left sides must hold no item that another rule takes out, so that what
    each needs is known beforehand.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    if how.strategy == "antecedent":
        raise OptionError("what is put in is counted, not searched for; take a strategy that takes out")
    least = least_count(how.min_support, len(transactions))
    model = _Model(transactions, rules, how, least, frequent_itemsets(transactions, least, longest=longest))
    rows, columns, values, lower = model.rows, model.columns, model.values, model.lower
    matrix = csr_array((values, (rows, columns)), shape=(len(lower), model.size))
    done = milp(
        model.costs(),
        constraints=LinearConstraint(matrix, np.array(lower), np.inf),
        integrality=np.ones(model.size, dtype=np.int64),
        bounds=Bounds(0, 1),
        options={"time_limit": _SECONDS},
    )
    if done.x is None or done.status != 0:
        raise SfumatoError("the integer program was not solved in time; take fewer transactions")
    gone = [key for key, place in model.entries.items() if done.x[place] > 0.5]
    keys = np.array([row * transactions.width + item for row, item in gone], dtype=np.int64)
    after = transactions.without(keys)
    return BestHiding(after, sets_lost(model.frequent, after, rules, least), len(gone))


class _Model:
    """Rows of the program: an entry goes or stays, a transaction supports a rule no more, a set is lost."""

    def __init__(
        self,
        transactions: Transactions,
        rules: Sequence[TransactionRule],
        how: RuleHiding,
        least: int,
        frequent: Itemsets,
    ) -> None:
        self.rows: list[int] = []
        self.columns: list[int] = []
        self.values: list[float] = []
        self.lower: list[float] = []
        self.entries: dict[tuple[int, int], int] = {}
        self.size, self.lost, self.frequent = 0, list[int](), frequent
        held = [set(transactions.transaction(place).tolist()) for place in range(len(transactions))]
        for rule in rules:
            whole, left = count_sets(transactions, [rule.items, rule.left])
            victims = rule.right if how.strategy == "consequent" else rule.items
            freed = []
            for row in (row for row, items in enumerate(held) if items >= set(rule.items)):
                taken = [self.entry(row, item) for item in victims]
                freed.append(self.new())
                self.at_least(0.0, [(place, 1.0) for place in taken] + [(freed[-1], -1.0)])
            self.at_least(float(changes_needed(rule, whole, left, least, how)), [(place, 1.0) for place in freed])
        touched = {item for _, item in self.entries}
        for some, count in _watched(frequent, rules):
            hit = [row for row, items in enumerate(held) if items >= set(some)] if touched & set(some) else []
            broken = []
            for row in hit:
                inside = [self.entries[row, item] for item in some if (row, item) in self.entries]
                if inside:
                    broken.append(self.new())
                    for place in inside:
                        self.at_least(0.0, [(broken[-1], 1.0), (place, -1.0)])
            if len(broken) > count - least:
                self.lost.append(self.new())
                terms = [(place, -1.0) for place in broken]
                self.at_least(float(least - count), [*terms, (self.lost[-1], float(count))])

    def new(self) -> int:
        self.size += 1
        return self.size - 1

    def entry(self, row: int, item: int) -> int:
        if (row, item) not in self.entries:
            self.entries[row, item] = self.new()
        return self.entries[row, item]

    def at_least(self, bound: float, terms: Sequence[tuple[int, float]]) -> None:
        for place, value in terms:
            self.rows.append(len(self.lower))
            self.columns.append(place)
            self.values.append(value)
        self.lower.append(bound)

    def costs(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        costs = np.zeros(self.size)
        costs[list(self.entries.values())] = 1.0
        costs[self.lost] = len(self.entries) + 1.0
        return costs
