"""Proposing a schema from a table: every decision comes with its reason, none is silent."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats
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
    marks_as_array,
    plain,
)
from sfumato.tables.contact import ALL_DIFFER, is_birth, is_coordinate, why_number_id, why_text_id
from sfumato.tables.dates import (
    DATE_UNITS,
    DIGITS,
    LOOKS_LIKE_DATE,
    duration_format,
    fitting_formats,
    is_day_first,
    is_month_form,
    is_time_of_day,
    microseconds_of_cells,
    number_to_bound,
    seconds_of_texts,
    step_of_moments,
)
from sfumato.tables.field import Category, DateStep, Domain, Field, Kind, Role
from sfumato.tables.grid import WIDEST, decimals_of_numbers, step_of_numbers
from sfumato.tables.hierarchies import hierarchy_of_texts
from sfumato.tables.schema import Schema

__all__ = ["MISSING_MARKS", "complete_field", "infer_field", "infer_schema", "is_mixed"]

_BOOLEAN_WORDS = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"})
_NUMBER_OR_INFINITE = rf"{NUMBER}|^[+-]?([iI]nf|INF|[iI]nfinity|INFINITY)$"
_ENOUGH = 20  # distinct values before uniqueness means anything
_FEW = 200  # distinct values that can still be categories
_SAMPLE = 1_000
_MIXED = ", mostly "
_DOUBT = " would fit too: check it"
_NEARLY = 0.8  # share of different texts of a form that others of another keep from being read so
_NUMERAL = rf"{NUMBER}|^[-+(]?[$€£]? ?\d{{1,3}}([., ']?\d{{3}})*([.,]\d+)? ?(%|[$€£]|kg|cm|mm|mg|ml|km|EUR|USD)?\)?$"


@dataclass(frozen=True, repr=False)
class _Seen:
    """What is known of a column before its kind is: its present cells, and a note on the missing ones."""

    name: str
    present: pa.Array
    rows: int
    marks: tuple[str, ...]
    note: str

    def field(self, kind: Kind, why: str, domain: Domain | None = None, form: str | None = None) -> Field:
        reason = why + self.note
        return Field(self.name, kind, Role.CONFIDENTIAL, domain or Domain(), self.marks, form, reason)

    def identifier(self, kind: Kind, why: str) -> Field:
        return Field(self.name, kind, Role.IDENTIFIER, Domain(), self.marks, None, why + self.note)


def infer_schema(table: pa.Table, dropped: Collection[str] = ()) -> Schema:
    """Propose kind, role and domain of every column; those that are dropped anyway may be of any type."""
    if table.num_columns == 0:
        raise TableError("the table has no columns; bring one with at least one column")
    if table.num_rows == 0:
        raise TableError("the table has no rows; bring at least as many as the highest privacy level")
    fields = {
        name: _dropped_field(name, table.column(name)) if name in dropped else infer_field(name, table.column(name))
        for name in table.column_names
    }
    clear = {is_day_first(field.format) for field in fields.values() if field.format and _DOUBT not in field.reason}
    clear.discard(None)
    if len(clear) == 1:  # dates of a table are written alike
        order = clear.pop()
        for name, field in fields.items():
            if _DOUBT in field.reason and field.format:
                fields[name] = infer_field(name, table.column(name), day_first=order)
    return Schema(tuple(fields.values()))


def _dropped_field(name: str, column: pa.ChunkedArray) -> Field:
    try:
        return infer_field(name, column)
    except SchemaError:
        return Field(name, Kind.NOMINAL, Role.IDENTIFIER, reason=f"cells of type {column.type}")


def infer_field(name: str, column: pa.ChunkedArray, *, day_first: bool | None = None) -> Field:
    """Propose kind, role and domain of one column; ``day_first`` reads dates of which that cannot be told."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    dated = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    dated = dated or is_span(kind)
    known = is_text(kind) or is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)
    if not known and (not dated or pa.types.is_dictionary(column.type)) and column.null_count < len(column):
        raise SchemaError(f"column {name!r} is of type {column.type}, which has no kind here; convert it or drop it")
    array = plain(column)
    marks = _marks_in(array)
    absent = absent_cells(array, marks)
    if absent.all():
        why = f"no value in any of its {len(array)} rows"
        return Field(name, Kind.NOMINAL, Role.IDENTIFIER, missing=marks, reason=why)
    seen = _seen(name, array, marks, absent)
    if pa.types.is_dictionary(column.type):
        return _categorical_field(seen, column)
    if pa.types.is_boolean(kind):
        return seen.field(Kind.BOOLEAN, "true or false", Domain(declared=True, categories=(False, True)))
    if is_span(kind):
        words = "times of day" if pa.types.is_time(kind) else "durations"
        return _number_field(dataclasses.replace(seen, note=f", {words} counted in seconds{seen.note}"), listed=False)
    if dated:
        return _date_field(seen, "dates")
    if is_text(kind):
        return _text_field(seen, day_first)
    distinct = pc.unique(seen.present).cast(pa.string()) if pa.types.is_integer(kind) else ()
    if len(distinct) >= _ENOUGH and DIGITS in fitting_formats(distinct):
        return _date_field(seen, f"dates written as {DIGITS}", DIGITS)
    return _number_field(seen)


