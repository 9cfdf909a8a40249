"""The holistic variant: small clusters dissolved into neighbours [BCG10, sec. 3.1]."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.groups.kmeans import dissolve_clusters, holistic_groups
from tests.condense.tables import VALUES, draw_values
from tests.examples import examples


@examples(100)
@given(st.sampled_from(VALUES), st.integers(1, 150), st.integers(1, 6), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_no_group_is_too_small_and_nothing_is_lost(kind: str, n: int, d: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = draw_values(rng, kind, min(n, 40) if kind == "wide" else n, d)
    k = min(k, len(values))
    groups = holistic_groups(values, k, rng)
    assert 1 <= len(groups) <= len(values) // k
    assert min(len(group) for group in groups) >= k
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(values)))
    assert all((np.diff(group) > 0).all() for group in groups)


def test_records_that_lie_apart_are_groups_apart() -> None:
    values = np.repeat(np.array([[0.0], [50.0], [100.0], [150.0]]), 3, axis=0) + np.tile([[0.0], [0.1], [0.2]], (4, 1))
    groups = holistic_groups(values, 3, np.random.default_rng(1))
    assert sorted(group.tolist() for group in groups) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]


def test_with_k_of_1_a_record_that_lies_apart_is_a_group_by_itself() -> None:
    values = np.array([[0.0], [0.1], [50.0], [100.0]])
    groups = holistic_groups(values, 1, np.random.default_rng(1), clusters=3)
    assert sorted(group.tolist() for group in groups) == [[0, 1], [2], [3]]


def test_a_small_cluster_goes_where_the_papers_example_says() -> None:
    # clusters of 6 and 2, groups of 4 wanted: one group is left [BCG10, sec. 4.1]
    values = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [9.0], [10.0]])
    labels = dissolve_clusters(values, np.array([0] * 6 + [1] * 2), np.array([[2.5], [9.5]]), 4)
    assert labels.tolist() == [0] * 8


def test_each_record_goes_to_its_own_nearest_cluster() -> None:
    values = np.array([[0.0], [0.1], [0.2], [4.0], [6.0], [9.8], [9.9], [10.0]])
    labels = dissolve_clusters(values, np.array([0, 0, 0, 1, 1, 2, 2, 2]), np.array([[0.1], [5.0], [9.9]]), 3)
    assert labels.tolist() == [0, 0, 0, 0, 2, 2, 2, 2]


def test_a_cluster_that_grows_to_k_before_its_turn_stays() -> None:
    values = np.array([[0.0], [1.0], [1.1], [5.0], [5.1], [5.2]])
    labels = dissolve_clusters(values, np.array([0, 1, 1, 2, 2, 2]), np.array([[0.0], [1.05], [5.1]]), 3)
    assert labels.tolist() == [1, 1, 1, 2, 2, 2]


def test_all_records_are_one_group_where_no_cluster_is_large_enough() -> None:
    values = np.arange(5.0)[:, None]
    labels = dissolve_clusters(values, np.arange(5), values, 5)
    assert len(set(labels.tolist())) == 1
