"""Rows moved by a key on a cluster: the sample, numbers and batches of `engines.chunks`, wherever the rows are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.documents import parse_json, typed, write_json
from sfumato.core.errors import TableError
from sfumato.core.randomness import Randomness
from sfumato.engines.cells.reading import Run
from sfumato.engines.cells.run import Into
from sfumato.engines.cells.spill import frame_of, table_of
from sfumato.engines.chunks.means import ExactMean
from sfumato.engines.chunks.move import (
    ColumnPlan,
    Mover,
    means_of,
    numbers_there,
    plan_columns,
    spaced_fields,
    turned_fields,
)
from sfumato.engines.chunks.run import Tried, outcome_of_moving
from sfumato.engines.chunks.source import Reservoir, Source
from sfumato.engines.chunks.transform import (
    dropped_fields,
    facts_around,
    facts_of_moving,
    order_of_batch,
    usual_rows,
)
from sfumato.engines.columns import empty_columns
from sfumato.engines.outcome import Outcome
from sfumato.engines.spark.parts import FRAMES, Batches, Numbered, frames_from, part_number, part_of
from sfumato.mechanisms.geometry.key import Key
from sfumato.mechanisms.geometry.move import Spacing
from sfumato.tables.cells import plain
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.spreadsheet import FormulaCount

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["move_on_spark", "sample_on_spark"]

_DRAWN, _ORDER = "\x1fdrawn", "\x1forder"
_TOLD = "told"


@dataclass(frozen=True, eq=False, repr=False)
class _Sample:
    """Draws a sample of a part: the numbers that `sample_file` draws for its rows."""

    numbered: Numbered
    rows: int
    randomness: Randomness

    def __call__(self, batches: Batches) -> Batches:
        part = part_number()
        rng, found = self.randomness.generator("sample", after=self.numbered.starts[part]), Reservoir(self.rows)
        for run in self.numbered.runs(batches):
            found.add(run.table, rng.random(len(run)))
        if found.kept is not None:
            yield part_of(part, {"rows": frame_of(found.kept.append_column(_DRAWN, pa.array(found.drawn)))})


def sample_on_spark(frame: DataFrame, numbered: Numbered, rows: int, randomness: Randomness) -> pa.Table:
    """Rows of a data frame drawn without replacement, in its order; with a seed those of a file of the same rows."""
    sample = Reservoir(rows)
    for row in sorted(frames_from(frame, _Sample(numbered, rows, randomness)), key=lambda row: row["part"]):
        part = table_of(bytes(row["frame"]))
        sample.add(part.drop_columns([_DRAWN]), part.column(_DRAWN).to_numpy())
    if sample.kept is None:
        raise TableError("the data frame has no rows; bring some")
    return sample.kept


@dataclass
class _Seen:
    """What all rows tell of columns before they are moved; grows part by part."""

    spacings: dict[str, Spacing] = field(default_factory=dict)
    means: dict[str, ExactMean] = field(default_factory=dict)
    empty: tuple[str, ...] = ()

    def merge(self, other: _Seen) -> None:
        for name, spacing in other.spacings.items():
            self.spacings[name].merge(spacing)
        for name, mean in other.means.items():
            self.means[name].merge(mean)
        self.empty = tuple(name for name in self.empty if name in other.empty)

    def to_bytes(self) -> bytes:
        told = {
            "spacings": {
                name: [each.apart, each.lost, each.first, each.low, each.high]
                for name, each in ((name, _plain(each)) for name, each in self.spacings.items())
            },
            "means": {name: [f"{each.total:x}", each.count] for name, each in self.means.items()},
            "empty": list(self.empty),
        }
        return write_json(told, "canonical").encode()

    @classmethod
    def from_bytes(cls, body: bytes) -> _Seen:
        told = parse_json(body)
        return cls(
            {
                name: Spacing(apart, lost, first, 0, low, high)
                for name, (apart, lost, first, low, high) in told["spacings"].items()
            },
            {name: ExactMean(int(total, 16), count) for name, (total, count) in told["means"].items()},
            tuple(told["empty"]),
        )


def _plain(spacing: Spacing) -> Spacing:
    return Spacing(lost=True, first=0.0) if spacing.lost else spacing


@dataclass(frozen=True, eq=False, repr=False)
class _See:
    """Looks at a part for what must be known of all rows."""

    plan: ColumnPlan
    key: Key
    csv: bool

    def nothing(self) -> _Seen:
        return _Seen(
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
class _Told:
    """What a part tells of its moved rows: columns with missing cells, and texts that look like formulas."""

    gaps: tuple[str, ...]
    formulas: dict[str, int]


@dataclass(frozen=True, eq=False, repr=False)
class _Move:
    """Moves the rows of a part, and gives each its place in the order of its batch."""

    numbered: Numbered
    schema: pa.Schema
    plan: ColumnPlan
    key: Key
    spacings: Mapping[str, float]
    means: Mapping[str, ExactMean]
    size: int
    randomness: Randomness

    @property
    def sizes(self) -> list[int]:
        """Rows of each batch, as `runs_of_rows` cuts them."""
        batches = max(1, self.numbered.rows // self.size)
        return [self.size] * (batches - 1) + [self.numbered.rows - self.size * (batches - 1)]

    def __call__(self, batches: Batches) -> Batches:
        mover = Mover(self.schema, self.plan, self.key, self.spacings, lambda: means_of(self.means))
        kinds, part = self.plan.arrow_schema(self.schema), part_number()
        formulas = FormulaCount(kinds.names)
        for batch, run, places in self._pieces(self.numbered.runs(batches)):
            rows = run.table.select(self.plan.names)
            moved = pa.Table.from_arrays(mover.move(rows, None), schema=kinds)
            formulas.add(moved)
            yield part_of(part, {f"{batch:012d}": frame_of(moved.append_column(_ORDER, pa.array(places)))})
        told = _Told(tuple(sorted(mover.gaps)), formulas.cells)
        yield part_of(part, {_TOLD: write_json(told, "canonical").encode()})

    def _pieces(self, runs: Iterable[Run]) -> Iterator[tuple[int, Run, NDArray[np.int64]]]:
        """Rows of one batch each, with the place of each in the released table."""
        known, place_of, sizes = -1, np.empty(0, dtype=np.int64), self.sizes
        for run in runs:
            number = np.minimum(run.rows // self.size, len(sizes) - 1)
            for batch in np.unique(number).tolist():
                if batch != known:
                    order = order_of_batch(self.randomness, batch, sizes[batch])
                    known, place_of = batch, np.empty(len(order), dtype=np.int64)
                    place_of[order] = np.arange(len(order))
                some = run.take(np.flatnonzero(number == batch))
                first = batch * self.size
                yield batch, some, first + place_of[some.rows - first]


def move_on_spark(
    frame: DataFrame,
    numbered: Numbered,
    tried: Tried,
    schema: pa.Schema,
    *,
    batch_rows: int | None = None,
    csv: bool = False,
    into: Into | None = None,
    spreadsheet_safe: bool = False,
) -> tuple[Outcome, DataFrame]:
    """Move all rows of a data frame, and the released rows as one; they go ``into`` a sink here too, if there is one.

    ``schema`` is that of the rows as workers get them. The chance of what was tried must be repeatable. The key goes to
    the workers.
    """
    source = Source(Path("spark"), FileForm(FileFormat.ARROW), schema, numbered.rows)
    allowed = tried.mechanism.pass_categories
    plan = plan_columns(source, tried.key, schema=tried.plan.schema, pass_categories=allowed)
    randomness, see = tried.plan.randomness, _See(plan, tried.key, csv)
    seen = see.nothing()
    for row in sorted(frames_from(frame, see), key=lambda row: row["part"]):
        seen.merge(_Seen.from_bytes(bytes(row["frame"])))
    spacings = {name: each.apart for name, each in seen.spacings.items()}
    size = batch_rows or usual_rows(plan, schema)
    work = _Move(numbered, schema, plan, tried.key, spacings, seen.means, size, randomness)
    done = frame.mapInArrow(work, FRAMES).persist()
    gaps, formulas = set[str](), FormulaCount(plan.arrow_schema(schema).names)
    for row in done.filter(done["kind"] == _TOLD).collect():
        told = typed(_Told, parse_json(bytes(row["frame"])))
        gaps |= set(told.gaps)
        for name, cells in told.formulas.items():
            formulas.cells[name] = formulas.cells.get(name, 0) + cells
    kinds, rows = plan.arrow_schema(schema), done.filter(done["kind"] != _TOLD)
    if into is not None:
        with into(kinds) as sink:
            for batch in _batches(rows):
                sink.write(pa.RecordBatch.from_arrays([plain(column) for column in batch.columns], schema=kinds))
    facts = (
        *facts_around(plan, seen.empty, randomness),
        *facts_of_moving(plan, tried.key, gaps, work.sizes, shuffled=True),
        *formulas.facts(quoted=spreadsheet_safe),
    )
    outcome = outcome_of_moving(tried, source.path, numbered.rows, plan.public, facts, where="table")
    return outcome, _released(rows, kinds)


def _batches(rows: DataFrame) -> Iterator[pa.Table]:
    """Released batches one after the other, each in its order; not more than some of them are here at a time."""
    parts = rows.orderBy("kind", "part").toLocalIterator()
    for _, frames in groupby(parts, key=lambda row: row["kind"]):
        whole = pa.concat_tables([table_of(bytes(row["frame"])) for row in frames])
        order = np.argsort(whole.column(_ORDER).to_numpy())
        yield whole.drop_columns([_ORDER]).take(pa.array(order))


def _decode(batches: Batches) -> Batches:
    for batch in batches:
        for frame in batch.column("frame").to_pylist():
            yield from table_of(frame).combine_chunks().to_batches()


def _released(rows: DataFrame, kinds: pa.Schema) -> DataFrame:
    """Released rows as a data frame, in the order that chance gave them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    types = from_arrow_schema(kinds.append(pa.field(_ORDER, pa.int64())))
    return rows.select("frame").mapInArrow(_decode, types).orderBy(_ORDER).drop(_ORDER)
