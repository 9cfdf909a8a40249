"""The engine for a file larger than memory: a mechanism that moves rows one by one, in bounded memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sfumato.core.errors import OptionError
from sfumato.core.facts import Fact
from sfumato.core.randomness import Randomness
from sfumato.engines.chunks import transform_file
from sfumato.engines.chunks.source import Source
from sfumato.engines.columns import check_people, schema_of
from sfumato.engines.outcome import Comparison, Outcome
from sfumato.engines.plan import Plan, Prepared, prepare
from sfumato.mechanisms.geometry import Hybrid, Rotation, Scaling, Translation
from sfumato.mechanisms.geometry.key import Key
from sfumato.mechanisms.protocol import Mechanism, Sanitized
from sfumato.tables.field import Kind
from sfumato.tables.moved_columns import free_fields
from sfumato.tables.persons import refuse_weight
from sfumato.tables.schema import Schema

__all__ = ["SAMPLE_ROWS", "Geometric", "Tried", "in_chunks", "outcome_of_moving", "run_in_chunks", "try_on_sample"]

SAMPLE_ROWS = 100_000
"""Rows that are looked at to propose a schema, to draw a key and to measure."""

Geometric = Translation | Scaling | Rotation | Hybrid
_NUMBERS = (Kind.CONTINUOUS, Kind.INTEGER)


@dataclass(frozen=True, eq=False, repr=False)
class Tried:
    """What is settled before a table is moved: all of it was tried on a sample."""

    mechanism: Geometric
    plan: Plan
    key: Key
    job: Prepared
    sanitized: Sanitized

    def __repr__(self) -> str:
        return f"Tried({self.plan!r})"


def in_chunks(mechanism: Mechanism) -> Geometric:
    """The mechanism, if it moves rows one by one.

    Raises
    ------
    OptionError
        Where it needs all rows at once.
    """
    if not isinstance(mechanism, Geometric):
        raise OptionError(
            f"the method {mechanism.method!r} needs all rows at once, so a file cannot go through in chunks; take "
            "translate, scale, rotate or hybrid"
        )
    if mechanism.enhance:
        raise OptionError("enhance measures noise by the spread of all moved rows at once; leave it out, or chunks")
    return mechanism


def try_on_sample(
    sample: pa.Table,
    mechanism: Geometric,
    randomness: Randomness,
    *,
    schema: Schema | str | Path | None = None,
    target: str | None = None,
    identifiers: Iterable[str] = (),
    person: str | None = None,
    rows_are_people: bool = False,
    public: Iterable[str] = (),
) -> Tried:
    """Settle schema and key and move a sample by it, so that what is refused is refused before anything is written."""
    settled = schema_of(sample, schema, target, identifiers, public, person=person)
    if schema is None:
        check_people(sample, settled, person=person, rows_are_people=rows_are_people)
    refuse_weight(settled, "a file in batches")
    plan = Plan(mechanism, settled if schema is not None else _unbound(settled, sample), randomness=randomness)
    job = prepare(sample, plan)
    key = mechanism.given_key
    if key is None:
        key = mechanism.new_key(job.records.layout, rng=randomness.generator("sanitize"))
    keyed = dataclasses.replace(mechanism, key=key)
    sanitized = keyed.sanitize(job.records, rng=randomness.generator("order of the sample"))
    return Tried(mechanism, plan, key, job, sanitized)


def _unbound(schema: Schema, sample: pa.Table) -> Schema:
    """Free numbers from the bounds, steps and formats of the sample: other rows may have others.

    Whole numbers stay whole, but for a column of a floating-point type, in which other rows may have fractions.
    """
    numbers = {field.name for field in schema.encoded if field.kind in _NUMBERS}
    fields = [
        dataclasses.replace(field, kind=Kind.CONTINUOUS)
        if field.name in numbers and pa.types.is_floating(sample.schema.field(field.name).type)
        else field
        for field in schema
    ]
    return free_fields(Schema(tuple(fields)), numbers)


def run_in_chunks(
    tried: Tried,
    source: Source,
    place: Path,
    *,
    batch_rows: int | None = None,
    spreadsheet_safe: bool = False,
) -> Outcome:
    """Move all rows of the file into a new one at ``place``; the sample is what is measured."""
    plan = tried.plan
    done = transform_file(
        source,
        place,
        tried.key,
        schema=plan.schema,
        pass_categories=tried.mechanism.pass_categories,
        batch_rows=batch_rows,
        seed=plan.randomness.seed,
        spreadsheet_safe=spreadsheet_safe,
    )
    return outcome_of_moving(tried, done.path, done.rows, done.schema, done.facts)


def outcome_of_moving(
    tried: Tried, table: Path, rows: int, schema: Schema, facts: tuple[Fact, ...], *, where: str = "file"
) -> Outcome:
    """What came of so many rows that were moved as the sample was, which is what is measured."""
    plan, job, records = tried.plan, tried.job, tried.sanitized.records
    measured = job.original.num_rows
    note = f"Measured on all {rows} rows of the {where}."
    if measured < rows:
        note = (
            f"Measured on a sample of {measured} of the {rows} rows of the {where}, drawn at random and moved by the "
            "same key."
        )
    released = job.codec.decode(records.values, moved=records.moved)
    return Outcome(
        recipe=plan.recipe(plan.schema),
        table=table,
        rows_in=rows,
        rows_out=rows,
        schema=schema,
        facts=facts,
        workings=tried.sanitized.workings,
        comparison=Comparison(job.original, released, job.codec, job.records, notes=(note,)),
    )
