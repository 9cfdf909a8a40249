"""The frontier of utility against attack success, and both over the group size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.assess.figures.svg import BASE, FAINT, INK, MAIN, MUTED, Axes, Figure, draw
from sfumato.tuning.model import Tuning

__all__ = ["tuning_figures"]

_SIZE = (6.4, 4.2)
_SHAPES = {"approximate GCD": "s", "rule-based": "^", "brute force": "D"}


def tuning_figures(tuning: Tuning) -> tuple[Figure, ...]:
    """The frontier, and utility, linkage and the interval metric over the size; for the owner."""
    trials, count = tuning.trials, len(tuning.trials)
    size = "leaf size" if tuning.parameter == "leaf" else "group size"
    marked = ", ".join(f"{mark.rule} {mark.size}" for mark in tuning.marks)
    ruled = f" Chosen by the paper's rules: {marked}." if marked else ""
    dashed = " Dashed: the smallest class alone." if trials[0].smallest is not None else ""
    told: dict[str, tuple[Callable[[Axes], None], str, str, str]] = {
        "linkage": (
            lambda axes: _frontier(axes, tuning),
            "Utility against attack success",
            f"Each dot is a {size}, with 95 % intervals; up and to the left is better. The line joins the sizes "
            f"that no other beats in both. Recommended: {tuning.choice.size}.{ruled}",
            f"Scatter plot of {count} {size}s: {tuning.words} against the share of people linked.",
        ),
        "utility": (
            lambda axes: _over_size(axes, tuning),
            f"Utility over the {size}",
            f"With 95 % intervals of the mean over the splits. Dotted: the original rows themselves.{dashed}",
            f"Line of {tuning.words} over {count} {size}s.",
        ),
        "people": (
            lambda axes: _people(axes, tuning),
            f"People linked, over the {size}",
            "Line: people of the table, with 95 % intervals. Dashed: people who are not in it. What lies between is "
            "the price of being in the table; less is better.",
            f"Lines of the share of people linked, in the table and held out, over {count} {size}s.",
        ),
        "interval": (
            lambda axes: _interval(axes, tuning),
            f"Interval metric over the {size}",
            "The width of the interval that holds an intruder's error 95 of 100 times, as a share of the column's "
            "range, mean over the columns of numbers; more is better.",
            f"Line of the interval metric over {count} {size}s.",
        ),
    }
    if all(trial.interval is None for trial in trials):
        del told["interval"]
    return tuple(
        draw(f"frontier/{name}", paint, size=_SIZE, title=title, caption=caption, alt=alt, public=False)
        for name, (paint, title, caption, alt) in told.items()
    )


def _frontier(axes: Axes, tuning: Tuning) -> None:
    trials = tuning.trials
    front = [trial for trial in trials if trial.size in tuning.front]
    front.sort(key=lambda trial: trial.linkage.share)
    axes.plot(
        [100 * trial.linkage.share for trial in front], [trial.utility for trial in front], color=FAINT, linewidth=2.0
    )
    for trial in trials:
        x, y = 100 * trial.linkage.share, trial.utility
        low, high = (100 * edge for edge in trial.linkage_interval)
        axes.plot([low, high], [y, y], color=MUTED, linewidth=0.8)
        if trial.utility_interval is not None:
            axes.plot([x, x], trial.utility_interval, color=MUTED, linewidth=0.8)
        axes.plot([x], [y], "o", color=MAIN, markersize=5.0)
    _label_sizes(axes, tuning)
    for mark in tuning.marks:
        trial = tuning[mark.size]
        shape = _SHAPES.get(mark.rule, "o")
        axes.plot(
            [100 * trial.linkage.share],
            [trial.utility],
            shape,
            color=BASE,
            fillstyle="none",
            markersize=11.0 + 3 * list(_SHAPES).index(mark.rule),
            label=f"{mark.rule}: {mark.size}",
        )
    chosen = tuning[tuning.choice.size]
    axes.plot(
        [100 * chosen.linkage.share],
        [chosen.utility],
        "*",
        color=INK,
        markersize=12,
        label=f"recommended: {chosen.size}",
    )
    axes.set_xlabel("people linked to a released row, %")
    axes.set_ylabel(tuning.words)
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)


def _label_sizes(axes: Axes, tuning: Tuning) -> None:
    """Write the size beside a dot, unless the dot before it is too near."""
    xs = np.array([100 * trial.linkage.share for trial in tuning.trials])
    ys = np.array([trial.utility for trial in tuning.trials])
    spans = max(float(np.ptp(xs)), 1e-9), max(float(np.ptp(ys)), 1e-9)
    written: list[tuple[float, float]] = []
    for trial, x, y in zip(tuning.trials, xs / spans[0], ys / spans[1], strict=True):
        if all(abs(x - other) > 0.06 or abs(y - height) > 0.06 for other, height in written):
            axes.annotate(
                str(trial.size), (x * spans[0], y * spans[1]), xytext=(5, 4), textcoords="offset points", color=INK
            )
            written.append((float(x), float(y)))


def _over_size(axes: Axes, tuning: Tuning) -> None:
    trials = tuning.trials
    sizes = [trial.size for trial in trials]
    axes.plot(sizes, [trial.utility for trial in trials], "o-", color=MAIN, markersize=4.0, label=tuning.words)
    for trial in trials:
        if trial.utility_interval is not None:
            axes.plot([trial.size, trial.size], trial.utility_interval, color=MAIN, linewidth=0.9)
    if trials[0].smallest is not None:
        smallest = [np.nan if trial.smallest is None else trial.smallest for trial in trials]
        axes.plot(sizes, smallest, "o--", color=BASE, markersize=4.0, label="smallest class")
    if tuning.baseline is not None:
        axes.axhline(tuning.baseline, color=INK, linestyle=":", linewidth=1.0, label="original")
    axes.axvline(tuning.choice.size, color=FAINT, linewidth=1.5)
    _size_axis(axes, tuning, tuning.words)


def _people(axes: Axes, tuning: Tuning) -> None:
    trials = tuning.trials
    sizes = [trial.size for trial in trials]
    axes.plot(sizes, [100 * trial.linkage.share for trial in trials], "o-", color=MAIN, markersize=4.0, label="linked")
    for trial in trials:
        axes.plot([trial.size] * 2, [100 * edge for edge in trial.linkage_interval], color=MAIN, linewidth=0.9)
    controls = [100 * trial.control.share for trial in trials]
    axes.plot(sizes, controls, "o--", color=BASE, markersize=4.0, label="people held out")
    axes.set_ylim(bottom=0.0)
    _size_axis(axes, tuning, "people linked, %")


def _interval(axes: Axes, tuning: Tuning) -> None:
    known = [(trial.size, trial.interval) for trial in tuning.trials if trial.interval is not None]
    axes.plot(*zip(*known, strict=True), "o-", color=MAIN, markersize=4.0, label="interval metric")
    axes.set_ylim(bottom=0.0)
    _size_axis(axes, tuning, "interval metric")


def _size_axis(axes: Axes, tuning: Tuning, words: str) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.set_xlabel("leaf size" if tuning.parameter == "leaf" else "group size k")
    axes.set_ylabel(words)
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, borderaxespad=0.2)
