"""What the compact grouping promises: every level met, one partition a seed, the same for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.methods.condense import compact
from sfumato.methods.condense.compact import EFFORTS, CompactSearch, compact_groups
from sfumato.methods.condense.partition import partition
from tests.condense.tables import Floats, Whole, assert_meets, mixture, no_strata, ssq, stratum_tables
from tests.examples import at_length, examples, sized


def compact_labels(values: Floats, levels: Whole, seed: int, effort: str = "default", threads: int = 1) -> Whole:
    rng = np.random.default_rng(seed)
    return partition(values, levels, no_strata(values), rng, effort=effort, search=CompactSearch(threads))


@examples(200, few=50)
@given(stratum_tables(), st.integers(0, 2**32 - 1))
def test_every_level_is_met_whatever_the_table(table: tuple[Floats, Whole], seed: int) -> None:
    assert_grouped(*table, seed, "fast")


@examples(10)
@given(stratum_tables(most=sized(150, 400)), st.integers(0, 2**32 - 1))
def test_every_level_is_met_by_a_search_with_kicks(table: tuple[Floats, Whole], seed: int) -> None:
    assert_grouped(*table, seed, "default")


def assert_grouped(values: Floats, levels: Whole, seed: int, effort: str) -> None:
    """Each record is in one group, as large as the highest level inside."""
    groups = compact_groups(values, levels, np.random.default_rng(seed), effort=effort)
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(values)))
    assert all(len(group) >= levels[group].max() for group in groups)


@pytest.mark.slow
@examples(15, few=1)
@given(stratum_tables(most=120), st.integers(0, 2**32 - 1))
def test_every_level_is_met_by_a_thorough_search(table: tuple[Floats, Whole], seed: int) -> None:
    values, levels = table
    assert_meets(compact_labels(values, levels, seed, "thorough"), levels, no_strata(values))


@given(stratum_tables(), st.integers(0, 2**32 - 1))
def test_the_sum_of_squares_is_at_most_that_of_one_group(table: tuple[Floats, Whole], seed: int) -> None:
    values, levels = table
    one = ssq(values, no_strata(values))
    assert ssq(values, compact_labels(values, levels, seed, sized("fast", "default"))) <= one * (1 + 1e-12) + 1e-12


def rare_high_levels(seed: int) -> tuple[Floats, Whole]:
    """Some thousand records of low levels and a few of very high ones, near each other and far apart."""
    rng = np.random.default_rng(seed)
    n = [5_000, 9_000, 22_000, 30_000][seed % 4]
    levels = rng.integers(2, 9, n)
    levels[rng.integers(0, n, n // 500)] = 60
    levels[rng.integers(0, n, 3)] = 3_000
    if n > 9_000:
        levels[rng.integers(0, n, 2)] = 5_000
    return mixture(rng, n, 3), levels


@pytest.mark.parametrize("seed", [0, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 3))])
def test_a_few_levels_of_thousands_are_met_and_leave_the_others_small(seed: int) -> None:
    values, levels = rare_high_levels(seed)
    labels = compact_labels(values, levels, seed, threads=2)
    assert_meets(labels, levels, no_strata(values))
    sizes = np.bincount(labels)
    assert sizes.max() >= 3_000
    assert len(sizes) > len(values) / 30  # the others are not drawn into the large groups
    if levels.max() > compact._FROZEN:
        assert sizes.max() > compact._FROZEN


def test_the_number_of_threads_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "_ALONE", 1_000)  # fewer records are searched by one thread anyway
    values, levels = rare_high_levels(0)
    for asked, effort, teams in ((np.full(len(values), 4), "fast", sized((2,), (2, 3))), (levels, "default", (2,))):
        alone = compact_labels(values, asked, 5, effort, 1)
        for threads in teams:
            np.testing.assert_array_equal(alone, compact_labels(values, asked, 5, effort, threads))


def test_records_that_are_all_equal_are_grouped_the_same_by_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 2_000
    monkeypatch.setattr(compact, "_ALONE", n)
    values = np.ones((n, 2))
    alone, two = (compact_labels(values, np.full(n, 7), 5, "fast", threads) for threads in (1, 2))
    np.testing.assert_array_equal(alone, two)
    assert_meets(alone, np.full(n, 7), no_strata(values))


@pytest.mark.parametrize(
    ("effort", "n"),
    [("fast", 2_000), ("default", sized(100, 600)), *at_length(("thorough", 200))],
)
def test_a_seed_stands_for_one_partition_and_another_seed_for_another(effort: str, n: int) -> None:
    rng = np.random.default_rng(0)
    values, levels = mixture(rng, n, 4), rng.integers(3, 8, n)
    first = compact_labels(values, levels, 1, effort)
    np.testing.assert_array_equal(first, compact_labels(values, levels, 1, effort))
    assert (first != compact_labels(values, levels, 2, effort)).any()


@pytest.mark.parametrize("exponent", [-80, 20, *(pytest.param(other, marks=pytest.mark.slow) for other in (-20, 80))])
def test_the_unit_of_measurement_makes_no_difference(exponent: int) -> None:
    rng = np.random.default_rng(0)
    n = sized(60, 300)
    values, levels = mixture(rng, n, 3), rng.integers(3, 8, n)
    scaled = values * 2.0**exponent  # exactly
    np.testing.assert_array_equal(compact_labels(scaled, levels, 1), compact_labels(values, levels, 1))


def test_one_high_level_does_not_make_one_group_of_a_small_table() -> None:
    rng = np.random.default_rng(0)
    values, levels = rng.normal(size=(64, 2)), np.full(64, 2)
    levels[0] = 33  # more than half: the other 31 can still be grouped by two
    assert compact_labels(values, levels, 1).max() >= 5
    paper = partition(values, levels, no_strata(values), np.random.default_rng(1), grouping="paper")
    assert ssq(values, compact_labels(values, levels, 1)) <= ssq(values, paper)


def test_records_that_must_stand_together_leave_the_others_apart() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=(900, 2)), 50.0 + rng.normal(size=(100, 2))])
    levels = np.repeat([600, 2], [900, 100])  # two groups of 600 are more than there are
    labels = compact_labels(values, levels, 1)
    assert len(np.unique(labels[:900])) == 1
    assert len(np.unique(labels[900:])) >= 30
    assert not np.isin(labels[900:], labels[:900]).any()


def test_two_far_clusters_of_the_right_size_are_the_groups() -> None:
    rng = np.random.default_rng(0)
    sizes = [5, 7, 6, 8, 5, 5]
    values = np.repeat(1000.0 * np.arange(6), sizes)[:, None] + rng.normal(size=(sum(sizes), 2))
    labels = compact_labels(values, np.repeat(sizes, sizes), 1)
    assert {tuple(np.flatnonzero(labels == group).tolist()) for group in range(6)} == {
        tuple(range(end - size, end)) for size, end in zip(sizes, np.cumsum(sizes).tolist(), strict=True)
    }


def test_an_effort_is_at_least_the_one_below_it() -> None:
    fast, default, thorough = (EFFORTS[name] for name in ("fast", "default", "thorough"))
    for lower, higher in ((fast, default), (default, thorough)):
        assert lower.rounds <= higher.rounds
        assert lower.passes <= higher.passes
        assert lower.kicks <= higher.kicks
