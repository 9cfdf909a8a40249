"""Every measure on the three fixed cases, and what it says where it cannot run."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.findings import Direction, Family
from sfumato.assess.report import Report
from tests.assess.cases import (
    CASES,
    ROWS,
    constant_table,
    draw_table,
    find,
    findings_of,
    measure,
    released_of,
    value_of,
)
from tests.assess.test_docs import explained
from tests.examples import sized

COLUMNS = ("x", "y", "count", "colour", "shape", "born")


@pytest.mark.parametrize("case", CASES)
def test_every_finding_is_complete_and_within_its_range(case: str) -> None:
    for finding in findings_of(case).findings:
        assert finding.meaning.endswith(".")
        assert isinstance(finding.direction, Direction)
        if finding.value is None:
            assert finding.reason
            continue
        assert math.isfinite(finding.value)
        assert finding.baseline is not None
        low, high = finding.range
        assert low is None or low <= finding.value
        assert high is None or finding.value <= high
        if finding.interval is not None:
            assert finding.interval[0] <= finding.value <= finding.interval[1]


def test_names_of_findings_do_not_repeat() -> None:
    names = [finding.name for finding in findings_of("redraw").findings]
    assert len(names) == len(set(names))


def test_every_finding_of_a_report_is_explained_on_a_page() -> None:
    for name in {finding.name.partition("/")[0] for finding in findings_of("redraw").findings}:
        assert explained(name), name


@pytest.mark.parametrize(
    "name",
    ["marginal-distance", "marginal-distance-largest", "association-difference", "association-difference-largest"],
)
def test_a_distance_is_zero_for_a_copy_small_for_a_redraw_and_worst_for_a_constant_table(name: str) -> None:
    assert value_of("copy", name) == 0.0
    redraw = findings_of("redraw")[name]
    assert redraw.interval is not None
    assert redraw.baseline is not None
    assert 0.0 < value_of("redraw", name) < 6 * redraw.baseline
    assert value_of("constant", name) > 2 * value_of("redraw", name)


@pytest.mark.parametrize("column", COLUMNS)
def test_each_column_moves_most_in_the_constant_table(column: str) -> None:
    name = f"marginal-distance/{column}"
    assert value_of("copy", name) == 0.0
    assert value_of("redraw", name) < 0.15 < value_of("constant", name)


@pytest.mark.usefixtures("columns_only")
def test_a_column_without_any_value_left_is_at_the_greatest_distance() -> None:
    original = draw_table(1)
    empty = pa.nulls(ROWS, original.schema.field("y").type)
    released = original.set_column(1, "y", empty)
    report = find(original, released)
    assert report["marginal-distance/y"].value == 1.0
    assert report["missing-rate/y"].value == pytest.approx(1 - original.column("y").null_count / ROWS)


@pytest.mark.usefixtures("columns_only")
def test_disjoint_values_are_at_the_greatest_distance() -> None:
    numbers = np.random.default_rng(1).normal(size=100)
    original = pa.table({"a": numbers, "b": numbers})
    released = pa.table({"a": numbers + 1000, "b": numbers})
    report = find(original, released)
    assert report["marginal-distance/a"].value == pytest.approx(1.0)
    assert report["marginal-distance/b"].value == 0.0


@pytest.mark.parametrize("name", ["covariance-compatibility", "covariance-compatibility-standardized"])
def test_mu_is_one_for_a_copy_near_it_for_a_redraw_and_zero_for_a_constant_table(name: str) -> None:
    assert value_of("copy", name) == 1.0
    assert value_of("redraw", name) > 0.97
    assert value_of("constant", name) == 0.0


def test_verbatim_rows_are_all_of_a_copy_and_none_of_a_redraw() -> None:
    assert value_of("copy", "verbatim-rows") == 1.0
    assert value_of("redraw", "verbatim-rows") == 0.0
    assert value_of("constant", "verbatim-rows") == 1.0


def test_closeness_is_worst_for_a_copy_and_like_real_neighbours_for_a_redraw() -> None:
    assert value_of("copy", "closest-record-distance") == 0.0
    assert value_of("constant", "closest-record-distance") == 0.0
    assert value_of("copy", "closer-than-original-neighbours") == 1.0
    redraw = findings_of("redraw")["closest-record-distance"]
    assert redraw.interval is not None
    assert redraw.baseline == pytest.approx(redraw.value, rel=0.2)
    assert redraw.control == pytest.approx(redraw.value, rel=0.2)
    assert value_of("redraw", "closer-than-original-neighbours") == pytest.approx(0.5, abs=0.1)


def test_only_a_copy_is_nearer_to_the_original_than_to_rows_held_out() -> None:
    name = "closer-to-original-than-control"
    assert value_of("copy", name) == 1.0
    assert value_of("redraw", name) == pytest.approx(0.5, abs=0.1)


@pytest.mark.usefixtures("columns_only")
def test_closeness_reaches_its_worst_value_where_most_original_rows_have_twins() -> None:
    original = pa.table({"a": ["u", "v"] * 50, "b": ["s", "t", "t", "s"] * 25})
    report = find(original, original)
    assert report["closer-than-original-neighbours"].value == 1.0
    assert report["verbatim-rows"].baseline == 1.0


@cache
def alone() -> Report:
    """The report of a redraw of which neither groups nor the control group are known."""
    rows = sized(200, ROWS)
    return find(draw_table(1, rows), released_of("redraw", rows))


def test_without_workings_what_groups_would_tell_is_not_run() -> None:
    report = alone()
    for name in (
        "ssq",
        "information-loss",
        "group-size-smallest",
        "group-size-median",
        "level-met",
        "groups-below-four",
    ):
        assert report[name].status == "not-run"
        assert "no groups" in (report[name].reason or "")


def test_without_rows_held_out_the_control_says_so() -> None:
    report = alone()
    assert report["closest-record-distance"].control is None
    assert "control not run because no rows were held out" in report["closest-record-distance"].meaning
    assert report["closer-to-original-than-control"].reason == "no rows were held out"


def test_cells_that_the_original_does_not_know_stop_no_measure() -> None:
    strange = draw_table(3, 20)
    strange = strange.set_column(3, "colour", pa.array(["mauve"] * 20)).set_column(0, "x", pa.array([1e6] * 20))
    strange = strange.set_column(2, "count", pa.nulls(20, pa.int64()))
    report = find(draw_table(1, sized(200, ROWS)), strange, holdout=strange)
    assert report["closest-record-distance"].control is not None
    assert report["marginal-distance/colour"].value == 1.0
    assert report["missing-rate/count"].value == 1.0
    assert "mauve" not in str(report.to_json())


@pytest.mark.usefixtures("columns_only")
def test_a_single_column_has_no_links_and_no_covariances() -> None:
    report = find(draw_table(1).select(["x"]), draw_table(2).select(["x"]))
    for name in ("association-difference", "covariance-compatibility", "covariance-compatibility-standardized"):
        assert report[name].status == "not-run"
    assert report["marginal-distance/x"].status == "measured"


def test_an_empty_release_gives_findings_that_were_not_run() -> None:
    report = find(draw_table(1), draw_table(2).slice(0, 0))
    assert not report.figures
    assert {finding.reason for finding in report.findings if finding.family is Family.UTILITY} == {
        "the released table has no rows",
        "no groups came with the table; they are known only to the run that made it",
    }


def test_an_original_that_is_constant_is_measured_without_a_crash() -> None:
    report = find(constant_table(50), constant_table(50))
    assert report["marginal-distance"].value == 0.0
    assert report["association-difference"].value == 0.0
    assert report["covariance-compatibility"].status == "not-run"


def test_an_original_of_one_row_has_no_neighbours() -> None:
    report = find(constant_table(1), constant_table(1))
    assert report["closest-record-distance"].status == "not-run"
    assert report["verbatim-rows"].value == 1.0


@pytest.mark.usefixtures("columns_only")
def test_a_released_table_of_another_size_is_measured() -> None:
    report = find(draw_table(1), draw_table(2, 90))
    assert report.rows_released == 90
    small, large = report["marginal-distance"].baseline, findings_of("redraw")["marginal-distance"].baseline
    assert small is not None
    assert large is not None
    assert small > 1.5 * large


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report() -> None:
    first, second = (measure(draw_table(1, 60), draw_table(2, 60)) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert [figure.svg for figure in first.figures] == [figure.svg for figure in second.figures]
