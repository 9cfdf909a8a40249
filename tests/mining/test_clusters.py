"""K-means on groups: laws, three cases, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from sfumato.core.errors import BadInput, OptionError
from sfumato.core.groups import Groups, concat, summarize
from sfumato.mining import GroupKMeans
from sfumato.mining.clusters import inertia, lloyd, seed_centres
from tests.examples import examples
from tests.groups.drawn_groups import from_moments


def random_table(seed: int, g: int, d: int) -> tuple[NDArray[np.float64], NDArray[np.int64], Groups]:
    """Records in groups of 1 to 6 about random places."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(g), rng.integers(1, 7, g))
    values = (rng.normal(size=(g, d)) * 3.0)[labels] + rng.normal(size=(len(labels), d))
    return values, labels, summarize(values, labels, np.ones(len(labels), dtype=np.int64))


def blobs(seed: int, centres: list[float], n: int = 40) -> tuple[NDArray[np.float64], NDArray[np.int64], Groups]:
    """Three clear clusters, each cut into groups of 5."""
    rng = np.random.default_rng(seed)
    of_record = np.repeat(np.arange(len(centres)), n)
    values = np.asarray(centres)[of_record][:, None] + rng.normal(size=(len(of_record), 2))
    labels = np.arange(len(values)) // 5
    return values, of_record, summarize(values, labels, np.full(len(values), 5))


@given(seed=st.integers(0, 100_000), g=st.integers(4, 25), d=st.integers(1, 4), k=st.integers(1, 4))
def test_inertia_is_that_of_the_records_under_the_same_assignment(seed: int, g: int, d: int, k: int) -> None:
    values, labels, groups = random_table(seed, g, d)
    clusters = GroupKMeans(n_clusters=k, n_init=2, random_state=seed).fit(groups)
    far = ((values - clusters.cluster_centers_[clusters.labels_[labels]]) ** 2).sum()
    np.testing.assert_allclose(clusters.inertia_, far, rtol=1e-9, atol=1e-9)


@given(seed=st.integers(0, 100_000), g=st.integers(4, 25), d=st.integers(1, 4), k=st.integers(1, 4))
def test_centres_are_the_means_of_their_records_and_nearest_to_their_groups(seed: int, g: int, d: int, k: int) -> None:
    values, labels, groups = random_table(seed, g, d)
    clusters = GroupKMeans(n_clusters=k, n_init=1, random_state=seed).fit(groups)
    of_record = clusters.labels_[labels]
    means = np.array([values[of_record == c].mean(axis=0) for c in range(k)])
    np.testing.assert_allclose(clusters.cluster_centers_, means, atol=1e-9)
    far = ((groups.mean[:, None] - clusters.cluster_centers_) ** 2).sum(axis=2)
    assert (far[np.arange(g), clusters.labels_] <= far.min(axis=1) + 1e-9).all()


@given(seed=st.integers(0, 100_000))
@examples(30)
def test_no_step_of_lloyd_raises_the_inertia(seed: int) -> None:
    _, _, groups = random_table(seed, 30, 3)
    seeds = seed_centres(groups, 5, np.random.default_rng(seed))
    runs = [lloyd(groups, seeds, steps) for steps in range(1, 8)]
    reached = [inertia(groups, labels, centres) for labels, centres, _ in runs]
    assert (np.diff(reached) <= 1e-9 * reached[0]).all()


def test_groups_of_one_record_give_the_k_means_of_scikit_learn() -> None:
    values, _, _ = random_table(1, 60, 3)
    groups = summarize(values, np.arange(len(values)), np.ones(len(values), dtype=np.int64))
    seeds = seed_centres(groups, 4, np.random.default_rng(0))
    labels, centres, _ = lloyd(groups, seeds, 300)
    theirs = KMeans(4, init=seeds, n_init=1, tol=0.0, algorithm="lloyd").fit(values)
    np.testing.assert_array_equal(labels, theirs.labels_)
    np.testing.assert_allclose(inertia(groups, labels, centres), theirs.inertia_, rtol=1e-9)


def test_weights_count_as_repeated_records() -> None:
    _, _, groups = random_table(2, 40, 2)
    seeds = seed_centres(groups, 3, np.random.default_rng(0))
    labels, centres, _ = lloyd(groups, seeds, 300)
    theirs = KMeans(3, init=seeds, n_init=1, tol=0.0).fit(groups.mean, sample_weight=groups.count)
    np.testing.assert_array_equal(labels, theirs.labels_)
    np.testing.assert_allclose(centres, theirs.cluster_centers_, atol=1e-9)


