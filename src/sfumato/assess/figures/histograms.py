"""Distributions: of each column, of distances to the closest record, of group sizes, and level asked against level got.

The edges of bins are round numbers, so that neither an extreme nor anybody's cell decides where one ends. For the
public the released columns alone are drawn.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from sfumato.assess.figures.svg import BASE, BASE_FILL, INK, MAIN, MAIN_FILL, MUTED, Axes, Figure, draw, label
from sfumato.assess.risk.closest import Closest
from sfumato.assess.study import Column, ColumnPair, Matrix, Places
from sfumato.mechanisms.protocol import Workings
from sfumato.tables.dates import FIRST_MOMENT, LAST_MOMENT, unit_of
from sfumato.tables.schema import Field, Kind

__all__ = ["MOST_COLUMNS", "bin_edges", "distance_figures", "group_figures", "marginal_figures", "round_step"]

MOST_COLUMNS = 40
"""Most columns that are drawn."""
_BARS = 12  # most categories drawn apart
_DAY = 86_400_000_000  # microseconds
_FIRST_DAY, _LAST_DAY = FIRST_MOMENT / _DAY, LAST_MOMENT // _DAY + 0.999  # of the calendar, and of Matplotlib
_SIZE = (3.6, 2.5)
_LARGE = (5.2, 3.2)
_MOST = 40
_BROAD, _TALL = 120, 40  # of a small picture
_CATEGORIES = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
_SECOND = 1_000_000  # microseconds
_CLOCK = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200)  # seconds


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
    drawn = draw(
        f"marginals/{field.name}",
        lambda axes: _paint(axes, field, original, released),
        size=_SIZE,
        title=field.name,
        caption=caption if any_missing else "No cell is missing.",
        alt=alt,
        public=original is None,
    )
    return dataclasses.replace(drawn, small=_small(field, _sides(original, released), alt))


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


def _paint(axes: Axes, field: Field, original: Column | None, released: Column) -> None:
    sides = _sides(original, released)
    if not sum(len(values) for values in sides):
        axes.text(0.5, 0.5, "no value in the released table", ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
    elif field.kind in _CATEGORIES:
        _bars(axes, field, sides)
    else:
        _histogram(axes, field, sides)


def _bars(axes: Axes, field: Field, sides: list[Matrix]) -> None:
    names = [str(category) for category in field.domain.categories or ()]
    counts = [np.bincount(values.astype(np.int64), minlength=len(names)) for values in sides]
    shown = np.argsort(-counts[0], kind="stable")[:_BARS]
    anywhere = np.sum(counts, axis=0) > 0
    shown = shown[anywhere[shown]]
    if field.kind is Kind.ORDINAL:
        shown = np.sort(shown)
    shares = [np.append(count[shown], count.sum() - count[shown].sum()) / max(1, count.sum()) for count in counts]
    texts = [label(names[place], 18) for place in shown]
    rest = int(anywhere.sum()) - len(shown)
    texts.append(f"{rest} others")
    keep = len(texts) if rest else len(texts) - 1
    places = np.arange(keep)
    if len(sides) == 2:
        axes.barh(places, shares[0][:keep], color=BASE_FILL, edgecolor=BASE, linewidth=0.8, label="original")
        axes.plot(shares[1][:keep], places, "D", color=MAIN, markersize=4.5, label="released")
    else:
        axes.barh(places, shares[0][:keep], color=MAIN_FILL, edgecolor=MAIN, linewidth=0.8, label="released")
    axes.set_yticks(places, labels=texts[:keep], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.xaxis.set_major_formatter(_percent)
    axes.xaxis.set_major_locator(_ticks(4))
    _legend(axes)


def _histogram(axes: Axes, field: Field, sides: list[Matrix]) -> None:
    edges = bin_edges(np.concatenate(sides), field)
    shares = [np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / max(1, len(values)) for values in sides]
    if field.kind is Kind.DATE:
        edges = np.clip(edges * (unit_of(field) / _DAY), _FIRST_DAY, _LAST_DAY)
        _date_axis(axes, edges)
    else:
        axes.xaxis.set_major_locator(_ticks(5))
    if len(sides) == 2:
        axes.stairs(shares[0], edges, fill=True, color=BASE_FILL, edgecolor=BASE, linewidth=0.8, label="original")
        axes.stairs(shares[1], edges, color=MAIN, linewidth=1.8, label="released")
    else:
        axes.stairs(shares[0], edges, fill=True, color=MAIN_FILL, edgecolor=MAIN, linewidth=1.2, label="released")
    axes.set_ylim(bottom=0.0)
    axes.yaxis.set_major_formatter(_percent)
    axes.yaxis.set_major_locator(_ticks(4))
    _legend(axes)


def _date_axis(axes: Axes, edges: Matrix) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    wide = 0.05 * (edges[-1] - edges[0])  # the drawing library has no more years than the calendar
    axes.set_xlim(max(edges[0] - wide, _FIRST_DAY), min(edges[-1] + wide, _LAST_DAY))
    locator = AutoDateLocator(minticks=2, maxticks=5)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _ticks(most: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])


def _percent(value: float, _: float) -> str:
    return f"{100 * value:.3g} %"


def _legend(axes: Axes) -> None:
    marks = sorted(zip(*axes.get_legend_handles_labels(), strict=True), key=lambda mark: str(mark[1]))
    axes.legend(
        *zip(*marks, strict=True),
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=2,
        borderaxespad=0.2,
        handlelength=1.6,
    )


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


def _date_step(least: float, unit: int) -> float:
    """A step that a calendar or a clock has, in the unit that dates are counted in."""
    if unit >= _DAY or least * unit > _CLOCK[-1] * _SECOND:
        day = _DAY / unit
        return max(1.0, round_step(least / day, whole=True) * day)
    if unit >= _SECOND or least * unit > _SECOND:
        return next(seconds for seconds in _CLOCK if seconds * _SECOND >= least * unit) * _SECOND / unit
    return round_step(least, whole=True)


def distance_figures(closest: Closest) -> tuple[Figure, ...]:
    """Histogram of distances to the nearest original row; for the owner's eyes only."""
    held = "" if closest.held_out is None else " Dotted: released rows to rows held out."
    return (
        draw(
            "distances/closest",
            lambda axes: _paint_distances(axes, closest),
            size=_LARGE,
            title="Distance to the closest original row",
            caption=(
                "Line: released rows. Area: original rows to the nearest other one. The vertical marks are the "
                f"medians (dashed: original).{held} A line left of the area is a warning; one right of it proves "
                "nothing."
            ),
            alt="Histogram of distances to the nearest original row, of released rows and of original rows.",
            public=False,
        ),
    )


