"""Studies of tables that were moved by a key."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.assess.study import Study, study_of
from sfumato.methods.geometry.facts import Transformed
from sfumato.methods.protocol import Mechanism, OwnerDetails
from sfumato.tables.codec import Codec
from sfumato.tables.grid import repair_table
from sfumato.tables.schema import Kind, Schema


def moved(
    table: pa.Table, mechanism: Mechanism, seed: int, holdout: pa.Table | None = None, *, rounded: bool = False
) -> Study:
    """Move a table and study it beside its original; whole numbers are moved exactly unless they are to be rounded."""
    schema = Schema.infer(table)
    if not rounded:
        schema = Schema(
            tuple(
                dataclasses.replace(field, kind=Kind.CONTINUOUS) if field.kind is Kind.INTEGER else field
                for field in schema
            )
        )
    table = repair_table(table, schema)
    codec = Codec.fit(table, schema)
    made = mechanism.sanitize(codec.encode(table), rng=np.random.default_rng(seed))
    after = codec.decode(made.records.values, moved=made.records.moved)
    rng = np.random.default_rng(seed)
    return study_of(table, after, codec, facts=made.facts, workings=made.workings, holdout=holdout, rng=rng)


def claimed(original: pa.Table, released: pa.Table, operations: tuple[str, ...], seed: int = 5, **more: Any) -> Study:
    """Study two tables as if one had been moved to be the other, row by row."""
    codec = Codec.fit(original, Schema.infer(original))
    fact = Transformed(operations, tuple(original.column_names), original.num_columns + 1)
    origin = np.arange(released.num_rows, dtype=np.int64)
    rng = np.random.default_rng(seed)
    return study_of(original, released, codec, facts=(fact,), workings=OwnerDetails(origin=origin), rng=rng, **more)


def draw(seed: int, rows: int = 400) -> pa.Table:
    """Draw numbers from one law with associations between columns."""
    rng = np.random.default_rng(seed)
    mixed = rng.gamma(2.0, size=(rows, 4)) @ np.array([[1, 0.5, 0, 0], [0, 1, 0.5, 0], [0, 0, 1, 0.5], [0.2, 0, 0, 1]])
    return pa.table({name: mixed[:, place] * 10.0**place for place, name in enumerate("abcd")})


def skewed(seed: int, rows: int = 3000) -> pa.Table:
    """Draw five independent skewed columns."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "a": rng.exponential(size=rows),
            "b": 50 * rng.gamma(2.0, size=rows),
            "c": rng.lognormal(size=rows),
            "d": 9 * rng.beta(1, 5, size=rows),
            "e": 1000 * rng.chisquare(3, size=rows),
        }
    )


def clustered(seed: int, rows: int = 600) -> pa.Table:
    """Draw three clusters that are far apart."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0, 0], [20, 0, 10], [0, 20, -10]])
    values = centres[rng.integers(3, size=rows)] + rng.normal(size=(rows, 3))
    return pa.table({name: values[:, place] for place, name in enumerate("abc")})


@cache
def wine() -> pa.Table:
    from sklearn.datasets import load_wine

    bunch = load_wine()
    return pa.table(dict(zip(bunch.feature_names, bunch.data.T, strict=True)))
