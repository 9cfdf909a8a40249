"""Cells to numbers and codes, and back: what one column's cells mean under its field.

Numbers, ordinal places and dates become floats; nominal and boolean cells become codes. Errors count cells and name
the column, never the cell.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.tables.schema import Category, DateStep, Field, Kind

__all__ = [
    "DATE_UNITS",
    "absent_cells",
    "bound_to_number",
    "codes_of_cells",
    "decimals_of_step",
    "is_text",
    "number_to_bound",
    "numbers_of_cells",
    "write_codes",
    "write_numbers",
]

DATE_UNITS = {
    DateStep.DAY: 86_400_000_000,
    DateStep.SECOND: 1_000_000,
    DateStep.MILLISECOND: 1_000,
    DateStep.MICROSECOND: 1,
}
"""Microseconds in a step."""

_EXACT = 2**53  # the largest range of whole numbers that a double holds


def is_text(kind: pa.DataType) -> bool:
    """Tell whether cells of this Arrow type are texts."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or (hasattr(pa.types, "is_string_view") and pa.types.is_string_view(kind))
    )


def plain(column: pa.ChunkedArray) -> pa.Array:
    """Give a column as one array, dictionaries looked up."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def absent_cells(array: pa.Array, marks: tuple[str, ...]) -> NDArray[np.bool_]:
    """Tell which cells are missing: nulls, NaN, and the texts that mean so."""
    absent = pc.is_null(array, nan_is_null=True)
    if marks and is_text(array.type):
        marked = pc.is_in(pc.utf8_trim_whitespace(array), value_set=pa.array(list(marks), array.type))
        absent = pc.or_(absent, marked)
    return np.asarray(absent.to_numpy(zero_copy_only=False), dtype=np.bool_)


def numbers_of_cells(column: pa.ChunkedArray, field: Field) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Read the cells of a numeric, ordinal or date column as floats, with the missing ones marked.

    Dates count in their step since 1970. Missing cells read as 0.
    """
    array = plain(column)
    absent = absent_cells(array, field.missing)
    if field.kind is Kind.ORDINAL:
        codes = _codes(array, absent, field)
        return codes.astype(np.float64), absent
    read = _date_numbers if field.kind is Kind.DATE else _numbers
    values = read(array, absent, field)
    infinite = int(np.isinf(values[~absent]).sum())
    if infinite:
        raise SchemaError(f"column {field.name!r} holds {infinite} infinite numbers; remove them or mark them missing")
    values[absent] = 0.0
    return values, absent


