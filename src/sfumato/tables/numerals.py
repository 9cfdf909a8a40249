"""Numbers as people write them, 1.234,50 or 1,234.50, rewritten as 1234.50; doubtful ones stay and are named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import OptionError
from sfumato.tables.cells import NUMBER, absent_cells, is_text, plain

__all__ = ["DECIMALS", "NumeralLook", "Numerals", "plain_numerals", "rewrite_numerals"]

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


@dataclass(frozen=True)
class Numerals:
    """What was found of how numbers are written: columns by decimal mark, and those that could mean two things.

    ``marks`` is the decimal mark of each column that must be rewritten.
    """

    commas: tuple[str, ...] = ()
    thousands: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def sentences(self) -> tuple[str, ...]:
        """What a reader must know, a sentence each; nothing where numbers are written plainly."""
        said = []
        if self.commas:
            said.append(f"Decimal commas in {_listed(self.commas)}: read as numbers, released with decimal points.")
        if self.thousands:
            said.append(f"Marks between thousands in {_listed(self.thousands)}: read as numbers, released without.")
        if self.doubtful:
            said.append(
                f"One mark and three digits in {_listed(self.doubtful)}: thousands or decimals cannot be told, so they "
                "stay texts; say --decimal , or --decimal ."
            )
        return tuple(said)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


@dataclass
class _Written:
    """What all texts of a column are, and what some have: grows with each table that is added."""

    always: set[str] = field(default_factory=lambda: set(_ALWAYS))
    ever: set[str] = field(default_factory=set)

    @property
    def undecided(self) -> bool:
        """Whether the texts may yet be numbers that are not written plainly."""
        return not self.always.isdisjoint(("grouped", *DECIMALS))

    def add(self, texts: pa.Array, *, plain: bool) -> None:
        """Look at further texts, each once and none of them missing; ``plain`` where all are known to be numbers."""
        if not len(texts):
            return
        marks = {mark for mark in DECIMALS if pc.any(pc.match_substring(texts, mark)).as_py()}
        self.ever |= {"some", *marks}
        if not plain and pc.any(pc.match_substring_regex(texts, f"[{_BETWEEN}]")).as_py():
            self.ever.add("between")
        zeros = texts.filter(pc.or_(pc.starts_with(texts, "0"), pc.starts_with(texts, "-0")))
        if pc.any(pc.match_substring_regex(zeros, _LEADING_ZERO)).as_py():
            self.ever.add("zero")
        known = set()
        if plain:
            letters = pc.any(pc.match_substring_regex(texts, "[eEiInN]")).as_py()  # exponents and infinity
            known = {"number"} if letters or marks else {"number", *DECIMALS}
        self.always = {each for each in self.always if each in known or _all_match(texts, _ALWAYS[each])}

    def styles(self) -> tuple[str, ...]:
        """Decimal marks by which texts that are not plain numbers all are numbers."""
        if "some" not in self.ever or "number" in self.always or "zero" in self.ever:
            return ()
        if self.ever.isdisjoint(DECIMALS):  # 123 456 is a code as often as a number
            return ()
        return tuple(style for style in DECIMALS if style in self.always)

    def style(self, usual: str | None) -> str | None:
        """Decimal mark, or None where the texts are plain numbers, none at all, or could mean two things."""
        found = self.styles()
        if len(found) == 2 or (usual == "," and "grouped" in self.always and "." in self.ever):
            return usual  # 1.234 is a plain number, but not where decimals have a comma
        return next(iter(found), None)


class NumeralLook:
    """How the texts of columns are written, of tables that come one after the other; mutable for one pass.

    Parameters
    ----------
    marks : tuple of str
        Texts that mean a missing cell.
    """

    def __init__(self, marks: tuple[str, ...]) -> None:
        self._marks = marks
        self._columns: dict[str, _Written] = {}

    def add(self, table: pa.Table) -> None:
        """Look at the texts of a table."""
        for name in table.column_names:
            column, begun = table.column(name), name in self._columns
            written = self._columns.setdefault(name, _Written())
            if not is_text(column.type) or not (begun or self._may_be_numbers(column.slice(0, _SAMPLE))):
                written.always.clear()
            if written.undecided:
                written.add(_present(plain(column), self._marks), plain=_are_plain(column))

    def _may_be_numbers(self, few: pa.ChunkedArray) -> bool:
        return _all_match(_present(plain(few), self._marks), rf"^[-\d.,{_BETWEEN}]+$")

    def to_json(self) -> dict[str, list[list[str]]]:
        """What was found, as plain values."""
        return {name: [sorted(each.always), sorted(each.ever)] for name, each in self._columns.items()}

    def join(self, found: Mapping[str, Iterable[Iterable[str]]]) -> None:
        """Take in what somebody else found of other rows."""
        for name, (always, ever) in found.items():
            written = self._columns.setdefault(name, _Written())
            written.always &= set(always)
            written.ever |= set(ever)

    @property
    def all_plain(self) -> bool:
        """Whether no column so far may hold numbers that are written otherwise than plainly."""
        return all("number" in each.always or not each.undecided for each in self._columns.values())

    def usual(self, decimal: str | None, likely: str | None) -> str | None:
        """The mark before decimals: what was told, what the columns say, or what is likely where none does."""
        if decimal not in (None, *DECIMALS):
            raise OptionError("the decimal mark is neither . nor ,; choose one of them")
        found = [written.styles() for written in self._columns.values()]
        evident = {style for styles in found if len(styles) == 1 for style in styles}
        return decimal or (evident.pop() if len(evident) == 1 else None if evident else likely)

    def decide(self, decimal: str | None = None, likely: str | None = None) -> Numerals:
        """How numbers are written, as in `plain_numerals`."""
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
    """Rewrite columns of texts that are all numbers, or missing, with a decimal point and nothing between thousands.

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
    look, names = NumeralLook(marks), table.column_names
    numbers = [name for name in names if _are_plain(table.column(name))]
    look.add(table.select([name for name in names if name not in numbers]))
    if look.usual(decimal, likely) == ",":
        look.add(table.select(numbers))
    found = look.decide(decimal, likely)
    said = (found.commas, found.thousands, found.doubtful)
    commas, thousands, doubtful = (tuple(sorted(each, key=names.index)) for each in said)
    return rewrite_numerals(table, found.marks), Numerals(commas, thousands, doubtful, found.marks)


def rewrite_numerals(table: pa.Table, marks: Mapping[str, str]) -> pa.Table:
    """The table with numbers of some columns written plainly, by the decimal mark of each."""
    for name, style in marks.items():
        if name in table.column_names:
            place = table.column_names.index(name)
            table = table.set_column(place, name, _rewritten(table.column(name), style))
    return table


def _are_plain(column: pa.ChunkedArray) -> bool:
    """Tell of texts in one step whether all are numbers with a point, as in most files they are."""
    if not is_text(column.type):
        return False
    try:
        column.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _present(array: pa.Array, marks: tuple[str, ...]) -> pa.Array:
    distinct = pc.unique(array)
    return pc.utf8_trim_whitespace(distinct.filter(pa.array(~absent_cells(distinct, marks))))


def _all_match(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py())


def _rewritten(column: pa.ChunkedArray, style: str) -> pa.Array:
    texts = plain(column)
    bare = pc.utf8_trim_whitespace(texts)
    numbers = pc.replace_substring_regex(bare, _THOUSANDS[style], "")
    if style == ",":
        numbers = pc.replace_substring(numbers, ",", ".")
    return pc.if_else(pc.fill_null(pc.match_substring_regex(bare, _STYLE[style]), False), numbers, texts)
