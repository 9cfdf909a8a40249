"""What happens to each column of a file, and moving its rows batch by batch: the same numbers as in memory."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.arrays import ExactMean
from sfumato.core.errors import OptionError, SchemaError
from sfumato.methods.geometry.key import Key, Mult
from sfumato.methods.geometry.transformations import Spacing, hybrid
from sfumato.tables.cells import absent_cells, is_text, numbers_of_cells, plain, write_numbers, written_type
from sfumato.tables.dates import write_seconds
from sfumato.tables.field import DURATION_FORMATS, DateStep, Domain, Field, Kind, Role
from sfumato.tables.grid import Grid, fit_grid, refuse_misfits, repair_table
from sfumato.tables.moved_columns import exactly_on, free_fields, round_whole, type_of_moved
from sfumato.tables.schema import Schema
from sfumato.tables.source import TableSource

__all__ = [
    "BatchTransformer",
    "ColumnPlan",
    "finest_of",
    "means_of",
    "numbers_there",
    "read_means",
    "read_spacings",
    "spaced_fields",
    "turned_fields",
]

_NUMBERS = (Kind.CONTINUOUS, Kind.INTEGER)


@dataclass(frozen=True, repr=False)
class ColumnPlan:
    """Columns that are moved, columns that pass as they are, and columns that are dropped."""

    schema: Schema
    moved: tuple[Field, ...]
    passed: tuple[Field, ...]

    @classmethod
    def of(cls, schema: Schema, key: Key) -> ColumnPlan:
        """What the key does to each column of a schema, whose fields are in the order of the table."""
        moved = tuple(field for field in schema.encoded if field.kind in _NUMBERS)
        key.check_cover([field.name for field in moved])
        return cls(schema, moved, tuple(field for field in schema.released if field not in moved))

    @property
    def names(self) -> list[str]:
        """The columns that are read and released, in the order of the file."""
        return [field.name for field in self.schema.released]

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that are not even read."""
        return tuple(field.name for field in self.schema if field.role in (Role.IDENTIFIER, Role.PERSON))

    @property
    def public(self) -> Schema:
        """The schema that may leave with the table."""
        return free_fields(self.schema, {field.name for field in self.moved}).public_part()

    def arrow_schema(self, source: pa.Schema) -> pa.Schema:
        """Types of the release: moved columns are doubles or whole, dictionaries written out, no metadata stays.

        Durations that came as text are text.
        """
        moved = {field.name: type_of_moved(field, source.field(field.name).type) for field in self.moved}
        moved |= {field.name: pa.string() for field in self.moved if field.format in DURATION_FORMATS}
        return pa.schema([(name, moved.get(name, _plain(source, name))) for name in self.names])


def _plain(schema: pa.Schema, name: str) -> pa.DataType:
    kind = schema.field(name).type
    return written_type(kind.value_type if pa.types.is_dictionary(kind) else kind)


_TILE = 8_192  # rows that are moved at once, so that their numbers stay in the cache from step to step


