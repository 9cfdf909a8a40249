"""Rows from the rounds of a joint K-means: what moved alone is found, what cannot be a row is not claimed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.parties.hidden_centres import guess_centres
from benchmarks.parties.rounds import (
    Rounds,
    after_filling,
    centres_of,
    follow,
    in_domain,
    peel,
    small_groups,
    without,
)
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind
from tests.examples import examples

Whole = NDArray[np.int64]
SEEDS = st.integers(0, 2**32)
ONE = 2**20


def anything(rows: Whole) -> NDArray[np.bool_]:
    return np.ones(len(rows), dtype=np.bool_)


def watched(rows: Whole, centres: NDArray[np.float64]) -> tuple[Rounds, Whole]:
    """Show sizes and sums of the clusters that rows fall into, round by round."""
    weights = np.ones(rows.shape[1])
    labels = follow(rows, centres, weights)
    count = np.stack([np.bincount(label, minlength=centres.shape[1]) for label in labels.T])
    total = np.zeros((*count.shape, rows.shape[1]), dtype=np.int64)
    for t, label in enumerate(labels.T):
        np.add.at(total[t], label, rows)
    return Rounds(centres, weights, count, total), labels


def clustered(seed: int, n: int = 60, g: int = 4, d: int = 3) -> tuple[Whole, Rounds, Whole]:
    """Run K-means on rows of whole numbers; the last round changes nothing."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-ONE, ONE, (n, d))
    start = rng.integers(-ONE, ONE, (g, d)).astype(np.float64)
    centres = start[None]
    while True:
        rounds, labels = watched(rows, centres)
        if len(centres) > 1 and (labels[:, -1] == labels[:, -2]).all():
            return rows, rounds, labels
        count, total = (np.concatenate([opened, opened[-1:]]) for opened in (rounds.count, rounds.total))
        centres = centres_of(start, count, total)


@given(SEEDS)
@examples(20)
def test_centres_follow_from_what_was_opened_before(seed: int) -> None:
    rows, rounds, labels = clustered(seed)
    for t in range(1, len(rounds.centres)):
        for cluster in range(rounds.centres.shape[1]):
            members = rows[labels[:, t - 1] == cluster]
            wanted = members.mean(axis=0) if len(members) else rounds.centres[t - 1, cluster]
            np.testing.assert_allclose(rounds.centres[t, cluster], wanted, rtol=1e-12, atol=1e-6)


@given(SEEDS)
@examples(20)
def test_nothing_is_left_where_all_rows_are_known_and_nothing_is_claimed_then(seed: int) -> None:
    rows, rounds, _ = clustered(seed)
    left = without(rounds, rows)
    assert not left.count.any()
    assert not left.total.any()
    assert len(peel(left, anything)[0]) == 0


@given(SEEDS)
@examples(20)
def test_the_only_row_of_the_others_is_claimed_exactly(seed: int) -> None:
    rows, rounds, _ = clustered(seed)
    claimed, left = peel(without(rounds, rows[1:]), anything)
    np.testing.assert_array_equal(claimed, rows[:1])
    assert not left.count.any()


@given(SEEDS, st.integers(5, 30))
@examples(20)
def test_a_border_that_passes_one_row_a_round_gives_every_row_that_it_passes(seed: int, passed: int) -> None:
    rng = np.random.default_rng(seed)
    place = np.sort(rng.choice(10**6, passed + 40, replace=False)) * 2
    rows = np.column_stack([place, rng.integers(0, 1000, len(place))])
    border = place[10 : 11 + passed] + 1  # between two rows
    centres = np.stack([[[b - 10.0**7, 0.0], [b + 10.0**7, 0.0]] for b in border])
    rounds, labels = watched(rows, centres)
    assert (np.abs(np.diff(rounds.count, axis=0)) == 1).all()
    claimed, _ = peel(rounds, anything)
    movers = rows[(labels != labels[:, :1]).any(axis=1)]
    assert len(movers) == passed
    assert {tuple(row) for row in movers.tolist()} <= {tuple(row) for row in claimed.tolist()}


def test_a_row_outside_its_domain_or_not_nearest_to_what_it_left_is_not_claimed() -> None:
    rows = np.array([[0, 0], [1, 0], [6, 0], [20, 0], [21, 0]])
    centres = np.array([[[0.0, 0.0], [20.0, 0.0]], [[-10.0, 0.0], [20.0, 0.0]]])
    rounds, _ = watched(rows, centres)
    assert [6, 0] in peel(rounds, anything)[0].tolist()
    assert len(peel(rounds, lambda found: found[:, 0] > 100)[0]) == 0
    elsewhere = Rounds(centres[:, ::-1], rounds.weights, rounds.count, rounds.total)  # the centres of others
    assert len(peel(elsewhere, anything)[0]) == 0


