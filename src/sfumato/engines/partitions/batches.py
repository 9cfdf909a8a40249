"""The engine for a file larger than memory: numbers moved by a key in one pass, in bounded memory [OZ03, sec. 4]."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, TableError
from sfumato.core.facts import ColumnsDropped, Drawn, Fact, Shuffled, ShuffledWithin, Untouched
from sfumato.core.progress import tell
from sfumato.core.randomness import Randomness
from sfumato.core.replacing import check_target, replacing_target
from sfumato.engines.columns import check_people, empty_columns, schema_of
from sfumato.engines.outcome import Comparison, Outcome
from sfumato.engines.partitions.first_pass import RowHash
from sfumato.engines.partitions.gather import PartitionSettings
from sfumato.engines.plan import Plan, PreparedRun, coarsened_facts, prepare
from sfumato.methods.geometry import Hybrid, Rotation, Scaling, Translation
from sfumato.methods.geometry.batches import ColumnPlan, Mover, plan_columns, read_means, read_spacings
from sfumato.methods.geometry.facts import TargetMoved, Transformed
from sfumato.methods.geometry.key import Key
from sfumato.methods.protocol import Mechanism, MethodResult
from sfumato.options import RunOptions, first_needing_all_rows
from sfumato.tables.cells import is_text
from sfumato.tables.field import Field, Kind
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.moved_columns import free_fields
from sfumato.tables.persons import refuse_weight
from sfumato.tables.recoding import known_columns
from sfumato.tables.schema import Schema
from sfumato.tables.source import TableSink, TableSource, form_of, open_people, open_sink, runs_of_rows
from sfumato.tables.spreadsheet import FormulaCount

if TYPE_CHECKING:
    from sfumato.engines.partitions.run import PartitionedRows

__all__ = [
    "Geometric",
    "MovedFile",
    "Shuffle",
    "TriedOnSample",
    "check_batched",
    "dropped_fields",
    "facts_around",
    "facts_of_moving",
    "order_of_batch",
    "outcome_of_moving",
    "transform_file",
    "transform_rows",
    "try_on_sample",
    "usual_rows",
]


Shuffle = Literal["batches", "none"]

_BATCH_BYTES = 1 << 25  # of a batch whose number of rows is not given
_NUMBER_BYTES, _TEXT_BYTES = 8, 24  # of a cell, as counted for that


@dataclass(frozen=True)
class MovedFile:
    """What was written, and the facts of it for a certificate.

    ``batch_rows`` are the rows of the smallest batch; ``schema`` is the part that may leave with the table.
    """

    path: Path
    rows: int
    batches: int
    batch_rows: int
    schema: Schema
    facts: tuple[Fact, ...]


def transform_file(
    source: str | Path | TableSource,
    target: str | Path,
    key: Key,
    *,
    columns: Sequence[str] | None = None,
    schema: Schema | None = None,
    identifiers: Iterable[str] = (),
    public: Iterable[str] = (),
    pass_categories: bool = False,
    exact_digits: bool = False,
    shuffle: Shuffle = "batches",
    batch_rows: int | None = None,
    seed: int | None = None,
    threads: bool = True,
    encoding: str | None = None,
    overwrite: bool = False,
    spreadsheet_safe: bool = False,
) -> MovedFile:
    """Move the numbers of a file by a key and write them to another, batch by batch.

    The numbers are those that the mechanisms of `methods.geometry` give with the same key. Columns are checked
    before anything is written; the output appears whole or not at all.

    Parameters
    ----------
    source : path or Source
        A .parquet, .csv, .csv.gz, .arrow or .feather file.
    target : path
        Of the same kinds; it may be of another than the source.
    key : Key
    columns : sequence of str, optional
        The confidential numbers where no schema is given; by default those of the key.
    schema : Schema, optional
        By default proposed from the first 100,000 rows.
    identifiers : iterable of str
        Columns to drop, besides those that the schema drops.
    public : iterable of str
        Columns to pass through.
    pass_categories : bool
        Release categories, orders and dates as they are; without it a file that has some is refused.
    exact_digits : bool
        Write moved numbers with all their digits, which show the key.
    shuffle : {"batches", "none"}
        ``"batches"`` draws the order of the rows within each batch; a row stays in its batch. ``"none"`` keeps it.
    batch_rows : int, optional
        Rows of a batch; by default as many as fill about 32 MB. The last one has up to twice as many.
    seed : int, optional
        Makes a dry run: the order of the rows can be repeated.
    threads : bool
        Whether several columns are read at once.
    encoding : str, optional
        Of CSV; by default UTF-8, or what is detected.
    overwrite : bool
        Replace a target that exists.
    spreadsheet_safe : bool
        Write CSV with an apostrophe before what a spreadsheet would take for a formula.

    Notes
    -----
    Where a missing cell is turned with another it counts as its column's mean, as in memory; the mean takes one more
    pass over the turned columns, which is made only when such a cell comes up.
    """
    if shuffle not in ("batches", "none"):
        raise OptionError(f"there is no shuffle {shuffle!r}; choose 'batches' or 'none'")
    if batch_rows is not None and batch_rows < 1:
        raise OptionError(f"a batch cannot have {batch_rows} rows; use at least 1, or drop --batch-rows")
    origin = open_people(source, encoding=encoding)
    place, form = check_target(target, origin.path, overwrite=overwrite), form_of(Path(target))
    if form.format is FileFormat.CSV:
        form = FileForm(form.format, origin.form.delimiter)
    elif spreadsheet_safe:
        raise OptionError("apostrophes before formulas are for CSV; drop --spreadsheet-safe, or write CSV")
    plan = plan_columns(
        origin.schema,
        key,
        head=origin.head,
        columns=columns,
        schema=schema,
        identifiers=identifiers,
        public=public,
        pass_categories=pass_categories,
    )
    size = batch_rows or usual_rows(plan, origin.schema)
    randomness = Randomness(seed)
    spacings = read_spacings(origin, plan, key, size)
    mover = Mover(
        origin.schema,
        plan,
        key,
        spacings,
        lambda: read_means(origin, plan, key, size),
        exact_digits=exact_digits,
    )
    kinds = plan.arrow_schema(origin.schema)
    formulas = FormulaCount(kinds.names)
    with (
        replacing_target(place) as work,
        open_sink(
            work,
            kinds,
            form,
            zipped=place.name.lower().endswith(".gz"),
            numbers=[field.name for field in plan.moved],
            spreadsheet_safe=spreadsheet_safe,
        ) as sink,
    ):
        order = randomness if shuffle == "batches" else None
        sizes = _write(origin, sink, kinds, mover, order, formulas, rows=size, threads=threads)
    moving = facts_of_moving(plan, key, mover.gaps, sizes, shuffled=shuffle == "batches", exact_digits=exact_digits)
    facts = (*facts_around(plan, _empty(origin, plan, size), randomness), *moving)
    facts = (*facts, *formulas.facts(quoted=spreadsheet_safe))
    return MovedFile(place, sum(sizes), len(sizes), min(sizes), plan.public, facts)


def order_of_batch(randomness: Randomness, batch: int, rows: int) -> NDArray[np.int64]:
    """Order that chance gives the rows of a batch: places in it."""
    return randomness.generator(f"order of batch {batch}").permutation(rows)


def usual_rows(plan: ColumnPlan, schema: pa.Schema) -> int:
    """Rows of a batch of about 32 MB."""
    cells = [_TEXT_BYTES if is_text(schema.field(name).type) else _NUMBER_BYTES for name in plan.names]
    return max(1, _BATCH_BYTES // sum(cells))


def _write(
    source: TableSource,
    sink: TableSink,
    kinds: pa.Schema,
    mover: Mover,
    randomness: Randomness | None,
    formulas: FormulaCount,
    *,
    rows: int,
    threads: bool,
) -> list[int]:
    """Write the moved batches, count formulas in them, and give the rows of each; without chance in their order."""
    sizes: list[int] = []
    for run in runs_of_rows(source.batches(mover.plan.names, rows, threads=threads), rows):
        order = None if randomness is None else order_of_batch(randomness, len(sizes), len(run))
        moved = pa.RecordBatch.from_arrays(mover.move(run, order), schema=kinds)
        formulas.add(moved)
        sink.write(moved)
        sizes.append(len(run))
        if source.rows:
            tell("moving rows", sum(sizes) / source.rows)
    if not sizes:
        raise TableError(f"{str(source.path)!r} has no rows; add some")
    return sizes


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


def facts_around(plan: ColumnPlan, empty: tuple[str, ...], randomness: Randomness) -> tuple[Fact, ...]:
    """State where chance came from, and which columns were dropped or coarsened."""
    drawn = Drawn(randomness.mode.value, randomness.algorithm)
    others = tuple(name for name in plan.dropped if name not in empty)
    return drawn, ColumnsDropped(others, (), empty), *coarsened_facts(plan.schema)


def facts_of_moving(
    plan: ColumnPlan,
    key: Key,
    gaps: Collection[str],
    sizes: Sequence[int],
    *,
    shuffled: bool,
    exact_digits: bool = False,
) -> tuple[Fact, ...]:
    """State what was done to numbers, to all else but public columns, and to the order of the rows."""
    moved = tuple(field.name for field in plan.moved)
    facts: list[Fact] = [Transformed(key.operations, moved, key.known_rows, exact_digits)]
    if plan.schema.target in plan.moved:
        facts.append(TargetMoved(plan.schema.target.name))
    inside = {field.name for field in plan.schema.encoded}
    untouched = Untouched(len(inside.intersection(field.name for field in plan.passed)), len(inside & set(gaps)))
    if untouched != Untouched(0, 0):
        facts.append(untouched)
    if shuffled and len(sizes) == 1:
        facts.append(Shuffled(sizes[0]))
    else:
        facts.append(ShuffledWithin(min(sizes) if shuffled else 1))
    return tuple(facts)


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
    """Transform all rows of a file into a new one; the sample is what is measured."""
    plan, begin = tried.plan, perf_counter()
    assert settings.place is not None
    done = transform_file(
        source,
        settings.place,
        tried.key,
        schema=plan.schema,
        pass_categories=tried.mechanism.pass_categories,
        exact_digits=tried.mechanism.exact_digits,
        batch_rows=settings.batch_rows,
        seed=plan.randomness.seed,
        spreadsheet_safe=settings.spreadsheet_safe,
    )
    seconds = perf_counter() - begin
    return outcome_of_moving(tried, done.path, done.rows, done.schema, done.facts, seconds=seconds)


def outcome_of_moving(
    tried: TriedOnSample,
    table: Path | None,
    rows: int,
    schema: Schema,
    facts: tuple[Fact, ...],
    *,
    seconds: float,
    where: str = "file",
) -> Outcome:
    """The outcome for all rows; they were transformed as the sample was, which is what is measured."""
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
        seconds=seconds,
    )
