"""What a first look at all rows teaches: a sample, witnesses of all that binds, and from these what prepares a table.

A witness is a row that shows what the whole table would show: the first k persons who hold a value, an extreme, a
missing cell, or a cell that is not what its column seems to be. Whatever asks whether k persons have something gets
the same answer from sample and witnesses as from all rows, so that schema, rare values and codec can be settled on
them. The witnesses of a table's parts, taken together, hold the witnesses of the table: parts can be looked at apart.
"""

from __future__ import annotations

import dataclasses
import hashlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, SchemaError, TableError
from sfumato.core.facts import UnlabelledRows
from sfumato.core.randomness import Randomness
from sfumato.engines.plan import Plan, PreparedRun, make_plan, prepare
from sfumato.methods.chain import Chain
from sfumato.methods.perturb import AdditiveNoise, MultiplicativeNoise, check_records
from sfumato.methods.protocol import Mechanism
from sfumato.options import RunOptions
from sfumato.tables.cells import absent_cells, plain, read_numbers
from sfumato.tables.contact import MIN_EVIDENCE
from sfumato.tables.field import DateStep, Field, Kind
from sfumato.tables.grid import repair_table
from sfumato.tables.levels import levels_of_table
from sfumato.tables.schema import Role, Schema
from sfumato.tables.source import TableSource, runs_of_rows

__all__ = [
    "MOST_VALUES",
    "SAMPLE_ROWS",
    "FirstPass",
    "Preparation",
    "RowBlock",
    "RowHash",
    "RowSampler",
    "RowScan",
    "ScannedRows",
    "prepare_partitions",
    "read_blocks",
    "witnesses",
]

SAMPLE_ROWS = 100_000
"""Rows that are drawn for whatever is estimated: scales, cuts, keys, the schema where none is given, and measures."""

_RUN_CELLS = 1 << 21
_MOST_ROWS, _FEWEST_ROWS = 1 << 17, 1 << 12

Numbers = NDArray[np.uint64]


@dataclass(frozen=True, eq=False, repr=False)
class RowBlock:
    """Rows that follow each other in the source, and the number of each there."""

    table: pa.Table
    rows: NDArray[np.int64]

    def take(self, places: NDArray[np.int64]) -> RowBlock:
        """Some of the rows."""
        return RowBlock(self.table.take(pa.array(places)), self.rows[places])

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"RowBlock({len(self)} rows)"


