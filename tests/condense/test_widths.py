"""Groups of different width: the search never raises its cost, meets every level and leaves dense regions whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.methods.condense import compact
from sfumato.methods.condense.compact import CompactSearch, Grouping, WorkerThreads, first_grouping, widened_grouping
from sfumato.methods.condense.partition import partition
from tests.condense.tables import Floats, Whole, assert_meets, mixture, no_strata, ssq, stratum_tables
from tests.examples import examples, sized


def cost(values: Floats, grouping: Grouping) -> float:
    """Sum n * log(variance) over groups, with the floor of a thousandth of the records' variance.

    Variances are those of the differences to the first record: of equal records they are 0, not what the rounding of a
    mean leaves, whose logarithm would drown all else.
    """
    values = values - values[0]
    floor = max(1e-3 * float(values.var(axis=0).sum()), np.finfo(np.float64).tiny)
    groups = np.split(values[grouping.order], grouping.starts[1:-1])
    return float(sum(len(rows) * np.log(rows.var(axis=0).sum() + floor) for rows in groups))


def widths_of(
    values: Floats, levels: Whole, seed: int, *, widths: bool = True, threads: int = 1, effort: str = "default"
) -> Whole:
    search = CompactSearch(threads, widths)
    return partition(values, levels, no_strata(values), np.random.default_rng(seed), effort=effort, search=search)


@examples(80)
@given(stratum_tables(), st.integers(0, 2**32 - 1))
def test_a_round_never_raises_the_cost_and_meets_every_level(table: tuple[Floats, Whole], seed: int) -> None:
    assert_widened(*table, seed)


@pytest.mark.parametrize("offset", [0.1, 1.0 / 3.0, 1e6 / 3.0, 1e120 / 3.0])
@pytest.mark.parametrize("others", [0, 1, 3])
def test_a_round_does_not_mistake_the_rounding_of_equal_records_for_widths(offset: float, others: int) -> None:
    values, levels = np.full((45, 3), offset), np.full(45, 5)
    levels[7] = 23
    values[:others, 0] = np.nextafter(offset, np.inf)  # the least by which records can differ
    for seed in range(5):
        assert_widened(values, levels, seed)


def test_where_a_table_lies_makes_no_difference_to_widths() -> None:
    rng = np.random.default_rng(7)
    values, levels = rng.integers(-50, 50, (300, 4)) / 64.0, rng.integers(4, 9, 300)
    with WorkerThreads(1) as team:
        start = first_grouping(values, levels, team)
        here = widened_grouping(values, levels, start, np.uint64(3), team)
        start = start._replace(centres=start.centres + 2.0**40)
        there = widened_grouping(values + 2.0**40, levels, start, np.uint64(3), team)
    np.testing.assert_array_equal(here.order, there.order)
    np.testing.assert_array_equal(here.starts, there.starts)


def assert_widened(values: Floats, levels: Whole, seed: int) -> None:
    """A round after the start has no higher cost, keeps every record and meets every level."""
    with WorkerThreads(1) as team:
        grouping = first_grouping(values, levels, team)
        before = cost(values, grouping)
        after = widened_grouping(values, levels, grouping, np.uint64(seed), team)
    assert cost(values, after) <= before + 1e-6 * max(1.0, abs(before))
    assert sorted(after.order.tolist()) == list(range(len(values)))
    for rows in np.split(after.order, after.starts[1:-1]):
        assert len(rows) >= levels[rows].max()


def test_a_round_lowers_the_cost_where_widths_differ() -> None:
    rng = np.random.default_rng(3)
    values = np.vstack([0.1 * rng.normal(size=(200, 4)), 3.0 * rng.normal(size=(200, 4))])
    levels = np.full(400, 20)
    with WorkerThreads(1) as team:
        grouping = first_grouping(values, levels, team)
        after = widened_grouping(values, levels, grouping, np.uint64(1), team)
    assert cost(values, after) < cost(values, grouping) - 10.0


def test_a_dense_region_stays_whole_though_the_sum_of_squares_would_cut_it() -> None:
    rng = np.random.default_rng(5)
    dense = 0.05 * rng.normal(size=(40, 10))
    around = rng.normal(size=(40, 10))
    around *= 2.0 / np.linalg.norm(around, axis=1, keepdims=True)  # on a sphere about the dense region
    values, levels = np.vstack([dense, around]), np.full(80, 40)
    tight = widths_of(values, levels, 1)
    assert len(set(tight[:40].tolist())) == 1
    assert len(set(tight[40:].tolist())) == 1
    small = widths_of(values, levels, 1, widths=False)
    assert ssq(values, small) < ssq(values, tight)
    assert len(set(small[:40].tolist())) == 2


def test_the_number_of_threads_makes_no_difference_to_widths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "_ALONE", 1_000)  # fewer records are searched by one thread anyway
    values = mixture(np.random.default_rng(2), sized(4_000, 22_000), 3)
    levels = np.full(len(values), 9)
    one, two = (widths_of(values, levels, 4, threads=threads, effort=sized("fast", "default")) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    assert_meets(one, levels, no_strata(values))


def test_twins_are_grouped_without_a_cost_of_minus_infinity() -> None:
    values = np.repeat(np.array([[0.0, 0.0], [1.0, 1.0]]), 30, axis=0)
    labels = widths_of(values, np.full(60, 10), 1)
    assert_meets(labels, np.full(60, 10), no_strata(values))
    constant = np.zeros((30, 2))
    assert_meets(widths_of(constant, np.full(30, 10), 1), np.full(30, 10), no_strata(constant))
