"""What every partition promises, over random levels, sizes, duplicates, constant columns, d > n and strata."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal
from sfumato.core.groups import check_partition
from sfumato.methods.condense import ALGORITHMS, effective_levels
from sfumato.methods.condense.partition import can_begin, partition
from tests.condense.tables import Table, assert_meets, no_strata, stratified_tables
from tests.examples import examples, sized

# The compact search is fast here, where there are many tables; test_compact has a few for its longer searches.
every_grouping = pytest.mark.parametrize("grouping", ALGORITHMS)


@every_grouping
@examples(100)
@given(stratified_tables(most=sized(60, 130)), st.integers(0, 2**32 - 1))
def test_every_record_is_in_one_group_at_least_as_large_as_the_highest_level_in_it(
    grouping: str, table: Table, seed: int
) -> None:
    values, levels, strata = table
    labels = partition(values, levels, strata, np.random.default_rng(seed), grouping=grouping, effort="fast")
    assert_meets(labels, levels, strata)


@every_grouping
@examples(25, few=5)
@given(stratified_tables(), st.integers(0, 2**32 - 1))
def test_the_same_seed_gives_the_same_groups(grouping: str, table: Table, seed: int) -> None:
    first, again = (partition(*table, np.random.default_rng(seed), grouping=grouping, effort="fast") for _ in range(2))
    np.testing.assert_array_equal(first, again)


@every_grouping
@given(st.integers(1, 30), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_as_many_records_as_the_level_are_one_group(grouping: str, n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = partition(rng.normal(size=(n, d)), np.full(n, n), np.zeros(n, dtype=np.int64), rng, grouping=grouping)
    np.testing.assert_array_equal(labels, 0)


@pytest.mark.parametrize("grouping", [grouping for grouping in ALGORITHMS if grouping != "holistic"])
@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_with_one_level_groups_are_not_twice_as_large_as_they_need_to_be_on_average(
    grouping: str, k: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(k, 200))
    values = rng.normal(size=(n, 3))
    labels = partition(values, np.full(n, k), no_strata(values), rng, grouping=grouping, effort="fast")
    assert n < 2 * k * (labels.max() + 1)


@pytest.mark.parametrize("grouping", ["mdav", "paper", "modified"])
@examples(30)
@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_with_one_level_there_are_as_many_groups_as_there_can_be(grouping: str, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(k, 100))
    values = rng.normal(size=(n, 3))
    labels = partition(values, np.full(n, k), no_strata(values), rng, grouping=grouping)
    assert labels.max() + 1 == n // k


@every_grouping
@examples(15, few=2)
@given(stratified_tables())
def test_the_table_is_left_as_it_is(grouping: str, table: Table) -> None:
    before = [array.copy() for array in table]
    partition(*table, np.random.default_rng(0), grouping=grouping, effort="fast")
    for array, copy in zip(table, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@every_grouping
def test_how_the_table_lies_in_memory_makes_no_difference(grouping: str) -> None:
    rng = np.random.default_rng(0)
    n = sized(100, 300)
    wide, asked = rng.normal(size=(n, 8)), rng.integers(2, 7, 2 * n)
    values, levels = np.ascontiguousarray(wide[::2, ::2]), np.ascontiguousarray(asked[::4])
    expected = partition(values, levels, no_strata(values), np.random.default_rng(1), grouping=grouping)
    for strange in (wide[::2, ::2], np.asfortranarray(values)):
        labels = partition(strange, asked[::4], no_strata(values), np.random.default_rng(1), grouping=grouping)
        np.testing.assert_array_equal(labels, expected)


@every_grouping
def test_single_precision_gives_the_groups_of_the_same_numbers_in_double_precision(grouping: str) -> None:
    n = sized(60, 150)
    values = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    levels, strata = np.full(n, 4), np.zeros(n, dtype=np.int64)
    exact = partition(values.astype(np.float64), levels, strata, np.random.default_rng(1), grouping=grouping)
    single = partition(values, levels, strata, np.random.default_rng(1), grouping=grouping)  # type: ignore[arg-type]
    np.testing.assert_array_equal(single, exact)


@every_grouping
def test_records_of_level_1_may_stand_alone(grouping: str) -> None:
    values, levels = np.arange(4.0)[:, None], np.ones(4, dtype=np.int64)
    labels = partition(values, levels, np.zeros(4, dtype=np.int64), np.random.default_rng(0), grouping=grouping)
    assert sorted(labels.tolist()) == [0, 1, 2, 3]


def test_fewer_records_than_the_highest_level_are_refused_with_both_numbers() -> None:
    with pytest.raises(LevelError, match=r"there are 7 records and the highest privacy level is 9; lower the level"):
        partition(np.zeros((7, 2)), np.array([2] * 6 + [9]), np.zeros(7, dtype=np.int64), np.random.default_rng(0))


def test_a_value_that_is_not_finite_does_not_end_the_process() -> None:
    program = """
