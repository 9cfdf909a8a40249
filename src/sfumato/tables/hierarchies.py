"""Generalization hierarchies of a column's values: prefixes, calendar, intervals, ICD-10, or a file.

A schema says them as a text: ``prefix``, ``prefix 3 2`` (characters that stay), ``icd10``, ``calendar``,
``intervals 10 50`` (widths), ``file codes.csv`` (as ARX writes them: value;label;wider label).
"""

from __future__ import annotations

import bisect
import csv
import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.core.documents import read_text
from sfumato.core.errors import SchemaError, shown

__all__ = [
    "MOST_LEVELS",
    "CalendarHierarchy",
    "Hierarchy",
    "Icd10Hierarchy",
    "IntervalHierarchy",
    "ListedHierarchy",
    "PrefixHierarchy",
    "are_postcodes",
    "hierarchy_of_texts",
    "parse_hierarchy",
    "read_hierarchy",
]

_LONGEST = 1_000  # characters of a text that says a hierarchy
_MOST_BYTES = 1 << 26
MOST_LEVELS = 32
"""Most levels of a hierarchy."""
_MOST_PREFIX = 100
_REST = "*"
_CODE = re.compile(r"[A-Z]\d[0-9A-Z](\.?[0-9A-Z]{1,4}|\.-)?[*+!]?")
_INTERVAL = re.compile(r"\[(-?\d{1,20}(?:\.\d{1,20})?(?:e[+-]\d{1,3})?), \S{1,40}\)")
_CHAPTERS = (
    "A00-B99", "C00-D48", "D50-D90", "E00-E90", "F00-F99", "G00-G99", "H00-H59", "H60-H95", "I00-I99", "J00-J99",
    "K00-K93", "L00-L99", "M00-M99", "N00-N99", "O00-O99", "P00-P96", "Q00-Q99", "R00-R99", "S00-T98", "U00-U99",
    "V01-Y98", "Z00-Z99",
)  # fmt: skip
_ENOUGH = 20  # different texts before their form means anything
_SAMPLE = 1_000
_MOSTLY = 0.95  # share of texts of a form that a column is of
_POSTCODE, _POSTCODES = re.compile(r"post|zip|plz", re.IGNORECASE), re.compile(r"[0-9]{4,6}")
_FIRSTS = [chapter[:3] for chapter in _CHAPTERS]


class Hierarchy:
    """Generalized labels of values; level 0 is the value itself."""

    levels: int | None = None
    """How many levels there are above the values; None if that depends on them."""

    def label(self, value: Any, level: int) -> str:
        """Label of a value at a level from 1 on; beyond the last level, one label for all."""
        raise NotImplementedError

    def is_label(self, text: str, level: int) -> bool:
        """Whether a text is the label of some value at a level."""
        return self.label(text, level) == text


@dataclass(frozen=True)
class PrefixHierarchy(Hierarchy):
    """Texts shortened to ever fewer characters.

    Examples
    --------
    >>> PrefixHierarchy().label("01067", 2), PrefixHierarchy((3, 1)).label("01067", 1)
    ('010**', '010**')
    """

    lengths: tuple[int, ...] = ()

    def label(self, value: Any, level: int) -> str:
        """The first characters, with a star for each of the others."""
        text = str(value)
        if self.lengths:
            kept = self.lengths[level - 1] if level <= len(self.lengths) else 0
        else:
            kept = max(0, len(text) - level)
        return text if kept >= len(text) else (text[:kept] + _REST * (len(text) - kept) if kept else _REST)


@dataclass(frozen=True)
class Icd10Hierarchy(Hierarchy):
    """Diagnoses: the three-character category, then the chapter.

    Examples
    --------
    >>> Icd10Hierarchy().label("C34.1", 1), Icd10Hierarchy().label("C34.1", 2), Icd10Hierarchy().label("unknown", 1)
    ('C34.-', 'C00-D48', '*')
    """

    levels: int | None = 2

    def label(self, value: Any, level: int) -> str:
        """Category or chapter of a code; a star for a text that is no code."""
        code = str(value).strip().upper()
        if level > 2 or not _CODE.fullmatch(code):
            return _REST
        if level == 1:
            return f"{code[:3]}.-"
        return _CHAPTERS[max(0, bisect.bisect_right(_FIRSTS, code[:3]) - 1)]

    def is_label(self, text: str, level: int) -> bool:
        """Whether a text is a category, a chapter, or the star for texts that are no codes."""
        return text == _REST or (text in _CHAPTERS if level == 2 else level == 1 and self.label(text, 1) == text)


