"""The grid of a numeric column: bounds, step and decimals, and what happens to numbers beyond or between them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.arrays import Bools, Floats, number_of_persons
from sfumato.core.errors import SchemaError
from sfumato.core.records import Extent
from sfumato.tables.cells import (
    EXACT,
    TICKS,
    absent_cells,
    decimals_of_step,
    is_text,
    plain,
    read_codes,
    read_numbers,
    write_numbers,
)
from sfumato.tables.contact import Evidence
from sfumato.tables.dates import (
    DAY,
    FIRST_MOMENT,
    LAST_MOMENT,
    bound_to_number,
    is_monthly,
    is_time_of_day,
    nearest_month_starts,
    unit_of,
)
from sfumato.tables.field import Bound, Category, Field, Kind
from sfumato.tables.rules import decimals_of_field
from sfumato.tables.schema import Schema

__all__ = [
    "SMALLEST",
    "WIDEST",
    "Grid",
    "beyond_decimals",
    "cut_grid",
    "decimals_of_numbers",
    "extent_of_labels",
    "extent_of_numbers",
    "fit_grid",
    "fitting_moments",
    "has_bounds",
    "label_of",
    "mean_and_scale",
    "nearest_on_step",
    "off_decimals",
    "refuse_misfits",
    "repair_table",
    "rounded_to_step",
    "step_of_numbers",
    "unbounded_grid",
    "wide_moments",
]

SMALLEST = 1e-290
"""Least deviation that numbers without a step are divided by; below it, quotients overflow."""

WIDEST = 2.0**51
"""Steps from the mean that come back exactly from a standardized double."""

Few = Callable[[Callable[[NDArray[np.float64]], NDArray[np.bool_]]], bool]
"""Tells whether what a function marks is of few persons."""

_NEAR = 1e-9  # a bound this close to a place of the grid is that place
_ROUNDING = 1e-15
_MOST_DECIMALS = 18
_PROPOSED_DECIMALS = 12
_ENOUGH = 20  # gaps between numbers before a common divisor means anything
_SPREAD = 200  # numbers whose gaps are looked at
_WIDE = 2.0**20  # a spread, in steps, beside which half a step is nothing
_LARGEST = 1e300  # beyond it, differences overflow


@dataclass(frozen=True, repr=False)
class Grid:
    """Numbers that a column may take: bounds, and steps ``anchor + step * i`` with a number of decimals.

    A bound held by fewer than `min_frequency` persons is one person's own value: numbers beyond it are folded back
    inside, so that no release piles up exactly there. A shared or declared bound cuts. Days of a column by ``months``
    are the first of one.
    """

    low: float
    high: float
    anchor: float
    step: float | None
    decimals: int
    fold_low: bool
    fold_high: bool
    months: bool = False

    def to_places(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers counted in steps from the anchor; unchanged without a step."""
        if self.step is None:
            return numbers
        scale = 10.0**self.decimals
        whole = _near_whole(numbers * scale) - np.rint(self.anchor * scale)
        return np.asarray(whole / np.rint(self.step * scale))

    def to_numbers(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Nearest admissible number to each drawn position."""
        low, high = self.to_places(np.array([self.low, self.high])).tolist()
        if self.step is None:
            return self._inside(places, low, high)
        low, high = np.ceil(low - _NEAR), np.floor(high + _NEAR)
        scale = 10.0**self.decimals
        whole = np.rint(self.anchor * scale) + np.rint(self._inside(places, low, high)) * np.rint(self.step * scale)
        numbers = np.asarray(whole / scale)
        return nearest_month_starts(numbers, self.low, self.high) if self.months else numbers

    def _inside(self, places: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
        inside = places.copy()
        outside = (inside < low) | (inside > high)
        if not outside.any():
            return inside
        drawn = np.clip(inside[outside], -(2.0**1000), 2.0**1000)  # so that no reflection overflows
        if self.fold_low and self.fold_high and high > low:
            turn = 2.0 * (high - low)
            phase = np.mod(drawn - low, turn)
            drawn = low + np.minimum(phase, turn - phase)
        elif self.fold_low:
            drawn = np.where(drawn < low, 2.0 * low - drawn, drawn)
        elif self.fold_high:
            drawn = np.where(drawn > high, 2.0 * high - drawn, drawn)
        inside[outside] = np.clip(drawn, low, high)
        return inside

    def count_misfits(self, numbers: NDArray[np.float64]) -> tuple[int, int]:
        """Count the numbers outside the bounds, and those off the step."""
        outside = int(((numbers < self.low) | (numbers > self.high)).sum())
        if self.step is None or outside:
            return outside, 0
        return outside, int((self.to_numbers(self.to_places(numbers)) != numbers).sum())


def _near_whole(scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Remove the rounding error of a multiplication by a power of ten."""
    whole = np.rint(scaled)
    left_over = np.abs(scaled - whole)
    return np.where(left_over <= np.maximum(_NEAR, _ROUNDING * np.abs(whole)), whole, scaled)


def fit_grid(
    numbers: NDArray[np.float64],
    field: Field,
    kind: pa.DataType,
    min_frequency: int,
    persons: NDArray[np.int64] | None = None,
) -> Grid:
    """Grid of a column by its field and Arrow type, and by its numbers for what both leave open.

    A number is one person's, unless ``persons`` tells whose each is.

    Raises
    ------
    SchemaError
        For numbers outside the bounds or off the step.
    """
    domain = field.domain
    step = _step(field, kind)
    first: float | None
    last: float | None
    type_low, type_high = _range_of(kind, field, step)
    if field.kind is Kind.ORDINAL:
        first, last = 0.0, len(domain.categories or ()) - 1.0
    elif domain.declared:
        first = None if domain.low is None else _number(domain.low, field, upwards=True)
        last = None if domain.high is None else _number(domain.high, field)
    else:
        first = _edge(numbers.min(), field) if domain.low is None else _number(domain.low, field, upwards=True)
        last = float(numbers.max()) if domain.high is None else _number(domain.high, field)
    anchor = 0.0 if first is None else first
    low = type_low if first is None else max(type_low, first)
    high = type_high if last is None else min(type_high, last)
    grid = Grid(
        low,
        high,
        anchor,
        step,
        0 if step is None else max(decimals_of_step(step), decimals_of_step(anchor)),
        fold_low=not domain.declared and number_of_persons(persons, numbers == low) < min_frequency,
        fold_high=not domain.declared and number_of_persons(persons, numbers == high) < min_frequency,
        months=is_monthly(field),
    )
    refuse_misfits(numbers, grid, field)
    return grid


def nearest_on_step(numbers: NDArray[np.float64], field: Field, kind: pa.DataType) -> NDArray[np.float64]:
    """Numbers rounded to the step of a column; unchanged if it has none."""
    step = _step(field, kind)
    if step is None:
        return numbers
    anchor = 0.0 if field.domain.low is None else _number(field.domain.low, field, upwards=True)
    decimals = max(decimals_of_step(step), decimals_of_step(anchor))
    low, high = _range_of(kind, field, step)
    grid = Grid(low, high, anchor, step, decimals, fold_low=False, fold_high=False)
    return grid.to_numbers(grid.to_places(numbers))


def unbounded_grid(grid: Grid, field: Field, kind: pa.DataType) -> Grid:
    """Grid without bounds that were only observed; declared bounds and those of orders stay."""
    if field.domain.declared or field.kind is Kind.ORDINAL:
        return grid
    low, high = _range_of(kind, field, grid.step)
    return dataclasses.replace(grid, low=low, high=high, fold_low=False, fold_high=False)


def cut_grid(grid: Grid, low: float, high: float) -> Grid:
    """Grid with other bounds, at which numbers are cut off."""
    return dataclasses.replace(grid, low=low, high=high, fold_low=False, fold_high=False)


def has_bounds(field: Field) -> bool:
    """Whether the numbers of a column have declared bounds, or those of an order."""
    domain = field.domain
    bounded = domain.declared and (domain.low is not None or domain.high is not None)
    return field.kind is Kind.ORDINAL or (bounded and field.kind in (Kind.CONTINUOUS, Kind.INTEGER, Kind.DATE))


def refuse_misfits(numbers: NDArray[np.float64], grid: Grid, field: Field) -> None:
    """Refuse numbers outside the bounds or off the step."""
    outside, off = grid.count_misfits(numbers)
    if outside:
        raise SchemaError(f"column {field.name!r} holds {outside} values outside its bounds; widen its domain")
    if off:
        step = grid.step if field.kind is Kind.INTEGER else None
        finer = "declare it continuous" if step == 1 else "choose a finer step"
        raise SchemaError(f"column {field.name!r} holds {off} values off its step; {finer}")


def decimals_of_numbers(distinct: NDArray[np.float64], few: Few | None = None) -> int | None:
    """Number of decimals that writes every number exactly; None if it is not small.

    Numbers of which something is true that is so of ``few`` alone need not be written exactly.
    """
    few = few or partial(Evidence(1).few_numbers, distinct, distinct)
    for decimals in range(_PROPOSED_DECIMALS + 1):
        if few(partial(off_decimals, decimals=decimals)):
            return decimals
    return None


def off_decimals(numbers: NDArray[np.float64], decimals: int) -> NDArray[np.bool_]:
    """Numbers that a number of decimals does not write exactly, or only with more digits than a double has."""
    scale = 10.0**decimals
    with np.errstate(over="ignore"):
        whole = np.rint(numbers * scale)
    return np.asarray((whole / scale != numbers) | beyond_decimals(numbers, decimals))


def beyond_decimals(numbers: NDArray[np.float64], decimals: int) -> NDArray[np.bool_]:
    """Numbers too large for a double with this number of decimals."""
    return np.asarray(np.abs(numbers) > (EXACT - 1 if decimals == 0 else WIDEST / 2 / 10.0**decimals))


def step_of_numbers(distinct: NDArray[np.float64], decimals: int, few: Few | None = None) -> float:
    """Step of the numbers: a common divisor of their gaps, if there are enough of them.

    Numbers of which something is true that is so of ``few`` alone may lie off it.
    """
    scale = 10**decimals
    whole = np.rint(distinct * 10.0**decimals).astype(np.int64)
    gaps = np.diff(whole)
    if len(gaps) < _ENOUGH:
        return float(1 / scale)
    divisor = int(np.gcd.reduce(gaps))
    some = whole[:: max(1, len(whole) // _SPREAD)]
    for wider in _common_divisors(np.diff(some), divisor) if few is not None else ():
        residues, times = np.unique(some % wider, return_counts=True)
        off = partial(_off_class, scale=10.0**decimals, step=wider, residue=int(residues[times.argmax()]))
        if len(whole) - np.count_nonzero(off(distinct)) > _ENOUGH and few is not None and few(off):
            return float(wider / scale)
    return float(divisor / scale)


def rounded_to_step(distinct: NDArray[np.float64], step: float, decimals: int) -> NDArray[np.float64]:
    """Sorted numbers rounded to the step that most of them lie on."""
    scale = 10.0**decimals
    whole, wide = np.rint(distinct * scale).astype(np.int64), int(np.rint(step * scale))
    if wide <= 1:
        return distinct
    residues, times = np.unique(whole % wide, return_counts=True)
    residue = int(residues[times.argmax()])
    return np.asarray((np.rint((whole - residue) / wide).astype(np.int64) * wide + residue) / scale)


def _common_divisors(gaps: NDArray[np.int64], least: int) -> list[int]:
    """Divisors of most gaps, greatest first, that are larger than one which divides all."""
    pairs = [np.gcd(gaps[:-apart], gaps[apart:]) for apart in (1, 2)]
    found = np.unique(np.concatenate([gaps, *pairs]))
    found = found[found > least]
    shared = (gaps % found[:, None] == 0).mean(axis=1) > 0.5
    return [int(each) for each in found[shared][::-1]]


def _off_class(numbers: NDArray[np.float64], scale: float, step: int, residue: int) -> NDArray[np.bool_]:
    return np.asarray(np.rint(numbers * scale).astype(np.int64) % step != residue)


def mean_and_scale(numbers: NDArray[np.float64], grid: Grid, field: Field) -> tuple[float, float]:
    """Mean and deviation in steps of the grid, so that standardizing is invertible.

    Raises
    ------
    SchemaError
        For numbers too large or too far apart for that.
    """
    places = grid.to_places(numbers)
    low, high = float(places.min()), float(places.max())
    if max(abs(low), abs(high)) > _LARGEST:
        raise SchemaError(f"column {field.name!r} holds numbers beyond 1e300; mark them missing, or rescale it")
    if low == high:
        return low, 1.0
    size = high - low
    shares = (places - low) / size  # so that no square overflows or vanishes
    mean, spread = low + size * float(shares.mean()), size * float(shares.std())
    if grid.step is None:
        return mean, max(spread, SMALLEST)
    mean, spread = fitting_moments(mean, spread, grid)
    if max(high - mean, mean - low) >= WIDEST:
        raise SchemaError(
            f"column {field.name!r} spans more than 2^51 steps, which cannot be averaged exactly; give it a coarser "
            "step, or declare it an identifier or nominal"
        )
    return mean, spread


def fitting_moments(mean: float, spread: float, grid: Grid) -> tuple[float, float]:
    """Mean and deviation in steps of the grid for which standardizing is invertible."""
    if grid.step is None:
        return mean, spread if spread > SMALLEST else 1.0
    return float(np.rint(mean)) if spread > _WIDE else mean, spread


def _number(bound: Bound, field: Field, *, upwards: bool = False) -> float:
    number = bound_to_number(bound, field, upwards=upwards)
    if field.kind is Kind.INTEGER:
        return float(np.ceil(number) if upwards else np.floor(number))
    return number


def _edge(lowest: float, field: Field) -> float:
    """The lowest number as a bound; the grid of whole numbers starts at a whole one."""
    return float(np.floor(lowest) if field.kind in (Kind.INTEGER, Kind.DATE) else lowest)


def _step(field: Field, kind: pa.DataType) -> float | None:
    """Step of a column, which its type or format may imply."""
    if field.kind in (Kind.ORDINAL, Kind.DATE):
        return 1.0
    step = field.domain.step
    whole = field.kind is Kind.INTEGER or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if step is not None:
        if whole and float(step) != np.rint(float(step)):
            raise SchemaError(f"column {field.name!r} holds whole numbers by its type; choose a whole step")
        return float(step)
    if whole:
        return 1.0
    if field.format is not None:
        return float(f"1e-{len(field.format.partition('.')[2])}")
    return float(f"1e-{kind.scale}") if pa.types.is_decimal(kind) and 0 <= kind.scale <= _MOST_DECIMALS else None


def _range_of(kind: pa.DataType, field: Field, step: float | None) -> tuple[float, float]:
    """Range of a column's type, in the column's own count."""
    widest = float(np.finfo(np.float64).max)
    if step is not None:
        widest = (EXACT - 1) / 10.0 ** decimals_of_step(step)
    if field.kind is Kind.DATE:
        first, last = FIRST_MOMENT, LAST_MOMENT
        if pa.types.is_timestamp(kind) and kind.unit == "ns":
            first, last = -(2**63) // 1_000 + 1, 2**63 // 1_000 - 1
        elif is_time_of_day(field):
            first, last = 0, DAY - 1
        unit = unit_of(field)
        return max(-widest, float(-(-first // unit))), min(widest, float(last // unit))
    if pa.types.is_boolean(kind):
        return 0.0, 1.0
    if pa.types.is_decimal(kind):
        widest = min(widest, float(np.nextafter(10.0 ** (kind.precision - kind.scale), 0.0)))
    elif pa.types.is_float32(kind) or pa.types.is_float16(kind):
        widest = min(widest, float(np.finfo(kind.to_pandas_dtype()).max))
    elif pa.types.is_duration(kind):
        widest = min(widest, (2.0**63 - 2.0**11) / TICKS[kind.unit])
    elif pa.types.is_time(kind):
        return 0.0, 86_400.0 - max(1.0 / TICKS[kind.unit], 1e-6 * (step or 0.0))  # midnight is the next day's
    elif pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return max(-widest, float(limits.min)), min(widest, float(limits.max))
    return -widest, widest


def extent_of_labels(field: Field, origin: float = 0.0, unit: float = 1.0) -> Extent:
    """Ordered categories of a column as labels."""
    labels = tuple(label_of(category) for category in field.domain.categories or ())
    return Extent(field.domain.declared, labels=labels, origin=origin, unit=unit)


def extent_of_numbers(field: Field, grid: Grid, mean: float, scale: float, kind: pa.DataType) -> Extent:
    """Bounds and step of a column of numbers or dates, or the labels of an order.

    ``mean`` and ``scale`` count in places of the grid. A bound that a declared domain leaves open is none.
    """
    domain = field.domain
    if field.kind is Kind.ORDINAL:
        return extent_of_labels(field, mean, scale)
    low = None if domain.declared and domain.low is None else grid.low
    high = None if domain.declared and domain.high is None else grid.high
    if field.kind is Kind.DATE:
        first, last = _range_of(wide_moments(kind), field, grid.step)
        origin, step = grid.anchor + mean, str(domain.step)
        return Extent(domain.declared, low, high, 1.0, (), origin, scale, step, first, last)
    return Extent(domain.declared, low, high, grid.step)


def wide_moments(kind: pa.DataType) -> pa.DataType:
    """Timestamp type that holds all years: microseconds instead of nanoseconds, which end in 2262.

    Examples
    --------
    >>> wide_moments(pa.timestamp("ns")), wide_moments(pa.date32())
    (TimestampType(timestamp[us]), DataType(date32[day]))
    """
    nanos = pa.types.is_timestamp(kind) and kind.unit == "ns"
    return pa.timestamp("us", kind.tz) if nanos else kind


def label_of(category: Category) -> str:
    """A category as a text file writes it.

    Examples
    --------
    >>> label_of(True), label_of(3.0), label_of("a b")
    ('true', '3', 'a b')
    """
    if isinstance(category, bool):
        return "true" if category else "false"
    if isinstance(category, float) and category.is_integer():
        return str(int(category))
    return str(category)


def repair_table(table: pa.Table, schema: Schema, *, level: object = None) -> pa.Table:
    """A table with the repairable cells fixed; the same table if all cells fit.

    A column that says the privacy ``level`` of each row stays as it is: what someone asks for is not rounded.
    """
    for field in schema.encoded:
        if field.repair and field.name in table.column_names and field.name != level:
            place, column = table.column_names.index(field.name), table.column(field.name)
            table = table.set_column(place, field.name, _repair_column(column, field))
    return table


def _repair_column(column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray | pa.Array:
    if pa.types.is_dictionary(column.type):
        return column
    array = plain(column) if is_text(column.type) else column.combine_chunks()
    if field.kind in (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL):
        if not field.domain.categories:
            return column
        codes, absent = read_codes(column, field)
        return _set_missing(array, (codes < 0) & ~absent)
    values, absent = read_numbers(column, field)
    array = _set_missing(array, ~absent & (np.isnan(values) | _is_too_large(values, field)))
    return array if is_monthly(field) else _round_cells(array, values, field)


def _set_missing(array: pa.Array, strays: Bools) -> pa.Array:
    """Cells with some set to missing."""
    return pc.if_else(pa.array(strays), pa.scalar(None, array.type), array) if strays.any() else array


def _is_too_large(values: Floats, field: Field) -> Bools:
    """Numbers beyond all others, too large for a double with the decimals of the column."""
    low, high, decimals = field.domain.low, field.domain.high, decimals_of_field(field)
    if decimals is None or not isinstance(low, int | float) or not isinstance(high, int | float):
        return np.zeros(len(values), dtype=np.bool_)
    widest = WIDEST / 2 / 10.0**decimals
    return np.asarray(((values < low) | (values > high)) & (np.abs(values) >= widest))


def _round_cells(array: pa.Array, values: Floats, field: Field) -> pa.Array:
    """Cells rounded to the step of the column; dates are rounded down."""
    absent = absent_cells(array, field.missing)
    known = np.where(absent, 0.0, values)
    nearest = np.floor(known) if field.kind is Kind.DATE else nearest_on_step(known, field, array.type)
    off = ~absent & (nearest != values)
    if not off.any():
        return array
    return pc.if_else(pa.array(off), write_numbers(np.where(off, nearest, 0.0), ~off, field, array.type), array)
