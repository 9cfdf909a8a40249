"""Limits of shares and of their differences hold what they say: probabilities of all outcomes are added up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from sfumato.assess.findings import Tries, difference_interval, exact_interval
from tests.examples import examples

SHARES = (0.0, 1e-4, 0.001, 0.01, 0.03, 0.1, 0.3, 0.5, 0.8, 0.97, 0.999, 1.0)
CONFIDENCES = (0.95, 1 - 0.05 / 30)  # of one attack alone, and of one of thirty
SIZES = ((1, 1), (2, 5), (5, 5), (10, 40), (29, 200), (30, 30), (30, 160), (100, 45))


def ends(first: int, second: int, confidence: float) -> NDArray[np.float64]:
    """Both limits for every pair of counts."""
    return np.array(
        [
            [difference_interval(Tries(one, first), Tries(two, second), confidence) for two in range(second + 1)]
            for one in range(first + 1)
        ]
    )


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(("first", "second"), SIZES)
def test_a_difference_lies_within_its_limits_as_often_as_they_say(first: int, second: int, confidence: float) -> None:
    limits = ends(first, second, confidence)
    for one in SHARES:
        chance = binom.pmf(np.arange(first + 1), first, one)
        for two in SHARES:
            outside = (limits[..., 0] > one - two + 1e-12) | (limits[..., 1] < one - two - 1e-12)
            missed = chance @ outside @ binom.pmf(np.arange(second + 1), second, two)
            assert missed <= (1 - confidence) * (1 + 1e-9), (one, two)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("tries", [1, 7, 60])
def test_a_share_lies_within_its_limits_as_often_as_they_say(tries: int, confidence: float) -> None:
    limits = np.array([exact_interval(hits, tries, confidence) for hits in range(tries + 1)])
    for share in np.linspace(0, 1, 51):
        outside = (limits[:, 0] > share + 1e-12) | (limits[:, 1] < share - 1e-12)
        assert binom.pmf(np.arange(tries + 1), tries, share) @ outside <= (1 - confidence) * (1 + 1e-9)


hits_of = st.integers(1, 500).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of)))


@examples(30)
@given(hits_of, hits_of, st.sampled_from(CONFIDENCES))
def test_limits_hold_the_difference_and_turn_with_it(
    first: tuple[int, int], second: tuple[int, int], confidence: float
) -> None:
    one, two = Tries(*first), Tries(*second)
    low, high = difference_interval(one, two, confidence)
    assert low <= first[0] / first[1] - second[0] / second[1] <= high
    assert difference_interval(two, one, confidence) == pytest.approx((-high, -low))
    wider = difference_interval(one, two, 1 - (1 - confidence) / 10)
    assert wider[0] <= low + 1e-12
    assert wider[1] >= high - 1e-12


def test_a_control_on_a_part_of_the_seats_counts_as_often_as_there_are_parts() -> None:
    part = difference_interval(Tries(50, 100), Tries(10, 100, times=2.0), 0.95)
    whole = difference_interval(Tries(50, 100), Tries(20, 100), 0.95)
    assert sum(part) == pytest.approx(sum(whole))
    assert part[0] < whole[0]
    assert part[1] > whole[1]
