"""Rules hidden by changing few entries, beside the best that can be done, and rules blocked."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.best_hiding import best_hiding, sets_lost
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.itemsets import Transactions, least_count
from sfumato.core.itemsets.mining import frequent_itemsets
from sfumato.transactions.mechanism import TransactionRule, count_sets, read_rules
from sfumato.transactions.rules import STRATEGIES, RuleBlocking, RuleHiding, is_hidden, rule_intervals
from sfumato.transactions.table import TransactionTable
from tests.transactions.slow_miner import draw_transactions

SUPPORT, CONFIDENCE = 0.1, 0.4


def table_of(transactions: Transactions) -> TransactionTable:
    return TransactionTable(transactions, tuple(f"item {place}" for place in range(transactions.width)))


def strong_rules(transactions: Transactions, most: int = 2) -> tuple[TransactionRule, ...]:
    """Rules of two items that hold."""
    sets = frequent_itemsets(transactions, least_count(SUPPORT, len(transactions)), longest=2).as_tuples()
    rules = [TransactionRule(some[:1], some[1:]) for some in sets if len(some) == 2]
    return tuple([rule for rule in rules if not is_hidden(transactions, rule, 1, CONFIDENCE)][:most])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_named_rules_are_hidden_and_nothing_else_is_touched(strategy: str, seed: int) -> None:
    transactions = draw_transactions(seed)
    rules, how = strong_rules(transactions), RuleHiding(strategy, SUPPORT, CONFIDENCE)  # type: ignore[arg-type]
    assert rules
    done = how.sanitize(table_of(transactions), rules=rules, rng=np.random.default_rng(seed))
    after, least = done.table.transactions, least_count(SUPPORT, len(transactions))
    assert all(is_hidden(after, rule, least, CONFIDENCE) for rule in rules)
    assert done.at_random is not None
    assert all(is_hidden(done.at_random, rule, least, CONFIDENCE) for rule in rules)
    items = {item for rule in rules for item in rule.items}
    other = ~np.isin(transactions.items, sorted(items))
    assert np.array_equal(transactions.having(other).keys(), after.having(~np.isin(after.items, sorted(items))).keys())
    (fact,) = done.facts
    removed, added = np.setdiff1d(transactions.keys(), after.keys()), np.setdiff1d(after.keys(), transactions.keys())
    assert (fact.removed, fact.added) == (len(removed), len(added))  # type: ignore[attr-defined]


@pytest.mark.parametrize("strategy", ["consequent", "itemsets"])
@pytest.mark.parametrize("seed", [1, 2])
def test_greedy_changes_as_few_entries_as_can_be_for_one_rule_and_loses_little_more(strategy: str, seed: int) -> None:
    transactions = draw_transactions(seed, transactions=120, width=8)
    rules, how = strong_rules(transactions, 1), RuleHiding(strategy, SUPPORT, CONFIDENCE)  # type: ignore[arg-type]
    least = least_count(SUPPORT, len(transactions))
    before = frequent_itemsets(transactions, least, longest=3)
    greedy, best = how.hide(transactions, rules), best_hiding(transactions, rules, how)
    assert all(is_hidden(best.transactions, rule, least, CONFIDENCE) for rule in rules)
    lost = sets_lost(before, greedy, rules, least)
    assert len(transactions.items) - len(greedy.items) == best.changed
    assert best.lost <= lost <= best.lost + 2
    chance = [
        sets_lost(before, how.hide(transactions, rules, np.random.default_rng(one)), rules, least) for one in range(5)
    ]
    assert lost <= np.mean(chance)


def test_a_left_side_that_nobody_can_take_is_refused() -> None:
    transactions = Transactions.of([[0, 1]] * 9 + [[1]], 2)
    how = RuleHiding("antecedent", 0.5, 0.9)
    with pytest.raises(PrivacyRefusal, match="could take it"):
        how.sanitize(table_of(transactions), rules=(TransactionRule((0,), (1,)),), rng=np.random.default_rng(1))
    with pytest.raises(OptionError, match="strategy='itemsets'"):
        how.sanitize(table_of(transactions), rules=(TransactionRule((), (0, 1)),), rng=np.random.default_rng(1))


def test_rules_are_read_by_names_and_those_that_do_not_hold_are_named() -> None:
    table = table_of(Transactions.of([[0, 1], [0, 1], [2]], 3))
    limits = {"min_support": 0.5, "min_confidence": 0.5}
    assert read_rules(["item 0 -> item 1", "item 1; item 0"], table, **limits) == (
        TransactionRule((0,), (1,)),
        TransactionRule((), (0, 1)),
    )
    for text in ("item 0 -> item 2", "item 0 -> item 9"):
        with pytest.raises(OptionError, match=f"nothing to hide: '{text}'"):
            read_rules([text], table, **limits)
    for text in ("item 0", "-> item 1", "item 0 -> item 0", "a -> b -> c", ""):
        with pytest.raises(OptionError, match="is no rule"):
            read_rules([text], table, **limits)
    with pytest.raises(OptionError, match="no rule is named"):
        read_rules([], table, **limits)


@pytest.mark.parametrize("wrong", [0.0, -1.0, 1.5, float("nan")])
def test_thresholds_are_shares(wrong: float) -> None:
    for make in (lambda: RuleHiding(min_support=wrong), lambda: RuleBlocking(min_confidence=wrong)):
        with pytest.raises(OptionError, match="above 0 and at most 1"):
            make()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_blocked_rules_may_be_below_and_what_was_there_is_still_possible(seed: int) -> None:
    transactions = draw_transactions(seed)
    rules, how = strong_rules(transactions), RuleBlocking(SUPPORT, CONFIDENCE, margin=0.1)
    done = how.sanitize(table_of(transactions), rules=rules, rng=np.random.default_rng(seed)).table
    assert done.unknown is not None
    for rule in rules:
        (low, high), (least, most) = rule_intervals(done.transactions, done.unknown, rule)
        whole, left = count_sets(transactions, [rule.items, rule.left])
        assert low < 0.9 * SUPPORT or least < 0.9 * CONFIDENCE
        assert low <= whole / len(transactions) <= high
        assert least <= whole / left <= most
    marks, true, held = done.unknown.keys(), transactions.keys(), done.transactions.keys()
    assert not np.intersect1d(marks, held).size
    assert np.array_equal(np.union1d(held, np.intersect1d(marks, true)), true)
    ones = np.isin(marks, true).mean()
    assert 0.3 < ones < 0.7  # both kinds become unknown, one for one as far as there are transactions


@pytest.mark.parametrize("seed", range(10))
def test_an_item_that_became_unknown_for_one_rule_does_not_hide_another_halfway(seed: int) -> None:
    """A transaction with an unknown left side and a certain right side does not lower the least confidence."""
    rng = np.random.default_rng(seed)
    lists = [np.flatnonzero(rng.random(8) < 0.25).tolist() for _ in range(150)]
    lists[:60] = [sorted({0, 1, 2, *some}) for some in lists[:60]]
    rules, how = (TransactionRule((0,), (1,)), TransactionRule((1, 2), (0,))), RuleBlocking(SUPPORT, CONFIDENCE)
    done = how.sanitize(table_of(Transactions.of(lists, 8)), rules=rules, rng=rng).table
    assert done.unknown is not None
    assert all(how.is_blocked(done.transactions, done.unknown, rule) for rule in rules)


def test_a_left_side_goes_where_the_other_rules_it_tells_are_kept() -> None:
    """Of transactions without the right side, those that hold what the left side tells are chosen; no ghost is made."""
    lists = [[0, 1, 2]] * 20 + [[0, 1]] * 10 + [[0, 2]] * 2 + [[2, 3]] * 40 + [[2, 5]] * 50 + [[4]] * 60
    transactions, rule = Transactions.of(lists, 6), TransactionRule((0,), (1,))
    how = RuleHiding("antecedent", 0.1, 0.5)
    hidden = how.hide(transactions, [rule])
    least = least_count(0.1, len(lists))
    assert is_hidden(hidden, rule, least, 0.5)
    assert not is_hidden(
        hidden, TransactionRule((0,), (2,)), least, 0.5
    )  # the shortest transactions, of item 4, would lose it
    assert all(is_hidden(hidden, TransactionRule((item,), (0,)), least, 0.5) for item in (2, 3, 4, 5))
