"""The searches end, measure each size once, and choose as they say."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.tuning.candidates import GAP, brute_force, equal_steps, rule_based_search

SIZES = st.tuples(st.integers(1, 5000), st.integers(0, 5000)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(SIZES, st.integers(0, 2**32))
def test_the_search_ends_and_measures_each_size_once_whatever_utility_does(ends: tuple[int, int], seed: int) -> None:
    asked: list[int] = []

    def utility(size: int) -> float:
        asked.append(size)
        return math.sin(size * (seed + 1)) ** 2

    search = rule_based_search(*ends, utility)
    assert len(asked) == len(set(asked))
    assert tuple(asked) == search.tried
    assert ends[0] <= search.chosen <= ends[1]
    assert search.chosen in asked
    assert len(asked) <= 4 + 2 * math.log2(ends[1] - ends[0] + 2)


@pytest.mark.parametrize("ends", [(10, 11), (10, 12), (11, 12), (2, 3), (5, 5)])
def test_the_ranges_on_which_the_printed_search_loops_for_ever_end(ends: tuple[int, int]) -> None:
    assert rule_based_search(*ends, lambda _: 0.9).chosen == ends[1]


@given(SIZES)
def test_where_utility_is_flat_the_largest_size_is_chosen(ends: tuple[int, int]) -> None:
    assert rule_based_search(*ends, lambda _: 0.8).chosen == ends[1]


@given(SIZES)
def test_where_utility_rises_the_largest_size_is_chosen_for_a_gain_is_no_loss(ends: tuple[int, int]) -> None:
    assert rule_based_search(*ends, float).chosen == ends[1]


def test_where_utility_always_falls_the_smallest_size_is_chosen() -> None:
    assert rule_based_search(10, 1000, lambda size: 1 / size).chosen == 10


@given(SIZES, st.floats(-5.0, -0.1), st.booleans())
def test_a_negative_utility_falls_by_a_share_of_its_absolute_value(
    ends: tuple[int, int], utility: float, falls: bool
) -> None:
    low, high = ends
    told = {low: utility} if falls else {}  # the gap is a twentieth: twice of it is a fall, half of it is none
    lower = utility - abs(utility) * GAP * (2.0 if falls else 0.5)
    found = rule_based_search(low, high, lambda size: told.get(size, utility if not falls and size == low else lower))
    assert found.chosen == (low if falls or low == high else high)


def test_the_first_three_sizes_are_the_ends_and_their_geometric_mean() -> None:
    assert rule_based_search(20, 2000, lambda _: 0.9).tried[:3] == (20, 2000, 200)


@given(st.dictionaries(st.integers(1, 100), st.floats(0.01, 1.0), min_size=1))
def test_brute_force_takes_the_largest_size_within_the_gap_of_the_best(utility: dict[int, float]) -> None:
    search = brute_force(sorted(utility), utility.__getitem__)
    best = max(utility.values())
    assert best - utility[search.chosen] <= GAP * best
    assert all(best - value > GAP * best for size, value in utility.items() if size > search.chosen)


@given(SIZES, st.integers(2, 40))
def test_equal_steps_hold_both_ends_and_rise(ends: tuple[int, int], count: int) -> None:
    steps = equal_steps(*ends, count)
    assert steps[0] == ends[0]
    assert steps[-1] == ends[1]
    assert list(steps) == sorted(set(steps))
    assert len(steps) <= count


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(ValueError, match="no group sizes from 5 to 4"):
        rule_based_search(5, 4, lambda _: 0.9)
