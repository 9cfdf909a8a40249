"""Drawings as inline SVG: text that stays text, colours that the page chooses, names that do not clash.

Colours are names of the page's CSS variables, so that one SVG serves light, dark and paper. No date and no random name
goes in: the same numbers give the same bytes. Axes have round numbers.

They are written by hand, for a plotting library takes seconds to load and to lay out. On a pair of axes a mark is kept
as what it is and written when the axes are, for only then it is known how far they reach.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import math
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats

__all__ = [
    "BASE",
    "BASE_FILL",
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
    "numbers",
    "percents",
    "round_step",
    "style_of",
    "text_at",
    "ticks",
]


INK, MUTED = "ink", "muted"
BASE, BASE_FILL = "base", "base-fill"
"""The original: line and area."""
MAIN, MAIN_FILL = "main", "main-fill"
"""The released table: line and area."""
HEAT = tuple(f"heat-{step}" for step in range(11))
"""From -1 to 1 in eleven steps."""
_LARGEST = 1.5  # pixels of the page for a point of the drawing, if there is room
_VARIABLE = re.compile(r"var\(--([a-z0-9-]+)\)")


@dataclass(frozen=True, repr=False)
class Figure:
    """One drawing of a report."""

    name: str  # unique together with ``public``; figures that share what stands before a slash are shown together
    # title, caption, alt: heading, explanation, and a description for readers who cannot see it
    title: str
    caption: str
    alt: str
    svg: str  # the drawing as an ``<svg>`` element
    public: bool  # whether it may leave with the release: only where the released table alone determines it
    small: str = ""  # the same as a small ``<svg>`` element without letters, of the distribution of a column

    def __repr__(self) -> str:
        return f"Figure({self.name!r})"

    def to_svg(self) -> str:
        """The drawing as a file of its own: on light paper, with its colours and letters named in it."""
        palette = _palette()
        body = _VARIABLE.sub(lambda match: palette[match.group(1)], self.svg)
        head = body.index("</title>") + len("</title>")
        box = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', body)
        assert box is not None
        paper = f'<rect width="{box.group(1)}" height="{box.group(2)}" fill="{palette["paper"]}"/>'
        return body[:head] + paper + body[head:]

    def _repr_svg_(self) -> str:
        """Show itself in a notebook."""
        return self.to_svg()


def compose(name: str, marks: str, *, size: tuple[float, float], alt: str, public: bool) -> str:
    """An ``<svg>`` element around marks; names inside begin so that they do not clash on a page."""
    prefix = "f" + hashlib.sha256(f"{name}\0{public}".encode()).hexdigest()[:10]
    width, height = size
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width:g} {height:g}" style="max-width: {_LARGEST * width:.0f}px" role="img" '
        f'aria-labelledby="{prefix}-title"><title id="{prefix}-title">{escape(alt)}</title>{marks}</svg>'
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


@cache
def _palette() -> dict[str, str]:
    """Light colours of the page's own style, so that there is one list of them."""
    style = files("sfumato.assess").joinpath("templates", "report.css").read_text(encoding="utf-8")
    light = style[style.index(":root {") : style.index("}")]
    return {name: value.strip().replace('"', "'") for name, value in re.findall(r"--([a-z0-9-]+):\s*([^;]+);", light)}


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[float]:
    """Multiples of a round number from one value to another, at most ``most`` + 1."""
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


_INCH = 72.0
_STAR = [((0.4 if place % 2 else 1.0), math.pi * (place / 5 - 0.5)) for place in range(10)]  # reach and direction
_SHAPES = {
    "circle": "M{x:.1f} {y:.1f}m-{r} 0a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z",
    "square": "M{x:.1f} {y:.1f}m-{r} -{r}h{d}v{d}h-{d}z",
    "diamond": "M{x:.1f} {y:.1f}m-{r} 0l{r} -{r}l{r} {r}l-{r} {r}z",
    "triangle": "M{x:.1f} {y:.1f}m0 -{r}l{r} {d}h-{d}z",
    "bar": "M{x:.1f} {y:.1f}m0 -{r}v{d}",
}
_At = Callable[[float, float], tuple[float, float]]
_Span = tuple[float, float]
_Tick = tuple[float, str]


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
    axes = Axes(_INCH * size[0], _INCH * size[1])
    paint(axes)
    svg = compose(name, axes.to_marks(), size=(axes.width, axes.height), alt=alt, public=public)
    return Figure(name, title, caption, alt, svg, public)


