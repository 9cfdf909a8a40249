"""The schema of a run: given, read or inferred, with the given roles and without columns that hold nothing.

Rows of a person that stay together in a release: who may ask for it, and the column that says so.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Collection, Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, PrivacyRefusal, TableError, no_column, shown
from sfumato.core.records import Records
from sfumato.methods.condense.facts import PersonsLinked
from sfumato.methods.protocol import Mechanism
from sfumato.options import RunOptions
from sfumato.tables.cells import MISSING_MARKS, absent_cells, plain
from sfumato.tables.contact import MIN_EVIDENCE
from sfumato.tables.infer import has_few_values, is_mixed
from sfumato.tables.persons import propose_person
from sfumato.tables.rules import read_rules
from sfumato.tables.schema import Field, Kind, Role, Schema, check_columns, missing_marks

__all__ = [
    "RELEASED_PERSON",
    "check_links",
    "check_parts",
    "coarse_columns",
    "drop_empty",
    "empty_columns",
    "released_persons",
    "schema_of",
    "with_persons",
    "with_persons_field",
]


def schema_of(arrow: pa.Table, options: RunOptions, *, keep_empty: bool = False, coarsens: bool = False) -> Schema:
    """The schema that the options give, its file read, or an inferred one; with the roles that they name.

    No warning is given of cells that do not fit in the column of the privacy levels: they are refused.

    Columns that are to be coarsened are refused unless the caller ``coarsens`` them.

    Columns without any value are dropped with a warning, unless they are kept because other owners may have values.
    """
    if arrow.num_rows == 0:
        raise TableError("the table has no rows; provide at least as many as the highest privacy level")
    schema, target, person = options.schema, options.target, options.person
    identifiers, public = options.identifiers, options.public
    found, missing = schema is None, missing_marks(None, options.missing)
    if schema is None:
        schema = _infer_rest(arrow, identifiers, public, target, person, missing)
    elif not isinstance(schema, Schema):
        schema = Schema.load(schema)
    schema = schema if found else schema.with_missing(missing)
    check_columns(arrow, schema)
    if not coarsens and (wide := coarse_columns(schema)):
        raise OptionError(
            f"column {min(wide)!r} is to be coarsened, which is done for tables in memory alone; leave that out of the "
            "schema"
        )
    order = {name: place for place, name in enumerate(arrow.column_names)}
    schema = dataclasses.replace(schema, fields=tuple(sorted(schema.fields, key=lambda field: order[field.name])))
    schema = schema.with_role(Role.IDENTIFIER, *identifiers).with_role(Role.PUBLIC, *public)
    if person is not None:
        if person == target or person in public:
            raise OptionError(f"column {person!r} identifies persons, so it cannot be released; choose another")
        schema = schema.with_role(Role.PERSON, person)
    if target is not None:  # a public one leaves as it is, whatever the method does to the others
        schema = schema.with_role(Role.TARGET, target)
        schema = schema.with_role(Role.PUBLIC, target) if target in public else schema
    if options.weight is not None:
        schema = _weighed(schema, options.weight, found=found)
    if found:
        _tell_strays(schema, {*identifiers, person, options.level}, missing)
    return schema if keep_empty else drop_empty(arrow, schema, identifiers)


def _tell_strays(schema: Schema, known: Collection[object], missing: Collection[str]) -> None:
    """Say in which columns cells of few persons are of another form, and what becomes of the cells or the column."""
    left = [field for field in schema if field.name not in known]
    for names, what, then in (
        (
            [field.name for field in left if is_mixed(field)],
            "that are mostly dates or numbers, but not all, were taken as texts",
            "'sfumato inspect' says what to do",
        ),
        (
            [field.name for field in left if not {*field.missing} <= {*MISSING_MARKS, *missing}],
            "of numbers or dates in which a frequent text was taken as missing",
            "'sfumato inspect' names the text",
        ),
        (
            [field.name for field in left if field.repair],
            f"in which fewer than {MIN_EVIDENCE} cells do not fit the others",
            "such cells become missing, are rounded, or are replaced so that a rule holds",
        ),
        (
            [field.name for field in left if has_few_values(field)],
            f"in which fewer than {MIN_EVIDENCE} persons have a value were dropped",
            "declare the column in a schema to keep it",
        ),
    ):
        if names:
            words = f"columns {what}: {len(names)}, the first is {shown(names[0])}; {then}"
            warnings.warn(UserWarning(words), stacklevel=3)


def _weighed(schema: Schema, weight: str, *, found: bool) -> Schema:
    """Schema with a column of weights; rules that were found hold by accident there."""
    if schema[weight].role is not Role.CONFIDENTIAL and schema[weight].role is not Role.WEIGHT:
        raise OptionError(f"column {weight!r} is {schema[weight].role.value}, so it cannot be a weight; choose another")
    schema = schema.with_role(Role.WEIGHT, weight)
    if not found:
        return schema
    rules = tuple(str(rule) for rule in read_rules(schema.rules, schema.names) if weight not in rule.columns)
    return dataclasses.replace(schema, rules=rules)


def drop_empty(arrow: pa.Table, schema: Schema, known: Collection[str]) -> Schema:
    """Drop columns that have no value in any row, and warn of those that were not dropped on request."""
    left = [field for field in schema if field.role in (Role.CONFIDENTIAL, Role.IDENTIFIER) and field.name not in known]
    empty = empty_columns(arrow, left)
    if not empty:
        return schema
    why = f"no value in any of the {arrow.num_rows} rows"
    fields = (
        dataclasses.replace(field, role=Role.IDENTIFIER, reason=why)
        if field.name in empty and field.role is Role.CONFIDENTIAL
        else field
        for field in schema
    )
    schema = dataclasses.replace(schema, fields=tuple(fields))
    if not schema.encoded:
        raise TableError(f"none of the {len(empty)} columns has a value in any row; provide a table with values")
    warnings.warn(
        UserWarning(
            f"columns without a value in any of the {arrow.num_rows} rows were dropped: {len(empty)}, the first is "
            f"{shown(empty[0])}"
        ),
        stacklevel=2,
    )
    return schema


def empty_columns(arrow: pa.Table, fields: Iterable[Field]) -> tuple[str, ...]:
    """Names of the columns that have no value in any row, or are not there."""
    there = set(arrow.column_names)
    return tuple(
        field.name for field in fields if field.name not in there or _is_empty(arrow.column(field.name), field)
    )


def _is_empty(column: pa.ChunkedArray, field: Field) -> bool:
    """Tell whether no cell has a value; the first one decides for most columns."""
    return all(absent_cells(plain(cells), field.missing).all() for cells in (column.slice(0, 1), column))


def _infer_rest(
    arrow: pa.Table,
    identifiers: tuple[str, ...],
    public: tuple[str, ...],
    target: str | None,
    person: str | None,
    missing: tuple[str, ...],
) -> Schema:
    """Infer all columns; given names are checked first, so that a misspelt one is the error."""
    named = (*identifiers, *(() if person is None else (person,)), *public)
    unknown = [name for name in named if name not in arrow.column_names]
    if unknown:
        raise OptionError(no_column(unknown[0], arrow.column_names))
    target = target if target in arrow.column_names else None
    return Schema.infer(arrow, identifiers=identifiers, target=target, person=person, missing=missing)


def coarse_columns(schema: Schema) -> frozenset[str]:
    """Columns that leave at a wider level of their hierarchy."""
    return frozenset(field.name for field in schema.encoded if field.coarsened)


def check_people(arrow: pa.Table, schema: Schema, *, person: str | None, rows_are_people: bool) -> None:
    """Refuse to guess whether a row is a person where a column seems to say who the rows are about."""
    if person is not None and rows_are_people:
        raise OptionError("a person column and rows that are people exclude each other; leave one of them out")
    if person is not None or rows_are_people or (proposed := propose_person(arrow, schema)) is None:
        return
    raise PrivacyRefusal(
        f"column {proposed.column!r} seems to identify persons ({proposed}), and a level must count persons, "
        f"not rows; add --person {shown(proposed.column)}, or --rows-are-people if each row is a person"
    )


RELEASED_PERSON = "released_person"
"""The column that says which released rows belong to one released person."""


def check_links(mechanism: Mechanism, schema: Schema, rows: int | None) -> None:
    """Refuse to keep rows together where nothing says whose they are, or a method draws each row by itself."""
    if all(field.role is not Role.PERSON for field in schema):
        raise OptionError("--keep-persons needs a person identifier; name that column with --person")
    if not mechanism.traits.links:
        raise OptionError(
            f"{mechanism.method!r} makes or moves each row by itself, so that rows of one person could not be kept "
            "together without being wrong; drop --keep-persons, or use --method condense"
        )
    if rows is not None:
        raise OptionError("--keep-persons draws as many persons as there are; drop --rows")
    if RELEASED_PERSON in (field.name for field in schema if field.role is not Role.PERSON):
        raise OptionError(f"--keep-persons adds a column {RELEASED_PERSON!r}, and there is one; name yours otherwise")


def check_parts(strata: str | None, codes: NDArray[np.int64], persons: NDArray[np.int64]) -> None:
    """Refuse parts that a person's rows would have to cross."""
    pairs = np.unique(np.column_stack([persons, codes]), axis=0)
    crossing = len(pairs) - len(np.unique(persons))
    if crossing:
        raise OptionError(
            f"column {strata!r} defines strata, but it changes {crossing} times within a person, whose rows stay "
            "together; drop --strata or --keep-persons"
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
    """Released person of each row, by the column that `with_persons` adds; None if there is none."""
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
