"""The columns drawn: heat maps of their links, rows on two principal components [Jolliffe 2002], and distributions.

The edges of bins and the marks on the axes of a distribution are round numbers, so that neither an extreme nor
anybody's cell decides where one stands. For the public the released columns alone are drawn.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from xml.sax.saxutils import escape

import numpy as np

from sfumato.assess.figures import (
    BASE,
    BASE_FILL,
    HEAT,
    MAIN,
    Axes,
    Figure,
    compose,
    draw,
    label,
    numbers,
    percents,
    round_step,
    style_of,
    text_at,
    ticks,
)
from sfumato.assess.study import CATEGORIES, Column, ColumnPair, Matrix, Places, Study, sample
from sfumato.assess.utility.association import AssociationMatrices
from sfumato.tables.dates import FIRST_MOMENT, LAST_MOMENT, unit_of
from sfumato.tables.schema import Field, Kind

__all__ = ["MOST_COLUMNS", "association_figures", "bin_edges", "component_figures", "marginal_figures"]

_VECTOR = 40  # columns up to which every cell is a shape of its own
_WRITTEN = 16  # columns up to which every cell holds its number
_LESS, _EVEN, _MORE = (np.array(colour) for colour in ((0, 114, 178), (242, 242, 242), (213, 94, 0)))
_FULL = 0.25  # the difference that takes the full colour
_LINK = "Strength of the link between two columns{signs}: 0 is none, {most} or -{most} the strongest."
_GAP = "Link in the released table less link in the original{signs}; the full colour stands for {full} and more."
MOST_POINTS = 2_000
"""Most points that are drawn of a table."""
_FITTED = 5_000  # rows that decide the axes
_MOST_CATEGORIES = 20  # most categories of a column that get a coordinate
_COORDINATES = 300


def association_figures(names: Sequence[str], links: AssociationMatrices) -> tuple[Figure, ...]:
    """Three heat maps; the released table's alone is for the public."""
    if len(names) < 2:
        return ()
    signs, factor = (", in hundredths", 100) if len(names) <= _WRITTEN else ("", 1)
    link = _LINK.format(signs=signs, most=factor)
    gap = _GAP.format(signs=signs, full=f"{_FULL * factor:g}")
    side = float(np.clip(0.27 * len(names), 1.8, 6.0))
    maps = {
        "original": ("Associations between columns, original", links.original, 1.0, link),
        "released": ("Associations between columns, released", links.alone, 1.0, link),
        "difference": ("Released less original", links.released - links.original, _FULL, gap),
    }
    return tuple(
        draw(
            f"association/{kind}",
            partial(_paint_heat, names=names, matrix=matrix, full=full),
            size=(side + 1.3, side + 1.0),
            title=title,
            caption=caption,
            alt=f"Heat map, {title[0].lower()}{title[1:]}: {len(names)} by {len(names)} columns.",
            public=kind == "released",
        )
        for kind, (title, matrix, full, caption) in maps.items()
    )


