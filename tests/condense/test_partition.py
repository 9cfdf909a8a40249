"""What every partition promises, over random levels, sizes, duplicates, constant columns, d > n and strata."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.condense.mechanism import effective_levels
from sfumato.condense.partition import check_partition, partition
from sfumato.errors import LevelError, OptionError, PrivacyRefusal

Arrays = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]


@st.composite
def feasible(draw: st.DrawFn) -> Arrays:
    """Values, levels and strata that some partition can meet."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(1, 50))
    parts, levels, strata = [], [], []
    for stratum in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 40))
        distinct = draw(st.integers(1, n))
        parts.append(rng.normal(size=(distinct, d))[rng.integers(0, distinct, n)])
        top = draw(st.integers(1, n))
        levels.append(rng.integers(draw(st.integers(1, top)), top + 1, n))
        strata.append(np.full(n, 7 * stratum))
    values = np.concatenate(parts)
    values[:, : draw(st.integers(0, d))] = 1.5
    shuffled = rng.permutation(len(values))
    return values[shuffled], np.concatenate(levels)[shuffled], np.concatenate(strata)[shuffled]


@settings(max_examples=150, deadline=None)
@given(feasible(), st.integers(0, 2**32 - 1))
def test_every_record_is_in_one_group_at_least_as_large_as_the_highest_level_in_it(arrays: Arrays, seed: int) -> None:
    values, levels, strata = arrays
    labels = partition(values, levels, strata, np.random.default_rng(seed))
    sizes = np.bincount(labels)
    highest = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(highest, labels, levels)
    assert labels.shape == levels.shape
    assert sorted(set(labels.tolist())) == list(range(len(sizes)))
    assert (sizes >= highest).all()
    for group in range(len(sizes)):
        assert len(np.unique(strata[labels == group])) == 1


@settings(max_examples=30, deadline=None)
@given(feasible(), st.integers(0, 2**32 - 1))
def test_the_same_seed_gives_the_same_groups(arrays: Arrays, seed: int) -> None:
    first = partition(*arrays, np.random.default_rng(seed))
    np.testing.assert_array_equal(first, partition(*arrays, np.random.default_rng(seed)))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_as_many_records_as_the_level_are_one_group(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = partition(rng.normal(size=(n, d)), np.full(n, n), np.zeros(n, dtype=np.int64), rng)
    np.testing.assert_array_equal(labels, 0)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_with_one_level_no_group_is_twice_as_large_as_it_needs_to_be_on_average(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(k, 100))
    labels = partition(rng.normal(size=(n, 3)), np.full(n, k), np.zeros(n, dtype=np.int64), rng)
    assert labels.max() + 1 == n // k


def test_records_of_level_1_may_stand_alone() -> None:
    values, levels = np.arange(4.0)[:, None], np.ones(4, dtype=np.int64)
    labels = partition(values, levels, np.zeros(4, dtype=np.int64), np.random.default_rng(0))
    assert sorted(labels.tolist()) == [0, 1, 2, 3]


def test_fewer_records_than_the_highest_level_are_refused_with_both_numbers() -> None:
    with pytest.raises(LevelError, match=r"there are 7 records and the highest privacy level is 9; lower the level"):
        partition(np.zeros((7, 2)), np.array([2] * 6 + [9]), np.zeros(7, dtype=np.int64), np.random.default_rng(0))


def test_no_records_are_refused() -> None:
    nothing = np.empty(0, dtype=np.int64)
    with pytest.raises(LevelError, match="there are 0 records"):
        partition(np.empty((0, 2)), nothing, nothing, np.random.default_rng(0))


def test_strata_smaller_than_their_level_are_refused_with_how_many_and_the_smallest() -> None:
    strata = np.array([0] * 10 + [1] * 4 + [2] * 3 + [3] * 6)
    with pytest.raises(LevelError, match=r"2 of 4 strata have fewer records .* smallest has 3 and level 5"):
        partition(np.zeros((23, 1)), np.full(23, 5), strata, np.random.default_rng(0))


def test_an_unknown_grouping_is_refused() -> None:
    with pytest.raises(OptionError, match="there is no grouping 'best'"):
        partition(
            np.zeros((4, 1)), np.full(4, 2), np.zeros(4, dtype=np.int64), np.random.default_rng(0), grouping="best"
        )


@pytest.mark.parametrize(
    ("labels", "levels", "violations"),
    [
        ([0, 0, 1], [2, 2, 2], 1),  # a group of one
        ([0, 0, 0, 1, 1], [2, 2, 2, 2, 3], 1),  # a group of two with a level of three
        ([0, 0, 2, 2], [2, 2, 2, 2], 0),  # a label that nobody has
        ([0, 0, -1], [2, 2, 1], 3),  # a record without a group
    ],
)
def test_a_partition_that_breaks_a_level_is_refused(labels: list[int], levels: list[int], violations: int) -> None:
    with pytest.raises(PrivacyRefusal, match=f"^{violations} records came out .* nothing is released"):
        check_partition(np.array(labels), np.array(levels))


def test_records_that_no_group_takes_are_refused() -> None:
    levels = np.array([2, 2, 0])  # a level of 0 never reaches the figures
    with pytest.raises(PrivacyRefusal, match="nothing is released"):
        partition(np.zeros((3, 1)), levels, np.zeros(3, dtype=np.int64), np.random.default_rng(0))


def test_a_partition_that_meets_every_level_passes() -> None:
    check_partition(np.array([1, 0, 1, 0, 2]), np.array([2, 2, 2, 2, 1]))


@given(st.lists(st.integers(2, 60) | st.just(0), min_size=1, max_size=20), st.integers(2, 50))
def test_the_effective_level_is_the_higher_of_k_and_the_level_asked(asked: list[int], k: int) -> None:
    levels = effective_levels(np.array(asked), k, allow_level_1=False)
    assert levels.tolist() == [max(k, level) for level in asked]


def test_level_1_needs_permission_and_negative_levels_are_refused() -> None:
    with pytest.raises(LevelError, match="2 records ask for privacy level 1, which is no protection"):
        effective_levels(np.array([1, 1, 5]), 3, allow_level_1=False)
    assert effective_levels(np.array([0, 1, 5]), 1, allow_level_1=True).tolist() == [1, 1, 5]
    with pytest.raises(LevelError, match="1 privacy levels are negative"):
        effective_levels(np.array([-4, 2]), 3, allow_level_1=True)
