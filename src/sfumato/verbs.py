"""The verb `sfumato.inspect`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.core.randomness import Randomness
from sfumato.engines.columns import schema_of
from sfumato.options import RunOptions
from sfumato.tables.frames import to_arrow
from sfumato.tables.grid import repair_table
from sfumato.tables.persons import persons_of_table, propose_person
from sfumato.tables.reading import FileReading
from sfumato.tables.rules import find_decisions, with_found_rules
from sfumato.tables.schema import Role, Schema, missing_marks
from sfumato.tables.tails import pool_rare_values

__all__ = ["inspect"]


def inspect(
    table: Any,
    *,
    identifiers: Iterable[str] = (),
    target: str | None = None,
    person: str | None = None,
    k: int = 10,
    declare: bool = False,
    schema: Schema | str | Path | None = None,
    missing: Iterable[str] = (),
    encoding: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
) -> Schema:
    """What each column is taken for and what will happen to it, to be printed and edited.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or path
    identifiers : iterable of str
        Columns to drop.
    target : str, optional
        The class or response that will be mined.
    person : str, optional
        Column that identifies the person of a row; one that seems to is proposed.
    k : int
        Fewest persons who hold a category that leaves, as a run with that k has it.
    declare : bool
        Give a template of declared domains instead, without values from the data, to be filled in by hand.
    schema : Schema or path, optional
        One that was edited, to see what it will do: its columns and rules stay as they are written.
    missing : iterable of str
        Texts or numbers that mean a missing cell in every column, besides the usual marks and those that are found.
    encoding, sheet, header_row : optional
        How a file is read: the encoding of CSV, the sheet of a workbook, and the row or line that names the columns,
        counted from 1. By default they are detected; what was detected is reported as a warning.

    Examples
    --------
    >>> people = pa.table({"age": [31, 45, 28, 52, 39] * 6, "name": ["Ann", "Bob", "Eve"] * 10})
    >>> print(inspect(people, identifiers=["name"]))
    column  role          kind     what happens  why
    age     confidential  integer  sanitized     whole numbers, 5 different
    name    identifier    nominal  dropped       text with 3 categories; identifier, as specified
    """
    identifiers, missing = tuple(identifiers), tuple(missing)
    reading = FileReading(encoding=encoding, sheet=sheet, header_row=header_row)
    arrow = to_arrow(table, missing_marks(schema, missing), reading)[0]
    options = RunOptions(schema=schema, target=target, identifiers=identifiers, person=person, missing=missing)
    if declare:
        if schema is not None:
            return schema_of(arrow, options).to_declare()
        return Schema.infer(arrow, identifiers=identifiers, target=target, person=person).to_declare()
    if schema is not None:
        return _with_rare(arrow, schema_of(arrow, options, coarsens=True), k, found=False)
    schema = Schema.infer(arrow, identifiers=identifiers, target=target, person=person, missing=missing)
    if person is not None:
        return _with_rare(arrow, schema.with_role(Role.PERSON, person), k)
    proposed = propose_person(arrow, schema)
    if proposed is None or proposed.column == target:
        return _with_rare(arrow, schema, k)
    whose = dataclasses.replace(schema[proposed.column], role=Role.PERSON, reason=f"{proposed}; proposed as the person")
    fields = tuple(whose if field.name == proposed.column else field for field in schema)
    return _with_rare(arrow, dataclasses.replace(schema, fields=fields), k)


def _with_rare(arrow: pa.Table, schema: Schema, k: int, *, found: bool = True) -> Schema:
    """Schema that says of each column what becomes of its rare values, with the found rules that hold after that."""
    arrow, persons = repair_table(arrow, schema), persons_of_table(arrow, schema)
    people = arrow.num_rows if persons is None else int(persons.max()) + 1
    if people < k or not schema.encoded:
        return schema
    rng = Randomness(0).generator("inspect")
    decisions = partial(find_decisions, arrow, schema, persons) if found else None
    shared = pool_rare_values(
        arrow, schema.without_target(), k=k, way="lift", persons=persons, rng=rng, most=None, decisions=decisions
    )
    if shared.changed and found:
        target = None if schema.target is None else schema.target.name
        left = [field.name for field in shared.schema.encoded if field.name == target]
        after = shared.schema.with_role(Role.TARGET, *left)
        ruled = with_found_rules(shared.table, after, persons)
        repair = {field.name for field in ruled if field.repair}
        listed = (dataclasses.replace(field, repair=field.repair or field.name in repair) for field in schema)
        schema = dataclasses.replace(schema, fields=tuple(listed), rules=ruled.rules)
    fields = []
    for field in schema:
        words = shared.words(field.name)
        if words and field.role is Role.TARGET:
            rare = any(each.before.name == field.name and each.hides for each in shared.recodings)
            rare = rare or shared.fact is None or field.name in shared.fact.dropped
            words = f"a class held by fewer than {k} persons: say with --rare what becomes of it" if rare else ""
            words += "; " if rare and field.name in shared.filled else ""
            words += "rows without a class will be left out" if field.name in shared.filled else ""
        fields.append(dataclasses.replace(field, reason=f"{field.reason}; {words}") if words else field)
    return dataclasses.replace(schema, fields=tuple(fields))
