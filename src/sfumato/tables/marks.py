"""Missing marks: texts such as "k.A." for missing cells in a column of numbers or dates.

A mark is proposed if many persons have it and nearly all other cells are numbers or dates. A frequent number far from
all others, such as 999, is only pointed out: it may be a value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Floats
from sfumato.tables.evidence import ColumnSample

__all__ = ["MOST_MARKS", "MOST_SHARE", "are_words", "frequent_marks", "sentinel_words"]

MOST_MARKS = 5
"""Most missing marks that are proposed in one column; with more of them it holds categories."""

MOST_SHARE = 0.5
"""Largest share of the cells with a text that proposed marks may have."""

_ENDS = 5  # distinct numbers at either end that may be codes of missing cells
_WORD = r"^\P{N}{1,40}$"  # not a digit in it
_SHEET_ERROR = r"^#[A-Z/0!?]{3,10}$"  # as spreadsheets export a formula that failed
_INFINITE = r"^[+-]?(?i:inf|infinity)$"  # a number, which is refused


def are_words(texts: pa.Array) -> pa.Array:
    """Which texts are short and without digits, so that they cannot be numbers or dates.

    Examples
    --------
    >>> are_words(pa.array(["k.A.", "12,5", "#DIV/0!", "< 5", "inf"])).to_pylist()
    [True, False, True, False, False]
    """
    words = pc.or_(pc.match_substring_regex(texts, _WORD), pc.match_substring_regex(texts, _SHEET_ERROR))
    return pc.and_not(words, pc.match_substring_regex(texts, _INFINITE))


def frequent_marks(seen: ColumnSample) -> tuple[str, ...]:
    """Texts of a column that may be missing marks, most frequent first: words held by many persons.

    None if there are too many of them, or if they fill more than half of the cells.
    """
    distinct = pc.unique(seen.trimmed)
    words = distinct.filter(are_words(distinct))
    if not 0 < len(words) < len(distinct) or seen.few(words):
        return ()
    counts = pc.value_counts(seen.trimmed.filter(pc.is_in(seen.trimmed, value_set=words)))
    ordered = sorted(
        ((entry["counts"].as_py(), entry["values"].as_py()) for entry in counts), key=lambda each: (-each[0], each[1])
    )
    least = max(2, seen.evidence.least)
    marks = []
    for count, word in ordered[: MOST_MARKS + 1]:
        if count < least or seen.few(pa.array([word], words.type)):
            break
        marks.append((count, word))
    if len(marks) > MOST_MARKS or sum(count for count, _ in marks) > MOST_SHARE * len(seen.present):
        return ()
    return tuple(word for _, word in marks)


def sentinel_words(seen: ColumnSample, values: Floats, distinct: Floats) -> str:
    """Note on numbers that may stand for missing cells: frequent, such as -9, 99 or 999, and far from the others.

    ``distinct`` has each of the ``values`` once, in order.
    """
    ends = {*distinct[:_ENDS].tolist(), *distinct[-_ENDS:].tolist()}
    codes = sorted(value for value in ends if _is_code(value) and not seen.evidence.few(values == value))
    others = distinct[~np.isin(distinct, codes)]
    if not codes or len(others) < 2:
        return ""
    low, high = float(others[0]), float(others[-1])
    far = [value for value in codes if max(low - value, value - high) > (high - low) / 2 or value < 0.0 <= low]
    if not far:
        return ""
    named = ", ".join(f"{value:g} ({np.count_nonzero(values == value)} cells)" for value in far)
    options = " ".join(f"--missing {value:g}" for value in far)
    return f"; far from all others: {named}; if that means missing, say {options}"


def _is_code(value: float) -> bool:
    """Whether a number is a usual code for a missing value: -1, or only digits 7, 8 or 9."""
    digits = f"{abs(value):g}"
    return value == -1 or (len(digits) > (value > 0) and set(digits) in ({"7"}, {"8"}, {"9"}))
