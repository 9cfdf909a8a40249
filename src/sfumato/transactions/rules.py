"""Rules of transactions brought below a threshold, by changing few entries or making some unknown [JS07, sec. 2.2.1].

Hiding has the three strategies of the thesis's reference 16 (Dasseni, Verykios, Elmagarmid, Bertino 2001): take items
on the right of a rule out of transactions, put items on its left into others, or take items of its set out until that
is not frequent. Which transactions and which items is chosen greedily: those first that hold the fewest sets that are
about to be lost.

Blocking makes items unknown that were there and items that were not, or the origin of a question mark would be plain. A
set's support lies between the transactions that certainly hold it and those that may; a rule's confidence between the
least and the greatest that any way to settle the unknown entries gives.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.itemsets import Transactions, are_within, least_count
from sfumato.methods.protocol import check_parameters
from sfumato.transactions.confidence import confidence_bounds
from sfumato.transactions.estimate import merged
from sfumato.transactions.facts import RulesBlocked, RulesHidden
from sfumato.transactions.mechanism import NamedRuleMethod, SanitizedTransactions, TransactionRule, count_sets, holding
from sfumato.transactions.table import TransactionTable

if TYPE_CHECKING:
    from sfumato.core.itemsets.mining import Itemsets

__all__ = ["STRATEGIES", "Interval", "RuleBlocking", "RuleHiding", "changes_needed", "is_hidden", "rule_intervals"]

Strategy = Literal["consequent", "antecedent", "itemsets"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)
_ROUNDS = 8  # in which the entries of a rule are chosen; after each it is counted anew what is about to be lost
_CANDIDATES = 20_000  # transactions that are looked at closely
_LONGEST = 4  # items of the sets that are watched
_WATCHED = 5_000  # sets of one rule that are watched, those nearest to the threshold
_HAIR = 1e-9


@dataclass(frozen=True)
class RuleHiding(NamedRuleMethod):
    """Hides rules that the owner names.

    Parameters
    ----------
    strategy : {"consequent", "antecedent", "itemsets"}
        Take items on the right out, put items on the left in, or take items out until the set is not frequent.
    min_support : float
        Smallest support of a frequent itemset, as a share of the transactions.
    min_confidence : float
        How often a rule must be right.
    """

    method: ClassVar[str] = "hide-rules"

    strategy: Strategy = "consequent"
    min_support: float = 0.01
    min_confidence: float = 0.5

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.strategy not in STRATEGIES:
            raise OptionError(f"there is no such strategy; choose one of {', '.join(STRATEGIES)}")
        self.check_thresholds()

    def sanitize(
        self, table: TransactionTable, *, rules: Sequence[TransactionRule], rng: np.random.Generator
    ) -> SanitizedTransactions:
        """Transactions in which every named rule is hidden.

        Raises
        ------
        PrivacyRefusal
            If that cannot be done by this strategy.
        """
        if self.strategy != "itemsets" and any(not rule.left for rule in rules):
            raise OptionError("a set without an arrow is hidden by its support alone; use --strategy itemsets")
        hidden = self.hide(table.transactions, rules)
        at_random = self.hide(table.transactions, rules, rng)
        before, after = table.transactions.keys(), hidden.keys()
        removed, added = int((~are_within(before, after)).sum()), int((~are_within(after, before)).sum())
        fact = RulesHidden(self.strategy, len(rules), self.min_support, self.min_confidence, removed, added)
        return SanitizedTransactions(dataclasses.replace(table, transactions=hidden), (fact,), at_random)

    def hide(
        self, transactions: Transactions, rules: Sequence[TransactionRule], rng: np.random.Generator | None = None
    ) -> Transactions:
        """The transactions with every rule hidden; entries are chosen at random where chance is given."""
        least = least_count(self.min_support, len(transactions))
        work = _Work(transactions, rules, least, rng)
        for _ in range(3):  # what is put in for one rule may lift another
            for rule in sorted(rules, key=lambda each: len(each.items)):
                work.lower(rule, self)
            open_ = [rule for rule in rules if not is_hidden(work.transactions, rule, least, self.min_confidence)]
            if not open_:
                return work.transactions
        raise PrivacyRefusal(
            f"{len(open_)} of {len(rules)} rules cannot be hidden by the strategy {self.strategy!r}, so nothing is "
            "released; use another strategy"
        )


def is_hidden(transactions: Transactions, rule: TransactionRule, least: int, min_confidence: float) -> bool:
    """Whether a rule is not frequent, or not right often enough; a set without a left side must not be frequent."""
    whole, left = count_sets(transactions, [rule.items, rule.left])
    return whole < least or (bool(rule.left) and whole < min_confidence * left - _HAIR)


def changes_needed(rule: TransactionRule, whole: int, left: int, least: int, how: RuleHiding) -> int:
    """Fewest transactions that must change for a rule to be hidden: that lose an item of it, or gain its left side."""
    by_support = whole - least + 1
    if how.strategy == "itemsets" or not rule.left:
        return max(0, by_support)
    if how.strategy == "consequent":
        by_confidence = int(np.floor(whole - how.min_confidence * left + _HAIR)) + 1
        return max(0, min(by_support, by_confidence))
    if by_support <= 0:
        return 0
    return max(0, int(np.floor(whole / how.min_confidence + _HAIR)) - left + 1)


@dataclass
class _Work:
    """Transactions on their way, and the other sets that should not be lost."""

    transactions: Transactions
    rules: Sequence[TransactionRule]
    least: int
    rng: np.random.Generator | None
    watched: Itemsets | None = field(default=None)

    def lower(self, rule: TransactionRule, how: RuleHiding) -> None:
        whole, left = count_sets(self.transactions, [rule.items, rule.left])
        needed = changes_needed(rule, whole, left, self.least, how)
        if whole < self.least or not needed:
            return
        if how.strategy == "antecedent" and rule.left:
            for part in np.array_split(np.arange(needed), min(_ROUNDS if self.rng is None else 1, needed)):
                self._put_in(rule, how, len(part), needed - int(part[0]))
            return
        victims = rule.right if how.strategy == "consequent" else rule.items
        for part in np.array_split(np.arange(needed), min(_ROUNDS if self.rng is None else 1, needed)):
            self._take_out(rule, victims, len(part), needed)

    def _take_out(self, rule: TransactionRule, victims: Sequence[int], count: int, needed: int) -> None:
        """Remove one item of the rule from the given number of transactions that hold all of them."""
        supporting = holding(self.transactions, rule.items)
        if self.rng is not None:
            chosen = self.rng.choice(supporting, count, replace=False)
            items = self.rng.choice(np.array(victims), count)
        else:
            if len(supporting) > max(_CANDIDATES, 2 * count):
                shortest = np.argsort(self.transactions.sizes[supporting], kind="stable")
                supporting = np.sort(supporting[shortest[: max(_CANDIDATES, 2 * count)]])
            costs = np.stack([self._cost(supporting, item, needed) for item in victims], axis=1)
            best = costs.argmin(axis=1)
            first = np.lexsort((self.transactions.sizes[supporting], costs.min(axis=1)))[:count]
            chosen, items = supporting[first], np.array(victims)[best[first]]
        self.transactions = self.transactions.without(chosen * np.int64(self.transactions.width) + items)

    def _cost(self, supporting: Ints, item: int, needed: int) -> Floats:
        """Cost of taking an item out of each transaction, in sets near the threshold, less what it hides besides."""
        cost = np.zeros(len(supporting))
        sets, counts = self._near(item, needed)
        used = sorted({each for some in (*sets, *(rule.items for rule in self.rules)) for each in some})
        held = _columns(self.transactions.take(supporting), used)
        places = {name: place for place, name in enumerate(used)}
        for some, slack in zip(sets, counts, strict=True):
            inside = held[:, [places[each] for each in some]].all(axis=1)
            cost += inside / (1.0 + slack)
        others = np.zeros(len(supporting))
        for rule in self.rules:
            if item in rule.items:
                others += held[:, [places[each] for each in rule.items]].all(axis=1)
        return np.asarray((cost + _HAIR) / np.maximum(others, 1.0))

    def _near(self, item: int, needed: int) -> tuple[list[tuple[int, ...]], list[int]]:
        """Frequent sets with the item that this number of changes could push below the threshold, and their margin."""
        from sfumato.core.itemsets.mining import frequent_itemsets

        if self.watched is None:
            self.watched = frequent_itemsets(self.transactions, self.least, longest=_LONGEST)
        slack = self.watched.counts - self.least
        of_item = np.bincount(
            np.repeat(np.arange(len(self.watched)), self.watched.lengths), self.watched.items == item, len(self.watched)
        )
        near = np.flatnonzero((of_item > 0) & (slack < needed))
        near = near[np.argsort(slack[near], kind="stable")]
        tuples, starts = self.watched.items, self.watched.starts
        secret = [set(rule.items) for rule in self.rules]
        sets, far = [], []
        for place in near.tolist():
            some = tuple(tuples[starts[place] : starts[place + 1]].tolist())
            if not any(each <= set(some) for each in secret):
                sets.append(some)
                far.append(int(slack[place]))
            if len(sets) == _WATCHED:
                break
        return sets, far

    def _put_in(self, rule: TransactionRule, how: RuleHiding, count: int, needed: int) -> None:
        """Add the left side to transactions that lack little of it and do not hold the right side."""
        held = _columns(self.transactions, rule.items)
        left = np.array([item in rule.left for item in rule.items])
        lacking = (~held[:, left]).sum(axis=1)
        free = np.flatnonzero((lacking > 0) & ~held[:, ~left].all(axis=1))
        if len(free) < needed:
            raise PrivacyRefusal(
                f"a rule needs its left side in {needed} more transactions and {len(free)} could take it, so it "
                "cannot be "
                "hidden by 'antecedent'; use another strategy"
            )
        if self.rng is not None:
            chosen = self.rng.choice(free, count, replace=False)
        else:
            cost = self._cost_of_left(rule, how, free, needed)
            chosen = free[np.lexsort((self.transactions.sizes[free], cost, lacking[free]))[:count]]
        rows = np.concatenate([self.transactions.rows, np.repeat(chosen, len(rule.left))])
        items = np.concatenate([self.transactions.items.astype(np.int64), np.tile(np.array(rule.left), len(chosen))])
        self.transactions = Transactions.from_pairs(rows, items, len(self.transactions), self.transactions.width)

    def _cost_of_left(self, rule: TransactionRule, how: RuleHiding, free: Ints, needed: int) -> Floats:
        """What putting the left side into each transaction would cost, by its other items.

        An item costs the more, the fewer additional transactions would make the left side imply it. An item that the
        left side implies counts as gain: the more, the fewer additional transactions without it would end that.
        """
        transactions, confidence = self.transactions, how.min_confidence
        supporting = holding(transactions, rule.left)
        both = np.bincount(transactions.take(supporting).items, minlength=transactions.width)
        ghost = np.maximum(self.least, np.ceil(confidence * transactions.counts - _HAIR)) - both
        cost = np.where((ghost > 0) & (ghost <= needed), 1.0 / np.maximum(ghost, 1.0), 0.0)
        lacking = np.ceil(confidence * (len(supporting) + needed) - _HAIR) - both
        room = np.bincount(transactions.take(free).items, minlength=transactions.width)
        holds = (both >= self.least) & (both >= confidence * len(supporting) - _HAIR)
        cost -= np.where(holds & (lacking > 0) & (lacking <= room), 1.0 / np.maximum(lacking, 1.0), 0.0)
        cost[list(rule.items)] = 0.0
        return np.asarray(
            np.bincount(transactions.rows, cost[transactions.items], len(transactions))[free], dtype=np.float64
        )


def _columns(transactions: Transactions, items: Sequence[int]) -> Bools:
    """Which transaction holds which of some items."""
    places = np.full(transactions.width, -1, dtype=np.int64)
    places[list(items)] = np.arange(len(items))
    held = np.zeros((len(transactions), len(items)), dtype=np.bool_)
    columns = places[transactions.items]
    held[transactions.rows[columns >= 0], columns[columns >= 0]] = True
    return held


Interval = tuple[float, float]


@dataclass(frozen=True)
class RuleBlocking(NamedRuleMethod):
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
        check_parameters(self)
        self.check_thresholds()
        for name in ("margin", "zeros"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not 0 <= self.margin < 1:
            raise OptionError("margin must be at least 0 and below 1; it is a share of the threshold")
        if not 0 < self.zeros <= 10:
            raise OptionError("zeros must be above 0 and at most 10, or every question mark would be an item")

    def sanitize(
        self, table: TransactionTable, *, rules: Sequence[TransactionRule], rng: np.random.Generator
    ) -> SanitizedTransactions:
        """Transactions with unknown entries in which no named rule certainly holds.

        Raises
        ------
        PrivacyRefusal
            If a rule certainly holds all the same.
        """
        held, none = table.transactions, np.empty(0, dtype=np.int64)
        blocked = Transactions.from_pairs(none, none, len(held), held.width)
        for rule in sorted(rules, key=lambda each: len(each.items)):
            held, keys = self._block(held, blocked, table.transactions, rule, rng)
            keys = np.concatenate([blocked.keys(), keys])
            blocked = Transactions.from_pairs(*np.divmod(keys, held.width), len(held), held.width)
        open_ = sum(not self.is_blocked(held, blocked, rule) for rule in rules)
        if open_:
            raise PrivacyRefusal(f"{open_} rules certainly hold all the same, so nothing is released; lower --margin")
        fact = RulesBlocked(len(rules), self.min_support, self.min_confidence, self.margin)
        return SanitizedTransactions(dataclasses.replace(table, transactions=held, unknown=blocked), (fact,))

    def is_blocked(self, held: Transactions, unknown: Transactions, rule: TransactionRule) -> bool:
        """Whether the lower end of a rule's support or confidence is below the threshold less the margin."""
        support, confidence = rule_intervals(held, unknown, rule)
        low = 1.0 - self.margin
        return support[0] < low * self.min_support - _HAIR or (
            bool(rule.left) and confidence[0] < low * self.min_confidence - _HAIR
        )

    def _block(
        self,
        held: Transactions,
        unknown: Transactions,
        original: Transactions,
        rule: TransactionRule,
        rng: np.random.Generator,
    ) -> tuple[Transactions, Ints]:
        """Transactions without what becomes unknown for a rule, and these entries.

        The least confidence is the share of the transactions that certainly hold the rule among those that count for
        it at least. An entry of the right side that becomes unknown lowers the former and leaves the latter.
        """
        whole, low = count_sets(held, [rule.items])[0], 1.0 - self.margin
        needed = whole - least_count(low * self.min_support, len(held)) + 1
        if rule.left and whole:
            least = confidence_bounds(held, unknown, [(rule.left, rule.right)])[0][0]
            by_confidence = int(np.floor(whole - low * self.min_confidence * whole / least + _HAIR)) + 1
            needed = min(needed, by_confidence)
        if needed <= 0:
            return held, np.empty(0, dtype=np.int64)
        free = rng.permutation(holding(held, rule.items))
        parts = np.array_split(np.arange(needed), len(rule.right))
        ones: list[Ints] = []
        zeros: list[Ints] = []
        for item, part in zip(rule.right, parts, strict=True):
            likeness = _likeness(original, item)
            chosen, free = free[: len(part)], free[len(part) :]
            ones.append(chosen * np.int64(held.width) + item)
            zeros.append(self._zeros(original, item, likeness, chosen, rng))
        gone = np.concatenate(ones)
        return held.without(gone), np.concatenate([gone, *zeros])

    def _zeros(self, original: Transactions, item: int, likeness: Floats, ones: Ints, rng: np.random.Generator) -> Ints:
        """Entries that lack an item, of transactions as similar to those with it as the ones that lost it."""
        has = np.bincount(original.rows[original.items == item], minlength=len(original)) > 0
        free = rng.permutation(np.flatnonzero(~has))
        free = free[np.argsort(-likeness[free], kind="stable")]
        wanted = np.sort(rng.permutation(np.resize(-likeness[ones], round(self.zeros * len(ones)))))
        places = np.searchsorted(-likeness[free], wanted)
        steps = np.arange(len(places))
        places = np.maximum.accumulate(places - steps) + steps  # each transaction once: the next one that is less alike
        if len(places) and places[-1] >= len(free):  # where there are none left, those before
            last = np.minimum(places, len(free) - 1 - steps[::-1])
            places = last[last >= 0]
        return np.asarray(free[np.unique(places)] * np.int64(original.width) + item)


