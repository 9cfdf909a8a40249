"""What a release does to the means of numeric columns."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.assess.findings import Direction
from sfumato.assess.report import Report
from sfumato.assess.utility.distortion import MEANS
from tests.assess.cases import constant_table, draw_table, found_by

found = partial(found_by, MEANS)


def test_a_copy_changes_no_mean() -> None:
    findings = found(draw_table(1), draw_table(1))
    assert set(findings) == {"mean-change-largest", "mean-change/x", "mean-change/y", "mean-change/count"}
    assert {finding.value for finding in findings.values()} == {0.0}


def test_the_change_is_relative_to_the_mean_and_without_its_sign() -> None:
    table = pa.table({"debt": [-10.0, -20.0, None, -30.0], "size": [1.0, 2.0, 3.0, 6.0]})
    changed = pa.table({"debt": [-10.0, -10.0, -10.0, None], "size": [2.0, 3.0, 4.0, 6.0]})
    findings = found(table, changed)
    assert findings["mean-change/debt"].value == pytest.approx(0.5)
    assert "the mean of debt became larger." in findings["mean-change/debt"].meaning
    assert findings["mean-change/size"].value == pytest.approx(0.25)
    assert findings["mean-change-largest"].value == pytest.approx(0.5)
    assert findings["mean-change-largest"].baseline == findings["mean-change/debt"].baseline
    assert all(finding.direction is Direction.LOWER for finding in findings.values())
    assert "the mean of size became smaller." in found(changed, table)["mean-change/size"].meaning


def test_a_redraw_changes_means_as_far_as_chance_explains() -> None:
    beyond = 0
    for seed in range(20):
        findings = found(draw_table(2 * seed), draw_table(2 * seed + 1))
        finding = findings["mean-change/count"]
        assert finding.value is not None
        assert finding.baseline is not None
        beyond += finding.value > finding.baseline
    assert beyond <= 4  # one in 20 is expected; the seeds are fixed


def test_a_constant_table_changes_them_by_far() -> None:
    finding = found(draw_table(1), constant_table())["mean-change-largest"]
    assert finding.value is not None
    assert finding.value > (finding.baseline or 0.0)


def test_coding_the_tails_lowers_the_mean_of_a_skewed_column_and_keeping_them_does_not() -> None:
    rng = np.random.default_rng(3)
    table = pa.table({"pay": np.exp(1.5 * rng.normal(size=800)).round(3), "sex": rng.choice(["F", "M"], 800).tolist()})
    coded, kept = (
        found(table, sf.sanitize(table, sf.Condensation(k=40, effort="fast"), seed=1, report=False, tails=tails).table)
        for tails in ("code", "keep")
    )
    assert "the mean of pay became smaller." in coded["mean-change/pay"].meaning
    assert (coded["mean-change/pay"].value or 0.0) > 0.1 > (kept["mean-change/pay"].value or 0.0)


def test_columns_without_a_mean_are_left_out() -> None:
    categories = draw_table(1).select(["colour", "born"])
    (finding,) = found(categories, categories).values()
    assert finding.reason == "no column holds numbers with a mean other than 0"
    assert not finding.applies
    zero = pa.table({"a": [-1.0, 1.0, -2.0, 2.0], "b": [1.0, 2.0, 3.0, 4.0]})
    assert "mean-change/a" not in found(zero, zero)


def test_means_stay_with_the_owner() -> None:
    findings = tuple(found(draw_table(1), draw_table(2)).values())
    assert not any(finding.public for finding in findings)
    report = Report(findings, (), 600, 600)
    assert "Change of a mean, largest" in report.to_html(edition="owner")
    assert "change of a mean" not in report.to_html(edition="public")
