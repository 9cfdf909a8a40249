from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.assess import measure
from sfumato.assess.utility.prediction import PREDICTION
from sfumato.core.errors import OptionError, PrivacyLeakWarning, TableError
from sfumato.publish.evaluate import compare_tables

pytestmark = pytest.mark.usefixtures("without_figures")
columns_alone = pytest.mark.usefixtures("columns_only")


def frame(rows: int = 120, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    return pd.DataFrame(
        {
            "x": x.round(3),
            "y": (x + rng.normal(size=rows)).round(3),
            "town": rng.choice(["Ulm", "Bari", "Lodz"], rows),
            "smokes": rng.random(rows) < 0.3,
        }
    )


def value(report: sf.Report, name: str) -> float:
    found = report[name].value
    assert found is not None
    return found


@columns_alone
def test_a_copy_shows_the_worst_privacy_and_the_best_utility() -> None:
    report = sf.evaluate(frame(), frame())
    assert value(report, "verbatim-rows") == 1.0
    assert value(report, "marginal-distance") == 0.0
    assert value(report, "covariance-compatibility") == pytest.approx(1.0)


@columns_alone
def test_settings_are_tried_only_if_a_policy_is_named() -> None:
    unasked, asked = (sf.evaluate(frame(), frame(seed=4), policy=policy).verdict for policy in (None, "research"))
    assert unasked is not None
    assert unasked.to_try
    assert unasked.tried is None
    assert asked is not None
    assert asked.tried is not None


@columns_alone
def test_the_form_of_the_released_table_changes_nothing() -> None:
    before = frame()
    other = before.assign(x=before.x.astype(str), smokes=before.smokes.astype(int))
    for released in (other, pl.from_pandas(other), pa.Table.from_pandas(other, preserve_index=False)):
        report = sf.evaluate(before, released)
        assert value(report, "verbatim-rows") == 1.0
        assert value(report, "marginal-distance") == 0.0


@columns_alone
def test_the_same_seed_gives_the_same_numbers() -> None:
    before, after = frame(), frame(seed=4)
    first, again = (sf.evaluate(before, after, seed=5).to_json() for _ in range(2))
    assert first["findings"] == again["findings"]
    assert sf.evaluate(before, after, seed=6).to_json()["findings"] != first["findings"]


@columns_alone
def test_identifiers_and_public_columns_are_not_measured() -> None:
    before = frame()
    report = sf.evaluate(before, before.drop(columns="town"), identifiers=["town"])
    assert "marginal-distance/town" not in {finding.name for finding in report.findings}
    with pytest.warns(UserWarning, match="1 public columns were not measured"):
        report = sf.evaluate(before, before, public=["town"])
    assert "marginal-distance/town" not in {finding.name for finding in report.findings}


def test_the_target_is_that_of_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    before = frame()
    with pytest.raises(OptionError, match="'height'"):
        sf.evaluate(before, before, target="height")
    monkeypatch.setattr(measure, "catalogue", lambda: (PREDICTION,))
    report = sf.evaluate(before, before, target="smokes", holdout=frame(rows=30, seed=5))
    assert value(report, "accuracy-1nn") > 0.0


@columns_alone
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"extra": 1, "more": 2}, "2 columns of the released table are not in the original"),
        ({"town": "other", "x": "many"}, "2 cells .* unknown to the original .* in 2 columns"),
        ({"town": "ulm"}, "1 cells .* another spelling .*'town' 1"),
    ],
)
def test_what_is_read_otherwise_is_told(change: dict[str, Any], words: str) -> None:
    before = frame()
    after = before.astype({"x": object})
    for name, cell in change.items():
        if name in after:
            after.loc[0, name] = cell
        else:
            after[name] = cell
    after["x"] = after["x"].astype(str)
    with pytest.warns(UserWarning, match=words):
        sf.evaluate(before, after)


@columns_alone
def test_an_identifier_in_the_released_table_is_warned_of() -> None:
    before = frame().assign(code=[f"p{row}" for row in range(120)])
    with pytest.warns(PrivacyLeakWarning, match="1 columns that look like identifiers .*'code'"):
        sf.evaluate(before, before)


