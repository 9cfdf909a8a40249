"""Dates of birth are given to the month, and other columns by months are too."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import SchemaError
from sfumato.tables.codec import Codec
from sfumato.tables.dates import month_starts, nearest_month_starts
from sfumato.tables.facts import ColumnRulesKept, DatesCoarsened
from sfumato.tables.schema import DateStep, Domain, Field, Kind, Schema
from tests.examples import examples

EPOCH = datetime.datetime(1970, 1, 1)


def dates(low: int, high: int, rows: int = 200, seed: int = 3) -> list[datetime.date]:
    days = np.random.default_rng(seed).integers(low, high, rows)
    return [EPOCH.date() + datetime.timedelta(days=int(day)) for day in days]


def people() -> pa.Table:
    return pa.table(
        {"birth_date": dates(-9_000, 12_000), "visit": dates(19_000, 19_300), "pay": [row % 50 for row in range(200)]}
    )


@given(st.integers(-60 * 10**15, 250 * 10**15))
@examples(200)
def test_the_start_of_a_month_is_its_first_midnight(moment: int) -> None:
    day = EPOCH + datetime.timedelta(microseconds=moment)
    start = EPOCH + datetime.timedelta(microseconds=int(month_starts(np.array([moment]))[0]))
    assert start == datetime.datetime(day.year, day.month, 1)


@given(st.integers(-700_000, 2_900_000))
@examples(200)
def test_the_nearest_start_is_at_most_half_a_month_away(day: int) -> None:
    (near,) = nearest_month_starts(np.array([float(day)]), -np.inf, np.inf)
    assert (EPOCH + datetime.timedelta(days=int(near))).day == 1
    assert abs(near - day) <= 15.5


@pytest.mark.parametrize(
    ("name", "low", "high", "monthly"),
    [
        ("birth_date", 0, 300, True),
        ("DateOfBirth", 0, 300, True),
        ("geb", 0, 300, True),
        ("when", -12_000, 12_000, True),
        ("admission", 19_000, 19_700, False),
        ("hired", 9_000, 19_700, False),
    ],
)
def test_dates_are_those_of_births_by_name_or_range(name: str, low: int, high: int, monthly: bool) -> None:
    table = pa.table({name: dates(low, high)})
    schema = Schema.infer(table)
    assert schema.monthly == ((name,) if monthly else ())
    assert ("given to the month as dates of birth" in schema[name].reason) == monthly
    assert schema.by_days().monthly == ()


@pytest.mark.parametrize("form", ["date32", "timestamp", "text"])
@pytest.mark.parametrize("method", ["condense", "chain"])
def test_released_births_are_first_days_and_come_before_visits(form: str, method: str) -> None:
    table = people()
    if form == "timestamp":
        table = table.set_column(0, "birth_date", table.column(0).cast(pa.timestamp("ns")))
    if form == "text":
        table = table.set_column(0, "birth_date", pa.array([f"{day:%d.%m.%Y}" for day in table.column(0).to_pylist()]))
    release = sf.sanitize(table, method=method, k=5, seed=1, report=False)
    assert DatesCoarsened(("birth_date",)) in release.certificate.facts
    assert release.table.schema.types == table.schema.types
    cells = release.table.column("birth_date").to_pylist()
    assert {cell[:2] if form == "text" else cell.day for cell in cells} == {"01" if form == "text" else 1}


def test_an_order_with_a_month_before_is_kept() -> None:
    table = pa.table({"born": dates(0, 600), "visit": [day + datetime.timedelta(days=20) for day in dates(0, 600)]})
    release = sf.sanitize(table, k=5, seed=1, report=False)
    assert any(isinstance(fact, ColumnRulesKept) for fact in release.certificate.facts)
    born, visit = (release.table.column(name).to_pylist() for name in ("born", "visit"))
    assert all(one <= other for one, other in zip(born, visit, strict=True))


def test_a_rule_that_needs_days_is_refused() -> None:
    table = pa.table({"visit": dates(0, 600), "died": [day + datetime.timedelta(days=90) for day in dates(0, 600)]})
    fields = [Field(name, Kind.DATE, domain=Domain(step=DateStep.DAY)) for name in table.column_names]
    fields[1] = Field("died", Kind.DATE, domain=Domain(step=DateStep.MONTH))
    with pytest.raises(SchemaError, match="needs days"):
        sf.sanitize(table, k=5, schema=Schema(tuple(fields), ("visit <= died",)), report=False)


def test_a_schema_that_says_day_keeps_days() -> None:
    schema = Schema.from_toml(Schema.infer(people()).to_toml().replace('step = "month"', 'step = "day"'))
    release = sf.sanitize(people(), schema=schema, k=5, seed=1, report=False)
    assert len({day.day for day in release.table.column("birth_date").to_pylist()}) > 5
    assert not any(isinstance(fact, DatesCoarsened) for fact in release.certificate.facts)


def test_declared_bounds_between_months_hold() -> None:
    low, high = datetime.datetime(1970, 1, 20), datetime.datetime(1970, 6, 10)
    field = Field("born", Kind.DATE, domain=Domain(declared=True, low=low, high=high, step=DateStep.MONTH))
    table = pa.table({"born": dates(31, 150)})
    codec = Codec.fit(table, Schema((field,)))
    drawn = codec.decode(np.linspace(-9, 9, 400)[:, None]).column("born").to_pylist()
    assert {day.day for day in drawn} == {1}
    assert min(drawn) == datetime.date(1970, 1, 1)
    assert max(drawn) == datetime.date(1970, 6, 1)


def test_verify_finds_a_day_that_was_put_back(tmp_path: pytest.TempPathFactory) -> None:
    folder = str(tmp_path)
    sf.sanitize(people(), k=5, seed=1, report=False).save(f"{folder}/out")
    checks = {check.name: check for check in sf.verify(f"{folder}/out/release")}
    assert checks["dates by month"].holds
    with open(f"{folder}/out/release/table.csv", encoding="utf-8") as file:
        text = file.read()
    with open(f"{folder}/out/release/table.csv", "w", encoding="utf-8") as file:
        file.write(text.replace("-01,", "-02,", 1))
    assert not {check.name: check for check in sf.verify(f"{folder}/out/release")}["dates by month"].holds


@pytest.mark.parametrize("hours", [True, False])
def test_a_grid_of_hours_or_minutes_comes_back(hours: bool) -> None:
    unit = 3_600 if hours else 60
    drawn = np.random.default_rng(2).integers(0, 9_000, 200) * unit
    table = pa.table({"at": pa.array(drawn).cast(pa.timestamp("s")).cast(pa.timestamp("ns"))})
    schema = Schema.infer(table)
    assert schema["at"].domain.step is (DateStep.HOUR if hours else DateStep.MINUTE)
    released = sf.sanitize(table, k=5, seed=1, report=False).table.column("at")
    assert released.type == pa.timestamp("ns")
    assert not (released.cast(pa.int64()).to_numpy() % (unit * 10**9)).any()


def test_a_file_in_batches_gives_births_to_the_month_too(tmp_path: Path) -> None:
    pa.csv.write_csv(people(), tmp_path / "in.csv")
    options: dict[str, Any] = {"new_key": tmp_path / "key.toml", "pass_categories": True, "report": False}
    release = sf.sanitize(
        tmp_path / "in.csv", folder=tmp_path / "out", engine="partitions", method="scale", batch_rows=60, **options
    )
    assert DatesCoarsened(("birth_date",)) in release.certificate.facts
    released = pa.csv.read_csv(tmp_path / "out" / "release" / "table.csv")
    assert {day.day for day in released.column("birth_date").to_pylist()} == {1}
    assert len({day.day for day in released.column("visit").to_pylist()}) > 5
    assert sf.verify(tmp_path / "out" / "release").holds


def test_moments_with_a_time_of_day_are_births_by_name_alone() -> None:
    days = dates(-9_000, 12_000)
    moments = [datetime.datetime.combine(day, datetime.time(row % 24, 7)) for row, day in enumerate(days)]
    schema = Schema.infer(pa.table({"day": days, "modified": moments, "born_at": moments}))
    assert [field.domain.step for field in schema] == [DateStep.MONTH, DateStep.MINUTE, DateStep.MONTH]
