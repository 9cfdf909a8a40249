"""The miner of frequent sets, what it counts in part, and the rules that follow."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import sfumato.core.itemsets.mining as mining
from sfumato.core.errors import OptionError
from sfumato.core.itemsets import Bitmaps, Transactions, least_count, partial_counts
from sfumato.core.itemsets.mining import frequent_itemsets, rules_of
from tests.examples import examples
from tests.transactions.slow_miner import count_slowly, frequent_slowly, transaction_lists


@examples(60)
@given(transaction_lists(), st.integers(1, 5), st.integers(1, 7))
def test_the_frequent_sets_are_those_of_a_slow_miner(lists: list[list[int]], least: int, longest: int) -> None:
    found = frequent_itemsets(Transactions.of(lists), least, longest=longest)
    assert dict(zip(found.as_tuples(), found.counts.tolist(), strict=True)) == frequent_slowly(lists, least, longest)
    assert len(set(found.as_tuples())) == len(found)


def test_a_set_as_long_as_the_longest_transaction_is_found_over_more_than_a_word_of_transactions() -> None:
    found = frequent_itemsets(Transactions.of([list(range(9))] * 130 + [[9]] * 3), 4)
    assert len(found) == 2**9 - 1
    assert set(found.counts.tolist()) == {130}


@examples(60)
@given(transaction_lists(least=1), st.integers(0, 3), st.data())
def test_parts_of_a_set_are_counted_in_each_class(lists: list[list[int]], last: int, data: st.DataObject) -> None:
    classes = data.draw(st.lists(st.integers(0, last), min_size=len(lists), max_size=len(lists)))
    chosen = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True))
    bitmaps = Bitmaps.of(Transactions.of(lists, 7), np.arange(7), np.array([*classes]))
    (counts,) = partial_counts(bitmaps, [chosen])
    for label in range(max(classes) + 1):
        held = [
            len({*chosen} & {*transaction}) for transaction, own in zip(lists, classes, strict=True) if own == label
        ]
        assert counts[label].tolist() == [held.count(size) for size in range(len(chosen) + 1)]


def test_sets_of_up_to_fifteen_items_are_counted_in_part_and_longer_ones_refused() -> None:
    lists = [list(range(size)) for size in range(16)]
    bitmaps = Bitmaps.of(Transactions.of(lists, 16), np.arange(16))
    assert partial_counts(bitmaps, [list(range(15))]).tolist() == [[[1] * 16]]
    with pytest.raises(ValueError, match="more than 15"):
        partial_counts(bitmaps, [list(range(16))])


@examples(40)
@given(transaction_lists(least=1, most=40, width=5), st.integers(1, 4), st.sampled_from([0.2, 0.5, 0.75, 1.0]))
def test_the_rules_are_those_that_counting_gives(lists: list[list[int]], least: int, confidence: float) -> None:
    found = frequent_itemsets(Transactions.of(lists), least)
    rules, sets = rules_of(found, confidence), found.as_tuples()
    ours = {(sets[place], right) for place, right in zip(rules.sets.tolist(), rules.right.tolist(), strict=True)}
    theirs = {
        (some, right)
        for some, count in frequent_slowly(lists, least, 5).items()
        for right in some
        if len(some) > 1 and count >= confidence * count_slowly(lists, tuple(set(some) - {right})) - 1e-9
    }
    assert ours == theirs
    assert len(set(rules.keys.tolist())) == len(rules)


def test_too_many_sets_are_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mining, "MOST_SETS", 100)
    with pytest.raises(OptionError, match="min_support="):
        frequent_itemsets(Transactions.of([list(range(8))]), 1)


def test_a_share_of_transactions_is_a_number_of_transactions_whatever_rounding_does() -> None:
    assert [least_count(0.1, 30), least_count(0.1, 31), least_count(0.001, 10), least_count(0.7, 10)] == [3, 4, 1, 7]


@given(transaction_lists(least=1, most=20))
@examples(20)
def test_transactions_can_be_taken_thinned_and_put_together_again(lists: list[list[int]]) -> None:
    transactions = Transactions.of(lists, 7)
    assert [sorted(transaction) for transaction in lists] == [
        transactions.transaction(place).tolist() for place in range(len(lists))
    ]
    back = np.arange(len(lists))[::-1]
    assert [transactions.take(back).transaction(place).tolist() for place in back] == [
        sorted(transaction) for transaction in lists
    ]
    kept = transactions.having(transactions.items != 3)
    assert [kept.transaction(place).tolist() for place in range(len(lists))] == [sorted({*own} - {3}) for own in lists]
