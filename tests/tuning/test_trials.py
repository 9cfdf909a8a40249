"""Trials, their intervals, the frontier, and the recommendation, on readings made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.assess.intervals import Tries
from sfumato.tuning.metrics import Score
from sfumato.tuning.search import frontier, recommend
from sfumato.tuning.trials import Reading, Trial


def trial(
    size: int,
    utilities: list[float],
    linked: int,
    attempts: int = 1000,
    share: float = 0.0,
    smallest: float | None = None,
) -> Trial:
    readings = tuple(
        Reading(
            Score(value, value / 2 if smallest is None else smallest),
            0.3,
            Tries(linked, attempts),
            Tries(10, attempts),
            5,
            0.1,
            0.2,
        )
        for value in utilities
    )
    return Trial(size, readings, share)


def test_a_trial_tells_mean_spread_and_pooled_links() -> None:
    one = trial(5, [0.8, 0.9], 30)
    assert one.utility == pytest.approx(0.85)
    assert one.spread == pytest.approx(np.std([0.8, 0.9], ddof=1))
    assert one.smallest == pytest.approx(0.425)
    assert one.linkage == Tries(60, 2000)
    assert one.control == Tries(20, 2000)
    assert one.seconds == pytest.approx(0.3)


def test_the_interval_of_the_mean_is_wider_where_splits_share_rows() -> None:
    values = [0.30, 0.34, 0.40, 0.36, 0.31]
    plain, shared = trial(5, values, 0).utility_interval, trial(5, values, 0, share=1 / 9).utility_interval
    assert plain is not None
    assert shared is not None
    reach = 2.7764451 * np.std(values, ddof=1)  # Student's t with 4 degrees of freedom
    assert plain[1] - plain[0] == pytest.approx(2 * reach * np.sqrt(1 / 5), rel=1e-6)
    assert shared[1] - shared[0] == pytest.approx(2 * reach * np.sqrt(1 / 5 + 1 / 9), rel=1e-6)


def test_no_interval_reaches_beyond_one() -> None:
    interval = trial(5, [0.9, 1.0], 0).utility_interval
    assert interval is not None
    assert interval[1] == 1.0


def test_a_single_split_has_no_interval() -> None:
    assert trial(5, [0.8], 0).utility_interval is None
    assert trial(5, [0.8], 0).spread == 0.0


def test_the_frontier_leaves_out_what_is_beaten_in_both() -> None:
    trials = [trial(5, [0.9], 300), trial(10, [0.85], 350), trial(20, [0.8], 100), trial(40, [0.8], 120)]
    assert frontier(trials) == (5, 20)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1000)), min_size=1, max_size=12))
def test_the_frontier_is_never_empty_and_holds_the_most_useful_size(points: list[tuple[float, int]]) -> None:
    trials = [trial(place + 2, [utility], linked) for place, (utility, linked) in enumerate(points)]
    front = frontier(trials)
    best = max(each.utility for each in trials)
    assert any(each.size in front and each.utility == best for each in trials)


def test_the_size_that_is_linked_least_within_the_gap_is_recommended() -> None:
    trials = [trial(5, [0.90], 600), trial(10, [0.89], 300), trial(20, [0.87], 100), trial(40, [0.70], 20)]
    choice = recommend(trials, "1-NN accuracy")
    assert choice.size == 20
    assert choice.reason.startswith(
        "k = 20: its 1-NN accuracy of 0.870 (and 0.435 on the smallest class) stays within 5 % of the best tried "
        "(0.900 at 5)"
    )
    assert choice.reason.count(".\n") == 0


def test_of_sizes_that_cannot_be_told_apart_the_largest_is_recommended() -> None:
    trials = [trial(5, [0.90], 100), trial(10, [0.90], 101), trial(20, [0.90], 104), trial(40, [0.90], 300)]
    assert recommend(trials, "accuracy").size == 20


def test_a_size_that_no_longer_sees_the_smallest_class_is_not_recommended() -> None:
    trials = [
        trial(5, [0.90], 600, smallest=0.70),
        trial(10, [0.89], 300, smallest=0.66),
        trial(20, [0.89], 100, smallest=0.30),
    ]
    assert recommend(trials, "accuracy").size == 10


def test_where_no_size_keeps_both_the_most_useful_one_is_recommended() -> None:
    trials = [trial(5, [0.90], 600, smallest=0.50), trial(10, [0.70], 300, smallest=0.80)]
    assert recommend(trials, "accuracy").size == 5
