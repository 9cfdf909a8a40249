"""A small table of mixed kinds with a declared schema, and what was released of it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.core.records import Records
from sfumato.methods.protocol import MethodResult
from sfumato.tables.codec import Codec

ROWS = 4000
TOWNS = ("north", "south", "west")
STEPS = ("low", "middle", "high")


def declared_schema() -> sf.Schema:
    return sf.Schema(
        (
            sf.Field("age", sf.Kind.INTEGER, domain=sf.Domain(declared=True, low=0, high=120)),
            sf.Field("pay", sf.Kind.CONTINUOUS, domain=sf.Domain(declared=True, low=0.0, high=5000.0, step=0.5)),
            sf.Field("town", sf.Kind.NOMINAL, domain=sf.Domain(declared=True, categories=TOWNS)),
            sf.Field("rank", sf.Kind.ORDINAL, domain=sf.Domain(declared=True, categories=STEPS)),
        )
    )


@cache
def draw_table(seed: int = 1, rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.integers(18, 90, rows),
            "pay": np.rint(rng.normal(2500, 400, rows).clip(0, 5000) * 2) / 2,
            "town": rng.choice(TOWNS, rows, p=[0.6, 0.3, 0.1]),
            "rank": rng.choice(STEPS, rows, p=[0.2, 0.5, 0.3]),
        }
    )


def with_gaps(table: pa.Table, name: str, every: int = 7) -> pa.Table:
    """Take every so manieth cell of a column away."""
    cells = table.column(name).to_pylist()
    gone = [None if row % every == 0 else cell for row, cell in enumerate(cells)]
    return table.set_column(table.column_names.index(name), name, pa.array(gone, table.schema.field(name).type))


def codec_of(table: pa.Table, schema: sf.Schema | None = None) -> Codec:
    return Codec.fit(table, declared_schema() if schema is None else schema)


def records_of(table: pa.Table, schema: sf.Schema | None = None) -> Records:
    return codec_of(table, schema).encode(table)


def table_of(made: MethodResult, codec: Codec) -> pa.Table:
    """Decode what was released, and put the rows back into the order of the original."""
    assert made.workings.origin is not None
    released = codec.decode(made.records.values, moved=made.records.moved, grids=made.records.grids)
    return released.take(pa.array(np.argsort(made.workings.origin)))
