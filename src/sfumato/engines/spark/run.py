"""Tables on a cluster: partitions or batches of rows, each done by the worker that has the rows.

The driver sees a sample, witnesses, counts and the rows that are measured; all other rows stay with the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.arrays import ExactMean, Ints
from sfumato.core.documents import parse_json, typed, write_json
from sfumato.core.documents import plain as plain_values
from sfumato.core.errors import OptionError
from sfumato.core.randomness import Randomness
from sfumato.engines.columns import empty_columns
from sfumato.engines.outcome import Outcome
from sfumato.engines.partitions import PartitionTree
from sfumato.engines.partitions.batches import (
    MovedRows,
    TriedOnSample,
    dropped_fields,
    order_of_batch,
    outcome_of_moving,
    usual_rows,
)
from sfumato.engines.partitions.first_pass import FirstPass, Preparation, RowBlock, RowHash, RowSampler, RowScan
from sfumato.engines.partitions.gather import ORDER, AllocationCounts, PartitionSettings, RowAllocator, frames_of
from sfumato.engines.partitions.memory_limit import Spill, frame_of, table_of
from sfumato.engines.partitions.partition import PartitionTask, sanitize_partition
from sfumato.engines.spark.parts import FRAMES, Batches, RowNumbering, frames_from, number_rows, part_number, part_of
from sfumato.methods.geometry.batches import (
    BatchTransformer,
    ColumnPlan,
    finest_of,
    means_of,
    numbers_there,
    spaced_fields,
    turned_fields,
)
from sfumato.methods.geometry.key import Key
from sfumato.methods.geometry.transformations import Spacing
from sfumato.tables.cells import plain
from sfumato.tables.files import FileFormat
from sfumato.tables.source import runs_of_rows
from sfumato.tables.spreadsheet import FormulaCount

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sfumato.engines.private import DeclaredReading, DrawnRows
    from sfumato.methods.private.people import AllPeople, People
    from sfumato.methods.private.stored import StoredModel

__all__ = ["ClusterRows"]

_CELL = "\x1fcell"
_PEOPLE_AT_ONCE = 1 << 17  # rows, if each is a person


class ClusterRows:
    """Rows of a data frame of Spark, each read, sanitized and kept by the worker that has it.

    A worker that is lost costs its partitions' work, which others do again to the bit. ``released`` is the data frame
    of released rows, once a run has ended.
    """

    gathers = False

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame
        self.numbered = number_rows(frame)
        self.released: DataFrame | None = None
        self._allocated: tuple[Preparation, PartitionTree, Any] | None = None

    def head(self, rows: int) -> pa.Table:
        """The first rows, up to a maximum number."""
        return self.frame.limit(rows).toArrow()

    def scan(self, scan: RowScan) -> FirstPass:
        """First pass over all rows."""
        return scan.merge(list(_passes(frames_from(self.frame, partial(_scan_part, self.numbered, scan)))))

    def sample(self, row_hash: RowHash) -> pa.Table:
        """Rows drawn without replacement, in their order."""
        sampler = RowSampler(row_hash, "sample")
        found = frames_from(self.frame, partial(_sample_part, self.numbered, row_hash))
        for row in sorted(found, key=lambda row: row["part"]):
            sampler.add(_block_of(bytes(row["frame"])))
        return sampler.done().table

    def allocate(self, prepared: Preparation, cuts: PartitionTree) -> AllocationCounts:
        """Count the rows of all leaves; who has them gives them to their partitions when these are sanitized."""
        if not isinstance(prepared.plan.options.holdout, float | None):
            raise OptionError("the control group is drawn on the cluster; give --holdout a share, not a file")
        light = prepared.to_cut
        self._allocated = light, cuts, _types_of_rows(prepared, cuts)
        rows = frames_from(self.frame, _PartAllocator(self.numbered, light, cuts, ()).count)
        return _add_up(rows, RowAllocator(light, cuts))

    def sanitize(self, task: PartitionTask, partitions: Sequence[Sequence[int]], bits: int) -> Spill:
        """Bring the rows of each partition together, and sanitize it there."""
        assert self._allocated is not None
        prepared, cuts, types = self._allocated
        cell_of = [0] * cuts.leaves
        for number, leaves in enumerate(partitions):
            for leaf in leaves:
                cell_of[leaf] = number
        cut = _PartAllocator(self.numbered, prepared, cuts, tuple(cell_of))
        rows = self.frame.mapInArrow(cut.rows, types)
        done = (
            rows.groupBy(_CELL).applyInArrow(lambda table: _sanitize_group(task, bits, table), FRAMES).persist()
        )  # whose arguments are counted
        spill = _OnCluster(done)
        kinds = table_of(spill.frame("cell-0", 1)).schema
        buckets = done.filter(done["kind"].isin([str(1 + each) for each in range(1 << bits)]))
        self.released = _released(buckets, kinds.remove(kinds.get_field_index(ORDER)))
        return spill

    def transform(self, tried: TriedOnSample, settings: PartitionSettings) -> Outcome:
        """All rows, transformed batch by batch as the sample was."""
        outcome, self.released = _transform(self.frame, self.numbered, tried, settings)
        return outcome

    def people(self, reading: DeclaredReading) -> AllPeople:
        """All rows as people, who stay with the workers; all rows of a person are with the same one."""
        from sfumato.methods.private.people import Partitions

        frame = self.frame if reading.person is None else self.frame.repartition(self.frame[f"`{reading.person}`"])
        people = frame.mapInArrow(partial(_people_of_part, reading), FRAMES).persist()

        def mapped(work: Callable[[People], Ints]) -> Iterator[Ints]:
            found = frames_from(people, partial(_count_part, reading, work))
            return (np.frombuffer(bytes(row["frame"]), dtype=np.int64) for row in found)

        return Partitions(reading.nobody, mapped)

    def draw(self, stored: StoredModel, rows: int, settings: PartitionSettings) -> DrawnRows:
        """Rows of a released model, drawn by the workers, or by the driver if they are written to a file."""
        from sfumato.engines.private import DRAWN_AT_ONCE, DrawnRows, drawn_batches, write_drawn

        numbers = range(-(-rows // DRAWN_AT_ONCE))
        if settings.place is not None:
            return write_drawn(drawn_batches(numbers, stored, rows, settings), rows, settings)
        first = next(drawn_batches(numbers, stored, rows, settings))
        work, spark = partial(_draw_batches, stored, rows, settings), self.frame.sparkSession
        from pyspark.sql.pandas.types import from_arrow_schema

        self.released = spark.range(len(numbers)).mapInArrow(work, from_arrow_schema(first.schema))
        return DrawnRows(None, first)


def _people_of_part(reading: DeclaredReading, batches: Batches) -> Batches:
    """Rows of a part as people, wherever the rows are: some at a time, or all if a column says whose they are."""
    held = runs_of_rows(batches, _PEOPLE_AT_ONCE)
    if reading.person is not None:
        tables = list(held)
        held = iter([pa.concat_tables(tables)] if tables else ())
    for table in held:
        frame = frame_of(reading.frame(reading.rows(table)[0]))
        yield part_of(part_number(), {"people": frame})


def _count_part(reading: DeclaredReading, work: Callable[[People], Ints], batches: Batches) -> Batches:
    """Counts of the people of a part, wherever they are."""
    frames = (frame for batch in batches for frame in batch.column("frame").to_pylist())
    whole = work(reading.nobody)
    for frame in frames:
        whole = whole + reading.people(table_of(frame)).total(work)
    yield part_of(part_number(), {"counts": whole.tobytes()})


def _draw_batches(stored: StoredModel, rows: int, settings: PartitionSettings, batches: Batches) -> Batches:
    """Batches of rows of a released model, wherever they are drawn."""
    from sfumato.engines.private import drawn_batches

    numbers = (number for batch in batches for number in batch.column("id").to_pylist())
    for table in drawn_batches(numbers, stored, rows, settings):
        yield from table.combine_chunks().to_batches()


def _types_of_rows(prepared: Preparation, cuts: PartitionTree) -> Any:
    """Types of the rows of partitions: those of the first rows that were seen, once they are allocated."""
    from pyspark.sql.pandas.types import from_arrow_schema

    some = RowBlock(prepared.seen.table.slice(0, 100), prepared.seen.rows[:100])
    found = next(table for _, table in RowAllocator(prepared.to_cut, cuts).allocate(some))
    return from_arrow_schema(found.append_column(_CELL, pa.array(np.zeros(found.num_rows, dtype=np.int64))).schema)


def _frame_of_block(block: RowBlock) -> bytes:
    """Rows with their numbers as bytes."""
    return frame_of(block.table.append_column(_CELL, pa.array(block.rows)))


def _block_of(frame: bytes) -> RowBlock:
    """Rows with their numbers from bytes."""
    table = table_of(frame)
    return RowBlock(table.drop_columns([_CELL]), table.column(_CELL).to_numpy())


def _scan_part(numbered: RowNumbering, scan: RowScan, batches: Batches) -> Batches:
    """First pass over a part of a data frame."""
    first_pass = scan.of(numbered.runs(batches))
    counts = {"rows": first_pass.rows, "held_out": first_pass.held_out, "highest": first_pass.highest}
    frames = {"counts": write_json(counts, "canonical").encode()}
    found = {"sample": first_pass.sample, "witnesses": first_pass.witnesses, "outside": first_pass.outside}
    frames |= {name: _frame_of_block(block) for name, block in found.items() if len(block)}
    yield part_of(part_number(), frames)


def _sample_part(numbered: RowNumbering, row_hash: RowHash, batches: Batches) -> Batches:
    """Draws a sample of a part."""
    sampler = RowSampler(row_hash, "sample")
    for block in numbered.runs(batches):
        sampler.add(block)
    found = sampler.done()
    if len(found):
        yield part_of(part_number(), {"rows": _frame_of_block(found)})


@dataclass(frozen=True, eq=False, repr=False)
class _PartAllocator:
    """Hands the rows of a part to cells, or counts them; counts are reported by part and added up."""

    numbered: RowNumbering
    prepared: Preparation
    cuts: PartitionTree
    cell_of: tuple[int, ...]

    def count(self, batches: Batches) -> Batches:
        allocator = RowAllocator(self.prepared, self.cuts)
        for block in self.numbered.runs(batches):
            for _ in allocator.allocate(block):
                pass
        frames = {"counted": write_json(plain_values(allocator.counted), "canonical").encode()}
        if self.prepared.row_hash.person is not None:
            for leaf in range(self.cuts.leaves):
                frames[f"people {leaf}"] = allocator.people.of([leaf]).tobytes()
        yield part_of(part_number(), frames)

    def rows(self, batches: Batches) -> Batches:
        allocator = RowAllocator(self.prepared, self.cuts)
        for block in self.numbered.runs(batches):
            for leaf, rows in allocator.allocate(block):
                cell = pa.array(np.full(rows.num_rows, self.cell_of[leaf], dtype=np.int64))
                yield from rows.append_column(_CELL, cell).combine_chunks().to_batches()


def _sanitize_group(task: PartitionTask, bits: int, table: pa.Table) -> pa.Table:
    """Sanitizes a cell: its frames, as they wait on disk elsewhere."""
    number = table.column(_CELL)[0].as_py()
    done = sanitize_partition(table.drop_columns([_CELL]), task, number)
    frames = {str(place): frame for place, frame in enumerate(frames_of(done, bits))}
    return pa.Table.from_batches([part_of(number, frames)])


def _passes(rows: Sequence[Any]) -> Iterator[FirstPass]:
    """First passes over the parts of a data frame, in order."""
    nothing = RowBlock(pa.table({}), np.empty(0, dtype=np.int64))
    for part in sorted({row["part"] for row in rows}):
        frames = {row["kind"]: bytes(row["frame"]) for row in rows if row["part"] == part}
        counts = parse_json(frames.pop("counts"))
        runs = {name: _block_of(frame) for name, frame in frames.items()}
        sample, seen, outside = (runs.get(name, nothing) for name in ("sample", "witnesses", "outside"))
        yield FirstPass(sample, seen, outside, counts["rows"], counts["held_out"], counts["highest"])


def _add_up(rows: Sequence[Any], allocator: RowAllocator) -> AllocationCounts:
    """What was counted of all parts."""
    total = allocator.counted
    for row in rows:
        if row["kind"] != "counted":
            leaf = int(row["kind"].removeprefix("people "))
            allocator.people.add(leaf, np.frombuffer(bytes(row["frame"]), dtype=np.uint64))
            continue
        total.add(typed(AllocationCounts, parse_json(bytes(row["frame"]))))
    return allocator.count()


class _OnCluster(Spill):
    """Frames of cells that lie on the cluster, fetched a place at a time."""

    def __init__(self, done: DataFrame) -> None:
        super().__init__()
        self._done = done
        self._fetched: tuple[int, dict[int, bytes]] = (-1, {})

    def frame(self, name: str, number: int) -> bytes:
        """One frame of a name."""
        if self._fetched[0] != number:
            rows = self._done.filter(self._done["kind"] == str(number)).collect()
            self._fetched = number, {row["part"]: bytes(row["frame"]) for row in rows}
        return self._fetched[1][int(name.removeprefix("cell-"))]


_REPORT = "report"


@dataclass
class _ColumnsSeen:
    """What all rows tell of columns before they are moved; grows part by part."""

    spacings: dict[str, Spacing] = field(default_factory=dict)
    means: dict[str, ExactMean] = field(default_factory=dict)
    empty: tuple[str, ...] = ()

    def merge(self, other: _ColumnsSeen) -> None:
        for name, spacing in other.spacings.items():
            self.spacings[name].merge(spacing)
        for name, mean in other.means.items():
            self.means[name].merge(mean)
        self.empty = tuple(name for name in self.empty if name in other.empty)

    def to_bytes(self) -> bytes:
        entries = {
            "spacings": {
                name: [each.apart, each.lost, each.first, each.low, each.high, each.head]
                for name, each in self.spacings.items()
            },
            "means": {name: [f"{each.total:x}", each.count] for name, each in self.means.items()},
            "empty": list(self.empty),
        }
        return write_json(entries, "canonical").encode()

    @classmethod
    def from_bytes(cls, body: bytes) -> _ColumnsSeen:
        report = parse_json(body)
        return cls(
            {
                name: Spacing(apart, lost, first, 1.0, low, high, head)
                for name, (apart, lost, first, low, high, head) in report["spacings"].items()
            },
            {name: ExactMean(int(total, 16), count) for name, (total, count) in report["means"].items()},
            tuple(report["empty"]),
        )


@dataclass(frozen=True, eq=False, repr=False)
class _See:
    """Looks at a part for what must be known of all rows."""

    plan: ColumnPlan
    key: Key
    csv: bool

    def nothing(self) -> _ColumnsSeen:
        return _ColumnsSeen(
            {each.name: Spacing() for each in spaced_fields(self.plan, self.key)},
            {each.name: ExactMean() for each in turned_fields(self.plan, self.key)},
            self.plan.dropped,
        )

    def __call__(self, batches: Batches) -> Batches:
        seen, dropped = self.nothing(), dropped_fields(self.plan, csv=self.csv)
        for batch in batches:
            for each in spaced_fields(self.plan, self.key):
                seen.spacings[each.name].add(numbers_there(batch.column(each.name), each))
            for each in turned_fields(self.plan, self.key):
                seen.means[each.name].add(numbers_there(batch.column(each.name), each))
            left = [dropped[name] for name in seen.empty]
            seen.empty = empty_columns(pa.Table.from_batches([batch]), left) if left else ()
        yield part_of(part_number(), {"seen": seen.to_bytes()})


@dataclass
class _PartReport:
    """What a part tells of its moved rows: columns with missing cells, and texts that look like formulas."""

    gaps: tuple[str, ...]
    formulas: dict[str, int]


@dataclass(frozen=True, eq=False, repr=False)
class _Move:
    """Moves the rows of a part, and gives each its place in the order of its batch."""

    numbered: RowNumbering
    schema: pa.Schema
    plan: ColumnPlan
    key: Key
    spacings: Mapping[str, float]
    means: Mapping[str, ExactMean]
    size: int
    randomness: Randomness
    exact_digits: bool = False

    @property
    def sizes(self) -> list[int]:
        """Rows of each batch, as `runs_of_rows` cuts them."""
        batches = max(1, self.numbered.rows // self.size)
        return [self.size] * (batches - 1) + [self.numbered.rows - self.size * (batches - 1)]

    def __call__(self, batches: Batches) -> Batches:
        mover = BatchTransformer(
            self.schema,
            self.plan,
            self.key,
            self.spacings,
            lambda: means_of(self.means),
            exact_digits=self.exact_digits,
        )
        kinds, part = self.plan.arrow_schema(self.schema), part_number()
        formulas = FormulaCount(kinds.names)
        for batch, block, places in self._pieces(self.numbered.runs(batches)):
            rows = block.table.select(self.plan.names)
            moved = pa.Table.from_arrays(mover.move(rows, None), schema=kinds)
            formulas.add(moved)
            yield part_of(part, {f"{batch:012d}": frame_of(moved.append_column(ORDER, pa.array(places)))})
        part_report = _PartReport(tuple(sorted(mover.gaps)), formulas.cells)
        yield part_of(part, {_REPORT: write_json(part_report, "canonical").encode()})

    def _pieces(self, runs: Iterable[RowBlock]) -> Iterator[tuple[int, RowBlock, NDArray[np.int64]]]:
        """Rows of one batch each, with the place of each in the released table."""
        known, place_of, sizes = -1, np.empty(0, dtype=np.int64), self.sizes
        for block in runs:
            number = np.minimum(block.rows // self.size, len(sizes) - 1)
            for batch in np.unique(number).tolist():
                if batch != known:
                    order = order_of_batch(self.randomness, batch, sizes[batch])
                    known, place_of = batch, np.empty(len(order), dtype=np.int64)
                    place_of[order] = np.arange(len(order))
                some = block.take(np.flatnonzero(number == batch))
                first = batch * self.size
                yield batch, some, first + place_of[some.rows - first]


def _transform(
    frame: DataFrame, numbered: RowNumbering, tried: TriedOnSample, settings: PartitionSettings
) -> tuple[Outcome, DataFrame]:
    """Move all rows of a data frame, and the released rows as one. The key goes to the workers."""
    begin, schema = perf_counter(), tried.sampled
    csv = settings.form is not None and settings.form.format is FileFormat.CSV
    plan = ColumnPlan.of(tried.plan.schema, tried.key)
    randomness, see = tried.plan.randomness, _See(plan, tried.key, csv)
    seen = see.nothing()
    for row in sorted(frames_from(frame, see), key=lambda row: row["part"]):
        seen.merge(_ColumnsSeen.from_bytes(bytes(row["frame"])))
    spacings = finest_of(seen.spacings, plan)
    size = settings.batch_rows or usual_rows(plan, schema)
    exact = tried.mechanism.exact_digits
    work = _Move(numbered, schema, plan, tried.key, spacings, seen.means, size, randomness, exact)
    done = frame.mapInArrow(work, FRAMES).persist()
    gaps, formulas = set[str](), FormulaCount(plan.arrow_schema(schema).names)
    for row in done.filter(done["kind"] == _REPORT).collect():
        part_report = typed(_PartReport, parse_json(bytes(row["frame"])))
        gaps |= set(part_report.gaps)
        for name, cells in part_report.formulas.items():
            formulas.cells[name] = formulas.cells.get(name, 0) + cells
    kinds, rows = plan.arrow_schema(schema), done.filter(done["kind"] != _REPORT)
    if settings.place is not None:
        with settings.open_sink(kinds) as sink:
            for batch in _batches(rows):
                sink.write(pa.RecordBatch.from_arrays([plain(column) for column in batch.columns], schema=kinds))
    moved = MovedRows(plan, seen.empty, gaps, work.sizes, formulas)
    outcome = outcome_of_moving(tried, moved, settings, seconds=perf_counter() - begin, where="table")
    return outcome, _released(rows, kinds)


def _batches(rows: DataFrame) -> Iterator[pa.Table]:
    """Released batches one after the other, each in its order; not more than some of them are here at a time."""
    parts = rows.orderBy("kind", "part").toLocalIterator()
    for _, frames in groupby(parts, key=lambda row: row["kind"]):
        whole = pa.concat_tables([table_of(bytes(row["frame"])) for row in frames])
        order = np.argsort(whole.column(ORDER).to_numpy())
        yield whole.drop_columns([ORDER]).take(pa.array(order))


def _decode(batches: Batches) -> Batches:
    """Rows that frames hold, with numbers to order them by; those of cells as signed ones in the same order."""
    for batch in batches:
        for frame in batch.column("frame").to_pylist():
            table = table_of(frame)
            if pa.types.is_unsigned_integer(table.schema.field(ORDER).type):
                order = table.column(ORDER).to_numpy() ^ np.uint64(1 << 63)
                table = table.drop_columns([ORDER]).append_column(ORDER, pa.array(order.view(np.int64)))
            yield from table.combine_chunks().to_batches()


def _released(rows: DataFrame, kinds: pa.Schema) -> DataFrame:
    """Released rows as a data frame, in the order that chance gave them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    types = from_arrow_schema(kinds.append(pa.field(ORDER, pa.int64())))
    return rows.select("frame").mapInArrow(_decode, types).orderBy(ORDER).drop(ORDER)
