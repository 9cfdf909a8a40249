"""Columns that leave their domain: transformed numbers, and randomized answers."""

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
    """Centre and scale of a column in its own units; None if it is not a plain number.

    ``mean`` and ``scale`` count in places of the grid.
    """
    if field.kind not in (Kind.CONTINUOUS, Kind.INTEGER):
        return None
    if grid.step is None:
        return mean, scale
    return grid.anchor + grid.step * mean, grid.step * scale


def exactly_on(numbers: Floats, grid: tuple[float, float] | None) -> Floats:
    """Round numbers to their grid, because their last bits would reveal mean and deviation.

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
    """Write the transformed numbers of a column: integers rounded, others as doubles, texts as texts.

    Ages are rounded in the paper too, "to be consistent with the values in the real world" [OZ03, sec. 4.3].
    """
    free = free_field(field, grid)
    numbers = exactly_on(numbers, grid)
    if free.kind is Kind.INTEGER:
        numbers = round_whole(numbers, field.name)
    return write_numbers(numbers, absent, free, kind if is_text(kind) else type_of_moved(free, kind), gap)


def type_of_moved(field: Field, kind: pa.DataType) -> pa.DataType:
    """Arrow type of transformed numbers: 64-bit integers, or doubles if they came as floating-point numbers."""
    return pa.int64() if field.kind is Kind.INTEGER and not pa.types.is_floating(kind) else pa.float64()


def round_whole(numbers: Floats, name: str) -> Floats:
    """Round the transformed numbers of an integer column.

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
    """Field of a column with transformed numbers: continuous, without domain and format.

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
    """Schema with the fields of transformed columns freed from domains that no longer hold.

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
    """Released table with randomized answers in place of values, and transformed dates in ISO format.

    A recipient reads dates by the certificate alone, which does not say how a table wrote them. Times of day stay as
    they were written.
    """
    for answers in records.answers:
        table = _replace_column(table, answers.column, _answer_cells(answers))
    for field in schema:
        dates = field.name in records.moved and field.kind is Kind.DATE and not is_time_of_day(field)
        if dates and is_text(table.schema.field(field.name).type):
            cells = plain(table.column(field.name))
            absent = absent_cells(cells, field.missing)
            moments, _ = microseconds_of_cells(cells, absent, field)
            table = _replace_column(table, field.name, write_moments(moments, absent, _as_iso_date(field), pa.string()))
    return table


def answered_fields(schema: Schema, answers: Iterable[Answers]) -> Schema:
    """Fields of the answers; the noise distribution declares which answers are possible.

    Examples
    --------
    >>> schema = Schema((Field("age", Kind.INTEGER),))
    >>> sent = Answers("age", np.array([1, 0]), ("0..17", "18..99"), ordered=True)
    >>> answered_fields(schema, [sent])["age"].kind.value
    'ordinal'
    """
    sent = {each.column: each for each in answers}
    fields = (_answer_field(field, sent[field.name]) if field.name in sent else field for field in schema)
    return dataclasses.replace(schema, fields=tuple(fields))


def _as_iso_date(field: Field) -> Field:
    form = "%Y-%m-%d" if field.domain.step in _DAYS else "%Y-%m-%d %H:%M:%S"
    return dataclasses.replace(field, format=form)


def _answer_cells(answers: Answers) -> pa.Array:
    there = answers.codes >= 0
    if not answers.labels:
        return pa.array(answers.codes, mask=~there)
    return pa.array(answers.labels, pa.string()).take(pa.array(np.where(there, answers.codes, 0), mask=~there))


def _replace_column(table: pa.Table, name: str, cells: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, cells)


def _answer_field(field: Field, answers: Answers) -> Field:
    if not answers.labels:
        return Field(field.name, Kind.INTEGER, field.role, Domain(declared=True, low=0, high=answers.most))
    kind = Kind.ORDINAL if answers.ordered else Kind.NOMINAL
    return Field(field.name, kind, field.role, Domain(declared=True, categories=answers.labels))
