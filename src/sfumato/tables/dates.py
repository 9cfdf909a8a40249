"""Convert date cells to microseconds since 1970 and back; date formats, steps and bounds.

Durations are read as seconds and written as they were: 27:15:00, or 1 day, 3:15:00.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import SchemaError
from sfumato.tables.field import DURATION_FORMATS, Bound, DateStep, Field, Kind

__all__ = [
    "DATE_UNITS",
    "DAY",
    "DIGITS",
    "FIRST_MOMENT",
    "LAST_MOMENT",
    "LOOKS_LIKE_DATE",
    "bound_to_number",
    "duration_format",
    "fitting_formats",
    "is_day_first",
    "is_duration",
    "is_month_form",
    "is_monthly",
    "is_time_of_day",
    "microseconds_of_cells",
    "moments_of_texts",
    "month_starts",
    "nearest_month_starts",
    "number_to_bound",
    "seconds_of_texts",
    "step_of_moments",
    "times_of_texts",
    "unit_of",
    "write_moments",
    "write_seconds",
]

DATE_UNITS = {
    DateStep.DAY: 86_400_000_000,
    DateStep.HOUR: 3_600_000_000,
    DateStep.MINUTE: 60_000_000,
    DateStep.SECOND: 1_000_000,
    DateStep.MILLISECOND: 1_000,
    DateStep.MICROSECOND: 1,
}
"""Microseconds in a step, the coarsest first; months are counted in days."""

DAY = DATE_UNITS[DateStep.DAY]

DATE_FORMATS = (
    "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S+00:00", "%Y-%m-%d %H:%M:%S+00:00", "%Y-%m-%d %H:%M:%S UTC",
    "%Y-%m-%d %H:%M:%S.%3f", "%Y-%m-%d %H:%M:%S.%6f", "%Y-%m-%dT%H:%M:%S.%3f", "%Y-%m-%dT%H:%M:%S.%6f",
    "%Y-%m-%dT%H:%M:%S.%3fZ", "%Y-%m-%dT%H:%M:%S.%6fZ", "%Y-%m-%d %H:%M:%S.%6f+00:00", "%Y-%m-%dT%H:%M:%S.%6f+00:00",
    "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S",
    "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M:%S %p", "%d-%m-%Y", "%m-%d-%Y", "%-d.%-m.%Y", "%-d/%-m/%Y", "%-m/%-d/%Y",
    "%-d.%-m.%Y %-H:%M", "%-d/%-m/%Y %-H:%M", "%-m/%-d/%Y %-H:%M", "%-m/%-d/%Y %-I:%M %p", "%-m/%-d/%Y %-I:%M:%S %p",
    "%d %b %Y", "%d-%b-%Y", "%d%b%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%-d %B %Y", "%B %-d, %Y", "%Y%m%d",
    "%Y-%m", "%m/%Y", "%b %Y", "%B %Y", "%H:%M", "%H:%M:%S", "%-H:%M", "%-H:%M:%S",
)  # fmt: skip
"""Ways of writing a date; ``%-d`` and the like have no leading zero, ``%3f`` are thousandths of a second."""

DIGITS = "%Y%m%d"
"""Days written as whole numbers, 20201231."""

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
FIRST_MOMENT = (datetime.datetime.min - _EPOCH) // _MICROSECOND
LAST_MOMENT = (datetime.datetime.max - _EPOCH) // _MICROSECOND
"""Microseconds since 1970 of the years 1 to 9999: outside them there is no calendar to write."""

_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}
LOOKS_LIKE_DATE = (
    r"^\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T]\d{1,2}:\d{2}(:\d{2}(\.\d{3}|\.\d{6})?)?(Z|\+00:00| UTC| [AP]M)?)?$"
    r"|^\d{1,2}:\d{2}(:\d{2})?$|^\d{1,2}[ -]?[A-Z][a-z]{2,8}[ -]?\d{4}$|^[A-Z][a-z]{2,8} (\d{1,2}, )?\d{4}$"
    r"|^(19|20)\d{6}$|^\d{4}-\d{2}$|^\d{2}/\d{4}$"
)
"""Texts that may be dates, or times of day, in one of the usual ways."""

_FRACTION = {".%3f": "ms", ".%6f": "us"}
_SAMPLE = 100


def is_day_first(form: str) -> bool | None:
    """Whether a date format has the day before the month; None if it begins with the year.

    Examples
    --------
    >>> is_day_first("%d/%m/%Y"), is_day_first("%-m/%-d/%Y"), is_day_first("%Y-%m-%d")
    (True, False, None)
    """
    plainly = form.replace("%-", "%")
    day, month = plainly.find("%d"), plainly.find("%m")
    return None if min(day, month) < 0 or plainly.startswith("%Y") else day < month


def is_monthly(field: Field) -> bool:
    """Whether the dates of a column have a resolution of a month."""
    return field.kind is Kind.DATE and field.domain.step is DateStep.MONTH


def is_time_of_day(field: Field) -> bool:
    """Whether a column holds times without a date; they count as moments of 1 January 1970."""
    return field.kind is Kind.DATE and field.format is not None and _is_time_form(field.format)


def _is_time_form(form: str) -> bool:
    return not any(
        mark in form.replace("%-", "%") for mark in ("%Y", "%y", "%m", "%d", "%j", "%s", "%D", "%F", "%c", "%x")
    )


def is_month_form(form: str | None) -> bool:
    """Whether a date format has a month and no day."""
    return form is not None and "%Y" in form and "d" not in form


def month_starts(moments: Ints) -> Ints:
    """First moment of the month of each moment, in microseconds since 1970."""
    months = np.asarray(moments, dtype=np.int64).view("datetime64[us]").astype("datetime64[M]")
    return np.asarray(months.astype("datetime64[us]").view(np.int64))


def nearest_month_starts(days: Floats, low: float, high: float) -> Floats:
    """First day of a month nearest to each day since 1970, within bounds.

    Examples
    --------
    >>> nearest_month_starts(np.array([3.0, 20.0, 29.0]), 0.0, 31.0).tolist()
    [0.0, 31.0, 31.0]
    """
    whole = np.floor(days)
    months = whole.astype(np.int64).view("datetime64[D]").astype("datetime64[M]")
    first = months.astype("datetime64[D]").view(np.int64).astype(np.float64)
    after = (months + 1).astype("datetime64[D]").view(np.int64).astype(np.float64)
    down = ((days - first <= after - days) | (after > high)) & ((first >= low) | (after > high))
    return np.where(down, first, after)


def unit_of(field: Field) -> int:
    """Microseconds in the step of a date column: a day if the step is a month, one if there is none."""
    if is_monthly(field):
        return DATE_UNITS[DateStep.DAY]
    return DATE_UNITS[field.domain.step] if isinstance(field.domain.step, DateStep) else 1


def bound_to_number(bound: Bound, field: Field, *, upwards: bool = False) -> float:
    """A bound in the column's own count; a date between two steps is rounded inwards.

    A column by months has those of its bounds.
    """
    if not isinstance(bound, datetime.datetime):
        return float(bound)
    micro = (bound - _EPOCH) // _MICROSECOND
    unit = unit_of(field)
    if is_monthly(field):
        return float(int(month_starts(np.array([micro]))[0]) // unit)
    return float(-(-micro // unit) if upwards else micro // unit)


def number_to_bound(number: float, step: DateStep) -> datetime.datetime:
    """Moment of a number of date steps since 1970."""
    return _EPOCH + datetime.timedelta(microseconds=int(number) * DATE_UNITS[step])


def step_of_moments(moments: Ints, few: Callable[[Bools], bool] | None = None) -> DateStep:
    """Coarsest step that all moments, in microseconds since 1970, lie on, except a few."""
    few = few or (lambda rows: not rows.any())
    return next(step for step, unit in DATE_UNITS.items() if few(moments % unit != 0))


def microseconds_of_cells(array: pa.Array, absent: Bools, field: Field) -> tuple[Ints, Bools]:
    """Read the cells of a date column in microseconds since 1970, and mark those that are not dates.

    Texts are read by the field's format; of a column by months, all days of a month are its first. A moment
    finer than a microsecond or outside the years 1 to 9999 is none.
    """
    if pa.types.is_integer(array.type) and field.format == DIGITS:
        array = array.cast(pa.string())
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        array = _on_calendar(pc.utf8_trim_whitespace(array), field.format or DATE_FORMATS[0])
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
    moments = np.where(known, moments, 0)
    return month_starts(moments) if is_monthly(field) else moments, ~known & ~absent


def moments_of_texts(texts: pa.Array) -> pa.Array:
    """Moments of ISO 8601 texts such as 2020-01-31 or 2020-01-31 10:00:00.5; null for any other text.

    Examples
    --------
    >>> moments_of_texts(pa.array(["2020-01-31T10:00", "soon"])).is_valid().to_pylist()
    [True, False]
    """
    trimmed = pc.utf8_trim_whitespace(texts)
    iso = pc.match_substring_regex(trimmed, r"^\d{4}-\d\d-\d\d([ T]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?)?$")
    try:
        return pc.if_else(iso, trimmed, pa.scalar(None, trimmed.type)).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # a day that the calendar does not have; Arrow's own words would quote it
        return pa.nulls(len(texts), pa.timestamp("us"))


def times_of_texts(texts: pa.Array) -> pa.Array:
    """Times of texts such as 10:30:00.5; null for any other text."""
    trimmed = pc.utf8_trim_whitespace(texts)
    timed = pc.match_substring_regex(trimmed, r"^([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?$")
    known = pc.if_else(timed, trimmed, pa.scalar(None, trimmed.type))
    moments = pc.binary_join_element_wise(pa.scalar("1970-01-01", known.type), known, pa.scalar(" ", known.type)).cast(
        pa.timestamp("ns")
    )
    return moments.cast(pa.time64("ns"))


def _micros_in(kind: pa.DataType) -> int:
    if pa.types.is_date(kind):
        return DATE_UNITS[DateStep.DAY] if pa.types.is_date32(kind) else DATE_UNITS[DateStep.MILLISECOND]
    return _PER_UNIT[kind.unit]


def _parse_format(texts: pa.Array, form: str) -> pa.Array:
    form = form.replace("%-", "%")
    if _is_time_form(form):
        texts = pc.binary_join_element_wise(pa.scalar("1970-01-01", texts.type), texts, pa.scalar(" ", texts.type))
        form = f"%Y-%m-%d {form}"
    fraction = next((mark for mark in _FRACTION if mark in form), None)
    if fraction is None:
        return pc.strptime(texts, format=form, unit="s", error_is_null=True)
    parts = pc.extract_regex(texts, rf"^(?P<before>.*:\d\d)\.(?P<part>\d{{{fraction[2]}}})(?P<after>\D.*)?$")
    before, part, after = (pc.struct_field(parts, place) for place in range(3))  # all null where one text does not fit
    bare = pc.binary_join_element_wise(before, after, pa.scalar("", texts.type))
    whole = pc.strptime(bare, format=form.replace(fraction, ""), unit=_FRACTION[fraction], error_is_null=True)
    return pc.add(whole.view(pa.int64()), part.cast(pa.int64())).view(whole.type)


def _on_calendar(texts: pa.Array, form: str) -> pa.Array:
    """Moments of texts in a format; null for days that do not exist, such as 31 June."""
    parsed = _parse_format(texts, form)
    if "d" not in form or _is_time_form(form):
        return parsed
    first = np.flatnonzero(np.asarray(pc.fill_null(_is_early(parsed), False)))
    first = first[np.asarray(pc.match_substring_regex(texts.take(pa.array(first)), "29|30|31"))]
    if not len(first):
        return parsed
    places = pa.array(first)
    written, read = _write_format(parsed.take(places), form).cast(texts.type), texts.take(places)
    plain, again = (pc.replace_substring_regex(each, r"(^|\D)0+(\d)", r"\1\2") for each in (written, read))
    moved = pc.not_equal(pc.utf8_lower(plain), pc.utf8_lower(again)).to_numpy(zero_copy_only=False)
    mask = np.zeros(len(parsed), dtype=np.bool_)
    mask[first[moved]] = True
    return pc.if_else(pa.array(mask), pa.scalar(None, parsed.type), parsed)


def _is_early(parsed: pa.Array) -> pa.Array:
    """Whether moments lie in the first three days of a month."""
    return pc.less_equal(pc.day(parsed), 3)


def _write_format(parsed: pa.Array, form: str) -> pa.Array:
    for mark in _FRACTION:
        form = form.replace(mark, "")  # written with the seconds of such a type
    texts = pc.strftime(parsed, format=form.replace("%-", "%"))
    return pc.replace_substring_regex(texts, r"(^|[-./ ])0(\d)", r"\1\2") if "%-" in form else texts


def write_moments(moments: Ints, absent: Bools, field: Field, kind: pa.DataType) -> pa.Array:
    """Write microseconds since 1970 as dates, timestamps or texts; round down to what the type can hold."""
    if pa.types.is_date32(kind):
        return pa.array((moments // DATE_UNITS[DateStep.DAY]).astype(np.int32), mask=absent).view(kind)
    if pa.types.is_date64(kind):
        days = moments // DATE_UNITS[DateStep.DAY]
        return pa.array(days * (DATE_UNITS[DateStep.DAY] // DATE_UNITS[DateStep.MILLISECOND]), mask=absent).view(kind)
    if pa.types.is_timestamp(kind):
        counts = moments * 1_000 if kind.unit == "ns" else moments // _PER_UNIT[kind.unit]
        return pa.array(counts, mask=absent).view(kind)
    form = field.format or DATE_FORMATS[0]
    unit = next((unit for mark, unit in _FRACTION.items() if mark in form), "s")
    return _write_format(pa.array(moments // _PER_UNIT[unit], mask=absent).view(pa.timestamp(unit)), form).cast(kind)


def fitting_formats(texts: pa.Array, few: Callable[[pa.Array], bool] | None = None) -> tuple[str, ...]:
    """Usual date formats in which every text can be read and written back unchanged.

    The first is the one to take; any further one reads the texts as other days, so the reader has to choose. Some of
    the texts may be of another form where they are ``few``.

    Examples
    --------
    >>> fitting_formats(pa.array(["2020-01-31", "2021-12-01"]))
    ('%Y-%m-%d',)
    >>> fitting_formats(pa.array(["01/02/2020"]))
    ('%d/%m/%Y', '%m/%d/%Y')
    """
    few = few or (lambda strays: not len(strays))
    head = texts.slice(0, _SAMPLE)
    like = pc.match_substring_regex(head, LOOKS_LIKE_DATE)
    if 2 * like.true_count < len(head) or not few(head.filter(pc.invert(like))):
        return ()
    fitting: dict[str, pa.Array] = {}
    for form in DATE_FORMATS:
        parsed = None
        for some in (head, texts):
            parsed, written = _read_in_format(some, form)
            if 2 * written.true_count < len(some) or not few(some.filter(pc.invert(written))):
                break
        else:
            if not any(pc.all(pc.equal(parsed, other), min_count=0).as_py() for other in fitting.values()):
                fitting[form] = parsed
    return tuple(fitting)


def _read_in_format(texts: pa.Array, form: str) -> tuple[pa.Array, pa.Array]:
    """Moments of texts in a date format, and which texts have that format."""
    parsed = _parse_format(texts, form)
    known = pc.greater_equal(parsed.view(pa.int64()), FIRST_MOMENT // _micros_in(parsed.type))
    written = pc.and_(pc.equal(_write_format(parsed, form).cast(texts.type), texts), known)
    return parsed, pc.fill_null(written, False)


_REST = r":(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d)$"
_HOUR = r"(?P<hours>\d|1\d|2[0-3])"
_PATTERNS = dict(
    zip(
        DURATION_FORMATS,
        (
            rf"^(?P<sign>-?)(?P<days>)(?P<hours>0|[1-9]\d{{0,8}}){_REST}",
            rf"^(?P<sign>-?)(?P<days>)(?P<hours>\d\d|[1-9]\d{{2,8}}){_REST}",
            rf"^(?P<sign>)(?:(?P<days>-?[1-9]\d{{0,5}}) days?, )?{_HOUR}{_REST}",
            rf"^(?P<sign>)(?P<days>-?\d{{1,6}}) days \+?(?P<hours>[01]\d|2[0-3]){_REST}",
        ),
        strict=True,
    )
)
_DAY = 86_400


def duration_format(texts: pa.Array, few: Callable[[pa.Array], bool] | None = None) -> str | None:
    """Duration format of all texts, except a few; None if there is none.

    Examples
    --------
    >>> duration_format(pa.array(["27:15:00", "3:00:00"])), duration_format(pa.array(["1 day, 3:15:00", "0:00:01"]))
    ('h:mm:ss', 'd days, h:mm:ss')
    """
    few = few or (lambda strays: not len(strays))
    fits = (form for form in _PATTERNS if few(texts.filter(pc.invert(is_duration(texts, form)))))
    return next(fits, None) if len(texts) else None


def is_duration(texts: pa.Array, form: str) -> pa.Array:
    """Whether texts are durations in a format."""
    return pc.match_substring_regex(texts, _PATTERNS[form])


def seconds_of_texts(texts: pa.Array, form: str) -> tuple[Floats, Bools]:
    """Seconds of durations, and which texts are durations; other texts and nulls are 0.

    Examples
    --------
    >>> seconds_of_texts(pa.array(["-1 day, 23:59:59", "ill"]), "d days, h:mm:ss")[0].tolist()
    [-1.0, 0.0]
    """
    parts = pc.extract_regex(texts, _PATTERNS[form])
    found = np.asarray(parts.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    days, hours, minutes, seconds = (_integer_part(parts, name) for name in ("days", "hours", "minutes", "seconds"))
    minus = pc.fill_null(pc.equal(pc.struct_field(parts, "sign"), "-"), False).to_numpy(zero_copy_only=False)
    return days * _DAY + np.where(minus, -1.0, 1.0) * (hours * 3_600 + minutes * 60 + seconds), found


def _integer_part(parts: pa.Array, name: str) -> Floats:
    cells = pc.struct_field(parts, name)
    cells = pc.if_else(pc.equal(cells, ""), pa.scalar("0", cells.type), cells)
    return np.asarray(pc.fill_null(cells, "0").cast(pa.float64()).to_numpy(zero_copy_only=False))


def write_seconds(numbers: pa.Array, form: str) -> pa.Array:
    """Write seconds as durations.

    Examples
    --------
    >>> write_seconds(pa.array([98100.0, None]), "hh:mm:ss").to_pylist()
    ['27:15:00', None]
    """
    encoded = pc.dictionary_encode(numbers)
    words = pa.array([_duration_text(round(value), form) for value in encoded.dictionary.to_pylist()], pa.string())
    return words.take(encoded.indices)


def _duration_text(seconds: int, form: str) -> str:
    if form.startswith("h"):
        hours, rest = divmod(abs(seconds), 3_600)
        return f"{'-' if seconds < 0 else ''}{hours:0{len(form) - 6}d}:{rest // 60:02d}:{rest % 60:02d}"
    days, rest = divmod(seconds, _DAY)
    clock = f"{rest // 3_600}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    if "," not in form:
        return f"{days} days {'+' if days < 0 else ''}{clock.zfill(8)}"
    return f"{days} day{'s' if abs(days) != 1 else ''}, {clock}" if days else clock
