"""Moving the rows of one batch after the other: the same numbers as in memory, in columns that lie side by side."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from sfumato.errors import OptionError, SchemaError
from sfumato.geometry.key import Key, Mult
from sfumato.geometry.move import Spacing
from sfumato.geometry.transformations import hybrid
from sfumato.tables.cells import absent_cells, numbers_of_cells, plain
from sfumato.tables.field import DateStep, Domain, Field, Kind
from sfumato.tables.grid import Grid, fit_grid, refuse_misfits
from sfumato.tables.moved import exactly_on, round_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from sfumato.scale.plan import Plan
    from sfumato.scale.source import Source

__all__ = ["Mover"]

_TILE = 8_192  # rows that are moved at once, so that their numbers stay in the cache from step to step


class Mover:
    """Moves batches by a key, and remembers in which columns cells were missing.

    Mutable for the sake of one pass: ``gaps`` grows, and the means of the turned columns are read when first needed.
    """

    def __init__(self, source: Source, plan: Plan, key: Key, rows: int) -> None:
        self.source, self.plan, self.key, self.rows = source, plan, key, rows
        self.gaps: set[str] = set()
        self._grids = {field.name: _declared_grid(field, source.schema.field(field.name).type) for field in plan.moved}
        self._kinds = plan.arrow_schema(source.schema)
        steps = {field.name: _step(field) for field in plan.moved}
        self._written = key.written_steps(steps, _spacings(source, plan.moved, key, steps, rows))
        self._means: dict[str, float] | None = None
        self._rooms: dict[str, NDArray[np.float64]] = {}

    def __repr__(self) -> str:
        return f"Mover({len(self.plan.moved)} columns)"

    def move(self, rows: pa.Table, order: NDArray[np.int64] | None) -> list[pa.Array]:
        """Give the released columns of some rows, in an order; they hold until the next call."""
        names = [field.name for field in self.plan.moved]
        beside, gone = self._gather(rows)
        values = self._room("F", len(rows))
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
            for start in range(0, len(values), _TILE):
                part = slice(start, start + _TILE)
                tile = beside[part] if order is None else beside.take(order[part], axis=0)
                values[part] = hybrid(tile, self.key, names)
        _refuse_overflow(values)
        masks = {name: absent if order is None else absent[order] for name, absent in gone.items()}
        moved = {
            field.name: self._write(values[:, place], masks.get(field.name), field)
            for place, field in enumerate(self.plan.moved)
        }
        passed = {field.name: self._pass(rows.column(field.name), field, order) for field in self.plan.passed}
        return [(moved | passed)[name] for name in rows.schema.names]

    def _gather(self, rows: pa.Table) -> tuple[NDArray[np.float64], dict[str, NDArray[np.bool_]]]:
        """Put the numbers of a row beside each other: then one reach fetches the whole row, in whatever order."""
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
        return pa.array(round_whole(numbers, field.name), mask=absent).cast(self._kinds.field(field.name).type)

    def _room(self, layout: Literal["C", "F"], rows: int) -> NDArray[np.float64]:
        """Give a matrix to write into, the same for every batch where it is large enough."""
        room = self._rooms.get(layout)
        if room is None or len(room) < rows:
            room = self._rooms[layout] = np.empty((rows, len(self.plan.moved)), order=layout)
        return room[:rows]

    def _read(self, column: pa.ChunkedArray, field: Field) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
        """Read numbers in their own units, and which are missing; None where none is."""
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
        if absent_cells(array, field.missing).any():
            self.gaps.add(field.name)
        return array if order is None else array.take(pa.array(order))

    def _mean(self, name: str) -> float:
        """Give the mean that a missing cell counts as where it is turned; elsewhere any number does."""
        turned = [field for field in self.plan.moved if field.name in self.key.units]
        if name not in self.key.units:
            return 0.0
        if self._means is None:
            self._means = _means(self.source, turned, self.rows)
        return self._means[name]


def _step(field: Field) -> float | None:
    """Tell the step that a field names; whole numbers count in ones."""
    step = field.domain.step
    if isinstance(step, DateStep):
        return None
    return 1.0 if step is None and field.kind is Kind.INTEGER else step


def _spacings(
    source: Source, moved: Sequence[Field], key: Key, steps: Mapping[str, float | None], rows: int
) -> dict[str, float]:
    """Read how far apart the numbers of each column lie, in a pass that ends where nothing is left to learn.

    A column's numbers lie no nearer than their step, so most columns of whole numbers are known after a batch; so are
    numbers of arbitrary decimals. Whole numbers that no factor changes are not looked at.
    """
    stretched = {step.column for step in key.steps if isinstance(step, Mult)}
    left = {field.name: field for field in moved if field.kind is not Kind.INTEGER or field.name in stretched}
    found = {name: Spacing() for name in left}
    for batch in source.batches(list(left), rows) if left else ():
        for name, field in left.items():
            numbers, absent = numbers_of_cells(pa.chunked_array([batch.column(name)]), field)
            found[name].add(numbers[~absent])
        left = {name: field for name, field in left.items() if not _is_known(found[name], steps[name])}
        if not left:
            break
    return {name: spacing.apart for name, spacing in found.items()}


def _is_known(spacing: Spacing, step: float | None) -> bool:
    return spacing.lost or (step is not None and 0.0 < spacing.apart <= step)


def _declared_grid(field: Field, kind: pa.DataType) -> Grid | None:
    """Give the bounds and the step that a field declares; None where it declares nothing.

    What was only observed does not bind: another part of the file may hold more.
    """
    if not field.domain.declared:
        field = dataclasses.replace(field, domain=Domain(declared=True), format=None)
    bare = (field.kind is Kind.CONTINUOUS and field.format is None) or pa.types.is_integer(kind)
    if bare and field.domain.low is None and field.domain.high is None and field.domain.step is None:
        return None
    return fit_grid(np.empty(0), field, kind, crowd=2)


def _means(source: Source, fields: list[Field], rows: int) -> dict[str, float]:
    """Read the means of some columns in a pass of their own."""
    sums: dict[str, list[float]] = {field.name: [] for field in fields}
    counts = dict.fromkeys(sums, 0)
    for batch in source.batches(list(sums), rows):
        for field in fields:
            numbers, absent = numbers_of_cells(pa.chunked_array([batch.column(field.name)]), field)
            sums[field.name].append(float(numbers.sum()))  # missing cells read as 0
            counts[field.name] += len(numbers) - int(absent.sum())
    empty = [name for name, count in counts.items() if not count]
    if empty:
        raise SchemaError(f"column {empty[0]!r} holds no number at all; drop it as an identifier")
    return {name: math.fsum(parts) / counts[name] for name, parts in sums.items()}


def _refuse_overflow(values: NDArray[np.float64]) -> None:
    beyond = 0 if _is_finite(values) else int((~np.isfinite(values)).sum())
    if beyond:
        raise OptionError(f"the key moves {beyond} numbers beyond what a double holds; choose smaller terms")


def _is_finite(values: NDArray[np.float64]) -> bool:
    """Tell by their sum that all numbers are finite; of huge ones it may say no where they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(float(values.sum()))