def _likeness(transactions: Transactions, item: int) -> Floats:
    """Likelihood that each transaction held an item, by its other items: naive Bayes on all others."""
    rows, items = transactions.rows, transactions.items
    has = np.bincount(rows[items == item], minlength=len(transactions)) > 0
    mine = has[rows]
    inside = np.bincount(items[mine], minlength=transactions.width)[items] - mine
    outside = transactions.counts[items] - inside - 1  # of other transactions
    odds = np.log((inside + 1.0) / has.sum().clip(1)) - np.log((outside + 1.0) / (~has).sum().clip(1))
    odds[items == item] = 0.0
    return np.asarray(np.bincount(rows, weights=odds, minlength=len(transactions)), dtype=np.float64)


def rule_intervals(held: Transactions, unknown: Transactions, rule: TransactionRule) -> tuple[Interval, Interval]:
    """Least and greatest support and confidence of a rule, over all ways to settle the unknown entries.

    Examples
    --------
    >>> held, unknown = Transactions.of([[0, 1], [0], [1]], 2), Transactions.of([[], [1], []], 2)
    >>> support, confidence = rule_intervals(held, unknown, TransactionRule((0,), (1,)))
    >>> [round(end, 2) for end in (*support, *confidence)]
    [0.33, 0.67, 0.5, 1.0]
    """
    low, high = (count_sets(each, [rule.items])[0] / len(held) for each in (held, merged(held, unknown)))
    least, most = confidence_bounds(held, unknown, [(rule.left, rule.right)])
    return (low, high), (float(least[0]), float(most[0]))
