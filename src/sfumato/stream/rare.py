"""Categories that too few records of a stream hold: counted as records are taken in, hidden when rows leave."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.documents import Unparsable, from_json, write_json
from sfumato.core.errors import PrivacyRefusal
from sfumato.stream.settings import StateEntry, StateError, StreamSettings
from sfumato.stream.state import State
from sfumato.stream.strata import LISTED, category_places
from sfumato.tables.cells import plain
from sfumato.tables.codec import Codec
from sfumato.tables.facts import RareValues
from sfumato.tables.field import Domain, Field, Kind, Role
from sfumato.tables.recoding import MinimumFrequencies, RareTreatment, Recoding, recode, recode_counts
from sfumato.tables.schema import Schema
from sfumato.tables.tails import lost_cells

__all__ = ["USUAL", "HeldValues", "RareHandling", "counts_of_bytes", "entry_of_rare", "hidden_schema", "rare_on_disk"]

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
