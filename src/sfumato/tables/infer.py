"""Propose a schema for a table; every decision states its reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import SchemaError, TableError
from sfumato.tables.cells import (
    EXACT,
    MISSING_MARKS,
    NUMBER,
    absent_cells,
    floats,
    is_number,
    is_span,
    is_text,
    marks_among_numbers,
    marks_as_array,
    plain,
)
from sfumato.tables.contact import (
    ALL_DIFFER,
    NEARLY_ALL_DIFFER,
    ColumnSample,
    Evidence,
    categories_of,
    is_birth,
    is_coordinate,
    missing_counts,
    why_number_id,
    why_text_id,
)
from sfumato.tables.dates import (
    DATE_UNITS,
    DIGITS,
    LOOKS_LIKE_DATE,
    duration_format,
    fitting_formats,
    is_day_first,
    is_duration,
    is_month_form,
    is_time_of_day,
    microseconds_of_cells,
    number_to_bound,
    seconds_of_texts,
    step_of_moments,
)
from sfumato.tables.field import DateStep, Domain, Field, Kind, Role
from sfumato.tables.grid import (
    WIDEST,
    beyond_decimals,
    decimals_of_numbers,
    off_decimals,
    rounded_to_step,
    step_of_numbers,
)
from sfumato.tables.hierarchies import are_postcodes, hierarchy_of_texts
from sfumato.tables.numerals import frequent_marks, sentinel_words
from sfumato.tables.schema import Schema

__all__ = [
    "MISSING_MARKS",
    "complete_field",
    "has_few_values",
    "infer_field",
    "infer_schema",
    "is_mixed",
    "number_field",
    "refuse_infinite",
    "text_number_field",
]

_FEW = 200  # distinct values that can still be categories
_MOST_STRAYS = 64  # different values of a column that may have but two


def text_number_field(seen: ColumnSample, trimmed: pa.Array) -> Field:
    """Propose the field of numbers written as text; ``trimmed`` holds the distinct texts."""
    numbers = pc.utf8_trim_whitespace(seen.present).cast(pa.float64())
    seen = seen if seen.untyped else seen.with_note(", written as text")
    furthest = max(abs(edge) for edge in pc.min_max(numbers).as_py().values())
    far = _at_least(numbers, EXACT) if furthest >= EXACT else None
    if far is not None and not seen.evidence.few(far) and pc.all(pc.match_substring_regex(trimmed, r"^-?\d+$")).as_py():
        return _big_field(seen)
    form = _fixed_decimals(seen, trimmed)
    widest = np.inf if form is None else WIDEST / 2 / 10.0 ** (len(form) - 2)
    if furthest >= widest:
        far = _at_least(numbers, widest)
        if seen.evidence.few(far):
            seen, numbers = seen.without(far), numbers.filter(pa.array(~far))
        else:
            form = None
    return number_field(seen, numbers, form)


def _at_least(numbers: pa.Array, bar: float) -> Bools:
    return np.asarray(pc.greater_equal(pc.abs(numbers), float(bar)))


def _fixed_decimals(seen: ColumnSample, distinct: pa.Array) -> str | None:
    """Format of numbers that all have the same number of decimals, except those of few persons."""
    lengths = pc.utf8_length(pc.replace_substring_regex(distinct, r"^-?\d+\.?", ""))
    fixed = pc.match_substring_regex(distinct, r"^-?\d+\.\d+$")
    counts = np.where(fixed, lengths, 0)
    usual = int(np.bincount(counts).argmax())
    if not usual:
        return None
    strays = distinct.filter(pa.array(counts != usual))
    few = not len(strays) or seen.evidence.few_values(pc.utf8_trim_whitespace(seen.present), strays)
    return "0." + "0" * usual if few else None


def number_field(
    seen: ColumnSample, numbers: pa.Array | None = None, form: str | None = None, *, listed: bool = True
) -> Field:
    """Propose the field of a column of numbers written in a ``form``; two values are ``listed``."""
    cells = seen.present if numbers is None else numbers
    values = floats(cells)
    refuse_infinite(seen.name, values)
    whole = pa.types.is_integer(cells.type)
    distinct = np.unique(values)
    if whole and np.abs(distinct[[0, -1]]).max() >= EXACT and not seen.evidence.few(np.abs(values) >= EXACT):
        return _big_field(seen)
    if form is None and listed and (two := _two_values(seen, values, distinct)) is not None:
        return _two_valued_field(seen.without(~np.isin(values, two)), two)
    decimals = decimals_of_numbers(distinct, partial(seen.evidence.few_numbers, values, distinct))
    codes = whole or is_text(seen.present.type)
    if decimals == 0 and distinct[-1] - distinct[0] >= WIDEST and not seen.evidence.few(_is_extreme(values)):
        if codes:
            return _big_field(seen)
        decimals = None
    seen, values, distinct = _without_misfits(seen, values, distinct, decimals)
    spare = seen.evidence.spare
    if decimals == 0 and (why := why_number_id(seen.name, distinct, len(values), spare)):
        return seen.identifier(Kind.INTEGER, f"whole numbers{why}")
    if is_coordinate(seen.name, distinct, len(values), decimals, spare):
        return seen.identifier(
            Kind.CONTINUOUS, f"numbers, {len(distinct)} different in {len(values)} rows: coordinates of places"
        )
    return _stepped_field(seen, values, distinct, decimals, form)


def refuse_infinite(name: str, values: Floats) -> None:
    """Refuse infinite numbers."""
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise SchemaError(
            f"column {name!r} holds {infinite} infinite {'number' if infinite == 1 else 'numbers'}; "
            "remove or mark as missing"
        )


def _is_extreme(values: Floats) -> Bools:
    return np.asarray(np.abs(values) >= WIDEST / 2)


def _without_misfits(
    seen: ColumnSample, values: Floats, distinct: Floats, decimals: int | None
) -> tuple[ColumnSample, Floats, Floats]:
    """Numbers without too large ones, and with excess decimals rounded, if few persons have them."""
    if decimals is None:
        return seen, values, distinct
    far = (lambda x: beyond_decimals(x, decimals)) if decimals else _is_extreme
    if far(distinct[[0, -1]]).any():
        far_rows = far(values)
        if len(values) > np.count_nonzero(far_rows) and (decimals or seen.evidence.few(far_rows)):
            seen, values, distinct = seen.without(far_rows), values[~far_rows], distinct[~far(distinct)]
    if off_decimals(distinct, decimals).any():
        values = np.rint(values * 10.0**decimals) / 10.0**decimals
        seen, distinct = seen.repaired("rounded"), np.unique(values)
    return seen, values, distinct


def _stepped_field(
    seen: ColumnSample, values: Floats, distinct: Floats, decimals: int | None, form: str | None
) -> Field:
    step = None
    if decimals is not None:
        step = step_of_numbers(distinct, decimals, partial(seen.evidence.few_numbers, values, distinct))
        on_step = rounded_to_step(distinct, step, decimals)
        if (on_step != distinct).any():
            seen, distinct = seen.repaired("rounded"), np.unique(on_step)
    low, high = (int(edge) if decimals == 0 else float(edge) for edge in (distinct[0], distinct[-1]))
    kind = Kind.INTEGER if decimals == 0 else Kind.CONTINUOUS
    why = f"{_number_words(seen.present.type, decimals, step)}, {len(distinct)} different"
    field = seen.field(kind, why, Domain(low=low, high=high, step=step), form)
    return dataclasses.replace(field, reason=field.reason + sentinel_words(seen, values, distinct))


def _number_words(kind: pa.DataType, decimals: int | None, step: float | None) -> str:
    if decimals is None:
        return "numbers"
    if decimals:
        words = f"numbers with up to {decimals} decimal{'s' * (decimals > 1)}"
    else:
        words = "whole numbers" if pa.types.is_integer(kind) or is_text(kind) else "whole numbers kept as decimals"
    return words if step == 10.0**-decimals else f"{words} on a coarser step"


def _big_field(seen: ColumnSample) -> Field:
    """Propose the field of whole numbers too large to be averaged, which are probably codes."""
    distinct = pc.unique(seen.present)
    why = f"whole numbers too large to be averaged, {len(distinct)} different"
    if len(distinct) > _FEW or len(distinct) >= len(seen.present) - seen.evidence.spare:
        return seen.identifier(Kind.NOMINAL, why)
    return seen.field(Kind.NOMINAL, why, Domain(categories=categories_of(seen.present)))


def _two_values(seen: ColumnSample, values: Floats, distinct: Floats) -> Floats | None:
    """The two whole numbers that all cells hold, except those of few persons; None if there are not two."""
    if not 2 <= len(distinct) <= _MOST_STRAYS:
        return None
    two = np.array([value for value in distinct if not seen.evidence.few(values == value)])
    if len(two) != 2 or (two != np.rint(two)).any():
        return None
    strays = np.isin(values, two, invert=True) if len(distinct) > 2 else np.zeros(len(values), dtype=np.bool_)
    return two if seen.evidence.few(strays) else None


def _two_valued_field(seen: ColumnSample, distinct: Floats) -> Field:
    boolean = distinct.tolist() == [0.0, 1.0]
    categories = categories_of(seen.present)
    why = "only 0 and 1" if boolean else "only two values, taken as categories"
    kind = Kind.BOOLEAN if boolean and len(categories) == 2 else Kind.NOMINAL
    return seen.field(kind, why, Domain(categories=categories))


_BOOLEAN_WORDS = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"})
_NUMBER_OR_INFINITE = rf"{NUMBER}|^[+-]?([iI]nf|INF|[iI]nfinity|INFINITY)$"
_ENOUGH = 20  # distinct values before uniqueness means anything
_SAMPLE = 1_000
_MIXED = ", mostly "
_FEW_VALUES = "values in fewer than "
_DOUBT = " would fit too: check it"
_NEARLY = 0.8  # share of different texts of a form that others of another keep from being read so
_NUMERAL = rf"{NUMBER}|^[-+(]?[$€£]? ?\d{{1,3}}([., ']?\d{{3}})*([.,]\d+)? ?(%|[$€£]|kg|cm|mm|mg|ml|km|EUR|USD)?\)?$"


def infer_schema(
    table: pa.Table, dropped: Collection[str] = (), *, persons: Ints | None = None, missing: tuple[str, ...] = ()
) -> Schema:
    """Propose kind, role and domain of every column; columns that are dropped anyway may have any type.

    A cell that holds one of the marks in ``missing`` is missing in every column.

    What a column is follows from at least `MIN_EVIDENCE` persons; each row is one where ``persons`` does not say whom
    it is about.
    """
    if table.num_columns == 0:
        raise TableError("the table has no columns; provide one with at least one column")
    if table.num_rows == 0:
        raise TableError("the table has no rows; provide at least as many as the highest privacy level")
    untyped = all(is_text(field.type) for field in table.schema)
    infer = partial(infer_field, persons=persons, missing=missing, untyped=untyped)
    fields = {
        name: _dropped_field(name, table.column(name), missing, untyped=untyped)
        if name in dropped
        else infer(name, table.column(name))
        for name in table.column_names
    }
    proposed = {mark for field in fields.values() for mark in field.missing} - {*MISSING_MARKS, *missing}
    for name, field in fields.items():  # a mark of one column is one in another that has few different numbers, too
        if name not in dropped and field.kind is Kind.NOMINAL and not proposed.isdisjoint(_texts_of(field)):
            fields[name] = infer(name, table.column(name), known=proposed)
    clear = {is_day_first(field.format) for field in fields.values() if field.format and _DOUBT not in field.reason}
    clear.discard(None)
    if len(clear) == 1:  # dates of a table are written alike
        order = clear.pop()
        for name, field in fields.items():
            if _DOUBT in field.reason and field.format:
                fields[name] = infer(name, table.column(name), day_first=order)
    return Schema(tuple(fields.values()))


def _texts_of(field: Field) -> set[str]:
    return {category.strip() for category in field.domain.categories or () if isinstance(category, str)}


def _dropped_field(name: str, column: pa.ChunkedArray, missing: tuple[str, ...], *, untyped: bool) -> Field:
    try:
        return infer_field(name, column, missing=missing, untyped=untyped)
    except SchemaError:
        return Field(name, Kind.NOMINAL, Role.IDENTIFIER, reason=f"cells of type {column.type}")


def infer_field(
    name: str,
    column: pa.ChunkedArray,
    *,
    day_first: bool | None = None,
    persons: Ints | None = None,
    untyped: bool = False,
    missing: tuple[str, ...] = (),
    known: Collection[str] = (),
) -> Field:
    """Propose kind, role and domain of one column; ``day_first`` decides ambiguous dates.

    If all columns of the table are text, as those of CSV, it is ``untyped``, and that numbers are text says nothing.
    Texts in ``missing`` are missing marks; those that are ``known`` as marks of another column are proposed here even
    if there are few different numbers or dates.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    dated = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    dated = dated or is_span(kind)
    readable = is_text(kind) or is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)
    if not readable and (not dated or pa.types.is_dictionary(column.type)) and column.null_count < len(column):
        raise SchemaError(f"column {name!r} is of type {column.type}, which has no kind here; convert it or drop it")
    array = plain(column)
    marks = _marks_in(array, missing)
    absent = absent_cells(array, marks)
    there = Evidence.of(len(array), persons)
    if there.few(~absent):
        few = "no value in any" if absent.all() else f"{_FEW_VALUES}{there.least}"
        return Field(name, Kind.NOMINAL, Role.IDENTIFIER, missing=marks, reason=f"{few} of its {len(array)} rows")
    seen = dataclasses.replace(_sample_column(name, array, marks, absent, persons), untyped=untyped)
    if pa.types.is_dictionary(column.type):
        return _categorical_field(seen, column)
    if pa.types.is_boolean(kind):
        return seen.field(Kind.BOOLEAN, "true or false", Domain(declared=True, categories=(False, True)))
    if is_span(kind):
        words = "times of day" if pa.types.is_time(kind) else "durations"
        return number_field(seen.with_note(f", {words} counted in seconds"), listed=False)
    if dated:
        return _date_field(seen, "dates")
    if is_text(kind):
        return _marked_field(seen, day_first, known) or _text_field(seen, day_first)
    return (_digits_field(seen) if pa.types.is_integer(kind) else None) or number_field(seen)