import numpy as np
from sfumato.methods.condense.partition import partition
for broken in (np.nan, np.inf):
    values = np.random.default_rng(0).normal(size=(500, 3))
    values[7, 1] = broken
    try:
        partition(values, np.full(500, 5), np.zeros(500, dtype=np.int64), np.random.default_rng(0), effort="fast")
    except Exception:
        pass
print("came to its end")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "came to its end" in ended.stdout, ended.stderr


def test_no_records_are_refused() -> None:
    nothing = np.empty(0, dtype=np.int64)
    with pytest.raises(LevelError, match="there are 0 records"):
        partition(np.empty((0, 2)), nothing, nothing, np.random.default_rng(0))


def test_strata_smaller_than_their_level_are_refused_with_how_many_and_the_smallest() -> None:
    strata = np.array([0] * 10 + [1] * 4 + [2] * 3 + [3] * 6)
    with pytest.raises(LevelError, match=r"2 of 4 strata have fewer records .* smallest has 3 and level 5"):
        partition(np.zeros((23, 1)), np.full(23, 5), strata, np.random.default_rng(0))


def test_an_unknown_grouping_or_effort_is_refused() -> None:
    with pytest.raises(OptionError, match="there is no grouping 'best'"):
        partition(
            np.zeros((4, 1)), np.full(4, 2), np.zeros(4, dtype=np.int64), np.random.default_rng(0), grouping="best"
        )
    with pytest.raises(OptionError, match="there is no effort 'much'"):
        partition(np.zeros((4, 1)), np.full(4, 2), np.zeros(4, dtype=np.int64), np.random.default_rng(0), effort="much")


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


@pytest.mark.parametrize("grouping", ALGORITHMS)
@pytest.mark.parametrize("level", [0, -1])
def test_levels_below_one_are_refused(grouping: str, level: int) -> None:
    levels = np.array([2, 2, level])
    with pytest.raises(LevelError, match="1 privacy levels are zero or negative"):
        partition(np.zeros((3, 1)), levels, np.zeros(3, dtype=np.int64), np.random.default_rng(0), grouping=grouping)


def test_a_partition_that_meets_every_level_passes() -> None:
    check_partition(np.array([1, 0, 1, 0, 2]), np.array([2, 2, 2, 2, 1]))


@given(st.lists(st.integers(2, 60) | st.just(0), min_size=1, max_size=20), st.integers(2, 50))
def test_the_effective_level_is_the_higher_of_k_and_the_level_asked(asked: list[int], k: int) -> None:
    levels = effective_levels(np.array(asked), k, allow_level_1=False)
    assert levels.tolist() == [max(k, level) for level in asked]


def test_level_1_needs_permission_and_negative_levels_are_refused() -> None:
    with pytest.raises(LevelError, match="2 records have privacy level 1, which is no protection"):
        effective_levels(np.array([1, 1, 5]), 3, allow_level_1=False)
    assert effective_levels(np.array([0, 1, 5]), 1, allow_level_1=True).tolist() == [1, 1, 5]
    with pytest.raises(LevelError, match="1 privacy levels are negative"):
        effective_levels(np.array([-4, 2]), 3, allow_level_1=True)


@given(st.lists(st.integers(1, 12), max_size=12))
def test_as_many_records_begin_as_can(levels: list[int]) -> None:
    kept = can_begin(np.array(levels, dtype=np.int64))
    sizes = [sum(level <= most for level in levels) for most in range(len(levels) + 1)]
    assert kept.sum() == max(size for most, size in enumerate(sizes) if size >= most)
    assert all(level <= kept.sum() for level, begins in zip(levels, kept, strict=True) if begins)