def _paint_distances(axes: Axes, closest: Closest) -> None:
    parts = [closest.original, closest.released, *([] if closest.held_out is None else [closest.held_out])]
    high = max(float(np.quantile(part, 0.995)) for part in parts) or 1.0
    edges = np.linspace(0.0, high, _MOST + 1)
    shares = [np.histogram(np.minimum(part, high), edges)[0] / len(part) for part in parts]
    axes.stairs(shares[0], edges, fill=True, color=BASE_FILL, edgecolor=BASE, linewidth=0.8, label="original")
    axes.stairs(shares[1], edges, color=MAIN, linewidth=1.8, label="released")
    if closest.held_out is not None:
        axes.stairs(shares[2], edges, color=INK, linewidth=1.2, linestyle=":", label="released to held out")
    axes.axvline(float(np.median(closest.original)), color=BASE, linestyle="--", linewidth=1.2)
    axes.axvline(float(np.median(closest.released)), color=MAIN, linewidth=1.2)
    axes.set_xlabel("distance, in standard deviations")
    axes.set_ylabel("share of rows")
    axes.yaxis.set_major_formatter(_percent)
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, borderaxespad=0.2)


def group_figures(workings: Workings | None) -> tuple[Figure, ...]:
    """Histogram of group sizes and the counts of records by level asked and got; for the owner alone."""
    if workings is None or workings.labels is None or workings.levels is None:
        return ()
    _, places, sizes = np.unique(workings.labels, return_inverse=True, return_counts=True)
    got, asked = sizes[places], workings.levels
    met = int((got >= asked).sum())
    return (
        draw(
            "groups/sizes",
            lambda axes: _sizes(axes, sizes),
            size=_LARGE,
            title="Group sizes",
            caption=f"{len(sizes)} groups; the dashed line is the smallest.",
            alt=f"Histogram of the sizes of {len(sizes)} groups, from {sizes.min()} to {sizes.max()} records.",
            public=False,
        ),
        draw(
            "groups/levels",
            lambda axes: _levels(axes, asked, got),
            size=_LARGE,
            title="Level asked, level got",
            caption=(
                f"{met} of {len(got)} records got at least the level they asked for. The larger a dot, the more "
                "records; a dot below the dashed line would be a broken promise."
            ),
            alt=f"Level asked against size of the group got; {met} of {len(got)} records got at least their level.",
            public=False,
        ),
    )


def _sizes(axes: Axes, sizes: Places) -> None:
    low, high = int(sizes.min()), int(sizes.max())
    step = max(1, -(-(high - low + 1) // _MOST))
    edges = np.arange(low, high + step + 1, step) - 0.5
    axes.stairs(np.histogram(sizes, edges)[0], edges, fill=True, color=MAIN_FILL, edgecolor=MAIN, linewidth=1.0)
    axes.axvline(low, color=INK, linestyle="--", linewidth=1.0)
    axes.set_xlabel("records in the group")
    axes.set_ylabel("groups")
    _whole(axes)
    axes.set_ylim(bottom=0.0)


def _levels(axes: Axes, asked: Places, got: Places) -> None:
    points = np.column_stack([_coarse(asked), _coarse(got)])
    places, counts = np.unique(points, axis=0, return_counts=True)
    area = 12.0 + 240.0 * counts / counts.max()
    axes.scatter(places[:, 0], places[:, 1], s=area, color=MAIN_FILL, edgecolor=MAIN, linewidth=1.0)
    ends = [float(asked.min()), float(asked.max())]
    reach = max(1.0, 0.1 * (ends[1] - ends[0]))
    line = [ends[0] - reach, ends[1] + reach]
    axes.plot(line, line, color=BASE, linestyle="--", linewidth=1.2)
    axes.text(line[1], line[1], " asked = got", color=MUTED, fontsize=8.0, va="center")
    axes.set_xlim(line[0] - reach / 2, line[1] + 2.5 * reach)
    axes.set_xlabel("level asked")
    axes.set_ylabel("records in the group got")
    _whole(axes)


def _coarse(values: Places) -> Matrix:
    """Values rounded to at most `_MOST` places downwards, so that a dot never looks better than its records."""
    step = max(1, -(-(int(values.max()) - int(values.min()) + 1) // _MOST))
    return np.asarray(values.min() + np.floor((values - values.min()) / step) * step)


def _whole(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
