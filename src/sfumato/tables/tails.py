"""Tails of numeric and date columns: top and bottom coding of values that fewer than k persons reach.

A cut-off is computed from at least k persons, each of whom counts once, and is drawn at random between their values, so
that it is nobody's own. In columns whose values are mostly common ones, such as ages, grades and counts, a value that
held by fewer than k persons becomes a neighbouring common one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import OptionError
from sfumato.core.persons import count_persons
from sfumato.tables.cells import is_span, is_text, numbers_of_cells, plain, write_numbers
from sfumato.tables.facts import TailsCoded
from sfumato.tables.field import Field, Kind
from sfumato.tables.grid import Grid, cut_grid, fit_grid, refuse_misfits, unbounded_grid
from sfumato.tables.infer import complete_field
from sfumato.tables.schema import Schema

__all__ = [
    "NUMERIC",
    "TAIL_METHODS",
    "Tail",
    "TailMethod",
    "Tails",
    "check_tails",
    "fit_tails",
    "person_maxima",
]

TailMethod = Literal["code", "smooth", "keep"]

TAIL_METHODS: tuple[TailMethod, ...] = ("code", "smooth", "keep")
"""Top and bottom coding, a fitted exponential tail in its place where a column has a long one, or nothing."""

NUMERIC = (Kind.CONTINUOUS, Kind.INTEGER, Kind.DATE)
"""Kinds of columns that have tails."""

_COMMON_SHARE = 0.9  # of who holds another value than the commonest, from which on rare values become common ones
_GOLDEN = (5.0**0.5 - 1.0) / 2.0  # columns use the uniform numbers of rows shifted by multiples of it
_LONG_TAIL = 2.0 / 3.0  # ratio of successive spacings (ranks 2k, 4k, 8k) from which on a tail counts as exponential


def check_tails(method: str | None) -> TailMethod | None:
    """Treatment of tails by its name, checked.

    Raises
    ------
    OptionError
        If there is no such method.
    """
    known: TailMethod | None = next((each for each in TAIL_METHODS if each == method), None)
    if known is None and method is not None:
        raise OptionError(f"there is no method {method!r} for tails; choose one of {', '.join(TAIL_METHODS)}")
    return known


@dataclass(frozen=True, eq=False, repr=False)
class Tail:
    """Lower and upper cut-off of one column, in the column's own count.

    Parameters
    ----------
    field : Field
    grid : Grid
        Values that the column may take before coding.
    low, high : float
        Cut-offs.
    common : ndarray
        If the column mostly holds common values: those held by at least k persons, in order. Else empty.
    low_scale, high_scale : float
        Mean of the exponential tail that is drawn beyond a cut-off; 0 if values are coded to the cut-off.
    furthest : float
        Largest distance beyond a cut-off, in multiples of the scale.
    kind : pyarrow.DataType
        Arrow type of the column.
    """

    field: Field
    grid: Grid
    low: float
    high: float
    common: Floats = dataclasses.field(default_factory=lambda: np.empty(0))
    low_scale: float = 0.0
    high_scale: float = 0.0
    furthest: float = 0.0
    kind: pa.DataType = dataclasses.field(default_factory=pa.float64)

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest number that may be released."""
        low, high = self.low - self.furthest * self.low_scale, self.high + self.furthest * self.high_scale
        if self.field.kind is not Kind.DATE:  # a tail does not change the sign of a column
            low = max(low, 0.0) if self.low >= 0.0 else low
            high = min(high, 0.0) if self.high <= 0.0 else high
        low, high = _inner_bounds(max(low, self.grid.low), min(high, self.grid.high), self.grid)
        return _round_trip_bounds(low, high, self.field, self.kind) if is_text(self.kind) else (low, high)

    def changes(self, numbers: Floats) -> Bools:
        """Numbers that are replaced."""
        outside = (numbers < self.low) | (numbers > self.high)
        return outside | ~np.isin(numbers, self.common) if len(self.common) else outside

    def replaced(self, numbers: Floats, uniform: Floats) -> Floats:
        """Replacement for the numbers that must not be released, each drawn by a uniform number."""
        if len(self.common):
            return _to_neighbour(numbers, self.common, uniform)
        coded = np.clip(numbers, self.low, self.high)
        excess = np.minimum(-np.log1p(-uniform), self.furthest)
        coded += np.where(numbers > self.high, self.high_scale * excess, 0.0)
        coded -= np.where(numbers < self.low, self.low_scale * excess, 0.0)
        cut = cut_grid(self.grid, *self.bounds)
        return cut.to_numbers(cut.to_places(coded))