def test_nothing_is_said_where_nothing_is_odd() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sf.evaluate(frame(), frame(seed=4), holdout=frame(rows=30, seed=5))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"holdout": 0.2}, "exists already"),
        ({"holdout": frame().drop(columns="x")}, "held-out table lacks 1 columns"),
        ({"time_limit": 0}, "above 0"),
        ({"time_limit": -3.0}, "above 0"),
        ({"time_limit": float("nan")}, "above 0"),
        ({"time_limit": float("inf")}, "above 0"),
        ({"identifiers": ["height"]}, "'height'"),
    ],
)
def test_what_makes_no_sense_is_refused(told: dict[str, Any], words: str) -> None:
    with pytest.raises((OptionError, TableError), match=words):
        sf.evaluate(frame(), frame(), **told)


def test_lacking_columns_are_counted_and_named() -> None:
    with pytest.raises(TableError, match=r"lacks 2 columns of the original, the first is 'x'; .*identifiers="):
        sf.evaluate(frame(), frame().drop(columns=["x", "town"]))


@columns_alone
@pytest.mark.parametrize("time_limit", [0.001, 60.0])
def test_a_time_limit_is_in_the_report(time_limit: float) -> None:
    report = sf.evaluate(frame(), frame(seed=4), time_limit=time_limit)
    assert report.sizes["time_limit"] == time_limit
    assert report.sizes["estimate"] > 0
    release = sf.sanitize(
        pa.Table.from_pandas(frame(), preserve_index=False), sf.Condensation(k=5), time_limit=time_limit
    )
    assert release.report is not None
    assert release.report.sizes["time_limit"] == time_limit


@pytest.mark.slow
def test_a_larger_time_limit_looks_at_no_fewer_rows() -> None:
    sizes = [sf.evaluate(frame(), frame(seed=4), time_limit=time_limit).sizes for time_limit in (0.001, 1e6)]
    assert sizes[0]["attempts"] <= sizes[1]["attempts"]
    assert sizes[0]["training"] < sizes[1]["training"]


@columns_alone
def test_the_certificate_says_which_columns_were_dropped_and_how_many_rows_went_in() -> None:
    before = frame().assign(code=[f"p{row}" for row in range(120)], asks=[4, 6] * 60)
    release = sf.sanitize(before, sf.Condensation(k=3), level="asks", holdout=0.25, report=False)
    with pytest.raises(TableError, match="'asks'"):
        compare_tables(before, release.table)
    evaluation = compare_tables(before, release.table, certificate=release.certificate)
    assert value(evaluation.report, "group-size-smallest") >= 4
    (note,) = evaluation.notes
    assert "speaks of 90 records and the original has 120" in str(note)


def test_a_released_table_without_rows_is_measured_as_far_as_it_goes() -> None:
    report = sf.evaluate(frame(), frame().iloc[:0])
    assert report["marginal-distance"].status == "not-run"


@columns_alone
def test_no_note_shows_a_cell() -> None:
    before = frame()
    after = before.copy()
    after.loc[:3, "town"] = "Zyxwv"
    notes = compare_tables(before, after).notes
    assert len(notes) == 1
    assert "Zyxwv" not in str(notes[0])


def test_a_release_is_evaluated_by_its_folder_with_what_its_certificate_says(tmp_path: Path) -> None:
    before = pa.table({"name": [f"p{row}" for row in range(60)], "age": [20 + 7 * row % 41 for row in range(60)]})
    release = sf.sanitize(before, k=6, effort="fast", seed=1, report=False)
    release.save(tmp_path / "out")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = sf.evaluate(before, tmp_path / "out", seed=1, time_limit=0.01)
    assert report.certificate is not None
    assert report.certificate["rows_in"] == 60
    with (tmp_path / "out" / "release" / "table.csv").open("a", encoding="utf-8") as file:
        file.write("30\n")
    with pytest.warns(UserWarning, match="the certificate in the folder of the released table is for another table"):
        altered = sf.evaluate(before, tmp_path / "out" / "release" / "table.csv", identifiers=["name"], time_limit=0.01)
    assert altered.certificate is None
    with pytest.raises(OptionError, match="not a release of one table"):
        sf.evaluate(before, tmp_path)
