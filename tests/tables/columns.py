"""Columns of every type that a user brings, generated; and frames compared cell by cell."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from sfumato.tables.schema import Role, Schema

Column = tuple[Any, list[Any]]
"""A type in the library's own words, and the cells of a column."""

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6).map(lambda text: "x" + text)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6).filter(
    str.strip
)  # blank is no name
DAYS = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
MOMENTS = st.datetimes(datetime.datetime(1901, 1, 1), datetime.datetime(2100, 1, 1))


def whole(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    """Integers of a width, kept within what doubles hold."""
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    low, high = max(low, -(2**53)), min(high, 2**53)
    return st.one_of(st.integers(low, high), st.integers(max(low, -9), 9))


def steps(step: str) -> st.SearchStrategy[float]:
    """Decimals on a step, such as 0.005."""
    return st.integers(-(10**6), 10**6).map(lambda place: float(place * Decimal(step)))


SINGLE = st.floats(-1e6, 1e6, allow_nan=False, width=32)
DOUBLE = st.one_of(
    st.floats(-1e15, 1e15, allow_nan=False), steps("0.005"), steps("0.1"), steps("100"), st.integers(-9, 9).map(float)
)
TEXTS: list[st.SearchStrategy[str]] = [
    WORDS,
    st.sampled_from(["yes", "no"]),
    st.sampled_from(["0", "1"]),
    st.integers(-(10**20), 10**20).map(str),
    st.integers(0, 99999).map(lambda code: f"{code:05}"),
    st.integers(-9999, 9999).map(lambda cents: f"{Decimal(cents) / 100:.2f}"),
    st.integers(1, 10**6).map(lambda place: str(Decimal(place).scaleb(-4).normalize() + 0)),
]
DATE_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%d.%m.%Y",
    "%Y/%m/%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
)


def text_cells(draw: st.DrawFn) -> st.SearchStrategy[str]:
    """Choose one way of writing texts for a whole column."""
    dates = [st.builds(datetime.datetime.strftime, MOMENTS, st.just(form)) for form in DATE_FORMATS]
    chosen: st.SearchStrategy[str] = draw(st.sampled_from([*TEXTS, *dates]))
    return chosen


def filled(draw: st.DrawFn, cells: st.SearchStrategy[Any], rows: int, gap: Any = ...) -> list[Any]:
    """Draw cells of a column, often repeated, some of them missing where a way of writing so is given; never all."""
    pool = draw(st.lists(cells, min_size=1, max_size=rows))
    chosen = draw(st.lists(st.sampled_from(pool), min_size=rows, max_size=rows))
    gaps = draw(st.lists(st.booleans(), min_size=rows, max_size=rows)) if gap is not ... else [False] * rows
    if all(gaps):
        gaps[0] = False
    return [gap if missing else cell for cell, missing in zip(chosen, gaps, strict=True)]


def confidential(frame: Any) -> Schema:
    """Infer a schema and keep every column in it."""
    schema = Schema.infer(frame).by_days()  # days are taken away only where they are dates of birth
    return schema.with_role(Role.CONFIDENTIAL, *(field.name for field in schema if field.role is Role.IDENTIFIER))


def assert_same_cells(expected: list[Any], actual: list[Any], *, relative: float = 0.0) -> None:
    """Compare cells: the same missing ones in the same form, the same types, equal values.

    ``relative`` allows numbers to differ by this much of the largest of them.
    """
    assert len(expected) == len(actual)
    numbers = [abs(cell) for cell in expected if isinstance(cell, float) and math.isfinite(cell)]
    slack = relative * max(numbers, default=0.0)
    for one, other in zip(expected, actual, strict=True):
        assert type(one) is type(other)
        if isinstance(one, float):
            assert math.isnan(one) == math.isnan(other)
            assert math.isnan(one) or abs(one - other) <= slack
        elif one is not other:
            assert one == other


def slack_of(schema: Schema) -> Callable[[str], float]:
    """Tell how far the numbers of a column may lie from the original: nowhere, where they have a step."""
    return lambda name: 1e-12 if schema[name].kind == "continuous" and schema[name].domain.step is None else 0.0


def roundtrip(frame: Any, schema: Schema) -> Any:
    """Encode, decode and restore a frame."""
    from sfumato.tables.codec import Codec
    from sfumato.tables.frames import restore, to_arrow
    from sfumato.tables.grid import repair_table

    table, origin = to_arrow(frame)
    table = repair_table(table, schema)
    codec = Codec.fit(table, schema)
    decoded: pa.Table = codec.decode(codec.encode(table).values)
    return restore(decoded, origin)
