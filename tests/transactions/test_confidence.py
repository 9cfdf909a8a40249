"""Rules found again behind randomized transactions, and between what their confidence lies in blocked ones."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.distributions.operators import TransactionOperator
from sfumato.core.errors import OptionError
from sfumato.core.itemsets import Transactions
from sfumato.core.itemsets.mining import frequent_itemsets
from sfumato.transactions.confidence import confidence_bounds, estimate_rules
from sfumato.transactions.estimate import estimate_itemsets
from tests.cli.conftest import Run, run  # noqa: F401 - a fixture
from tests.examples import examples
from tests.transactions.slow_miner import draw_transactions

LAWS = (
    TransactionOperator("flip", 12, keep=0.8, insert=0.1),
    TransactionOperator("select-a-size", 12, gamma=1e6, insert=0.2),
)
SHOP = {"items": ["bread;milk", "bread", "milk;beer", "bread;milk", "beer"] * 8}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_intervals_of_the_rules_shown_hold_the_true_confidence(law: TransactionOperator) -> None:
    transactions = draw_transactions(3, 3000)
    true = frequent_itemsets(transactions, 1, longest=2)
    counts = dict(zip(true.as_tuples(), true.counts.tolist(), strict=True))
    inside, wrong = [], 0
    for seed in range(60):
        released = law.randomize(transactions, np.random.default_rng(seed))
        found = estimate_itemsets(law, released, transactions.sizes, 0.09, longest=2)
        rules = estimate_rules(
            law, released, transactions.sizes, found, min_support=0.09, min_confidence=0.4, longest=2
        )
        assert (rules.confidence >= 0.4).all()
        for (left, right), low, value, high in zip(rules.rules, rules.low, rules.confidence, rules.high, strict=True):
            truth = counts[tuple(sorted(left + right))] / counts[left]
            assert low <= value <= high
            inside.append(low <= truth <= high)
            wrong += truth < 0.4
    assert len(inside) > 400
    assert wrong > 30
    assert np.mean(inside) > 0.92


def test_without_noise_worth_the_name_the_rules_are_those_of_the_transactions() -> None:
    law, transactions = TransactionOperator("flip", 12, keep=1 - 1e-9, insert=1e-9), draw_transactions(4)
    found = estimate_itemsets(law, transactions, None, 0.099, longest=3)
    rules = estimate_rules(law, transactions, None, found, min_support=0.099, min_confidence=0.5, longest=3)
    with pytest.warns(UserWarning, match="transactions are empty"):
        counted = sf.transactions(
            pa.table({"items": [[f"{item:02}" for item in transactions.transaction(place)] for place in range(400)]})
        )
    other = counted.estimate(0.099, longest=3, min_confidence=0.5).rules
    assert other is not None
    assert set(rules.rules) == set(other.rules)
    confidences = dict(zip(other.rules, other.confidence, strict=True))
    np.testing.assert_allclose(rules.confidence, [confidences[rule] for rule in rules.rules], atol=1e-6)
    np.testing.assert_array_equal(other.low, other.high)


@examples(40)
@given(st.lists(st.tuples(*[st.sampled_from("10?")] * 3), min_size=1, max_size=4))
def test_bounds_of_a_confidence_are_reached_by_some_way_to_settle_the_unknown_entries(
    rows: list[tuple[str, ...]],
) -> None:
    held, unknown = (
        Transactions.of([[item for item, mark in enumerate(row) if mark == sign] for row in rows], 3) for sign in "1?"
    )
    for left, right in (((0,), (1,)), ((0, 2), (1,)), ((0,), (1, 2))):
        (low,), (high,) = (each.tolist() for each in confidence_bounds(held, unknown, [(left, right)]))
        open_ = [(row, item) for row, marks in enumerate(rows) for item, mark in enumerate(marks) if mark == "?"]
        reached = []
        for settled in itertools.product("01", repeat=len(open_)):
            answers = dict(zip(open_, settled, strict=True))
            transactions = [
                {item for item, mark in enumerate(marks) if answers.get((row, item), mark) == "1"}
                for row, marks in enumerate(rows)
            ]
            occurrences = [transaction for transaction in transactions if transaction >= set(left)]
            if occurrences:
                reached.append(np.mean([transaction >= set(right) for transaction in occurrences]))
        if reached:
            assert low == pytest.approx(min(reached))
            assert high == pytest.approx(max(reached))
        else:
            assert high == 1.0


def test_the_command_line_lists_rules_of_randomized_and_of_blocked_transactions(tmp_path: Path, run: Run) -> None:  # noqa: F811
    pa.csv.write_csv(pa.table(SHOP), tmp_path / "shop.csv")
    for verb in (
        ("randomize", "--operator", "flip", "--keep", "0.99", "--insert", "0.01"),
        ("block", "--rule", "bread -> milk"),
    ):
        folder = tmp_path / verb[0]
        made = run("transactions", verb[0], tmp_path / "shop.csv", "-o", folder, *verb[1:], "--no-report", "--no-sign")
        assert made.code == 0, made.err
        estimate = ("transactions", "estimate", folder / "release", "--min-support", "0.3", "--min-confidence", "0.5")
        written = tmp_path / f"{verb[0]}.csv"
        told = run(*estimate, "--rules-output", written, "--json")
        assert told.code == 0, told.err
        rules = json.loads(told.out)["rules"]
        assert {"left", "right", "support", "confidence", "low", "high"} == set(rules[0])
        assert ("bread", "milk") in {(rule["left"], rule["right"]) for rule in rules}
        assert all(rule["low"] <= rule["confidence"] <= rule["high"] for rule in rules)
        assert pa.csv.read_csv(written).num_rows == len(rules)
        assert "bread -> milk" in run(*estimate).out
    wrong = run(
        "transactions", "estimate", tmp_path / "block" / "release", "--min-support", "0.3", "--rules-output", written
    )
    assert wrong.code == 2
    assert "--min-confidence" in wrong.err


def test_rules_need_a_confidence_that_is_a_share() -> None:
    shop = sf.transactions(pa.table(SHOP))
    with pytest.raises(OptionError, match="min_confidence must be above 0"):
        shop.estimate(0.1, min_confidence=0.0)
    with pytest.raises(OptionError, match="name a min_confidence"):
        shop.estimate(0.1).rules_table()
