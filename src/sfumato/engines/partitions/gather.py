"""How rows are given to partitions, and what the partitions of a run become together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from sfumato.assess.risk.uniqueness import PopulationUniqueness
from sfumato.core.arrays import ExactMean
from sfumato.core.documents import parse_json, write_json
from sfumato.core.errors import SchemaError, SfumatoError
from sfumato.core.facts import Fact, HeldOut, fact_from_json, fact_to_json
from sfumato.core.progress import tell
from sfumato.core.randomness import Randomness
from sfumato.core.records import BlockKind, columns_of
from sfumato.engines.measured import measured_note
from sfumato.engines.memory import grown_again
from sfumato.engines.outcome import Comparison, NoComparison, Outcome
from sfumato.engines.partitions import PartitionTree, leaves_of
from sfumato.engines.partitions.first_pass import SAMPLE_ROWS, Preparation, RowBlock
from sfumato.engines.partitions.memory_limit import Spill, frame_of, table_of
from sfumato.engines.partitions.partition import LEVEL, OUTSIDE, ROW, PartitionResult, merge_facts
from sfumato.engines.partitions.population import PopulationCounts
from sfumato.engines.plan import rules_to_repair
from sfumato.methods.condense.classwise import FLOOR, ClasswiseCondensation, GroupSize, choose_size
from sfumato.methods.condense.facts import ClassPure
from sfumato.methods.perturb import AdditiveNoise, MultiplicativeNoise
from sfumato.methods.protocol import OwnerDetails
from sfumato.tables.cells import plain
from sfumato.tables.files import FileForm
from sfumato.tables.grid import repair_table
from sfumato.tables.levels import levels_of_table
from sfumato.tables.persons import persons_of_table
from sfumato.tables.rules import (
    Rule,
    broken_rows,
    cells_of_column,
    enforce_by_copying,
    period_of,
    rules_within,
    tied_columns,
)
from sfumato.tables.schema import Role, Schema
from sfumato.tables.source import TableSink, open_sink
from sfumato.tables.spreadsheet import FormulaCount

__all__ = [
    "ORDER",
    "AllocationCounts",
    "PartitionSettings",
    "RowAllocator",
    "SanitizedPartitions",
    "chosen_size",
    "frames_of",
    "gather",
    "kept_rules",
]


@dataclass
class AllocationCounts:
    """What was counted while rows were cut: grows run by run.

    ``rows`` of each leaf and, where rows are not people, ``people`` of each; those of each part, and of the table.
    ``moments`` are what a method that adds noise must know: of each number the exact sums of coordinates and of their
    squares, in the smallest units of a double and base 16, and how many there are.
    """

    rows: list[int]
    held_out: int = 0
    broken: dict[str, int] = field(default_factory=dict)
    people: list[int] | None = None
    people_of_parts: list[int] = field(default_factory=list)
    people_of_all: int = 0
    moments: dict[str, tuple[str, str, int]] = field(default_factory=dict)

    def add(self, other: AllocationCounts) -> None:
        """Add what was counted of other rows, but for people, who may be the same."""
        self.rows = [one + two for one, two in zip(self.rows, other.rows, strict=True)]
        self.held_out += other.held_out
        for rule, broken in other.broken.items():
            self.broken[rule] = self.broken.get(rule, 0) + broken
        for name, (sums, squares, count) in other.moments.items():
            own = self.moments.get(name, ("0", "0", 0))
            self.moments[name] = _added(own[0], sums), _added(own[1], squares), own[2] + count

    def mean_and_deviation(self) -> dict[str, tuple[float, float]]:
        """Of each number whose moments were counted, in its coordinates, each rounded once."""
        found = {}
        for name, (sums, squares, count) in self.moments.items():
            mean, square = (ExactMean(int(text, 16), count).mean for text in (sums, squares)) if count else (0.0, 0.0)
            found[name] = mean, float(np.sqrt(max(0.0, square - mean * mean)))
        return found


def _added(one: str, two: str) -> str:
    return f"{int(one, 16) + int(two, 16):x}"


class _LeafPersons:
    """Different persons of each leaf, by their numbers."""

    def __init__(self, leaves: int) -> None:
        self._found: list[list[NDArray[np.uint64]]] = [[] for _ in range(leaves)]
        self._least = [0] * leaves

    def add(self, leaf: int, persons: NDArray[np.uint64]) -> None:
        found = self._found[leaf]
        found.append(np.unique(persons))
        if sum(map(len, found)) > 2 * self._least[leaf] + 65_536:
            self._least[leaf] = len(self.of([leaf]))

    def of(self, leaves: Iterable[int]) -> NDArray[np.uint64]:
        leaves = list(leaves)
        for leaf in leaves:
            if len(self._found[leaf]) > 1:
                self._found[leaf] = [np.unique(np.concatenate(self._found[leaf]))]
        nobody = [np.empty(0, dtype=np.uint64)]
        return np.unique(np.concatenate([*nobody, *(each for leaf in leaves for each in self._found[leaf])]))


class RowAllocator:
    """Hands rows of a source to leaves, as every engine does it, and counts; mutable for the sake of one pass."""

    def __init__(self, prepared: Preparation, cuts: PartitionTree) -> None:
        self.prepared, self.cuts = prepared, cuts
        self.counted = AllocationCounts([0] * cuts.leaves)
        schema = prepared.plan.schema
        self._names = [column.field.name for column in prepared.job.codec.columns]
        self._beside = [each.name for each in schema if each.role in (Role.PUBLIC, Role.PERSON)]
        self._rules = _RuleCounter(prepared)
        self.people = _LeafPersons(cuts.leaves)

    def count(self) -> AllocationCounts:
        """What was counted, once all rows were cut."""
        parts = [list(leaves_of(tree)) for tree in self.cuts.trees]
        if self.prepared.row_hash.person is None:
            self.counted.people_of_parts = [sum(self.counted.rows[leaf] for leaf in leaves) for leaves in parts]
            self.counted.people_of_all = sum(self.counted.rows)
        else:
            self.counted.people = [len(self.people.of([leaf])) for leaf in range(self.cuts.leaves)]
            self.counted.people_of_parts = [len(self.people.of(leaves)) for leaves in parts]
            self.counted.people_of_all = len(self.people.of(range(self.cuts.leaves)))
        return self.counted

    def allocate(self, block: RowBlock) -> Iterator[tuple[int, pa.Table]]:
        """Leaves of some rows, each with its rows."""
        plan, row_hash = self.prepared.plan, self.prepared.row_hash
        block = RowBlock(repair_table(block.table, plan.schema, level=plan.options.level), block.rows)
        out = row_hash.held_out(block)
        if out.any():
            yield from self.allocate_held_out(block.take(np.flatnonzero(out)))
            block = block.take(np.flatnonzero(~out))
        if not len(block):
            return
        level_1 = plan.mechanism.traits.level_1
        levels, _ = levels_of_table(plan.options.level, block.table, plan.schema, allow_level_1=level_1, among=2**31)
        table, persons = block.table, row_hash.of_persons(block.table)
        if self.prepared.job.shared is not None:
            table = self.prepared.job.shared.part(table, row_hash.of_rows(block.rows, "filled"))
        table = self._rules.obeyed(table)
        coded = self.prepared.job.tails.code(table.select(self._names), np.full(table.num_rows, 0.5))
        values = self.prepared.job.codec.encode(coded).values
        self._add_moments(values)
        self._rules.add(table, self.counted.broken)
        leaf = self.cuts.leaf_of(table, values)
        if (leaf < 0).any():
            raise SfumatoError("rows are of a stratum that was not seen before; the file changed while it was read")
        for each, count in enumerate(np.bincount(leaf, minlength=self.cuts.leaves).tolist()):
            self.counted.rows[each] += count
        yield from self._by_leaf(table, block.rows, levels, leaf, persons, outside=False)

    def _add_moments(self, values: NDArray[np.float64]) -> None:
        """Count the moments of numbers, where noise is measured by them."""
        if not isinstance(self.prepared.plan.mechanism, AdditiveNoise | MultiplicativeNoise):
            return
        part = AllocationCounts([0] * self.cuts.leaves)
        for number, missing in columns_of(self.prepared.job.codec.layout):
            if number.kind is BlockKind.NUMBER:
                there = slice(None) if missing is None else values[:, missing.start] <= 0.5
                sums, squares, x = ExactMean(), ExactMean(), values[there, number.start]
                sums.add(x)
                squares.add(x * x)
                part.moments[number.column] = (f"{sums.total:x}", f"{squares.total:x}", sums.count)
        self.counted.add(part)

    def allocate_held_out(self, block: RowBlock) -> Iterator[tuple[int, pa.Table]]:
        """The same of rows that are held out: they go along to be compared, and count for nothing."""
        shared = self.prepared.job.shared
        filled = self.prepared.row_hash.of_rows(block.rows, "filled")
        table = block.table if shared is None else shared.part(block.table, filled)
        values = self.prepared.job.codec.encode(table.select(self._names), unseen="mean").values
        self.counted.held_out += len(block)
        nothing = np.zeros(len(block), dtype=np.int64)
        yield from self._by_leaf(table, block.rows, nothing, self.cuts.leaf_of(table, values), None, outside=True)

    def _by_leaf(
        self,
        table: pa.Table,
        rows: NDArray[np.int64],
        levels: NDArray[np.int64],
        leaf: NDArray[np.int64],
        persons: NDArray[np.uint64] | None,
        *,
        outside: bool,
    ) -> Iterator[tuple[int, pa.Table]]:
        names = [name for name in dict.fromkeys([*self._names, *self._beside]) if name in table.column_names]
        table = table.select(names)
        table = table.append_column(ROW, pa.array(rows)).append_column(LEVEL, pa.array(levels.astype(np.int32)))
        table = table.append_column(OUTSIDE, pa.array(np.full(len(rows), outside)))
        order = np.argsort(leaf, kind="stable")
        sorted_rows, bounds = table.take(pa.array(order)), np.searchsorted(leaf[order], np.arange(self.cuts.leaves + 1))
        for each in np.unique(leaf[leaf >= 0]).tolist():
            if persons is not None:
                self.people.add(each, persons[leaf == each])
            yield each, sorted_rows.slice(int(bounds[each]), int(bounds[each + 1] - bounds[each]))


class _RuleCounter:
    """Counts the rows that break each rule, beside rows that show what each label decides."""

    def __init__(self, prepared: Preparation) -> None:
        self.schema: Schema = prepared.job.codec.schema
        self.rules = rules_within(self.schema) if prepared.plan.mechanism.traits.synthetic else ()
        original = self.original = prepared.job.original
        self.few = rules_to_repair(self.schema, prepared.plan)
        self.shown: dict[Rule, pa.Table] = {}
        self.periods: dict[Rule, int | None] = {}
        for rule in self.rules:
            cells = {name: cells_of_column(original.column(name), self.schema[name]) for name in rule.columns}
            self.periods[rule] = period_of(rule, cells)
            first = np.unique(cells[rule.columns[0]].values, return_index=True)[1].astype(np.int64)
            self.shown[rule] = original.select(rule.columns).take(pa.array(first if rule.form == "->" else first[:0]))

    def obeyed(self, table: pa.Table) -> pa.Table:
        """Rows of which those that break a rule which few break have the cells of others, of the sample perhaps."""
        found: dict[str, int] = {}
        self.add(table, found)
        rules = [rule for rule in self.few if found.get(str(rule))]
        if not rules:
            return table
        tied = {name for names in tied_columns(self.few, [rule.follows for rule in rules]) for name in names}
        names = [name for name in table.column_names if name in tied]
        both = pa.concat_tables([self.original.select(names), table.select(names)], promote_options="default")
        whole = enforce_by_copying(both, self.schema, [rule for rule in self.few if tied.issuperset(rule.columns)])
        for name in names:
            cells = whole.column(name).slice(self.original.num_rows).cast(table.column(name).type)
            table = table.set_column(table.column_names.index(name), name, cells)
        return table

    def add(self, table: pa.Table, broken: dict[str, int]) -> None:
        for rule in self.rules:
            both = pa.concat_tables([self.shown[rule], table.select(rule.columns)])
            cells = {name: cells_of_column(both.column(name), self.schema[name]) for name in rule.columns}
            found = int(broken_rows(rule, cells, self.periods[rule]).sum())
            if found:
                broken[str(rule)] = broken.get(str(rule), 0) + found


def kept_rules(rules: Iterable[Rule], broken: Mapping[str, int], *, found: bool, rows: int) -> tuple[str, ...]:
    """Rules that no row breaks; one that the owner wrote down must be among them."""
    texts = [str(rule) for rule in rules]
    wrong = [text for text in texts if broken.get(text)]
    if wrong and not found:
        raise SchemaError(f"{broken[wrong[0]]} of {rows} rows break the rule '{wrong[0]}'; fix them, or remove it")
    return tuple(text for text in texts if text not in wrong)


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

    def open_sink(self, schema: pa.Schema, numbers: Sequence[str] = ()) -> AbstractContextManager[TableSink]:
        """The file that the released rows are written to; hardly a number of the columns ``numbers`` comes twice."""
        assert self.place is not None
        assert self.form is not None
        return open_sink(self.place, schema, self.form, numbers=numbers, spreadsheet_safe=self.spreadsheet_safe)


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
    documents = [parse_json(spill.frame(f"cell-{number}", 0)) for number in range(cells)]
    schema = Schema.from_toml(documents[0]["schema"])
    facts = merge_facts(
        [tuple(fact_from_json(fact) for fact in each["facts"]) for each in documents],
        [each["rows_in"] for each in documents],
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
    for each in documents:
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
        recipe=prepared.plan.recipe(dataclasses.replace(prepared.job.input_schema, rules=schema.rules)),
        table=settings.place if settings.place is not None else pa.concat_tables(whole) if whole else None,
        rows_in=sum(each["rows_in"] for each in documents),
        rows_out=sum(each["rows_out"] for each in documents),
        schema=schema,
        facts=(*_around(prepared, counted), *facts, *counts),
        comparison=comparison,
        workings=workings,
        seconds=sum(each["seconds"] for each in documents),
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
) -> tuple[Comparison | NoComparison, OwnerDetails]:
    """Rows of all partitions that are measured, side by side with what they became."""
    prepared, spill, cells, bits = done.prepared, done.spill, done.partitions, done.bits
    if not measured:
        return NoComparison("no report was asked for", codec=prepared.job.codec), OwnerDetails()
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
) -> tuple[Comparison, OwnerDetails]:
    plan, codec = prepared.plan, prepared.job.codec
    names = [column.field.name for column in codec.columns]
    levels = original.column(LEVEL).to_numpy().astype(np.int64)
    records = codec.encode(original.select(names), levels=levels, unseen="mean")
    records = dataclasses.replace(records, persons=persons_of_table(original, plan.schema))
    labels, drawn = original.column(LABEL).to_numpy(), released.column(DRAWN).to_numpy()
    origin = released.column(ORIGIN).to_numpy()
    found, labels = np.unique(labels, return_inverse=True)
    if len(found) and found[0] >= 0:
        workings = OwnerDetails(labels, original.column(MET).to_numpy(), np.searchsorted(found, drawn))
    elif (origin >= 0).any():
        workings = OwnerDetails(origin=origin)
    else:
        order = prepared.plan.randomness.generator("regrown").permutation(released.num_rows)
        made = released.select(names).take(pa.array(order))
        workings = OwnerDetails(regrown=grown_again(prepared.job.codec, made, facts))
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
