"""Streams to test with: a table of mixed kinds, a state made of its first rows, and states compared bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.stream.entries import cut_batches
from sfumato.stream.session import StreamSession
from sfumato.tables.field import Domain, Field, Kind, Role
from sfumato.tables.schema import Schema

ROWS = 40
"""Rows per batch."""

SCHEMA = Schema(
    (
        Field("name", Kind.NOMINAL, Role.IDENTIFIER),
        Field("pay", Kind.CONTINUOUS, domain=Domain(declared=True, low=0.0)),
        Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0, high=120)),
        Field("sex", Kind.NOMINAL, domain=Domain(declared=True, categories=("f", "m"))),
        Field("note", Kind.NOMINAL, domain=Domain(declared=True, categories=("a", "b")), missing=("?",)),
        Field("level", Kind.INTEGER, Role.LEVEL),
    )
)


def people(rows: int, seed: int = 3, *, high: int = 60, share: float = 0.03) -> pa.Table:
    """Make a table; a share of its records asks for a level that no group of the stream soon has."""
    rng = np.random.default_rng(seed)
    centre = rng.integers(0, 4, rows)
    levels = np.where(rng.random(rows) < share, high, rng.integers(3, 7, rows))
    return pa.table(
        {
            "name": [f"person {row}" for row in range(rows)],
            "pay": np.exp(rng.normal(size=rows) / 4 + centre),
            "age": rng.integers(18, 90, rows),
            "sex": np.where(rng.random(rows) < 0.5, "f", "m"),
            "note": np.where(rng.random(rows) < 0.1, "?", np.where(centre % 2, "a", "b")),
            "level": levels,
        }
    )


def begin(state: Path | str, table: pa.Table, first: int = 100, **options: Any) -> None:
    """Make a state of the first rows, by the paper's grouping and split: they leave records that wait."""
    usual = {"schema": SCHEMA, "k": 3, "batch_rows": ROWS, "seed": 1, "grouping": "paper", "split": "paper"}
    told: dict[str, Any] = usual | options
    sf.stream(state, table.slice(0, first), **told)


def take(state: Path | str, table: pa.Table, **options: Any) -> Any:
    """Ingest a table in a session of its own."""
    with StreamSession.open(state, **options) as session:
        return session.ingest(cut_batches([table], ROWS))


def look(state: Path | str) -> Any:
    with StreamSession.open(state, write=False) as session:
        return session.status()


def groups_of(state: Path | str, **options: Any) -> dict[str, bytes]:
    """Every array of the groups as bytes."""
    with StreamSession.open(state, write=False, **options) as session:
        rows = session.maintainer.rows()
        return {name: np.ascontiguousarray(array).tobytes() for name, array in vars(rows).items()}
