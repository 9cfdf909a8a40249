"""K-means: each record with its nearest centre, each centre the mean of its records."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.groups.kmeans import k_means
from tests.examples import examples

seeds = st.integers(0, 2**32 - 1)


@given(st.integers(1, 120), st.integers(1, 5), st.integers(1, 20), seeds)
def test_it_ends_where_no_record_has_a_nearer_centre_and_centres_are_means(
    n: int, d: int, count: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values, count = rng.normal(size=(n, d)), min(count, n)
    labels, centres = k_means(values, count, rng)
    apart = ((values[:, None, :] - centres[None]) ** 2).sum(axis=2)
    own = apart[np.arange(n), labels]
    assert (own <= apart.min(axis=1) + 1e-9).all()  # rounds end only then on tables so small
    for cluster in np.unique(labels):
        np.testing.assert_allclose(centres[cluster], values[labels == cluster].mean(axis=0), atol=1e-9)


@examples(30)
@given(st.integers(1, 40), st.integers(1, 4), seeds)
def test_equal_records_share_the_first_of_their_clusters(n: int, count: int, seed: int) -> None:
    values = np.full((n, 3), 0.1)
    labels, centres = k_means(values, min(count, n), np.random.default_rng(seed))
    assert not labels.any()
    np.testing.assert_allclose(centres, 0.1)


def test_separate_clusters_are_found_from_one_start_in_each() -> None:
    values = np.repeat([[0.0, 0.0], [50.0, 9.0]], 20, axis=0) + np.random.default_rng(0).normal(size=(40, 2))
    for seed in range(20):
        labels, _ = k_means(values, 2, np.random.default_rng(seed))
        assert len(set(labels[:20].tolist())) == len(set(labels[20:].tolist())) == 1


def test_the_table_is_left_as_it_is_and_the_order_of_its_columns_makes_no_difference() -> None:
    values = np.random.default_rng(0).normal(size=(200, 4)) * [1.0, 5.0, 0.1, 2.0]
    before = values.copy()
    labels, centres = k_means(values, 9, np.random.default_rng(1))
    turned, turned_centres = k_means(values[:, ::-1], 9, np.random.default_rng(1))
    np.testing.assert_array_equal(values, before)
    np.testing.assert_array_equal(labels, turned)
    np.testing.assert_array_equal(centres[:, ::-1], turned_centres)


@pytest.mark.parametrize("rounds", [4, 100])
def test_more_rounds_never_make_clusters_wider(monkeypatch: pytest.MonkeyPatch, rounds: int) -> None:
    values = np.random.default_rng(0).normal(size=(500, 3))
    monkeypatch.setattr("sfumato.core.groups.kmeans._MOST", 1)
    monkeypatch.setattr("sfumato.core.groups.kmeans._FEWEST", 1)
    labels, centres = k_means(values, 40, np.random.default_rng(1))
    once = ((values - centres[labels]) ** 2).sum()
    monkeypatch.setattr("sfumato.core.groups.kmeans._MOST", rounds)
    monkeypatch.setattr("sfumato.core.groups.kmeans._FEWEST", rounds)
    labels, centres = k_means(values, 40, np.random.default_rng(1))
    assert ((values - centres[labels]) ** 2).sum() < once


@pytest.mark.parametrize("seed", range(5))
def test_every_record_is_a_first_centre_where_there_are_as_many_clusters(seed: int) -> None:
    values = np.random.default_rng(0).normal(size=(9, 2))
    labels, centres = k_means(values, 9, np.random.default_rng(seed))
    assert sorted(labels.tolist()) == list(range(9))
    np.testing.assert_array_equal(centres[labels], values)


def test_how_many_records_are_labelled_at_once_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=(60, 3))
    whole = k_means(values, 7, np.random.default_rng(1))
    for steps in (1, 7 * 3 * 13):
        monkeypatch.setattr("sfumato.core.groups.kmeans._STEPS_A_CALL", steps)
        for found, expected in zip(k_means(values, 7, np.random.default_rng(1)), whole, strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("fewest", "steps", "rounds"),
    [(4, 1, 4), (1, 500 * 40 * 3, 1), (1, 500 * 40 * 3 + 1, 2)],
    ids=["the fewest", "the work of a round", "a little more"],
)
def test_a_bound_on_the_work_ends_it_after_the_fewest_rounds(
    monkeypatch: pytest.MonkeyPatch, fewest: int, steps: int, rounds: int
) -> None:
    """A first round looks at 3 coordinates of 40 centres for each of 500 records."""
    told: list[float] = []
    monkeypatch.setattr("sfumato.core.groups.kmeans.tell", lambda _what, share: told.append(share))
    monkeypatch.setattr("sfumato.core.groups.kmeans._FEWEST", fewest)
    values = np.random.default_rng(0).normal(size=(500, 3))
    k_means(values, 40, np.random.default_rng(1))
    assert len(told) > 5
    assert 0.0 <= min(told) <= max(told) < 1.0
    told.clear()
    monkeypatch.setattr("sfumato.core.groups.kmeans._STEPS", steps)
    k_means(values, 40, np.random.default_rng(1))
    assert len(told) == rounds
    assert told[-1] == 1.0
