"""Convert the cells of one column to numbers or codes, and back, by the column's field.

Numbers, ordinal places and dates become floats; nominal and boolean cells become codes. Errors count cells and name
the column, never the cell.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats, Ints, count_persons
from sfumato.core.errors import SchemaError
from sfumato.tables.dates import (
    bound_to_number,
    is_monthly,
    microseconds_of_cells,
    month_starts,
    seconds_of_texts,
    unit_of,
    write_moments,
    write_seconds,
)
from sfumato.tables.field import DURATION_FORMATS, Category, DateStep, Field, Kind

__all__ = [
    "EXACT",
    "MISSING_MARKS",
    "NUMBER",
    "TICKS",
    "Gap",
    "MissingForms",
    "absent_cells",
    "bound_to_number",
    "codes_of_cells",
    "decimals_of_step",
    "declared_type",
    "floats",
    "gap_of_cells",
    "is_number",
    "is_span",
    "is_text",
    "marks_among_numbers",
    "marks_as_array",
    "native_type",
    "numbers_of_cells",
    "plain",
    "read_codes",
    "read_numbers",
    "write_codes",
    "write_numbers",
    "written_type",
]

EXACT = 2**53
"""Whole numbers below this are held exactly by a double, and their neighbours are not taken for them."""

NUMBER = r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
"""Texts that are numbers; a leading plus sign is a telephone's or a code's."""

MISSING_MARKS = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "missing", "-", ".", "<NA>")
"""Texts that usually mean a missing cell; "none" is not among them, it is often a category."""

Gap = str | float | None
"""How a column writes a missing cell: a text, a number that stands for none, NaN or null."""


@dataclass(frozen=True)
class MissingForms:
    """The ways in which a column writes missing cells, with the share of each.

    Examples
    --------
    >>> MissingForms(("k.A.", None), (0.75, 0.25)).choose(1_000).tolist().count(1)
    250
    """

    ways: tuple[Gap, ...]
    shares: tuple[float, ...]

    def choose(self, count: int) -> Ints:
        """Choose how each of ``count`` missing cells is written: evenly mixed, independent of the original cell."""
        ranks = np.argsort(np.argsort(np.arange(1, count + 1) * _GOLDEN % 1.0))  # neighbours are far from each other
        return np.searchsorted(np.rint(np.cumsum(self.shares[:-1]) * count), ranks, side="right")


_GOLDEN = (5.0**0.5 - 1.0) / 2.0
_SINGLE_DECIMALS = 7
_MOST_DECIMALS = 18
_SAMPLE = 1_000


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of this Arrow type are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether cells of this Arrow type are numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""How often an Arrow type counts in a second, by its unit."""


def is_span(kind: pa.DataType) -> bool:
    """Whether cells of this Arrow type are times of day or durations, which are counted in seconds."""
    return bool(pa.types.is_time(kind) or pa.types.is_duration(kind))


def native_type(field: Field, kind: pa.DataType) -> pa.DataType:
    """Native type of a column whose numbers or dates came as text; the original type for all other columns."""
    if not is_text(kind) or field.kind in (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL):
        return kind
    if field.kind is Kind.DATE:
        return pa.date32() if field.domain.step in (DateStep.DAY, DateStep.MONTH) else pa.timestamp("us")
    if field.format in DURATION_FORMATS:
        return pa.duration("s")
    return pa.int64() if field.kind is Kind.INTEGER else pa.float64()


def declared_type(field: Field) -> pa.DataType:
    """Arrow type in which a column is written by its declaration alone, whatever type its cells came in."""
    if field.kind in (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL):
        kinds = {type(category) for category in field.domain.categories or ("",)}
        known = {bool: pa.bool_(), int: pa.int64(), str: pa.string()}
        return known.get(kinds.pop(), pa.float64()) if len(kinds) == 1 else pa.float64()
    if field.kind is Kind.DATE:
        return pa.string() if field.format else native_type(field, pa.string())
    return native_type(field, pa.string())


