"""The real functions against the literal transcriptions of figures 2 to 5 [AY05]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.methods.condense.paper import attrition, cannibalize, construct_groups, place_deficient, segment
from tests.examples import at_length, examples
from tests.oracles import ay05
from tests.oracles.ay05 import Group, Point, Tie

Rows = list[NDArray[np.int64]]

many_cases = examples(150, few=12)
seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Case:
    """Records, levels and an order that a seed stands for."""

    values: NDArray[np.float64]
    levels: NDArray[np.int64]
    order: NDArray[np.int64]
    rng: np.random.Generator

    @property
    def points(self) -> list[Point]:
        """The same records, exactly."""
        return ay05.exact(self.values.tolist())

    def cut(self, rows: NDArray[np.int64], pieces: int) -> Rows:
        """Cut rows into non-empty groups at random places."""
        inner = np.arange(1, len(rows))
        ends = np.sort(self.rng.choice(inner, size=min(pieces - 1, len(inner)), replace=False))
        return [np.sort(part) for part in np.split(self.rng.permutation(rows), ends)]


def make_case(seed: int, smallest: int = 2) -> Case:
    """Draw sizes, dimensions, duplicates, constant columns and levels.

    Coordinates are multiples of 2**-10 below 2**10: sums are exact in floating point, so that rounding is only in
    the divisions, and equal distances of unlike points are as good as impossible beyond one dimension.
    """
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(smallest, 33)), int(rng.integers(1, 7))
    distinct = n if rng.random() < 0.5 else int(rng.integers(1, n + 1))
    values = rng.integers(-(2**20), 2**20, (distinct, d)) / 1024.0
    if distinct < n:
        values = values[rng.integers(0, distinct, n)]
    if rng.random() < 0.3:
        values[:, 0] = 3.0
    low = int(rng.integers(1, min(6, n) + 1))
    levels = rng.integers(low, int(rng.integers(low, min(12, n) + 1)) + 1, n)
    if rng.random() < 0.3:
        levels[rng.random(n) < 0.2] = n  # very few ask for very much
    return Case(values, levels, rng.permutation(n), rng)


def same(real: Rows, literal: list[Group]) -> bool:
    """Compare partitions as sets of sets; also that no record is in two groups."""
    as_sets = [frozenset(group.tolist()) for group in real]
    assert sum(len(group) for group in real) == len(frozenset().union(*as_sets))
    return set(as_sets) == set(literal) and len(as_sets) == len(literal)


def literal(groups: Rows) -> list[Group]:
    return [frozenset(group.tolist()) for group in groups]


@many_cases
@given(seeds, st.integers(2, 9))
def test_segment_does_what_figure_3_says(seed: int, p: int) -> None:
    case = make_case(seed)
    pool = np.flatnonzero(case.rng.random(len(case.values)) < 0.8)
    real = segment(case.values, pool, p, case.order)
    assert same(real, ay05.segment(case.points, set(pool.tolist()), p, case.order.tolist()))


@many_cases
@given(seeds)
def test_cannibalize_does_what_figure_4_says(seed: int) -> None:
    case = make_case(seed, smallest=4)
    half = len(case.values) // 2
    lower, upper = case.cut(case.order[:half], 1 + half // 3), case.cut(case.order[half:], 1 + half // 5)
    try:
        kept, joined = ay05.cannibalize(case.points, case.levels.tolist(), literal(lower), literal(upper))
    except Tie:
        assume(False)
    real_kept, real_joined = cannibalize(case.values, case.levels, lower, upper)
    assert same(real_kept, kept)
    assert same(real_joined, joined)


@many_cases
@given(seeds, st.integers(2, 6))
def test_attrition_does_what_figure_5_says(seed: int, p: int) -> None:
    case = make_case(seed, smallest=4)
    half = len(case.values) // 2
    lower, upper = case.cut(case.order[:half], 1 + half // 3), case.cut(case.order[half:], 1 + half // 6)
    try:
        below, above = ay05.attrition(case.points, case.levels.tolist(), literal(lower), literal(upper), p)
    except Tie:
        assume(False)
    real_below, real_above = attrition(case.values, case.levels, lower, upper, p)
    assert same(real_below, below)
    assert same(real_above, above)


@many_cases
@given(seeds)
def test_place_deficient_does_what_the_erratum_says(seed: int) -> None:
    case = make_case(seed, smallest=4)
    formed = int(case.rng.integers(0, len(case.values)))
    groups = case.cut(case.order[:formed], 1 + formed // 4) if formed else []
    carried = case.order[formed:]
    real = place_deficient(case.values, case.levels, groups, carried)
    assert same(real, ay05.place_deficient(case.points, case.levels.tolist(), literal(groups), set(carried.tolist())))


@many_cases
@given(seeds)
def test_construct_groups_does_what_figure_2_says(seed: int) -> None:
    case = make_case(seed)
    try:
        groups = ay05.construct_groups(case.points, case.levels.tolist(), case.order.tolist())
    except Tie:
        assume(False)
    assert same(construct_groups(case.values, case.levels, case.order), groups)


@examples(50, few=5)
@given(seeds, st.integers(2, 6))
def test_construct_groups_agrees_where_no_single_level_has_enough_records(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    levels = rng.permutation(np.repeat(np.arange(8, 13), 6))  # 6 records of each level from 8 to 12
    values, order = rng.integers(-(2**20), 2**20, (30, d)) / 1024.0, rng.permutation(30)
    try:
        groups = ay05.construct_groups(ay05.exact(values.tolist()), levels.tolist(), order.tolist())
    except Tie:
        assume(False)
    assert same(construct_groups(values, levels, order), groups)
    assert all(len(group) >= max(levels[list(group)]) for group in groups)


@pytest.mark.parametrize("cases", [50, *at_length(200)])
def test_ties_are_rare_enough_for_the_comparison_to_mean_something(cases: int) -> None:
    ties = 0
    for seed in range(cases):
        case = make_case(seed)
        try:
            ay05.construct_groups(case.points, case.levels.tolist(), case.order.tolist())
        except Tie:
            ties += 1
    assert ties < 0.15 * cases  # about 12 of 200
