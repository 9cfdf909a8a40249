"""Small tables for the modifications: every kind of column, missing cells, and persons with several rows."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import sfumato as sf
from sfumato.core.records import Records
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Schema


def mixed(rows: int = 120, seed: int = 3) -> pa.Table:
    """Numbers, a date, truth values and categories, some missing, and a class that goes with the age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 70, rows)
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(int(each)) for each in rng.integers(0, 700, rows)]
    return pa.table(
        {
            "age": pa.array([None if place % 13 == 4 else int(years) for place, years in enumerate(age)]),
            "pay": (age * 30 + rng.gamma(2.0, 300.0, rows)).round(1),
            "seen": pa.array(days),
            "smokes": rng.random(rows) < 0.3,
            "town": pa.array([None if place % 17 == 2 else f"t{place % 4}" for place in range(rows)]),
            "ill": np.where(age + rng.normal(0, 9, rows) > 45, "yes", "no"),
        }
    )


def records_of(
    table: pa.Table, *, target: str | None = None, gaps: bool = False, persons: NDArray[np.int64] | None = None
) -> Records:
    """Records as a mechanism sees them."""
    codec = Codec.fit(table, Schema.infer(table, target=target), gaps=gaps)
    return dataclasses.replace(codec.encode(table), persons=persons)


def origin_of(release: sf.Release) -> NDArray[np.int64]:
    """The original row that each released row descends from."""
    assert release.workings.origin is not None
    return release.workings.origin


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as tuples."""
    return list(zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True))
