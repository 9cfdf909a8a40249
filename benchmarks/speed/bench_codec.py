"""Speed of the codec on a mixed table: fit, encode, decode."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pytest_benchmark.fixture import BenchmarkFixture

from sfumato.tables.codec import Codec
from sfumato.tables.schema import Schema

ROWS = 20_000


def mixed_table() -> pa.Table:
    """Give a table of numbers, integers, categories and booleans, one column with missing cells."""
    rng = np.random.default_rng(7)
    income = np.round(rng.lognormal(10.0, 0.5, ROWS), 2)
    absent = rng.random(ROWS) < 0.05
    return pa.table(
        {
            "weight": rng.normal(70.0, 12.0, ROWS),
            "income": pa.array(income, mask=absent),
            "age": rng.integers(18, 90, ROWS),
            "region": rng.choice(["north", "east", "south", "west", "abroad"], ROWS),
            "smoker": rng.random(ROWS) < 0.3,
        }
    )


def bench_codec_fit(benchmark: BenchmarkFixture) -> None:
    table = mixed_table()
    benchmark(Codec.fit, table, Schema.infer(table))


def bench_codec_encode(benchmark: BenchmarkFixture) -> None:
    table = mixed_table()
    benchmark(Codec.fit(table, Schema.infer(table)).encode, table)


def bench_codec_decode(benchmark: BenchmarkFixture) -> None:
    table = mixed_table()
    codec = Codec.fit(table, Schema.infer(table))
    benchmark(codec.decode, codec.encode(table).values)
