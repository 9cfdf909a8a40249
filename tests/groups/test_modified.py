"""Modified condensation: how many groups, how large, and who may be taken from whom [KCG12, fig. 3]."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import OptionError
from sfumato.core.groups import response_weights
from sfumato.core.groups.kmeans import fill_clusters, modified_groups
from sfumato.core.records import Block, BlockKind, Records
from sfumato.methods.condense import ALGORITHMS, Condensation
from sfumato.methods.condense.partition import partition
from tests.condense.tables import VALUES, draw_values, ssq
from tests.examples import examples

seeds = st.integers(0, 2**32 - 1)


@examples(100)
@given(st.sampled_from(VALUES), st.integers(1, 150), st.integers(1, 6), st.integers(1, 20), seeds)
def test_there_are_as_many_groups_as_there_can_be_each_of_at_least_an_equal_share(
    kind: str, n: int, d: int, k: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    k, values = min(k, n), draw_values(rng, kind, min(n, 40) if kind == "wide" else n, d)
    k = min(k, len(values))
    groups = modified_groups(values, k, rng)
    assert len(groups) == len(values) // k
    assert min(len(group) for group in groups) >= len(values) // len(groups) >= k
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(values)))
    assert all((np.diff(group) > 0).all() for group in groups)


def test_records_closest_to_the_small_cluster_move_to_it() -> None:
    # the example of [BCG10, fig. 1]: clusters of 6 and 2 become groups of 4
    values = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [9.0], [10.0]])
    labels = fill_clusters(values, np.array([0] * 6 + [1] * 2), np.array([[2.5], [9.5]]), 4)
    assert labels.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_donor_that_falls_short_is_filled_in_its_turn() -> None:
    # cluster 1 gives to cluster 0, which was filled first, and takes from cluster 2 afterwards
    values = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0], [13.0], [14.0], [15.0]])
    labels = fill_clusters(values, np.array([0, 1, 1, 2, 2, 2, 2, 2, 2]), np.array([[0.0], [1.5], [12.5]]), 3)
    assert labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_an_empty_cluster_is_filled_around_its_centre() -> None:
    values = np.arange(6.0)[:, None]
    labels = fill_clusters(values, np.zeros(6, dtype=np.int64), np.array([[2.5], [9.0]]), 3)
    assert labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_leftovers_stay_in_the_clusters_that_have_enough() -> None:
    values = np.array([[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2]])
    labels = np.array([0, 0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(fill_clusters(values, labels, np.array([[0.15], [5.1]]), 3), labels)


def test_more_than_there_is_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="6 records cannot give 4 to each of 2 clusters"):
        fill_clusters(np.arange(6.0)[:, None], np.zeros(6, dtype=np.int64), np.zeros((2, 1)), 4)


def test_what_was_given_is_left_as_it_is() -> None:
    values, labels = np.arange(6.0)[:, None], np.zeros(6, dtype=np.int64)
    fill_clusters(values, labels, np.array([[2.5], [9.0]]), 3)
    assert not labels.any()


@pytest.mark.parametrize("batch", [1, 10**9])
def test_how_often_it_looks_at_ctrl_c_makes_no_difference(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    values = np.random.default_rng(0).normal(size=(300, 3))
    expected = [group.tolist() for group in modified_groups(values, 7, np.random.default_rng(1))]
    monkeypatch.setattr("sfumato.core.groups.kmeans._PAIRS_A_CALL", batch)
    monkeypatch.setattr("sfumato.core.groups.kmeans._STEPS_A_CALL", batch)
    assert [group.tolist() for group in modified_groups(values, 7, np.random.default_rng(1))] == expected


@pytest.mark.parametrize("grouping", ["modified", "holistic"])
def test_a_stratum_is_grouped_at_the_highest_level_in_it(grouping: str) -> None:
    rng = np.random.default_rng(0)
    values, strata = rng.normal(size=(90, 3)), np.repeat([0, 1], 45)
    levels = np.where(strata == 0, 3, 4)
    levels[7] = 9
    labels = partition(values, levels, strata, rng, grouping=grouping)
    sizes = np.bincount(labels)[labels]
    assert sizes[strata == 0].min() >= 9
    assert sizes[strata == 1].min() >= 4


def with_response(rng: np.random.Generator, n: int) -> Records:
    layout = tuple(Block(name, BlockKind.NUMBER, j, j + 1, (0.0,)) for j, name in enumerate("abcy"))
    nothing = np.zeros(n, dtype=np.int64)
    return Records(rng.normal(size=(n, 4)), layout, nothing, nothing.copy(), "y")


@pytest.mark.parametrize("grouping", ["modified", "holistic", "paper", "compact"])
def test_more_weight_on_the_response_makes_groups_more_alike_in_it(grouping: str) -> None:
    records = with_response(np.random.default_rng(0), 600)
    within = []
    for weight in (0.0, 0.25, 0.8, 1.0):
        mechanism = Condensation(k=10, grouping=grouping, effort="fast", response_weight=weight)
        workings = mechanism.sanitize(records, rng=np.random.default_rng(1)).workings
        assert workings.labels is not None
        within.append(ssq(records.values[:, 3:], workings.labels))
    assert within[0] > 1.5 * within[1] > 2.0 * within[2] > 2.0 * within[3]


def drawn(records: Records, grouping: str, weight: float | None) -> bytes:
    mechanism = Condensation(k=5, grouping=grouping, response_weight=weight)
    return mechanism.sanitize(records, rng=np.random.default_rng(1)).records.values.tobytes()


@pytest.mark.parametrize("grouping", ["modified", "holistic", "paper"])
def test_the_weight_plays_no_part_without_a_target(grouping: str) -> None:
    records = with_response(np.random.default_rng(0), 60)
    blind = Records(records.values, records.layout, records.levels, records.strata)
    assert drawn(blind, grouping, 0.1) == drawn(blind, grouping, 0.9)


def test_where_no_weight_is_given_the_papers_own_groupings_take_0_8_and_the_others_weigh_all_columns_alike() -> None:
    records = with_response(np.random.default_rng(0), 64)
    for grouping in ("modified", "holistic"):
        assert drawn(records, grouping, None) == drawn(records, grouping, 0.8) != drawn(records, grouping, 0.25)
    for grouping in ("paper", "mdav"):
        assert drawn(records, grouping, None) == drawn(records, grouping, 0.25) != drawn(records, grouping, 0.8)


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan"), True])
def test_the_weight_of_the_response_lies_between_0_and_1(weight: float) -> None:
    with pytest.raises(OptionError, match=r"between 0 and 1; the default is 0\.8|of type bool; give a number"):
        Condensation(response_weight=weight)


@pytest.mark.parametrize("grouping", ALGORITHMS)
def test_weights_stretch_the_distances_of_any_grouping(grouping: str) -> None:
    records = with_response(np.random.default_rng(0), 60)
    weights = response_weights(records.layout, records.target, 0.6)
    mechanism = Condensation(k=5, grouping=grouping, response_weight=0.6)
    workings = mechanism.sanitize(records, rng=np.random.default_rng(1)).workings
    stretched = records.values * np.sqrt(weights)
    labels = partition(stretched, np.full(60, 5), records.strata, np.random.default_rng(1), grouping=grouping)
    np.testing.assert_array_equal(workings.labels, labels)


def test_the_method_stays_condense() -> None:
    assert Condensation(grouping="modified").method == Condensation(grouping="holistic").method == "condense"


def test_weights_of_one_column_are_all_the_same() -> None:
    layout = (Block("y", BlockKind.CATEGORY, 0, 3, (0.0,) * 3), Block("y", BlockKind.MISSING, 3, 4))
    assert len(set(response_weights(layout, "y", 0.8).tolist())) == 1
