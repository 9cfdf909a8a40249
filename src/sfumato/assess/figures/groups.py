"""Group sizes, and level asked against level got; for the owner's eyes only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.figures.svg import BASE, INK, MAIN, MAIN_FILL, MUTED, Axes, Figure, draw
from sfumato.mechanism import Workings

__all__ = ["group_figures"]

_BINS = 40
_SIZE = (5.2, 3.2)


def group_figures(workings: Workings | None) -> tuple[Figure, ...]:
    """Draw the histogram of group sizes and the counts of records by level asked and got."""
    if workings is None or workings.labels is None or workings.levels is None:
        return ()
    _, places, sizes = np.unique(workings.labels, return_inverse=True, return_counts=True)
    got, asked = sizes[places], workings.levels
    met = int((got >= asked).sum())
    return (
        draw(
            "groups/sizes",
            lambda axes: _sizes(axes, sizes),
            size=_SIZE,
            title="Group sizes",
            caption=f"{len(sizes)} groups; the dashed line is the smallest.",
            alt=f"Histogram of the sizes of {len(sizes)} groups, from {sizes.min()} to {sizes.max()} records.",
            public=False,
        ),
        draw(
            "groups/levels",
            lambda axes: _levels(axes, asked, got),
            size=_SIZE,
            title="Level asked, level got",
            caption=(
                f"{met} of {len(got)} records got at least the level they asked for. The larger a dot, the more "
                "records; a dot below the dashed line would be a broken promise."
            ),
            alt=f"Level asked against size of the group got; {met} of {len(got)} records got at least their level.",
            public=False,
        ),
    )


def _sizes(axes: Axes, sizes: NDArray[np.int64]) -> None:
    low, high = int(sizes.min()), int(sizes.max())
    step = max(1, -(-(high - low + 1) // _BINS))
    edges = np.arange(low, high + step + 1, step) - 0.5
    axes.stairs(np.histogram(sizes, edges)[0], edges, fill=True, color=MAIN_FILL, edgecolor=MAIN, linewidth=1.0)
    axes.axvline(low, color=INK, linestyle="--", linewidth=1.0)
    axes.set_xlabel("records in the group")
    axes.set_ylabel("groups")
    _whole(axes)
    axes.set_ylim(bottom=0.0)


def _levels(axes: Axes, asked: NDArray[np.int64], got: NDArray[np.int64]) -> None:
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


def _coarse(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Round to at most `_BINS` places downwards, so that a dot never looks better than its records."""
    step = max(1, -(-(int(values.max()) - int(values.min()) + 1) // _BINS))
    return np.asarray(values.min() + np.floor((values - values.min()) / step) * step)


def _whole(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
