"""Times of day, durations, nullable types: they come back as they went in."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.tables.schema import Kind, Schema

ROWS = 120


def drawn(low: int, high: int, seed: int = 1) -> list[int]:
    return [int(each) for each in np.random.default_rng(seed).integers(low, high, ROWS)]


def frame() -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "i": pd.array([None if row % 7 == 0 else row % 40 for row in range(ROWS)], dtype="Int64"),
            "b": pd.array([None if row % 9 == 0 else row % 2 == 0 for row in range(ROWS)], dtype="boolean"),
            "c": pd.Categorical(["a", "b", "c"] * (ROWS // 3)),
            "s": pd.array(["x", "y"] * (ROWS // 2), dtype="string"),
            "stay": pd.to_timedelta(drawn(1, 400), unit="D"),
            "hour": [datetime.time(minutes // 60, minutes % 60) for minutes in drawn(0, 1440)],
            "f": pd.array(np.random.default_rng(2).normal(size=ROWS), dtype="Float32"),
        }
    )
    frame.attrs["note"] = "canary"
    return frame


@pytest.mark.parametrize("source", ["frame", "file"])
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_pandas_types_read_back_as_they_were(tmp_path: Path, form: str, source: str) -> None:
    table: Any = frame()
    if source == "file":
        table.to_parquet(tmp_path / "in.parquet")
        table = tmp_path / "in.parquet"
    sf.sanitize(table, k=5, seed=1, report=False).save(tmp_path / "out", form=form)
    path = tmp_path / "out" / "release" / f"table.{form}"
    read = pd.read_parquet(path) if form == "parquet" else pd.read_feather(path)
    assert read.dtypes.to_dict() == frame().dtypes.to_dict()
    assert read["i"].isna().any()
    assert b"canary" not in path.read_bytes()
    assert {check.name for check in sf.verify(path.parent) if not check.holds} == {"made for release"}


def test_a_moved_column_has_no_type_of_before(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(frame()[["i", "f"]].dropna())
    release = sf.sanitize(table, method="rotate", report=False, seed=1)
    release.save(tmp_path / "out", form="parquet")
    assert str(pd.read_parquet(tmp_path / "out" / "release" / "table.parquet")["f"].dtype) == "float64"


@pytest.mark.parametrize(
    "kind", [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.duration("s"), pa.duration("ns")]
)
def test_spans_keep_type_step_and_range(kind: pa.DataType) -> None:
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
    cells = pa.array([900 * each * ticks for each in drawn(0, 96)], pa.int32() if kind.bit_width == 32 else pa.int64())
    table = pa.table({"x": cells.cast(kind), "y": drawn(0, 50)})
    assert Schema.infer(table)["x"].kind is Kind.INTEGER
    for method in ("condense", "noise"):
        options: dict[str, Any] = {"k": 5} if method == "condense" else {"size": 2.0}
        released = sf.sanitize(table, method=method, seed=1, report=False, **options).table.column("x")
        assert released.type == kind
        seconds = np.array(released.cast(cells.type).to_pylist()) // ticks
        assert not (seconds % 900).any()
        assert pa.types.is_duration(kind) or (seconds.min() >= 0 and seconds.max() < 86_400)


def test_two_durations_are_numbers() -> None:
    table = pa.table({"x": pa.array([60, 90] * 30, pa.duration("s")), "y": drawn(0, 50)[:60]})
    assert sf.sanitize(table, k=5, seed=1, report=False).table.schema.field("x").type == pa.duration("s")


def test_times_of_polars_come_back() -> None:
    table = pl.DataFrame({"t": [datetime.time(hour) for hour in drawn(0, 24)], "y": drawn(0, 50)})
    released = sf.sanitize(table, k=5, seed=1, report=False).table
    assert released.schema == table.schema


@pytest.mark.parametrize("form", ["%H:%M", "%H:%M:%S", "%-H:%M:%S", "%d.%m.%Y %H:%M", "%m/%d/%Y %H:%M"])
def test_times_in_texts_are_read_and_written_as_they_were(form: str) -> None:
    moments = [datetime.datetime(2020, 5, 13) + datetime.timedelta(minutes=each) for each in drawn(0, 1440)]
    table = pa.table({"at": [moment.strftime(form) for moment in moments], "y": drawn(0, 50)})
    assert Schema.infer(table)["at"].format == form
    released = sf.sanitize(table, k=5, seed=1, report=False).table.column("at").to_pylist()
    read = form.replace("%-", "%")
    assert all(datetime.datetime.strptime(cell, read).strftime(form) == cell for cell in released)


def test_few_times_are_shifts() -> None:
    table = pa.table({"begin": ["06:00", "14:00", "22:00"] * 40})
    assert Schema.infer(table)["begin"].kind is Kind.NOMINAL


def test_an_order_of_times_is_verified_in_csv(tmp_path: Path) -> None:
    start = drawn(0, 40_000)
    ends = [each + more for each, more in zip(start, drawn(0, 30_000, seed=3), strict=True)]
    table = pa.table(
        {"a": pa.array(start, pa.int64()).cast(pa.time64("us")), "b": pa.array(ends).cast(pa.time64("us"))}
    )
    assert Schema.infer(table).rules == ("a <= b",)
    sf.sanitize(table, k=5, seed=1, report=False).save(tmp_path / "out")
    checks = {check.name: check.holds for check in sf.verify(tmp_path / "out" / "release")}
    assert checks["rules"]
