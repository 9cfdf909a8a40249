"""Find the header row of a file or sheet with titles or remarks above it.

A cell that is taken for a column's name is released. So a row below the first is taken for the header only
if the rows below it show that it is one; otherwise it is only proposed.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.core.errors import OptionError, TableError, shown

__all__ = ["DELIMITERS", "Header", "csv_header", "find_header", "refuse_alike", "sheet_rows_from"]

DELIMITERS = ",;\t|"
"""Delimiters of CSV that are recognized."""

_MOST_ROWS = 200  # rows that are looked at
_MOST_ABOVE = 30  # rows that may stand above the header
_LEAST_BODY = 3  # rows below it that can show what it is
_NUMBER_LIKE = re.compile(r"[+-]?[\d][\d.,:/ \-]*%?")
_SHARE = 0.8
_INVISIBLE = ("Cc", "Cf")  # Unicode categories: controls, and formats such as a zero-width space


@dataclass(frozen=True)
class Header:
    """Row number of the header, counted from 1.

    ``above`` counts the rows with a cell above it. One that is not ``sure`` is only a proposal.
    """

    row: int
    above: int = 0
    sure: bool = True


def find_header(rows: Sequence[Sequence[Any]]) -> Header | None:
    """Header among the first rows of a table; None if no row stands out.

    A title fills at most half as many cells as a row of the table. The header is the first row that is none.

    Examples
    --------
    >>> rows = [["Admissions of 2023", ""], ["", ""], ["age", "ward"]] + [[30 + row, "B"] for row in range(20)]
    >>> find_header(rows)
    Header(row=3, above=1, sure=True)
    """
    rows = rows[:_MOST_ROWS]
    filled = [sum(not _is_blank(cell) for cell in row) for row in rows]
    first = next((place for place, count in enumerate(filled) if count), None)
    if first is None:
        return None
    most = max(filled)
    names_of_rows = most == 2 and _is_blank(rows[first][0])  # as R writes them: the first column has no name
    if 2 * filled[first] > most or names_of_rows:
        return Header(first + 1)
    end = min(len(rows), first + _MOST_ABOVE)
    place = next((each for each in range(first, end) if 2 * filled[each] > most), None)
    if place is None or not _may_name(rows[place]):
        return None
    above = sum(1 for count in filled[:place] if count)
    body = [row for row, count in zip(rows[place + 1 :], filled[place + 1 :], strict=True) if count]
    return Header(place + 1, above, _is_confirmed(rows[place], body))


def _is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _may_name(row: Sequence[Any]) -> bool:
    """Whether the cells of a row can be column names: distinct texts that are not numbers."""
    names = [cell for cell in row if not _is_blank(cell)]
    texts = all(isinstance(cell, str) and not _NUMBER_LIKE.fullmatch(cell.strip()) for cell in names)
    return texts and len(set(names)) == len(names)


def _is_confirmed(names: Sequence[Any], body: Sequence[Sequence[Any]]) -> bool:
    """Whether the rows below confirm the names: a column of numbers or of few texts, none of them its name."""
    if len(body) < _LEAST_BODY:
        return False
    shown = False
    for place, name in enumerate(names):
        cells = [row[place] for row in body if place < len(row) and not _is_blank(row[place])]
        if _is_blank(name) or len(cells) < _LEAST_BODY:
            continue
        if name in cells:
            return False
        numbers = sum(not isinstance(cell, str) or bool(_NUMBER_LIKE.fullmatch(cell.strip())) for cell in cells)
        shown = shown or numbers >= _SHARE * len(cells) or 4 * len(set(cells)) <= len(cells)
    return shown


def sheet_rows_from(rows: list[list[Any]], header: int, name: str) -> list[list[Any]]:
    """Rows of a sheet from its header on; refuse a header that is empty or beyond the end."""
    if header > len(rows):
        raise OptionError(f"{name} has {len(rows)} rows, so none is row {header}; correct --header-row")
    if all(map(_is_blank, rows[header - 1])):
        raise OptionError(f"row {header} of {name} is empty; name the row of its header with --header-row")
    return rows[header - 1 :]


def csv_header(text: str, name: str, delimiter: str | None, header_row: int | None) -> tuple[str, list[str], Header]:
    """Delimiter, column names and header of a text that begins as CSV.

    Raises
    ------
    OptionError
        For a delimiter that is none, and a header row that the text does not have.
    TableError
        For a header that cannot be read, and one that is only likely.
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii()):
        raise OptionError("the delimiter is not one plain character; try , or ; or a tab")
    blank = len(text[: len(text) - len(text.lstrip("\r\n"))].splitlines())
    found = Header(header_row or blank + 1)
    if header_row is None and (titled := _below_title(text, blank, delimiter)) is not None:
        delimiter, found = titled
        if not found.sure:
            raise TableError(
                f"line {blank + 1} of {name} looks like a title and line {found.row} like the header; give "
                f"--header-row {found.row}, or --header-row {blank + 1} if that line names the columns"
            ).propose(header_row=found.row)
    rest = _from_line(text, found.row, name)
    line = rest.splitlines()[0]
    delimiter = _usual_delimiter(line) if delimiter is None else delimiter
    try:
        return delimiter, next(csv.reader(io.StringIO(rest, newline=""), delimiter=delimiter)), found
    except (csv.Error, StopIteration):
        raise TableError(f"the header of {name} cannot be read as CSV; name its line with --header-row") from None


