"""Distributions of distances to the closest record, of group sizes, and level asked against level got."""

from __future__ import annotations

import numpy as np

from sfumato.assess.figures.axes import Axes, draw
from sfumato.assess.figures.scales import percents, ticks
from sfumato.assess.figures.svg import BASE, BASE_FILL, INK, MAIN, MAIN_FILL, MUTED, Figure
from sfumato.assess.risk.closest import Closest
from sfumato.assess.study import Matrix, Places
from sfumato.mechanisms.protocol import Workings

__all__ = ["distance_figures", "group_figures"]

_LARGE = (5.2, 3.2)
_MOST = 40


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
    top = 1.05 * max(float(share.max()) for share in shares)
    axes.x, axes.y = (0.0, high), (0.0, top)
    axes.x_label, axes.y_label = "distance, in standard deviations", "share of rows"
    beside = ticks(0.0, top, 5)
    axes.y_ticks = list(zip(beside, percents(beside), strict=True))
    axes.steps(shares[0], edges, BASE, BASE_FILL, 0.8)
    axes.steps(shares[1], edges, MAIN, width=1.8)
    axes.name("original", "area", BASE, BASE_FILL)
    axes.name("released", "line", MAIN)
    if closest.held_out is not None:
        axes.steps(shares[2], edges, INK, dash="1.2 2")
        axes.name("released to held out", "dotted", INK)
    axes.upright_line(float(np.median(closest.original)), BASE, dash="4 2.5")
    axes.upright_line(float(np.median(closest.released)), MAIN)


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
    edges: Matrix = np.arange(low, high + step + 1, step, dtype=np.float64) - 0.5
    heights = np.histogram(sizes, edges)[0]
    axes.x, axes.y = (float(edges[0]), float(edges[-1])), (0.0, 1.05 * float(heights.max()))
    axes.x_label, axes.y_label = "records in the group", "groups"
    axes.steps(heights, edges, MAIN, MAIN_FILL, 1.0)
    axes.upright_line(low, INK, 1.0, "4 2.5")
    _whole(axes)


def _levels(axes: Axes, asked: Places, got: Places) -> None:
    points = np.column_stack([_coarse(asked), _coarse(got)])
    places, counts = np.unique(points, axis=0, return_counts=True)
    wide = np.sqrt(12.0 + 240.0 * counts / counts.max())
    ends = [float(asked.min()), float(asked.max())]
    reach = max(1.0, 0.1 * (ends[1] - ends[0]))
    line = [ends[0] - reach, ends[1] + reach]
    low, high = min(line[0], float(places[:, 1].min())), max(line[1], float(places[:, 1].max()))
    axes.x, axes.y = (
        (line[0] - reach / 2, line[1] + 2.5 * reach),
        (low - 0.08 * (high - low), high + 0.1 * (high - low)),
    )
    axes.x_label, axes.y_label = "level asked", "records in the group got"
    axes.marks(places[:, 0].tolist(), places[:, 1].tolist(), "circle", MAIN, MAIN_FILL, wide.tolist(), 1.0)
    axes.line(line, line, BASE, dash="4 2.5")
    axes.write(line[1], line[1], "asked = got", colour=MUTED, off=(4.0, 2.8))
    _whole(axes)


def _coarse(values: Places) -> Matrix:
    """Values rounded to at most `_MOST` places downwards, so that a dot never looks better than its records."""
    step = max(1, -(-(int(values.max()) - int(values.min()) + 1) // _MOST))
    return np.asarray(values.min() + np.floor((values - values.min()) / step) * step)


def _whole(axes: Axes) -> None:
    """Marks the axes at whole numbers alone."""
    axes.x_ticks, axes.y_ticks = (
        [(place, f"{place:.0f}") for place in ticks(*span, 6, whole=True)] for span in (axes.x, axes.y)
    )
