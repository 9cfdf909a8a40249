"""The engine for a file larger than memory: numbers moved by a key in one pass, in bounded memory [OZ03, sec. 4]."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, TableError
from sfumato.core.facts import ColumnsDropped, Fact, PassedThrough, RandomnessSource, Shuffled, ShuffledWithin
from sfumato.core.progress import tell
from sfumato.core.randomness import Randomness
from sfumato.engines.columns import check_people, empty_columns, schema_of
from sfumato.engines.outcome import Comparison, Outcome
from sfumato.engines.partitions.first_pass import RowHash
from sfumato.engines.partitions.gather import PartitionSettings
from sfumato.engines.plan import Plan, PreparedRun, coarsened_facts, prepare
from sfumato.methods.geometry import Hybrid, Rotation, Scaling, Translation
from sfumato.methods.geometry.batches import BatchTransformer, ColumnPlan, read_means, read_spacings
from sfumato.methods.geometry.facts import TargetMoved, Transformed
from sfumato.methods.geometry.key import Key
from sfumato.methods.protocol import Mechanism, MethodResult
from sfumato.options import RunOptions, first_needing_all_rows
from sfumato.tables.cells import is_text
from sfumato.tables.field import Field, Kind
from sfumato.tables.files import FileFormat
from sfumato.tables.moved_columns import free_fields
from sfumato.tables.persons import refuse_weight
from sfumato.tables.recoding import known_columns
from sfumato.tables.schema import Schema
from sfumato.tables.source import TableSource, runs_of_rows
from sfumato.tables.spreadsheet import FormulaCount

if TYPE_CHECKING:
    from sfumato.engines.partitions.run import PartitionedRows

__all__ = [
    "Geometric",
    "MovedRows",
    "TriedOnSample",
    "check_batched",
    "dropped_fields",
    "order_of_batch",
    "outcome_of_moving",
    "transform_rows",
    "try_on_sample",
    "usual_rows",
]


_BATCH_BYTES = 1 << 25  # of a batch whose number of rows is not given
_NUMBER_BYTES, _TEXT_BYTES = 8, 24  # of a cell, as counted for that


def order_of_batch(randomness: Randomness, batch: int, rows: int) -> NDArray[np.int64]:
    """Order that chance gives the rows of a batch: places in it."""
    return randomness.generator(f"order of batch {batch}").permutation(rows)


def usual_rows(plan: ColumnPlan, schema: pa.Schema) -> int:
    """Rows of a batch of about 32 MB."""
    cells = [_TEXT_BYTES if is_text(schema.field(name).type) else _NUMBER_BYTES for name in plan.names]
    return max(1, _BATCH_BYTES // sum(cells))


def _empty(source: TableSource, plan: ColumnPlan, rows: int) -> tuple[str, ...]:
    """Columns that are dropped and have no value in the whole file; others are known by its first rows."""
    left, fields = plan.dropped, dropped_fields(plan, csv=source.form.format is FileFormat.CSV)
    for batch in source.batches(left, rows, threads=False) if left else ():
        left = empty_columns(pa.Table.from_batches([batch]), (fields[name] for name in left))
        if not left:
            break
    return left


def dropped_fields(plan: ColumnPlan, *, csv: bool) -> dict[str, Field]:
    """Columns that are dropped; CSV writes nothing for a missing cell."""
    gap = ("",) if csv else ()
    return {name: replace(plan.schema[name], missing=(*plan.schema[name].missing, *gap)) for name in plan.dropped}


@dataclass(frozen=True, eq=False, repr=False)
class MovedRows:
    """What is known once all rows were moved.

    ``empty`` are the dropped columns without any value, ``gaps`` the columns with missing cells, ``sizes`` the rows of
    each batch, and ``formulas`` counts the texts that look like formulas.
    """

    plan: ColumnPlan
    empty: tuple[str, ...]
    gaps: Collection[str]
    sizes: Sequence[int]
    formulas: FormulaCount


def _facts_of(tried: TriedOnSample, moved: MovedRows, *, quoted: bool) -> tuple[Fact, ...]:
    """State what was done to columns and numbers, to all else but public columns, and to the order of the rows."""
    plan, key, randomness = moved.plan, tried.key, tried.plan.randomness
    numbers = tuple(field.name for field in plan.moved)
    facts: list[Fact] = [
        RandomnessSource(randomness.mode.value, randomness.algorithm),
        ColumnsDropped(tuple(name for name in plan.dropped if name not in moved.empty), (), moved.empty),
        *coarsened_facts(plan.schema),
        Transformed(key.operations, numbers, key.known_rows, tried.mechanism.exact_digits),
    ]
    if plan.schema.target in plan.moved:
        facts.append(TargetMoved(plan.schema.target.name))
    inside = {field.name for field in plan.schema.encoded}
    untouched = PassedThrough(
        len(inside.intersection(field.name for field in plan.passed)), len(inside & set(moved.gaps))
    )
    if untouched != PassedThrough(0, 0):
        facts.append(untouched)
    facts.append(Shuffled(moved.sizes[0]) if len(moved.sizes) == 1 else ShuffledWithin(min(moved.sizes)))
    return (*facts, *moved.formulas.facts(quoted=quoted))


Geometric = Translation | Scaling | Rotation | Hybrid
_NUMBERS = (Kind.CONTINUOUS, Kind.INTEGER)


@dataclass(frozen=True, eq=False, repr=False)
class TriedOnSample:
    """What is settled before a table is moved: all of it was tried on a sample, which had these Arrow types."""

    mechanism: Geometric
    plan: Plan
    key: Key
    job: PreparedRun
    sanitized: MethodResult
    sampled: pa.Schema

    def __repr__(self) -> str:
        return f"Tried({self.plan!r})"


def check_batched(mechanism: Mechanism, options: RunOptions) -> None:
    """Refuse a method, or an option, that needs all rows at once."""
    if not isinstance(mechanism, Geometric):
        raise OptionError(
            f"the method {mechanism.method!r} needs all rows at once, so a file cannot go through in chunks; take "
            "translate, scale, rotate or hybrid"
        )
    if options.batch_rows is not None and options.batch_rows < 1:
        raise OptionError(f"a batch cannot have {options.batch_rows} rows; use at least 1, or drop --batch-rows")
    if mechanism.enhance:
        raise OptionError("enhance measures noise by the spread of all moved rows at once; leave it out, or chunks")
    needs = first_needing_all_rows(options, batches=True)
    if needs is not None:
        raise OptionError(f"{needs} needs all rows at once, and a file is moved in batches; leave it out")


def try_on_sample(
    rows: PartitionedRows, mechanism: Geometric, options: RunOptions, settings: PartitionSettings
) -> TriedOnSample:
    """Settle schema and key and move a sample by it, so that what is refused is refused before anything is written."""
    check_batched(mechanism, options)
    randomness = settings.randomness
    sample = rows.sample(RowHash.of(randomness, None, None))
    if not sample.num_rows:
        raise TableError("the table has no rows; add some")
    settled = schema_of(sample, options)
    found = options.schema is None
    if found:
        check_people(sample, settled, person=options.person, rows_are_people=options.rows_are_people)
    refuse_weight(settled, "a file in batches")
    plan = Plan(mechanism, _unbound(settled, sample) if found else settled, randomness=randomness)
    known_columns(settings.quasi_identifiers, plan.schema)
    job = prepare(sample, plan)
    key = mechanism.given_key
    if key is None:
        key = mechanism.new_key(job.records.layout, rng=randomness.generator("sanitize"))
    keyed = dataclasses.replace(mechanism, key=key)
    sanitized = keyed.sanitize(job.records, rng=randomness.generator("order of the sample"))
    return TriedOnSample(mechanism, plan, key, job, sanitized, sample.schema)


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


def transform_rows(tried: TriedOnSample, source: TableSource, settings: PartitionSettings) -> Outcome:
    """Transform all rows of a file into a new one, batch by batch; the sample is what is measured.

    Where a missing cell is turned with another it counts as its column's mean, as in memory; the mean takes one more
    pass over the turned columns, which is made only when such a cell comes up.
    """
    begin, key = perf_counter(), tried.key
    plan = ColumnPlan.of(tried.plan.schema, key)
    rows, kinds = settings.batch_rows or usual_rows(plan, source.schema), plan.arrow_schema(source.schema)
    spacings, exact = read_spacings(source, plan, key, rows), tried.mechanism.exact_digits
    mover = BatchTransformer(
        source.schema, plan, key, spacings, lambda: read_means(source, plan, key, rows), exact_digits=exact
    )
    formulas, sizes = FormulaCount(kinds.names), list[int]()
    with settings.open_sink(kinds, [field.name for field in plan.moved]) as sink:
        for run in runs_of_rows(source.batches(plan.names, rows), rows):
            order = order_of_batch(tried.plan.randomness, len(sizes), len(run))
            batch = pa.RecordBatch.from_arrays(mover.move(run, order), schema=kinds)
            formulas.add(batch)
            sink.write(batch)
            sizes.append(len(run))
            if source.rows:
                tell("moving rows", sum(sizes) / source.rows)
    moved = MovedRows(plan, _empty(source, plan, rows), mover.gaps, sizes, formulas)
    return outcome_of_moving(tried, moved, settings, seconds=perf_counter() - begin)


def outcome_of_moving(
    tried: TriedOnSample, moved: MovedRows, settings: PartitionSettings, *, seconds: float, where: str = "file"
) -> Outcome:
    """The outcome for all rows; they were transformed as the sample was, which is what is measured."""
    plan, job, records = tried.plan, tried.job, tried.sanitized.records
    measured, rows = job.original.num_rows, sum(moved.sizes)
    note = f"Measured on all {rows} rows of the {where}."
    if measured < rows:
        note = (
            f"Measured on a sample of {measured} of the {rows} rows of the {where}, drawn at random and moved by the "
            "same key."
        )
    released = job.codec.decode(records.values, moved=records.moved)
    return Outcome(
        recipe=plan.recipe(plan.schema),
        table=settings.place,
        rows_in=rows,
        rows_out=rows,
        schema=moved.plan.public,
        facts=_facts_of(tried, moved, quoted=settings.spreadsheet_safe),
        workings=tried.sanitized.workings,
        comparison=Comparison(job.original, released, job.codec, job.records, notes=(note,)),
        seconds=seconds,
    )
