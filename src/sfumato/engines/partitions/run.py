"""The engine for tables in partitions: scan and allocate rows, sanitize each partition, and write the rows shuffled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from sfumato.core.arrays import Ints
from sfumato.core.documents import parse_json, typed, write_json
from sfumato.core.documents import plain as plain_values
from sfumato.core.errors import OptionError
from sfumato.core.progress import tell
from sfumato.core.randomness import Randomness
from sfumato.engines.memory import min_frequency_of
from sfumato.engines.outcome import Outcome
from sfumato.engines.partitions import PartitionTree, grow_partition_tree, merge_leaves
from sfumato.engines.partitions.batches import TriedOnSample, transform_rows
from sfumato.engines.partitions.first_pass import (
    FirstPass,
    Preparation,
    RowBlock,
    RowHash,
    RowSampler,
    RowScan,
    ScannedRows,
    prepare_partitions,
    read_blocks,
)
from sfumato.engines.partitions.gather import (
    AllocationCounts,
    PartitionSettings,
    RowAllocator,
    SanitizedPartitions,
    chosen_size,
    frames_of,
    gather,
    kept_rules,
)
from sfumato.engines.partitions.memory_limit import LEAST_ROWS, Spill, table_of
from sfumato.engines.partitions.partition import PartitionTask, sanitize_partition
from sfumato.engines.partitions.population import choose_probes
from sfumato.methods.chain import Chain
from sfumato.methods.condense import Condensation
from sfumato.methods.condense.classwise import ClasswiseCondensation
from sfumato.methods.perturb import AdditiveNoise, MultiplicativeNoise
from sfumato.methods.protocol import Mechanism
from sfumato.methods.randomize import Randomization
from sfumato.options import RunOptions, first_needing_all_rows
from sfumato.tables.codec import Codec, rescale
from sfumato.tables.frames import to_arrow
from sfumato.tables.kept_rules import enforce_rules
from sfumato.tables.recoding import known_columns
from sfumato.tables.schema import Role
from sfumato.tables.source import TableSource

if TYPE_CHECKING:
    from sfumato.engines.private import DeclaredReading, DrawnRows
    from sfumato.methods.private.people import AllPeople, People
    from sfumato.methods.private.stored import StoredModel

__all__ = ["FileRows", "PartitionedRows", "check_partitioned", "run_partitioned"]

_OF_PERSONS = 64  # parts of the rows, so that all rows of a person are read together
_BUCKET_ROWS = 1 << 18  # released rows that are put in order at a time


def check_partitioned(mechanism: Mechanism, options: RunOptions) -> None:
    """Refuse a method, or a choice, that needs all rows at once.

    Raises
    ------
    OptionError
        With what to take in its place.
    """
    noise = AdditiveNoise | MultiplicativeNoise
    if isinstance(mechanism, noise) and (mechanism.correlated or mechanism.enhance):
        option = "correlated" if mechanism.correlated else "enhance"
        raise OptionError(f"--{option} needs all rows at once; leave it out, or grant more memory with --memory")
    counted = mechanism.traits.declared  # nothing but counts is learnt of the rows
    if not (counted or isinstance(mechanism, Chain | Condensation | ClasswiseCondensation | Randomization | noise)):
        raise OptionError(
            f"the method {mechanism.method!r} needs all rows at once, and the table does not go into memory at once; "
            "take chain, private, condense, classwise, randomize or noise, or grant more with --memory"
        )
    needs = first_needing_all_rows(options)
    if needs is not None:
        raise OptionError(f"{needs} needs all rows at once; leave it out, or grant more memory with --memory")


class PartitionedRows(ScannedRows, Protocol):
    """Rows of a table, wherever they lie, and how work is mapped over their partitions; for one run."""

    def allocate(self, prepared: Preparation, cuts: PartitionTree) -> AllocationCounts:
        """Give every row to a leaf, and count."""
        ...

    def sanitize(self, task: PartitionTask, partitions: Sequence[Sequence[int]], bits: int) -> Spill:
        """Frames of all partitions, each a set of leaves, once they are sanitized."""
        ...

    def sample(self, row_hash: RowHash) -> pa.Table:
        """Rows drawn without replacement, in their order."""
        ...

    def transform(self, tried: TriedOnSample, settings: PartitionSettings) -> Outcome:
        """All rows, transformed batch by batch as the sample was."""
        ...

    def people(self, reading: DeclaredReading) -> AllPeople:
        """All rows as people in partitions, for a method that only counts them."""
        ...

    def draw(self, stored: StoredModel, rows: int, settings: PartitionSettings) -> DrawnRows:
        """Rows of a released model, written if a file is named, and some of them to measure."""
        ...

    @property
    def gathers(self) -> bool:
        """Whether released rows that are written to no file come to this process."""
        ...


def run_partitioned(
    rows: PartitionedRows, mechanism: Mechanism, options: RunOptions, settings: PartitionSettings
) -> Outcome:
    """Sanitize a table in partitions of at most about ``rows`` rows, in bounded memory.

    The rows say how work is mapped: over the partitions of a file one after the other, or by the workers of a cluster.
    """
    check_partitioned(mechanism, options)
    if mechanism.traits.declared:
        from sfumato.engines.private import run_private_in_parts

        return run_private_in_parts(rows, mechanism, options, settings)
    prepared = prepare_partitions(rows, mechanism, settings.randomness, options)
    known_columns(settings.quasi_identifiers, prepared.plan.schema)  # refused before the work is done
    cuts = tree_of(prepared, settings.most_rows)
    counted = rows.allocate(prepared, cuts)
    prepared = with_exact_moments(prepared, counted)
    partitions = merge_leaves(cuts, counted.rows, counted.people, least_people(prepared, counted))
    task, pairs = task_of(prepared, counted, partitions, native=settings.native, measured=settings.measured)
    bits = bits_of(prepared)
    spill = rows.sanitize(task, partitions, bits)
    done = SanitizedPartitions(prepared, counted, spill, len(partitions), bits, pairs)
    return gather(done, settings, keep=rows.gathers)


class FileRows:
    """Rows of a file, read and sanitized one after the other in this process.

    Rows that wait are put into the spill. With a ``mark`` of all options, what an earlier run of that mark has put
    there is used again.
    """

    gathers = True

    def __init__(self, source: TableSource, spill: Spill, mark: str | None = None) -> None:
        self.source, self.spill, self.mark = source, spill, mark

    def head(self, rows: int) -> pa.Table:
        """The first rows, up to a maximum number."""
        empty = RowBlock(self.source.schema.empty_table(), np.empty(0, dtype=np.int64))
        return next(iter(read_blocks(self.source)), empty).table.slice(0, rows)

    def scan(self, scan: RowScan) -> FirstPass:
        """First pass over all rows."""
        return scan.of(_reporting(read_blocks(self.source), self.source.rows))

    def allocate(self, prepared: Preparation, cuts: PartitionTree) -> AllocationCounts:
        """Put all rows aside by leaf, and count."""
        counted = self._resumed()
        if counted is not None:
            return counted
        allocator, first_pass = RowAllocator(prepared, cuts), prepared.first_pass
        for block in read_blocks(self.source):
            for leaf, found in allocator.allocate(block):
                self.spill.add(leaf, found)
            tell("cutting rows", (int(block.rows[-1]) + 1) / (first_pass.rows + first_pass.held_out))
        for leaf, found in _outside(prepared.plan.options.holdout, allocator):
            self.spill.add(leaf, found)
        self.spill.flush()
        counted = allocator.count()
        state = {"mark": self.mark, "counted": plain_values(counted)}
        self.spill.put("state", [write_json(state, "canonical").encode()])
        return counted

    def sanitize(self, task: PartitionTask, partitions: Sequence[Sequence[int]], bits: int) -> Spill:
        """Sanitize one partition after the other."""
        for number, leaves in enumerate(partitions):
            if not self.spill.has(f"cell-{number}"):
                done = sanitize_partition(self.spill.rows(leaves), task, number)
                self.spill.put(f"cell-{number}", frames_of(done, bits))
            tell("sanitizing cells", (number + 1) / len(partitions))
            for leaf in leaves:
                self.spill.drop(f"leaf-{leaf}")
        return self.spill

    def sample(self, row_hash: RowHash) -> pa.Table:
        """Rows drawn without replacement, in their order."""
        sampler = RowSampler(row_hash, "sample")
        for block in read_blocks(self.source):
            sampler.add(block)
        return sampler.done().table

    def transform(self, tried: TriedOnSample, settings: PartitionSettings) -> Outcome:
        """All rows, transformed batch by batch as the sample was."""
        return transform_rows(tried, self.source, settings)

    def people(self, reading: DeclaredReading) -> AllPeople:
        """All rows as people, who wait in the spill; rows are first put aside by person, if a column says whose."""
        from sfumato.methods.private.people import Partitions

        row_hash, raw = RowHash.of(Randomness(), reading.person, None), 0
        for block in _reporting(read_blocks(self.source), self.source.rows):
            rows, _ = reading.rows(block.table)
            whose = row_hash.of_persons(rows)
            if whose is None:
                self.spill.add(0, reading.frame(rows))
                continue
            raw, part = _OF_PERSONS, whose % np.uint64(_OF_PERSONS)
            for each in np.unique(part).tolist():
                self.spill.add(1 + each, rows.filter(pa.array(part == each)))
        self.spill.flush()
        for each in range(raw):
            if self.spill.has(f"leaf-{1 + each}"):
                self.spill.add(0, reading.frame(self.spill.rows([1 + each])))
                self.spill.drop(f"leaf-{1 + each}")
        self.spill.flush()

        def mapped(work: Callable[[People], Ints]) -> Iterator[Ints]:
            return (reading.people(table_of(frame)).total(work) for frame in self.spill.frames("leaf-0"))

        return Partitions(reading.nobody, mapped)

    def draw(self, stored: StoredModel, rows: int, settings: PartitionSettings) -> DrawnRows:
        """Rows of a released model, batch by batch, with what a spreadsheet would run in them."""
        from sfumato.engines.private import DRAWN_AT_ONCE, drawn_batches, write_drawn

        batches = drawn_batches(range(-(-rows // DRAWN_AT_ONCE)), stored, rows, settings)
        return write_drawn(batches, rows, settings)

    def _resumed(self) -> AllocationCounts | None:
        """What an earlier run of this mark has counted, whose rows wait here; else None, and the spill is cleared."""
        if self.mark is not None and self.spill.has("state"):
            state = parse_json(self.spill.frame("state", 0))
            if state["mark"] == self.mark:
                return typed(AllocationCounts, state["counted"])
        self.spill.clear()
        return None


def _reporting(blocks: Iterable[RowBlock], rows: int | None) -> Iterator[RowBlock]:
    for block in blocks:
        yield block
        if rows:
            tell("reading rows", (int(block.rows[-1]) + 1) / rows)


def tree_of(prepared: Preparation, most_rows: int) -> PartitionTree:
    """Where the table is cut, by its sample, into leaves of at most about ``most`` rows."""
    columns = parts_of(prepared)
    seen = prepared.job.shared.table if prepared.job.shared is not None else prepared.seen.table
    here = np.flatnonzero(prepared.sampled)
    values, rows, wanted = prepared.job.records.values[here], prepared.first_pass.rows, prepared.plan.options.rows or 0
    if wanted > rows:  # what is made of a cell goes into memory too
        most_rows = max(min(most_rows, 2 * LEAST_ROWS), most_rows * rows // wanted)
    return grow_partition_tree(seen.take(pa.array(here)), values, columns, rows, most_rows).with_parts_of(seen)


def with_exact_moments(prepared: Preparation, counted: AllocationCounts) -> Preparation:
    """What was learnt, with means and deviations of all rows instead of those of the sample, if counted."""
    codec = rescale(prepared.job.codec, counted.mean_and_deviation())
    return dataclasses.replace(prepared, job=dataclasses.replace(prepared.job, codec=codec))


def least_people(prepared: Preparation, counted: AllocationCounts) -> int:
    """Fewest people of a cell: the highest privacy level, or the group size that is chosen."""
    size = chosen_size(prepared, counted)
    least = max(prepared.first_pass.highest, prepared.plan.mechanism.traits.floor or 2)
    return least if size is None else max(least, size.size)


def bits_of(prepared: Preparation) -> int:
    """Bits of its number that tell the bucket of a released row."""
    rows = max(prepared.first_pass.rows, prepared.plan.options.rows or 0)
    return max(0, int(np.ceil(np.log2(max(1.0, rows / _BUCKET_ROWS)))))


def apportioned(rows: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Rows allotted to partitions in proportion to their sizes, the largest remainders rounded up.

    Raises
    ------
    OptionError
        If a cell would get none.

    Examples
    --------
    >>> apportioned(10, [500, 300, 250])
    (5, 3, 2)
    """
    whole = [rows * size // sum(sizes) for size in sizes]
    rest = sorted(range(len(sizes)), key=lambda place: (-(rows * sizes[place] % sum(sizes)), place))
    for place in rest[: rows - sum(whole)]:
        whole[place] += 1
    if not all(whole):
        raise OptionError(
            f"{rows} rows are too few for the {len(sizes)} cells that the table was cut into; ask for more rows, or "
            "grant more memory with --memory"
        )
    return tuple(whole)


def parts_of(prepared: Preparation) -> tuple[str, ...]:
    """Columns whose values never mix in a cell."""
    plan, target = prepared.plan, prepared.plan.schema.target
    apart = [] if plan.options.strata is None else [plan.options.strata]
    if isinstance(plan.mechanism, ClasswiseCondensation) and target is not None:
        apart.append(target.name)
    return tuple(dict.fromkeys(apart))


def _outside(holdout: Any, allocator: RowAllocator) -> Iterator[tuple[int, pa.Table]]:
    """People of a table of their own whom the release is not made from."""
    if holdout is None or isinstance(holdout, float):
        return
    table = to_arrow(holdout)[0]
    first = allocator.prepared.first_pass.rows + allocator.prepared.first_pass.held_out
    yield from allocator.allocate_held_out(RowBlock(table, np.arange(first, first + table.num_rows)))


def task_of(
    prepared: Preparation, counted: AllocationCounts, cells: Sequence[Sequence[int]], *, native: bool, measured: int
) -> tuple[PartitionTask, bool]:
    """What every cell must know, and whether the rules that are kept may show rare pairs."""
    plan, job = prepared.plan, prepared.job
    rows, pairs = prepared.first_pass.rows, False
    rules: tuple[str, ...] = ()
    if plan.mechanism.traits.synthetic and job.codec.schema.rules:
        kept = enforce_rules(
            job.original,
            job.codec,
            min_frequency=min_frequency_of(job, plan),
            found=plan.found_rules,
            persons=job.records.persons,
        )
        if kept is not None:
            rules, pairs = kept_rules(kept.rules, counted.broken, found=plan.found_rules, rows=rows), kept.rare_pairs
        codec = Codec(dataclasses.replace(job.codec.schema, rules=rules), job.codec.columns)
    else:
        codec = job.codec
    public = tuple(field.name for field in plan.schema if field.role is Role.PUBLIC)
    mechanism: Mechanism = plan.mechanism
    if isinstance(mechanism, ClasswiseCondensation):
        size = chosen_size(prepared, counted)
        mechanism = mechanism if size is None else dataclasses.replace(mechanism, k=size.size)
        mechanism = dataclasses.replace(mechanism, grouping=mechanism.grouping or "compact")
    share = min(1.0, measured / max(rows, plan.options.rows or 0)) if measured else 0.0
    sizes, highest = [sum(counted.rows[leaf] for leaf in leaves) for leaves in cells], prepared.first_pass.highest
    wanted = () if plan.options.rows is None else apportioned(plan.options.rows, sizes)
    probes = choose_probes(prepared)[0] if 0.0 < share < 1.0 else None
    settled = (rows, highest, share, native, wanted, probes, job.tails, job.records.public_level)
    return PartitionTask(plan, mechanism, codec, job.input_schema, public, *settled), pairs