def read_blocks(source: TableSource) -> Iterator[RowBlock]:
    """Blocks of a source from its first row to its last; their length depends on the number of columns alone."""
    names, first = source.schema.names, 0
    rows = int(np.clip(_RUN_CELLS // max(1, len(names)), _FEWEST_ROWS, _MOST_ROWS))
    for table in runs_of_rows(source.batches(names, rows), rows):
        yield RowBlock(table, np.arange(first, first + table.num_rows))
        first += table.num_rows


@dataclass(frozen=True, eq=False, repr=False)
class RowHash:
    """Keyed hash of each row, or of each person: the same for all workers, and secret outside the run."""

    key: bytes
    person: str | None = None
    share: float | None = None

    @classmethod
    def of(cls, randomness: Randomness, person: str | None, holdout: object) -> RowHash:
        """RowHash of a run; ``holdout`` is a share, or something else that holds out no row here."""
        if isinstance(holdout, float) and not 0.0 < holdout < 1.0:
            raise OptionError("the share of rows to hold out must lie between 0 and 1; try 0.2")
        key = randomness.generator("rows").bytes(32)
        return cls(key, person, holdout if isinstance(holdout, float) else None)

    def of_rows(self, rows: NDArray[np.int64], purpose: str) -> Numbers:
        """A number of each row, spread evenly over 64 bits."""
        word = int.from_bytes(hashlib.blake2b(purpose.encode(), key=self.key, digest_size=8).digest(), "little")
        mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(word)  # splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(mixed ^ (mixed >> np.uint64(31)))

    def of_persons(self, table: pa.Table) -> Numbers | None:
        """A number of the person whom each row is about; None if rows are people."""
        if self.person is None:
            return None
        coded = pc.dictionary_encode(plain(table.column(self.person)), null_encoding="encode")
        texts = coded.dictionary.cast(pa.string()).to_pylist()
        words = [hashlib.blake2b(repr(text).encode(), key=self.key, digest_size=8).digest() for text in texts]
        numbers = np.frombuffer(b"".join(words), dtype="<u8").astype(np.uint64)
        return np.asarray(numbers[coded.indices.to_numpy(zero_copy_only=False)])

    def held_out(self, block: RowBlock) -> NDArray[np.bool_]:
        """Which rows are held out; all rows of a person are on one side."""
        if self.share is None:
            return np.zeros(len(block), dtype=np.bool_)
        persons = self.of_persons(block.table)
        drawn = self.of_rows(block.rows if persons is None else persons.view(np.int64), "held out")
        return np.asarray(drawn < np.uint64(int(self.share * 2.0**64)))

    def __repr__(self) -> str:
        return "RowHash(owner only)"


class _BlockKeeper:
    """Keeps some of the rows that come, with a number of each, and forgets the others from time to time."""

    def __init__(self, row_hash: RowHash) -> None:
        self.row_hash = row_hash
        self._parts: list[RowBlock] = []
        self._numbers: list[NDArray[Any]] = []

    def done(self) -> RowBlock:
        """The rows that are kept, in the order in which they came."""
        if not self._parts:
            return RowBlock(pa.table({}), np.empty(0, dtype=np.int64))
        self._cut()
        return self._parts[0]

    def _keep(self, block: RowBlock, numbers: NDArray[Any], most: int) -> None:
        self._parts.append(block)
        self._numbers.append(numbers)
        if sum(map(len, self._parts)) > most:
            self._cut()

    def _cut(self) -> None:
        whole, numbers = join_blocks(self._parts), np.concatenate(self._numbers)
        stay = self._choose(whole, numbers)
        self._parts, self._numbers = [whole.take(stay)], [numbers[stay]]

    def _choose(self, whole: RowBlock, numbers: NDArray[Any]) -> NDArray[np.int64]:
        raise NotImplementedError


class RowSampler(_BlockKeeper):
    """Keeps the rows with the lowest hashes for a purpose, up to a number: a uniform sample."""

    def __init__(self, row_hash: RowHash, purpose: str, most: int | None = None) -> None:
        super().__init__(row_hash)
        self.purpose, self.most = purpose, SAMPLE_ROWS if most is None else most
        self.bar = np.uint64(2**64 - 1)

    def add(self, block: RowBlock) -> None:
        """Take in further rows."""
        drawn = self.row_hash.of_rows(block.rows, self.purpose)
        low = np.flatnonzero(drawn <= self.bar)
        if len(low):
            self._keep(block.take(low), drawn[low], 2 * self.most)

    def _choose(self, whole: RowBlock, numbers: NDArray[Any]) -> NDArray[np.int64]:
        if len(whole) <= self.most:
            return np.arange(len(whole))
        stay = np.sort(np.argpartition(numbers, self.most - 1)[: self.most])
        self.bar = numbers[stay].max()
        return stay


def join_blocks(parts: list[RowBlock]) -> RowBlock:
    """One block of several, in their order."""
    table = pa.concat_tables([part.table for part in parts]).unify_dictionaries().combine_chunks()
    return RowBlock(table, np.concatenate([part.rows for part in parts]))


MOST_VALUES = 20_000
"""Most different values of a column of categories that are counted."""

HEAD_ROWS = 20_000
"""First rows, that a schema is proposed from to look at all of them with."""

_TIMES = 4  # looks at all rows before a schema must have settled
_LISTED = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class FirstPass:
    """What one look at rows found: ``sample`` and ``witnesses`` of those inside, sample of those held out, counts."""

    sample: RowBlock
    witnesses: RowBlock
    outside: RowBlock
    rows: int
    held_out: int
    highest: int

    @property
    def rows_seen(self) -> tuple[RowBlock, NDArray[np.bool_]]:
        """Sample and witnesses in the order of the source, each row once, and which of them are of the sample."""
        rows = np.concatenate([self.sample.rows, self.witnesses.rows])
        found, places = np.unique(rows, return_index=True)
        table = pa.concat_tables([self.sample.table, self.witnesses.table])
        return RowBlock(table.take(pa.array(places)).combine_chunks(), found), places < len(self.sample)


@dataclass(frozen=True, eq=False, repr=False)
class Preparation:
    """What is settled before rows are cut into cells."""

    plan: Plan
    job: PreparedRun
    first_pass: FirstPass
    seen: RowBlock
    sampled: NDArray[np.bool_]
    row_hash: RowHash

    @property
    def to_cut(self) -> Preparation:
        """What giving rows to cells needs of it, to be sent to those who do that."""
        job, empty = self.job, RowBlock(self.seen.table.slice(0, 0), self.seen.rows[:0])
        job = dataclasses.replace(job, records=job.records.take(np.empty(0, dtype=np.int64)), outside=None)
        first_pass = dataclasses.replace(self.first_pass, sample=empty, witnesses=empty, outside=empty)
        return dataclasses.replace(self, job=job, first_pass=first_pass, seen=empty, sampled=self.sampled[:0])

    def __repr__(self) -> str:
        return f"Preparation({self.plan!r})"


@dataclass(frozen=True, eq=False, repr=False)
class RowScan:
    """A first pass over rows by a schema: their sample, and witnesses of as many persons as ``k``.

    ``level`` and ``level_1`` say which privacy levels records ask for.
    """

    schema: Schema
    k: int
    row_hash: RowHash
    level: str | int | None
    level_1: bool

    def of(self, blocks: Iterable[RowBlock]) -> FirstPass:
        """First pass over rows that come in blocks."""
        kept, count, held, highest = _Witnesses(self.schema, self.k, self.row_hash), 0, 0, 0
        outside, sample = RowSampler(self.row_hash, "outside"), RowSampler(self.row_hash, "sample")
        for block in blocks:
            out = self.row_hash.held_out(block)
            if out.any():
                outside.add(block.take(np.flatnonzero(out)))
                held += int(out.sum())
                block = block.take(np.flatnonzero(~out))
            if not len(block):
                continue
            levels = self._levels(block.table)
            highest, count = max(highest, int(levels.max(initial=0))), count + len(block)
            sample.add(block)
            kept.add(block, levels)
        return FirstPass(sample.done(), kept.done(), outside.done(), count, held, highest)

    def merge(self, parts: Sequence[FirstPass]) -> FirstPass:
        """First pass over a table from those over its parts, in the order of the table: the same as over all rows."""
        kept = _Witnesses(self.schema, self.k, self.row_hash)
        outside, sample = RowSampler(self.row_hash, "outside"), RowSampler(self.row_hash, "sample")
        for part in parts:
            if len(part.outside):
                outside.add(part.outside)
            if len(part.sample):
                sample.add(part.sample)
                kept.add(part.witnesses, self._levels(part.witnesses.table))
        rows, held = sum(part.rows for part in parts), sum(part.held_out for part in parts)
        return FirstPass(sample.done(), kept.done(), outside.done(), rows, held, max(part.highest for part in parts))

    def _levels(self, table: pa.Table) -> Places:
        table = repair_table(table, self.schema, level=self.level)
        return levels_of_table(self.level, table, self.schema, allow_level_1=self.level_1, among=2**31)[0]


class ScannedRows(Protocol):
    """Rows of a table, wherever they lie."""

    def head(self, rows: int) -> pa.Table:
        """The first rows, up to a maximum number."""
        ...

    def scan(self, scan: RowScan) -> FirstPass:
        """First pass over all rows."""
        ...


def prepare_partitions(
    rows: ScannedRows, mechanism: Mechanism, randomness: Randomness, options: RunOptions
) -> Preparation:
    """Settle schema, rare values and codec of all rows from one pass over them, or several if the schema changes.

    The first pass is by a schema of the first rows.
    """
    settled = dataclasses.replace(options, holdout=None, seed=randomness.seed)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        schema = make_plan(rows.head(HEAD_ROWS), mechanism, settled).schema
    floor = mechanism.traits.min_frequency or mechanism.traits.floor or 2
    person = next((field.name for field in schema if field.role is Role.PERSON), None)
    row_hash = RowHash.of(randomness, person, options.holdout)
    k = max(floor, 2, MIN_EVIDENCE)  # as many witnesses as decide what a column is
    for _ in range(_TIMES):
        first_pass = rows.scan(RowScan(schema, k, row_hash, options.level, mechanism.traits.level_1))
        if not first_pass.rows:
            raise TableError("the table has no rows; provide at least as many as the highest privacy level")
        seen, sampled = first_pass.rows_seen
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            plan = make_plan(seen.table, mechanism, settled)
        if first_pass.highest <= k and _ties(plan.schema) == _ties(schema):
            break
        schema, k = plan.schema, max(k, first_pass.highest)
    else:
        raise SchemaError("the schema cannot be inferred from the whole file; give one with --schema")
    for each in caught:
        warnings.warn(each.message, stacklevel=2)
    _refuse_crowded(seen.table, plan.schema)
    plan = dataclasses.replace(plan, randomness=randomness)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        job = prepare(seen.table, plan)
    without = next((fact for fact in job.facts if isinstance(fact, UnlabelledRows)), None)
    if without is not None:
        raise SchemaError(
            f"column {without.column!r} lacks the class of some rows, which cannot be left out of a table that is "
            "sanitized in partitions; fill them in, leave those rows out, or grant more memory with --memory"
        )
    for each in caught:
        warnings.warn(each.message, stacklevel=2)
    if isinstance(mechanism, AdditiveNoise | MultiplicativeNoise):
        check_records(job.records, mechanism)
    if isinstance(mechanism, Chain):
        mechanism.sequence(job.records)  # refuses an order of columns that there are not
    return Preparation(plan.with_options(holdout=options.holdout), job, first_pass, seen, sampled, row_hash)


def _ties(schema: Schema) -> list[tuple[Any, ...]]:
    """What a look takes from a schema: another look is needed where it was another one."""
    return [
        (field.name, field.kind, field.role is Role.IDENTIFIER, field.format, sorted(field.missing), field.domain.step)
        for field in schema
    ]


def _refuse_crowded(table: pa.Table, schema: Schema) -> None:
    for field in schema.encoded:
        if field.kind in _LISTED and pc.count_distinct(plain(table.column(field.name))).as_py() > MOST_VALUES:
            raise OptionError(
                f"column {field.name!r} has more than {MOST_VALUES} different values, too many for a table that is "
                "sanitized in partitions; drop it as an identifier, or use wider values"
            )


class _Witnesses(_BlockKeeper):
    """Keeps the witnesses of all rows so far, by their levels."""

    def __init__(self, schema: Schema, k: int, row_hash: RowHash) -> None:
        super().__init__(row_hash)
        self.schema, self.k, self.settled = schema, k, 0

    def add(self, block: RowBlock, levels: Places) -> None:
        places = self._witnesses(block, levels)
        self._keep(block.take(places), levels[places], 2 * self.settled + SAMPLE_ROWS // 2)

    def _choose(self, whole: RowBlock, numbers: Places) -> Places:
        places = self._witnesses(whole, numbers)
        self.settled = len(places)
        return places

    def _witnesses(self, block: RowBlock, levels: Places) -> Places:
        return witnesses(block.table, self.schema, self.k, self.row_hash.of_persons(block.table), levels)


def witnesses(
    table: pa.Table, schema: Schema, k: int, persons: NDArray[np.uint64] | None, levels: Places | None = None
) -> Places:
    """Places of the rows that show what the table would show to a question whether k persons have it.

    Of every column the first k persons who have a cell and who lack one; of categories the first k of each value; of
    numbers and dates the first k at either end, of cells that are none, and of those off the step. Then the first of
    the highest level.
    """
    keep = np.zeros(table.num_rows, dtype=np.bool_)
    for field in schema:
        if field.name in table.column_names:
            for codes in _asked(table.column(field.name), field):
                keep[_first(codes, k, persons)] = True
    if levels is not None and len(levels):
        keep[int(np.argmax(levels))] = True
    return np.flatnonzero(keep)


def _asked(column: pa.ChunkedArray, field: Field) -> Iterator[Places]:
    """Codes of what may be asked of the cells of a column; -1 if nothing is."""
    array = plain(column)
    absent = absent_cells(array, field.missing)
    yield np.where(absent, 0, -1)
    yield np.where(absent, -1, 0)
    if field.role in (Role.IDENTIFIER, Role.PERSON) or absent.all():
        return
    if field.kind in _LISTED:
        coded = pc.dictionary_encode(array)
        codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        if len(coded.dictionary) <= MOST_VALUES + len(field.missing):
            yield np.where(absent, -1, codes)
        else:  # more than are handled, which one row of each shows
            first = np.unique(codes, return_index=True)[1]
            yield np.where(np.isin(np.arange(len(codes)), first), codes, -1)
        return
    values, absent = read_numbers(column, field)
    strange = ~absent & ~np.isfinite(values)
    yield np.where(strange, 0, -1)
    fine = values[~absent & ~strange]
    if len(fine):
        for edge in (fine.min(), fine.max()):
            yield np.where(values == edge, 0, -1)
    step = _step(field)
    if step is not None:
        low = field.domain.low if isinstance(field.domain.low, int | float) else 0.0
        count = (np.where(absent | strange, low, values) - low) / step
        off = np.abs(count - np.rint(count)) > 1e-9 * np.maximum(1.0, np.abs(count))
        yield np.where(off, 0, -1)


def _step(field: Field) -> float | None:
    """Step that all cells of a column seem to keep; None if they keep none."""
    step = field.domain.step
    if isinstance(step, DateStep):
        return 1.0
    if step is None and field.format is not None and field.kind is Kind.CONTINUOUS:
        return float(f"1e-{len(field.format.partition('.')[2])}")
    return 1.0 if step is None and field.kind is Kind.INTEGER else step


def _first(codes: Places, k: int, persons: NDArray[np.uint64] | None) -> Places:
    """Places of the first k persons of each code."""
    there = np.flatnonzero(codes >= 0)
    if not len(there):
        return there
    held = codes[there]
    if persons is not None:
        order = np.lexsort((there, persons[there], held))
        who = persons[there][order]
        new = np.append(True, (held[order][1:] != held[order][:-1]) | (who[1:] != who[:-1]))
        there = np.sort(there[order[new]])
        held = codes[there]
    if not held.any():
        return there[:k]
    order = np.argsort(held, kind="stable")
    starts = np.flatnonzero(np.append(True, held[order][1:] != held[order][:-1]))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return there[order[rank < k]]
