"""The engine for a file larger than memory: a mechanism that moves rows one by one, in bounded memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sfumato.core.errors import OptionError
from sfumato.core.randomness import Randomness
from sfumato.engines.chunks import sample_file, transform_file
from sfumato.engines.columns import schema_of
from sfumato.engines.outcome import Comparison, Outcome
from sfumato.engines.plan import Plan, Prepared, check_people, prepare
from sfumato.mechanisms.geometry.key import Key
from sfumato.mechanisms.geometry.mechanism import Hybrid, Rotation, Scaling, Translation
from sfumato.mechanisms.protocol import Mechanism, Sanitized
from sfumato.tables.field import Kind
from sfumato.tables.moved_columns import free_fields
from sfumato.tables.schema import Schema
from sfumato.tables.weights import refuse_weight

__all__ = ["SAMPLE_ROWS", "Geometric", "Tried", "in_chunks", "run_in_chunks", "try_on_sample"]

SAMPLE_ROWS = 100_000
"""Rows that are looked at to propose a schema, to draw a key and to measure."""

Geometric = Translation | Scaling | Rotation | Hybrid
_NUMBERS = (Kind.CONTINUOUS, Kind.INTEGER)


@dataclass(frozen=True, eq=False, repr=False)
class Tried:
    """What is settled before a file is moved: all of it was tried on a sample."""

    source: str | Path
    encoding: str
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
    source: str | Path,
    mechanism: Geometric,
    *,
    schema: Schema | str | Path | None = None,
    target: str | None = None,
    identifiers: Iterable[str] = (),
    person: str | None = None,
    rows_are_people: bool = False,
    public: Iterable[str] = (),
    rows: int = SAMPLE_ROWS,
    seed: int | None = None,
    encoding: str = "utf-8",
) -> Tried:
    """Settle schema and key and move a sample by it, so that what is refused is refused before anything is written."""
    randomness = Randomness(seed)
    sample = sample_file(source, rows, randomness.generator("sample"), encoding=encoding)
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
    return Tried(source, encoding, mechanism, plan, key, job, sanitized)


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
    tried: Tried, place: Path, *, batch_rows: int | None = None, spreadsheet_safe: bool = False
) -> Outcome:
    """Move all rows of the file into a new one at ``place``; the sample is what is measured."""
    plan, job = tried.plan, tried.job
    done = transform_file(
        tried.source,
        place,
        tried.key,
        schema=plan.schema,
        pass_categories=tried.mechanism.pass_categories,
        batch_rows=batch_rows,
        seed=plan.randomness.seed,
        encoding=tried.encoding,
        spreadsheet_safe=spreadsheet_safe,
    )
    records, measured = tried.sanitized.records, job.original.num_rows
    note = f"Measured on all {done.rows} rows of the file."
    if measured < done.rows:
        note = (
            f"Measured on a sample of {measured} of the {done.rows} rows of the file, drawn at random and moved by the "
            "same key."
        )
    released = job.codec.decode(records.values, moved=records.moved)
    return Outcome(
        recipe=plan.recipe(plan.schema),
        table=done.path,
        rows_in=done.rows,
        rows_out=done.rows,
        schema=done.schema,
        facts=done.facts,
        workings=tried.sanitized.workings,
        comparison=Comparison(job.original, released, job.codec, job.records, notes=(note,)),
    )
