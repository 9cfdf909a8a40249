"""The small examples of figures 1 and 6 of the paper, and what the other figures promise [AY05, sec. 2]."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.methods.condense.paper import attrition, cannibalize, construct_groups, segment

FIGURE_1 = np.array(
    [[0.0, 0.0], [0.2, 0.1], [0.1, 0.3], [0.5, 0.4], [5.0, 5.0], [5.2, 5.1], [5.1, 5.3], [4.9, 5.2]]
)  # three records of level 3, then the outlier of level 4 beside them, then four of level 4 far away
LEVELS_1 = np.array([3, 3, 3, 4, 4, 4, 4, 4])

FIGURE_6 = np.array(
    [[0.5, 0.0], [9.5, 0.0], [0.0, 0.0], [0.0, 0.2], [0.2, 0.1], [10.0, 0.0], [10.0, 0.2], [9.8, 0.1]]
)  # two records of level 2 far apart, each beside one of two groups of three records of level 3
LEVELS_6 = np.array([2, 2, 3, 3, 3, 3, 3, 3])


def sets(groups: list[NDArray[np.int64]]) -> set[frozenset[int]]:
    return {frozenset(group.tolist()) for group in groups}


@pytest.mark.parametrize("seed", range(20))
def test_the_outlier_of_figure_1_goes_to_the_records_of_level_3_beside_it(seed: int) -> None:
    order = np.random.default_rng(seed).permutation(8)
    groups = construct_groups(FIGURE_1, LEVELS_1, order)
    assert sets(groups) == {frozenset({0, 1, 2, 3}), frozenset({4, 5, 6, 7})}


def test_attrition_moves_the_outlier_and_nothing_else() -> None:
    lower, upper = attrition(FIGURE_1, LEVELS_1, [np.arange(3)], [np.arange(3, 8)], 4)
    assert sets(lower) == {frozenset({0, 1, 2, 3})}
    assert sets(upper) == {frozenset({4, 5, 6, 7})}


def test_a_record_does_not_move_to_a_group_that_stays_too_small_for_it() -> None:
    levels = np.array([2, 2, 9, 4, 4, 4, 4, 4])  # a group of two would be three with the outlier, and it asks for four
    lower, upper = attrition(FIGURE_1, levels, [np.array([0, 1])], [np.arange(3, 8)], 4)
    assert sets(lower) == {frozenset({0, 1})}
    assert sets(upper) == {frozenset({3, 4, 5, 6, 7})}


def test_a_group_that_can_spare_nothing_keeps_its_outlier() -> None:
    lower, upper = attrition(FIGURE_1, LEVELS_1, [np.arange(3)], [np.arange(3, 7)], 4)
    assert sets(lower) == {frozenset({0, 1, 2})}
    assert sets(upper) == {frozenset({3, 4, 5, 6})}


@pytest.mark.parametrize("seed", range(20))
def test_the_two_records_of_figure_6_join_one_group_of_level_3_each(seed: int) -> None:
    order = np.random.default_rng(seed).permutation(8)
    groups = construct_groups(FIGURE_6, LEVELS_6, order)
    assert sets(groups) == {frozenset({0, 2, 3, 4}), frozenset({1, 5, 6, 7})}


def test_cannibalize_dissolves_the_pair_of_figure_6_and_keeps_a_natural_one() -> None:
    threes = [np.array([2, 3, 4]), np.array([5, 6, 7])]
    kept, joined = cannibalize(FIGURE_6, LEVELS_6, [np.array([0, 1])], threes)
    assert kept == []
    assert sets(joined) == {frozenset({0, 2, 3, 4}), frozenset({1, 5, 6, 7})}
    natural = FIGURE_6.copy()
    natural[:2] = [[5.0, 7.0], [5.0, 7.1]]
    kept, joined = cannibalize(natural, LEVELS_6, [np.array([0, 1])], threes)
    assert sets(kept) == {frozenset({0, 1})}
    assert sets(joined) == sets(threes)


def test_cannibalize_dissolves_a_group_that_is_smaller_than_its_level_however_natural() -> None:
    natural = FIGURE_6.copy()
    natural[:2] = [[5.0, 7.0], [5.0, 7.1]]
    levels = np.array([3, 3, 3, 3, 3, 3, 3, 3])
    kept, joined = cannibalize(natural, levels, [np.array([0, 1])], [np.array([2, 3, 4]), np.array([5, 6, 7])])
    assert kept == []
    assert set().union(*sets(joined)) == set(range(8))


@pytest.mark.parametrize("n", [4, 5, 7, 8, 11])
def test_segment_leaves_fewer_than_p_records_over_and_gives_them_to_the_closest_group(n: int) -> None:
    rng = np.random.default_rng(n)
    groups = segment(rng.normal(size=(n, 2)), np.arange(n), 4, rng.permutation(n))
    assert len(groups) == n // 4
    assert sorted(itertools.chain.from_iterable(group.tolist() for group in groups)) == list(range(n))
    assert sum(len(group) - 4 for group in groups) == n % 4


def test_segment_forms_no_group_out_of_too_few_records() -> None:
    assert segment(np.zeros((3, 1)), np.arange(3), 4, np.arange(3)) == []


def test_levels_46_to_50_with_too_few_records_of_each_still_form_groups() -> None:
    rng = np.random.default_rng(1)  # as in Ionosphere's smaller class: 126 records, about 25 of each level
    values, levels = rng.normal(size=(126, 34)), 46 + np.arange(126) % 5
    assert max(np.bincount(levels)) < 46
    groups = construct_groups(values, levels, rng.permutation(126))
    assert len(groups) == 2
    assert all(len(group) >= levels[group].max() for group in groups)
    assert sorted(np.concatenate(groups).tolist()) == list(range(126))


def test_a_few_records_of_a_high_level_take_one_sufficient_group_rather_than_many_small_ones() -> None:
    values = np.array([[0.0], [0.1], [0.3], [0.6], [9.0], [9.1], [9.2], [9.3], [0.2], [0.4]])
    levels = np.array([1, 1, 1, 1, 4, 4, 4, 4, 6, 6])  # four stand alone beside the two; four farther off are enough
    groups = construct_groups(values, levels, np.arange(10))
    assert frozenset({4, 5, 6, 7, 8, 9}) in sets(groups)
    assert len(groups) == 5
