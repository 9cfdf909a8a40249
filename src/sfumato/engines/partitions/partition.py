"""One cell: the pure function that every engine calls, and what the facts of all cells come to."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import Fact, Shuffled
from sfumato.core.groups.facts import CountsKept, Grouped, Partitioned
from sfumato.core.threads import one_blas_thread
from sfumato.engines.measured import MeasuredRows, details_of_part, draw_measured_rows
from sfumato.engines.memory import MadeRows, make_rows
from sfumato.engines.outcome import Comparison
from sfumato.engines.partitions.population import Probes, count_in_partition
from sfumato.engines.plan import Plan, PreparedRun
from sfumato.methods.chain.facts import ChainSynthesis, PersonsBounded
from sfumato.methods.condense.facts import ClassPure, GroupSynthesis, NormalScoreColumns, PersonsInDistinctGroups
from sfumato.methods.protocol import Mechanism
from sfumato.tables.cells import plain
from sfumato.tables.codec import Codec
from sfumato.tables.facts import ColumnRulesKept, RowsDrawn
from sfumato.tables.persons import persons_of_table
from sfumato.tables.schema import Schema
from sfumato.tables.tails import Tails

__all__ = ["LEVEL", "OUTSIDE", "ROW", "PartitionResult", "PartitionTask", "merge_facts", "sanitize_partition"]

ROW, LEVEL, OUTSIDE = "\x1frow", "\x1flevel", "\x1foutside"
"""Columns that rows carry through a cell: their number in the source, their level, and whether they were held out."""

Mask = NDArray[np.bool_]

_DIFFERENT = "cells of one table state different facts; nothing is released. Please report this"
_COUNTS = ("records", "groups", "violations", "tiny", "alone", "alike")  # of groups, that add up
_OF_CHAIN = ("records", "rows", "violations", "kept", "moved")  # that add up
_COLUMNWISE = ("columns", "leaves", "smallest", "alike", "regressed", "twice")


@dataclass(frozen=True, eq=False, repr=False)
class PartitionTask:
    """What a cell must know beside its rows; the same for all cells of a run.

    ``mechanism`` is that of the plan, with what it would choose from all rows chosen; ``share`` of a cell's
    neighbourhoods are kept to be measured, ``rows`` are those of the table and ``highest`` is its highest level.
    ``wanted`` are the rows to make of each cell, where the owner says how many; ``asked`` is what it counts for people
    of the whole table, where not all of it is measured.
    """

    plan: Plan
    mechanism: Mechanism
    codec: Codec
    input_schema: Schema
    public: tuple[str, ...]
    rows: int
    highest: int
    share: float
    native: bool = False
    wanted: tuple[int, ...] = ()
    probes: Probes | None = None
    tails: Tails = dataclasses.field(default_factory=Tails)
    public_level: int = 0

    def __repr__(self) -> str:
        return f"PartitionTask({self.plan!r})"


@dataclass(frozen=True, eq=False, repr=False)
class ComparedRows:
    """Rows of a cell that are measured, the made ones and those of the control group; they stay with the owner.

    ``original`` and ``outside`` are rows as they came, ``labels`` and ``drawn_from`` the groups, ``origin`` the place
    among the originals that a made row descends from; -1 if there is none.
    """

    original: pa.Table
    released: pa.Table
    outside: pa.Table
    labels: NDArray[np.int64]
    met: NDArray[np.int64]
    drawn_from: NDArray[np.int64]
    origin: NDArray[np.int64]

    def __repr__(self) -> str:
        return "ComparedRows(owner only)"


@dataclass(frozen=True, eq=False, repr=False)
class PartitionResult:
    """Rows that a cell became, a number by chance of each that orders them among all, and what was done."""

    table: pa.Table
    order: NDArray[np.uint64]
    schema: Schema
    facts: tuple[Fact, ...]
    rows_in: int
    compared: ComparedRows | None
    seconds: float
    counted: pa.Table

    def __repr__(self) -> str:
        return f"PartitionResult({self.table.num_rows} rows)"


def sanitize_partition(table: pa.Table, task: PartitionTask, number: int) -> PartitionResult:
    """Rows that can be mined in place of those of a cell; hangs on its rows, its number and the run alone."""
    table = table.take(pc.sort_indices(table, sort_keys=[(ROW, "ascending")]))
    out = table.column(OUTSIDE).to_numpy()
    outside, inside = table.filter(pa.array(out)), table.filter(pa.array(~out))
    rows = task.wanted[number] if task.wanted else None
    plan = dataclasses.replace(task.plan.with_options(rows=rows), mechanism=task.mechanism, found_rules=False)
    rng = plan.randomness.generator(f"cell {number}")
    job = _prepared(inside, task, plan.randomness.generator(f"tails {number}"))
    with one_blas_thread():  # sums in one order, whoever does the cell
        made = make_rows(job, plan, rng, native=task.native)
    order = rng.integers(0, 2**64, size=made.table.num_rows, dtype=np.uint64)
    compared = _compared(made, inside, outside, task, plan.randomness.generator(f"measured {number}"))
    counted = pa.table({})
    if task.probes is not None:
        counted = count_in_partition(task.probes, task.codec, inside, made.released)
    return PartitionResult(
        made.table, order, made.leaving_schema, made.facts, made.rows_in, compared, made.seconds, counted
    )


def _prepared(inside: pa.Table, task: PartitionTask, rng: np.random.Generator) -> PreparedRun:
    plan, codec = task.plan, task.codec
    levels = inside.column(LEVEL).to_numpy().astype(np.int64)
    encoded = inside.select([column.field.name for column in codec.columns])
    strata = np.zeros(len(levels), dtype=np.int64)
    if plan.options.strata is not None:
        found = pc.dictionary_encode(plain(inside.column(plan.options.strata))).indices
        strata = np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)
    literal = plan.mechanism.traits.paper_law
    coded = encoded if literal else task.tails.code(encoded, rng.random(encoded.num_rows))
    records = codec.encode(coded, levels=levels, strata=strata, unseen="mean" if literal else "refuse")
    persons = persons_of_table(inside, plan.schema)
    records = dataclasses.replace(
        records, persons=persons, among=task.rows, highest=task.highest, public_level=task.public_level
    )
    public = inside.select(list(task.public)) if task.public else None
    return PreparedRun(encoded, None, codec, records, (), task.input_schema, public, tails=task.tails)


def _compared(
    made: MadeRows, inside: pa.Table, outside: pa.Table, task: PartitionTask, rng: np.random.Generator
) -> ComparedRows | None:
    """Whole neighbourhoods of a cell with what was made of them, drawn at random; nothing where none is.

    Groups stay whole, a row that descends from a person is where that one is, and others are where they lie. All people
    of a neighbourhood and all its rows are looked at, so that each is hidden among as many alike as in the whole table.
    """
    if not task.share:
        return None
    details = made.workings
    kept = np.arange(inside.num_rows) if details.kept is None else details.kept
    original, released = made.job.original, made.released
    if task.share < 1.0:
        whole = Comparison(original, released, task.codec, outside=outside)
        rows = draw_measured_rows(whole, details, task.share, rng)
    else:
        rows = MeasuredRows(*(np.arange(len(table)) for table in (original, released, outside)))
    part, none = details_of_part(details, rows, len(original)), np.full(len(rows.made), -1, dtype=np.int64)
    return ComparedRows(
        inside.take(pa.array(kept[rows.inside])),
        released.take(pa.array(rows.made)),
        outside.take(pa.array(rows.outside)),
        np.full(len(rows.inside), -1, dtype=np.int64) if part.labels is None else part.labels,
        np.zeros(len(rows.inside), dtype=np.int64) if part.levels is None else part.levels,
        none if part.drawn_from is None else part.drawn_from,
        none if part.origin is None else part.origin,
    )


def merge_facts(
    parts: Sequence[tuple[Fact, ...]], rows: Sequence[int], *, persons: int | None, classes: int, pairs: bool
) -> tuple[Fact, ...]:
    """What the facts of all cells come to; refuses what cells say differently and nothing adds up.

    ``persons`` are those of the table, ``classes`` those of its target, ``pairs`` whether its rules may show rare ones.
    """
    merged: list[Fact] = []
    longest = max(parts, key=len)
    for fact in longest:
        found = [[each for each in part if type(each) is type(fact)] for part in parts]
        if isinstance(fact, CountsKept):  # a cell may lack what others have: no category, no missing cell
            found = [each for each in found if each]
        place = [each for each in longest if type(each) is type(fact)].index(fact)
        if any(len(each) <= place for each in found) or not {type(each) for part in parts for each in part} <= {
            type(each) for each in longest
        }:
            raise PrivacyRefusal(_DIFFERENT)
        merged.append(_sum_of(fact, [each[place] for each in found], persons, classes, pairs))
    cut = any(isinstance(fact, ChainSynthesis | Grouped) for fact in merged)
    return (*merged, *((Partitioned(len(parts), min(rows)),) if cut else ()))


def _sum_of(fact: Fact, alike: list[Any], persons: int | None, classes: int, pairs: bool) -> Fact:
    match fact:
        case Grouped():
            total: Fact = dataclasses.replace(
                fact,
                smallest=min(each.smallest for each in alike),
                **{name: sum(getattr(each, name) for each in alike) for name in _COUNTS},
            )
            varying = {*_COUNTS, "smallest"}
        case ChainSynthesis():
            total, varying = _chain_of(alike), {*_COLUMNWISE, *_OF_CHAIN}
        case GroupSynthesis() | Shuffled():
            total, varying = dataclasses.replace(fact, rows=sum(each.rows for each in alike)), {"rows"}
        case RowsDrawn():
            varying = {"records", "rows"}
            total = dataclasses.replace(fact, **{name: sum(getattr(each, name) for each in alike) for name in varying})
        case NormalScoreColumns():
            total = NormalScoreColumns(max(each.columns for each in alike), min(each.k for each in alike))
            varying = {"columns", "k"}
        case PersonsInDistinctGroups() | PersonsBounded():
            total, varying = dataclasses.replace(fact, persons=persons or 0), {"persons"}
        case ClassPure():
            total, varying = dataclasses.replace(fact, classes=classes), {"classes"}
        case ColumnRulesKept():
            total, varying = dataclasses.replace(fact, rare_pairs=pairs), {"rare_pairs"}  # cells hold only found rules
        case CountsKept():
            names = ("category_columns", "missing_columns")
            total = CountsKept(*(max(getattr(each, name) for each in alike) for name in names))
            varying = set(names)
        case _:
            total, varying = fact, set()
    for name in {field.name for field in dataclasses.fields(fact)} - varying:
        if any(getattr(each, name) != getattr(fact, name) for each in alike):
            raise PrivacyRefusal(_DIFFERENT)
    return total


def _chain_of(alike: list[ChainSynthesis]) -> ChainSynthesis:
    """Leaves of all cells, column by column; a column may be regressed, or drawn twice, in some of them alone."""
    fact = next((each for each in alike if each.twice), alike[0])
    if any(set(each.columns) != set(fact.columns) for each in alike):
        raise PrivacyRefusal(_DIFFERENT)
    leaves, smallest, same = (
        [[int(getattr(each, of)[each.columns.index(name)]) for each in alike] for name in fact.columns]
        for of in ("leaves", "smallest", "alike")
    )
    return dataclasses.replace(
        fact,
        leaves=tuple(map(sum, leaves)),
        smallest=tuple(map(min, smallest)),
        alike=tuple(map(sum, same)),
        regressed=tuple(name for name in fact.columns if any(name in each.regressed for each in alike)),
        **{name: sum(getattr(each, name) for each in alike) for name in _OF_CHAIN},
    )