def test_rows_are_found_where_sums_are_off_by_what_owners_round() -> None:
    rows = np.array([[0, 0], [100, 0], [600, 0], [2000, 0], [2100, 0]])
    centres = np.array([[[0.0, 0.0], [2000.0, 0.0]], [[-1000.0, 0.0], [2000.0, 0.0]]])
    rounds, _ = watched(rows, centres)
    off = np.array([[[1, 0], [0, -1]], [[-1, 1], [1, 1]]])
    blurred = dataclasses.replace(rounds, total=rounds.total + off, slack=2)
    (found,) = peel(blurred, anything)[0]
    assert np.abs(found - [600, 0]).max() <= 2


def test_sums_of_two_rows_that_left_together_are_not_taken_for_a_row() -> None:
    rows = np.array([[0, 0], [1, 0], [6, 0], [7, 0], [20, 0], [21, 0]])
    centres = np.array([[[0.0, 0.0], [20.0, 0.0]], [[-10.0, 0.0], [20.0, 0.0]]])
    assert len(peel(watched(rows, centres)[0], anything)[0]) == 0


def test_a_row_that_filled_a_cluster_is_claimed_if_it_came_alone() -> None:
    rows = np.array([[0, 3], [1, 4], [6, 5], [20, 1], [21, 2]])
    rounds, labels = watched(rows, np.array([[[0.0, 0.0], [20.0, 0.0]]]))
    labels = labels[:, -1].copy()
    labels[2] = 1
    total = np.stack([rows[labels == cluster].sum(axis=0) for cluster in range(2)])
    count = np.bincount(labels)
    assert after_filling(rounds, count, total, anything).tolist() == [[6, 5]]
    assert len(after_filling(rounds, count, total, lambda found: found[:, 0] > 100)) == 0
    assert len(after_filling(rounds, rounds.count[0], rounds.total[0], anything)) == 0


@given(SEEDS, st.integers(1, 6))
@examples(30)
def test_statistics_of_one_or_two_rows_are_the_rows(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    groups = [rng.integers(-ONE, ONE, (size, d)) for size in (1, 2)]
    total = np.stack([rows.sum(axis=0) for rows in groups])
    products = np.stack([rows.astype(np.float64).T @ rows for rows in groups])
    found = small_groups(np.array([1, 2]), total, products, anything)
    for row in np.concatenate(groups):
        assert np.abs(found - row).max(axis=1).min() <= 64  # steps: the root of products that are doubles


@given(SEEDS)
@examples(30)
def test_statistics_of_three_rows_claim_nothing(seed: int) -> None:
    rows = np.random.default_rng(seed).integers(-ONE, ONE, (3, 4))
    products = (rows.astype(np.float64).T @ rows)[None]
    assert len(small_groups(np.array([3]), rows.sum(axis=0)[None], products, anything)) == 0


@given(SEEDS)
@examples(10)
def test_whoever_owns_all_rows_finds_every_hidden_centre_where_no_cluster_is_ever_empty(seed: int) -> None:
    rows, rounds, labels = clustered(seed)
    assume((rounds.count > 0).all())  # an empty one keeps a centre that no row tells of
    size = np.maximum(rounds.count[-1], 1)[:, None]
    last = np.where(rounds.count[-1][:, None] > 0, rounds.total[-1] / size, rounds.centres[-1])
    guessed = guess_centres(rows.astype(np.float64), labels.T, labels[:, -1], last, rounds.weights)
    for t in range(len(labels.T)):
        filled = rounds.count[t] > 0
        wanted = rounds.total[t][filled] / rounds.count[t][filled, None]
        np.testing.assert_allclose(guessed[t][filled], wanted, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("row", "good"),
    [
        ([5, 1, 0, 0], True),
        ([5, 0, 1, 1], True),
        ([11, 1, 0, 0], False),  # beyond the bound
        ([5, 1, 1, 0], False),  # two categories
        ([5, 0, 0, 0], False),  # none
        ([5, 2, -1, 0], False),  # x + y - z
        ([5, 1, 0, 2], False),  # more than missing
    ],
)
def test_a_row_has_one_category_a_column_and_lies_within_bounds(row: list[int], good: bool) -> None:
    layout = (
        Block("age", BlockKind.NUMBER, 0, 1),
        Block("town", BlockKind.CATEGORY, 1, 3),
        Block("age", BlockKind.MISSING, 3, 4),
    )
    mark = round(CATEGORY_SCALE * ONE)
    scale = np.array([1, mark, mark, ONE])
    far = np.array([10, 2 * mark, 2 * mark, 2 * ONE])
    assert in_domain(layout, -far, far, np.full(4, ONE))(np.array([row]) * scale).tolist() == [good]