def _marks_in(array: pa.Array) -> tuple[str, ...]:
    """Find the usual missing marks that occur, the most frequent first."""
    if not is_text(array.type):
        return ()
    trimmed = pc.utf8_trim_whitespace(array)
    marked = pc.is_in(trimmed, value_set=marks_as_array(MISSING_MARKS, array.type))
    if not marked.true_count:
        return ()
    found = pc.value_counts(trimmed.filter(marked))
    counts = {entry["values"].as_py(): entry["counts"].as_py() for entry in found if entry["values"].is_valid}
    return tuple(sorted(counts, key=lambda mark: (-counts[mark], mark)))


def _seen(name: str, array: pa.Array, marks: tuple[str, ...], absent: Bools) -> _Seen:
    lost = int(absent.sum())
    if not lost:
        return _Seen(name, array, len(array), marks, "")
    ways = [repr(mark) for mark in marks if mark]
    note = f", {lost} missing" + (f" (written {', '.join(ways)})" if ways else "")
    return _Seen(name, array.filter(pa.array(~absent)), len(array), marks, note)


def _categories(present: pa.Array) -> tuple[Category, ...]:
    distinct = pc.unique(present)
    ordered = distinct.take(pc.sort_indices(distinct))
    if pa.types.is_decimal(ordered.type):
        ordered = ordered.cast(pa.float64(), safe=False)
    return tuple(ordered.to_pylist())


def _categorical_field(seen: _Seen, column: pa.ChunkedArray) -> Field:
    if not column.type.ordered:
        categories = _categories(seen.present)
        if is_text(seen.present.type) and (why := why_text_id(seen.present, seen.rows, seen.name)):
            return seen.identifier(Kind.NOMINAL, f"a categorical column, {why}")
        why = f"a categorical column with {_counted(len(categories))}"
        return seen.field(Kind.NOMINAL, why, Domain(categories=categories))
    listed = pc.unique(column.combine_chunks().dictionary)
    marked = absent_cells(listed, seen.marks)
    categories = tuple(listed.filter(pa.array(~marked)).to_pylist())
    why = f"an ordered categorical column with {len(categories)} categories"
    return seen.field(Kind.ORDINAL, why, Domain(categories=categories))


def _counted(categories: int) -> str:
    return "1 category" if categories == 1 else f"{categories} categories"


