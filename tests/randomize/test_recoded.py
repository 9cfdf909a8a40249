"""Randomized tables whose answers are of another kind than the values, and tables of dates."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.core.distributions.domains import Dates, Integers, Labels, Universe
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import OptionError, PrivacyRefusal, SchemaError
from sfumato.methods.randomize.facts import Randomized
from sfumato.tables.field import DateStep

ROWS = 3000
KINDS = tuple(f"k{place}" for place in range(20))
FIRST = datetime.date(2020, 1, 1)
START = datetime.datetime(2020, 1, 1)
DAYS = Dates("2020-01-01", "2022-12-31", "day")


def draw(form: str | None = None, rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(5)
    dates = [FIRST + datetime.timedelta(days=int(day)) for day in np.minimum(rng.gamma(2, 150, rows), 1000)]
    weights = 1.0 / np.arange(1, len(KINDS) + 1)
    return pa.table(
        {
            "age": rng.integers(0, 100, rows),
            "kind": rng.choice(KINDS, rows, p=weights / weights.sum()),
            "seen": dates if form is None else [date.strftime(form) for date in dates],
        }
    )


def schema_of(form: str | None = None) -> sf.Schema:
    days = sf.Domain(declared=True, low=START, high=datetime.datetime(2022, 12, 31), step=DateStep.DAY)
    return sf.Schema(
        (
            sf.Field("age", sf.Kind.INTEGER, domain=sf.Domain(declared=True, low=0, high=100)),
            sf.Field("kind", sf.Kind.NOMINAL, domain=sf.Domain(declared=True, categories=KINDS)),
            sf.Field("seen", sf.Kind.DATE, domain=days, format=form),
        )
    )


AGE = NoiseSpec(Integers(0, 100), {"name": "interval", "edges": [18, 40, 65]})
KIND = NoiseSpec(Labels(KINDS), {"name": "subset", "epsilon": 2.0})
SEEN = NoiseSpec(DAYS, {"name": "laplace", "scale": 100})


def released(table: pa.Table, schema: sf.Schema, **specs: NoiseSpec) -> Any:
    told = {"age": AGE, "kind": KIND, "seen": SEEN, **specs}
    return sf.sanitize(table, sf.Randomization(specs=told), schema=schema, seed=3, report=False)


def facts_of(release: sf.Release) -> list[Randomized]:
    return [fact for fact in release.certificate.facts if isinstance(fact, Randomized)]


def test_intervals_and_numbers_of_sets_leave_in_the_place_of_values_and_dates_stay_dates() -> None:
    table = draw()
    release = released(table, schema_of())
    assert set(release.table["age"].to_pylist()) == {"0..17", "18..39", "40..64", "65..100"}
    assert min(release.table["kind"].to_pylist()) >= 0
    assert max(release.table["kind"].to_pylist()) < len(KIND.operator.outputs or ())
    assert release.table.schema.field("seen").type == pa.date32()
    seen = release.table["seen"].to_pylist()
    assert min(seen) < FIRST  # noise leaves the bounds, and is not cut
    assert sorted(np.searchsorted([18, 40, 65], table["age"].to_numpy(), side="right").tolist()) == sorted(
        ["0..17", "18..39", "40..64", "65..100"].index(cell) for cell in release.table["age"].to_pylist()
    )


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%Y-%m-%d"])
def test_a_recipient_reads_all_back_from_the_certificate(form: str, tmp_path: Path) -> None:
    table = draw(form)
    released(table, schema_of(form)).save(tmp_path / "out")
    folder = tmp_path / "out" / "release"
    got = pyarrow.csv.read_csv(folder / "table.csv")
    spec = folder / "certificate.json"
    age = sf.reconstruct(got, "age", spec)
    truth = np.histogram(table["age"].to_numpy(), [0, 18, 40, 65, 101])[0] / ROWS
    np.testing.assert_allclose(age.probability, truth, atol=1e-6)  # nothing was random
    kind = sf.reconstruct(got, "kind", spec)
    shares = np.array([table["kind"].to_pylist().count(label) for label in KINDS]) / ROWS
    inside = (kind.lower <= shares + 1e-9) & (shares <= kind.upper + 1e-9)
    assert inside.mean() >= 0.75  # of 20 bands at 95 %, six or more off has a chance below 1e-4
    seen = sf.reconstruct(got, "seen", spec, intervals=3)
    document = seen.to_document()
    assert document["edges"] == ["2020-01-01", "2020-12-31", "2021-12-31", "2023-01-01"]
    days = [(datetime.datetime.strptime(cell, form).date() - FIRST).days for cell in table["seen"].to_pylist()]
    found = np.histogram(days, [0, 365, 730, 1096])[0] / ROWS
    assert (np.abs(seen.probability - found) < 0.15).all()
    mean = document["answers"][0]
    assert mean["lower"] <= str(FIRST + datetime.timedelta(days=int(np.mean(days)))) <= mean["upper"]
    assert "2020-01-01 to 2020-12-30" in seen.chart()
    checks = {check.name: check.holds for check in sf.verify(folder)}
    assert all(holds for name, holds in checks.items() if name != "made for release")


def test_epsilon_randomizes_dates_by_their_own_step() -> None:
    table = draw().select(["seen"])
    schema = sf.Schema((schema_of()["seen"],))
    release = sf.sanitize(table, sf.Randomization(epsilon=2.0), schema=schema, seed=3, report=False)
    (fact,) = facts_of(release)
    assert NoiseSpec.from_document(json.loads(fact.spec)) == NoiseSpec(DAYS, {"name": "laplace", "scale": 547.5})
    assert fact.epsilon == pytest.approx(2.0)


def test_months_and_nanoseconds_come_back_as_dates_of_their_kind() -> None:
    moments = pa.array(np.arange(ROWS) * 86_400 * 10**9 + 1_577_836_800 * 10**9).view(pa.timestamp("ns"))
    table = pa.table({"at": moments, "born": draw()["seen"]})
    domain = sf.Domain(declared=True, low=START, high=datetime.datetime(2030, 1, 1), step=DateStep.DAY)
    months = sf.Domain(declared=True, low=START, high=datetime.datetime(2022, 12, 1), step=DateStep.MONTH)
    schema = sf.Schema((sf.Field("at", sf.Kind.DATE, domain=domain), sf.Field("born", sf.Kind.DATE, domain=months)))
    release = sf.sanitize(table, sf.Randomization(epsilon=0.5), schema=schema, seed=3, report=False)
    assert release.table.schema.field("at").type == pa.timestamp("us")
    born = release.table["born"].to_pylist()
    assert {date.day for date in born} == {1}
    assert len({(date.year, date.month) for date in born}) > 36
    facts = {fact.column: json.loads(fact.spec) for fact in facts_of(release)}
    assert facts["born"]["domain"] == {"kind": "dates", "low": "2020-01", "high": "2022-12", "unit": "month"}


CLOCK = Dates("1970-01-01 00:00", "1970-01-01 23:59", "minute")


@pytest.mark.parametrize(
    ("column", "domain", "law", "words"),
    [
        ("seen", Integers(0, 5), {"name": "laplace", "scale": 3}, "give its domain the kind dates"),
        ("seen", Dates("2020-01-01", "2022-12-31", "hour"), {"name": "laplace", "scale": 3}, "take the unit day"),
        ("seen", DAYS, {"name": "laplace", "scale": 200_000}, "beyond what the column can hold"),
        ("seen", DAYS, {"name": "rounding", "to": 1.5}, "parts of a day"),
        ("clock", CLOCK, {"name": "uniform", "reach": 5}, "or the hours of a day"),
        ("kind", Labels((*KINDS, "other")), {"name": "subset", "epsilon": 1}, "1 labels that the column does not list"),
    ],
)
def test_what_a_column_cannot_hold_is_refused_with_the_reason(
    column: str, domain: Universe, law: dict[str, Any], words: str
) -> None:
    table = draw(rows=50)
    if column == "clock":
        table = pa.table({"clock": [f"{hour % 24:02d}:30" for hour in range(50)]})
        schema = sf.Schema((sf.Field("clock", sf.Kind.DATE, domain=sf.Domain(step=DateStep.MINUTE), format="%H:%M"),))
    else:
        table, schema = table.select([column]), sf.Schema((schema_of()[column],))
    mechanism = sf.Randomization(specs={column: NoiseSpec(domain, law)})
    with pytest.raises((OptionError, SchemaError), match=words):
        sf.sanitize(table, mechanism, schema=schema, seed=1, report=False)


def test_times_of_day_stay_in_their_day() -> None:
    table = pa.table({"clock": [f"{hour % 24:02d}:30" for hour in range(400)]})
    schema = sf.Schema((sf.Field("clock", sf.Kind.DATE, domain=sf.Domain(step=DateStep.MINUTE), format="%H:%M"),))
    spec = NoiseSpec(CLOCK, {"name": "shift-modulo", "reach": 90})
    release = sf.sanitize(table, sf.Randomization(specs={"clock": spec}), schema=schema, seed=1, report=False)
    cells = release.table["clock"].to_pylist()
    assert all(len(cell) == 5 and cell < "24" for cell in cells)
    assert sf.reconstruct(release.table, "clock", spec, intervals=2, least=0).records == 400


def test_missing_cells_stay_missing_where_that_is_allowed_and_are_answered_where_they_are_labels() -> None:
    table = draw()
    gone = [None if row % 5 == 0 else cell for row, cell in enumerate(table["age"].to_pylist())]
    holes = [None if row % 4 == 0 else cell for row, cell in enumerate(table["kind"].to_pylist())]
    table = table.set_column(0, "age", pa.array(gone)).set_column(1, "kind", pa.array(holes))
    kinds = NoiseSpec(Labels((*KINDS, "")), {"name": "subset", "epsilon": 2.0})
    with pytest.raises(PrivacyRefusal, match="'age' has missing cells"):
        released(table, schema_of(), kind=kinds)
    specs = {"age": AGE, "kind": kinds, "seen": SEEN}
    mechanism = sf.Randomization(specs=specs, pass_missing=True)
    release = sf.sanitize(table, mechanism, schema=schema_of(), seed=3, report=False)
    assert release.table["age"].null_count == ROWS // 5
    assert release.table["kind"].null_count == 0
    found = sf.reconstruct(release.table, "kind", kinds)
    assert found.lower[-1] <= 0.25 <= found.upper[-1]


def test_parents_leave_in_the_place_of_labels_and_a_report_guesses_behind_all_answers() -> None:
    table = draw(rows=1200)
    parents = {label: f"part {place // 7}" for place, label in enumerate(KINDS)}
    tree = NoiseSpec(Labels(KINDS), {"name": "taxonomy", "parents": parents})
    mechanism, schema = sf.Randomization(specs={"age": AGE, "kind": tree}), sf.Schema(schema_of().fields[:2])
    release = sf.sanitize(table.select(["age", "kind"]), mechanism, schema=schema, seed=3)
    assert set(release.table["kind"].to_pylist()) == {"part 0", "part 1", "part 2"}
    assert release.report is not None
    guessed = {finding.name: finding.value for finding in release.report.findings if finding.name.startswith("bayes-")}
    assert {"bayes-inference/age", "bayes-inference/kind"} <= set(guessed)
    most = [table["kind"].to_pylist().count(label) for label in KINDS]
    firsts = sum(max(most[start : start + 7]) for start in (0, 7, 14))
    assert guessed["bayes-inference/kind"] <= firsts / 1200 + 1e-9


def test_the_mean_of_intervals_may_lie_anywhere_in_them() -> None:
    spec = NoiseSpec(Integers(0, 99), {"name": "interval", "edges": [50]})
    found = sf.reconstruct(pa.table({"x": ["0..49"] * 5000 + ["50..99"] * 5000}), "x", spec)
    mean = found.answers[0]
    assert mean.lower < 26.0
    assert mean.upper > 73.0
