"""Persons of a table: who each row is about, and which column seems to say it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import SchemaError
from sfumato.tables.cells import absent_cells, plain
from sfumato.tables.schema import Kind, Role, Schema

__all__ = ["Proposal", "persons_of_table", "propose_person"]

_LEAST = 20  # values that both a key of persons and what never changes with it have more of
_CHANCE = 1e-6  # that as many repeated rows agree although nobody is in them twice
_FIRST = 2_000  # rows that tell most columns apart


@dataclass(frozen=True)
class Proposal:
    """A column that seems to say who each row is about."""

    column: str
    persons: int
    rows: int
    constant: tuple[str, ...]  # columns that never change within a value of it

    def __str__(self) -> str:
        never = "never changes" if len(self.constant) == 1 else f"and {len(self.constant) - 1} more never change"
        return f"{self.persons} values in {self.rows} rows, within which {self.constant[0]!r} {never}"


def propose_person(table: pa.Table, schema: Schema) -> Proposal | None:
    """The column that seems to say who each row is about; None where every row seems to be a person of its own.

    It holds texts or codes, never measured numbers, more than 20 of them and some in several rows, and within each
    some other column of more than 20 values never changes, which chance would hardly do. Of several the one with most
    such columns.

    Examples
    --------
    >>> visits = pa.table({"who": [f"p{i % 40}" for i in range(120)], "born": [1950 + i % 40 for i in range(120)]})
    >>> print(propose_person(visits, Schema.infer(visits)))
    40 values in 120 rows, within which 'born' never changes
    """
    coded = {
        field.name: codes
        for field in schema
        if len(codes := _codes(table.column(field.name), field.missing)) and codes.max() >= _LEAST
    }
    found = [
        Proposal(field.name, int(codes.max()) + 1, table.num_rows, constant)
        for field in schema
        if field.name in coded
        and (field.kind is Kind.NOMINAL or (field.kind is Kind.INTEGER and field.role is Role.IDENTIFIER))
        and (codes := coded[field.name]).max() + 1 < (codes >= 0).sum()
        and (constant := tuple(name for name, other in coded.items() if name != field.name and _fixes(codes, other)))
    ]
    return max(found, key=lambda each: len(each.constant), default=None)


def _codes(column: pa.ChunkedArray, missing: tuple[str, ...]) -> NDArray[np.int64]:
    """Values of a column as numbers from 0; -1 where a cell is missing."""
    array = plain(column)
    codes = pc.dictionary_encode(array, null_encoding="mask").indices.fill_null(-1)
    numbers = np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64).copy()
    numbers[absent_cells(array, missing)] = -1
    return np.unique(numbers, return_inverse=True)[1] - int((numbers < 0).any())


def _fixes(keys: NDArray[np.int64], values: NDArray[np.int64]) -> bool:
    """Whether all rows of a key have one value, missing being one too, and that is no chance."""
    there = keys >= 0
    for part in (slice(0, _FIRST), slice(None)):
        some, held = keys[part][there[part]], values[part][there[part]]
        pairs = np.unique(some * (int(values.max()) + 2) + held + 1)
        if len(pairs) > len(np.unique(some)):
            return False
    shares = np.bincount(held + 1) / len(held)
    alike = float(shares @ shares)
    return (len(some) - len(pairs)) * math.log(alike) < math.log(_CHANCE)


def persons_of_table(table: pa.Table, schema: Schema) -> NDArray[np.int64] | None:
    """Person of each row as a number from 0; None where the schema has no person column, or the table lacks it.

    Raises
    ------
    SchemaError
        Where a row does not say whom it is about.
    """
    field = next((field for field in schema if field.role is Role.PERSON), None)
    if field is None or field.name not in table.column_names:
        return None
    array = plain(table.column(field.name))
    absent = int(absent_cells(array, field.missing).sum())
    if absent:
        raise SchemaError(
            f"column {field.name!r} says who a row is about, and {absent} of its cells are missing; fill them in or "
            "leave those rows out"
        )
    return np.asarray(pc.dictionary_encode(array).indices.to_numpy(zero_copy_only=False), dtype=np.int64)