def _date_field(seen: _Seen, why: str, form: str | None = None) -> Field:
    nothing = np.zeros(len(seen.present), dtype=np.bool_)
    moments, strange = microseconds_of_cells(seen.present, nothing, Field(seen.name, Kind.DATE, format=form))
    if strange.any():
        raise SchemaError(
            f"column {seen.name!r} holds {int(strange.sum())} times finer than a microsecond or outside the years 1 to "
            "9999; round or remove them"
        )
    step = step_of_moments(moments)
    low, high = (number_to_bound(int(edge) // DATE_UNITS[step], step) for edge in (moments.min(), moments.max()))
    if is_birth(seen.name, moments):
        step, why = DateStep.MONTH, f"{why}, given to the month as dates of birth"
    elif is_month_form(form):
        step = DateStep.MONTH
    return seen.field(Kind.DATE, why, Domain(low=low, high=high, step=step), form)


def _text_field(seen: _Seen, day_first: bool | None) -> Field:
    distinct = pc.unique(seen.present)
    trimmed = pc.utf8_trim_whitespace(distinct)
    words = {str(word).lower() for word in trimmed.slice(0, 3).to_pylist()}
    if words in _BOOLEAN_WORDS and len(distinct) == 2:
        return seen.field(Kind.BOOLEAN, "two words for true and false", Domain(categories=_categories(distinct)))
    extra = ""
    if _all_match(trimmed, NUMBER):
        if len(distinct) >= _ENOUGH and DIGITS in fitting_formats(trimmed):
            return _date_field(seen, f"dates written as {DIGITS}", DIGITS)
        if not pc.any(pc.match_substring_regex(trimmed, r"^-?0\d")).as_py():
            return _text_number_field(seen, trimmed)
        extra = ", digits with leading zeros are not numbers"
    elif _all_match(trimmed, _NUMBER_OR_INFINITE) and pc.any(pc.match_substring_regex(trimmed, NUMBER)).as_py():
        _refuse_infinite(seen.name, floats(pc.utf8_trim_whitespace(seen.present).cast(pa.float64())))
    forms = fitting_formats(pc.unique(trimmed))
    timed = forms and is_time_of_day(Field(seen.name, Kind.DATE, format=forms[0]))
    listed = timed or (forms and is_month_form(forms[0]))
    if forms and not (listed and len(distinct) < _ENOUGH):  # few times are shifts, and few months categories
        doubt = f" ({forms[1]}{_DOUBT})" if len(forms) > 1 else ""
        ordered = [form for form in forms if day_first is not None and is_day_first(form) is day_first]
        if doubt and ordered:
            forms, doubt = tuple(ordered), ", as other dates of the table are"
        what = "times of day" if timed else "dates"
        return _date_field(seen, f"{what} written as {forms[0]}{doubt}", forms[0])
    if span := duration_format(trimmed):
        told = dataclasses.replace(seen, note=f", durations written as {span} and counted in seconds{seen.note}")
        seconds, _ = seconds_of_texts(pc.utf8_trim_whitespace(seen.present), span)
        return _number_field(told, pa.array(seconds), span, listed=False)
    mixed = _mixed_words(trimmed)
    if why := why_text_id(seen.present, seen.rows, seen.name):
        return seen.identifier(Kind.NOMINAL, f"text, {why}{extra}{mixed if why == ALL_DIFFER else ''}")
    alike = len(distinct) - len(pc.unique(pc.utf8_lower(trimmed)))
    if alike:
        extra += f", {alike} of them differ from another only in case or spaces: check them"
    extra += mixed
    hierarchy, form = hierarchy_of_texts(seen.name, trimmed.to_pylist())
    field = seen.field(
        Kind.NOMINAL, f"text with {_counted(len(distinct))}{extra}{form}", Domain(categories=_categories(distinct))
    )
    return dataclasses.replace(field, hierarchy=hierarchy)


def _mixed_words(distinct: pa.Array) -> str:
    """What to do where texts are dates in several forms, or numbers but for a few words; nothing for others."""
    if len(distinct) < _ENOUGH or _all_match(distinct, NUMBER):
        return ""
    for form, words in (
        (
            LOOKS_LIKE_DATE,
            "dates, but not of one form that is known here: write them as 2020-01-31 to keep them as dates",
        ),
        (_NUMERAL, "numbers: leave out units, and empty cells that are none, to keep them as numbers"),
    ):
        alike = pc.sum(pc.match_substring_regex(distinct, form)).as_py()
        if alike >= _NEARLY * len(distinct):
            return f"{_MIXED}{words}"
    return ""


def is_mixed(field: Field) -> bool:
    """Tell whether a column was taken as categories although nearly all of its texts are dates or numbers."""
    return field.kind is Kind.NOMINAL and _MIXED in field.reason


def _all_match(texts: pa.Array, pattern: str) -> bool:
    parts = (texts.slice(0, _SAMPLE), texts) if len(texts) > _SAMPLE else (texts,)
    return all(pc.all(pc.match_substring_regex(some, pattern)).as_py() for some in parts)


def _text_number_field(seen: _Seen, trimmed: pa.Array) -> Field:
    """Propose the field of numbers that are written as text; ``trimmed`` are the different texts."""
    numbers = pc.utf8_trim_whitespace(seen.present).cast(pa.float64())
    beyond = pc.any(pc.greater_equal(pc.abs(numbers), float(EXACT))).as_py() and _all_match(trimmed, r"^-?\d+$")
    told = dataclasses.replace(seen, note=f", written as text{seen.note}")
    if beyond:
        return _big_field(told)
    return _number_field(told, numbers, _fixed_decimals(trimmed))


def _fixed_decimals(distinct: pa.Array) -> str | None:
    """Tell the form of numbers all written with the same number of decimals."""
    if not _all_match(distinct, r"^-?\d+\.\d+$"):
        return None
    lengths = pc.unique(pc.utf8_length(pc.replace_substring_regex(distinct, r"^[^.]*\.", "")))
    return "0." + "0" * lengths[0].as_py() if len(lengths) == 1 else None


def _number_field(
    seen: _Seen, numbers: pa.Array | None = None, form: str | None = None, *, listed: bool = True
) -> Field:
    cells = seen.present if numbers is None else numbers
    if pa.types.is_integer(cells.type):
        edges = pc.min_max(cells)
        if max(abs(edges["min"].as_py()), abs(edges["max"].as_py())) >= EXACT:
            return _big_field(seen)
    values = floats(cells)
    _refuse_infinite(seen.name, values)
    distinct = np.unique(values)
    if len(distinct) == 2 and (distinct == np.rint(distinct)).all() and form is None and listed:
        return _two_valued_field(seen, distinct)
    decimals = decimals_of_numbers(distinct)
    if decimals == 0 and distinct[-1] - distinct[0] >= WIDEST:
        if pa.types.is_integer(seen.present.type) or is_text(seen.present.type):
            return _big_field(seen)
        decimals = None
    if decimals == 0 and (why := why_number_id(seen.name, distinct, len(values))):
        return seen.identifier(Kind.INTEGER, f"whole numbers{why}")
    if is_coordinate(seen.name, distinct, len(values), decimals):
        return seen.identifier(
            Kind.CONTINUOUS, f"numbers, {len(distinct)} different in {len(values)} rows: coordinates of places"
        )
    step = None if decimals is None else step_of_numbers(distinct, decimals)
    low, high = (int(edge) if decimals == 0 else float(edge) for edge in (distinct[0], distinct[-1]))
    kind = Kind.INTEGER if decimals == 0 else Kind.CONTINUOUS
    why = f"{_number_words(seen.present.type, decimals, step)}, {len(distinct)} different"
    return seen.field(kind, why, Domain(low=low, high=high, step=step), form)


def _refuse_infinite(name: str, values: Floats) -> None:
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise SchemaError(
            f"column {name!r} holds {infinite} infinite {'number' if infinite == 1 else 'numbers'}; "
            "remove or mark as missing"
        )


def _number_words(kind: pa.DataType, decimals: int | None, step: float | None) -> str:
    if decimals is None:
        return "numbers"
    if decimals:
        words = f"numbers with up to {decimals} decimals"
    else:
        words = "whole numbers" if pa.types.is_integer(kind) or is_text(kind) else "whole numbers kept as decimals"
    return words if step == 10.0**-decimals else f"{words} on a coarser step"


def _big_field(seen: _Seen) -> Field:
    """Propose the field of whole numbers that cannot be averaged: codes, hardly quantities."""
    distinct = pc.unique(seen.present)
    why = f"whole numbers too large to be averaged, {len(distinct)} different"
    if len(distinct) > _FEW or len(distinct) == len(seen.present):
        return seen.identifier(Kind.NOMINAL, why)
    return seen.field(Kind.NOMINAL, why, Domain(categories=_categories(distinct)))


def _two_valued_field(seen: _Seen, distinct: Floats) -> Field:
    boolean = distinct.tolist() == [0.0, 1.0]
    categories = _categories(seen.present)
    why = "only 0 and 1" if boolean else "only two values, taken as categories"
    kind = Kind.BOOLEAN if boolean and len(categories) == 2 else Kind.NOMINAL
    return seen.field(kind, why, Domain(categories=categories))


def complete_field(field: Field, column: pa.ChunkedArray) -> Field:
    """Fill in what a field leaves open and a codec needs: observed categories, the step of dates.

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
        categories = _categories(array.filter(pa.array(~absent)))
        return dataclasses.replace(field, domain=Domain(categories=categories, units=domain.units))
    if field.kind is Kind.DATE and domain.step is None:
        moments, _ = microseconds_of_cells(array, absent, field)
        return dataclasses.replace(field, domain=dataclasses.replace(domain, step=step_of_moments(moments[~absent])))
    return field