@dataclass(frozen=True, eq=False, repr=False)
class Tails:
    """Tails of all numeric and date columns of a table, and the fact that states their treatment."""

    columns: Mapping[str, Tail] = dataclasses.field(default_factory=dict)
    fact: TailsCoded | None = None

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        """Smallest and largest number that may be released, by column."""
        return {name: tail.bounds for name, tail in self.columns.items()}

    def opened(self, schema: Schema) -> Schema:
        """Schema without the observed bounds of columns with drawn tails, which may exceed them."""
        drawn = {name for name, tail in self.columns.items() if tail.low_scale or tail.high_scale}
        return dataclasses.replace(
            schema,
            fields=tuple(
                dataclasses.replace(each, domain=dataclasses.replace(each.domain, low=None, high=None))
                if each.name in drawn and not each.domain.declared
                else each
                for each in schema
            ),
        )

    def code(self, table: pa.Table, uniform: Floats) -> pa.Table:
        """Replace the values that must not be released, in the fitted rows or in others.

        ``uniform`` holds a uniform number of each row.

        Raises
        ------
        SchemaError
            If numbers lie outside declared bounds or off the step.
        """
        for place, (name, tail) in enumerate(self.columns.items()):
            column = table.column(name)
            numbers, absent = numbers_of_cells(column, tail.field)
            known = ~absent
            refuse_misfits(numbers[known] if absent.any() else numbers, tail.grid, tail.field)
            changed = tail.changes(numbers) & known
            if changed.any():
                new = tail.replaced(numbers[changed], (uniform[changed] + place * _GOLDEN) % 1.0)
                cells = _replace_numbers(column, tail.field, changed, new)
                table = table.set_column(table.column_names.index(name), name, cells)
        return table


def fit_tails(
    table: pa.Table,
    schema: Schema,
    *,
    k: int,
    method: TailMethod | None = None,
    persons: Ints | None = None,
    stated: int = 0,
    copied: Mapping[str, Bools] | None = None,
    rng: np.random.Generator,
) -> Tails:
    """Fit the cut-offs of all numeric and date columns.

    Parameters
    ----------
    table : pyarrow.Table
    schema : Schema
    k : int
        Smallest number of persons that a cut-off is computed from.
    method : {"code", "smooth", "keep"}, optional
        By default "code".
    persons : ndarray of shape (n,), optional
        Person of each row, from 0; by default every row is a person.
    stated : int
        Number of persons that the fact states, at most k; by default k.
    copied : mapping of str to ndarray of shape (n,), optional
        Cells that hold another record's value, by column: they count for nobody.
    rng : numpy.random.Generator
        Draws the cut-offs.
    """
    fields = [field for field in schema.encoded if field.kind in NUMERIC]
    if k < 2 or not fields:
        return Tails()
    fact = TailsCoded(method or "code", stated or k, len(fields), by_person=persons is not None)
    if method == "keep":
        return Tails({}, fact)
    found = {}
    for each in fields:
        column = table.column(each.name)
        field = complete_field(each, column)
        numbers, absent = numbers_of_cells(column, field)
        counts = ~absent & ~copied[each.name] if copied and each.name in copied else ~absent
        counts = counts if counts.sum() >= k else ~absent
        if counts.any():
            grid = fit_grid(numbers[~absent], field, column.type, k, None if persons is None else persons[~absent])
            grid = _without_rare_bounds(grid, field, column.type) if method == "smooth" else grid
            whose = None if persons is None else persons[counts]
            tail = _fit_tail(field, grid, numbers[counts], whose, k, method == "smooth", rng)
            found[field.name] = dataclasses.replace(tail, kind=column.type)
    return Tails(found, fact)


def _without_rare_bounds(grid: Grid, field: Field, kind: pa.DataType) -> Grid:
    """Grid without observed bounds held by fewer than k persons, because a tail ending there would show them."""
    wide = unbounded_grid(grid, field, kind)
    low, high = wide.low if grid.fold_low else grid.low, wide.high if grid.fold_high else grid.high
    return dataclasses.replace(grid, low=low, high=high)