def test_merging_identical_groups_changes_no_step() -> None:
    _, _, groups = random_table(3, 30, 2)
    seeds = seed_centres(groups, 4, np.random.default_rng(0))
    twice = from_moments(groups.count * 2, groups.mean, groups.covariance)
    labels, centres, _ = lloyd(concat(groups, groups), seeds, 300)
    merged, same, _ = lloyd(twice, seeds, 300)
    np.testing.assert_array_equal(labels, np.tile(merged, 2))
    np.testing.assert_allclose(centres, same, atol=1e-12)
    np.testing.assert_allclose(
        inertia(concat(groups, groups), labels, centres), inertia(twice, merged, same), rtol=1e-12
    )


def test_clear_clusters_are_found_and_one_cluster_has_the_total_sum_of_squares() -> None:
    values, of_record, groups = blobs(4, [0.0, 20.0, 50.0])
    found = GroupKMeans(n_clusters=3).fit(groups).predict(values)
    assert len({(int(a), int(b)) for a, b in zip(found, of_record, strict=True)}) == 3
    one = GroupKMeans(n_clusters=1).fit(groups)
    np.testing.assert_allclose(one.inertia_, ((values - values.mean(axis=0)) ** 2).sum(), rtol=1e-9)


def test_the_same_seed_gives_the_same_clusters_and_more_seedings_never_worse_ones() -> None:
    _, _, groups = random_table(5, 80, 3)
    first, again = (GroupKMeans(n_clusters=6, random_state=3).fit(groups) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, again.labels_)
    np.testing.assert_array_equal(first.cluster_centers_, again.cluster_centers_)
    assert first.inertia_ <= GroupKMeans(n_clusters=6, n_init=1, random_state=3).fit(groups).inertia_


def test_an_empty_cluster_takes_the_group_that_costs_most() -> None:
    groups = from_moments(np.full(4, 3), np.array([[0.0], [1.0], [2.0], [9.0]]), np.zeros((4, 1, 1)))
    labels, centres, _ = lloyd(groups, np.array([[0.0], [50.0], [60.0]]), 300)
    assert len(np.unique(labels)) == 3
    assert np.isfinite(centres).all()
    assert 9.0 in centres


def test_as_many_clusters_as_groups_leave_the_scatter_alone() -> None:
    _, _, groups = random_table(6, 12, 2)
    np.testing.assert_allclose(GroupKMeans(n_clusters=12).fit(groups).inertia_, groups.ssq, rtol=1e-9)


def test_bad_input_is_refused_with_counts() -> None:
    values, _, groups = random_table(7, 5, 2)
    with pytest.raises(BadInput, match="5 groups for 6 clusters"):
        GroupKMeans(n_clusters=6).fit(groups)
    constant = from_moments(np.full(5, 3), np.ones((5, 2)), np.zeros((5, 2, 2)))
    with pytest.raises(BadInput, match="1 different centroids for 2 clusters"):
        GroupKMeans(n_clusters=2).fit(constant)
    assert GroupKMeans(n_clusters=1).fit(constant).inertia_ == 0.0
    with pytest.raises(OptionError, match="n_clusters is 0"):
        GroupKMeans(n_clusters=0).fit(groups)
    with pytest.raises(OptionError, match="n_init"):
        GroupKMeans(n_init=True).fit(groups)
    with pytest.raises(BadInput, match="3 coordinates and the groups 2"):
        GroupKMeans(n_clusters=2).fit(groups).predict(np.ones((1, 3)))
    with pytest.raises(BadInput, match="learned nothing yet"):
        GroupKMeans().predict(values)
    empty = from_moments(np.array([3, 0]), np.ones((2, 1)), np.zeros((2, 1, 1)))
    with pytest.raises(BadInput, match="1 of 2 groups have no records"):
        GroupKMeans(n_clusters=1).fit(empty)
    odd = from_moments(np.array([3, 3]), np.array([[1.0], [np.nan]]), np.zeros((2, 1, 1)))
    with pytest.raises(BadInput, match="1 of 2 groups have statistics that are not finite"):
        GroupKMeans(n_clusters=1).fit(odd)
