"""Numbers as people write them, 1.234,50 or 1,234.50, rewritten as 1234.50; doubtful ones stay and are named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import OptionError
from sfumato.tables.cells import NUMBER, absent_cells, is_text, plain

__all__ = ["DECIMALS", "Numerals", "plain_numerals"]

DECIMALS = (".", ",")
"""Marks before the decimals of a number."""

_BETWEEN = r" '\x{2019}\x{a0}\x{202f}"  # between thousands, whatever the decimal mark
_STYLE = {
    ",": rf"^-?(\d+|[1-9]\d{{0,2}}([.{_BETWEEN}]\d{{3}})+)(,\d+)?$",
    ".": rf"^-?(\d+|[1-9]\d{{0,2}}([,{_BETWEEN}]\d{{3}})+)(\.\d+)?$",
}
_THOUSANDS = {",": rf"[.{_BETWEEN}]", ".": rf"[,{_BETWEEN}]"}
_POINTS_OF_THOUSANDS = r"^-?(\d{1,3}|[1-9]\d{0,2}(\.\d{3})+)$"
_LEADING_ZERO = r"^-?0\d"
_SAMPLE = 1_000


@dataclass(frozen=True)
class Numerals:
    """What was found of how numbers are written: columns by decimal mark, and those that could mean two things."""

    commas: tuple[str, ...] = ()
    thousands: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()

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
    if decimal not in (None, *DECIMALS):
        raise OptionError("the decimal mark is neither . nor ,; choose one of them")
    numbers = {name for name in table.column_names if _are_plain(table.column(name))}
    texts = {name: _texts(table.column(name), marks) for name in table.column_names if name not in numbers}
    styles = {name: _styles(distinct) for name, distinct in texts.items() if distinct is not None}
    evident = {style for found in styles.values() if len(found) == 1 for style in found}
    usual = decimal or (evident.pop() if len(evident) == 1 else None if evident else likely)
    columns, commas, thousands, doubtful = [], [], [], []
    for name in table.column_names:
        column, found = table.column(name), styles.get(name, ())
        distinct = texts[name] if name in texts else _texts(column, marks) if usual == "," else None
        style = usual if len(found) == 2 or _only_thousands(distinct, usual) else next(iter(found), None)
        if len(found) == 2 and style is None:
            doubtful.append(name)
        if style is None or (decimal is not None and style != decimal):
            columns.append(column)
            continue
        if style == "," and pc.any(pc.match_substring(distinct, ",")).as_py():
            commas.append(name)
        if pc.any(pc.match_substring_regex(distinct, _THOUSANDS[style])).as_py():
            thousands.append(name)
        columns.append(_rewritten(column, style))
    numerals = Numerals(tuple(commas), tuple(thousands), tuple(doubtful))
    return pa.table(columns, names=table.column_names).replace_schema_metadata(table.schema.metadata), numerals


def _are_plain(column: pa.ChunkedArray) -> bool:
    """Tell of texts in one step whether all are numbers with a point, as in most files they are."""
    if not is_text(column.type):
        return False
    try:
        column.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _texts(column: pa.ChunkedArray, marks: tuple[str, ...]) -> pa.Array | None:
    """Different texts of a column without the missing ones; None where a first look finds no numbers."""
    if not is_text(column.type):
        return None
    few = plain(column.slice(0, _SAMPLE))
    if not _all_match(_present(few, marks), rf"^[-\d.,{_BETWEEN}]+$"):
        return None
    return _present(plain(column), marks)


def _present(array: pa.Array, marks: tuple[str, ...]) -> pa.Array:
    distinct = pc.unique(array)
    return pc.utf8_trim_whitespace(distinct.filter(pa.array(~absent_cells(distinct, marks))))


def _all_match(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _styles(distinct: pa.Array) -> tuple[str, ...]:
    """Decimal marks by which texts that are not plain numbers all are numbers."""
    if not len(distinct) or _all_match(distinct, NUMBER):
        return ()
    if pc.any(pc.match_substring_regex(distinct, _LEADING_ZERO)).as_py():
        return ()
    if not pc.any(pc.match_substring_regex(distinct, "[.,]")).as_py():  # 123 456 is a code as often as a number
        return ()
    return tuple(style for style in DECIMALS if _all_match(distinct, _STYLE[style]))


def _only_thousands(distinct: pa.Array | None, usual: str | None) -> bool:
    """Tell whether plain numbers are meant otherwise: 1.234 where decimals have a comma."""
    if distinct is None or usual != "," or not _all_match(distinct, _POINTS_OF_THOUSANDS):
        return False
    return bool(pc.any(pc.match_substring(distinct, ".")).as_py())


def _rewritten(column: pa.ChunkedArray, style: str) -> pa.Array:
    texts = plain(column)
    bare = pc.utf8_trim_whitespace(texts)
    numbers = pc.replace_substring_regex(bare, _THOUSANDS[style], "")
    if style == ",":
        numbers = pc.replace_substring(numbers, ",", ".")
    return pc.if_else(pc.fill_null(pc.match_substring_regex(bare, _STYLE[style]), False), numbers, texts)
