"""Exact MDAV at the edges of its definition, and what it does with levels of its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.methods.condense.partition import mdav_groups, partition
from tests.condense.tables import no_strata


@pytest.mark.parametrize(
    ("n", "sizes"),
    [
        (1, [1]),
        (4, [4]),  # fewer than k: one group, and whether that is enough is for the caller to see
        (5, [5]),
        (9, [9]),
        (10, [5, 5]),
        (14, [5, 9]),
        (15, [5, 5, 5]),
        (19, [5, 5, 9]),
        (20, [5, 5, 5, 5]),
        (24, [5, 5, 5, 9]),
    ],
)
def test_groups_have_five_records_and_the_last_one_up_to_nine(n: int, sizes: list[int]) -> None:
    groups = mdav_groups(np.random.default_rng(n).normal(size=(n, 2)), 5)
    assert [len(group) for group in groups] == sizes
    assert sorted(np.concatenate(groups).tolist()) == list(range(n))


@given(st.integers(1, 80), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_ties_are_broken_the_same_way_every_time(n: int, k: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 3, (n, 2)).astype(np.float64)
    first, again = mdav_groups(values, k), mdav_groups(values.copy(), k)
    assert [group.tolist() for group in first] == [group.tolist() for group in again]
    assert sorted(np.concatenate(first).tolist()) == list(range(n))


def test_the_first_group_is_around_the_record_farthest_from_the_mean() -> None:
    values = np.array([[0.0], [0.1], [0.3], [0.2], [5.0], [5.2], [5.3], [20.0], [19.0]])
    groups = mdav_groups(values, 2)
    assert groups[0].tolist() == [7, 8]
    assert groups[1].tolist() == [0, 1]  # farthest from 20


def test_a_stratum_is_grouped_at_the_highest_level_in_it() -> None:
    rng = np.random.default_rng(0)
    values, strata = rng.normal(size=(90, 3)), np.repeat([0, 1], 45)
    levels = np.where(strata == 0, rng.integers(2, 8, 90), 4)
    levels[7] = 9
    labels = partition(values, levels, strata, rng, grouping="mdav")
    of_strata = [
        {frozenset((45 * part + group).tolist()) for group in mdav_groups(values[strata == part], k)}
        for part, k in enumerate((9, 4))
    ]
    assert {frozenset(np.flatnonzero(labels == group).tolist()) for group in range(labels.max() + 1)} == (
        of_strata[0] | of_strata[1]
    )


def test_the_generator_makes_no_difference() -> None:
    values = np.random.default_rng(0).normal(size=(100, 3))
    labels = [
        partition(values, np.full(100, 5), no_strata(values), np.random.default_rng(seed), grouping="mdav")
        for seed in (1, 2)
    ]
    np.testing.assert_array_equal(labels[0], labels[1])
