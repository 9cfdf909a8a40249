"""Whole tables at one look: heat maps of association matrices, and rows on two principal components [Jolliffe 2002]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sfumato.assess.figures.axes import Axes, draw
from sfumato.assess.figures.svg import BASE, BASE_FILL, HEAT, MAIN, Figure, label
from sfumato.assess.study import Column, ColumnPair, Matrix, Places, Study, sample
from sfumato.assess.utility.association import AssociationMatrices
from sfumato.tables.schema import Kind

__all__ = ["MOST_POINTS", "association_figures", "component_figures"]

_VECTOR = 40  # columns up to which every cell is a shape of its own
_WRITTEN = 16  # columns up to which every cell holds its number
_LESS, _EVEN, _MORE = (np.array(colour) for colour in ((0, 114, 178), (242, 242, 242), (213, 94, 0)))
_FULL = 0.25  # the difference that takes the full colour
_LINK = "Strength of the link between two columns{signs}: 0 is none, {most} or -{most} the strongest."
_GAP = "Link in the released table less link in the original{signs}; the full colour stands for {full} and more."
MOST_POINTS = 2_000
"""Most points that are drawn of a table."""
_FITTED = 5_000  # rows that decide the axes
_CATEGORIES = 20  # most categories of a column that get a coordinate
_COORDINATES = 300


def association_figures(names: Sequence[str], links: AssociationMatrices) -> tuple[Figure, ...]:
    """Three heat maps; the released table's alone is for the public."""
    if len(names) < 2:
        return ()
    signs, hundred = (", in hundredths", 100) if len(names) <= _WRITTEN else ("", 1)
    link = _LINK.format(signs=signs, most=hundred)
    gap = _GAP.format(signs=signs, full=f"{_FULL * hundred:g}")
    side = float(np.clip(0.27 * len(names), 1.8, 6.0))
    maps = {
        "original": ("Links between columns, original", links.original, 1.0, link),
        "released": ("Links between columns, released", links.alone, 1.0, link),
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
        *_figure(study.pairs, original, both, study.generator("components")),
        *_figure(study.pairs, released, {"released": released}, study.generator("components-released")),
    )


def _figure(
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
            lambda sheet: _paint(sheet, points, shares),
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
    often = sorted(np.flatnonzero(counts), key=lambda code: (-counts[code], names[code]))[:_CATEGORIES]
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


def _paint(axes: Axes, points: dict[str, Matrix], shares: Sequence[float]) -> None:
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
