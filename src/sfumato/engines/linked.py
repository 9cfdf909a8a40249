"""Rows of a person that stay together in a release: who may ask for it, and the column that says so."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.facts import PersonsLinked
from sfumato.core.records import Records
from sfumato.mechanisms.protocol import Mechanism
from sfumato.tables.field import Field, Kind, Role
from sfumato.tables.schema import Schema

__all__ = [
    "RELEASED_PERSON",
    "check_links",
    "check_parts",
    "released_persons",
    "with_persons",
    "with_persons_field",
]

RELEASED_PERSON = "released_person"
"""The column that says which released rows belong to one released person."""


def check_links(mechanism: Mechanism, schema: Schema, rows: int | None) -> None:
    """Refuse to keep rows together where nothing says whose they are, or a method draws each row by itself."""
    if all(field.role is not Role.PERSON for field in schema):
        raise OptionError("--keep-persons needs to know who each row is about; name that column with --person")
    if not mechanism.traits.links:
        raise OptionError(
            f"{mechanism.method!r} makes or moves each row by itself, so that rows of one person could not be kept "
            "together without being wrong; leave out --keep-persons, or take --method condense"
        )
    if rows is not None:
        raise OptionError("--keep-persons draws as many persons as there are; leave out --rows")
    if RELEASED_PERSON in (field.name for field in schema if field.role is not Role.PERSON):
        raise OptionError(f"--keep-persons adds a column {RELEASED_PERSON!r}, and there is one; name yours otherwise")


def check_parts(strata: str | None, codes: NDArray[np.int64], persons: NDArray[np.int64]) -> None:
    """Refuse parts that a person's rows would have to cross."""
    pairs = np.unique(np.column_stack([persons, codes]), axis=0)
    crossing = len(pairs) - len(np.unique(persons))
    if crossing:
        raise OptionError(
            f"column {strata!r} keeps groups apart and {crossing} times changes within a person, whose rows are to "
            "stay together; leave out --strata or --keep-persons"
        )


def with_persons(
    released: pa.Table, records: Records, original: pa.Table, persons: NDArray[np.int64] | None
) -> tuple[pa.Table, tuple[PersonsLinked, ...]]:
    """Released rows with the number of the person whom each belongs to, and the fact; as they are without any."""
    numbers = records.persons
    if numbers is None or persons is None:
        return released, ()
    steady = [
        name
        for name in released.column_names
        if never_changes(original.column(name), persons) and never_changes(released.column(name), numbers)
    ]
    many = np.unique(numbers, return_counts=True)[1]
    fact = PersonsLinked(RELEASED_PERSON, len(many), int(many.max()), tuple(steady))
    return released.add_column(0, RELEASED_PERSON, pa.array(numbers, pa.int64())), (fact,)


def released_persons(released: pa.Table, original: pa.Table) -> NDArray[np.int64] | None:
    """Released person of each row, by the column that `with_persons` adds; None where there is none."""
    if RELEASED_PERSON not in released.column_names or RELEASED_PERSON in original.column_names:
        return None
    cells = released.column(RELEASED_PERSON).combine_chunks()
    return np.asarray(cells.dictionary_encode(null_encoding="encode").indices, dtype=np.int64)


def never_changes(column: pa.ChunkedArray, persons: NDArray[np.int64]) -> bool:
    """Whether all rows of a person hold one value, a missing one too."""
    codes = np.asarray(column.combine_chunks().dictionary_encode(null_encoding="encode").indices)
    pairs = np.unique(np.column_stack([persons, codes]), axis=0)
    return len(pairs) == len(np.unique(persons))


def with_persons_field(schema: Schema) -> Schema:
    """Schema of released rows that say which of them belong together, in place of the person column."""
    number = Field(RELEASED_PERSON, Kind.INTEGER, Role.PUBLIC, reason="rows of a released person share it")
    kept = (field for field in schema if field.role is not Role.PERSON)
    return dataclasses.replace(schema, fields=(number, *kept))
