"""Drawings as inline SVG: text that stays text, colours that the page chooses, names that do not clash.

A drawing is made in placeholder colours, and each is then replaced by a CSS variable, so that one SVG serves light,
dark and paper. No date and no random name goes in: the same numbers give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
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
    "Axes",
    "Figure",
    "compose",
    "draw",
    "label",
]

Axes = Any
"""matplotlib's axes; its own types are partial."""
INK, MUTED, FAINT = "#010203", "#010204", "#010205"
BASE, BASE_FILL = "#010206", "#010207"
"""The original: line and area."""
MAIN, MAIN_FILL = "#010208", "#010209"
"""The released table: line and area."""
HEAT = tuple(f"#0103{step:02x}" for step in range(11))
"""From -1 to 1 in eleven steps."""
_VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    FAINT: "var(--faint)",
    BASE: "var(--base)",
    BASE_FILL: "var(--base-fill)",
    MAIN: "var(--main)",
    MAIN_FILL: "var(--main-fill)",
    **{colour: f"var(--heat-{step})" for step, colour in enumerate(HEAT)},
}
_COLOUR = re.compile(r"#0[0-9a-f]{5}")
_FONT = "'DejaVu Sans'"
_LARGEST = 1.5  # pixels of the page for a point of the drawing, where there is room
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sfumato",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.0,
    "axes.unicode_minus": True,
    "figure.facecolor": "none",
    "grid.color": FAINT,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "savefig.facecolor": "none",
}
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


def draw(
    name: str,
    paint: Callable[[Axes], None],
    *,
    size: tuple[float, float],
    title: str,
    caption: str,
    alt: str,
    public: bool,
) -> Figure:
    """One figure, drawn on a single pair of axes.

    ``paint`` puts the marks on the axes it is given; ``size`` is width and height in inches.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Sheet

    with warnings.catch_warnings(), matplotlib.rc_context(_STYLE):
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # measured only; the browser has its own fonts
        sheet = Sheet(figsize=size, layout="constrained")
        canvas: Any = FigureCanvasSVG(sheet)
        paint(sheet.add_subplot())
        buffer = io.BytesIO()
        canvas.print_svg(buffer, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return Figure(
        name, title, caption, alt, _inline(buffer.getvalue().decode(), _prefix(name, public=public), alt), public
    )


def compose(name: str, marks: str, *, size: tuple[float, float], alt: str, public: bool) -> str:
    """An ``<svg>`` element around marks that are written by hand."""
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


def _inline(svg: str, prefix: str, alt: str) -> str:
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\sid=")([^"]+)"', rf'\1{prefix}-\2"', svg)
    svg = re.sub(r'(xlink:href="#)([^"]+)"', rf'\1{prefix}-\2"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg)
    svg = re.sub(
        r'(style="[^"]*")',
        lambda match: _COLOUR.sub(lambda colour: _VARIABLES.get(colour.group(), colour.group()), match.group(1)),
        svg,
    )
    svg = re.sub(r'(\sd=")([^"]*)"', lambda match: f'{match.group(1)}{_short_path(match.group(2))}"', svg)
    svg = re.sub(rf"{_FONT}[^;\"]*sans-serif|{_FONT}", "var(--sans)", svg)
    head = re.match(r'<svg [^>]*?viewBox="0 0 ([0-9.]+) ([0-9.]+)"[^>]*>', svg)
    assert head is not None
    width, height = map(float, head.groups())
    return _opening(prefix, width, height, alt) + svg[head.end() :]


def _short_path(path: str) -> str:
    """A path with hundredths of a point, and a stroke without length as such: less than half as long."""
    path = re.sub(r"-?\d+\.\d{3,}", lambda match: f"{float(match.group()):.2f}".rstrip("0").rstrip("."), path)
    return re.sub(r"M (\S+ \S+) L \1(?= M|$)", r"M\1h0", " ".join(path.split())).replace(" M", "M")


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