@dataclass(frozen=True)
class CalendarHierarchy(Hierarchy):
    """Dates: the month, the quarter, the year.

    Examples
    --------
    >>> import datetime
    >>> [CalendarHierarchy().label(datetime.date(2024, 5, 7), level) for level in (1, 2, 3)]
    ['2024-05', '2024-Q2', '2024']
    """

    levels: int | None = 3

    def label(self, value: Any, level: int) -> str:
        """The month, quarter or year of a date."""
        if level > 3:
            return _REST
        year, month = value.year, value.month
        return (f"{year:04d}-{month:02d}", f"{year:04d}-Q{(month + 2) // 3}", f"{year:04d}")[level - 1]

    def is_label(self, text: str, level: int) -> bool:
        """Whether a text is a month, quarter or year."""
        if level > 3:
            return text == _REST
        return re.fullmatch((r"\d{4}-(0[1-9]|1[0-2])", r"\d{4}-Q[1-4]", r"\d{4}")[level - 1], text) is not None


@dataclass(frozen=True)
class IntervalHierarchy(Hierarchy):
    """Numbers: intervals of a width, starting at its multiples, then wider ones.

    Examples
    --------
    >>> IntervalHierarchy((10.0, 50.0)).label(37, 1), IntervalHierarchy((10.0, 50.0)).label(-3, 2)
    ('[30, 40)', '[-50, 0)')
    """

    widths: tuple[float, ...]

    def label(self, value: Any, level: int) -> str:
        """The half-open interval that holds a number."""
        if level > len(self.widths):
            return _REST
        width = self.widths[level - 1]
        place = math.floor(float(value) / width)
        return f"[{place * width:.12g}, {(place + 1) * width:.12g})"

    def is_label(self, text: str, level: int) -> bool:
        """Whether a text is an interval of the level's width that starts at a multiple of it."""
        if level > len(self.widths):
            return text == _REST
        begins, width = _INTERVAL.fullmatch(text), self.widths[level - 1]
        if begins is None or not math.isfinite(float(begins[1]) / width):
            return False
        return self.label(float(begins[1]) + width / 2, level) == text


@dataclass(frozen=True, repr=False)
class ListedHierarchy(Hierarchy):
    """Values whose labels a file lists; unlisted values have the most general label.

    Examples
    --------
    >>> ListedHierarchy({"Bonn": ("NW", "west")}, 2).label("Bonn", 1)
    'NW'
    """

    rows: dict[str, tuple[str, ...]]
    levels: int | None

    def label(self, value: Any, level: int) -> str:
        """The label that the file gives a value."""
        labels = self.rows.get(str(value).strip(), ())
        return labels[level - 1] if level <= len(labels) else _REST

    def is_label(self, text: str, level: int) -> bool:
        """Whether the file lists a text at a level."""
        return text == _REST or any(level <= len(labels) and labels[level - 1] == text for labels in self.rows.values())


def _is_icd10(value: str) -> bool:
    """Whether a text has the form of an ICD-10 diagnosis with at least one character after the category.

    Examples
    --------
    >>> _is_icd10("C34.1"), _is_icd10("C341"), _is_icd10("A4"), _is_icd10("B12")
    (True, False, False, False)
    """
    return re.fullmatch(r"[A-Z]\d[0-9A-Z]\.[0-9A-Z]{1,4}[*+!]?", value.strip()) is not None


