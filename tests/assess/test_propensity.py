"""Telling released rows from original ones: pMSE with its null, and the area under the curve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from sfumato.assess.algebra import Measure, run_measure
from sfumato.assess.study import Sizes
from sfumato.assess.utility.propensity import (
    PROPENSITY,
    PROPENSITY_AUC,
    area_interval,
    fit_logistic,
    folds_of,
    null_expectation,
)
from tests.assess.cases import ROWS, constant_table, draw_table, found_by, released_of, study
from tests.examples import at_length, sized

MEASURES = (PROPENSITY, PROPENSITY_AUC)


found = found_by


def value(measure: Measure, name: str, case: str) -> float:
    number = found(measure, draw_table(1), released_of(case))[name].value
    assert number is not None
    return number


def pmse(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    rows = np.concatenate([first, second])
    centred = rows - rows.mean(axis=0)
    return fit_logistic(centred / rows.std(axis=0), np.arange(len(rows)) >= len(first)).pmse


def test_pmse_is_zero_for_a_copy_and_the_greatest_for_a_constant_table() -> None:
    assert value(PROPENSITY, "pmse", "copy") == 0.0
    assert value(PROPENSITY, "pmse-ratio", "copy") == 0.0
    assert value(PROPENSITY, "pmse", "constant") == pytest.approx(0.25, rel=0.02)


def test_pmse_agrees_with_a_fit_of_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    rows = rng.normal(size=(400, 3))
    labels = np.arange(400) >= 250
    rows[labels] += [0.5, 0.0, -0.3]
    guesses = LogisticRegression(C=1e8, tol=1e-10, max_iter=1000).fit(rows, labels).predict_proba(rows)[:, 1]
    assert fit_logistic(rows, labels).pmse == pytest.approx(((guesses - 150 / 400) ** 2).mean(), rel=1e-3)


DRAWS = pytest.mark.parametrize(("draws", "near"), [(150, 0.2), *at_length((400, 0.12))])
"""Number of tables, and at least four deviations of the mean of that number of chi-squares / 8."""


@DRAWS
@pytest.mark.parametrize("others", [500, 250])
def test_the_null_is_what_rows_drawn_from_the_original_give(others: int, draws: int, near: float) -> None:
    rng = np.random.default_rng(11)
    original = rng.normal(size=(500, 8))
    drawn = [pmse(original, original[rng.integers(500, size=others)]) for _ in range(draws)]
    null = null_expectation(8, others / (500 + others), 500 + others)
    assert np.mean(drawn) == pytest.approx(null, rel=near)


@DRAWS
def test_the_null_of_an_original_of_which_nothing_else_is_known_is_what_relabelling_gives(
    draws: int, near: float
) -> None:
    rng = np.random.default_rng(12)
    rows = rng.normal(size=(900, 8))
    drawn = []
    for _ in range(draws):
        rng.shuffle(rows)
        drawn.append(pmse(rows[:600], rows[600:]))
    assert np.mean(drawn) == pytest.approx(null_expectation(8, 1 / 3, 900, seen=0.0), rel=near)


@DRAWS
def test_the_null_holds_where_a_sample_of_the_original_is_looked_at(draws: int, near: float) -> None:
    rng = np.random.default_rng(13)
    original = rng.normal(size=(1000, 8))
    drawn = []
    for _ in range(draws):
        seen = original[rng.permutation(1000)[:400]]
        drawn.append(pmse(seen, original[rng.integers(1000, size=400)]))
    assert np.mean(drawn) == pytest.approx(null_expectation(8, 0.5, 800, seen=0.4), rel=near)


@pytest.mark.slow
def test_rows_drawn_from_the_original_have_a_ratio_of_one_and_other_people_one_of_two() -> None:
    own, others, covered = [], [], 0
    for seed in range(20):
        original = draw_table(100 + seed, 300)
        places = np.random.default_rng(seed).integers(300, size=300)
        own.append(found(PROPENSITY, original, original.take(pa.array(places)))["pmse-ratio"].value)
        other = found(PROPENSITY, original, draw_table(200 + seed, 300))["pmse-ratio"]
        others.append(other.value)
        assert other.interval is not None
        covered += other.interval[0] <= 2.0 <= other.interval[1]
    assert np.mean(np.array(own, dtype=float)) == pytest.approx(1.0, abs=0.25)
    assert np.mean(np.array(others, dtype=float)) == pytest.approx(2.0, abs=0.4)
    assert covered >= 16


def test_a_shift_of_one_column_raises_the_ratio() -> None:
    original, released = draw_table(1), draw_table(2)
    moved = pa.array(np.asarray(released.column("x")) + 0.5)
    before = found(PROPENSITY, original, released)["pmse-ratio"]
    after = found(PROPENSITY, original, released.set_column(0, "x", moved))["pmse-ratio"]
    assert before.interval is not None
    assert after.interval is not None
    assert after.interval[0] > before.interval[1]


def test_the_area_is_one_half_for_a_copy_and_nearly_one_for_a_constant_table() -> None:
    assert value(PROPENSITY_AUC, "propensity-auc", "copy") == 0.5
    assert value(PROPENSITY_AUC, "propensity-auc", "constant") > 0.95


def test_a_copy_of_rows_of_which_many_are_equal_has_an_area_of_one_half() -> None:
    table = draw_table(1).select(["colour", "shape"])
    area = found(PROPENSITY_AUC, table, table)["propensity-auc"]
    assert area.value == pytest.approx(0.5, abs=0.03)


MIXED = ["x", "y", "colour", "born"]


@pytest.mark.parametrize(
    ("columns", "seeds"), [(MIXED, 4), *at_length((MIXED, 10), (["colour", "shape"], 10), (["count"], 10))]
)
def test_the_area_of_an_independent_redraw_is_one_half_within_chance(columns: list[str], seeds: int) -> None:
    low = []
    for seed in range(seeds):
        tables = (draw_table(300 + 2 * seed + side, 200).select(columns) for side in (0, 1))
        area = found(PROPENSITY_AUC, *tables)["propensity-auc"]
        assert area.interval is not None
        low.append(area.interval[0])
    assert sum(end == 0.5 for end in low) >= 0.75 * seeds


def test_equal_rows_are_in_one_fold_and_what_a_crowd_shares_is_in_all() -> None:
    rng = np.random.default_rng(1)
    groups = np.concatenate([np.repeat(np.arange(100), 2), np.full(100, 100)])
    folds = folds_of(groups, 5, rng)
    assert (folds[:200:2] == folds[1:200:2]).all()
    assert set(folds[200:]) == set(range(5))


def test_the_interval_of_the_area_holds_it_and_narrows_with_rows() -> None:
    for area in (0.5, 0.7, 1.0):
        few, many = area_interval(area, 50, 50), area_interval(area, 5000, 5000)
        assert 0.5 <= few[0] <= many[0] <= area <= many[1] <= few[1] <= 1.0
    low, high = area_interval(0.7, 1000, 1000)
    assert high - low == pytest.approx(2 * 1.96 * 0.0116, rel=0.03)  # Hanley and McNeil's formula worked by hand


@pytest.mark.parametrize("measure", MEASURES)
def test_small_and_odd_tables_are_measured_or_say_why_not(measure: Measure) -> None:
    rows = sized(100, ROWS)
    table = draw_table(1, rows)
    empty = table.set_column(1, "y", pa.nulls(table.num_rows, pa.float64()))
    odd = [
        (table.select(["x"]), draw_table(2, rows).select(["x"])),
        (constant_table(50), constant_table(50)),
        (constant_table(1), constant_table(1)),
        (table, draw_table(2, 7)),
        (table, empty),
        (table, draw_table(2, rows).set_column(3, "colour", pa.array(["mauve"] * table.num_rows))),
    ]
    for original, released in odd:
        for finding in found(measure, original, released).values():
            assert "failed" not in (finding.reason or "")
            assert finding.value is None or np.isfinite(finding.value)


def test_the_same_seed_gives_the_same_findings() -> None:
    for measure in MEASURES:
        rows = sized(100, ROWS)
        first, second = (found(measure, draw_table(1, rows), draw_table(2, rows)) for _ in range(2))
        assert first == second


def test_a_large_table_is_sampled_and_says_so() -> None:
    (here, there), sizes = sized(((300, 350), Sizes(training=200)), ((10_500, 10_600), Sizes()))
    large = replace(study(draw_table(1, here), draw_table(2, there)), sizes=sizes)
    (area,) = run_measure(PROPENSITY_AUC, large)
    rows = sized(200, 10_000)
    assert f"counted on {rows} original and {rows} released rows drawn at random." in area.meaning
    assert area.attempts == 2 * rows
