"""What is encoded, decoded and restored is the frame that it was."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.tables.frames import frame_of, restore, to_arrow
from sfumato.tables.grid import repair_table
from tests.examples import examples
from tests.tables.columns import (
    DAYS,
    DOUBLE,
    MOMENTS,
    NAMES,
    SINGLE,
    WORDS,
    Column,
    assert_same_cells,
    confidential,
    filled,
    roundtrip,
    slack_of,
    text_cells,
    whole,
)

MODERATE = examples(120, few=20)
ROWS = st.one_of(st.just(1), st.integers(2, 6), st.integers(20, 40))
ZONES = st.sampled_from([None, "UTC", "Europe/Berlin"])


def _texts_with_marks(draw: st.DrawFn, rows: int, null: Any) -> list[Any]:
    return filled(draw, text_cells(draw), rows, draw(st.sampled_from([null, "?", "NA", "", " ?"])))


@st.composite
def pandas_columns(draw: st.DrawFn, rows: int) -> Column:
    choice = draw(st.integers(0, 12))
    if choice == 0:
        bits, signed = draw(st.sampled_from([8, 16, 32, 64])), draw(st.booleans())
        return f"{'' if signed else 'u'}int{bits}", filled(draw, whole(bits, signed=signed), rows)
    if choice == 1:
        bits, signed = draw(st.sampled_from([8, 16, 32, 64])), draw(st.booleans())
        return f"{'' if signed else 'U'}Int{bits}", filled(draw, whole(bits, signed=signed), rows, pd.NA)
    if choice == 2:
        return "float32", filled(draw, SINGLE, rows, np.nan)
    if choice == 3:
        return "float64", filled(draw, DOUBLE, rows, np.nan)
    if choice == 4:
        return "Float64", filled(draw, DOUBLE, rows, pd.NA)
    if choice == 5:
        return "bool", filled(draw, st.booleans(), rows)
    if choice == 6:
        return "boolean", filled(draw, st.booleans(), rows, pd.NA)
    if choice == 7:
        return draw(st.sampled_from(["str", "string"])), _texts_with_marks(draw, rows, None)
    if choice == 8:
        return "object", _texts_with_marks(draw, rows, draw(st.sampled_from([None, np.nan, pd.NA])))
    if choice == 9:
        words = draw(st.lists(draw(st.sampled_from([WORDS, whole(16)])), min_size=1, max_size=5, unique=True))
        ranked = draw(st.booleans())
        return pd.CategoricalDtype(words, ordered=ranked), filled(draw, st.sampled_from(words), rows, None)
    if choice == 10:
        unit, zone = draw(st.sampled_from(["s", "ms", "us", "ns"])), draw(ZONES)
        kind = f"datetime64[{unit}]" if zone is None else f"datetime64[{unit}, {zone}]"
        moments = MOMENTS.map(lambda moment: moment.replace(microsecond=0, tzinfo=datetime.UTC if zone else None))
        return kind, filled(draw, moments, rows, pd.NaT)
    if choice == 11:
        cells = draw(st.sampled_from([DAYS, st.booleans(), whole(64), steps_as_decimals()]))
        return "object", filled(draw, cells, rows, None)
    return pd.ArrowDtype(pa.date32()), filled(draw, DAYS, rows, None)


def steps_as_decimals() -> st.SearchStrategy[Decimal]:
    return st.integers(-(10**6), 10**6).map(lambda cents: Decimal(cents).scaleb(-2))


@st.composite
def pandas_frames(draw: st.DrawFn) -> pd.DataFrame:
    rows = draw(ROWS)
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    columns = {name: draw(pandas_columns(rows)) for name in names}
    index = draw(st.sampled_from([None, [f"person {row}" for row in range(rows)]]))
    return pd.DataFrame({name: pd.Series(cells, dtype=kind) for name, (kind, cells) in columns.items()}).set_axis(
        pd.RangeIndex(rows) if index is None else pd.Index(index)
    )


@MODERATE
@given(pandas_frames())
def test_a_pandas_frame_comes_back_as_it_was(frame: pd.DataFrame) -> None:
    schema = confidential(frame)
    back = roundtrip(frame, schema)
    assert type(back) is pd.DataFrame
    assert back.columns.tolist() == frame.columns.tolist()
    assert back.dtypes.tolist() == frame.dtypes.tolist()
    assert back.index.equals(pd.RangeIndex(len(frame)))
    frame = restore(repair_table(to_arrow(frame)[0], schema), to_arrow(frame)[1])
    for name in frame.columns:
        assert_same_cells(frame[name].tolist(), back[name].tolist(), relative=slack_of(schema)(name))


@st.composite
def polars_columns(draw: st.DrawFn, rows: int) -> Column:
    choice = draw(st.integers(0, 8))
    if choice == 0:
        kinds = [
            (8, pl.Int8, pl.UInt8),
            (16, pl.Int16, pl.UInt16),
            (32, pl.Int32, pl.UInt32),
            (64, pl.Int64, pl.UInt64),
        ]
        bits, *both = draw(st.sampled_from(kinds))
        signed = draw(st.booleans())
        return both[not signed], filled(draw, whole(bits, signed=signed), rows, None)
    if choice == 1:
        return pl.Float32, filled(draw, SINGLE, rows, draw(st.sampled_from([None, float("nan")])))
    if choice == 2:
        return pl.Float64, filled(draw, DOUBLE, rows, draw(st.sampled_from([None, float("nan")])))
    if choice == 3:
        return pl.Boolean, filled(draw, st.booleans(), rows, None)
    if choice == 4:
        return pl.String, _texts_with_marks(draw, rows, None)
    if choice == 5:
        words = draw(st.lists(WORDS, min_size=1, max_size=5, unique=True))
        return draw(st.sampled_from([pl.Categorical, pl.Enum(words)])), filled(draw, st.sampled_from(words), rows, None)
    if choice == 6:
        return pl.Date, filled(draw, DAYS, rows, None)
    if choice == 7:
        zoned = [pl.Datetime("ms"), pl.Datetime("us", "UTC"), pl.Datetime("ns", "Europe/Berlin")]
        return draw(st.sampled_from(zoned)), filled(draw, MOMENTS.map(_to_the_second), rows, None)
    return pl.Decimal(12, 2), filled(draw, steps_as_decimals(), rows, None)


@st.composite
def polars_frames(draw: st.DrawFn) -> pl.DataFrame:
    rows = draw(ROWS)
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    columns = {name: draw(polars_columns(rows)) for name in names}
    return pl.DataFrame([pl.Series(name, cells, dtype=kind) for name, (kind, cells) in columns.items()])


@MODERATE
@given(polars_frames())
def test_a_polars_frame_comes_back_as_it_was(frame: pl.DataFrame) -> None:
    schema = confidential(frame)
    back = roundtrip(frame, schema)
    assert type(back) is pl.DataFrame
    assert back.schema == frame.schema
    frame = frame_of(repair_table(to_arrow(frame)[0], schema), "polars")
    for name in frame.columns:
        assert_same_cells(frame[name].to_list(), back[name].to_list(), relative=slack_of(schema)(name))


@st.composite
def arrow_columns(draw: st.DrawFn, rows: int) -> Column:
    choice = draw(st.integers(0, 8))
    if choice == 0:
        bits, signed = draw(st.sampled_from([8, 16, 32, 64])), draw(st.booleans())
        kind = pa.type_for_alias(f"{'' if signed else 'u'}int{bits}")
        return kind, filled(draw, whole(bits, signed=signed), rows, None)
    if choice == 1:
        kind, cells = draw(st.sampled_from([(pa.float32(), SINGLE), (pa.float64(), DOUBLE)]))
        return kind, filled(draw, cells, rows, draw(st.sampled_from([None, float("nan")])))
    if choice == 2:
        return pa.bool_(), filled(draw, st.booleans(), rows, None)
    if choice == 3:
        kind = draw(st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]))
        return kind, _texts_with_marks(draw, rows, None)
    if choice == 4:
        values = draw(st.sampled_from([(pa.string(), WORDS), (pa.large_string(), WORDS), (pa.int16(), whole(16))]))
        words = draw(st.lists(values[1], min_size=1, max_size=5, unique=True))
        index = draw(st.sampled_from([pa.int8(), pa.int32(), pa.uint16()]))
        kind = pa.dictionary(index, values[0], ordered=draw(st.booleans()))
        return kind, filled(draw, st.sampled_from(words), rows, None)
    if choice == 5:
        return draw(st.sampled_from([pa.date32(), pa.date64()])), filled(draw, DAYS, rows, None)
    if choice == 6:
        unit, zone = draw(st.sampled_from(["s", "ms", "us", "ns"])), draw(ZONES)
        finest = st.datetimes(datetime.datetime(1980, 1, 1), datetime.datetime(2040, 1, 1))
        moments = finest if unit in ("us", "ns") and draw(st.booleans()) else MOMENTS.map(_to_the_second)
        return pa.timestamp(unit, zone), filled(draw, moments, rows, None)
    if choice == 7:
        return pa.decimal128(12, 2), filled(draw, steps_as_decimals(), rows, None)
    return pa.float64(), filled(draw, st.integers(-(2**53), 2**53).map(float), rows, None)


def _to_the_second(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(microsecond=0)


@st.composite
def arrow_tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(ROWS)
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    columns = {name: draw(arrow_columns(rows)) for name in names}
    arrays = [
        pa.array(cells, kind.value_type).dictionary_encode().cast(kind)
        if pa.types.is_dictionary(kind) and not kind.ordered
        else _ordered(cells, kind)
        if pa.types.is_dictionary(kind)
        else pa.array(cells, kind)
        for kind, cells in columns.values()
    ]
    table = pa.table(arrays, names=names)
    cut = draw(st.integers(0, rows))
    return pa.concat_tables([table.slice(0, cut), table.slice(cut)]) if draw(st.booleans()) else table


def _ordered(cells: list[Any], kind: pa.DataType) -> pa.Array:
    plainly = pa.array(cells, kind.value_type).dictionary_encode()
    return pa.DictionaryArray.from_arrays(plainly.indices.cast(kind.index_type), plainly.dictionary, ordered=True)


@MODERATE
@given(arrow_tables())
def test_an_arrow_table_comes_back_as_it_was(table: pa.Table) -> None:
    schema = confidential(table)
    back = roundtrip(table, schema)
    assert type(back) is pa.Table
    assert back.schema.equals(table.schema)
    for name in table.column_names:
        assert_same_cells(
            table.column(name).to_pylist(), back.column(name).to_pylist(), relative=slack_of(schema)(name)
        )


@pytest.mark.parametrize("form", ["%-d/%-m/%Y", "%-m/%-d/%Y", "%-d.%-m.%Y"])
def test_dates_written_without_leading_zeros_come_back_so(form: str) -> None:
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=3 * step) for step in range(60)]
    texts = [
        form.replace("%-d", str(day.day)).replace("%-m", str(day.month)).replace("%Y", str(day.year)) for day in days
    ]
    frame = pa.table({"seen": texts})
    assert confidential(frame)["seen"].format == form
    assert roundtrip(frame, confidential(frame)).equals(frame)


@pytest.mark.parametrize(
    "cells",
    [
        [1, 2, 3, 170_000_000_000_000, 170_000_000_000_001],
        [0, 1, -1, 2**50, -(2**50)],
        [0.0, 0.0, 0.0, 3.1529925267435854e-302],
        [0.0, 5e-324, 1e-310],
    ],
)
def test_small_numbers_beside_large_ones_and_tiny_ones_come_back(cells: list[Any]) -> None:
    frame = pd.DataFrame({"a": cells})
    assert roundtrip(frame, confidential(frame))["a"].tolist() == cells
