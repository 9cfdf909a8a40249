"""Dates: cells to microseconds since 1970 and back, bounds, and the usual ways of writing a date as text."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import SchemaError
from sfumato.tables.field import Bound, DateStep, Field

__all__ = [
    "DATE_UNITS",
    "FIRST_MOMENT",
    "LAST_MOMENT",
    "bound_to_number",
    "fitting_formats",
    "microseconds_of_cells",
    "number_to_bound",
    "step_of_moments",
    "unit_of",
    "write_moments",
]

DATE_UNITS = {
    DateStep.DAY: 86_400_000_000,
    DateStep.SECOND: 1_000_000,
    DateStep.MILLISECOND: 1_000,
    DateStep.MICROSECOND: 1,
}
"""Microseconds in a step, the coarsest first."""

DATE_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%d.%m.%Y",
    "%Y/%m/%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%-d.%-m.%Y",
    "%-d/%-m/%Y",
    "%-m/%-d/%Y",
)
"""Ways of writing a date; ``%-d`` and ``%-m`` are written without a leading zero."""

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
FIRST_MOMENT = (datetime.datetime.min - _EPOCH) // _MICROSECOND
LAST_MOMENT = (datetime.datetime.max - _EPOCH) // _MICROSECOND
"""Microseconds since 1970 of the years 1 to 9999: outside them there is no calendar to write."""

_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}
_LOOKS_LIKE_DATE = r"^\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T]\d{1,2}:\d{2}(:\d{2})?)?$"
_SAMPLE = 100


def unit_of(field: Field) -> int:
    """Count the microseconds in the step of a date column; one where it has none."""
    return DATE_UNITS[field.domain.step] if isinstance(field.domain.step, DateStep) else 1


def bound_to_number(bound: Bound, field: Field, *, upwards: bool = False) -> float:
    """A bound of a domain as the column's numbers count; a date between two steps moves down, or upwards."""
    if not isinstance(bound, datetime.datetime):
        return float(bound)
    micro = (bound - _EPOCH) // _MICROSECOND
    unit = unit_of(field)
    return float(-(-micro // unit) if upwards else micro // unit)


def number_to_bound(number: float, step: DateStep) -> datetime.datetime:
    """Moment of a number of date steps since 1970."""
    return _EPOCH + datetime.timedelta(microseconds=int(number) * DATE_UNITS[step])


def step_of_moments(moments: NDArray[np.int64]) -> DateStep:
    """Find the coarsest step that moments, in microseconds since 1970, all lie on."""
    return next(step for step, unit in DATE_UNITS.items() if not (moments % unit).any())


def microseconds_of_cells(
    array: pa.Array, absent: NDArray[np.bool_], field: Field
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Read the cells of a date column in microseconds since 1970, and tell which are not dates.

    Texts are read by the field's format. A moment finer than a microsecond or outside the years 1 to 9999 is none.
    """
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        array = _parsed(pc.utf8_trim_whitespace(array), field.format or DATE_FORMATS[0])
    elif not (pa.types.is_date(array.type) or pa.types.is_timestamp(array.type)):
        raise SchemaError(f"column {field.name!r} is declared a date but is of type {array.type}; declare another kind")
    known = ~absent & np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    raw = array.view(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
    counts = np.array(pc.fill_null(raw, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        moments, finer = np.divmod(counts, 1_000)
        known &= finer == 0
    else:
        size = _micros_in(array.type)
        known &= (counts >= FIRST_MOMENT // size) & (counts <= LAST_MOMENT // size)
        moments = np.where(known, counts, 0) * size
    known &= (moments >= FIRST_MOMENT) & (moments <= LAST_MOMENT)
    return np.where(known, moments, 0), ~known & ~absent


def _micros_in(kind: pa.DataType) -> int:
    if pa.types.is_date(kind):
        return DATE_UNITS[DateStep.DAY] if pa.types.is_date32(kind) else DATE_UNITS[DateStep.MILLISECOND]
    return _PER_UNIT[kind.unit]


def _parsed(texts: pa.Array, form: str) -> pa.Array:
    return pc.strptime(texts, format=form.replace("%-", "%"), unit="s", error_is_null=True)


def _rewritten(parsed: pa.Array, form: str) -> pa.Array:
    texts = pc.strftime(parsed, format=form.replace("%-", "%"))
    return pc.replace_substring_regex(texts, r"(^|[-./])0(\d)", r"\1\2") if "%-" in form else texts


def write_moments(moments: NDArray[np.int64], absent: NDArray[np.bool_], field: Field, kind: pa.DataType) -> pa.Array:
    """Write microseconds since 1970 as dates, timestamps or texts; what the type cannot hold is cut off downwards."""
    if pa.types.is_date32(kind):
        return pa.array((moments // DATE_UNITS[DateStep.DAY]).astype(np.int32), mask=absent).view(kind)
    if pa.types.is_date64(kind):
        days = moments // DATE_UNITS[DateStep.DAY]
        return pa.array(days * (DATE_UNITS[DateStep.DAY] // DATE_UNITS[DateStep.MILLISECOND]), mask=absent).view(kind)
    if pa.types.is_timestamp(kind):
        counts = moments * 1_000 if kind.unit == "ns" else moments // _PER_UNIT[kind.unit]
        return pa.array(counts, mask=absent).view(kind)
    seconds = pa.array(moments // DATE_UNITS[DateStep.SECOND], mask=absent).view(pa.timestamp("s"))
    return _rewritten(seconds, field.format or DATE_FORMATS[0]).cast(kind)


def fitting_formats(texts: pa.Array) -> tuple[str, ...]:
    """Find the usual ways of writing a date by which every text is one, and is written back as it was.

    The first is the one to take; any further one reads the texts as other days, so the reader has to choose.

    Examples
    --------
    >>> fitting_formats(pa.array(["2020-01-31", "2021-12-01"]))
    ('%Y-%m-%d',)
    >>> fitting_formats(pa.array(["01/02/2020"]))
    ('%d/%m/%Y', '%m/%d/%Y')
    """
    few = texts.slice(0, _SAMPLE)
    if not pc.all(pc.match_substring_regex(few, _LOOKS_LIKE_DATE)).as_py():
        return ()
    fitting: dict[str, pa.Array] = {}
    for form in DATE_FORMATS:
        if _written_so(few, form) is None:
            continue
        parsed = _written_so(texts, form)
        if parsed is not None and not any(parsed.equals(other) for other in fitting.values()):
            fitting[form] = parsed
    return tuple(fitting)


def _written_so(texts: pa.Array, form: str) -> pa.Array | None:
    parsed = _parsed(texts, form)
    if parsed.null_count or not pc.all(pc.equal(_rewritten(parsed, form).cast(texts.type), texts)).as_py():
        return None
    first = pc.min(parsed.view(pa.int64())).as_py()
    return parsed if first is not None and first >= FIRST_MOMENT // DATE_UNITS[DateStep.SECOND] else None