def written_type(kind: pa.DataType) -> pa.DataType:
    """Arrow type in which cells are written: string views become strings, which all kernels support."""
    return pa.large_string() if pa.types.is_string_view(kind) else kind


def plain(column: pa.ChunkedArray) -> pa.Array:
    """One array per column: dictionaries decoded, string views as strings, times and durations in seconds."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if is_span(array.type):
        counts = array.cast(pa.int32() if pa.types.is_time32(array.type) else pa.int64())
        return pc.divide(counts.cast(pa.float64(), safe=False), float(TICKS[array.type.unit]))
    return array.cast(pa.large_string()) if pa.types.is_string_view(array.type) else array


def absent_cells(array: pa.Array, marks: tuple[str, ...]) -> Bools:
    """Find missing cells: nulls, NaN, and cells that hold a missing mark, surrounding spaces ignored."""
    absent = pc.is_null(array, nan_is_null=True)
    if marks and is_text(array.type):
        marked = pc.is_in(pc.utf8_trim_whitespace(array), value_set=marks_as_array(marks, array.type))
        absent = pc.or_(absent, marked)
    found = np.asarray(absent.to_numpy(zero_copy_only=False), dtype=np.bool_)
    codes = [float(mark) for mark in marks if _is_numeral(mark)] if is_number(array.type) else []
    return found | np.isin(floats(array), codes) & ~found if codes else found


@lru_cache(maxsize=256)
def marks_as_array(marks: tuple[str, ...], kind: pa.DataType) -> pa.Array:
    """Missing marks as an Arrow array, cached because every column has the same few."""
    return pa.array(list(marks), kind)


def marks_among_numbers(array: pa.Array, marks: tuple[str, ...]) -> tuple[str, ...]:
    """Missing marks such as -9 or 999 that occur in a column of numbers."""
    codes = [mark for mark in marks if _is_numeral(mark)]
    numbers = floats(array.drop_null()) if codes else np.empty(0)
    return tuple(mark for mark in codes if (numbers == float(mark)).any())


def _is_numeral(mark: str) -> bool:
    return re.match(NUMBER, mark) is not None


def gap_of_cells(array: pa.Array, absent: Bools, least: int = 1, persons: Ints | None = None) -> Gap | MissingForms:
    """Find how missing cells are written; each form must be used by at least ``least`` persons.

    A row is a person unless ``persons`` tells whom each is about. A way that fewer hold is written as the commonest; if
    none is that frequent, a mark is written only if it is a usual one.
    """
    gone = array.filter(pa.array(absent))
    if not len(gone) or not (is_text(array.type) or is_number(array.type)):
        return None
    encoded = pc.dictionary_encode(gone, null_encoding="encode")
    codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    ways: list[Gap] = encoded.dictionary.to_pylist()
    counts = np.bincount(codes, minlength=len(ways))
    held = count_persons(codes, None if persons is None else persons[absent], len(ways))
    commonest = int(np.argmax(counts))
    if held[commonest] < least and not _is_usual_form(ways[commonest]):
        return None
    kept = [place for place in np.argsort(-counts, kind="stable") if place == commonest or held[place] >= least]
    if len(kept) == 1:
        return ways[commonest]
    shares = counts[kept] / counts.sum()
    shares[0] += 1.0 - shares.sum()
    return MissingForms(tuple(ways[place] for place in kept), tuple(shares.tolist()))


def _is_usual_form(way: Gap) -> bool:
    return way is None or (isinstance(way, float) and math.isnan(way)) or str(way).strip() in MISSING_MARKS


def numbers_of_cells(column: pa.ChunkedArray, field: Field) -> tuple[Floats, Bools]:
    """Read the cells of a numeric, ordinal or date column as floats, and mark the missing ones.

    Dates count in their step since 1970, ordinal cells by their place in the categories. Missing cells read as 0.

    Raises
    ------
    SchemaError
        For cells that are not what the field says, are infinite, or are whole numbers that floats cannot hold.
    """
    values, absent = read_numbers(column, field)
    present = values[~absent] if absent.any() else values
    infinite = int(np.isinf(present).sum())
    if infinite:
        raise SchemaError(
            f"column {field.name!r} holds {infinite} infinite {'number' if infinite == 1 else 'numbers'}; "
            "remove or mark as missing"
        )
    strange = int(np.isnan(present).sum())
    if strange:
        raise SchemaError(f"column {field.name!r} {_misfit_message(field, strange, column.type)}")
    whole = field.kind in (Kind.INTEGER, Kind.DATE) or pa.types.is_integer(column.type)
    beyond = int((np.abs(present) >= EXACT).sum()) if whole else 0
    if beyond:
        raise SchemaError(
            f"column {field.name!r} holds {beyond} numbers from 2^53 on, which cannot be averaged exactly; declare it "
            "an identifier or nominal, or give it a coarser step"
        )
    values[absent] = 0.0
    return values, absent


def _misfit_message(field: Field, strange: int, kind: pa.DataType) -> str:
    if field.kind is Kind.ORDINAL:
        return f"holds {strange} cells outside its categories; add them to its domain"
    if field.kind is not Kind.DATE:
        return (
            f"is declared {field.kind.value} but {strange} cells are not numbers such as 12.5; list marks of missing "
            "cells under 'missing' (--missing), say --decimal , for a decimal comma, or declare the column nominal"
        )
    if is_text(kind) or pa.types.is_dictionary(kind):
        form = field.format or "%Y-%m-%d"
        return f"holds {strange} cells that are not dates of the form {form!r}; fix its format, or declare it nominal"
    return f"holds {strange} times finer than a microsecond or outside the years 1 to 9999; round or remove them"


def read_numbers(column: pa.ChunkedArray, field: Field) -> tuple[Floats, Bools]:
    """Read cells as `numbers_of_cells` does; missing and invalid cells become NaN."""
    array = plain(column)
    absent = absent_cells(array, field.missing)
    if field.kind is Kind.ORDINAL:
        codes = _codes(array, absent, field)
        return np.where(codes < 0, np.nan, codes), absent
    if field.kind is Kind.DATE:
        moments, strange = microseconds_of_cells(array, absent, field)
        whole, rest = np.divmod(moments, unit_of(field))
        values = whole + rest / unit_of(field)
    else:
        present = pc.if_else(pa.array(~absent), array, pa.scalar(None, array.type)) if absent.any() else array
        values, strange = _numbers(present, field)
    values[absent | strange] = np.nan
    return values, absent


def _numbers(present: pa.Array, field: Field) -> tuple[Floats, Bools]:
    if is_number(present.type) or pa.types.is_boolean(present.type) or pa.types.is_null(present.type):
        return floats(present), np.zeros(len(present), dtype=np.bool_)
    if not is_text(present.type):
        raise SchemaError(
            f"column {field.name!r} is declared {field.kind.value} but is of type {present.type}; declare another kind"
        )
    trimmed = pc.utf8_trim_whitespace(present)
    readable = pc.match_substring_regex(trimmed, NUMBER)
    known = np.asarray(pc.fill_null(readable, False).to_numpy(zero_copy_only=False), dtype=np.bool_)
    numbers = floats(pc.if_else(readable, trimmed, pa.scalar(None, trimmed.type)).cast(pa.float64()))
    if field.format in DURATION_FORMATS:
        seconds, spans = seconds_of_texts(trimmed, field.format)
        return np.where(spans, seconds, numbers), ~known & ~spans
    return numbers, ~known


def floats(array: pa.Array) -> Floats:
    """A numeric array as doubles, nulls as 0.

    Halves and singles are read as the short decimals that they print as, where all are such: 0.1 stored in 32 bits
    is meant as 0.1, and is written back as the same 32 bits.
    """
    numbers = np.array(pc.fill_null(array.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False))
    if pa.types.is_decimal(array.type) and 0 <= array.type.scale <= _MOST_DECIMALS:
        scale = 10.0**array.type.scale
        return np.asarray(np.rint(numbers * scale) / scale)  # Arrow's own cast is an ulp off here and there
    if not (pa.types.is_float32(array.type) or pa.types.is_float16(array.type)):
        return numbers
    for decimals in range(_SINGLE_DECIMALS + 1):
        if _prints_short(numbers[:_SAMPLE], decimals, array.type) and _prints_short(numbers, decimals, array.type):
            return np.asarray(np.rint(numbers * 10.0**decimals) / 10.0**decimals)
    return numbers


def _prints_short(numbers: Floats, decimals: int, kind: pa.DataType) -> bool:
    short = (np.rint(numbers * 10.0**decimals) / 10.0**decimals).astype(kind.to_pandas_dtype())
    return bool(np.array_equal(short.astype(np.float64), numbers, equal_nan=True))


def codes_of_cells(column: pa.ChunkedArray, field: Field) -> tuple[Ints, Bools]:
    """Read the cells of a nominal or boolean column as category codes; missing cells become -1.

    Raises
    ------
    SchemaError
        For cells outside the categories.
    """
    codes, absent = read_codes(column, field)
    unknown = int((codes[~absent] < 0).sum())
    if unknown:
        raise SchemaError(f"column {field.name!r} holds {unknown} cells outside its categories; add them to its domain")
    return codes, absent


def read_codes(column: pa.ChunkedArray, field: Field) -> tuple[Ints, Bools]:
    """Read cells as `codes_of_cells` does; unknown categories become -1 too."""
    array = plain(column)
    absent = absent_cells(array, field.missing)
    return _codes(array, absent, field), absent


def _codes(array: pa.Array, absent: Bools, field: Field) -> Ints:
    if not field.domain.categories:
        raise SchemaError(f"column {field.name!r} is {field.kind.value} but its domain lists no categories; list them")
    found = pc.index_in(array, value_set=_category_cells(field, array.type))
    codes = np.array(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    codes[absent] = -1
    return codes


def _category_cells(field: Field, kind: pa.DataType) -> pa.Array:
    """Write the categories as cells of an Arrow type."""
    categories: tuple[Category, ...] = field.domain.categories or ()
    try:
        if pa.types.is_decimal(kind):
            return pa.array([Decimal(str(category)) for category in categories], kind)
        if pa.types.is_integer(kind) and all(type(category) is int for category in categories):
            return pa.array(list(categories), kind)
        return pa.array(list(categories)).cast(kind)
    except (pa.ArrowException, ArithmeticError, OverflowError):  # their own words would quote a category
        raise SchemaError(
            f"the categories of column {field.name!r} are not of the column's own type; write them as its cells are"
        ) from None


def write_codes(
    codes: Ints, absent: Bools, field: Field, kind: pa.DataType, gap: Gap | MissingForms = None
) -> pa.Array:
    """Write category codes as cells of an Arrow type; the inverse of `codes_of_cells`."""
    places = pa.array(np.where(absent, 0, codes), mask=absent)
    if not pa.types.is_dictionary(kind):
        return _write_missing(_category_cells(field, kind).take(places), absent, gap)
    names = _category_cells(field, kind.value_type)
    if gap is not None and is_text(kind.value_type) and absent.any():
        marks = _write_missing(pa.nulls(len(codes), kind.value_type), absent, gap)
        encoded = pc.dictionary_encode(marks)
        places = pc.if_else(pa.array(absent), pc.add(encoded.indices.cast(pa.int64()), len(names)), places)
        names = pa.concat_arrays([names, encoded.dictionary])
    return pa.DictionaryArray.from_arrays(places.cast(kind.index_type), names, ordered=kind.ordered)


def write_numbers(
    values: Floats, absent: Bools, field: Field, kind: pa.DataType, gap: Gap | MissingForms = None
) -> pa.Array:
    """Write floats as cells of an Arrow type; the inverse of `numbers_of_cells`."""
    if field.kind is Kind.ORDINAL:
        return write_codes(values.astype(np.int64), absent, field, kind, gap)
    if field.kind is Kind.DATE:
        moments = np.rint(values).astype(np.int64) * unit_of(field)
        moments = month_starts(moments) if is_monthly(field) else moments
        return _write_missing(write_moments(moments, absent, field, kind), absent, gap)
    if is_text(kind):
        return _write_missing(_number_texts(pa.array(values, mask=absent), field).cast(kind), absent, gap)
    if is_span(kind):
        ticks = np.rint(np.where(absent, 0.0, values) * TICKS[kind.unit]).astype(np.int64)
        if pa.types.is_time(kind):
            ticks = np.clip(ticks, 0, 86_400 * TICKS[kind.unit] - 1)
        return (
            pa.array(ticks, pa.int64(), mask=absent).cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
        )
    numbers = pa.array(values, mask=absent)
    whole = numbers.cast(pa.int64()) if pa.types.is_integer(kind) else numbers
    return _write_missing(whole.cast(kind), absent, gap)


def _number_texts(numbers: pa.Array, field: Field) -> pa.Array:
    if field.format in DURATION_FORMATS:
        return write_seconds(numbers, field.format)
    if field.format:
        fixed = len(field.format.partition(".")[2])
        return _decimal_texts(numbers, fixed)
    if field.kind is Kind.INTEGER:
        return numbers.cast(pa.int64()).cast(pa.string())
    edges = (edge for edge in (field.domain.step, field.domain.low) if isinstance(edge, int | float))
    decimals = max(map(decimals_of_step, edges), default=0)
    if not 0 < decimals <= _MOST_DECIMALS:
        return pc.replace_substring_regex(numbers.cast(pa.string()), r"\.0$", "")
    texts = _decimal_texts(numbers, decimals)
    return pc.replace_substring_regex(pc.utf8_rtrim(texts, "0"), r"\.$", "")


def _decimal_texts(numbers: pa.Array, decimals: int) -> pa.Array:
    """Write numbers with a fixed number of decimals; numbers with too many digits in floating-point form."""
    largest = pc.max(pc.abs(numbers)).as_py()
    if largest is not None and largest >= 10.0 ** (37 - decimals):
        return numbers.cast(pa.string())
    return numbers.cast(pa.decimal128(38, decimals)).cast(pa.string())


def _write_missing(cells: pa.Array, absent: Bools, gap: Gap | MissingForms) -> pa.Array:
    """Fill missing cells with the column's own marks, if its type can hold them."""
    if gap is None or not absent.any():
        return cells
    several = gap if isinstance(gap, MissingForms) else MissingForms((gap,), (1.0,))
    ways = [way if _can_hold(cells.type, way) else None for way in several.ways]
    if all(way is None for way in ways):
        return cells
    marks = pa.array(ways, cells.type, from_pandas=False)
    chosen = np.zeros(len(cells), dtype=np.int64)
    chosen[absent] = several.choose(int(absent.sum()))
    return pc.if_else(pa.array(absent), marks.take(pa.array(chosen)), cells)


def _can_hold(kind: pa.DataType, way: Gap) -> bool:
    if isinstance(way, str):
        return is_text(kind)
    return pa.types.is_floating(kind) or (is_number(kind) and way is not None and way == way)


def decimals_of_step(step: float) -> int:
    """Number of decimals of a step.

    Examples
    --------
    >>> decimals_of_step(0.005), decimals_of_step(1), decimals_of_step(20.0)
    (3, 0, 0)
    """
    exponent = Decimal(repr(float(step))).normalize().as_tuple().exponent
    return max(0, -int(exponent))
