"""The engine for tables in partitions: scan and allocate rows, sanitize each partition, and write the rows shuffled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.assess.risk.uniqueness import PopulationUniqueness
from sfumato.core.documents import parse_json, typed, write_json
from sfumato.core.documents import plain as plain_values
from sfumato.core.errors import OptionError
from sfumato.core.facts import ClassPure, Fact, HeldOut, fact_from_json, fact_to_json
from sfumato.core.progress import tell
from sfumato.core.randomness import Randomness
from sfumato.engines.memory import grown_again, measured_note, min_frequency_of
from sfumato.engines.outcome import Apart, Comparison, Outcome
from sfumato.engines.partitions.allocate import AllocationCounts, RowAllocator, Spill, frame_of, kept_rules, table_of
from sfumato.engines.partitions.first_pass import (
    FirstPass,
    Preparation,
    RowBlock,
    RowHash,
    prepare_partitions,
    read_blocks,
    scan_rows,
)
from sfumato.engines.partitions.memory_limit import LEAST_ROWS
from sfumato.engines.partitions.partition import LEVEL, PartitionResult, PartitionTask, merge_facts, sanitize_partition
from sfumato.engines.partitions.population import PopulationCounts, choose_probes
from sfumato.engines.partitions.sampling import SAMPLE_ROWS
from sfumato.engines.partitions.tree import PartitionTree, grow_partition_tree, merge_leaves
from sfumato.methods.chain import Chain
from sfumato.methods.condense import Condensation
from sfumato.methods.condense.classwise import FLOOR, ClasswiseCondensation, GroupSize, choose_size
from sfumato.methods.perturb import AdditiveNoise, MultiplicativeNoise
from sfumato.methods.protocol import Mechanism, OwnerDetails
from sfumato.methods.randomize import Randomization
from sfumato.options import RunOptions, first_needing_all_rows
from sfumato.tables.cells import plain
from sfumato.tables.codec import Codec
from sfumato.tables.frames import to_arrow
from sfumato.tables.kept_rules import enforce_rules
from sfumato.tables.persons import persons_of_table
from sfumato.tables.recoding import known_columns
from sfumato.tables.schema import Role, Schema
from sfumato.tables.sink import TableSink
from sfumato.tables.source import TableSource
from sfumato.tables.spreadsheet import FormulaCount
from sfumato.tables.stored_codec import rescale

__all__ = [
    "DRAWN",
    "ORDER",
    "ORIGIN",
    "Into",
    "bits_of",
    "check_partitioned",
    "frames_of",
    "gather",
    "least_people",
    "run_partitioned",
    "task_of",
    "tree_of",
    "with_exact_moments",
]

ORDER = "\x1forder"
"""Column of the number by chance that orders released rows."""

_BUCKET_ROWS = 1 << 18  # released rows that are put in order at a time

Into = Callable[[pa.Schema], AbstractContextManager[TableSink]]


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
    if not isinstance(mechanism, Chain | Condensation | ClasswiseCondensation | Randomization | noise):
        raise OptionError(
            f"the method {mechanism.method!r} needs all rows at once, and the table does not go into memory at once; "
            "take chain, condense, classwise, randomize or noise, or grant more with --memory"
        )
    needs = first_needing_all_rows(options)
    if needs is not None:
        raise OptionError(f"{needs} needs all rows at once; leave it out, or grant more memory with --memory")


def run_partitioned(
    source: TableSource,
    mechanism: Mechanism,
    randomness: Randomness,
    options: RunOptions,
    spill: Spill,
    *,
    most_rows: int,
    mark: str | None = None,
    into: Into | None = None,
    measured: int = SAMPLE_ROWS,
    quasi_identifiers: Sequence[str] = (),
    native: bool = False,
    spreadsheet_safe: bool = False,
) -> Outcome:
    """Sanitize a source in cells of at most about ``most_rows``; rows come as a table, or go ``into`` a sink.

    ``randomness`` must be repeatable. About ``measured`` rows are kept to be compared with what they became. With a
    ``mark`` of all options of a run, the work of an earlier run with the same mark is resumed.
    """
    check_partitioned(mechanism, options)
    head = next(iter(read_blocks(source)), RowBlock(source.schema.empty_table(), np.empty(0, dtype=np.int64)))

    def first_pass(schema: Schema, k: int, row_hash: RowHash) -> FirstPass:
        blocks = _reporting(read_blocks(source), source.rows)
        return scan_rows(blocks, schema, k, row_hash, options.level, level_1=mechanism.traits.level_1)

    prepared = prepare_partitions(head.table, first_pass, mechanism, randomness, options)
    known_columns(
        quasi_identifiers, prepared.plan.schema
    )  # which the report needs, and which is refused before the work is done
    cuts = tree_of(prepared, most_rows)
    counted = _taken_up(spill, mark)
    if counted is None:
        counted = _cut_all(source, RowAllocator(prepared, cuts), options.holdout, spill)
        spill.put("state", [write_json({"mark": mark, "counted": plain_values(counted)}, "canonical").encode()])
    prepared = with_exact_moments(prepared, counted)
    cells = merge_leaves(cuts, counted.rows, counted.people, least_people(prepared, counted))
    task, pairs = task_of(prepared, counted, cells, native=native, measured=measured)
    bits = bits_of(prepared)
    for number, leaves in enumerate(cells):
        if not spill.has(f"cell-{number}"):
            done = sanitize_partition(spill.rows(leaves), task, number)
            spill.put(f"cell-{number}", frames_of(done, bits))
        tell("sanitizing cells", (number + 1) / len(cells))
        for leaf in leaves:
            spill.drop(f"leaf-{leaf}")
    return gather(
        prepared, counted, spill, len(cells), pairs, bits,
        into=into, measured=bool(measured), spreadsheet_safe=spreadsheet_safe,
    )  # fmt: skip


def _taken_up(spill: Spill, mark: str | None) -> AllocationCounts | None:
    """What an earlier run has counted, whose rows lie here; None where there is none of this mark."""
    if mark is not None and spill.has("state"):
        state = parse_json(spill.frame("state", 0))
        if state["mark"] == mark:
            return typed(AllocationCounts, state["counted"])
    spill.clear()
    return None


def _cut_all(source: TableSource, allocator: RowAllocator, holdout: Any, spill: Spill) -> AllocationCounts:
    """Put all rows aside by leaf, and count."""
    first_pass = allocator.prepared.first_pass
    for block in read_blocks(source):
        for leaf, rows in allocator.allocate(block):
            spill.add(leaf, rows)
        tell("cutting rows", (int(block.rows[-1]) + 1) / (first_pass.rows + first_pass.held_out))
    for leaf, rows in _outside(holdout, allocator):
        spill.add(leaf, rows)
    spill.flush()
    return allocator.count()


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
    size = _chosen_size(prepared, counted)
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
        Where a cell would get none.

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
        size = _chosen_size(prepared, counted)
        mechanism = mechanism if size is None else dataclasses.replace(mechanism, k=size.size)
        mechanism = dataclasses.replace(mechanism, grouping=mechanism.grouping or "compact")
    share = min(1.0, measured / max(rows, plan.options.rows or 0)) if measured else 0.0
    sizes, highest = [sum(counted.rows[leaf] for leaf in leaves) for leaves in cells], prepared.first_pass.highest
    wanted = () if plan.options.rows is None else apportioned(plan.options.rows, sizes)
    probes = choose_probes(prepared)[0] if 0.0 < share < 1.0 else None
    settled = (rows, highest, share, native, wanted, probes, job.tails, job.records.public_level)
    return PartitionTask(plan, mechanism, codec, job.told, public, *settled), pairs


def _chosen_size(prepared: Preparation, counted: AllocationCounts) -> GroupSize | None:
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


def gather(
    prepared: Preparation,
    counted: AllocationCounts,
    spill: Spill,
    cells: int,
    pairs: bool,
    bits: int,
    *,
    into: Into | None,
    measured: bool,
    spreadsheet_safe: bool,
    stay: bool = False,
) -> Outcome:
    """What came of all cells: their rows in the order that chance gave them, facts, and what is measured.

    Rows may ``stay`` where they are.
    """
    told = [parse_json(spill.frame(f"cell-{number}", 0)) for number in range(cells)]
    schema = Schema.from_toml(told[0]["schema"])
    facts = merge_facts(
        [tuple(fact_from_json(fact) for fact in each["facts"]) for each in told],
        [each["rows_in"] for each in told],
        persons=counted.people_of_all if prepared.row_hash.person is not None else None,
        classes=_classes(prepared),
        pairs=pairs,
    )
    size = _chosen_size(prepared, counted)
    if size is not None:
        named = dataclasses.asdict(size)
        facts = tuple(dataclasses.replace(each, **named) if isinstance(each, ClassPure) else each for each in facts)
    kinds = pa.schema([field for field in table_of(spill.frame("cell-0", 1)).schema if field.name != ORDER])
    formulas, whole = FormulaCount(kinds.names), list[pa.Table]()
    for each in told:
        for name, count in each["formulas"].items():
            formulas.cells[name] = formulas.cells.get(name, 0) + count
    if into is None:
        whole = [] if stay else list(_ordered(spill, cells, bits))
    else:
        with into(kinds) as sink:
            for table in _ordered(spill, cells, bits):
                for batch in table.to_batches():
                    sink.write(batch)
    counts = into is not None or stay  # of a table that is here they are counted when it is certified
    comparison, workings = comparison_of(prepared, spill, cells, bits, facts, measured=measured)
    return Outcome(
        recipe=prepared.plan.recipe(dataclasses.replace(prepared.job.told, rules=schema.rules)),
        table=None if stay else pa.concat_tables(whole) if whole else kinds.empty_table(),
        rows_in=sum(each["rows_in"] for each in told),
        rows_out=sum(each["rows_out"] for each in told),
        schema=schema,
        facts=(*_around(prepared, counted), *facts, *(formulas.facts(quoted=spreadsheet_safe) if counts else ())),
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
    prepared: Preparation, spill: Spill, cells: int, bits: int, facts: Sequence[Fact], *, measured: bool
) -> tuple[Comparison | Apart, OwnerDetails | None]:
    """Rows of all cells that are measured, side by side with what they became."""
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
