"""Rewrite local number formats such as 1.234,50 as 1234.50, and propose texts that stand for missing cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import OptionError
from sfumato.tables.cells import NUMBER, absent_cells, is_text, plain
from sfumato.tables.contact import MIN_EVIDENCE, ColumnSample, least_evidence

__all__ = [
    "DECIMALS",
    "MOST_MARKS",
    "MOST_SHARE",
    "NumeralScan",
    "Numerals",
    "are_words",
    "frequent_marks",
    "plain_numerals",
    "rewrite_numerals",
    "sentinel_words",
]

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


DECIMALS = (".", ",")
"""Marks before the decimals of a number."""

_BETWEEN = r" '\x{2019}\x{a0}\x{202f}"  # between thousands, whatever the decimal mark
_STYLE = {
    ",": rf"^-?(\d+|[1-9]\d{{0,2}}([.{_BETWEEN}]\d{{3}})+)(,\d+)?$",
    ".": rf"^-?(\d+|[1-9]\d{{0,2}}([,{_BETWEEN}]\d{{3}})+)(\.\d+)?$",
}
_THOUSANDS = {",": rf"[.{_BETWEEN}]", ".": rf"[,{_BETWEEN}]"}
_ALWAYS = {"number": NUMBER, "grouped": r"^-?(\d{1,3}|[1-9]\d{0,2}(\.\d{3})+)$", **_STYLE}  # what all texts may be
_LEADING_ZERO = r"^-?0\d"
_SAMPLE = 1_000
_MOST_WORDS = MOST_MARKS + MIN_EVIDENCE  # different words in a column of numbers: marks, and those of few cells
_VARIED = 20  # different numbers, of which words beside them say no more than that a cell is missing


@dataclass(frozen=True)
class Numerals:
    """Number formats found: columns by decimal mark, and ambiguous columns.

    ``marks`` is the decimal mark of each column that must be rewritten.
    """

    commas: tuple[str, ...] = ()
    thousands: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def sentences(self) -> tuple[str, ...]:
        """Notes for the reader, one sentence each; none if all numbers are plain."""
        notes = []
        if self.commas:
            notes.append(f"Decimal commas in {_listed(self.commas)}: read as numbers, released with decimal points.")
        if self.thousands:
            notes.append(f"Thousands separators in {_listed(self.thousands)}: read as numbers, released without.")
        if self.doubtful:
            notes.append(
                f"One mark and three digits in {_listed(self.doubtful)}: thousands and decimals are ambiguous, so they "
                "stay texts; say --decimal , or --decimal ."
            )
        return tuple(notes)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


@dataclass
class _TextSummary:
    """Running summary of a column's texts: which formats all, most or some of them have.

    Fewer cells than `least_evidence` decide nothing, and frequent words without a digit may be missing marks: ``words``
    counts their cells, ``present`` all cells with a text, and ``varied`` is the most different numbers of a part.
    """

    always: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_ALWAYS, 0))
    ever: set[str] = field(default_factory=set)
    zeros: int = 0
    cells: int = 0
    words: Counter[str] = field(default_factory=Counter)
    present: int = 0
    varied: int = 0

    @property
    def undecided(self) -> bool:
        """Whether the texts may still be numbers in a local format."""
        return not self.always.keys().isdisjoint(("grouped", *DECIMALS))

    def add(self, column: pa.Array, texts: pa.Array, counts: Ints, *, plain: bool) -> None:
        """Add cells by their ``texts`` without missing ones; ``plain`` if all are known to be numbers."""
        self.cells += len(column)
        self.present += int(counts.sum())
        if not plain and (words := _as_bools(are_words(texts))).any():
            self._add_words(zip(texts.filter(pa.array(words)).to_pylist(), counts[words].tolist(), strict=True))
            texts = texts.filter(pa.array(~words))
        if not len(texts):
            return
        self.varied = max(self.varied, len(texts))
        marks = {mark for mark in DECIMALS if pc.any(pc.match_substring(texts, mark)).as_py()}
        self.ever |= {"some", *marks}
        if not plain and pc.any(pc.match_substring_regex(texts, f"[{_BETWEEN}]")).as_py():
            self.ever.add("between")
        zeros = texts.filter(pc.or_(pc.starts_with(texts, "0"), pc.starts_with(texts, "-0")))
        self.zeros += _count(column, zeros.filter(pc.match_substring_regex(zeros, _LEADING_ZERO)))
        known = set()
        if plain:
            letters = pc.any(pc.match_substring_regex(texts, "[eEiInN]")).as_py()  # exponents and infinity
            known = {"number"} if letters or marks else {"number", *DECIMALS}
        for each in [each for each in self.always if each not in known]:
            self._count_wrong(each, _count(column, _not_matching(texts, _ALWAYS[each])))

    def to_json(self) -> list[Any]:
        """The summary as plain values that `join` takes."""
        numbers = (self.zeros, self.cells, self.present, self.varied)
        return [dict(self.always), sorted(self.ever), dict(self.words), *numbers]

    def join(
        self,
        always: Mapping[str, int],
        ever: Iterable[str],
        words: Mapping[str, int],
        zeros: int,
        cells: int,
        present: int,
        varied: int,
    ) -> None:
        """Add the summary of other cells."""
        self.ever |= set(ever)
        self.zeros, self.cells = self.zeros + zeros, self.cells + cells
        self.present, self.varied = self.present + present, max(self.varied, varied)
        self._add_words(words.items())
        for each in list(self.always):
            self._count_wrong(each, always.get(each, MIN_EVIDENCE))

    def _add_words(self, counts: Iterable[tuple[str, int]]) -> None:
        for word, count in counts:
            self.words[word] += count
        if len(self.words) > _MOST_WORDS:  # a column of categories
            self.words.clear()
            self.always.clear()

    def _count_wrong(self, each: str, wrong: int) -> None:
        self.always[each] += wrong
        if self.always[each] >= MIN_EVIDENCE:
            del self.always[each]

    def may_be(self, each: str) -> bool:
        """Whether all non-missing cells, or all but few, have a format."""
        least = least_evidence(self.cells)
        marks = [count for _, count in self.words.most_common(MOST_MARKS) if count >= max(2, least)]
        if marks and (self.varied < _VARIED or sum(marks) > MOST_SHARE * self.present):
            return False
        return self.always.get(each, MIN_EVIDENCE) + self.words.total() - sum(marks) < least

    def styles(self, *, evident: bool = False) -> tuple[str, ...]:
        """Decimal marks of local formats that fit the texts; ``evident`` if more than few need them."""
        if "some" not in self.ever or self.zeros >= least_evidence(self.cells):
            return ()
        if self.ever.isdisjoint(DECIMALS):  # 123 456 is a code as often as a number
            return ()
        found = tuple(style for style in DECIMALS if self.may_be(style))
        if not self.may_be("number"):
            return found
        better = tuple(style for style in found if self.always[style] < self.always["number"])
        return better if len(better) == 1 and not evident else ()

    def style(self, usual: str | None) -> str | None:
        """Decimal mark; None if the texts are plain numbers, no numbers, or ambiguous."""
        found = self.styles()
        if len(found) == 2 or (usual == "," and self.may_be("grouped") and "." in self.ever):
            return usual  # 1.234 is a plain number, but not where decimals have a comma
        return next(iter(found), None)


class NumeralScan:
    """Running scan of the number formats in the text columns of successive tables.

    Parameters
    ----------
    marks : tuple of str
        Texts that mean a missing cell.
    """

    def __init__(self, marks: tuple[str, ...]) -> None:
        self._marks = marks
        self._columns: dict[str, _TextSummary] = {}

    def add(self, table: pa.Table) -> None:
        """Scan the texts of a table."""
        for name in table.column_names:
            column, begun = table.column(name), name in self._columns
            written = self._columns.setdefault(name, _TextSummary())
            if not is_text(column.type) or not (begun or self._may_be_numbers(column.slice(0, _SAMPLE))):
                written.always.clear()
            if written.undecided:
                array = plain(column)
                written.add(array, *_present_texts(array, self._marks), plain=_are_plain(column))

    def _may_be_numbers(self, few: pa.ChunkedArray) -> bool:
        array = plain(few)
        texts, _ = _present_texts(array, self._marks)
        words = are_words(texts)
        strays = _not_matching(texts.filter(pc.invert(words)), rf"^[-\d.,{_BETWEEN}]+$")
        return (words.true_count or 0) <= _MOST_WORDS and _count(array, strays) < MIN_EVIDENCE

    def to_json(self) -> dict[str, list[Any]]:
        """The summaries as plain values."""
        return {name: written.to_json() for name, written in self._columns.items()}

    def join(self, found: Mapping[str, Sequence[Any]]) -> None:
        """Add the summaries of other rows."""
        for name, summary in found.items():
            self._columns.setdefault(name, _TextSummary()).join(*summary)

    @property
    def all_plain(self) -> bool:
        """Whether no column so far can hold numbers in a local format."""
        return all(not each.always.get("number", 1) or not each.undecided for each in self._columns.values())

    def usual(self, decimal: str | None, likely: str | None) -> str | None:
        """The decimal mark: given, found in the columns, or the likely one if neither."""
        if decimal not in (None, *DECIMALS):
            raise OptionError("the decimal mark is neither . nor ,; choose one of them")
        found = [written.styles(evident=True) for written in self._columns.values()]
        evident = {style for styles in found if len(styles) == 1 for style in styles}
        return decimal or (evident.pop() if len(evident) == 1 else None if evident else likely)

    def decide(self, decimal: str | None = None, likely: str | None = None) -> Numerals:
        """Number formats as `plain_numerals` decides them."""
        usual, marks = self.usual(decimal, likely), dict[str, str]()
        commas, thousands, doubtful = [], [], []
        for name, written in self._columns.items():
            style = written.style(usual)
            if style is None and len(written.styles()) == 2:
                doubtful.append(name)
            if style is None or (decimal is not None and style != decimal):
                continue
            marks[name] = style
            if style == "," and "," in written.ever:
                commas.append(name)
            if not written.ever.isdisjoint({"between", "." if style == "," else ","}):
                thousands.append(name)
        return Numerals(tuple(commas), tuple(thousands), tuple(doubtful), marks)


def plain_numerals(
    table: pa.Table, marks: tuple[str, ...], *, decimal: str | None = None, likely: str | None = None
) -> tuple[pa.Table, Numerals]:
    """Rewrite text columns whose cells are all numbers or missing, with a decimal point and no separators.

    Parameters
    ----------
    table : Table
    marks : tuple of str
        Texts that mean a missing cell.
    decimal : {".", ","}, optional
        The mark before decimals, where it is known; without it, what the columns say.
    likely : {".", ","}, optional
        What to take where no column says it.

    Examples
    --------
    >>> table, found = plain_numerals(pa.table({"cost": ["1.234,50", "NA", "7"], "x,y": ["1,2,3", "4", "5"]}), ("NA",))
    >>> table.to_pydict()
    {'cost': ['1234.50', 'NA', '7'], 'x,y': ['1,2,3', '4', '5']}
    >>> found
    Numerals(commas=('cost',), thousands=('cost',), doubtful=())
    """
    look, names = NumeralScan(marks), table.column_names
    numbers = [name for name in names if _are_plain(table.column(name))]
    look.add(table.select([name for name in names if name not in numbers]))
    if look.usual(decimal, likely) == ",":
        look.add(table.select(numbers))
    found = look.decide(decimal, likely)
    name_sets = (found.commas, found.thousands, found.doubtful)
    commas, thousands, doubtful = (tuple(sorted(each, key=names.index)) for each in name_sets)
    return rewrite_numerals(table, found.marks), Numerals(commas, thousands, doubtful, found.marks)


def rewrite_numerals(table: pa.Table, marks: Mapping[str, str]) -> pa.Table:
    """The table with some columns rewritten as plain numbers, by the decimal mark of each."""
    for name, style in marks.items():
        if name in table.column_names:
            place = table.column_names.index(name)
            table = table.set_column(place, name, _rewritten(table.column(name), style))
    return table


def _are_plain(column: pa.ChunkedArray) -> bool:
    """Fast check whether all texts are numbers with a decimal point, as in most files."""
    if not is_text(column.type):
        return False
    try:
        column.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _present_texts(array: pa.Array, marks: tuple[str, ...]) -> tuple[pa.Array, Ints]:
    """Distinct non-missing texts without surrounding spaces, and the cells of each."""
    found = pc.value_counts(array)
    texts, counts = found.field("values"), np.asarray(found.field("counts"), dtype=np.int64)
    there = ~absent_cells(texts, marks)
    return pc.utf8_trim_whitespace(texts.filter(pa.array(there))), counts[there]


def _as_bools(marked: pa.Array) -> Bools:
    return np.asarray(marked.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _not_matching(texts: pa.Array, pattern: str) -> pa.Array:
    """Texts that do not match; of very many, only a sample."""
    few = texts.slice(0, _SAMPLE)
    strays = few.filter(pc.invert(pc.match_substring_regex(few, pattern)))
    if len(few) == len(texts) or len(strays) >= MIN_EVIDENCE:
        return strays
    return texts.filter(pc.invert(pc.match_substring_regex(texts, pattern)))


def _count(column: pa.Array, strays: pa.Array) -> int:
    """Cells that hold one of some texts, counted only up to the number that decides."""
    if not 0 < len(strays) < MIN_EVIDENCE:
        return min(len(strays), MIN_EVIDENCE)
    held = pc.is_in(pc.utf8_trim_whitespace(column), value_set=strays)
    return min(int(held.true_count), MIN_EVIDENCE)


def _rewritten(column: pa.ChunkedArray, style: str) -> pa.Array:
    texts = plain(column)
    bare = pc.utf8_trim_whitespace(texts)
    numbers = pc.replace_substring_regex(bare, _THOUSANDS[style], "")
    if style == ",":
        numbers = pc.replace_substring(numbers, ",", ".")
    return pc.if_else(pc.fill_null(pc.match_substring_regex(bare, _STYLE[style]), False), numbers, texts)