def _digits_field(seen: ColumnSample) -> Field | None:
    """Propose the field of dates written as whole numbers; None for other numbers."""
    distinct = pc.unique(seen.present)
    if len(distinct) < _ENOUGH:
        return None

    def few(strays: pa.Array) -> bool:
        return seen.evidence.few_values(seen.present, strays.cast(distinct.type))

    if DIGITS not in fitting_formats(distinct.cast(pa.string()), few):
        return None
    return _date_field(seen, f"dates written as {DIGITS}", DIGITS)


def _marks_in(array: pa.Array, missing: tuple[str, ...]) -> tuple[str, ...]:
    """Usual and given missing marks that occur, most frequent first."""
    if is_number(array.type):
        return marks_among_numbers(array, missing)
    if not is_text(array.type):
        return ()
    trimmed = pc.utf8_trim_whitespace(array)
    marked = pc.is_in(trimmed, value_set=marks_as_array((*MISSING_MARKS, *missing), array.type))
    if not marked.true_count:
        return ()
    found = pc.value_counts(trimmed.filter(marked))
    counts = {entry["values"].as_py(): entry["counts"].as_py() for entry in found if entry["values"].is_valid}
    return tuple(sorted(counts, key=lambda mark: (-counts[mark], mark)))


def _marked_field(seen: ColumnSample, day_first: bool | None, known: Collection[str]) -> Field | None:
    """Propose the field of numbers or dates mixed with frequent missing marks; None for other texts."""
    marks = frequent_marks(seen)
    if not marks:
        return None
    rest = seen.with_marks(marks)
    if len(pc.unique(rest.present)) < _ENOUGH and not set(marks) <= set(known):
        return None
    field = _text_field(rest, day_first)
    return None if field.kind is Kind.NOMINAL else field


