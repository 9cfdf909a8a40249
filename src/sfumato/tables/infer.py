"""Proposing a schema from a table: every decision comes with its reason, none is silent."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import SchemaError, TableError
from sfumato.tables.cells import DATE_UNITS, absent_cells, date_microseconds, is_text, number_to_bound, plain
from sfumato.tables.schema import Category, DateStep, Domain, Field, Kind, Role, Schema

__all__ = ["MISSING_MARKS", "infer_schema"]

MISSING_MARKS = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "none", "missing", "-", ".", "<NA>")
"""Texts that usually mean a missing cell."""

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
)

_BOOLEAN_WORDS = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"})
_NAMED_LIKE_ID = re.compile(
    r"(^|[_\s.-])(id|ids|uuid|guid|key|ssn|nr|no|number|passport|account|iban|email|e-mail|mail|phone|mobile|"
    r"firstname|lastname|surname|fullname|name|username|user|address|street|url|ip)$",
    re.IGNORECASE,
)
_CAMEL_ID = re.compile(r"[a-z](Id|ID|Key|Number|Name|Email|Phone)$")
_MOST_DECIMALS = 12
_ENOUGH = 20  # distinct values before uniqueness or a common divisor means anything


def infer_schema(table: pa.Table) -> Schema:
    """Propose kind, role and domain of every column."""
    if table.num_columns == 0:
        raise TableError("the table has no columns; bring one with at least one column")
    return Schema(tuple(infer_field(name, table.column(name)) for name in table.column_names))


def infer_field(name: str, column: pa.ChunkedArray) -> Field:
    """Propose kind, role and domain of one column."""
    array = plain(column)
    marks = _marks_in(array)
    absent = absent_cells(array, marks)
    kind = column.type
    if absent.all():
        raise SchemaError(f"column {name!r} has no value in any of its {len(array)} rows; drop it from the table")
    present = array.filter(pa.array(~absent))
    lost = f", {int(absent.sum())} missing" + (f" (written {marks[0]!r})" if marks and marks[0] else "")
    note = lost if absent.any() else ""
    if pa.types.is_dictionary(kind):
        categories = tuple(column.combine_chunks().dictionary.to_pylist()) if kind.ordered else _categories(present)
        word = Kind.ORDINAL if kind.ordered else Kind.NOMINAL
        field = Field(name, word, domain=Domain(declared=kind.ordered, categories=categories))
        return _with(field, marks, f"{'an ordered ' if kind.ordered else 'a '}categorical column{note}")
    if pa.types.is_boolean(kind):
        field = Field(name, Kind.BOOLEAN, domain=Domain(declared=True, categories=(False, True)))
        return _with(field, marks, f"true or false{note}")
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _with(_date_field(name, array, absent, None), marks, f"dates{note}")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _number_field(name, present, marks, note)
    if is_text(kind):
        return _text_field(name, array, absent, present, marks, note)
    raise SchemaError(f"column {name!r} is of type {kind}, which has no kind here; convert it or drop it")


def _with(field: Field, marks: tuple[str, ...], reason: str, role: Role | None = None) -> Field:
    return Field(field.name, field.kind, role or field.role, field.domain, marks, field.format, reason)


def _marks_in(array: pa.Array) -> tuple[str, ...]:
    """Find the usual missing marks that occur, the most frequent first."""
    if not is_text(array.type):
        return ()
    trimmed = pc.utf8_trim_whitespace(array)
    found = pc.value_counts(trimmed.filter(pc.is_in(trimmed, value_set=pa.array(MISSING_MARKS, array.type))))
    counts = {entry["values"].as_py(): entry["counts"].as_py() for entry in found if entry["values"].is_valid}
    return tuple(sorted(counts, key=lambda mark: (-counts[mark], mark)))


def _categories(present: pa.Array) -> tuple[Category, ...]:
    distinct = pc.unique(present)
    return tuple(distinct.take(pc.sort_indices(distinct)).to_pylist())


def looks_like_id(name: str) -> bool:
    """Tell whether a column is named as identifiers are.

    Examples
    --------
    >>> looks_like_id("patient_id"), looks_like_id("customerId"), looks_like_id("paid")
    (True, True, False)
    """
    return bool(_NAMED_LIKE_ID.search(name) or _CAMEL_ID.search(name))


def _text_field(
    name: str, array: pa.Array, absent: NDArray[np.bool_], present: pa.Array, marks: tuple[str, ...], note: str
) -> Field:
    trimmed = pc.utf8_trim_whitespace(present)
    words = {str(word).lower() for word in pc.unique(trimmed).slice(0, 3).to_pylist()}
    if words in _BOOLEAN_WORDS and len(pc.unique(trimmed)) == len(words) == 2:
        field = Field(name, Kind.BOOLEAN, domain=Domain(categories=_categories(present)))
        return _with(field, marks, f"two words for true and false{note}")
    if pc.all(pc.match_substring_regex(trimmed, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")).as_py():
        if not pc.any(pc.match_substring_regex(trimmed, r"^[+-]?0\d")).as_py():
            return _number_field(name, trimmed, marks, f"{note}, written as text" if note else "")
        note = f"{note}, digits with leading zeros are not numbers"
    field_and_why = _text_dates(name, array, absent, trimmed)
    if field_and_why is not None:
        return _with(field_and_why[0], marks, field_and_why[1] + note)
    distinct = len(pc.unique(present))
    if distinct == len(present) and distinct >= min(_ENOUGH, max(2, len(array))) and len(array) > 2:
        return _with(Field(name, Kind.NOMINAL), marks, f"text, different in every row{note}", Role.IDENTIFIER)
    if distinct > 0.5 * len(present) and distinct >= _ENOUGH and looks_like_id(name):
        reason = f"text, {distinct} different in {len(present)} rows, and named like an identifier{note}"
        return _with(Field(name, Kind.NOMINAL), marks, reason, Role.IDENTIFIER)
    field = Field(name, Kind.NOMINAL, domain=Domain(categories=_categories(present)))
    return _with(field, marks, f"text with {distinct} categories{note}")


def _text_dates(name: str, array: pa.Array, absent: NDArray[np.bool_], trimmed: pa.Array) -> tuple[Field, str] | None:
    """Try the usual ways of writing a date; the first that reads every cell is taken."""
    digits = pc.match_substring_regex(trimmed.slice(0, 100), r"^\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T].*)?$")
    if not pc.all(digits).as_py():
        return None
    fitting = [
        form
        for form in DATE_FORMATS
        if pc.strptime(trimmed, format=form, unit="s", error_is_null=True).null_count == 0
        and pc.all(pc.equal(_rewritten(trimmed, form), trimmed)).as_py()
    ]
    if not fitting:
        return None
    why = f"dates written as {fitting[0]}"
    if len(fitting) > 1:
        why += f" ({fitting[1]} would fit too: check it)"
    return _date_field(name, array, absent, fitting[0]), why


def _rewritten(texts: pa.Array, form: str) -> pa.Array:
    return pc.strftime(pc.strptime(texts, format=form, unit="s", error_is_null=True), format=form).cast(texts.type)


def _date_field(name: str, array: pa.Array, absent: NDArray[np.bool_], form: str | None) -> Field:
    stamps = date_microseconds(array, absent, Field(name, Kind.DATE, format=form))[~absent]
    step = next(step for step in DateStep if not (stamps % DATE_UNITS[step]).any())
    low, high = (number_to_bound(int(edge) // DATE_UNITS[step], step) for edge in (stamps.min(), stamps.max()))
    return Field(name, Kind.DATE, domain=Domain(low=low, high=high, step=step), format=form)


def _number_field(name: str, present: pa.Array, marks: tuple[str, ...], note: str) -> Field:
    numbers = np.asarray(pc.cast(present, pa.float64()).to_numpy(zero_copy_only=False))
    infinite = int(np.isinf(numbers).sum())
    if infinite:
        raise SchemaError(f"column {name!r} holds {infinite} infinite numbers; remove them or mark them missing")
    distinct = np.unique(numbers)
    form = _fixed_decimals(present)
    if len(distinct) == 2 and (distinct == np.rint(distinct)).all() and form is None:
        return _two_valued(name, present, marks, distinct, note)
    decimals = _decimals(distinct)
    if decimals == 0 and _is_running_number(name, numbers, distinct):
        reason = f"whole numbers, different in every row, that {_why_id(name)}{note}"
        return _with(Field(name, Kind.INTEGER), marks, reason, Role.IDENTIFIER)
    step = _step(distinct, decimals)
    kind = Kind.INTEGER if decimals == 0 else Kind.CONTINUOUS
    low, high = (int(edge) if decimals == 0 else float(edge) for edge in (distinct[0], distinct[-1]))
    field = Field(name, kind, domain=Domain(low=low, high=high, step=step), format=form)
    if kind is Kind.INTEGER:
        whole = pa.types.is_integer(present.type) or is_text(present.type)
        words = "whole numbers" if whole else "whole numbers kept as decimals"
    else:
        words = f"numbers with up to {decimals} decimals" if decimals is not None else "numbers"
    if step is not None and step != 10.0 ** -(decimals or 0):
        words += f", all multiples of {step:g} apart"
    return _with(field, marks, f"{words}, {len(distinct)} different{note}")


def _two_valued(
    name: str, present: pa.Array, marks: tuple[str, ...], distinct: NDArray[np.float64], note: str
) -> Field:
    boolean = distinct.tolist() == [0.0, 1.0]
    kind = Kind.BOOLEAN if boolean else Kind.NOMINAL
    field = Field(name, kind, domain=Domain(categories=_categories(present)))
    return _with(field, marks, f"{'only 0 and 1' if boolean else 'only two values, taken as categories'}{note}")


def _fixed_decimals(present: pa.Array) -> str | None:
    """Tell the form of numbers all written with the same number of decimals."""
    if not is_text(present.type):
        return None
    lengths = pc.unique(pc.utf8_length(pc.replace_substring_regex(present, r"^[^.]*\.?", "")))
    plainly = pc.all(pc.match_substring_regex(present, r"^-?\d+\.\d+$")).as_py()
    return "0." + "0" * lengths[0].as_py() if plainly and len(lengths) == 1 else None


def _decimals(distinct: NDArray[np.float64]) -> int | None:
    """Count the decimals that write every number exactly; None where no small count does."""
    if np.abs(distinct).max(initial=0.0) >= 2**53:
        return None
    for decimals in range(_MOST_DECIMALS + 1):
        scaled = distinct * 10.0**decimals
        if np.abs(scaled).max() >= 2**53:
            return None
        if (np.rint(scaled) / 10.0**decimals == distinct).all():
            return decimals
    return None


def _step(distinct: NDArray[np.float64], decimals: int | None) -> float | None:
    """Find the grid of the numbers: a common divisor of their gaps, where there are enough to tell."""
    if decimals is None:
        return None
    scale = 10**decimals
    whole = np.rint(distinct * scale).astype(np.int64)
    gaps = np.diff(whole)
    divisor = int(np.gcd.reduce(gaps)) if len(gaps) >= _ENOUGH else 1
    return divisor / scale if decimals else float(divisor)


def _is_running_number(name: str, numbers: NDArray[np.float64], distinct: NDArray[np.float64]) -> bool:
    if len(distinct) < max(_ENOUGH, len(numbers)):
        return False
    consecutive = distinct[-1] - distinct[0] == len(distinct) - 1
    return bool(consecutive or looks_like_id(name))


def _why_id(name: str) -> str:
    return "are named like an identifier" if looks_like_id(name) else "follow one another"


def category_limit(fields: Sequence[Field], most: int) -> None:
    """Refuse columns with more categories than can be handled as such."""
    for field in fields:
        categories = field.domain.categories or ()
        if field.kind in (Kind.NOMINAL, Kind.BOOLEAN) and len(categories) > most:
            raise SchemaError(
                f"column {field.name!r} has {len(categories)} categories and at most {most} are handled; declare it an "
                "identifier (dropped), or pool its categories"
            )