@dataclass
class Axes:
    """Marks in the units of the data, and what stands around them.

    ``x`` and ``y`` are what is shown, from left to right and from the floor up; the second end may be the lower one.
    Ticks that are not given are round numbers. ``upright`` writes those below from bottom to top.
    """

    width: float
    height: float
    x: _Span = (0.0, 1.0)
    y: _Span = (0.0, 1.0)
    x_label: str = ""
    y_label: str = ""
    x_ticks: Sequence[_Tick] | None = None
    y_ticks: Sequence[_Tick] | None = None
    letters: float = 8.0
    upright: bool = False
    lines: str = "left bottom"
    _marks: list[Callable[[_At], str]] = field(default_factory=list)
    _legend: list[tuple[str, Callable[[float, float], str]]] = field(default_factory=list)

    def line(self, xs: Sequence[float], ys: Sequence[float], colour: str, width: float = 1.2, dash: str = "") -> None:
        """A line from point to point."""

        def mark(at: _At) -> str:
            points = "L".join(f"{x:.1f} {y:.1f}" for x, y in map(at, xs, ys))
            return f'<path d="M{points}" style="{style_of(colour, width=width, dash=dash)}"/>'

        self._marks.append(mark)

    def upright_line(self, x: float, colour: str, width: float = 1.2, dash: str = "") -> None:
        """A line from the floor to the top."""
        self.line([x, x], list(self.y), colour, width, dash)

    def steps(
        self, heights: Floats, edges: Floats, colour: str, fill: str = "none", width: float = 1.2, dash: str = ""
    ) -> None:
        """The outline of bars side by side, from the floor to the floor."""

        def mark(at: _At) -> str:
            tops = "".join(
                f"V{y:.1f}H{x:.1f}" for x, y in (at(edge, top) for edge, top in zip(edges[1:], heights, strict=True))
            )
            left, floor = at(edges[0], 0.0)
            style = style_of(colour, fill, width, dash)
            return f'<path d="M{left:.1f} {floor:.1f}{tops}V{floor:.1f}" style="{style}"/>'

        self._marks.append(mark)

    def area(self, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], fill: str) -> None:
        """What lies between two lines that have their points above each other."""

        def mark(at: _At) -> str:
            there, back = map(at, xs, highs), map(at, reversed(xs), reversed(lows))
            points = "L".join(f"{x:.1f} {y:.1f}" for x, y in (*there, *back))
            return f'<path d="M{points}z" style="fill: var(--{fill})"/>'

        self._marks.append(mark)

    def bars(self, places: Sequence[float], values: Sequence[float], thick: float, colour: str, fill: str) -> None:
        """Bars that lie, from 0 on."""

        def mark(at: _At) -> str:
            path = []
            for place, value in zip(places, values, strict=True):
                (left, top), (right, foot) = at(0.0, place - thick / 2), at(value, place + thick / 2)
                path.append(f"M{left:.1f} {top:.1f}H{right:.1f}V{foot:.1f}H{left:.1f}z")
            return f'<path d="{"".join(path)}" style="{style_of(colour, fill, 0.8)}"/>'

        self._marks.append(mark)

    def marks(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        shape: str,
        colour: str,
        fill: str = "none",
        sizes: Sequence[float] | float = 4.5,
        width: float = 1.2,
    ) -> None:
        """A mark at each point: circle, square, diamond, triangle, upright bar or star, ``size`` points wide."""
        wide = [sizes] * len(xs) if isinstance(sizes, float) else sizes

        def mark(at: _At) -> str:
            path = "".join(_shape(shape, *at(x, y), size) for x, y, size in zip(xs, ys, wide, strict=True))
            return f'<path d="{path}" style="{style_of(colour, fill, width)}"/>'

        self._marks.append(mark)

    def dots(self, points: Floats, colour: str, size: float) -> None:
        """All points as one path of strokes without length and round ends, a fortieth of as many marks."""

        def mark(at: _At) -> str:
            path = "".join("M{:.2f} {:.2f}h0".format(*at(x, y)) for x, y in points.tolist())
            return f'<path d="{path}" style="{style_of(colour, width=size)}; stroke-linecap: round"/>'

        self._marks.append(mark)

    def cells(self, colours: Sequence[Sequence[str]]) -> None:
        """A square of each colour, row after row from the top; neighbours of one colour are one mark."""

        def mark(at: _At) -> str:
            paths: dict[str, list[str]] = {}
            for row, line in enumerate(colours):
                first = 0
                for place in range(1, len(line) + 1):
                    if place == len(line) or line[place] != line[first]:
                        (left, top), (right, foot) = at(first, row), at(place, row + 1)
                        paths.setdefault(line[first], []).append(
                            f"M{left:.1f} {top:.1f}H{right:.1f}V{foot:.1f}H{left:.1f}z"
                        )
                        first = place
            return "".join(f'<path d="{"".join(path)}" style="fill: var(--{name})"/>' for name, path in paths.items())

        self._marks.append(mark)

    def picture(self, pixels: NDArray[np.uint8]) -> None:
        """Red, green and blue of each cell, over all that is shown."""

        def mark(at: _At) -> str:
            (left, top), (right, foot) = at(self.x[0], self.y[1]), at(self.x[1], self.y[0])
            data = base64.b64encode(_png(pixels)).decode()
            place = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{foot - top:.1f}"'
            look = 'preserveAspectRatio="none" style="image-rendering: pixelated"'
            return f'<image {place} {look} xlink:href="data:image/png;base64,{data}"/>'

        self._marks.append(mark)

    def write(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 8.0,
        anchor: str = "start",
        colour: str = INK,
        off: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """Text at a point, with an offset in points to the right and down."""

        def mark(at: _At) -> str:
            left, foot = at(x, y)
            return text_at(left + off[0], foot + off[1], text, anchor, size, colour)

        self._marks.append(mark)

    def name(self, text: str, shape: str, colour: str, fill: str = "none", size: float = 4.5) -> None:
        """An entry of the legend: a shape of marks, ``area`` or ``line``, or ``dotted``."""

        def mark(x: float, y: float) -> str:
            if shape == "area":
                return f'<path d="M{x:.1f} {y - 3:.1f}h12v6h-12z" style="{style_of(colour, fill, 0.8)}"/>'
            if shape in ("line", "dotted"):
                style = style_of(colour, width=1.6, dash="1.6 2" if shape == "dotted" else "")
                return f'<path d="M{x:.1f} {y:.1f}h12" style="{style}"/>'
            return f'<path d="{_shape(shape, x + 6, y, size)}" style="{style_of(colour, fill)}"/>'

        self._legend.append((text, mark))

    def to_marks(self) -> str:
        """All that is drawn, as the inside of an ``<svg>`` element."""
        below, beside = self._ticks(self.x, self.x_ticks), self._ticks(self.y, self.y_ticks)
        left, right, foot = self._room(below, beside)
        legend, top = self._named(left, right)

        def at(x: float, y: float) -> tuple[float, float]:
            along = (x - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0)
            up = (y - self.y[0]) / ((self.y[1] - self.y[0]) or 1.0)
            return left + along * (right - left), foot - up * (foot - top)

        parts = [mark(at) for mark in self._marks]
        parts += [self._below(at(value, self.y[0])[0], foot, text) for value, text in below]
        parts += [self._beside(left, at(self.x[0], value)[1], text) for value, text in beside]
        if self.x_label:
            parts.append(text_at((left + right) / 2, self.height - 4.0, self.x_label, "middle"))
        if self.y_label:
            turned = f'transform="rotate(-90 10 {(top + foot) / 2:.1f})"'
            parts.append(text_at(10.0, (top + foot) / 2, self.y_label, "middle", more=turned))
        for line, path in (
            ("left", f"M{left:.1f} {top:.1f}V{foot:.1f}"),
            ("bottom", f"M{left:.1f} {foot:.1f}H{right:.1f}"),
        ):
            if line in self.lines:
                parts.append(f'<path d="{path}" style="{style_of(MUTED, width=0.8)}"/>')
        return "".join(parts) + legend

    def _room(self, below: list[_Tick], beside: list[_Tick]) -> tuple[float, float, float]:
        """Where the marks begin on the left, and end on the right and below."""
        letter = 0.61 * self.letters
        widths = [letter * len(text) for _, text in below] or [0.0]
        left = max([0.0, *(letter * len(text) + 5.0 for _, text in beside)]) + (13.0 if self.y_label else 0.0)
        left, right = 5.0 + left, self.width - 6.0
        if not self.upright:
            left, right = max(left, 2.0 + widths[0] / 2), right - widths[-1] / 2
        deep = (5.0 + (max(widths) if self.upright else self.letters + 2.0)) if below else 0.0
        return left, right, self.height - 4.0 - deep - (12.0 if self.x_label else 0.0)

    def _ticks(self, span: _Span, given: Sequence[_Tick] | None) -> list[_Tick]:
        if given is not None:
            return list(given)
        places = ticks(min(span), max(span), 5)
        return list(zip(places, numbers(places), strict=True))

    def _beside(self, left: float, y: float, text: str) -> str:
        stroke = (
            f'<path d="M{left - 3:.1f} {y:.1f}h3" style="{style_of(MUTED, width=0.8)}"/>'
            if "left" in self.lines
            else ""
        )
        return stroke + text_at(left - 5.0, y + 0.35 * self.letters, text, "end", self.letters)

    def _below(self, x: float, foot: float, text: str) -> str:
        if self.upright:
            turned = f'transform="rotate(-90 {x + 0.35 * self.letters:.1f} {foot + 4:.1f})"'
            return text_at(x + 0.35 * self.letters, foot + 4.0, text, "end", self.letters, more=turned)
        stroke = f'<path d="M{x:.1f} {foot:.1f}v3" style="{style_of(MUTED, width=0.8)}"/>'
        return stroke + text_at(x, foot + 4.0 + self.letters, text, "middle", self.letters)

    def _named(self, left: float, right: float) -> tuple[str, float]:
        """The legend in as many lines as it takes, and where the marks begin under it."""
        parts, x, y = [], left, 9.0
        for text, mark in self._legend:
            wide = 17.0 + 4.9 * len(text)
            if x > left and x + wide > right:
                x, y = left, y + 12.0
            parts.append(mark(x, y) + text_at(x + 16.0, y + 2.8, text))
            x += wide + 12.0
        return "".join(parts), y + 8.0 if self._legend else 6.0


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """An image as a file: each line is written as it is, after a byte that says so."""
    high, wide, _ = pixels.shape
    raw = np.concatenate([np.zeros((high, 1), dtype=np.uint8), pixels.reshape(high, 3 * wide)], axis=1)
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress(raw.tobytes(), 9),
        b"IEND": b"",
    }
    written = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts.items()
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


