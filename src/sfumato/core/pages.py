"""HTML of our objects, with all text escaped, and text for a terminal: tables and wrapped sentences."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING

from sfumato.core.errors import printable

if TYPE_CHECKING:
    import jinja2

__all__ = ["framed_page", "html_table", "page_template", "text_table", "wrap_lines"]

_LONGEST = 400  # letters of a cell
_MOST = 200  # rows
_LINE = "1px solid rgba(128, 128, 128, 0.35)"
_CELL = f"text-align: left; vertical-align: top; padding: 0.2em 0.8em 0.2em 0; border-bottom: {_LINE}; color: inherit"
_TABLE = "border-collapse: collapse; background: transparent; color: inherit; margin: 0.4em 0"
_CAPTION = "caption-side: top; text-align: left; font-weight: 600; padding: 0; color: inherit"


def html_table(caption: str, rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Rows as an HTML table; long cells are truncated, and extra rows are counted.

    Examples
    --------
    >>> "&lt;b&gt;" in html_table("People", [("<b>", "dropped")])
    True
    """
    listed = list(rows)
    lines = [_row("td", row) for row in listed[:_MOST]]
    if len(listed) > _MOST:
        lines.append(_row("td", [f"and {len(listed) - _MOST} more"]))
    heads = f"<thead>{_row('th', head)}</thead>" if head else ""
    title = f'<caption style="{_CAPTION}">{_text(caption)}</caption>'
    return f'<table style="{_TABLE}">{title}{heads}<tbody>{"".join(lines)}</tbody></table>'


def framed_page(title: str, page: str) -> str:
    """A whole page in a sandboxed frame: its style stays inside, and no script runs.

    Examples
    --------
    >>> 'srcdoc="&lt;p&gt;' in framed_page("A page", "<p>")
    True
    """
    style = "width: 100%; height: 40rem; border: 1px solid #888"
    return f'<iframe title="{escape(title)}" sandbox="" style="{style}" srcdoc="{escape(page, quote=True)}"></iframe>'


def _row(tag: str, cells: Sequence[str]) -> str:
    begin = f'<{tag} scope="col" style="{_CELL}">' if tag == "th" else f'<{tag} style="{_CELL}">'
    return f"<tr>{''.join(f'{begin}{_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(text: str) -> str:
    shown = printable(text)
    return escape(shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}...", quote=True)


@cache
def page_template(
    name: str, *packages: str, filters: tuple[tuple[str, Callable[..., str]], ...] = ()
) -> jinja2.Template:
    """Template of a name from the first package with it in its folder ``templates``; cached."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package, "templates") for package in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(filters)
    return environment.get_template(name)


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