def _numbers(array: pa.Array, absent: NDArray[np.bool_], field: Field) -> NDArray[np.float64]:
    present = pc.if_else(pa.array(~absent), array, pa.scalar(None, array.type))
    if is_text(array.type):
        present = pc.utf8_trim_whitespace(present)
    if pa.types.is_integer(array.type):
        extremes = pc.min_max(present).as_py()
        if any(edge is not None and abs(edge) > _EXACT for edge in extremes.values()):
            raise SchemaError(
                f"column {field.name!r} holds integers beyond 2^53, which cannot be averaged exactly; declare it an "
                "identifier or nominal"
            )
    try:
        numbers = pc.cast(present, pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        bad = _count_unreadable(present)
        raise SchemaError(
            f"column {field.name!r} is declared {field.kind.value} but {bad} cells are not numbers; "
            "declare it nominal or list their mark under 'missing'"
        ) from None
    return np.array(pc.fill_null(numbers, 0.0).to_numpy(zero_copy_only=False), dtype=np.float64)


def _count_unreadable(texts: pa.Array) -> int:
    if not is_text(texts.type):
        return len(texts) - texts.null_count
    readable = pc.match_substring_regex(texts, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
    return int(pc.sum(pc.invert(pc.fill_null(readable, True))).as_py() or 0)


def _date_numbers(array: pa.Array, absent: NDArray[np.bool_], field: Field) -> NDArray[np.float64]:
    stamps = date_microseconds(array, absent, field)
    unit = DATE_UNITS[field.domain.step if isinstance(field.domain.step, DateStep) else DateStep.MICROSECOND]
    whole, rest = np.divmod(stamps, unit)
    off = int((rest[~absent] != 0).sum())
    if off:
        raise SchemaError(
            f"column {field.name!r} holds {off} times off its step of one {field.domain.step}; choose a finer step"
        )
    return whole.astype(np.float64)


def date_microseconds(array: pa.Array, absent: NDArray[np.bool_], field: Field) -> NDArray[np.int64]:
    """Give the cells of a date column in microseconds since 1970."""
    present = pc.if_else(pa.array(~absent), array, pa.scalar(None, array.type))
    if is_text(array.type):
        present = pc.utf8_trim_whitespace(present)
        parsed = pc.strptime(present, format=field.format or "%Y-%m-%d", unit="s", error_is_null=True)
        bad = parsed.null_count - int(absent.sum())
        if bad:
            raise SchemaError(
                f"column {field.name!r} holds {bad} cells that are not dates of the form {field.format!r}; "
                "mend its format, or declare it nominal"
            )
        present = parsed
    try:
        stamps = pc.cast(pc.cast(present, pa.timestamp("us", getattr(present.type, "tz", None))), pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise SchemaError(
            f"column {field.name!r} is declared a date but its times are not, or are finer than a microsecond; "
            "round them, or declare another kind"
        ) from None
    return np.array(pc.fill_null(stamps, 0).to_numpy(zero_copy_only=False), dtype=np.int64)


def codes_of_cells(column: pa.ChunkedArray, field: Field) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Read the cells of a nominal or boolean column as places in its categories; missing cells read as -1."""
    array = plain(column)
    absent = absent_cells(array, field.missing)
    return _codes(array, absent, field), absent


def _codes(array: pa.Array, absent: NDArray[np.bool_], field: Field) -> NDArray[np.int64]:
    categories = field.domain.categories
    if not categories:
        raise SchemaError(f"column {field.name!r} is {field.kind.value} but its domain lists no categories; list them")
    try:
        known = pa.array(list(categories)).cast(array.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise SchemaError(
            f"the categories of column {field.name!r} are not of the column's own type; write them as its cells are"
        ) from None
    found = pc.index_in(array, value_set=known)
    codes = np.array(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    codes[absent] = -1
    unknown = int((codes[~absent] < 0).sum())
    if unknown:
        raise SchemaError(f"column {field.name!r} holds {unknown} cells outside its categories; add them to its domain")
    return codes


def write_codes(codes: NDArray[np.int64], absent: NDArray[np.bool_], field: Field, kind: pa.DataType) -> pa.Array:
    """Write places in the categories as cells of an Arrow type, the inverse of `codes_of_cells`."""
    categories: tuple[Category, ...] = field.domain.categories or ()
    if pa.types.is_dictionary(kind):
        indices = pa.array(np.where(absent, 0, codes), kind.index_type, mask=absent)
        return pa.DictionaryArray.from_arrays(
            indices, pa.array(list(categories)).cast(kind.value_type), ordered=kind.ordered
        )
    names = pa.array(list(categories)).cast(kind)
    cells = names.take(pa.array(np.where(absent, 0, codes), mask=absent))
    return _marked(cells, absent, field)


def write_numbers(
    values: NDArray[np.float64], absent: NDArray[np.bool_], field: Field, kind: pa.DataType, *, nan: bool = False
) -> pa.Array:
    """Write floats as cells of an Arrow type, the inverse of `numbers_of_cells`.

    ``nan`` writes missing numbers as NaN instead of null, where the column had them so.
    """
    if field.kind is Kind.ORDINAL:
        return write_codes(values.astype(np.int64), absent, field, kind)
    if field.kind is Kind.DATE:
        return _write_dates(values, absent, field, kind)
    if is_text(kind):
        return _marked(_number_texts(values, absent, field).cast(kind), absent, field)
    if nan and pa.types.is_floating(kind):
        return pa.array(np.where(absent, np.nan, values)).cast(kind)
    numbers = pa.array(values, mask=absent)
    if pa.types.is_integer(kind):
        return pc.cast(pc.round(numbers), pa.int64()).cast(kind)
    return numbers.cast(kind)


def _number_texts(values: NDArray[np.float64], absent: NDArray[np.bool_], field: Field) -> pa.Array:
    numbers = pa.array(values, mask=absent)
    fixed = len(field.format.partition(".")[2]) if field.format else 0
    if fixed:
        return pc.cast(pc.cast(pc.round(numbers, fixed), pa.decimal128(38, fixed)), pa.string())
    if field.kind is Kind.INTEGER:
        return pc.cast(pc.cast(pc.round(numbers), pa.int64()), pa.string())
    texts = pc.cast(numbers, pa.string())
    return pc.replace_substring_regex(texts, r"\.0$", "")


def _write_dates(values: NDArray[np.float64], absent: NDArray[np.bool_], field: Field, kind: pa.DataType) -> pa.Array:
    unit = DATE_UNITS[field.domain.step if isinstance(field.domain.step, DateStep) else DateStep.MICROSECOND]
    stamps = pa.array(np.rint(values).astype(np.int64) * unit, mask=absent).cast(pa.timestamp("us"))
    if is_text(kind):
        texts = pc.strftime(stamps.cast(pa.timestamp("s")), format=field.format or "%Y-%m-%d")
        return _marked(texts.cast(kind), absent, field)
    if pa.types.is_timestamp(kind) and kind.tz:
        return stamps.cast(pa.timestamp("us", "UTC")).cast(kind)
    return stamps.cast(kind)


def _marked(cells: pa.Array, absent: NDArray[np.bool_], field: Field) -> pa.Array:
    """Fill the missing cells of a text column with its own mark, where it has one."""
    if not field.missing or not is_text(cells.type) or not absent.any():
        return cells
    return pc.if_else(pa.array(absent), pa.scalar(field.missing[0], cells.type), cells)


def decimals_of_step(step: float) -> int:
    """Count the decimals of a step.

    Examples
    --------
    >>> decimals_of_step(0.005), decimals_of_step(1), decimals_of_step(20.0)
    (3, 0, 0)
    """
    exponent = Decimal(repr(step)).normalize().as_tuple().exponent
    return max(0, -int(exponent))


def bound_to_number(bound: Any, field: Field) -> float:
    """Give a bound of a domain as the column's numbers count."""
    if isinstance(bound, datetime.datetime):
        micro = (bound - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
        step = field.domain.step if isinstance(field.domain.step, DateStep) else DateStep.MICROSECOND
        return float(micro // DATE_UNITS[step])
    return float(bound)


def number_to_bound(number: float, step: DateStep) -> datetime.datetime:
    """Give a number of date steps since 1970 as a moment."""
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=int(number) * DATE_UNITS[step])
