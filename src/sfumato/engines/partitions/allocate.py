"""The second pass: rare values pooled, rows encoded and allocated to leaves; what only all rows can tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from sfumato.core.errors import SchemaError, SfumatoError
from sfumato.core.exact_mean import ExactMean
from sfumato.core.records import BlockKind, columns_of
from sfumato.engines.partitions.first_pass import Preparation
from sfumato.engines.partitions.partition import LEVEL, OUTSIDE, ROW
from sfumato.engines.partitions.sampling import RowBlock
from sfumato.engines.partitions.tree import PartitionTree, leaves_of
from sfumato.engines.plan import rules_to_repair
from sfumato.methods.perturb import AdditiveNoise, MultiplicativeNoise
from sfumato.tables.levels import levels_of_table
from sfumato.tables.repair import repair_table
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

__all__ = ["AllocationCounts", "RowAllocator", "kept_rules"]


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
        table = block.table if shared is None else shared.like(block.table)
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
