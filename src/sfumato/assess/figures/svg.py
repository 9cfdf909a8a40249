"""Drawings as inline SVG: text that stays text, colours that the page chooses, names that do not clash.

Colours are names of the page's CSS variables, so that one SVG serves light, dark and paper. No date and no random name
goes in: the same numbers give the same bytes. Axes have round numbers.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Sequence
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
    "numbers",
    "percents",
    "round_step",
    "ticks",
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


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[float]:
    """Multiples of a round number from one value to another, at most so many and one."""
    step = round_step((high - low) / most or 1.0, whole)
    return [step * place for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def percents(shares: Sequence[float]) -> list[str]:
    """Shares as they stand at an axis."""
    return [f"{100 * share:.3g} %" for share in shares]


def numbers(values: Sequence[float]) -> list[str]:
    """Numbers that differ by a round step, with as many digits as that takes."""
    step = min((after - before for before, after in itertools.pairwise(values)), default=1.0)
    largest = max(map(abs, values), default=0.0)
    if largest >= 1e7 or 0.0 < step < 1e-4:
        return [f"{value:.6g}".replace("-", "\u2212") for value in values]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    digits += digits > 0 and round(step * 10**digits, 6) % 1 > 0
    whole = round(step, 9) % 1 > 0 and not digits
    return [f"{value:.{digits + whole}f}".replace("-", "\u2212") for value in values]


def round_step(least: float, whole: bool = False) -> float:
    """Smallest round number that is no less: 1, 2, 2.5 or 5 times a power of ten.

    Examples
    --------
    >>> round_step(0.013), round_step(21.0), round_step(21.0, whole=True), round_step(0.2, whole=True)
    (0.02, 25.0, 50.0, 1.0)
    """
    least = max(least, 1.0) if whole else least
    power = math.floor(math.log10(least))
    ladder = (1.0, 2.0, 5.0, 10.0) if whole else (1.0, 2.0, 2.5, 5.0, 10.0)
    digit = next((digit for digit in ladder if digit * 10.0**power >= least * (1 - 1e-12)), 10.0)
    return float(f"{digit:g}e{power}")