def parse_hierarchy(text: str, kind: str, name: str) -> Hierarchy | Path:
    """Hierarchy of a column, from the schema's text or the file that it names.

    Raises
    ------
    SchemaError
        For a text that is none, or none of that kind.
    """
    word, *rest = (text.split() if len(text) <= _LONGEST else []) or [""]
    found: Hierarchy | Path | None = None
    if word == "file" and rest and kind == "nominal":
        found = Path(text.strip()[len("file") :].strip())
    elif word == "icd10" and not rest and kind == "nominal":
        found = Icd10Hierarchy()
    elif word == "calendar" and not rest and kind == "date":
        found = CalendarHierarchy()
    elif word == "prefix" and kind == "nominal":
        lengths = [int(each) for each in rest if each.isascii() and each.isdigit() and len(each) <= 3]
        falling = all(one > two for one, two in itertools.pairwise(lengths))
        if len(lengths) == len(rest) and falling and all(0 < each <= _MOST_PREFIX for each in lengths):
            found = PrefixHierarchy(tuple(lengths))
    elif word == "intervals" and rest and kind in ("integer", "continuous"):
        found = _intervals(rest)
    if found is None or "\0" in text:
        raise SchemaError(
            f"the hierarchy of the {kind} column {name!r} is none; write 'prefix', 'prefix 3 2', 'icd10' or 'file "
            "NAME' for categories, 'calendar' for dates, 'intervals 10 50' for numbers"
        )
    return found


def _intervals(texts: Sequence[str]) -> IntervalHierarchy | None:
    try:
        widths = [float(each) for each in texts]
    except ValueError:
        return None
    if len(widths) > MOST_LEVELS or not all(math.isfinite(width) and 1e-300 < width < 1e300 for width in widths):
        return None
    parts = [wider / width for width, wider in itertools.pairwise(widths)]
    nested = all(part > 1.5 and abs(part - round(part)) < 1e-9 * part for part in parts)
    return IntervalHierarchy(tuple(widths)) if nested else None


def read_hierarchy(path: str | Path) -> ListedHierarchy:
    """Labels of values from a CSV file in ARX's format: value;label;more general label.

    Raises
    ------
    SchemaError
        For a file that lists a value twice, rows of different lengths, or too much.
    """
    do = "write value;label;wider label in each line"
    text = read_text(path, "hierarchy file", do, most=_MOST_BYTES)
    rows: dict[str, tuple[str, ...]] = {}
    where, wide = f"the hierarchy file {shown(path)}", 0
    try:
        for line in csv.reader(text.removeprefix("\ufeff").splitlines(), delimiter=";", strict=True):
            cells = [cell.strip() for cell in line]
            if not any(cells):
                continue
            wide = wide or len(cells)
            if not 2 <= len(cells) <= MOST_LEVELS + 1 or len(cells) != wide or not all(cells):
                raise SchemaError(f"row {len(rows) + 1} of {where} is not like the others; {do}")
            if cells[0] in rows:
                raise SchemaError(f"row {len(rows) + 1} of {where} lists a value for the second time; list each once")
            rows[cells[0]] = tuple(cells[1:])
    except csv.Error:  # its own words would quote a cell
        raise SchemaError(f"row {len(rows) + 1} of {where} cannot be read; {do}") from None
    if not rows:
        raise SchemaError(f"{where} is empty; {do}")
    return ListedHierarchy(rows, wide - 1)


def hierarchy_of_texts(name: str, texts: Sequence[str], spare: int = 0) -> tuple[str | None, str]:
    """Hierarchy that the form of a column's distinct texts suggests, and its name: ICD-10, postcodes.

    As many as ``spare`` of them may be of another form.

    Examples
    --------
    >>> hierarchy_of_texts("zip", [f"0{number}" for number in range(1000, 1030)])
    ('prefix', ', postcodes')
    """
    some = texts[:_SAMPLE]
    if len(texts) < _ENOUGH:
        return None, ""
    if sum(map(_is_icd10, some)) >= _MOSTLY * len(some):
        return "icd10", ", diagnoses of ICD-10"
    return ("prefix", ", postcodes") if are_postcodes(name, texts, spare) else (None, "")


def are_postcodes(name: str, texts: Sequence[str], spare: int = 0) -> bool:
    """Whether a column is named after postcodes and holds as many digits in each cell, except in ``spare`` of them.

    Examples
    --------
    >>> are_postcodes("PLZ", [str(number) for number in range(80331, 80361)])
    True
    """
    if len(texts) < _ENOUGH or not _POSTCODE.search(name):
        return False
    lengths = Counter(len(text) for text in texts if _POSTCODES.fullmatch(text))
    return len(texts) - max(lengths.values(), default=0) <= spare
