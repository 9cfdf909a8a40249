"""What the partitions of a run become together: released rows in random order, facts, and rows to measure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.assess.risk.uniqueness import PopulationUniqueness
from sfumato.core.documents import parse_json, write_json
from sfumato.core.facts import Fact, HeldOut, fact_from_json, fact_to_json
from sfumato.core.progress import tell
from sfumato.core.randomness import Randomness
from sfumato.engines.memory import grown_again, measured_note
from sfumato.engines.outcome import Apart, Comparison, Outcome
from sfumato.engines.partitions.allocate import AllocationCounts
from sfumato.engines.partitions.first_pass import Preparation
from sfumato.engines.partitions.partition import LEVEL, PartitionResult, merge_facts
from sfumato.engines.partitions.population import PopulationCounts
from sfumato.engines.partitions.sampling import SAMPLE_ROWS
from sfumato.engines.partitions.spill import Spill, frame_of, table_of
from sfumato.methods.condense.classwise import FLOOR, ClasswiseCondensation, GroupSize, choose_size
from sfumato.methods.condense.facts import ClassPure
from sfumato.methods.protocol import OwnerDetails
from sfumato.tables.cells import plain
from sfumato.tables.files import FileForm
from sfumato.tables.persons import persons_of_table
from sfumato.tables.schema import Role, Schema
from sfumato.tables.sink import TableSink, open_sink
from sfumato.tables.spreadsheet import FormulaCount

__all__ = ["ORDER", "PartitionSettings", "SanitizedPartitions", "chosen_size", "frames_of", "gather"]

ORDER = "\x1forder"
"""Column of the number by chance that orders released rows."""


@dataclass(frozen=True)
class PartitionSettings:
    """How a run in partitions goes about it.

    Parameters
    ----------
    randomness : Randomness
        Repeatable, so that every worker draws the same.
    most_rows : int
        Rows of a partition, about.
    measured : int
        Rows that are kept to be compared with what they became, about.
    quasi_identifiers : tuple of str
        Columns that an attacker is taken to know.
    native : bool
        Write numbers and dates that came as text in types of their own.
    place : Path, optional
        File that the released rows are written to; without, they stay where the rows are.
    form : FileForm, optional
        Of that file.
    spreadsheet_safe : bool
        Write CSV with an apostrophe before what a spreadsheet would take for a formula.
    batch_rows : int, optional
        Rows of a batch of a method that transforms rows one by one.
    """

    randomness: Randomness
    most_rows: int = SAMPLE_ROWS
    measured: int = SAMPLE_ROWS
    quasi_identifiers: tuple[str, ...] = ()
    native: bool = False
    place: Path | None = None
    form: FileForm | None = None
    spreadsheet_safe: bool = False
    batch_rows: int | None = None

    def __repr__(self) -> str:
        return f"PartitionSettings({self.most_rows} rows)"

    def open_sink(self, schema: pa.Schema) -> AbstractContextManager[TableSink]:
        """The file that the released rows are written to."""
        assert self.place is not None
        assert self.form is not None
        return open_sink(self.place, schema, self.form, spreadsheet_safe=self.spreadsheet_safe)


def chosen_size(prepared: Preparation, counted: AllocationCounts) -> GroupSize | None:
    """Group size that class-wise condensation chooses from the sizes of all classes; None if it does not."""
    mechanism = prepared.plan.mechanism
    if not isinstance(mechanism, ClasswiseCondensation) or mechanism.k is not None:
        return None
    return choose_size(np.array(counted.people_of_parts), FLOOR, mechanism.tolerance)


def frames_of(done: PartitionResult, bits: int) -> list[bytes]:
    """A finished cell as frames: what was done, its rows bucket by bucket, and those that are measured."""
    facts = [fact_to_json(fact) for fact in done.facts]
    formulas = FormulaCount(done.table.column_names)
    formulas.add(done.table)
    about = {"facts": facts, "rows_in": done.rows_in, "seconds": done.seconds, "schema": done.schema.to_toml()}
    about |= {"rows_out": done.table.num_rows, "formulas": formulas.cells}
    bucket = done.order >> np.uint64(64 - bits) if bits else np.zeros(len(done.order), dtype=np.uint64)
    table = done.table.append_column(ORDER, pa.array(done.order))
    frames = [write_json(about, "canonical").encode()]
    frames += [frame_of(table.filter(pa.array(bucket == each))) for each in range(1 << bits)]
    if done.compared is not None:
        kept = done.compared
        original = kept.original.append_column(LABEL, pa.array(kept.labels)).append_column(MET, pa.array(kept.met))
        released = kept.released.append_column(DRAWN, pa.array(kept.drawn_from))
        released = released.append_column(ORIGIN, pa.array(kept.origin))
        frames += [frame_of(original), frame_of(released), frame_of(kept.outside), frame_of(done.counted)]
    return frames


@dataclass(frozen=True, eq=False, repr=False)
class SanitizedPartitions:
    """Partitions that are sanitized, their frames in a spill; ``pairs`` says whether kept rules may show rare pairs."""

    prepared: Preparation
    counted: AllocationCounts
    spill: Spill
    partitions: int
    bits: int
    pairs: bool


def gather(done: SanitizedPartitions, settings: PartitionSettings, *, keep: bool) -> Outcome:
    """What came of all partitions: their rows in random order, facts, and what is measured.

    Rows that are written to no file come as a table if they are to be kept.
    """
    prepared, counted, spill = done.prepared, done.counted, done.spill
    cells, bits = done.partitions, done.bits
    told = [parse_json(spill.frame(f"cell-{number}", 0)) for number in range(cells)]
    schema = Schema.from_toml(told[0]["schema"])
    facts = merge_facts(
        [tuple(fact_from_json(fact) for fact in each["facts"]) for each in told],
        [each["rows_in"] for each in told],
        persons=counted.people_of_all if prepared.row_hash.person is not None else None,
        classes=_classes(prepared),
        pairs=done.pairs,
    )
    size = chosen_size(prepared, counted)
    if size is not None:
        named = dataclasses.asdict(size)
        facts = tuple(dataclasses.replace(each, **named) if isinstance(each, ClassPure) else each for each in facts)
    kinds = pa.schema([field for field in table_of(spill.frame("cell-0", 1)).schema if field.name != ORDER])
    formulas, whole = FormulaCount(kinds.names), list[pa.Table]()
    for each in told:
        for name, count in each["formulas"].items():
            formulas.cells[name] = formulas.cells.get(name, 0) + count
    if settings.place is not None:
        with settings.open_sink(kinds) as sink:
            for table in _ordered(spill, cells, bits):
                for batch in table.to_batches():
                    sink.write(batch)
    elif keep:
        whole = list(_ordered(spill, cells, bits))
    counts = () if whole else formulas.facts(quoted=settings.spreadsheet_safe)  # else counted when it is certified
    comparison, workings = comparison_of(done, facts, measured=bool(settings.measured))
    return Outcome(
        recipe=prepared.plan.recipe(dataclasses.replace(prepared.job.told, rules=schema.rules)),
        table=settings.place if settings.place is not None else pa.concat_tables(whole) if whole else None,
        rows_in=sum(each["rows_in"] for each in told),
        rows_out=sum(each["rows_out"] for each in told),
        schema=schema,
        facts=(*_around(prepared, counted), *facts, *counts),
        comparison=comparison,
        workings=workings,
        seconds=sum(each["seconds"] for each in told),
    )


def _ordered(spill: Spill, cells: int, bits: int) -> Iterator[pa.Table]:
    """Released rows bucket by bucket, each in the order of its numbers."""
    for bucket in range(1 << bits):
        parts = [table_of(spill.frame(f"cell-{number}", 1 + bucket)) for number in range(cells)]
        table = pa.concat_tables(parts).combine_chunks()
        order = np.argsort(table.column(ORDER).to_numpy(), kind="stable")
        yield table.drop_columns([ORDER]).take(pa.array(order)).combine_chunks()
        tell("writing rows", (bucket + 1) / (1 << bits))


def _classes(prepared: Preparation) -> int:
    target = prepared.job.codec.schema.target
    if target is None:
        return 1
    column = prepared.job.original.column(target.name)
    return len(plain(column).unique())


def _around(prepared: Preparation, counted: AllocationCounts) -> Iterator[Fact]:
    """Facts of what was done around the cells, counted over all rows."""
    yield from prepared.job.facts
    if isinstance(prepared.plan.options.holdout, float) and counted.held_out:
        yield HeldOut(counted.held_out)


LABEL, MET, DRAWN, ORIGIN = "\x1flabel", "\x1fmet", "\x1fdrawn", "\x1forigin"
"""Columns of measured rows: group and level met of an original one; group and original that a released one is of."""


def comparison_of(
    done: SanitizedPartitions, facts: Sequence[Fact], *, measured: bool
) -> tuple[Comparison | Apart, OwnerDetails | None]:
    """Rows of all partitions that are measured, side by side with what they became."""
    prepared, spill, cells, bits = done.prepared, done.spill, done.partitions, done.bits
    if not measured:
        return Apart("no report was asked for", codec=prepared.job.codec), None
    originals, releases, outsides, tally = [], [], [], None
    groups = rows = 0
    for number in range(cells):
        original, released, outside, held = (
            table_of(spill.frame(f"cell-{number}", 1 + (1 << bits) + each)) for each in range(4)
        )
        if held.num_columns:
            tally = PopulationCounts(prepared) if tally is None else tally
            tally.add(held)
        labels, drawn = (table.column(name).to_numpy() for table, name in ((original, LABEL), (released, DRAWN)))
        origin = released.column(ORIGIN).to_numpy()
        originals.append(_set(original, LABEL, np.where(labels < 0, -1, labels + groups)))
        releases.append(
            _set(
                _set(released, DRAWN, np.where(drawn < 0, -1, drawn + groups)),
                ORIGIN,
                np.where(origin < 0, -1, origin + rows),
            )
        )
        outsides.append(outside)
        groups += int(labels.max(initial=-1)) + 1
        rows += original.num_rows
    whole = (pa.concat_tables(each).combine_chunks() for each in (originals, releases, outsides))
    return _compared(prepared, facts, () if tally is None else tally.standings(), *whole)


def _set(table: pa.Table, name: str, values: NDArray[np.int64]) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def _compared(
    prepared: Preparation,
    facts: Sequence[Fact],
    standings: tuple[PopulationUniqueness, ...],
    original: pa.Table,
    released: pa.Table,
    outside: pa.Table,
) -> tuple[Comparison, OwnerDetails | None]:
    plan, codec = prepared.plan, prepared.job.codec
    names = [column.field.name for column in codec.columns]
    levels = original.column(LEVEL).to_numpy().astype(np.int64)
    records = codec.encode(original.select(names), levels=levels, unseen="mean")
    records = dataclasses.replace(records, persons=persons_of_table(original, plan.schema))
    labels, drawn = original.column(LABEL).to_numpy(), released.column(DRAWN).to_numpy()
    origin = released.column(ORIGIN).to_numpy()
    found, labels = np.unique(labels, return_inverse=True)
    workings: OwnerDetails | None = None
    if len(found) and found[0] >= 0:
        workings = OwnerDetails(labels, original.column(MET).to_numpy(), np.searchsorted(found, drawn))
    elif (origin >= 0).any():
        workings = OwnerDetails(origin=origin)
    else:
        order = prepared.plan.randomness.generator("regrown").permutation(released.num_rows)
        regrown = grown_again(prepared.job.codec, released.select(names).take(pa.array(order)), facts)
        workings = None if regrown is None else OwnerDetails(regrown=regrown)
    whole, measured = prepared.first_pass.rows, original.num_rows
    note = f"Measured on all {whole} rows." if measured == whole else measured_note(measured, whole)
    if standings:
        people = len(standings[0].frequencies)
        note += f" Who is alone with a value was counted over all rows, for {people} of them, and categories for all."
    beside = [field.name for field in plan.schema if field.role is Role.PERSON]
    held = None
    if outside.num_rows:
        held = outside.select([name for name in (*names, *beside) if name in outside.column_names])
    return (
        Comparison(original.select(names), released.select(names), codec, records, held, (note,), standings=standings),
        workings,
    )
