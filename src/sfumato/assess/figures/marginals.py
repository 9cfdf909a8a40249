"""Distributions of the columns, written as SVG by hand, for a plotting library takes most of a report's time for them.

The edges of bins and the marks on the axes are round numbers, so that neither an extreme nor anybody's cell decides
where one stands. For the public the released columns alone are drawn.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

import numpy as np

from sfumato.assess.figures.svg import Figure, compose, label, numbers, percents, round_step, ticks
from sfumato.assess.study import Column, ColumnPair, Matrix
from sfumato.tables.dates import FIRST_MOMENT, LAST_MOMENT, unit_of
from sfumato.tables.schema import Field, Kind

__all__ = ["MOST_COLUMNS", "bin_edges", "marginal_figures"]

MOST_COLUMNS = 40
"""Most columns that are drawn."""
_BARS = 12  # most categories drawn apart
_DAY = 86_400_000_000  # microseconds
_MOST = 40
_WIDE, _HIGH = 260.0, 180.0
_TOP, _FOOT, _SIDE = 20.0, 18.0, 14.0  # around the marks: legend, labels of the axis, and room on the right
_LETTER = 4.9  # width of one, about
_BROAD, _TALL = 120, 40  # of a small picture
_CATEGORIES = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
_SECOND = 1_000_000  # microseconds
_CLOCK = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200)  # seconds
_SIDES = {
    2: (("original", "base", "base-fill"), ("released", "main", "none")),
    1: (("released", "main", "main-fill"),),
}


def marginal_figures(pairs: Sequence[ColumnPair]) -> tuple[Figure, ...]:
    """The first columns drawn twice: both tables for the owner, the released one for the public."""
    figures = []
    for pair in pairs[:MOST_COLUMNS]:
        figures.append(_figure(pair.field, pair.original, pair.released))
        figures.append(_figure(pair.field, None, pair.released))
    return tuple(figures)


def _figure(field: Field, original: Column | None, released: Column) -> Figure:
    both = "original and released table" if original is not None else "released table"
    gone = "" if original is None else f"{100 * original.absent.mean():.1f} % in the original, "
    any_missing = released.absent.any() or (original is not None and original.absent.any())
    caption = f"Missing cells: {gone}{100 * released.absent.mean():.1f} % in the released table."
    alt = f"Distribution of column {label(field.name, 60)} in the {both}."
    name, sides = f"marginals/{field.name}", _sides(original, released)
    return Figure(
        name,
        title=field.name,
        caption=caption if any_missing else "No cell is missing.",
        alt=alt,
        svg=compose(name, _drawing(field, sides), size=(_WIDE, _HIGH), alt=alt, public=original is None),
        public=original is None,
        small=_small(field, sides, alt),
    )


def _sides(original: Column | None, released: Column) -> list[Matrix]:
    return [cells.present for cells in (original, released) if cells is not None]


def _small(field: Field, sides: list[Matrix], alt: str) -> str:
    """The distribution as a picture of the size of a thumb: area of the original, line of the released table."""
    if not sum(map(len, sides)):
        return ""
    if field.kind in _CATEGORIES:
        counts = [np.bincount(values.astype(np.int64), minlength=1) for values in sides]
        width = max(map(len, counts))
        counts = [np.pad(count, (0, width - len(count))) for count in counts]
        there = np.sum(counts, axis=0) > 0  # what stands in neither table must not leave a gap
        counts, width = [count[there] for count in counts], int(there.sum())
        order = np.arange(width) if field.kind is Kind.ORDINAL else np.argsort(-counts[0], kind="stable")
        counts = [count[order][:_MOST] for count in counts]
    else:
        edges = bin_edges(np.concatenate(sides), field)
        counts = [np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] for values in sides]
    shares = [count / max(1, len(values)) for count, values in zip(counts, sides, strict=True)]
    scale = (_TALL - 2) / (max(float(share.max()) for share in shares) or 1.0)
    paths = [_steps(scale * share) for share in shares]
    area = ("base", "base-fill") if len(sides) == 2 else ("main", "main-fill")
    lines = [f'<path d="{paths[0]}" style="fill: var(--{area[1]}); stroke: var(--{area[0]}); stroke-width: .8"/>']
    lines += [f'<path d="{path}" style="fill: none; stroke: var(--main); stroke-width: 1.6"/>' for path in paths[1:]]
    name = hashlib.sha256(f"small\0{field.name}\0{len(sides)}".encode()).hexdigest()[:10]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_BROAD} {_TALL}" role="img" aria-labelledby="s{name}">'
    )
    return f'{head}<title id="s{name}">{escape(alt)}</title>{"".join(lines)}</svg>'


def _steps(heights: Matrix) -> str:
    """The outline of bars side by side, from the floor to the floor."""
    step = _BROAD / len(heights)
    tops = (f"V{_TALL - height:.1f}H{step * (place + 1):.1f}" for place, height in enumerate(heights))
    return f"M0 {_TALL}{''.join(tops)}V{_TALL}"


def _drawing(field: Field, sides: list[Matrix]) -> str:
    """The marks, axes and legend of a column."""
    if not sum(len(values) for values in sides):
        return _text(_WIDE / 2, _HIGH / 2, "no value in the released table", "middle")
    return _bars(field, sides) if field.kind in _CATEGORIES else _histogram(field, sides)


def _bars(field: Field, sides: list[Matrix]) -> str:
    """A bar for each category, the most frequent first; the released table as diamonds where both are drawn."""
    names = [str(category) for category in field.domain.categories or ()]
    counts = [np.bincount(values.astype(np.int64), minlength=len(names)) for values in sides]
    shown = np.argsort(-counts[0], kind="stable")[:_BARS]
    anywhere = np.sum(counts, axis=0) > 0
    shown = shown[anywhere[shown]]
    if field.kind is Kind.ORDINAL:
        shown = np.sort(shown)
    shares = [np.append(count[shown], count.sum() - count[shown].sum()) / max(1, count.sum()) for count in counts]
    rest = int(anywhere.sum()) - len(shown)
    texts = [label(names[place], 18) for place in shown] + ([f"{rest} others"] if rest else [])
    left, bottom = 6.0 + _LETTER * max(map(len, texts)), _HIGH - _FOOT
    top = max(float(share.max()) for share in shares) * 1.05 or 1.0
    across = (_WIDE - _SIDE - left) / top
    step = (bottom - _TOP) / len(texts)
    high = 0.8 * step
    parts = [_text(left - 4.0, _TOP + (place + 0.5) * step + 2.8, text, "end") for place, text in enumerate(texts)]
    parts += _axis(ticks(0.0, top, 4), lambda share: left + across * share, percents, bottom)
    _, line, fill = _SIDES[len(sides)][0]
    for place, share in enumerate(shares[0][: len(texts)]):
        y = _TOP + place * step + 0.5 * (step - high)
        parts.append(
            f'<path d="M{left:.1f} {y:.1f}h{across * share:.1f}v{high:.1f}H{left:.1f}z" style="{_paint(line, fill)}"/>'
        )
    for share in shares[1:]:
        for place, value in enumerate(share[: len(texts)]):
            x, y = left + across * value, _TOP + (place + 0.5) * step
            parts.append(_diamond(x, y))
    parts.append(f'<path d="M{left:.1f} {_TOP:g}V{bottom:g}H{_WIDE - _SIDE:g}" style="{_paint("muted")}"/>')
    return "".join(parts) + _legend(left, len(sides), dots=True)


def _histogram(field: Field, sides: list[Matrix]) -> str:
    """Steps over bins: the original as an area, the released table as a line where both are drawn."""
    edges = bin_edges(np.concatenate(sides), field)
    shares = [np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / max(1, len(values)) for values in sides]
    top = max(float(share.max()) for share in shares) * 1.05 or 1.0
    marks = ticks(0.0, top, 4)
    left, bottom = 6.0 + _LETTER * max(map(len, percents(marks))), _HIGH - _FOOT
    across, up = (_WIDE - _SIDE - left) / (edges[-1] - edges[0]), (bottom - _TOP) / top
    parts = [
        f'<path d="M{left - 3:.1f} {bottom - up * mark:.1f}h3" style="{_paint("muted")}"/>'
        + _text(left - 5.0, bottom - up * mark + 2.8, text, "end")
        for mark, text in zip(marks, percents(marks), strict=True)
    ]
    below, texts = _below(field, edges)
    parts += _axis(below, lambda value: left + across * (value - edges[0]), lambda _: texts, bottom)
    for (_, line, fill), share in zip(_SIDES[len(sides)], shares, strict=True):
        tops = (
            f"V{bottom - up * height:.1f}H{left + across * (edge - edges[0]):.1f}"
            for height, edge in zip(share, edges[1:], strict=True)
        )
        path = f"M{left:.1f} {bottom:g}{''.join(tops)}V{bottom:g}"
        parts.append(f'<path d="{path}" style="{_paint(line, fill, 0.9 if fill != "none" else 1.8)}"/>')
    parts.append(f'<path d="M{left:.1f} {_TOP:g}V{bottom:g}H{_WIDE - _SIDE:g}" style="{_paint("muted")}"/>')
    return "".join(parts) + _legend(left, len(sides))


def _below(field: Field, edges: Matrix) -> tuple[list[float], list[str]]:
    """Marks under a histogram and what is written at them, as many as have room."""
    if field.kind is Kind.DATE:
        marks, texts = _moments(edges, unit_of(field))
    else:
        marks = ticks(float(edges[0]), float(edges[-1]), 5)
        texts = numbers(marks)
    while len(texts) > 1 and _LETTER * sum(len(text) + 2 for text in texts) > _WIDE - 60.0:
        marks, texts = marks[::2], texts[::2]
    return marks, texts


def _moments(edges: Matrix, unit: int) -> tuple[list[float], list[str]]:
    """Round moments between two edges, as years, months, days or times of a clock."""
    low, high = (int(np.clip(edge * unit, FIRST_MOMENT, LAST_MOMENT)) for edge in (edges[0], edges[-1]))
    first, last = (np.datetime64(moment, "us") for moment in (low, high))
    days = (high - low) / _DAY
    if days >= 4 * 365:
        step, scale, cut = round_step(days / 365.25 / 5, whole=True), "Y", 4
    elif days >= 120:
        step, scale, cut = next((each for each in (1, 2, 3, 6, 12) if each * 30.4 >= days / 4), 12), "M", 7
    elif days >= 4:
        step, scale, cut = round_step(days / 3, whole=True), "D", 10
    else:
        seconds = (high - low) / _SECOND / 3
        step, scale = next((each for each in _CLOCK if each >= seconds), _CLOCK[-1]), "s"
        cut = 16 if step >= 60 else 19
    whole = np.arange(first.astype(f"datetime64[{scale}]"), last.astype(f"datetime64[{scale}]") + 1)
    epoch = 1970 if scale == "Y" else 0  # years that can be divided by the step, and not their distance from 1970
    round_ones = whole[(whole.astype(np.int64) + epoch) % int(step) == 0]
    moments = [each for each in round_ones if low <= int(each.astype("datetime64[us]").astype(np.int64)) <= high]
    moments = moments or [first.astype(f"datetime64[{scale}]")]
    marks = [float(each.astype("datetime64[us]").astype(np.int64)) / unit for each in moments]
    return marks, [str(each)[:cut].replace("T", " ") for each in moments]


def _axis(
    marks: Sequence[float], place: Callable[[float], float], said: Callable[[list[float]], list[str]], bottom: float
) -> list[str]:
    """Strokes under an axis with what is written at them."""
    return [
        f'<path d="M{place(mark):.1f} {bottom:g}v3" style="{_paint("muted")}"/>'
        + _text(place(mark), bottom + 12.0, text, "middle")
        for mark, text in zip(marks, said(list(marks)), strict=True)
    ]


def _legend(left: float, sides: int, *, dots: bool = False) -> str:
    parts = []
    for name, line, fill in _SIDES[sides]:
        shape = f"M{left:.1f} 5h14v7h-14z" if fill != "none" else f"M{left:.1f} 8.5h14"
        mark = f'<path d="{shape}" style="{_paint(line, fill, 0.9 if fill != "none" else 1.8)}"/>'
        parts += [_diamond(left + 9.0, 8.5) if dots and fill == "none" else mark, _text(left + 18.0, 11.5, name)]
        left += 32.0 + _LETTER * len(name)
    return "".join(parts)


def _diamond(x: float, y: float) -> str:
    return f'<path d="M{x - 3:.1f} {y:.1f}l3 -3l3 3l-3 3z" style="fill: var(--main)"/>'


def _paint(line: str, fill: str = "none", width: float = 0.8) -> str:
    inside = fill if fill == "none" else f"var(--{fill})"
    return f"fill: {inside}; stroke: var(--{line}); stroke-width: {width:g}"


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    style = f"font: 8px var(--sans); fill: var(--ink); text-anchor: {anchor}"
    return f'<text x="{x:.1f}" y="{y:.1f}" style="{style}">{escape(text)}</text>'


def bin_edges(values: Matrix, field: Field) -> Matrix:
    """Some forty bins at most between the 0.5 % and the 99.5 % quantile, at multiples of a round step.

    Whole numbers stand in the middle of their bins, so edges lie one half below a multiple.
    """
    low, high = (float(edge) for edge in np.quantile(values, [0.005, 0.995]))
    wide = high - low if high > low else abs(low) / 2 or 1.0
    wide = max(wide, 1e-9 * max(abs(low), abs(high)))  # finer steps would be lost in rounding
    whole = field.kind is not Kind.CONTINUOUS
    step = _date_step(wide / _MOST, unit_of(field)) if field.kind is Kind.DATE else round_step(wide / _MOST, whole)
    half = 0.5 if whole else 0.0
    first, last = math.floor((low + half) / step), math.floor((high + half) / step) + 1
    return np.asarray(step * (first + np.arange(last - first + 1)) - half)


def _date_step(least: float, unit: int) -> float:
    """A step that a calendar or a clock has, in the unit that dates are counted in."""
    if unit >= _DAY or least * unit > _CLOCK[-1] * _SECOND:
        day = _DAY / unit
        return max(1.0, round_step(least / day, whole=True) * day)
    if unit >= _SECOND or least * unit > _SECOND:
        return next(seconds for seconds in _CLOCK if seconds * _SECOND >= least * unit) * _SECOND / unit
    return round_step(least, whole=True)
