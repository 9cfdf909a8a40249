"""Singling out: predicates that fit one released row, tried on the original and on held-out people."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.attacks.singling import (
    AT_LEAST,
    AT_MOST,
    EQUAL,
    MISSING,
    SINGLING_OUT,
    Predicates,
    SortedRows,
    _values_by_coincidence,
    conjunctions,
    find_fits,
    guesses_like,
    single_conditions,
)
from sfumato.assess.study import study_of
from tests.assess.cases import constant_table, draw_table, fit, found_by, study
from tests.examples import at_length

NAMES = ("singling-out-univariate", "singling-out-multivariate")


found = partial(found_by, SINGLING_OUT)


def matrix(seed: int, rows: int = 80) -> tuple[SortedRows, np.ndarray]:
    study = study_of(draw_table(seed, rows), draw_table(seed, rows), fit(draw_table(seed, rows)), rng=_rng())
    return SortedRows.of([pair.released for pair in study.pairs]), np.array([pair.is_number for pair in study.pairs])


def _rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def slow_count(predicates: Predicates, rows: np.ndarray) -> list[int]:
    asks: dict[int, Callable[[float, float], bool]] = {
        EQUAL: lambda cell, value: cell == value,
        AT_MOST: lambda cell, value: cell <= value,
        AT_LEAST: lambda cell, value: cell >= value,
        MISSING: lambda cell, _: bool(np.isnan(cell)),
    }
    counts = []
    for columns, ways, values in zip(predicates.columns, predicates.ways, predicates.values, strict=True):
        asked = [item for item in zip(columns, ways, values, strict=True) if item[0] >= 0]
        fits = [all(asks[way](row[column], value) for column, way, value in asked) for row in rows.T]
        counts.append(min(2, sum(fits)))
    return counts


def test_fits_are_those_of_a_loop_over_rows_and_conditions() -> None:
    rng = _rng(3)
    rows = np.where(rng.random((4, 60)) < 0.1, np.nan, rng.integers(0, 6, (4, 60)))
    predicates = Predicates(
        rng.integers(-1, 4, (300, 3)), rng.integers(0, 4, (300, 3)), rng.integers(0, 6, (300, 3)).astype(float)
    )
    counts, places = find_fits(predicates, SortedRows.of_matrix(rows))
    assert counts.tolist() == slow_count(predicates, rows)
    for place in np.flatnonzero(counts == 1):
        assert slow_count(predicates.take(np.array([place])), rows[:, [places[place]]]) == [1]
    skip = rng.random(60) < 0.5
    assert find_fits(predicates, SortedRows.of_matrix(rows), skip)[0].tolist() == slow_count(predicates, rows[:, ~skip])


@pytest.mark.parametrize("make", [single_conditions, conjunctions])
def test_every_predicate_put_forward_fits_one_released_row_and_none_comes_twice(make: Any) -> None:
    rows, ordered = matrix(2)
    predicates = make(rows, ordered, 200, _rng())
    assert 20 < len(predicates) <= 200
    assert set(slow_count(predicates, rows.cells)) == {1}
    sayings = {
        tuple(sorted(condition for condition in zip(*parts, strict=True) if condition[0] >= 0))
        for parts in zip(predicates.columns, predicates.ways, predicates.values, strict=True)
    }
    assert len(sayings) == len(predicates)


def test_single_conditions_are_the_unique_values_and_the_two_ends() -> None:
    rows = np.array([[1.0, 2.0, 2.0, 3.0], [0.0, 0.0, 1.0, np.nan]])
    predicates = single_conditions(SortedRows.of_matrix(rows), np.array([True, False]), 99, _rng())
    said = {
        (int(column), int(way), float(value))
        for column, way, value in zip(
            predicates.columns[:, 0], predicates.ways[:, 0], predicates.values[:, 0], strict=True
        )
    }
    assert said == {
        (0, EQUAL, 1.0),
        (0, EQUAL, 3.0),
        (0, AT_MOST, 1.0),
        (0, AT_LEAST, 3.0),
        (1, EQUAL, 1.0),
        (1, MISSING, 0.0),
    }


def test_guesses_keep_columns_and_ways_and_owe_their_values_to_ranges_alone() -> None:
    rows, ordered = matrix(2)
    predicates = conjunctions(rows, ordered, 200, _rng())
    guesses = guesses_like(predicates, rows, ordered, _rng(9))
    np.testing.assert_array_equal(guesses.columns, predicates.columns)
    np.testing.assert_array_equal(guesses.ways, predicates.ways)
    asked = (predicates.columns == 0) & (predicates.ways != MISSING)
    assert not np.isin(guesses.values[asked], rows.cells[0]).any()
    assert guesses.values[asked].min() >= rows.cells[0].min()
    assert guesses.values[asked].max() <= rows.cells[0].max()


def test_a_copy_singles_out_with_every_predicate_and_held_out_people_are_spared() -> None:
    findings = found(draw_table(1), draw_table(1), holdout=draw_table(3))
    for finding in (findings[name] for name in NAMES):
        assert finding.value == 1.0
        assert finding.baseline is not None
        assert finding.baseline < 0.3
        assert finding.control is not None
        assert finding.control < 0.3


@pytest.mark.parametrize(("rows", "share"), [(100, 0.25), (400, 0.5)])
def test_held_out_people_are_singled_out_only_where_no_original_is_left_who_fits(rows: int, share: float) -> None:
    """Of 400 people a seat is taken by each of 100 guests, or by 200 of 400: both have a value with the same chance."""
    people = pa.table({"a": np.random.default_rng(1).permutation(np.arange(400.0) ** 1.5)})
    finding = found(people, people, holdout=people.slice(0, rows))["singling-out-univariate"]
    assert finding.value == 1.0
    assert finding.control is not None
    assert finding.control_interval is not None
    assert finding.control == pytest.approx(share, abs=0.15)
    low, high = finding.control_interval
    assert share / 2 < low < finding.control < high < 2 * share


def test_conjunctions_are_away_from_the_median_and_guesses_keep_whole_numbers_whole() -> None:
    rng = _rng(4)
    cells = np.array([rng.normal(size=300), rng.integers(0, 40, 300), rng.integers(0, 5, 300)])
    cells[0, ::7] = np.nan
    rows, ordered = SortedRows.of_matrix(cells), np.array([True, True, False])
    predicates = conjunctions(rows, ordered, 200, rng)
    guesses = guesses_like(predicates, rows, ordered, rng)
    seen = set()
    for column in range(3):
        here = predicates.columns == column
        ways, values = predicates.ways[here], predicates.values[here]
        seen |= {(column, way) for way in ways.tolist()}
        if column < 2:
            median = np.nanmedian(cells[column])
            assert (values[ways == AT_LEAST] >= median).all()
            assert (values[ways == AT_MOST] < median).all()
        numbers = guesses.values[here & (predicates.ways != MISSING)]
        assert (numbers == np.rint(numbers)).all() == (column > 0)
    assert seen == {(0, AT_LEAST), (0, AT_MOST), (0, MISSING), (1, AT_LEAST), (1, AT_MOST), (2, EQUAL)}


@pytest.mark.parametrize("rows", [100, *at_length(400)])
def test_an_independent_redraw_singles_out_no_more_than_held_out_people(rows: int) -> None:
    differences: dict[str, list[float]] = {name: [] for name in NAMES}
    beaten = dict.fromkeys(NAMES, 0)
    for seed in range(10, 22):
        tables = [draw_table(10 * seed, 400), draw_table(10 * seed + 1, 400), draw_table(10 * seed + 2, rows)]
        for name, finding in found(tables[0], tables[1], seed=seed, holdout=tables[2]).items():
            assert finding.value is not None
            assert finding.control is not None
            assert finding.interval is not None
            assert finding.control_interval is not None
            assert finding.control_interval[0] <= finding.control <= finding.control_interval[1]
            differences[name].append(finding.value - finding.control)
            beaten[name] += finding.interval[0] > finding.control_interval[1]
    for name in NAMES:
        assert beaten[name] <= 1
        assert abs(np.mean(differences[name])) < 0.05  # the control is on the scale of the value, however few held out


def test_a_constant_table_puts_no_predicate_forward() -> None:
    for finding in found(draw_table(1), constant_table(), holdout=draw_table(3)).values():
        assert finding.value is None
        assert "none was put forward" in (finding.reason or "")


def test_what_was_attempted_is_what_was_put_forward() -> None:
    table = pa.table({"a": ["u"] * 50 + ["v"], "b": ["s"] * 26 + ["t"] * 25})
    findings = found(table, table)
    assert findings["singling-out-univariate"].attempts == 1
    assert findings["singling-out-univariate"].value == 1.0
    assert findings["singling-out-multivariate"].attempts == 1


def test_a_single_column_has_no_conjunctions() -> None:
    findings = found(draw_table(1).select(["x"]), draw_table(2).select(["x"]), holdout=draw_table(3).select(["x"]))
    assert findings["singling-out-univariate"].value is not None
    assert findings["singling-out-multivariate"].reason == "the table has a single column"


def test_odd_tables_stop_nothing() -> None:
    odd = pa.table({"a": [1.0, 1.0], "b": [2.0, None], "c": ["u", "v"]})
    for original, released in ((odd, odd), (odd.slice(0, 1), odd), (odd, odd.slice(1))):
        for finding in found(original, released, holdout=odd).values():
            assert finding.value is None or 0.0 <= finding.value <= 1.0
            assert finding.value is not None or finding.reason
            assert "failed" not in (finding.reason or "")


@pytest.mark.parametrize("ratio", [0.5, 1.0, 3.0])
def test_ends_of_a_redraw_single_out_by_coincidence(ratio: float) -> None:
    """Beyond the end of m rows lies exactly one of n people with a chance of nm / (n + m)^2."""
    rng = np.random.default_rng(7)
    rows = 400
    of = study(*(pa.table({"a": rng.normal(size=count)}) for count in (rows, round(ratio * rows))))
    ends = Predicates(np.zeros((2, 1), dtype=np.int64), np.array([[AT_MOST], [AT_LEAST]]), np.zeros((2, 1)))
    expected = ratio / (1.0 + ratio) ** 2
    assert _values_by_coincidence(of, ends).share == pytest.approx(expected)
    hits = [
        (original >= released.max()).sum() == 1
        for original, released in ((rng.random(rows), rng.random(round(ratio * rows))) for _ in range(4_000))
    ]
    assert np.mean(hits) == pytest.approx(expected, abs=0.04)  # five standard errors