class BatchTransformer:
    """Moves batches by a key, and remembers in which columns cells were missing.

    Mutable for the sake of one pass: ``gaps`` grows, and ``means`` of the turned columns are read when first needed.
    ``spacings`` are how far apart the numbers of columns lie that `spaced_fields` names. ``exact_digits`` writes all
    digits.
    """

    def __init__(
        self,
        schema: pa.Schema,
        plan: ColumnPlan,
        key: Key,
        spacings: Mapping[str, float],
        means: Callable[[], Mapping[str, float]],
        *,
        exact_digits: bool = False,
    ) -> None:
        self.plan, self.key = plan, key
        self.gaps: set[str] = set()
        self._grids = {field.name: _declared_grid(field, schema.field(field.name).type) for field in plan.moved}
        self._kinds = plan.arrow_schema(schema)
        steps = {field.name: step_of(field) for field in plan.moved}
        self._written = (key.exact_steps if exact_digits else key.written_steps)(steps, spacings)
        self._read_means = means
        self._means: Mapping[str, float] | None = None
        self._rooms: dict[str, NDArray[np.float64]] = {}

    def __repr__(self) -> str:
        return f"Mover({len(self.plan.moved)} columns)"

    def move(self, rows: pa.Table, order: NDArray[np.int64] | None) -> list[pa.Array]:
        """Released columns of some rows, in an order; they hold until the next call."""
        rows = repair_table(rows, self.plan.schema)
        names = [field.name for field in self.plan.moved]
        beside, gone = self._gather(rows)
        values = self._room("F", len(rows))
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
            for start in range(0, len(values), _TILE):
                part = slice(start, start + _TILE)
                tile = beside[part] if order is None else beside.take(order[part], axis=0)
                values[part] = hybrid(tile, self.key, names)
        beyond = 0 if _is_finite(values) else int((~np.isfinite(values)).sum())
        if beyond:
            raise OptionError(f"the key moves {beyond} numbers beyond what a double holds; choose smaller terms")
        masks = {name: absent if order is None else absent[order] for name, absent in gone.items()}
        moved = {
            field.name: self._write(values[:, place], masks.get(field.name), field)
            for place, field in enumerate(self.plan.moved)
        }
        passed = {field.name: self._pass(rows.column(field.name), field, order) for field in self.plan.passed}
        return [(moved | passed)[name] for name in rows.schema.names]

    def _gather(self, rows: pa.Table) -> tuple[NDArray[np.float64], dict[str, NDArray[np.bool_]]]:
        """Put the numbers of a row next to each other: then one reach fetches the whole row, in whatever order."""
        found = [self._read(rows.column(field.name), field) for field in self.plan.moved]
        beside = self._room("C", len(rows))
        for start in range(0, len(beside), _TILE):
            part = slice(start, start + _TILE)
            for place, (numbers, _) in enumerate(found):
                beside[part, place] = numbers[part]
        gone = {}
        for place, (field, (_, absent)) in enumerate(zip(self.plan.moved, found, strict=True)):
            if absent is not None:
                beside[absent, place] = self._mean(field.name)
                gone[field.name] = absent
        return beside, gone

    def _write(self, numbers: NDArray[np.float64], absent: NDArray[np.bool_] | None, field: Field) -> pa.Array:
        step = self._written.get(field.name)
        numbers = exactly_on(numbers, None if step is None else (0.0, step))
        if field.kind is not Kind.INTEGER:
            return pa.array(numbers, mask=absent)
        whole, kind = pa.array(round_whole(numbers, field.name), mask=absent), self._kinds.field(field.name).type
        return write_seconds(whole, field.format) if field.format and is_text(kind) else whole.cast(kind)

    def _room(self, layout: Literal["C", "F"], rows: int) -> NDArray[np.float64]:
        """Matrix to write into, the same for every batch where it is large enough."""
        room = self._rooms.get(layout)
        if room is None or len(room) < rows:
            room = self._rooms[layout] = np.empty((rows, len(self.plan.moved)), order=layout)
        return room[:rows]

    def _read(self, column: pa.ChunkedArray, field: Field) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
        """Read numbers in their own units, and which are missing; None if none is."""
        grid = self._grids[field.name]
        if grid is None and pa.types.is_float64(column.type) and not column.null_count:
            view = plain(column).to_numpy()
            if _is_finite(view):
                return view, None
        numbers, absent = numbers_of_cells(column, field)
        if grid is not None:
            refuse_misfits(numbers[~absent], grid, field)
        if not absent.any():
            return numbers, None
        self.gaps.add(field.name)
        return numbers, absent

    def _pass(self, column: pa.ChunkedArray, field: Field, order: NDArray[np.int64] | None) -> pa.Array:
        array = plain(column)
        absent = absent_cells(array, field.missing)
        if absent.any():
            self.gaps.add(field.name)
        if field.name in self.plan.schema.monthly:
            moments, _ = numbers_of_cells(column, field)
            array = pc.if_else(pa.array(absent), array, write_numbers(moments, absent, field, array.type))
        return array if order is None else array.take(pa.array(order))

    def _mean(self, name: str) -> float:
        """Mean that a missing cell counts as where it is turned; elsewhere any number does."""
        if name not in self.key.units:
            return 0.0
        if self._means is None:
            self._means = self._read_means()
        return self._means[name]


