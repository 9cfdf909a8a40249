"""What the operators let through, against adding up the chances of every transaction that they can make."""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare

from sfumato.core.distributions.operators import TransactionOperator
from sfumato.core.errors import OptionError, TableError
from sfumato.core.itemsets import Bitmaps, Transactions
from sfumato.core.itemsets.mining import frequent_itemsets
from sfumato.transactions.estimate import CountEstimates, estimate_counts
from sfumato.transactions.measures import breach_level

WIDTH = 6
LAWS = (
    TransactionOperator("flip", WIDTH, keep=0.8, insert=0.15),
    TransactionOperator("uniform", WIDTH, keep=0.6),
    TransactionOperator("cut-and-paste", WIDTH, cutoff=2, insert=0.25),
    TransactionOperator("cut-and-paste", WIDTH, cutoff=5, insert=0.1),
    TransactionOperator("select-a-size", WIDTH, gamma=7.0, insert=0.3),
)
Items = frozenset[int]
SUBSETS = [frozenset(some) for size in range(WIDTH + 1) for some in combinations(range(WIDTH), size)]


def subsets(items: Items, size: int) -> list[Items]:
    return [frozenset(some) for some in combinations(sorted(items), size)]


def independent(items: Items, drawn: Items, chance: float) -> float:
    """Chance that just these of the items come in, each by itself."""
    return chance ** len(drawn) * (1 - chance) ** (len(items) - len(drawn))


@cache
def chances(law: TransactionOperator, transaction: Items) -> dict[Items, float]:
    """Chance of every transaction that a transaction may become, by the words of the papers."""
    everything = frozenset(range(WIDTH))
    outside = everything - transaction
    made = dict.fromkeys(SUBSETS, 0.0)
    if law.name == "cut-and-paste":  # EGSA02, sec. 4.2: cut j out, put them in, and toss a coin for every other item
        assert law.cutoff is not None
        for drawn in range(law.cutoff + 1):
            cut = min(drawn, len(transaction))
            for chosen in subsets(transaction, cut):
                for rest in SUBSETS:
                    if not rest & chosen:
                        share = independent(everything - chosen, rest, law.insert or 0.0)
                        made[chosen | rest] += share / (law.cutoff + 1) / math.comb(len(transaction), cut)
        return made
    for kept in SUBSETS:
        if not kept <= transaction:
            continue
        if law.name == "select-a-size":  # EGSA02, sec. 4.1, with a law on the number that stay
            stays = law.kept(len(transaction))[len(kept)] / math.comb(len(transaction), len(kept))
        else:
            stays = independent(transaction, kept, law.keep or 0.0)
        for come in SUBSETS:
            if not come <= outside:
                continue
            if law.insert is not None:
                made[kept | come] += stays * independent(outside, come, law.insert)
            elif len(come) == len(transaction) - len(kept):
                made[kept | come] += stays / math.comb(len(outside), len(come))
    return made


