"""Which rows of a batch a stream takes in: those that fit its codec, up to a limit for each (keyed) person."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import LevelError
from sfumato.stream.pending import Vault
from sfumato.stream.settings import StateEntry, StreamSettings, whole_number
from sfumato.stream.state import State
from sfumato.tables.cells import EXACT, absent_cells, is_number, is_text, plain, read_codes, read_numbers
from sfumato.tables.codec import CellsRead, Codec, EncodedColumn
from sfumato.tables.field import Field, Kind
from sfumato.tables.levels import LevelRule, levels_of_table, parse_rules
from sfumato.tables.schema import Role, Schema, check_extra, check_lacking

__all__ = [
    "CountedPersons",
    "ScreenedRows",
    "digests_of",
    "entries_of_persons",
    "first_of_each",
    "screen",
    "source_of_levels",
]

_LISTED = (Kind.NOMINAL, Kind.BOOLEAN)
_Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class ScreenedRows:
    """Rows that are taken in, the level that each asks for, and of each column how many cells kept a row out.

    A row that is out for several columns counts in each of them. ``cells`` are those of the rows that are taken in, as
    they were read.
    """

    rows: NDArray[np.int64]
    levels: NDArray[np.int64]
    counts: dict[str, int]
    cells: dict[str, CellsRead]

    def only(self, taken: _Mask, column: str) -> ScreenedRows:
        """Some of the rows; the others are out for a column."""
        if taken.all():
            return self
        counts = dict(self.counts)
        counts[column] = counts.get(column, 0) + int((~taken).sum())
        cells = {name: (read[taken], absent[taken]) for name, (read, absent) in self.cells.items()}
        return ScreenedRows(self.rows[taken], self.levels[taken], counts, cells)


def screen(table: pa.Table, codec: Codec, level: str | int | None, strata: str | None = None) -> ScreenedRows:
    """Tell the rows that the codec can encode from those with a cell outside its domain.

    Parameters
    ----------
    level : str, int or None
        As in `sfumato.tables.levels.levels_of_table`.
    strata : str, optional
        A column whose missing cells keep their rows out.

    Raises
    ------
    BadInput
        For a table that lacks a column or has one of a type that cannot be read: that is no matter of single rows.
    """
    schema = codec.schema
    source = source_of_levels(level, schema)
    needed = [column.field.name for column in codec.columns]
    needed += [source] if isinstance(source, str) else []
    needed += sorted({name for rule in source for name, _, _ in rule.conditions}) if isinstance(source, tuple) else []
    check_lacking(table, list(dict.fromkeys(needed)))
    check_extra(table, schema)
    read: dict[str, CellsRead] = {}
    out: dict[str, _Mask] = {}
    for column in codec.columns:
        name, cells = column.field.name, table.column(column.field.name)
        read[name] = (read_codes if column.field.kind in _LISTED else read_numbers)(cells, column.field)
        out[name] = _misfits(read[name], column, cells.type)
        if name == strata:
            out[name] |= read[name][1]
    record_levels = np.zeros(table.num_rows, dtype=np.int64)
    if isinstance(source, str):
        record_levels, out[source] = _levels(table.column(source), schema[source])
    elif isinstance(source, tuple):
        for name in set(needed) - set(out):
            out[name] = _unreadable(table.column(name), schema[name])
    elif source is not None:
        record_levels[:] = source
    bad = np.logical_or.reduce([np.zeros(table.num_rows, dtype=np.bool_), *out.values()])
    rows = np.flatnonzero(~bad)
    record_levels = record_levels[rows]
    if isinstance(source, tuple) and len(rows):
        record_levels = _levels_of_rules(level, source, table.take(pa.array(rows)), schema)
    counts = {name: int(mask.sum()) for name, mask in out.items() if mask.any()}
    if len(rows) < table.num_rows:
        read = {name: (cells[rows], absent[rows]) for name, (cells, absent) in read.items()}
    return ScreenedRows(rows, record_levels, counts, read)


def source_of_levels(level: str | int | None, schema: Schema) -> str | int | tuple[LevelRule, ...] | None:
    """Tell where levels come from: a column, a number for all, rules, or nowhere."""
    if level is None:
        return next((field.name for field in schema if field.role is Role.LEVEL), None)
    if isinstance(level, int) or level in schema.names:
        return level
    return int(level) if re.fullmatch(r"[+-]?\d{1,9}", level.strip()) else parse_rules(level)


def _misfits(read: CellsRead, column: EncodedColumn, kind: pa.DataType) -> _Mask:
    """Mark the cells of an encoded column that lie outside its domain."""
    cells, absent = read
    if column.field.kind in _LISTED:
        bad = (cells < 0) & ~absent
    else:
        bad = ~np.isfinite(cells) & ~absent
        known = np.flatnonzero(~bad & ~absent)
        bad[known] = _outside(cells[known], column, kind)
    if len(column.blocks) == 1:
        bad |= absent  # no cell was missing in the first records, and the schema names no mark of missing ones
    return np.asarray(bad)


def _outside(numbers: NDArray[np.float64], column: EncodedColumn, kind: pa.DataType) -> _Mask:
    grid = column.grid
    if grid is None:
        return np.zeros(len(numbers), dtype=np.bool_)
    bad = (numbers < grid.low) | (numbers > grid.high) | _too_far(numbers, column)
    if column.field.kind in (Kind.INTEGER, Kind.DATE) or pa.types.is_integer(kind):
        bad |= np.abs(numbers) >= EXACT
    if grid.step is not None:
        inside = np.flatnonzero(~bad)
        bad[inside] = grid.to_numbers(grid.to_places(numbers[inside])) != numbers[inside]
    return np.asarray(bad)


def _too_far(numbers: NDArray[np.float64], column: EncodedColumn) -> _Mask:
    """Mark numbers so far from the first records that all others of a group would vanish beside them in rounding."""
    assert column.grid is not None  # asked of numbers only
    with np.errstate(over="ignore"):
        return np.asarray(np.abs(column.grid.to_places(numbers) - column.mean) >= EXACT * column.scale)


def _levels(cells: pa.ChunkedArray, field: Field) -> tuple[NDArray[np.int64], _Mask]:
    """Read privacy levels; marks those that are missing, no whole number, below 2, or outside declared bounds."""
    array = plain(cells)
    bad = absent_cells(array, field.missing)
    if is_text(array.type):
        trimmed = pc.utf8_trim_whitespace(array)
        readable = pc.match_substring_regex(trimmed, r"^\+?\d{1,9}(\.0*)?$")
        array = pc.if_else(readable, trimmed, pa.scalar(None, trimmed.type))
    elif not is_number(array.type):
        raise LevelError(f"column {field.name!r}: privacy levels are not numbers; levels are whole numbers")
    numbers = np.asarray(pc.fill_null(pc.cast(array, pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False))
    bad |= ~np.isfinite(numbers) | (numbers != np.rint(numbers)) | (numbers < 2) | (numbers > 2**31)
    if field.domain.declared:
        low, high = field.domain.low, field.domain.high
        bad |= (numbers < low) if isinstance(low, (int, float)) else False
        bad |= (numbers > high) if isinstance(high, (int, float)) else False
    return np.where(bad, 0, numbers).astype(np.int64), bad


def _unreadable(cells: pa.ChunkedArray, field: Field) -> _Mask:
    """Mark the cells of a column that a level rule cannot compare."""
    if field.kind in (*_LISTED, Kind.ORDINAL):
        return np.zeros(len(cells), dtype=np.bool_)
    numbers, absent = read_numbers(cells, field)
    return np.asarray(~np.isfinite(numbers) & ~absent)


def _levels_of_rules(
    level: str | int | None, rules: tuple[LevelRule, ...], table: pa.Table, schema: Schema
) -> NDArray[np.int64]:
    """Apply level rules to some rows of a stream.

    A whole table with fewer rows than a level is an error; a batch with fewer is none, so it is laid out several times.
    """
    highest = max(rule.level for rule in rules)
    times = -(-highest // table.num_rows)
    record_levels, _ = levels_of_table(level, pa.concat_tables([table] * times), schema)
    return record_levels[: table.num_rows]


_PERSON = "person"


class CountedPersons:
    """Number of ingested rows of each person; without the key persons cannot be identified."""

    def __init__(self, state: State, settings: StreamSettings, vault: Vault | None) -> None:
        self.column, self.most = settings.person, settings.person_rows
        self.vault = vault
        self._rows = Counter({key: whole_number(state.body(_PERSON, key)) for key in state.keys(_PERSON)})
        self._new: Counter[str] = Counter()

    @property
    def rows(self) -> Mapping[str, int]:
        """Rows of each person that were taken in, by digest."""
        return self._rows

    def admit(self, table: pa.Table, missing: tuple[str, ...]) -> NDArray[np.bool_]:
        """Which rows are taken in, from the first on: those of persons of whom fewer were; until `committed` is called.

        Rows that do not identify their persons are not.
        """
        self._new = Counter()
        if self.column is None or self.vault is None:
            return np.ones(table.num_rows, dtype=np.bool_)
        taken, self._new = first_of_each(table.column(self.column), missing, self.most, self.vault, self._rows)
        return taken

    def entries(self) -> list[StateEntry]:
        """What is to be written of the rows that were admitted last."""
        return entries_of_persons({name: self._rows[name] + count for name, count in self._new.items()})

    def committed(self) -> None:
        """Count the rows that were admitted last."""
        self._rows.update(self._new)
        self._new = Counter()


def digests_of(column: pa.ChunkedArray, missing: tuple[str, ...], vault: Vault) -> list[str | None]:
    """Keyed digest of each cell, as text; None if it is missing."""
    array = plain(column)
    absent = absent_cells(array, missing)
    cells = array.to_pylist()
    known = {cell: vault.digest(f"person {cell}").hex()[:32] for cell in set(cells) if cell is not None}
    return [None if gone else known[cell] for cell, gone in zip(cells, absent.tolist(), strict=True)]


def first_of_each(
    column: pa.ChunkedArray, missing: tuple[str, ...], most: int, vault: Vault, before: Mapping[str, int]
) -> tuple[NDArray[np.bool_], Counter[str]]:
    """Which rows are ingested, up to the limit for each person, and how many of each; ``before`` are those so far."""
    rows: Counter[str] = Counter()
    taken = np.zeros(len(column), dtype=np.bool_)
    for place, name in enumerate(digests_of(column, missing, vault)):
        if name is not None and before.get(name, 0) + rows[name] < most:
            rows[name] += 1
            taken[place] = True
    return taken, rows


def entries_of_persons(rows: Mapping[str, int]) -> list[StateEntry]:
    """Write how many rows of each person were taken in."""
    return [StateEntry(_PERSON, name, str(count).encode()) for name, count in rows.items()]
