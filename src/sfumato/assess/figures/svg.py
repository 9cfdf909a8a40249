"""Drawings as inline SVG: text that stays text, colours that the page chooses, names that do not clash.

Colours are names of the page's CSS variables, so that one SVG serves light, dark and paper. No date and no random name
goes in: the same numbers give the same bytes.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from xml.sax.saxutils import escape

__all__ = [
    "BASE",
    "BASE_FILL",
    "FAINT",
    "HEAT",
    "INK",
    "MAIN",
    "MAIN_FILL",
    "MUTED",
    "Figure",
    "compose",
    "label",
]

INK, MUTED, FAINT = "ink", "muted", "faint"
BASE, BASE_FILL = "base", "base-fill"
"""The original: line and area."""
MAIN, MAIN_FILL = "main", "main-fill"
"""The released table: line and area."""
HEAT = tuple(f"heat-{step}" for step in range(11))
"""From -1 to 1 in eleven steps."""
_LARGEST = 1.5  # pixels of the page for a point of the drawing, where there is room
_VARIABLE = re.compile(r"var\(--([a-z0-9-]+)\)")


@dataclass(frozen=True, repr=False)
class Figure:
    """One drawing of a report."""

    name: str  # unique together with ``public``; figures that share what stands before a slash are shown together
    # title, caption, alt: heading, explanation, and what a reader who cannot see it is told
    title: str
    caption: str
    alt: str
    svg: str  # the drawing as an ``<svg>`` element
    public: bool  # whether it may leave with the release: only where the released table alone determines it
    small: str = ""  # the same as a small ``<svg>`` element without letters, of the distribution of a column

    def __repr__(self) -> str:
        return f"Figure({self.name!r})"

    def to_svg(self) -> str:
        """The drawing as a file of its own: on paper, with its colours and letters named in it."""
        return _stand_alone(self.svg)

    def _repr_svg_(self) -> str:
        """Show itself in a notebook."""
        return self.to_svg()


def compose(name: str, marks: str, *, size: tuple[float, float], alt: str, public: bool) -> str:
    """An ``<svg>`` element around marks."""
    return f"{_opening(_prefix(name, public=public), *size, alt)}{marks}</svg>"


def _prefix(name: str, *, public: bool) -> str:
    """What the names inside a drawing begin with, so that they do not clash on a page."""
    return "f" + hashlib.sha256(f"{name}\0{public}".encode()).hexdigest()[:10]


def _opening(prefix: str, width: float, height: float, alt: str) -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width:g} {height:g}" style="max-width: {_LARGEST * width:.0f}px" role="img" '
        f'aria-labelledby="{prefix}-title"><title id="{prefix}-title">{escape(alt)}</title>'
    )


def label(text: str, most: int = 22) -> str:
    r"""A text fit for a drawing: one line, printable, not too long.

    Examples
    --------
    >>> label("a\x00b\nc"), label("a long name indeed", 8)
    ('a b c', 'a long …')
    """
    plain = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return plain if len(plain) <= most else plain[: most - 1] + "\u2026"


def _stand_alone(svg: str) -> str:
    """An ``<svg>`` element with the page's variables resolved as they are on light paper, and the paper under it."""
    palette = _palette()
    body = _VARIABLE.sub(lambda match: palette[match.group(1)], svg)
    head = body.index("</title>") + len("</title>")
    box = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', body)
    assert box is not None
    paper = f'<rect width="{box.group(1)}" height="{box.group(2)}" fill="{palette["paper"]}"/>'
    return body[:head] + paper + body[head:]


@cache
def _palette() -> dict[str, str]:
    """Light colours of the page's own style, so that there is one list of them."""
    style = files("sfumato.assess").joinpath("templates", "report.css").read_text(encoding="utf-8")
    light = style[style.index(":root {") : style.index("}")]
    return {name: value.strip().replace('"', "'") for name, value in re.findall(r"--([a-z0-9-]+):\s*([^;]+);", light)}