def _fit_tail(
    field: Field, grid: Grid, values: Floats, persons: Ints | None, k: int, smooth: bool, rng: np.random.Generator
) -> Tail:
    distinct, places = np.unique(values, return_inverse=True)
    held = count_persons(places.astype(np.int64), persons, len(distinct))
    common = distinct[held >= k]
    rare, rest = int(held[held < k].sum()), int(held.sum() - held.max())
    if len(common) and (rare < k or rare <= (1.0 - _COMMON_SHARE) * rest):
        return Tail(field, grid, float(common[0]), float(common[-1]), common)
    top = person_maxima(values, persons)
    bottom = person_maxima(-values, persons)
    high, low = _cut_off(top, k, rng), -_cut_off(bottom, k, rng)
    if low > high:  # fewer than 4k persons have a value
        low = high = _central_value(top, k, rng)
    low, high = _inner_bounds(low, high, grid)
    scales = (_tail_scale(bottom, k), _tail_scale(top, k)) if smooth else (0.0, 0.0)
    return Tail(field, grid, low, high, low_scale=scales[0], high_scale=scales[1], furthest=float(np.log(2 * k)))


def person_maxima(values: Floats, persons: Ints | None) -> Floats:
    """Largest value of each person, in descending order."""
    if persons is None:
        return np.sort(values)[::-1]
    order = np.lexsort((-values, persons))
    first = np.append(True, persons[order][1:] != persons[order][:-1])
    return np.sort(values[order][first])[::-1]


def _cut_off(falling: Floats, k: int, rng: np.random.Generator) -> float:
    """Random weighted mean of the values of ranks k to 2k - 1; k persons reach it and one person moves it little."""
    ranks = falling[min(k, len(falling)) - 1 : 2 * k - 1]
    return float(rng.dirichlet(np.ones(len(ranks))) @ ranks)


def _central_value(falling: Floats, k: int, rng: np.random.Generator) -> float:
    """Random weighted mean of central values, with at most k - 1 or nearly half of all persons beyond it."""
    beyond = max(0, min(k - 1, (len(falling) - 2) // 2))
    middle = falling[beyond : len(falling) - beyond]
    return float(rng.dirichlet(np.ones(len(middle))) @ middle)


def _tail_scale(falling: Floats, k: int) -> float:
    """Mean of an exponential tail by the spacing of ranks 2k and 4k; 0 if the tail is shorter than exponential."""
    if len(falling) < 8 * k:
        return 0.0
    outer, middle, inner = falling[[2 * k - 1, 4 * k - 1, 8 * k - 1]].tolist()
    is_long = outer - middle >= _LONG_TAIL * (middle - inner)
    return float((outer - middle) / np.log(2.0)) if is_long else 0.0


def _inner_bounds(low: float, high: float, grid: Grid) -> tuple[float, float]:
    """Bounds moved inwards onto the grid; the same value twice if none lies between them."""
    cut = cut_grid(grid, low, high)
    inner = cut.to_numbers(cut.to_places(np.array([low, high])))
    return float(inner.min()), float(inner[1])


def _round_trip_bounds(low: float, high: float, field: Field, kind: pa.DataType) -> tuple[float, float]:
    """Bounds as read back from cells, because a text may hold fewer digits than a double."""
    cells = write_numbers(np.array([low, high]), np.zeros(2, dtype=np.bool_), field, kind)
    numbers, _ = numbers_of_cells(pa.chunked_array([cells]), field)
    return float(numbers[0]), float(numbers[1])


def _to_neighbour(numbers: Floats, common: Floats, uniform: Floats) -> Floats:
    """One of the two adjacent common values of each number, the nearer one more often."""
    above = np.clip(np.searchsorted(common, numbers), 0, len(common) - 1)
    below = np.maximum(above - (common[above] > numbers), 0)
    gap = common[above] - common[below]
    share = np.divide(numbers - common[below], gap, out=np.zeros(len(numbers)), where=gap > 0)
    return np.where(uniform < np.clip(share, 0.0, 1.0), common[above], common[below])


def _replace_numbers(column: pa.ChunkedArray, field: Field, changed: Bools, new: Floats) -> pa.Array:
    """A column with some numbers replaced."""
    array = column.combine_chunks() if is_span(column.type) else plain(column)  # which counts spans in seconds
    cells = write_numbers(new, np.zeros(len(new), dtype=np.bool_), field, array.type).cast(array.type)
    origin = np.arange(len(array))
    origin[changed] = len(array) + np.arange(len(new))
    return pa.concat_arrays([array, cells]).take(pa.array(origin))
