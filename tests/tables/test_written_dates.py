"""Dates as other tools write them: read as dates, and written back as they were."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.tables.dates import DATE_FORMATS, microseconds_of_cells, write_moments
from sfumato.tables.field import DateStep
from sfumato.tables.infer import infer_field
from sfumato.tables.schema import Kind, Schema

_FIRST = datetime.datetime(2021, 1, 2, 3, 4, 5, 678901)


def _moments(rows: int = 60) -> list[datetime.datetime]:
    """Moments over two years, with days and hours of one digit and of two."""
    return [_FIRST + datetime.timedelta(days=13 * row, hours=5 * row, seconds=7 * row) for row in range(rows)]


def _written(moment: datetime.datetime, form: str) -> str:
    """Write a moment with Python's own means."""
    parts = {"%3f": f"{moment.microsecond // 1000:03d}", "%6f": f"{moment.microsecond:06d}"}
    for token in ("d", "m", "H", "I"):
        parts[f"%-{token}"] = str(int(moment.strftime(f"%{token}")))
    for token, text in parts.items():
        form = form.replace(token, text)
    return moment.strftime(form)


@pytest.mark.parametrize("form", DATE_FORMATS)
def test_every_way_of_writing_is_read_and_written_back(form: str) -> None:
    texts = pa.chunked_array([[_written(moment, form) for moment in _moments()]])
    field = infer_field("seen", texts)
    assert field.kind is Kind.DATE
    assert field.format == form
    nothing = np.zeros(len(texts), dtype=np.bool_)
    cells, strange = microseconds_of_cells(texts.combine_chunks(), nothing, field)
    assert not strange.any()
    assert write_moments(cells, nothing, field, pa.string()).to_pylist() == texts.to_pylist()


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.string()])
def test_days_that_are_whole_numbers_come_back_as_days_of_that_type(kind: pa.DataType) -> None:
    rng = np.random.default_rng(1)
    days = [_FIRST + datetime.timedelta(days=int(day)) for day in rng.integers(0, 700, 300)]
    numbers = pa.array([int(day.strftime("%Y%m%d")) for day in days]).cast(kind)
    table = pa.table({"seen": numbers, "pay": rng.normal(size=300)})
    release = sf.sanitize(table, k=5, method="condense", effort="fast", seed=1, holdout=0.2)
    assert release.table["seen"].type == kind
    for number in release.table["seen"].cast(pa.string()).to_pylist():
        datetime.datetime.strptime(number, "%Y%m%d")  # 20210431 would not be a day
    assert release.report is not None


@pytest.mark.parametrize(
    "numbers",
    [range(20_200_101, 20_200_401), [20_200_101] * 30 + [20_200_102] * 30, range(19_990_101, 19_990_120)],
    ids=["not all are days", "two values", "few values"],
)
def test_other_numbers_of_eight_digits_are_numbers(numbers: list[int]) -> None:
    assert infer_field("x", pa.chunked_array([list(numbers)])).kind is not Kind.DATE


def test_months_come_back_as_months_and_few_of_them_are_categories() -> None:
    rng = np.random.default_rng(4)
    months = [f"{2000 + month // 12}-{month % 12 + 1:02d}" for month in rng.integers(0, 90, 400)]
    table = pa.table({"month": months, "pay": rng.normal(size=400), "wave": [month[:6] + "1" for month in months]})
    schema = Schema.infer(table)
    assert (schema["month"].kind, schema["month"].domain.step) == (Kind.DATE, DateStep.MONTH)
    assert schema["wave"].kind is Kind.NOMINAL
    release = sf.sanitize(table, method="chain", k=5, seed=1, report=False)
    assert infer_field("month", release.table["month"]).format == "%Y-%m"


def test_texts_that_are_nearly_all_dates_or_numbers_say_what_to_do() -> None:
    days = [f"{day:02d}.03.2020" for day in range(1, 28)] + ["2020-04-01", "04/02/2020"] * 2
    pays = [f"{pay},5" for pay in range(40)] + ["k.A.", "none yet"] * 2
    towns = [f"town {place}" for place in range(40)]
    shares = [f"{share / 10} %" for share in range(50)]
    said = {
        name: infer_field(name, pa.chunked_array([3 * texts])).reason
        for name, texts in (("day", days), ("pay", pays), ("town", towns), ("share", shares))
    }
    assert said["day"].endswith(
        "mostly dates, but not of one form that is known here: write them as 2020-01-31 to keep them as dates"
    )
    assert said["pay"].endswith(
        "mostly numbers: leave out units, and name texts that mean missing with --missing, to keep them as numbers"
    )
    assert said["share"].endswith(said["pay"][-20:])
    assert said["town"] == "text with 40 categories"


def test_a_run_says_which_columns_a_few_texts_spoil() -> None:
    pays = [f"{pay}.5" for pay in range(40)] * 5
    table = pa.table({"age": list(range(20, 70)) * 4, "pay": [*pays[:-10], *["about 9"] * 10]})
    with pytest.warns(UserWarning, match="mostly dates or numbers, but not all, were taken as texts: 1, the first is"):
        sf.sanitize(table, method="condense", k=5, seed=1, effort="fast", report=False)


def test_moments_of_a_web_service_are_released_as_they_were_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    seen = [f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z" for moment in _moments(200)]
    pa.csv.write_csv(pa.table({"seen": seen, "pay": rng.normal(size=200).round(2)}), tmp_path / "people.csv")
    release = sf.sanitize(str(tmp_path / "people.csv"), k=5, method="condense", effort="fast", seed=1, report=False)
    again = Schema.infer(release.table)["seen"]
    assert (again.kind, again.format) == (Kind.DATE, "%Y-%m-%dT%H:%M:%S.%3fZ")
