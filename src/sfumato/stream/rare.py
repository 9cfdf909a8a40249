"""What few records of a stream hold: its strata, rare categories, and the tails of its numbers.

Categories are counted as records are taken in, and hidden when rows leave. Numbers are counted by bins, from which the
cut-offs of their tails follow. Records of one stratum alone are in a group, so the mean of a group has the coordinates
of that category, and a state needs no entry for it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.documents import Unparsable, from_json, write_json
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.records import Block, BlockKind
from sfumato.stream.settings import StateEntry, StateError, StreamSettings
from sfumato.stream.state import State
from sfumato.tables.cells import plain
from sfumato.tables.codec import Codec, EncodedColumn
from sfumato.tables.facts import RareValues, TailsCoded
from sfumato.tables.field import Domain, Field, Kind, Role
from sfumato.tables.grid import cut_grid
from sfumato.tables.recoding import MinimumFrequencies, RareTreatment, Recoding, recode, recode_counts
from sfumato.tables.schema import Schema
from sfumato.tables.tails import lost_cells

__all__ = [
    "LISTED",
    "USUAL",
    "HeldValues",
    "RareHandling",
    "StreamTails",
    "category_places",
    "check_strata",
    "counts_of_bins",
    "counts_of_bytes",
    "entry_of_rare",
    "hidden_schema",
    "rare_on_disk",
    "strata_of",
]

LISTED = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
"""Kinds of columns whose categories are known."""


def check_strata(schema: Schema, strata: str | None) -> None:
    """Refuse a column of strata without categories: what defines strata must be known before it arrives."""
    if strata is None:
        return
    field = schema[strata]
    if field.kind not in LISTED:
        raise OptionError(
            f"column {strata!r} is {field.kind.value}, and strata of a stream are categories; declare it nominal or "
            "ordinal in the schema"
        )


def strata_of(values: NDArray[np.float64], codec: Codec, strata: str | None) -> NDArray[np.int64] | None:
    """Stratum of each record or group with these coordinates; None if groups are not kept apart."""
    if strata is None:
        return None
    return category_places(values, next(column for column in codec.columns if column.field.name == strata))


def category_places(values: NDArray[np.float64], column: EncodedColumn) -> NDArray[np.int64]:
    """Place in its categories of the value that each record with these coordinates has in a column."""
    block = column.blocks[0]
    if column.grid is not None:
        most = len(column.field.domain.categories or ()) if column.field.kind in LISTED else 0
        numbers = column.grid.to_numbers(values[:, block.start] * column.scale + column.mean)
        return np.asarray(np.clip(np.rint(numbers), 0, most - 1), dtype=np.int64)
    if block.kind is BlockKind.CODE:
        return block.places(values)
    return np.asarray(np.argmax(values[:, block.where], axis=1), dtype=np.int64)


USUAL = "usual"
"""Default treatment in a stream: wider categories or other ones, but a rare class of the target stops it."""

_HELD, _RARE = "held", "rare"
_NUMBER = np.dtype("<i8")


@dataclass(frozen=True, eq=False, repr=False)
class RareHandling:
    """What becomes of rare categories in rows that are drawn, and the fact that says so.

    Columns ``emptied`` have no category that enough hold: their new cells stay empty. Cells of columns ``filled`` that
    are missing, or whose category too few hold, take the value of another drawn row.
    """

    fact: RareValues
    recodings: tuple[Recoding, ...] = ()
    emptied: tuple[str, ...] = ()
    filled: tuple[Field, ...] = ()

    def of(self, table: pa.Table, rng: np.random.Generator) -> pa.Table:
        """Rows that were drawn, with rare categories hidden."""
        lost = lost_cells(table, {field.name: field for field in self.filled}, self.recodings)
        table = recode(table, self.recodings)
        for name in self.emptied:
            place = table.column_names.index(name)
            table = table.set_column(place, name, pa.nulls(table.num_rows, table.column(place).type))
        for name, gone in lost.items():
            table = _filled(table, name, gone, rng)
        return table


class HeldValues:
    """How many records that were taken in hold each category, and how many lack a cell, column by column."""

    def __init__(self, codec: Codec, counts: Mapping[str, NDArray[np.int64]] | None = None) -> None:
        self._columns = codec.columns
        self._schema = codec.schema
        sizes = {column.field.name: _size(column.field) for column in codec.columns}
        self._counts = {name: np.zeros(1 + size, dtype=np.int64) for name, size in sizes.items()}
        for name, known in (counts or {}).items():
            self._counts[name] += known

    @classmethod
    def on_disk(cls, state: State, codec: Codec) -> HeldValues:
        """Counts of a state.

        Raises
        ------
        StateError
            If they are not those of its columns.
        """
        sizes = {column.field.name: _size(column.field) for column in codec.columns}
        counts = {key: counts_of_bytes(state.body(_HELD, key), sizes.get(key, -1)) for key in state.keys(_HELD)}
        if counts.keys() != sizes.keys():
            raise _unreadable()
        return cls(codec, counts)

    def add(self, values: NDArray[np.float64]) -> None:
        """Count records that are taken in, by their coordinates."""
        for column in self._columns:
            absent = np.zeros(len(values), dtype=np.bool_)
            if len(column.blocks) > 1:
                absent = values[:, column.blocks[1].start] > 0.5
            counts = self._counts[column.field.name]
            counts[0] += np.count_nonzero(absent)
            if len(counts) > 1:
                counts[1:] += np.bincount(category_places(values, column)[~absent], minlength=len(counts) - 1)

    @property
    def counts(self) -> Mapping[str, NDArray[np.int64]]:
        """Of each column the records that lack a cell, then those that hold each category."""
        return self._counts

    def entries(self) -> list[StateEntry]:
        """What is to be written of the counts."""
        return [StateEntry(_HELD, name, counts.astype(_NUMBER).tobytes()) for name, counts in self._counts.items()]

    def hiding(self, settings: StreamSettings, rng: np.random.Generator) -> RareHandling:
        """What must be hidden now, so that each category is held by as many persons as the lowest level, or more.

        ``rng`` draws by how many persons more a new label must be held.

        Raises
        ------
        PrivacyRefusal
            If a class of the target is rare and its treatment is not given.
        """
        listed = [column.field for column in self._columns if column.field.kind in LISTED]
        k = settings.k // settings.person_rows
        fact = RareValues("lift", k, len(listed), by_person=settings.person is not None)
        held = {each.name: self._counts[each.name][1:] for each in listed}
        if settings.rare == "keep":
            return RareHandling(dataclasses.replace(fact, way="keep"))
        target = self._schema.target
        classes = held.get("" if target is None else target.name, np.empty(0))
        if settings.rare == USUAL and target is not None and ((classes > 0) & (classes < settings.k)).any():
            raise PrivacyRefusal(
                f"a class of the target {target.name!r} is that of fewer than {k} persons of the stream; ingest more, "
                "or begin the stream with --rare pool to count it to others, or --rare keep to release it as it is"
            )
        way = None if settings.rare == USUAL else cast(RareTreatment, settings.rare)
        floors = MinimumFrequencies.drawn(settings.k, rng)
        found = {each.name: recode_counts(each, held[each.name], floors, way) for each in listed}
        gone = tuple(name for name, each in found.items() if each is not None and each.after is None)
        recodings = tuple(each for each in found.values() if each is not None and each.after is not None)
        filled = tuple(
            column.field
            for column in self._columns
            if column.field.name not in gone and 0 < self._counts[column.field.name][0] < settings.k
        )
        fact = dataclasses.replace(fact, way="lift" if any(each.lifted for each in recodings) else "pool")
        return RareHandling(fact, recodings, gone, filled)


def _size(field: Field) -> int:
    return len(field.domain.categories or ()) if field.kind in LISTED else 0


def counts_of_bytes(body: bytes, size: int) -> NDArray[np.int64]:
    """Counts of the missing cells and of each category; raises StateError if the bytes do not hold such counts."""
    counts = np.frombuffer(body[: len(body) // 8 * 8], dtype=_NUMBER).astype(np.int64)
    if len(body) != 8 * (1 + size) or size < 0 or (counts < 0).any() or (counts > 2**50).any():
        raise _unreadable()
    return counts


def _unreadable() -> StateError:
    return StateError("the state does not tell how many hold each category; restore a complete copy of it")


def _filled(table: pa.Table, name: str, lost: NDArray[np.bool_], rng: np.random.Generator) -> pa.Table:
    """Lost cells of a column take the value of another row, if any has one."""
    donors = np.flatnonzero(~lost)
    if not lost.any() or not len(donors):
        return table
    origin = np.arange(len(lost))
    origin[lost] = rng.choice(donors, int(lost.sum()))
    return table.set_column(table.column_names.index(name), name, table.column(name).take(pa.array(origin)))


def entry_of_rare(fact: RareValues) -> StateEntry:
    """Write what was hidden in the epoch that is begun."""
    return StateEntry(_RARE, "", write_json(fact).encode())


def rare_on_disk(state: State) -> RareValues:
    """What was hidden in the last epoch."""
    try:
        return from_json(RareValues, state.body(_RARE))
    except Unparsable:
        raise StateError("the state does not name the hidden categories; use the version that wrote it") from None


def hidden_schema(schema: Schema, table: pa.Table) -> tuple[Schema, tuple[str, ...]]:
    """Schema of published rows, with the categories that rare ones became, and columns that have no value in any row.

    Those are dropped: less than two categories held by enough persons were left in them.
    """
    fields, dropped = [], []
    for field in schema:
        if field.kind in LISTED and field.role in (Role.CONFIDENTIAL, Role.TARGET):
            column = table.column(field.name)
            if table.num_rows and column.null_count == table.num_rows:
                dropped.append(field.name)
                field = Field(field.name, field.kind, Role.IDENTIFIER, missing=field.missing)
            elif field.kind is Kind.NOMINAL:
                field = _with_new(field, column)
        fields.append(field)
    return dataclasses.replace(schema, fields=tuple(fields)), tuple(dropped)


def _with_new(field: Field, column: pa.ChunkedArray) -> Field:
    known = tuple(field.domain.categories or ())
    values = [value for value in plain(column).unique().to_pylist() if value is not None and value not in field.missing]
    if set(values) <= set(known):
        return field
    if not all(isinstance(value, str) for value in known):
        known = tuple(str(value) for value in known)
    new = sorted(str(value) for value in values if str(value) not in known)
    domain = Domain(field.domain.declared, categories=(*known, *new))
    return dataclasses.replace(field, domain=domain)


_TAIL, _STEP, _DUE = "tail", "cut-off", "cut-offs-due"
_RENEWED = 1.1  # times as many records as at the last cut-offs
_CODED = (Kind.CONTINUOUS, Kind.INTEGER, Kind.DATE)
_SLOPE, _BINS = 4.0, 64.0  # bins are a 256th of a deviation wide in the middle, and a 64th of the value far out
_MOST_BINS = 1 << 18

Bins = NDArray[np.int64]
"""Numbers of bins in rising order, and how many records have a number in each."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class StreamTails:
    """How many records of a stream have their numbers in which bin, and the cut-offs that records are coded to.

    No cell can be read off the counts. A cut-off lies among the bins of the k-th to the (2k - 1)-th largest or smallest
    number; k counts rows, as many times the privacy level as rows of a person are taken in. Records join their groups
    with their numbers coded, so that no statistic of a group holds an extreme value. Cut-offs are renewed each time
    that a tenth more records have come, whatever batches they come in: ``steps`` holds those so far, low and high ends
    by column, and the next follow at ``due`` of the ``records``.
    """

    columns: tuple[EncodedColumn, ...]
    settings: StreamSettings
    counts: Mapping[str, Bins]
    steps: tuple[NDArray[np.float64], ...] = ()
    records: int = 0
    due: int = 0

    @classmethod
    def begun(cls, codec: Codec, settings: StreamSettings, values: NDArray[np.float64]) -> StreamTails:
        """Tails of the first records."""
        return cls._empty(codec, settings)._counted(values)._renewed()

    @classmethod
    def _empty(cls, codec: Codec, settings: StreamSettings) -> StreamTails:
        names = [] if settings.tails == "keep" else [each.field.name for each in codec.columns if _is_coded(each)]
        return cls(codec.columns, settings, {name: np.empty((2, 0), dtype=np.int64) for name in names})

    @classmethod
    def on_disk(cls, state: State, codec: Codec, settings: StreamSettings) -> StreamTails:
        """Tails of a state.

        Raises
        ------
        StateError
            If they are not those of its columns.
        """
        empty = cls._empty(codec, settings)
        counts = {key: counts_of_bins(state.body(_TAIL, key)) for key in state.keys(_TAIL)}
        if counts.keys() != empty.counts.keys():
            raise _unreadable_tails()
        if not counts:
            return empty
        steps = tuple(_step_of_bytes(state.body(_STEP, key), len(counts)) for key in sorted(state.keys(_STEP)))
        body = state.body(_DUE)
        progress = np.frombuffer(body, dtype=_NUMBER).tolist() if len(body) == 16 else [0, 0]
        if not steps or not 0 < progress[0] < progress[1]:
            raise _unreadable_tails()
        return cls(codec.columns, settings, {name: counts[name] for name in empty.counts}, steps, *progress)

    def entries(self, before: StreamTails | None = None) -> list[StateEntry]:
        """What is to be written, of the cut-offs only those that are new."""
        if not self.counts:
            return []
        known = 0 if before is None else len(before.steps)
        new = enumerate(self.steps[known:], start=known)
        return [
            *(StateEntry(_TAIL, name, bins.astype(_NUMBER).tobytes()) for name, bins in self.counts.items()),
            *(StateEntry(_STEP, f"{place:06d}", step.astype("<f8").tobytes()) for place, step in new),
            StateEntry(_DUE, "", np.array([self.records, self.due], dtype=_NUMBER).tobytes()),
        ]

    @property
    def fact(self) -> TailsCoded | None:
        """What is stated of the tails; None if no column has any."""
        settings, columns = self.settings, sum(map(_is_coded, self.columns))
        if not columns:
            return None
        persons = settings.k // settings.person_rows
        return TailsCoded(settings.tails, persons, columns, by_person=settings.person is not None)

    def admit(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64], StreamTails]:
        """Records that are taken in, with their numbers coded; the cut-offs of each; and the tails after them."""
        if not self.counts:
            return values, np.zeros(len(values), dtype=np.int64), self
        tails, steps, first = self, np.empty(len(values), dtype=np.int64), 0
        while first < len(values):
            last = min(len(values), first + tails.due - tails.records)
            steps[first:last] = len(tails.steps) - 1
            tails = tails._counted(values[first:last])
            tails, first = tails._renewed() if tails.records == tails.due else tails, last
        return tails.code(values, steps), steps, tails

    def code(self, values: NDArray[np.float64], steps: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Records with their numbers coded to the cut-offs of their ``steps``, by default the last ones."""
        coded = values.copy()
        places = np.full(len(values), len(self.steps) - 1) if steps is None else steps
        for slot, column in enumerate(self._coded):
            ends = np.array([step[slot] for step in self.steps])[places]
            here, start = ~_missing(coded, column.blocks), column.blocks[0].start
            coded[here, start] = np.clip(coded[here, start], ends[here, 0], ends[here, 1])
        return coded

    @property
    def _coded(self) -> list[EncodedColumn]:
        return [column for column in self.columns if column.field.name in self.counts]

    def _counted(self, values: NDArray[np.float64]) -> StreamTails:
        counts = dict(self.counts)
        for column in self._coded:
            known = values[~_missing(values, column.blocks), column.blocks[0].start]
            bins = np.floor(_BINS * np.arcsinh(_SLOPE * known)).astype(np.int64)
            numbers, held = counts[column.field.name]
            found, places = np.unique(np.concatenate([numbers, bins]), return_inverse=True)
            weights = np.concatenate([held, np.ones(len(bins), dtype=np.int64)])
            totals = np.bincount(places, weights=weights, minlength=len(found)).astype(np.int64)
            counts[column.field.name] = np.vstack([found, totals])
        return dataclasses.replace(self, counts=counts, records=self.records + len(values))

    def _renewed(self) -> StreamTails:
        """The same with cut-offs of now."""
        if not self.counts:
            return self
        step = np.array([self._cut_offs(column.field.name, None) for column in self._coded])
        due = max(self.records + 1, math.ceil(_RENEWED * self.records))
        return dataclasses.replace(self, steps=(*self.steps, step), due=due)

    def release(self, codec: Codec, decimals: Mapping[str, int], rng: np.random.Generator) -> Codec:
        """The codec that writes released rows: its grids end at random cut-offs."""
        columns = []
        for column in codec.columns:
            name = column.field.name
            if name in self.counts and column.grid is not None:
                ends = np.array(self._cut_offs(name, rng))
                if not np.isfinite(ends).all():  # no record has a number yet
                    columns.append(column)
                    continue
                places = ends * column.scale + column.mean
                ends = column.grid.to_numbers(places)
                low, high = (_inwards(ends, decimals.get(name)) if column.grid.step is None else ends).tolist()
                column = dataclasses.replace(column, grid=cut_grid(column.grid, min(low, high), high))
            columns.append(column)
        return dataclasses.replace(codec, columns=tuple(columns))

    def _cut_offs(self, name: str, rng: np.random.Generator | None) -> tuple[float, float]:
        """Cut-offs of a column: weighted means of the ranks from k on, with random weights or equal ones."""
        numbers, held = self.counts[name]
        if not len(numbers):
            return -np.inf, np.inf
        low = self._weighted(numbers + 1, held, rng)  # the inner edge of each bin
        high = self._weighted(numbers[::-1], held[::-1], rng)
        return min(low, high), high

    def _weighted(self, numbers: Bins, held: Bins, rng: np.random.Generator | None) -> float:
        k, upto = self.settings.k, np.cumsum(held)
        ranks = np.arange(min(k, int(upto[-1])), min(2 * k, int(upto[-1]) + 1))
        edges = np.sinh(numbers[np.searchsorted(upto, ranks)] / _BINS) / _SLOPE
        weights = np.ones(len(ranks)) if rng is None else rng.dirichlet(np.ones(len(ranks)))
        return float(np.average(edges, weights=weights))


def _is_coded(column: EncodedColumn) -> bool:
    return column.field.kind in _CODED


def _missing(values: NDArray[np.float64], blocks: tuple[Block, ...]) -> NDArray[np.bool_]:
    return values[:, blocks[1].start] > 0.5 if len(blocks) > 1 else np.zeros(len(values), dtype=np.bool_)


def _inwards(numbers: NDArray[np.float64], decimals: int | None) -> NDArray[np.float64]:
    """A lower and an upper bound rounded up and down to the given number of decimals."""
    if decimals is None:
        return numbers
    scale = 10.0**decimals
    return np.array([np.ceil(numbers[0] * scale), np.floor(numbers[1] * scale)]) / scale


def counts_of_bins(body: bytes) -> Bins:
    """Counts of bins; raises StateError if the bytes hold no such counts."""
    if len(body) % 16 or len(body) > 16 * _MOST_BINS:
        raise _unreadable_tails()
    numbers, held = bins = np.frombuffer(body, dtype=_NUMBER).astype(np.int64).reshape(2, -1)
    if (np.diff(numbers) <= 0).any() or (held <= 0).any() or (np.abs(numbers) > _MOST_BINS).any() or held.sum() > 2**50:
        raise _unreadable_tails()
    return bins


def _step_of_bytes(body: bytes, columns: int) -> NDArray[np.float64]:
    if len(body) != 16 * columns:
        raise _unreadable_tails()
    step = np.frombuffer(body, dtype="<f8").astype(np.float64).reshape(columns, 2)
    if not (step[:, 0] <= step[:, 1]).all():  # also if one is no number
        raise _unreadable_tails()
    return step


def _unreadable_tails() -> StateError:
    return StateError("the state does not hold the counts of its columns' tails; restore a complete copy of it")
