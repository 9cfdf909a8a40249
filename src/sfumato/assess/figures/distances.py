"""Distances to the closest record, released beside original; for the owner's eyes only."""

from __future__ import annotations

import numpy as np

from sfumato.assess.figures.svg import BASE, BASE_FILL, INK, MAIN, Axes, Figure, draw
from sfumato.assess.risk.closest import Closest

__all__ = ["distance_figures"]

_BINS = 40


def distance_figures(closest: Closest | None) -> tuple[Figure, ...]:
    """Draw the histogram of distances to the nearest original row."""
    if closest is None:
        return ()
    held = "" if closest.held_out is None else " Dotted: released rows to rows held out."
    return (
        draw(
            "distances/closest",
            lambda axes: _paint(axes, closest),
            size=(5.2, 3.2),
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


def _paint(axes: Axes, closest: Closest) -> None:
    parts = [closest.original, closest.released, *([] if closest.held_out is None else [closest.held_out])]
    high = max(float(np.quantile(part, 0.995)) for part in parts) or 1.0
    edges = np.linspace(0.0, high, _BINS + 1)
    shares = [np.histogram(np.minimum(part, high), edges)[0] / len(part) for part in parts]
    axes.stairs(shares[0], edges, fill=True, color=BASE_FILL, edgecolor=BASE, linewidth=0.8, label="original")
    axes.stairs(shares[1], edges, color=MAIN, linewidth=1.8, label="released")
    if closest.held_out is not None:
        axes.stairs(shares[2], edges, color=INK, linewidth=1.2, linestyle=":", label="released to held out")
    axes.axvline(float(np.median(closest.original)), color=BASE, linestyle="--", linewidth=1.2)
    axes.axvline(float(np.median(closest.released)), color=MAIN, linewidth=1.2)
    axes.set_xlabel("distance, in standard deviations")
    axes.set_ylabel("share of rows")
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, borderaxespad=0.2)