def _sample_column(
    name: str, array: pa.Array, marks: tuple[str, ...], absent: Bools, persons: Ints | None
) -> ColumnSample:
    lost = int(absent.sum())
    if not lost:
        return ColumnSample(name, array, len(array), marks, (), Evidence.of(len(array), persons))
    evidence = Evidence.of(len(array) - lost, None if persons is None else persons[~absent])
    missing = missing_counts(array, absent, marks)
    return ColumnSample(name, array.filter(pa.array(~absent)), len(array), marks, missing, evidence)


def _categorical_field(seen: ColumnSample, column: pa.ChunkedArray) -> Field:
    if not column.type.ordered:
        categories = categories_of(seen.present)
        if is_text(seen.present.type) and (why := why_text_id(seen)):
            return seen.identifier(Kind.NOMINAL, f"a categorical column, {why}")
        why = f"a categorical column with {_describe_count(len(categories))}"
        return seen.field(Kind.NOMINAL, why, Domain(categories=categories))
    listed = pc.unique(column.combine_chunks().dictionary)
    marked = absent_cells(listed, seen.marks)
    categories = tuple(listed.filter(pa.array(~marked)).to_pylist())
    why = f"an ordered categorical column with {len(categories)} categories"
    return seen.field(Kind.ORDINAL, why, Domain(categories=categories))