def _paint_heat(axes: Axes, names: Sequence[str], matrix: Matrix, full: float) -> None:
    count = len(names)
    axes.x, axes.y, axes.lines, axes.upright = (0.0, count), (count, 0.0), "", True
    level = np.clip(matrix / full, -1.0, 1.0)
    if count <= _VECTOR:
        steps = np.minimum((5.5 * (level + 1.0)).astype(np.int64), len(HEAT) - 1)
        axes.cells([[HEAT[step] for step in row] for row in steps])
    else:
        away = np.where((level < 0)[:, :, None], _LESS, _MORE)
        axes.picture(np.rint(_EVEN + np.abs(level)[:, :, None] * (away - _EVEN)).astype(np.uint8))
    if count <= _WRITTEN:
        _write(axes, matrix)
    step = max(1, count // 40)
    axes.letters = 8.0 if count <= 20 else 5.0
    axes.x_ticks = [(place + 0.5, label(names[place], 16)) for place in range(0, count, step)]
    axes.y_ticks = axes.x_ticks


def _write(axes: Axes, matrix: Matrix) -> None:
    """Writes each link into its cell, so that colour is not needed to read it."""
    hundredths = np.rint(100 * matrix).astype(np.int64)
    for row, column in zip(*np.nonzero(~np.eye(len(matrix), dtype=np.bool_)), strict=True):
        text = str(hundredths[row, column])
        axes.write(column + 0.5, row + 0.5, text, size=6.0, anchor="middle", off=(0.0, 2.1))


@dataclass(frozen=True, eq=False, repr=False)
class _Coordinate:
    """One coordinate: a number in standard deviations, or whether a cell holds a category."""

    place: int
    category: int | None
    centre: float
    scale: float

    def of(self, side: Sequence[Column], rows: Places) -> Matrix:
        cells = side[self.place]
        values, absent = cells.values[rows], cells.absent[rows]
        if self.category is None:
            return np.asarray(np.where(absent, 0.0, (values - self.centre) / self.scale))
        return np.asarray((((values == self.category) & ~absent) - self.centre) / self.scale)


def component_figures(study: Study) -> tuple[Figure, ...]:
    """The original drawn under the released table for the owner, and the released one on axes of its own."""
    original = [pair.original for pair in study.pairs]
    released = [pair.released for pair in study.pairs]
    both: dict[str, Sequence[Column]] = {"original": original, "released": released}
    return (
        *_component_figure(study.pairs, original, both, study.generator("components")),
        *_component_figure(study.pairs, released, {"released": released}, study.generator("components-released")),
    )


def _component_figure(
    pairs: Sequence[ColumnPair], fitted: Sequence[Column], sides: dict[str, Sequence[Column]], rng: np.random.Generator
) -> tuple[Figure, ...]:
    coordinates = _coordinates(pairs, fitted)
    if len(coordinates) < 2 or any(len(side[0].values) < 2 for side in sides.values()):
        return ()
    rows = sample(len(fitted[0].values), _FITTED, rng)
    axes, shares = _axes(_values(coordinates, fitted, rows))
    points, counts = {}, []
    for name, side in sides.items():
        drawn = sample(len(side[0].values), MOST_POINTS, rng)
        points[name] = _values(coordinates, side, drawn) @ axes
        counts.append(f"{len(drawn):,} of {len(side[0].values):,} {name} rows")
    both = len(sides) == 2
    whose = "the original" if both else "the released table"
    return (
        draw(
            "components/first",
            lambda sheet: _paint_points(sheet, points, shares),
            size=(5.2, 4.2),
            title="Both tables at one look" if both else "The released table at one look",
            caption=(
                f"Each point is a row ({' and '.join(counts)}), seen along the two directions in which {whose} varies "
                "most. Points beyond the frame are drawn on its edge."
            ),
            alt=f"Scatter of rows on the first two principal components of {whose}: {' and '.join(counts)}.",
            public=not both,
        ),
    )


def _coordinates(pairs: Sequence[ColumnPair], fitted: Sequence[Column]) -> list[_Coordinate]:
    """Coordinates by one table alone, those of numbers first; what does not vary gets none."""
    numbers, categories = [], []
    for place, (pair, cells) in enumerate(zip(pairs, fitted, strict=True)):
        present = cells.present
        if not len(present):
            continue
        if pair.is_number:
            centre, scale = float(present.mean()), float(present.std())
            if np.isfinite(scale) and scale > 1e-12 * max(1.0, abs(centre)):
                numbers.append(_Coordinate(place, None, centre, scale))
        else:
            categories += _of_categories(place, pair, cells)
    return [*numbers, *sorted(categories, key=lambda each: -each.centre * (1 - each.centre))][:_COORDINATES]


def _of_categories(place: int, pair: ColumnPair, cells: Column) -> list[_Coordinate]:
    """A coordinate for each frequent category; two rows that differ in the column are at distance 1."""
    names = [str(name) for name in pair.field.domain.categories or ()]
    counts = np.bincount(cells.present.astype(np.int64), minlength=len(names))
    often = sorted(np.flatnonzero(counts), key=lambda code: (-counts[code], names[code]))[:_MOST_CATEGORIES]
    shares = counts / len(cells.values)
    scale = 1.0 if pair.field.kind is Kind.BOOLEAN else np.sqrt(2.0)
    return [_Coordinate(place, int(code), float(shares[code]), float(scale)) for code in often if shares[code] < 1.0]


def _values(coordinates: Sequence[_Coordinate], side: Sequence[Column], rows: Places) -> Matrix:
    return np.column_stack([coordinate.of(side, rows) for coordinate in coordinates])


def _axes(values: Matrix) -> tuple[Matrix, list[float]]:
    """The two widest directions and the shares of the variance along them."""
    eigenvalues, vectors = np.linalg.eigh(np.atleast_2d(np.cov(values, rowvar=False)))
    axes = vectors[:, [-1, -2]]
    turned = np.where(((values @ axes) ** 3).sum(axis=0) < 0, -1.0, 1.0)  # a direction has no sign: fix one
    total = max(float(eigenvalues.sum()), np.finfo(np.float64).tiny)
    return axes * turned, [max(0.0, float(eigenvalues[place])) / total for place in (-1, -2)]


def _paint_points(axes: Axes, points: dict[str, Matrix], shares: Sequence[float]) -> None:
    everything = np.concatenate(list(points.values()))
    low, high = np.quantile(everything, [0.002, 0.998], axis=0)
    reach = np.maximum(0.03 * (high - low), 1e-9)
    axes.x, axes.y = ((float(low[at] - reach[at]), float(high[at] + reach[at])) for at in (0, 1))
    axes.x_ticks, axes.y_ticks = [], []
    for name, some in points.items():
        colour, size = (BASE_FILL, 5.0) if name == "original" else (MAIN, 2.2)
        axes.dots(np.clip(some, low, high), colour, size)
        axes.name(name, "circle", BASE if name == "original" else MAIN, colour, size + 1.0)
    axes.x_label = f"first direction, {100 * shares[0]:.0f} % of the variance"
    axes.y_label = f"second, {100 * shares[1]:.0f} %"


MOST_COLUMNS = 40
"""Most columns that are drawn."""
_BARS = 12  # most categories drawn apart
_DAY = 86_400_000_000  # microseconds
_MOST = 40
_WIDE, _HIGH = 260.0, 180.0
_TOP, _FOOT, _SIDE = 20.0, 18.0, 14.0  # around the marks: legend, labels of the axis, and room on the right
_LETTER = 4.9  # width of one, about
_BROAD, _TALL = 120, 40  # of a small picture
_SECOND = 1_000_000  # microseconds
_CLOCK = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200)  # seconds
_STROKE = style_of("muted", width=0.8)
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
    name = f"marginals/{field.name}"
    sides = [cells.present for cells in (original, released) if cells is not None]
    return Figure(
        name,
        title=field.name,
        caption=caption if any_missing else "No cell is missing.",
        alt=alt,
        svg=compose(name, _drawing(field, sides), size=(_WIDE, _HIGH), alt=alt, public=original is None),
        public=original is None,
        small=_small(field, sides, alt),
    )