def refuse_alike(names: Sequence[str], name: str) -> None:
    """Refuse column names that differ only in invisible characters, spaces or composition."""
    seen: dict[str, int] = {}
    for place, column in enumerate(names, 1):
        first = seen.setdefault(_visible_form(column), place)
        if first != place:
            raise TableError(
                f"columns {first} and {place} of {name} have names that look the same ({shown(column)}): they differ "
                "only in invisible characters, spaces, or how letters are composed; rename one"
            )


def _visible_form(name: str) -> str:
    visible = "".join(mark for mark in name if unicodedata.category(mark) not in _INVISIBLE or mark.isspace())
    return " ".join(unicodedata.normalize("NFC", visible).split())


def _usual_delimiter(line: str) -> str:
    return max(DELIMITERS, key=line.count) if any(mark in line for mark in DELIMITERS) else ","


def _from_line(text: str, number: int, name: str) -> str:
    """The text from a line on; refuse a line that is missing or empty."""
    lines = io.StringIO(text, newline="")
    for before in range(1, number):
        if not lines.readline():
            raise OptionError(f"{name} has {before - 1} lines, so none is line {number}; correct --header-row")
    rest = text[lines.tell() :]
    if not rest or not rest.splitlines()[0].strip():
        raise OptionError(f"line {number} of {name} is empty; name the line of its header with --header-row")
    return rest


def _below_title(text: str, blank: int, delimiter: str | None) -> tuple[str, Header] | None:
    """Delimiter and header below a title; None if the first line holds the names, or no other line can."""
    first = text.splitlines()[blank]
    usual = _usual_delimiter(first) if delimiter is None else delimiter
    marks = dict.fromkeys((usual, *DELIMITERS)) if delimiter is None else (usual,)
    best: tuple[int, tuple[str, Header] | None] = (1, None)
    for mark in marks:
        rows, lines = _parse_rows(text, mark)
        widths = Counter(len(row) for row in rows if any(row))
        width, count = widths.most_common(1)[0] if widths else (0, 0)
        if width <= best[0] or 2 * count <= widths.total():
            continue
        found = find_header(rows)
        if found is not None and not found.above:
            if mark == usual and len(rows[found.row - 1]) == width:
                return None
            found = None
        if found is not None and len(rows[found.row - 1]) != width:
            found = None
        header = None if found is None else Header(lines[found.row - 1], found.above, found.sure)
        best = width, None if header is None else (mark, header)
    return best[1]


def _parse_rows(text: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """The first rows, and the line on which each begins."""
    rows: list[list[str]] = []
    lines: list[int] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    begin = 1
    try:
        for row in reader:
            rows.append(row)
            lines.append(begin)
            begin = reader.line_num + 1
            if len(rows) == _MOST_ROWS:
                break
    except csv.Error:
        return [], []
    return rows, lines