def _describe_count(categories: int) -> str:
    return "1 category" if categories == 1 else f"{categories} categories"


def _date_field(seen: ColumnSample, why: str, form: str | None = None) -> Field:
    nothing = np.zeros(len(seen.present), dtype=np.bool_)
    moments, strange = microseconds_of_cells(seen.present, nothing, Field(seen.name, Kind.DATE, format=form))
    if not seen.evidence.few(strange) or strange.all():
        raise SchemaError(
            f"column {seen.name!r} holds {int(strange.sum())} times finer than a microsecond or outside the years 1 to "
            "9999; round or remove them"
        )
    if strange.any():
        seen, moments = seen.without(strange), moments[~strange]
    step = step_of_moments(moments, seen.evidence.few)
    if (finer := moments % DATE_UNITS[step]).any():
        seen, moments = seen.repaired("rounded"), moments - finer
    low, high = (number_to_bound(int(edge) // DATE_UNITS[step], step) for edge in (moments.min(), moments.max()))
    if is_birth(seen.name, moments):
        step, why = DateStep.MONTH, f"{why}, given to the month as dates of birth"
    elif is_month_form(form):
        step = DateStep.MONTH
    return seen.field(Kind.DATE, why, Domain(low=low, high=high, step=step), form)


def _text_field(seen: ColumnSample, day_first: bool | None) -> Field:
    distinct = pc.unique(seen.present)
    trimmed = pc.utf8_trim_whitespace(distinct)
    if (words := _boolean_words(seen, distinct)) is not None:
        seen = seen.without_values(distinct.filter(pc.invert(pc.is_in(distinct, value_set=words))))
        return seen.field(Kind.BOOLEAN, "two words for true and false", Domain(categories=categories_of(words)))
    extra = ""
    numbers = _match(trimmed, NUMBER)
    if seen.few(strays := trimmed.filter(pc.invert(numbers))):
        infinite = strays.filter(pc.match_substring_regex(strays, _NUMBER_OR_INFINITE))
        if len(infinite):
            refuse_infinite(seen.name, floats(seen.trimmed.filter(pc.is_in(seen.trimmed, infinite)).cast(pa.float64())))
        left = trimmed.filter(numbers)
        if len(left) >= _ENOUGH and DIGITS in fitting_formats(left, seen.few):
            return _date_field(seen, f"dates written as {DIGITS}", DIGITS)
        leading_zeros = not seen.few(left.filter(pc.match_substring_regex(left, r"^-?0\d")))
        if not leading_zeros and not are_postcodes(seen.name, left.to_pylist(), seen.evidence.spare):
            return text_number_field(seen.without_texts(strays), left)
        extra = ", digits with leading zeros are not numbers" if leading_zeros else ""
    elif _all_match(trimmed, _NUMBER_OR_INFINITE) and pc.any(numbers).as_py():
        refuse_infinite(seen.name, floats(seen.trimmed.cast(pa.float64())))
    return _text_date_field(seen, pc.unique(trimmed), day_first) or _label_field(seen, distinct, trimmed, extra)


def _match(texts: pa.Array, pattern: str) -> pa.Array:
    """Which texts match; for many texts, none if hardly any of the first ones does."""
    few = pc.match_substring_regex(texts.slice(0, _SAMPLE), pattern)
    if len(few) == len(texts):
        return few
    nearly = 2 * few.true_count > len(few)
    return pc.match_substring_regex(texts, pattern) if nearly else pa.array(np.zeros(len(texts), dtype=np.bool_))


def _boolean_words(seen: ColumnSample, distinct: pa.Array) -> pa.Array | None:
    """The two words for true and false that all cells hold, except those of few persons; None otherwise."""
    if not 2 <= len(distinct) <= _ENOUGH:
        return None
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(distinct))
    often = [not seen.evidence.few_values(seen.present, distinct.slice(place, 1)) for place in range(len(distinct))]
    words = distinct.filter(pa.array(often))
    if len(words) != 2 or set(lower.filter(pa.array(often)).to_pylist()) not in _BOOLEAN_WORDS:
        return None
    strays = distinct.filter(pa.array([not each for each in often]))
    return words if seen.evidence.few_values(seen.present, strays) else None


def _text_date_field(seen: ColumnSample, trimmed: pa.Array, day_first: bool | None) -> Field | None:
    """Propose the field of dates, times of day or durations; None for other texts."""
    forms = fitting_formats(trimmed, seen.few)
    timed = forms and is_time_of_day(Field(seen.name, Kind.DATE, format=forms[0]))
    listed = timed or (forms and is_month_form(forms[0]))
    if forms and not (listed and len(trimmed) < _ENOUGH):  # few times are shifts, and few months categories
        doubt = f" ({forms[1]}{_DOUBT})" if len(forms) > 1 else ""
        ordered = [form for form in forms if day_first is not None and is_day_first(form) is day_first]
        if doubt and ordered:
            forms, doubt = tuple(ordered), ", as other dates of the table are"
        what = "times of day" if timed else "dates"
        return _date_field(seen, f"{what} written as {forms[0]}{doubt}", forms[0])
    span = duration_format(trimmed, seen.few)
    if span is None:
        return None
    seen = seen.without_texts(trimmed.filter(pc.invert(is_duration(trimmed, span))))
    noted = seen.with_note(f", durations written as {span} and counted in seconds")
    seconds, _ = seconds_of_texts(seen.trimmed, span)
    return number_field(noted, pa.array(seconds), span, listed=False)


def _label_field(seen: ColumnSample, distinct: pa.Array, trimmed: pa.Array, extra: str) -> Field:
    """Propose the field of texts that are categories or an identifier."""
    mixed = _mixed_words(trimmed)
    if why := why_text_id(seen):
        every = (ALL_DIFFER, NEARLY_ALL_DIFFER)
        return seen.identifier(Kind.NOMINAL, f"text, {why}{extra}{mixed if why in every else ''}")
    alike = len(distinct) - len(pc.unique(pc.utf8_lower(trimmed)))
    if alike:
        extra += f", {alike} of them differ from another only in case or spaces: check them"
    extra += mixed
    hierarchy, form = hierarchy_of_texts(seen.name, trimmed.to_pylist(), seen.evidence.spare)
    field = seen.field(
        Kind.NOMINAL,
        f"text with {_describe_count(len(distinct))}{extra}{form}",
        Domain(categories=categories_of(distinct)),
    )
    return dataclasses.replace(field, hierarchy=hierarchy)


def _mixed_words(distinct: pa.Array) -> str:
    """Advice for texts that are dates in several formats, or numbers except for a few words; empty for others."""
    if len(distinct) < _ENOUGH or _all_match(distinct, NUMBER):
        return ""
    for form, words in (
        (
            LOOKS_LIKE_DATE,
            "dates, but not of one form that is known here: write them as 2020-01-31 to keep them as dates",
        ),
        (
            _NUMERAL,
            "numbers: leave out units, and name texts that mean missing with --missing, to keep them as numbers",
        ),
    ):
        alike = pc.sum(pc.match_substring_regex(distinct, form)).as_py()
        if alike >= _NEARLY * len(distinct):
            return f"{_MIXED}{words}"
    return ""


def is_mixed(field: Field) -> bool:
    """Whether a column was taken as categorical although nearly all of its texts are dates or numbers."""
    return field.kind is Kind.NOMINAL and _MIXED in field.reason


def has_few_values(field: Field) -> bool:
    """Whether a column was dropped because too few persons have a value to tell what it is."""
    return field.role is Role.IDENTIFIER and field.reason.startswith(_FEW_VALUES)


def _all_match(texts: pa.Array, pattern: str) -> bool:
    parts = (texts.slice(0, _SAMPLE), texts) if len(texts) > _SAMPLE else (texts,)
    return all(pc.all(pc.match_substring_regex(some, pattern)).as_py() for some in parts)


def complete_field(field: Field, column: pa.ChunkedArray) -> Field:
    """Complete a field for the codec: observed categories, the step of dates.

    Raises
    ------
    SchemaError
        For a column without any value, and for one whose type does not go with its kind.
    """
    array = plain(column)
    absent = absent_cells(array, field.missing)
    if absent.all():
        raise SchemaError(f"column {field.name!r} has no value in any of its {len(array)} rows; drop it from the table")
    listed = field.kind in (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
    if pa.types.is_dictionary(column.type) and not listed:
        raise SchemaError(
            f"column {field.name!r} is categorical in the table and declared {field.kind.value}; convert it there first"
        )
    if listed and not (is_text(array.type) or is_number(array.type) or pa.types.is_boolean(array.type)):
        raise SchemaError(
            f"column {field.name!r} is of type {array.type}, which cannot be {field.kind.value}; convert it first"
        )
    domain = field.domain
    if field.kind in (Kind.NOMINAL, Kind.BOOLEAN) and domain.categories is None:
        categories = categories_of(array.filter(pa.array(~absent)))
        return dataclasses.replace(field, domain=Domain(categories=categories, units=domain.units))
    if field.kind is Kind.DATE and domain.step is None:
        moments, _ = microseconds_of_cells(array, absent, field)
        return dataclasses.replace(field, domain=dataclasses.replace(domain, step=step_of_moments(moments[~absent])))
    return field