def _shape(shape: str, x: float, y: float, size: float) -> str:
    """The path of one mark, ``size`` points wide."""
    r = size / 2
    if shape == "star":
        points = (f"{x + r * far * math.cos(way):.1f} {y + r * far * math.sin(way):.1f}" for far, way in _STAR)
        return f"M{'L'.join(points)}z"
    return _SHAPES[shape].format(x=x, y=y, r=f"{r:.2f}", d=f"{size:.2f}")


def style_of(line: str, fill: str = "none", width: float = 1.2, dash: str = "") -> str:
    """How a mark is filled and its outline drawn."""
    inside = fill if fill == "none" else f"var(--{fill})"
    dashes = f"; stroke-dasharray: {dash}" if dash else ""
    return f"fill: {inside}; stroke: var(--{line}); stroke-width: {width:g}{dashes}"


def text_at(
    x: float, y: float, text: str, anchor: str = "start", size: float = 8.0, colour: str = INK, more: str = ""
) -> str:
    """A text that begins, has its middle or ends at a point."""
    style = f"font: {size:g}px var(--sans); fill: var(--{colour}); text-anchor: {anchor}"
    return f'<text x="{x:.1f}" y="{y:.1f}" style="{style}"{" " if more else ""}{more}>{escape(text)}</text>'