def step_of(field: Field) -> float | None:
    """Tell the step that a field names; whole numbers count in ones."""
    step = field.domain.step
    if isinstance(step, DateStep):
        return None
    return 1.0 if step is None and field.kind is Kind.INTEGER else step


def spaced_fields(plan: ColumnPlan, key: Key) -> tuple[Field, ...]:
    """Moved columns of which must be known how far apart their numbers lie: not whole ones that no factor changes."""
    stretched = {step.column for step in key.steps if isinstance(step, Mult)}
    return tuple(field for field in plan.moved if field.kind is not Kind.INTEGER or field.name in stretched)


def turned_fields(plan: ColumnPlan, key: Key) -> tuple[Field, ...]:
    """Moved columns that are turned, whose missing cells count as their means."""
    return tuple(field for field in plan.moved if field.name in key.units)


def numbers_there(column: pa.Array | pa.ChunkedArray, field: Field) -> NDArray[np.float64]:
    """Numbers of a column that are not missing."""
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    numbers, absent = numbers_of_cells(chunked, field)
    return np.asarray(numbers[~absent])


def read_spacings(source: TableSource, plan: ColumnPlan, key: Key, rows: int) -> dict[str, float]:
    """Read how far apart the numbers of each column lie, in a pass that ends where nothing is left to learn.

    A column's numbers lie no nearer than their step, so most columns of whole numbers are known after a batch; so are
    numbers of arbitrary decimals.
    """
    left = {field.name: field for field in spaced_fields(plan, key)}
    found = {name: Spacing() for name in left}
    for batch in source.batches(list(left), rows) if left else ():
        for name, field in left.items():
            found[name].add(numbers_there(batch.column(name), field))
        left = {name: field for name, field in left.items() if not _is_known(found[name], step_of(field))}
        if not left:
            break
    return finest_of(found, plan)


def finest_of(found: Mapping[str, Spacing], plan: ColumnPlan) -> dict[str, float]:
    """How fine the numbers of moved columns may be written before they are moved."""
    steps = {field.name: step_of(field) for field in plan.moved}
    return {name: spacing.finest(steps[name]) for name, spacing in found.items()}


def _is_known(spacing: Spacing, step: float | None) -> bool:
    return spacing.known or (step is not None and (spacing.lost or 0.0 < spacing.apart <= step))


def _declared_grid(field: Field, kind: pa.DataType) -> Grid | None:
    """Bounds and the step that a field declares; None if it declares nothing.

    What was only observed does not bind: another part of the file may hold more.
    """
    if not field.domain.declared:
        field = dataclasses.replace(field, domain=Domain(declared=True), format=None)
    bare = (field.kind is Kind.CONTINUOUS and field.format is None) or pa.types.is_integer(kind)
    if bare and field.domain.low is None and field.domain.high is None and field.domain.step is None:
        return None
    return fit_grid(np.empty(0), field, kind, min_frequency=2)


def read_means(source: TableSource, plan: ColumnPlan, key: Key, rows: int) -> dict[str, float]:
    """Read the means of the turned columns in a pass of their own."""
    turned = turned_fields(plan, key)
    found = {field.name: ExactMean() for field in turned}
    for batch in source.batches(list(found), rows):
        for field in turned:
            found[field.name].add(numbers_there(batch.column(field.name), field))
    return means_of(found)


def means_of(found: Mapping[str, ExactMean]) -> dict[str, float]:
    """Means of columns, each of which must hold a number."""
    empty = [name for name, each in found.items() if not each.count]
    if empty:
        raise SchemaError(f"column {empty[0]!r} holds no number at all; drop it as an identifier")
    return {name: each.mean for name, each in found.items()}


def _is_finite(values: NDArray[np.float64]) -> bool:
    """Tell by their sum that all numbers are finite; of huge ones it may say no where they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(float(values.sum()))
