"""Columns that leave otherwise than they came: moved out of their domain on purpose, or as answers of a law."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable

import numpy as np
import pyarrow as pa

from sfumato.core.arrays import Bools, Floats
from sfumato.core.errors import OptionError
from sfumato.core.records import Answers, Grids, Records
from sfumato.tables.cells import EXACT, Gap, MissingForms, absent_cells, decimals_of_step, is_text, plain, write_numbers
from sfumato.tables.dates import is_time_of_day, microseconds_of_cells, write_moments
from sfumato.tables.field import DURATION_FORMATS, DateStep, Domain, Field, Kind
from sfumato.tables.grid import Grid
from sfumato.tables.schema import Schema

__all__ = [
    "answered_fields",
    "exactly_on",
    "free_field",
    "free_fields",
    "own_units",
    "round_whole",
    "type_of_moved",
    "write_answers",
    "write_moved",
]

_MOST_DECIMALS = 9  # of a grid that is counted in whole numbers of the last decimal


def own_units(grid: Grid, mean: float, scale: float, field: Field) -> tuple[float, float] | None:
    """Centre and scale of a column in its own units; None where it is no plain number.

    ``mean`` and ``scale`` count in places of the grid.
    """
    if field.kind not in (Kind.CONTINUOUS, Kind.INTEGER):
        return None
    if grid.step is None:
        return mean, scale
    return grid.anchor + grid.step * mean, grid.step * scale


def exactly_on(numbers: Floats, grid: tuple[float, float] | None) -> Floats:
    """Bring numbers to the grid that they lie on up to rounding: their last bits would tell mean and deviation.

    ``grid`` is a place of it and its step; without one the numbers stay as they are.

    Examples
    --------
    >>> exactly_on(np.array([0.29999999999, 7.0000000001]), (0.0, 0.1)).tolist()
    [0.3, 7.0]
    """
    if grid is None:
        return numbers
    anchor, step = grid
    places = np.rint((numbers - anchor) / step)
    decimals = max(decimals_of_step(step), decimals_of_step(anchor))
    if decimals > _MOST_DECIMALS:
        return np.asarray(anchor + places * step)
    scale = 10.0**decimals
    return np.asarray((np.rint(anchor * scale) + places * np.rint(step * scale)) / scale)


def write_moved(
    numbers: Floats,
    absent: Bools,
    field: Field,
    kind: pa.DataType,
    grid: tuple[float, float] | None = None,
    gap: Gap | MissingForms = None,
) -> pa.Array:
    """Write the moved numbers of a column: whole ones rounded, all others as doubles; as text where it came as text.

    Ages are rounded in the paper too, "to be consistent with the values in the real world" [OZ03, sec. 4.3].
    """
    free = free_field(field, grid)
    numbers = exactly_on(numbers, grid)
    if free.kind is Kind.INTEGER:
        numbers = round_whole(numbers, field.name)
    return write_numbers(numbers, absent, free, kind if is_text(kind) else type_of_moved(free, kind), gap)


def type_of_moved(field: Field, kind: pa.DataType) -> pa.DataType:
    """Arrow type of moved numbers: 64 bits of whole ones, unless they came as floating-point numbers, else a double."""
    return pa.int64() if field.kind is Kind.INTEGER and not pa.types.is_floating(kind) else pa.float64()


def round_whole(numbers: Floats, name: str) -> Floats:
    """Round the moved numbers of a column of whole ones.

    Raises
    ------
    OptionError
        For numbers that a double no longer tells from their neighbours.
    """
    beyond = int((np.abs(numbers) >= EXACT).sum())
    if beyond:
        raise OptionError(
            f"the key moves {beyond} whole numbers of column {name!r} beyond 2^53; choose smaller terms, or declare "
            "the column continuous"
        )
    return np.asarray(np.rint(numbers))


def free_field(field: Field, grid: tuple[float, float] | None = None) -> Field:
    """Field of a column whose numbers were moved: without domain and format, and continuous.

    Whole numbers stay integer, unless they were moved to a grid that has other places. Dates stay dates, by their step,
    and their texts are ISO dates.
    """
    if field.kind is Kind.DATE:
        step = field.domain.step
        days = step in (DateStep.DAY, DateStep.MONTH)
        form = None if field.format is None or days else "%Y-%m-%d %H:%M:%S"
        form = field.format if is_time_of_day(field) else form
        return dataclasses.replace(field, domain=Domain(step=step), format=form)
    whole = field.kind is Kind.INTEGER and (grid is None or all(float(part).is_integer() for part in grid))
    form = field.format if whole and field.format in DURATION_FORMATS else None
    return dataclasses.replace(field, kind=Kind.INTEGER if whole else Kind.CONTINUOUS, domain=Domain(), format=form)


def free_fields(schema: Schema, moved: Collection[str], grids: Grids = ()) -> Schema:
    """Free the moved columns of a schema from domains that no longer hold; those of the others stay.

    Examples
    --------
    >>> schema = Schema((Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0, high=120)),))
    >>> free_fields(schema, {"age"})["age"].domain.describe()
    'observed'
    """
    steps = {name: (anchor, step) for name, anchor, step in grids}
    fields = (free_field(field, steps.get(field.name)) if field.name in moved else field for field in schema)
    return Schema(tuple(fields))


_DAYS = (DateStep.DAY, DateStep.MONTH)


def write_answers(table: pa.Table, records: Records, schema: Schema) -> pa.Table:
    """Released table with the answers of recoded columns in their places, and moved dates written as ISO dates.

    A recipient reads dates by the certificate alone, which does not say how a table wrote them. Times of day stay as
    they were written.
    """
    for answers in records.answers:
        table = _put(table, answers.column, _cells(answers))
    for field in schema:
        dates = field.name in records.moved and field.kind is Kind.DATE and not is_time_of_day(field)
        if dates and is_text(table.schema.field(field.name).type):
            cells = plain(table.column(field.name))
            absent = absent_cells(cells, field.missing)
            moments, _ = microseconds_of_cells(cells, absent, field)
            table = _put(table, field.name, write_moments(moments, absent, _iso(field), pa.string()))
    return table


def answered_fields(schema: Schema, answers: Iterable[Answers]) -> Schema:
    """Fields of the answers in the places of those of the values; what can be answered is declared by the law.

    Examples
    --------
    >>> schema = Schema((Field("age", Kind.INTEGER),))
    >>> sent = Answers("age", np.array([1, 0]), ("0..17", "18..99"), ordered=True)
    >>> answered_fields(schema, [sent])["age"].kind.value
    'ordinal'
    """
    sent = {each.column: each for each in answers}
    fields = (_field(field, sent[field.name]) if field.name in sent else field for field in schema)
    return dataclasses.replace(schema, fields=tuple(fields))


def _iso(field: Field) -> Field:
    form = "%Y-%m-%d" if field.domain.step in _DAYS else "%Y-%m-%d %H:%M:%S"
    return dataclasses.replace(field, format=form)


def _cells(answers: Answers) -> pa.Array:
    there = answers.codes >= 0
    if not answers.labels:
        return pa.array(answers.codes, mask=~there)
    return pa.array(answers.labels, pa.string()).take(pa.array(np.where(there, answers.codes, 0), mask=~there))


def _put(table: pa.Table, name: str, cells: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, cells)


def _field(field: Field, answers: Answers) -> Field:
    if not answers.labels:
        return Field(field.name, Kind.INTEGER, field.role, Domain(declared=True, low=0, high=answers.most))
    kind = Kind.ORDINAL if answers.ordered else Kind.NOMINAL
    return Field(field.name, kind, field.role, Domain(declared=True, categories=answers.labels))
