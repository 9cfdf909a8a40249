"""Rows of bars and marks, each under its own name: readable on a phone, and without colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.assess.figures.svg import BASE, BASE_FILL, INK, MAIN, MAIN_FILL, Axes, label
from sfumato.assess.findings import Finding
from sfumato.assess.words import show

__all__ = ["MOST_ROWS", "Row", "paint_attacks", "paint_models", "row_of", "size_of"]

MOST_ROWS = 24
"""Most rows of a figure."""

_WIDTH = 4.4  # inches
_Interval = tuple[float, float] | None


@dataclass(frozen=True)
class Row:
    """One line of a figure: its text, a number with its interval, and what stands beside it."""

    text: str
    value: float
    interval: _Interval
    baseline: float | None
    control: float | None
    control_interval: _Interval


def row_of(finding: Finding, name: str) -> Row:
    """Make a line of a finding that has a value."""
    assert finding.value is not None
    return Row(
        f"{label(name, 44)}: {show(finding.value, finding.unit)}",
        finding.value,
        finding.interval,
        finding.baseline,
        finding.control,
        finding.control_interval,
    )


def size_of(rows: Sequence[Row]) -> tuple[float, float]:
    """Give the size of a figure of these rows, in inches."""
    return _WIDTH, 0.95 + 0.42 * len(rows)


def paint_attacks(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw the success of attacks as bars, with guessing and the control as marks."""
    places = np.arange(len(rows), dtype=np.float64)
    axes.barh(places, [row.value for row in rows], 0.34, color=MAIN_FILL, edgecolor=MAIN, linewidth=0.8)
    guessed = [(row.baseline, place) for place, row in zip(places, rows, strict=True) if row.baseline is not None]
    controlled = [row for row in rows if row.control is not None]
    for place, row in zip(places, rows, strict=True):
        _whisker(axes, place, row.interval, MAIN)
        if row.control is not None:
            _whisker(axes, place + 0.23, row.control_interval, BASE)
            axes.plot(row.control, place + 0.23, "o", color=BASE, markerfacecolor="none", markersize=4.5)
    guess = {"color": INK, "marker": "|", "markeredgewidth": 1.6}
    if guessed:
        axes.plot(*zip(*guessed, strict=True), linestyle="", markersize=15, **guess)
    marks = {"people in the table": _patch(MAIN_FILL, MAIN)}
    if controlled:
        marks["people held out"] = _mark(color=BASE, marker="o", markerfacecolor="none", markersize=4.5)
    if guessed:
        marks["guessing"] = _mark(linestyle="", markersize=9, **guess)
    _finish(axes, rows, marks)


def paint_models(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw what models reach that learnt from the original as bars, and from the released table as marks."""
    places = np.arange(len(rows), dtype=np.float64)
    axes.barh(places, [row.baseline or 0.0 for row in rows], 0.34, color=BASE_FILL, edgecolor=BASE, linewidth=0.8)
    for place, row in zip(places, rows, strict=True):
        _whisker(axes, place, row.interval, MAIN)
    axes.plot([row.value for row in rows], places, "D", color=MAIN, markersize=4.5)
    marks = {
        "learnt from the original": _patch(BASE_FILL, BASE),
        "from the released table": _mark(color=MAIN, marker="D", markersize=4.5),
    }
    _finish(axes, rows, marks)


def _patch(colour: str, edge: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, edgecolor=edge, linewidth=0.8)


def _mark(**style: Any) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], **style)


def _whisker(axes: Axes, place: float, interval: _Interval, colour: str) -> None:
    if interval is not None:
        axes.plot(interval, [place, place], "-", color=colour, linewidth=1.6, solid_capstyle="butt")


def _finish(axes: Axes, rows: Sequence[Row], marks: dict[str, Any]) -> None:
    from matplotlib.ticker import MaxNLocator

    for place, row in enumerate(rows):
        axes.text(0.0, place - 0.28, row.text, fontsize=8.0, color=INK, transform=axes.get_yaxis_transform())
    ends = [0.0]
    for row in rows:
        pieces = (row.value, row.baseline, row.control, *(row.interval or ()), *(row.control_interval or ()))
        ends += [piece for piece in pieces if piece is not None]
    low, high = min(ends), max(0.05, *ends)
    reach = 0.02 * (high - low)
    axes.set_xlim(low - reach if low < 0 else 0.0, high + reach)
    axes.set_ylim(len(rows) - 0.4, -0.75)
    axes.set_yticks([])
    axes.spines["left"].set_visible(low >= 0)
    if low < 0:
        places = np.arange(len(rows), dtype=np.float64)
        axes.vlines(np.zeros(len(rows)), places - 0.25, places + 0.35, color=INK, linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.legend(
        marks.values(), marks, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, handlelength=1.4
    )
