"""The first line of a table: what parts its cells, the names of its columns, and what to do where one has none."""

from __future__ import annotations

import csv
import io
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import OptionError, TableError
from sfumato.tables.cells import is_text

__all__ = ["check_names", "header_of", "name_columns"]

_DELIMITERS = ",;\t|"
_ROW = "row"  # what the first column is called where it has no name: R and pandas write row names so


def header_of(text: str, name: str, delimiter: str | None = None) -> tuple[str, list[str]]:
    """Delimiter and names of columns of a text that begins as CSV."""
    if delimiter is None:
        line = text.splitlines()[0]
        delimiter = max(_DELIMITERS, key=line.count) if any(mark in line for mark in _DELIMITERS) else ","
    elif len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
        raise OptionError("the delimiter is not one plain character; try , or ; or a tab")
    try:
        return delimiter, next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except (csv.Error, StopIteration):
        raise TableError(f"the header of {name} cannot be read as CSV; its first line names the columns") from None


def name_columns(table: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
    """The table without empty columns that have no name, its first column called ``row``, and what was done, in words.

    Spreadsheets leave empty columns behind; R and pandas write the names of rows as a first column without one. Any
    other column without a name stays as it is.

    Examples
    --------
    >>> table, said = name_columns(pa.Table.from_arrays([["1", "2"], ["a", "b"], [" ", ""]], names=["", "town", ""]))
    >>> table.to_pydict()
    {'row': ['1', '2'], 'town': ['a', 'b']}
    >>> said
    ("The first column has no name: it is called 'row'.", 'A column without name and cells is left out.')
    """
    names = list(table.column_names)
    nameless = [place for place, name in enumerate(names) if not name.strip()]
    empty = {place for place in nameless if _is_blank(table.column(place))}
    said = []
    if nameless and nameless[0] == 0 and 0 not in empty and _ROW not in names:
        names[0] = _ROW
        said.append(f"The first column has no name: it is called {_ROW!r}.")
    if empty and len(empty) < len(names):
        words = (
            "A column without name and cells is"
            if len(empty) == 1
            else f"{len(empty)} columns without name and cells are"
        )
        said.append(f"{words} left out.")
        kept = [place for place in range(len(names)) if place not in empty]
        table, names = table.select(kept), [names[place] for place in kept]
    return table.rename_columns(names), tuple(said)


def _is_blank(column: pa.ChunkedArray) -> bool:
    if not is_text(column.type):
        return bool(column.null_count == len(column))
    return not pc.any(pc.not_equal(pc.utf8_trim_whitespace(column), "")).as_py()


def check_names(names: list[str], name: str) -> None:
    """Refuse a table without columns, with a column that has no name, or with two of one name."""
    if not names:
        raise TableError(f"{name} has no columns; bring a header and rows")
    nameless = [place for place, column in enumerate(names, 1) if not column.strip()]
    if nameless:
        if len(nameless) == 1:
            raise TableError(f"{name} has 1 column without a name, number {nameless[0]}; name it")
        title = ", or take the first line away where it is a title" if 2 * len(nameless) > len(names) else ""
        raise TableError(
            f"{name} has {len(nameless)} columns without a name, the first is number {nameless[0]}; name them{title}"
        )
    twice = sorted((column, times) for column, times in Counter(names).items() if times > 1)
    if twice:
        raise TableError(f"column {twice[0][0]!r} stands {twice[0][1]} times in {name}; name it once")
