"""Text for a terminal: tables with a wrapped last column, and wrapped sentences."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest

__all__ = ["text_table", "wrap_lines"]

_GAP = "  "
_SHARE = 4  # every column but the last takes at most a quarter of the width


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Lines of a table; with a width, long cells continue on further lines of their column.

    Examples
    --------
    >>> for line in text_table(["column", "why"], [["age", "whole numbers, 72 different"]], 24):
    ...     print(line)
    column  why
    age     whole numbers,
            72 different
    """
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    if width is not None:
        most = [max(len(title), width // _SHARE) for title in head[:-1]]
        widths[:-1] = map(min, most, widths[:-1])
        widths[-1] = max(1, width - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1))
    wrap = textwrap.wrap if width is not None else _whole
    lines = (cells for row in [head, *rows] for cells in zip_longest(*map(wrap, row, widths), fillvalue=""))
    return [_GAP.join(map(str.ljust, cells, widths)).rstrip() for cells in lines]


def _whole(cell: str, _width: int) -> list[str]:
    return [cell]


def wrap_lines(text: str, width: int | None) -> str:
    """Text wrapped to a width, with hanging indentation; unchanged without a width."""
    if width is None:
        return text
    lines = (
        textwrap.wrap(line, width, subsequent_indent="  ", break_on_hyphens=False) or [""] for line in text.split("\n")
    )
    return "\n".join(part for parts in lines for part in parts)