def fitting(law: TransactionOperator) -> list[Items]:
    return [transaction for transaction in SUBSETS if law.name != "uniform" or 2 * len(transaction) <= WIDTH]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_what_becomes_of_a_set_is_the_transition(law: TransactionOperator) -> None:
    for transaction in fitting(law):
        assert sum(chances(law, transaction).values()) == pytest.approx(1.0)
        for some in (frozenset({0}), frozenset({0, 3}), frozenset({1, 2, 5})):
            made = np.zeros(len(some) + 1)
            for after, chance in chances(law, transaction).items():
                made[len(after & some)] += chance
            if len(transaction) >= len(some):
                column = law.transition(len(some), len(transaction))[:, len(transaction & some)]
                np.testing.assert_allclose(column, made, atol=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_an_estimate_has_no_bias_and_neither_has_its_variance(law: TransactionOperator) -> None:
    for transaction in fitting(law):
        for some in (frozenset({0}), frozenset({0, 3}), frozenset({1, 2, 5})):
            if law.cutoff is not None and len(some) > law.cutoff and len(transaction) >= len(some):
                with pytest.raises(OptionError, match="gives no information on sets of 3"):
                    law.weights(len(some), len(transaction))
                continue
            weights = law.weights(len(some), len(transaction))
            parts = [(chance, weights[len(after & some)]) for after, chance in chances(law, transaction).items()]
            mean = sum(chance * weight for chance, weight in parts)
            assert mean == pytest.approx(float(some <= transaction), abs=1e-8)
            variance = sum(chance * (weight - mean) ** 2 for chance, weight in parts)
            told = sum(chance * (weight**2 - weight) for chance, weight in parts)
            assert told == pytest.approx(variance, rel=1e-8, abs=1e-8)


def test_the_weights_are_what_estimates_are_added_up_from() -> None:
    law, lists = LAWS[2], [[0, 1, 2], [0, 2], [1], [], [0, 1, 2, 3]]
    true = np.array([3, 3, 3, 2, 3])
    kinds, classes = np.unique(true, return_inverse=True)
    bitmaps = Bitmaps.of(Transactions.of(lists, WIDTH), np.arange(WIDTH), classes.astype(np.int64))
    found = estimate_counts(law, bitmaps, kinds, np.array([[0, 2]]))
    weights = [
        law.weights(2, int(size))[len({0, 2} & {*transaction})] for size, transaction in zip(true, lists, strict=True)
    ]
    assert found.counts[0] == pytest.approx(sum(weights))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_variance_told_is_that_of_transactions_with_as_many_items_of_the_set(law: TransactionOperator) -> None:
    for transaction in fitting(law):
        some = frozenset({0, 3})
        weights = law.weights(2, len(transaction))
        told = [(chance, weights[len(after & some)]) for after, chance in chances(law, transaction).items()]
        mean = sum(chance * weight for chance, weight in told)
        variance = sum(chance * (weight - mean) ** 2 for chance, weight in told)
        assert law.spread(2, len(transaction))[len(transaction & some)] == pytest.approx(variance, rel=1e-8, abs=1e-8)
        undone, transition = law.undone(2, len(transaction)), law.transition(2, len(transaction))
        if len(transaction) >= 2:
            np.testing.assert_allclose(undone @ transition, np.eye(3), atol=1e-8)


def test_the_ends_are_the_counts_that_an_estimate_does_not_refute() -> None:
    found = CountEstimates(np.array([-3.0, 0.0, 40.0]), 25.0, np.array([4.0, 0.0, 9.0]))
    low, high = found.ends()
    for end in (low, high):
        np.testing.assert_allclose((found.counts - end) ** 2, 1.959964**2 * (25 * end + found.rest), rtol=1e-6)
    assert (low[1:] <= found.counts[1:]).all()
    assert high[1] == pytest.approx(1.959964**2 * 25)  # nothing was seen: as Wilson's, far from nothing


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_odds_of_two_transactions_change_by_the_amplification_and_no_more(law: TransactionOperator) -> None:
    for size in range(1, WIDTH // 2 + 1):
        alike = [transaction for transaction in SUBSETS if len(transaction) == size or not law.by_size]
        made = {after: [chances(law, transaction)[after] for transaction in alike] for after in SUBSETS}
        farthest = max(math.log(max(each) / min(each)) for each in made.values() if max(each) > 0)
        assert farthest == pytest.approx(law.epsilon(size), rel=1e-9)
    if law.name == "select-a-size":
        assert law.epsilon(2) == pytest.approx(math.log(7.0))
    assert law.epsilon_up_to(3) == max(law.epsilon(size) for size in (1, 2, 3))


def test_one_flipped_item_changes_odds_by_its_own_factor_for_who_knows_the_others() -> None:
    law = LAWS[0]
    farthest = max(
        abs(math.log(chances(law, transaction)[after] / chances(law, transaction | {0})[after]))
        for transaction in (frozenset[int](), frozenset({1, 4}))
        for after in SUBSETS
    )
    assert farthest == pytest.approx(law.item_epsilon)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_transactions_are_drawn_by_the_law(law: TransactionOperator) -> None:
    transaction, times = frozenset({0, 2, 5}), 20_000
    drawn = law.randomize(Transactions.of([sorted(transaction)] * times, WIDTH), np.random.default_rng(11))
    words = np.zeros(times, dtype=np.int64)
    np.add.at(words, drawn.rows, 1 << drawn.items.astype(np.int64))
    expected = {sum(1 << item for item in after): chance for after, chance in chances(law, transaction).items()}
    counts = np.bincount(words, minlength=1 << WIDTH)
    likely = [word for word, chance in expected.items() if chance * times >= 5]
    assert all(counts[word] == 0 for word, chance in expected.items() if chance == 0)
    seen = np.array([*(counts[word] for word in likely), times - sum(counts[word] for word in likely)])
    awaited = np.array([*(expected[word] for word in likely), 1 - sum(expected[word] for word in likely)]) * times
    keep = awaited > 1e-6
    assert chisquare(seen[keep], awaited[keep] * seen[keep].sum() / awaited[keep].sum()).pvalue > 1e-6


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_breach_level_is_the_largest_posterior_of_an_item_that_shows(law: TransactionOperator) -> None:
    lists = [[0, 1], [0, 1, 2], [2], [3, 4, 5], [1, 3], [0, 1], [4]]
    found = frequent_itemsets(Transactions.of(lists, WIDTH), 2, longest=2)
    highest = 0.0
    for some in map(frozenset, found.as_tuples()):
        for item in some:
            shows = [
                (
                    frozenset(transaction),
                    sum(chance for after, chance in chances(law, frozenset(transaction)).items() if some <= after),
                )
                for transaction in lists
            ]
            inside = sum(chance for transaction, chance in shows if item in transaction)
            if sum(item in transaction for transaction in lists) <= len(lists) / 2:
                highest = max(highest, inside / sum(chance for _, chance in shows))
    assert breach_level(law, Transactions.of(lists, WIDTH), found)[0] == pytest.approx(highest)


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("flip", {"keep": 0.1, "insert": 0.2}, "above insert"),
        ("flip", {"keep": 0.9}, "takes keep= and insert="),
        ("uniform", {"keep": 1.0}, "probability"),
        ("uniform", {"keep": 0.5, "insert": 0.1}, "nothing else"),
        ("cut-and-paste", {"cutoff": 0, "insert": 0.1}, "1 or more"),
        ("select-a-size", {"gamma": 1.0, "insert": 0.1}, "above 1"),
        ("shake", {}, "choose one of"),
    ],
)
def test_an_operator_that_there_cannot_be_is_refused(name: str, parameters: dict[str, float], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        TransactionOperator(name, 9, **parameters)  # type: ignore[arg-type]


def test_uniform_randomization_needs_items_to_put_in() -> None:
    with pytest.raises(TableError, match="twice as many items"):
        TransactionOperator("uniform", 5, keep=0.5).randomize(Transactions.of([[0, 1, 2]], 5), np.random.default_rng(1))
