"""Propose the field of a numeric column: whole numbers, step, two values, codes or coordinates."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats
from sfumato.core.errors import SchemaError
from sfumato.tables.cells import EXACT, floats, is_text
from sfumato.tables.contact import is_coordinate, why_number_id
from sfumato.tables.evidence import ColumnSample, categories_of
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.grid import (
    WIDEST,
    beyond_decimals,
    decimals_of_numbers,
    off_decimals,
    rounded_to_step,
    step_of_numbers,
)
from sfumato.tables.marks import sentinel_words

__all__ = ["number_field", "refuse_infinite", "text_number_field"]

_FEW = 200  # distinct values that can still be categories
_MOST_STRAYS = 64  # different values of a column that may have but two


def text_number_field(seen: ColumnSample, trimmed: pa.Array) -> Field:
    """Propose the field of numbers written as text; ``trimmed`` holds the distinct texts."""
    numbers = pc.utf8_trim_whitespace(seen.present).cast(pa.float64())
    seen = seen if seen.untyped else seen.told(", written as text")
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
        words = f"numbers with up to {decimals} decimals"
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