def _small(field: Field, sides: list[Matrix], alt: str) -> str:
    """The distribution as a picture of the size of a thumb: area of the original, line of the released table."""
    if not sum(map(len, sides)):
        return ""
    if field.kind in CATEGORIES:
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
        return text_at(_WIDE / 2, _HIGH / 2, "no value in the released table", "middle")
    return _bars(field, sides) if field.kind in CATEGORIES else _histogram(field, sides)


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
    parts = [text_at(left - 4.0, _TOP + (place + 0.5) * step + 2.8, text, "end") for place, text in enumerate(texts)]
    parts += _axis(ticks(0.0, top, 4), lambda share: left + across * share, percents, bottom)
    _, line, fill = _SIDES[len(sides)][0]
    for place, share in enumerate(shares[0][: len(texts)]):
        y = _TOP + place * step + 0.5 * (step - high)
        path = f"M{left:.1f} {y:.1f}h{across * share:.1f}v{high:.1f}H{left:.1f}z"
        parts.append(f'<path d="{path}" style="{style_of(line, fill, 0.8)}"/>')
    for share in shares[1:]:
        for place, value in enumerate(share[: len(texts)]):
            x, y = left + across * value, _TOP + (place + 0.5) * step
            parts.append(_diamond(x, y))
    parts.append(f'<path d="M{left:.1f} {_TOP:g}V{bottom:g}H{_WIDE - _SIDE:g}" style="{_STROKE}"/>')
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
        f'<path d="M{left - 3:.1f} {bottom - up * mark:.1f}h3" style="{_STROKE}"/>'
        + text_at(left - 5.0, bottom - up * mark + 2.8, text, "end")
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
        parts.append(f'<path d="{path}" style="{style_of(line, fill, 0.9 if fill != "none" else 1.8)}"/>')
    parts.append(f'<path d="M{left:.1f} {_TOP:g}V{bottom:g}H{_WIDE - _SIDE:g}" style="{_STROKE}"/>')
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
    marks: Sequence[float], place: Callable[[float], float], words_of: Callable[[list[float]], list[str]], bottom: float
) -> list[str]:
    """Strokes under an axis with what is written at them."""
    return [
        f'<path d="M{place(mark):.1f} {bottom:g}v3" style="{_STROKE}"/>'
        + text_at(place(mark), bottom + 12.0, text, "middle")
        for mark, text in zip(marks, words_of(list(marks)), strict=True)
    ]


def _legend(left: float, sides: int, *, dots: bool = False) -> str:
    parts = []
    for name, line, fill in _SIDES[sides]:
        shape = f"M{left:.1f} 5h14v7h-14z" if fill != "none" else f"M{left:.1f} 8.5h14"
        mark = f'<path d="{shape}" style="{style_of(line, fill, 0.9 if fill != "none" else 1.8)}"/>'
        parts += [_diamond(left + 9.0, 8.5) if dots and fill == "none" else mark, text_at(left + 18.0, 11.5, name)]
        left += 32.0 + _LETTER * len(name)
    return "".join(parts)


def _diamond(x: float, y: float) -> str:
    return f'<path d="M{x - 3:.1f} {y:.1f}l3 -3l3 3l-3 3z" style="fill: var(--main)"/>'


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
