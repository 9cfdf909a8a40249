"""Durations in CSV that go beyond a day: counted in seconds, and written back as they were."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import SchemaError
from sfumato.tables.codec import Codec
from sfumato.tables.dates import duration_format, seconds_of_texts, write_seconds
from sfumato.tables.field import DURATION_FORMATS, Field
from sfumato.tables.schema import Kind, Schema
from tests.examples import examples

TEN_YEARS = 10 * 366 * 86_400


def written(seconds: int, form: str) -> str:
    """As Python and pandas write them, and by hand for hours that go on."""
    if form == "d days, h:mm:ss":
        return str(datetime.timedelta(seconds=seconds))
    if form == "d days hh:mm:ss":
        return str(pd.Timedelta(seconds=seconds))
    hours, rest = divmod(abs(seconds), 3_600)
    text = f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
    return ("-" if seconds < 0 else "") + (text.zfill(8) if form == "hh:mm:ss" else text)


@given(
    seconds=st.lists(st.integers(-TEN_YEARS, TEN_YEARS), min_size=1, max_size=20),
    form=st.sampled_from(DURATION_FORMATS),
)
@examples(60)
def test_durations_are_read_and_written_as_python_and_pandas_write_them(seconds: list[int], form: str) -> None:
    texts = pa.array([written(each, form) for each in seconds])
    numbers, found = seconds_of_texts(texts, form)
    assert found.all()
    assert numbers.tolist() == seconds
    assert write_seconds(pa.array(numbers), form).to_pylist() == texts.to_pylist()
    assert duration_format(texts) is not None


@pytest.mark.parametrize(
    "text", ["27:60:00", "27:15", "1 day 3:15:00", "1 day, 27:15:00", "027:15:00", "x27:15:00", "", "९७:15:00"]
)
def test_what_is_no_duration_is_none(text: str) -> None:
    assert duration_format(pa.array([text])) is None
    assert not any(seconds_of_texts(pa.array([text, None]), form)[1].any() for form in DURATION_FORMATS)


def stays(form: str, rows: int = 60, missing: bool = False) -> pa.Table:
    rng = np.random.default_rng(1)
    texts = [written(int(each) * 900, form) for each in rng.integers(0, 400, rows)]
    if missing:
        texts[::7] = ["n/a"] * len(texts[::7])
    return pa.table({"stay": texts, "age": rng.integers(20, 80, rows)})


@pytest.mark.parametrize("form", DURATION_FORMATS)
@pytest.mark.parametrize("missing", [False, True])
def test_a_column_of_durations_is_of_whole_seconds_and_comes_back(form: str, missing: bool) -> None:
    table = stays(form, missing=missing)
    schema = Schema.infer(table)
    assert (schema["stay"].kind, schema["stay"].format, schema["stay"].domain.step) == (Kind.INTEGER, form, 900)
    assert Schema.from_toml(schema.to_toml())["stay"].format == form
    codec = Codec.fit(table, schema)
    assert codec.decode(codec.encode(table).values).equals(table)
    native = codec.decode(codec.encode(table).values, native=True).column("stay")
    assert native.type == pa.duration("s")
    assert native.null_count == (9 if missing else 0)


def test_times_within_a_day_stay_times_of_day_and_other_texts_categories() -> None:
    clock = [f"{hour:02d}:{minute:02d}:00" for hour in range(24) for minute in (0, 15)]
    assert Schema.infer(pa.table({"a": clock}))["a"].kind is Kind.DATE
    mixed = ["27:15:00", "a while", "3:00:00"] * 20
    assert Schema.infer(pa.table({"a": mixed}))["a"].kind is Kind.NOMINAL


def test_the_format_of_a_duration_is_for_whole_numbers() -> None:
    assert Field("a", Kind.INTEGER, format="h:mm:ss").format == "h:mm:ss"
    for kind, form in ((Kind.CONTINUOUS, "h:mm:ss"), (Kind.INTEGER, "mm:ss")):
        with pytest.raises(SchemaError, match=r"'a' is not a number of decimals; .*h:mm:ss"):
            Field("a", kind, format=form)


def test_cells_that_are_no_durations_are_counted_and_not_quoted() -> None:
    table = stays("h:mm:ss")
    schema = Schema.infer(table)
    broken = table.set_column(0, "stay", pa.array(["secret", *table.column("stay").to_pylist()[1:]]))
    with pytest.raises(SchemaError, match="'stay' is declared integer but 1 cells are not numbers") as caught:
        Codec.fit(broken, schema)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("method", ["condense", "noise"])
def test_a_release_of_a_file_has_durations_as_the_file_had(tmp_path: Path, method: str) -> None:
    table = stays("d days, h:mm:ss", 80)
    pyarrow.csv.write_csv(table, tmp_path / "in.csv")
    sf.sanitize(tmp_path / "in.csv", method=method, seed=1, report=False).save(tmp_path / "out")
    read = pd.read_csv(tmp_path / "out" / "release" / "table.csv")
    assert duration_format(pa.array(read["stay"])) is not None
    assert {check.name for check in sf.verify(tmp_path / "out" / "release") if not check.holds} == {"made for release"}


def test_a_file_in_batches_has_moved_durations_as_it_had_them(tmp_path: Path) -> None:
    table = stays("hh:mm:ss", 80)
    pyarrow.csv.write_csv(table, tmp_path / "in.csv")
    key, out = tmp_path / "key.toml", tmp_path / "out"
    sf.sanitize(
        tmp_path / "in.csv",
        sf.Translation(),
        folder=out,
        engine="partitions",
        new_key=key,
        seed=1,
        report=False,
        batch_rows=30,
    )
    read = pa.array(pd.read_csv(tmp_path / "out" / "release" / "table.csv")["stay"])
    (moved, found), (before, _) = (
        seconds_of_texts(texts, "hh:mm:ss") for texts in (read, table.column(0).combine_chunks())
    )
    assert found.all()
    assert np.ptp(np.sort(moved) - np.sort(before)) == 0
    assert moved.mean() != before.mean()
