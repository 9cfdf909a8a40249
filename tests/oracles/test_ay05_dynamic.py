"""The maintainer against the literal transcription of section 3 [AY05]."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.methods.condense.maintainer import Maintainer
from tests.examples import at_length, examples, sized
from tests.oracles.ay05 import Tie
from tests.oracles.ay05_dynamic import Dynamic

seeds = st.integers(0, 2**32 - 1)


def stream(seed: int, n: int, d: int, high: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw records of some clusters, each with its own shape, and levels from 2 to ``high``."""
    rng = np.random.default_rng(seed)
    clusters = int(rng.integers(1, 5))
    centres, spread = rng.normal(size=(clusters, d)) * 4.0, rng.uniform(0.3, 3.0, (clusters, d))
    own = rng.integers(clusters, size=n)
    return centres[own] + rng.normal(size=(n, d)) * spread[own], rng.integers(2, high + 1, n)


def play(
    values: NDArray[np.float64], levels: NDArray[np.int64], labels: NDArray[np.int64], batch: int
) -> tuple[Maintainer, Dynamic]:
    """Run both over the same stream; those beyond the labels arrive, in batches or one by one."""
    first, d = len(labels), values.shape[1]
    real, literal = Maintainer(d, k=2, split="paper"), Dynamic()
    real.start(values[:first], levels[:first], labels)
    literal.start(values[:first], levels[:first].tolist(), labels.tolist())
    for i in range(first, len(values)):
        literal.arrive(values[i], int(levels[i]))
    for i in range(first, len(values), batch):
        real.absorb(values[i : i + batch], levels[i : i + batch])
    return real, literal


def assert_same(real: Maintainer, literal: Dynamic) -> None:
    expected = sorted(literal.groups, key=lambda group: group.name)
    found = real.groups
    assert real.ids.tolist() == [group.name for group in expected]
    assert found.count.tolist() == [group.n for group in expected]
    size = np.abs(found.second_order).max()
    np.testing.assert_allclose(found.first_order, [group.fs for group in expected], atol=1e-6 * np.sqrt(size))
    np.testing.assert_allclose(found.second_order, [group.sc for group in expected], atol=1e-6 * size)
    np.testing.assert_allclose(found.level_sum, [float(group.ps) for group in expected], rtol=1e-9)
    state = real.state()
    assert state.pending_levels.tolist() == [p for _, p in literal.waiting]
    np.testing.assert_array_equal(state.pending_values, np.array([x for x, _ in literal.waiting]).reshape(-1, real.d))


@examples(25, few=5)
@given(seeds, st.integers(1, 5), st.integers(2, 12), st.sampled_from([1, 7, 1000]))
def test_a_stream_gives_the_groups_that_section_3_says(seed: int, d: int, high: int, batch: int) -> None:
    values, levels = stream(seed, 300, d, high)
    labels = np.arange(4 * high) // high
    try:
        real, literal = play(values, levels, labels, batch)
    except Tie:
        assume(False)
    assert_same(real, literal)


@examples(25, few=5)
@given(seeds, st.integers(2, 4), st.integers(8, 20))
def test_records_wait_and_are_admitted_as_section_3_says(seed: int, d: int, high: int) -> None:
    values, levels = stream(seed, 150, d, 3)
    levels[np.random.default_rng(seed).random(150) < 0.2] = high  # more than any group has at first
    levels[:12] = 3
    try:
        real, literal = play(values, levels, np.arange(12) // 3, 10)
    except Tie:
        assume(False)
    assert_same(real, literal)


@pytest.mark.parametrize(("n", "groups"), [sized((400, 15), (700, 30)), *at_length((3000, 150))])
def test_long_streams_of_records_give_the_same_groups_and_ties_are_rare(n: int, groups: int) -> None:
    ties = 0
    for seed in range(4):
        values, levels = stream(seed, n, 3, 9)
        try:
            real, literal = play(values, levels, np.arange(90) // 9, 500)
        except Tie:
            ties += 1
            continue
        assert_same(real, literal)
        assert len(real.ids) > groups
    assert ties < 4


def test_the_example_of_levels_2_2_2_3_5_does_not_split_until_one_more_of_level_3_comes() -> None:
    split: Literal["paper"] = "paper"
    values = np.random.default_rng(5).normal(size=(6, 2))
    maintainer = Maintainer(2, k=2, split=split)
    maintainer.start(values[:5], np.array([2, 2, 2, 3, 5]), np.zeros(5, dtype=np.int64))
    assert maintainer.absorb(values[5:], np.array([3])).splits == 1  # 36 >= 34 [AY05, sec. 3]
    assert maintainer.groups.count.tolist() == [3, 3]
    assert maintainer.violations == 2  # 3 records each, and 5 were asked for
    assert maintainer.pseudo.tolist() == [True, True]
