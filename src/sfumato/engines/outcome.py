"""What every engine ends in: rows that may leave, how they were made, and what they may be compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from sfumato.facts import Fact
from sfumato.mechanism import Workings
from sfumato.recipe import Recipe
from sfumato.records import Records
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Schema

__all__ = ["Comparison", "Outcome"]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Rows that stand beside the released ones where it is measured; they are raw, and stay with the owner.

    Parameters
    ----------
    original, released : pyarrow.Table
        Rows that were sanitized, or some of them, and what they became.
    codec : Codec
        Fitted on the original.
    records : Records
        The original as the mechanism saw it.
    outside : pyarrow.Table, optional
        Rows of people whom the release was not made from.
    notes : tuple of str
        What a reader must know of these rows.
    """

    original: pa.Table
    released: pa.Table
    codec: Codec
    records: Records
    outside: pa.Table | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Comparison(owner only)"


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """What came of a run, whatever engine carried it; nothing is certified, measured or written yet.

    Parameters
    ----------
    recipe : Recipe
        What the run was told.
    table : pyarrow.Table or Path
        The released rows, or the file that holds them.
    rows_in, rows_out : int
    schema : Schema
        Of the released table; only what it declares leaves.
    facts : tuple of Fact
        What was done.
    workings : Workings, optional
        How, for the owner alone.
    comparison : Comparison, optional
        What it may be compared with.
    apart : str
        Why there is nothing to compare it with, where there is not.
    texts : mapping of str to str
        Further files that stay with the owner, by name.
    created : str, optional
        When, where several owners had to agree on it.
    seconds : float
        How long the mechanism took.
    """

    recipe: Recipe
    table: pa.Table | Path
    rows_in: int
    rows_out: int
    schema: Schema
    facts: tuple[Fact, ...]
    workings: Workings | None = None
    comparison: Comparison | None = None
    apart: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    created: str | None = None
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"Outcome({self.recipe.method}, {self.rows_out} rows)"
