"""Cells on a cluster: the same looks, cuts and cells as out of core, each done by whoever has the rows.

The driver sees a sample, witnesses, counts and the rows that are measured; all other rows stay with the workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sfumato.core.documents import parse_json, typed, write_json
from sfumato.core.documents import plain as plain_values
from sfumato.core.errors import OptionError
from sfumato.core.randomness import Randomness
from sfumato.engines.cells.cell import CellTask, sanitize_cell
from sfumato.engines.cells.cuts import Cuts, merged
from sfumato.engines.cells.cutting import Counted, Cutter
from sfumato.engines.cells.learn import HEAD_ROWS, SAMPLE_ROWS, Learned, Look, joined_looks, learn, look_at
from sfumato.engines.cells.reading import Chance, Run
from sfumato.engines.cells.run import (
    ORDER,
    Into,
    bits_of,
    cuts_of,
    frames_of,
    gather,
    in_cells,
    least_people,
    task_of,
    with_all_rows,
)
from sfumato.engines.cells.spill import MemorySpill, frame_of, table_of
from sfumato.engines.outcome import Outcome
from sfumato.engines.spark.parts import FRAMES, Batches, Numbered, frames_from, number_rows, part_number, part_of
from sfumato.mechanisms.protocol import Mechanism
from sfumato.tables.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["run_on_spark"]

_CELL = "\x1fcell"


@dataclass(frozen=True, eq=False, repr=False)
class _Look:
    """Looks at a part of a data frame."""

    numbered: Numbered
    schema: Schema
    k: int
    chance: Chance
    level: str | int | None
    level_1: bool

    def __call__(self, batches: Batches) -> Batches:
        runs = self.numbered.runs(batches)
        look = look_at(runs, self.schema, self.k, self.chance, self.level, level_1=self.level_1)
        counts = {"rows": look.rows, "held_out": look.held_out, "highest": look.highest}
        frames = {"counts": write_json(counts, "canonical").encode()}
        for name in ("sample", "witnesses", "outside"):
            run: Run = getattr(look, name)
            if len(run):
                frames[name] = frame_of(run.table.append_column(_CELL, pa.array(run.rows)))
        yield part_of(part_number(), frames)


@dataclass(frozen=True, eq=False, repr=False)
class _Cut:
    """Gives the rows of a part to cells, or counts them; what is counted is told by parts and added up."""

    numbered: Numbered
    learned: Learned
    cuts: Cuts
    cell_of: tuple[int, ...]

    def count(self, batches: Batches) -> Batches:
        cutter = Cutter(self.learned, self.cuts)
        for run in self.numbered.runs(batches):
            for _ in cutter.cut(run):
                pass
        frames = {"counted": write_json(plain_values(cutter.counted), "canonical").encode()}
        if self.learned.chance.person is not None:
            for leaf in range(self.cuts.leaves):
                frames[f"people {leaf}"] = cutter.people_of([leaf]).tobytes()
        yield part_of(part_number(), frames)

    def rows(self, batches: Batches) -> Batches:
        cutter = Cutter(self.learned, self.cuts)
        for run in self.numbered.runs(batches):
            for leaf, rows in cutter.cut(run):
                cell = pa.array(np.full(rows.num_rows, self.cell_of[leaf], dtype=np.int64))
                yield from rows.append_column(_CELL, cell).combine_chunks().to_batches()


@dataclass(frozen=True, eq=False, repr=False)
class _Sanitize:
    """Sanitizes a cell: its frames, as they wait on disk elsewhere."""

    task: CellTask
    bits: int

    def __call__(self, table: pa.Table) -> pa.Table:
        number = table.column(_CELL)[0].as_py()
        done = sanitize_cell(table.drop_columns([_CELL]), self.task, number)
        frames = {str(place): frame for place, frame in enumerate(frames_of(done, self.bits))}
        return pa.Table.from_batches([part_of(number, frames)])


def run_on_spark(
    frame: DataFrame,
    mechanism: Mechanism,
    randomness: Randomness,
    told: Mapping[str, Any],
    *,
    most_rows: int,
    into: Into | None = None,
    measured: int = SAMPLE_ROWS,
    native: bool = False,
    spreadsheet_safe: bool = False,
) -> tuple[Outcome, DataFrame]:
    """Sanitize a data frame of Spark, and the released rows as one; they go ``into`` a sink here too, if there is one.

    ``randomness`` must be repeatable. A worker that is lost costs its cells' work, which others do again to the bit.
    """
    in_cells(mechanism, told)
    numbered = number_rows(frame)
    level, level_1 = told.get("level"), mechanism.traits.level_1

    def look(schema: Schema, k: int, chance: Chance) -> Look:
        rows = frames_from(frame, _Look(numbered, schema, k, chance, level, level_1))
        return joined_looks(_looks(rows), schema, k, chance, level, level_1=level_1)

    learned = learn(frame.limit(HEAD_ROWS).toArrow(), look, mechanism, randomness, told)
    cuts, light = cuts_of(learned, most_rows), learned.to_cut
    counted = _add_up(frames_from(frame, _Cut(numbered, light, cuts, ()).count), Cutter(light, cuts))
    learned = with_all_rows(learned, counted)
    cells = merged(cuts, counted.rows, counted.people, least_people(learned))
    if not isinstance(told.get("holdout"), float | None):
        raise OptionError("people held out are drawn on the cluster; give --holdout a share, not a file")
    cell_of = [0] * cuts.leaves
    for number, leaves in enumerate(cells):
        for leaf in leaves:
            cell_of[leaf] = number
    (task, pairs), bits = task_of(learned, counted, cells, native=native, measured=measured), bits_of(learned)
    cut = _Cut(numbered, light, cuts, tuple(cell_of))
    rows = frame.mapInArrow(cut.rows, _spark_schema(learned, cuts))
    work = _Sanitize(task, bits)
    done = rows.groupBy(_CELL).applyInArrow(lambda table: work(table), FRAMES).persist()  # whose arguments are counted
    spill = _OnCluster(done, len(cells))
    outcome = gather(
        learned, counted, spill, len(cells), pairs, bits,
        into=into, measured=bool(measured), spreadsheet_safe=spreadsheet_safe, stay=into is None,
    )  # fmt: skip
    return outcome, _released(done, spill, bits)


def _looks(rows: Sequence[Any]) -> Iterator[Look]:
    """Looks at the parts of a data frame, in order."""
    nothing = Run(pa.table({}), np.empty(0, dtype=np.int64))
    for part in sorted({row["part"] for row in rows}):
        frames = {row["kind"]: bytes(row["frame"]) for row in rows if row["part"] == part}
        counts = parse_json(frames.pop("counts"))
        runs = {}
        for name, text in frames.items():
            table = table_of(text)
            runs[name] = Run(table.drop_columns([_CELL]), table.column(_CELL).to_numpy())
        sample, seen, outside = (runs.get(name, nothing) for name in ("sample", "witnesses", "outside"))
        yield Look(sample, seen, outside, counts["rows"], counts["held_out"], counts["highest"])


def _add_up(rows: Sequence[Any], cutter: Cutter) -> Counted:
    """What was counted of all parts."""
    total = cutter.counted
    for row in rows:
        if row["kind"] != "counted":
            leaf = int(row["kind"].removeprefix("people "))
            cutter.add_people(leaf, np.frombuffer(bytes(row["frame"]), dtype=np.uint64))
            continue
        total.add(typed(Counted, parse_json(bytes(row["frame"]))))
    return cutter.count()


def _spark_schema(learned: Learned, cuts: Cuts) -> Any:
    """Types of the rows of cells: those of a cut of the rows that were seen."""
    from pyspark.sql.pandas.types import from_arrow_schema

    cutter, seen = Cutter(learned.to_cut, cuts), learned.seen
    some = Run(seen.table.slice(0, 100), seen.rows[:100])
    found = next(table for _, table in cutter.cut(some))
    return from_arrow_schema(found.append_column(_CELL, pa.array(np.zeros(found.num_rows, dtype=np.int64))).schema)


class _OnCluster(MemorySpill):
    """Frames of cells that lie on the cluster, fetched a place at a time."""

    def __init__(self, done: DataFrame, cells: int) -> None:
        super().__init__()
        self._done, self._cells = done, cells
        self._fetched: tuple[int, dict[int, bytes]] = (-1, {})

    def frame(self, name: str, number: int) -> bytes:
        """One frame of a name."""
        if self._fetched[0] != number:
            rows = self._done.filter(self._done["kind"] == str(number)).collect()
            self._fetched = number, {row["part"]: bytes(row["frame"]) for row in rows}
        return self._fetched[1][int(name.removeprefix("cell-"))]


def _decode(batches: Batches) -> Batches:
    for batch in batches:
        for frame in batch.column("frame").to_pylist():
            table = table_of(frame)
            order = table.column(ORDER).to_numpy() ^ np.uint64(1 << 63)  # signed numbers in the same order
            place = table.column_names.index(ORDER)
            yield from table.set_column(place, ORDER, pa.array(order.view(np.int64))).combine_chunks().to_batches()


def _released(done: DataFrame, spill: _OnCluster, bits: int) -> DataFrame:
    """Released rows as a data frame, in the order that chance gave them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    kinds = table_of(spill.frame("cell-0", 1)).schema
    place = kinds.get_field_index(ORDER)
    types = from_arrow_schema(kinds.set(place, pa.field(ORDER, pa.int64())))
    rows = done.filter(done["kind"].isin([str(1 + each) for each in range(1 << bits)])).select("frame")
    return rows.mapInArrow(_decode, types).orderBy(ORDER).drop(ORDER)
