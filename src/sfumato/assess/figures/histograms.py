"""Distributions of distances to the closest record, of group sizes, and level asked against level got."""

from __future__ import annotations

import numpy as np

from sfumato.assess.figures.svg import BASE, BASE_FILL, INK, MAIN, MAIN_FILL, MUTED, Axes, Figure, draw
from sfumato.assess.risk.closest import Closest
from sfumato.assess.study import Matrix, Places
from sfumato.mechanisms.protocol import Workings

__all__ = ["distance_figures", "group_figures"]

_LARGE = (5.2, 3.2)
_MOST = 40


def _percent(value: float, _: float) -> str:
    return f"{100 * value:.3g} %"


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
