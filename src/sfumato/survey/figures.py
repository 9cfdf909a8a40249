"""Drawings that ``sfumato breach`` and ``sfumato reconstruct`` write, as SVG."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sfumato.assess.figures import BASE, MAIN, MAIN_FILL, MUTED, Axes, Figure, draw, label
from sfumato.core.distributions.amplification import downward_bound, upward_bound
from sfumato.core.distributions.domains import Dates, Labels
from sfumato.survey.breach import Breach, percent

if TYPE_CHECKING:
    from sfumato.survey.reconstruct.answers import Reconstruction

__all__ = ["guarantee_figure", "reconstruction_figure"]

_PRIORS = 401


def guarantee_figure(gamma: float, found: Breach | None = None) -> Figure:
    """The bounds of an amplification over all priors; of a property, its prior against its posterior."""

    def paint(axes: Axes) -> None:
        axes.x_label, axes.y_label = "probability of a property before the answer", "probability after the answer"
        _paint_bounds(axes, gamma)
        if found is not None:
            _paint_property(axes, found)

    return draw(
        "guarantee",
        paint,
        size=(4.8, 5.2),
        title="Probability of a property, before and after an answer",
        caption="",
        alt="How likely a property can become by one answer, over how likely it is before.",
        public=False,
    )


def _paint_bounds(axes: Axes, gamma: float) -> None:
    priors = [step / (_PRIORS - 1) for step in range(1, _PRIORS - 1)]  # what is certain before stays certain
    highest = [upward_bound(gamma, prior) for prior in priors]
    lowest = [downward_bound(gamma, prior) for prior in priors]
    axes.area(priors, lowest, highest, MAIN_FILL)
    axes.line(priors, highest, MAIN)
    axes.line(priors, lowest, MAIN)
    axes.line([0.0, 1.0], [0.0, 1.0], MUTED, dash="1.6 2")
    unbounded = "no guarantee: anything can become certain"
    axes.name(unbounded if math.isinf(gamma) else f"bound for any answer, gamma {gamma:.4g}", "area", MAIN, MAIN_FILL)
    axes.name("no information", "dotted", MUTED)


def _paint_property(axes: Axes, found: Breach) -> None:
    ends = [found.worst.lowest, found.worst.highest]
    axes.line([found.prior] * 2, ends, BASE)
    axes.marks([found.prior] * 2, ends, "circle", BASE, BASE)
    axes.name("this property, worst answers", "circle", BASE, BASE)
    if not any(math.isclose(found.posterior, end, rel_tol=1e-9) for end in ends):
        axes.marks([found.prior], [found.posterior], "diamond", BASE)
        axes.name("this property, this answer", "diamond", BASE)
    right = found.prior < 0.6
    axes.write(
        found.prior,
        found.worst.highest,
        f"{percent(found.prior)} \u2192 {percent(found.worst.highest)}",
        anchor="start" if right else "end",
        colour=BASE,
        off=(7.0 if right else -7.0, 12.0 if found.worst.highest > 0.9 else -6.0),
    )


def reconstruction_figure(found: Reconstruction, column: str) -> Figure:
    """The reconstructed distribution of a column with its bands."""

    def paint(axes: Axes) -> None:
        axes.x_label, axes.y_label = label(column, 60), "probability"
        axes.y = (0.0, float(np.nanmax([*found.probability, *found.upper, 1e-9])))
        if isinstance(found.cells.universe, Labels):
            _paint_labels(axes, found)
        else:
            _paint_intervals(axes, found)
        axes.name(f"{100 * found.level:g} % band of each", "area", MAIN, MAIN_FILL)

    return draw(
        "reconstruction",
        paint,
        size=(6.4, 3.6),
        title=f"Reconstructed distribution of {column}",
        caption="",
        alt=f"Distribution from {found.records} randomized records, worth about "
        f"{found.effective_records:.0f} without noise.",
        public=False,
    )


def _paint_labels(axes: Axes, found: Reconstruction) -> None:
    names = [label(str(value)) for value in found.values or ()]
    axes.x, axes.x_ticks = (-0.5, len(names) - 0.5), list(zip(range(len(names)), names, strict=True))
    axes.upright = len(names) > 4
    for place, (share, low, high) in enumerate(zip(found.probability, found.lower, found.upper, strict=True)):
        if low == low:
            axes.area([place - 0.35, place + 0.35], [low, low], [high, high], MAIN_FILL)
        axes.line([place - 0.35, place + 0.35], [share, share], MAIN, width=2.0)
    axes.name("probability", "line", MAIN)


def _paint_intervals(axes: Axes, found: Reconstruction) -> None:
    edges, universe = found.edges, found.cells.universe
    if edges is None:
        edges = universe.decode(found.cells.cuts).astype(np.float64) - universe.step / 2.0
    axes.x = float(edges[0]), float(edges[-1])
    if isinstance(universe, Dates):
        days = np.linspace(0, universe.size - 1, 5).astype(np.int64)
        axes.x_ticks = list(zip((days + universe.low).tolist(), universe.written(days), strict=True))
    low, high = np.nan_to_num(found.lower, nan=0.0), np.nan_to_num(found.upper, nan=0.0)
    axes.area(np.repeat(edges, 2)[1:-1].tolist(), np.repeat(low, 2).tolist(), np.repeat(high, 2).tolist(), MAIN_FILL)
    axes.steps(found.probability, edges, MAIN)
    axes.name("probability", "line", MAIN)
