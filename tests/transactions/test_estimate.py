"""Itemsets found again behind randomized transactions, and between what they lie in blocked ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from sfumato.core.distributions.operators import TransactionOperator
from sfumato.core.errors import OptionError, TooFew
from sfumato.core.itemsets import Transactions
from sfumato.core.itemsets.mining import frequent_itemsets
from sfumato.transactions.estimate import estimate_itemsets, interval_itemsets
from tests.examples import examples
from tests.transactions.slow_miner import count_slowly, draw_transactions, transaction_lists

LAWS = (
    TransactionOperator("flip", 12, keep=0.9, insert=0.05),
    TransactionOperator("cut-and-paste", 12, cutoff=9, insert=0.02),
    TransactionOperator("select-a-size", 12, gamma=1e6, insert=0.2),
)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_apriori_over_estimates_finds_most_frequent_sets_again(law: TransactionOperator) -> None:
    transactions = draw_transactions(3, 6000)
    released = law.randomize(transactions, np.random.default_rng(5))
    found = estimate_itemsets(law, released, transactions.sizes, 0.1, longest=2)
    true = frequent_itemsets(transactions, 600, longest=2)
    supports = dict(zip(true.as_tuples(), true.counts / 6000, strict=True))
    both = [place for place, some in enumerate(found.sets) if some in supports]
    assert len(both) > 0.7 * len(supports)
    apart = [(found.support[place] - supports[found.sets[place]]) / found.deviation[place] for place in both]
    assert np.abs(apart).max() < 6  # an estimate is normal by its many transactions: one in 5e8 is farther away
    inside = [found.low[place] <= supports[found.sets[place]] <= found.high[place] for place in both]
    assert np.mean(inside) > 0.7


def test_without_noise_worth_the_name_the_estimates_are_the_supports() -> None:
    law = TransactionOperator("flip", 12, keep=1 - 1e-9, insert=1e-9)
    transactions = draw_transactions(4)
    found = estimate_itemsets(law, law.randomize(transactions, np.random.default_rng(1)), None, 0.099, longest=3)
    true = frequent_itemsets(transactions, 40, longest=3)
    supports = dict(zip(true.as_tuples(), true.counts / 400, strict=True))
    assert set(found.sets) == set(supports)
    np.testing.assert_allclose(found.support, [supports[some] for some in found.sets], atol=1e-6)


def test_too_much_noise_is_said_and_not_guessed_from() -> None:
    law = TransactionOperator("flip", 12, keep=0.51, insert=0.49)
    transactions = draw_transactions(1)
    with pytest.raises(TooFew, match="too few for their noise"):
        estimate_itemsets(law, law.randomize(transactions, np.random.default_rng(1)), None, 0.2)
    with pytest.raises(OptionError, match="column 'size'"):
        estimate_itemsets(LAWS[1], transactions, None, 0.2)
    for wrong in (0.0, 1.1, float("nan")):
        with pytest.raises(OptionError, match="above 0 and at most 1"):
            estimate_itemsets(law, transactions, None, wrong)


@examples(30)
@given(transaction_lists(least=1, most=30, width=5), transaction_lists(least=30, most=30, width=5))
def test_bounds_of_blocked_transactions_are_what_the_unknown_entries_allow(
    lists: list[list[int]], marks: list[list[int]]
) -> None:
    doubt = [sorted({*mark} - {*transaction}) for mark, transaction in zip(marks, lists, strict=False)]
    held, unknown = Transactions.of(lists, 5), Transactions.of(doubt, 5)
    found, sure = interval_itemsets(held, unknown, 0.3, longest=3)
    possible = [transaction + more for transaction, more in zip(lists, doubt, strict=True)]
    for some, high, low in zip(found.as_tuples(), found.counts.tolist(), sure.tolist(), strict=True):
        assert (low, high) == (count_slowly(lists, some), count_slowly(possible, some))
        assert high >= 0.3 * len(lists) - 1e-9
