"""Rows of bars and marks, each under its own name: attacks beside guessing and people held out, and what models reach.

They are readable on a phone, and without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.assess.catalogue import declared
from sfumato.assess.figures.svg import BASE, BASE_FILL, INK, MAIN, MAIN_FILL, Axes, Figure, draw, label
from sfumato.assess.findings import Family, Finding, is_rate, rank
from sfumato.assess.plain import attack_name, hundred
from sfumato.assess.words import show, spoken_name

__all__ = ["MOST_ATTACKS", "MOST_ROWS", "attack_figures", "model_figures"]

MOST_ROWS = 24
"""Most rows of a figure."""
_WIDTH = 4.4  # inches
_Interval = tuple[float, float] | None
_KINDS = {
    "models/accuracy": ("Classes: share of real rows told right", "share of rows told right"),
    "models/response-correlation": ("Numbers: correlation of answer and truth", "correlation"),
    "models/response-r2": ("Numbers: share of the variance explained, R\u00b2", "R\u00b2"),
}
MOST_ATTACKS = 12
"""Most attacks of the figure of all."""
_ATTACKS = (
    "Bar: of 100 people in the table, how many each attack hits. Circle: of 100 people who are not in it. What the bar "
    "has beyond the circle is the price of being in the table; the highest price stands first. An upright mark, where "
    "there is no circle: a table that knows nobody, or guessing. Thin lines: where the number may lie, 95 times of 100."
)
_SCORES = (
    "How sure an attacker can be of who is in the table: at 0.5 he knows no more than a coin, at 1 he is always right. "
    "Circle or mark: knowing nothing."
)
_MODELS = (
    "Both were tested on the same real rows that neither had seen; lines are 95 % intervals. Where the mark reaches "
    "the end of the bar nothing was lost."
)


@dataclass(frozen=True)
class _Row:
    """One line of a figure: its text, a number with its interval, and what stands beside it."""

    text: str
    value: float
    interval: _Interval
    baseline: float | None
    control: float | None
    control_interval: _Interval


def _row_of(finding: Finding, name: str, *, attack: bool = False) -> _Row:
    """A line of a finding that has a value; of an attack so many of 100."""
    assert finding.value is not None
    number = hundred(finding.value) if attack and finding.unit == "share" else show(finding.value, finding.unit)
    return _Row(
        f"{label(name, 44)}: {number}",
        finding.value,
        finding.interval,
        finding.baseline,
        finding.control,
        finding.control_interval,
    )


def _size(rows: Sequence[_Row]) -> tuple[float, float]:
    return _WIDTH, 0.95 + 0.42 * len(rows)


def attack_figures(findings: Sequence[Finding]) -> tuple[Figure, ...]:
    """Attacks that hit people, attacks that score, and each on single columns; where the owner may see more, twice."""
    shown = [finding for finding in findings if is_rate(finding)]
    groups: dict[str, list[Finding]] = {}
    for finding in shown:
        first, slash, _ = finding.name.partition("/")
        kind = first if slash else "all" if finding.unit == "share" else "scores"
        groups.setdefault(kind, []).append(finding)
    figures: list[Figure] = []
    for name, some in sorted(groups.items(), key=lambda pair: (pair[0] != "all", pair[0] != "scores")):
        if name not in ("all", "scores") and len(some) < 2:
            continue
        public = [finding for finding in some if finding.public]
        if public:
            figures.append(_attack_figure(name, public, public=True))
        if len(public) < len(some):
            figures.append(_attack_figure(name, some, public=False))
    return tuple(figures)


def _attack_figure(name: str, findings: Sequence[Finding], *, public: bool) -> Figure:
    ranked = sorted(findings, key=rank)
    top, most = ranked[0], MOST_ATTACKS if name == "all" else MOST_ROWS
    rows = [_row_of(finding, _title(finding), attack=True) for finding in ranked[:most]]
    left = f" Drawn are {most} of {len(ranked)}." if len(ranked) > most else ""
    told = {"all": ("How far attackers get", _ATTACKS), "scores": ("How sure attackers can be", _SCORES)}
    usual = (f"{spoken_name(name)}, column by column", "Bars, marks and circles as in the figure of all attacks.")
    title, caption = told.get(name, usual)
    beside = (
        "" if top.control is None else f", against {show(top.control, top.unit)} on people who are not in the table"
    )
    return draw(
        f"attacks/{name}",
        lambda axes: _paint_rates(axes, rows, scores=any(finding.unit != "share" for finding in findings)),
        size=_size(rows),
        title=title,
        caption=caption + left,
        alt=f"{title}: {len(rows)} bars. First stands {_title(top)} with {show(top.value, top.unit)}{beside}.",
        public=public,
    )


def _paint_rates(axes: Axes, rows: Sequence[_Row], *, scores: bool) -> None:
    _paint_attacks(axes, rows)
    if scores:
        axes.set_xlabel("score")
        return
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}")
    axes.set_xlabel("of 100")


def _title(finding: Finding) -> str:
    column = finding.name.partition("/")[2]
    return column or attack_name(finding.name)


def model_figures(findings: Sequence[Finding]) -> tuple[Figure, ...]:
    """A figure for each kind of model, and for the owner one of the classes of each model."""
    known = [f for f in findings if f.family is Family.UTILITY and f.value is not None and f.baseline is not None]
    numbers, figures = declared(), []
    for name, (title, axis) in _KINDS.items():
        some = [f for f in known if f.name in numbers and numbers[f.name].figure == name and f.public]
        if some:
            figures.append(_model_figure(name.removeprefix("models/"), some, title, axis, public=True))
    classes: dict[str, list[Finding]] = {}
    for finding in known:
        first, slash, _ = finding.name.partition("/")
        if slash and first.startswith("recall"):
            classes.setdefault(first, []).append(finding)
    for name, some in classes.items():
        title, public = f"{spoken_name(name)}: share of each class found", all(f.public for f in some)
        figures.append(_model_figure(name, some, title, "share of the class found", public=public))
    return tuple(figures)


def _model_figure(name: str, findings: Sequence[Finding], title: str, axis: str, *, public: bool) -> Figure:
    chosen = (
        findings
        if len(findings) <= MOST_ROWS
        else sorted(findings, key=lambda f: (f.value or 0.0) - (f.baseline or 0.0))[:MOST_ROWS]
    )
    rows = [
        _row_of(finding, finding.name.partition("/")[2] or spoken_name(finding.name.removeprefix(f"{name}-")))
        for finding in chosen
    ]
    left = f" Drawn are the {MOST_ROWS} of {len(findings)} that lost most." if len(chosen) < len(findings) else ""

    def paint(axes: Axes) -> None:
        _paint_models(axes, rows)
        axes.set_xlabel(axis)
        if all(finding.unit == "share" for finding in findings):
            axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")

    caption = "Bars and marks as above." if name.startswith("recall") else _MODELS
    alt = f"{title}: {len(rows)} bars for models that learnt from the original, and marks for the released table."
    return draw(f"models/{name}", paint, size=_size(rows), title=title, caption=caption + left, alt=alt, public=public)


def _paint_attacks(axes: Axes, rows: Sequence[_Row]) -> None:
    """Draws the success of attacks as bars, with guessing and the control as marks."""
    places = np.arange(len(rows), dtype=np.float64)
    axes.barh(places, [row.value for row in rows], 0.34, color=MAIN_FILL, edgecolor=MAIN, linewidth=0.8)
    guessed = [
        (row.baseline, place)
        for place, row in zip(places, rows, strict=True)
        if row.baseline is not None and row.control is None  # one comparison a row
    ]
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
        marks["people not in it"] = _mark(color=BASE, marker="o", markerfacecolor="none", markersize=4.5)
    if guessed:
        marks["guessing"] = _mark(linestyle="", markersize=9, **guess)
    _finish(axes, rows, marks)


def _paint_models(axes: Axes, rows: Sequence[_Row]) -> None:
    """Draws what models reach that learnt from the original as bars, and from the released table as marks."""
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


def _finish(axes: Axes, rows: Sequence[_Row], marks: dict[str, Any]) -> None:
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
