"""Rows of bars and marks, each with its name: attacks with baseline and control group, and scores of models.

They are readable on a phone, and without colour.

Distributions of distances to the closest record, of group sizes, and level asked against level got.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from sfumato.assess.figures import (
    BASE,
    BASE_FILL,
    INK,
    MAIN,
    MAIN_FILL,
    MUTED,
    Axes,
    Figure,
    draw,
    label,
    percents,
    ticks,
)
from sfumato.assess.findings import Finding, rank
from sfumato.assess.glossary import percent, show, spoken_name
from sfumato.assess.risk.closest import Closest
from sfumato.assess.study import Matrix, Places
from sfumato.methods.protocol import OwnerDetails

__all__ = ["MOST_ROWS", "attack_figures", "by_figure", "distance_figures", "group_figures", "model_figures"]

MOST_ROWS = 24
"""Most rows of a figure."""
_WIDTH = 4.4  # inches
_Interval = tuple[float, float] | None
_Row = tuple[str, Finding]  # a line of a figure: its text, and what is drawn
_KINDS = {
    "models/auc": ("Classes: area under the ROC curve", "AUC"),
    "models/balanced-accuracy": ("Classes: balanced accuracy", "balanced accuracy"),
    "models/accuracy": ("Classes: accuracy on real rows", "accuracy"),
    "models/response-correlation": ("Numbers: correlation of prediction and truth", "correlation"),
    "models/response-accuracy": ("Numbers: predictions within the tolerance", "share of people"),
    "models/response-r2": ("Numbers: share of the variance explained, R\u00b2", "R\u00b2"),
}
MOST_ATTACKS = 12
"""Most attacks of the figure of all."""
_ATTACKS = (
    "Bar: success on members. Circle: success on the control group; the bar beyond the circle is the excess, and the "
    "largest excess stands first. Upright mark: baseline, by guessing or on unrelated data. Thin lines: 95\u00a0% "
    "confidence intervals."
)
_SCORES = "AUC of membership inference: 0.5 is guessing, 1 is always right. Circle: control group; mark: guessing."
_WHOLE = {
    "attacks/all": ("Success of every attack", _ATTACKS),
    "attacks/scores": ("Membership inference, AUC", _SCORES),
}
_MODELS = (
    "Both models were tested on the same real rows, which neither had seen. Lines: 95\u00a0% confidence intervals. A "
    "mark at the end of its bar means no loss."
)


def _row_of(finding: Finding, name: str, *, attack: bool = False) -> _Row:
    """A line of a finding that has a value; of an attack as a percentage."""
    assert finding.value is not None
    number = percent(finding.value) if attack and finding.unit == "share" else show(finding.value, finding.unit)
    return f"{label(name, 52)}: {number}", finding


def _size(rows: Sequence[_Row]) -> tuple[float, float]:
    return _WIDTH, 0.95 + 0.42 * len(rows)


def by_figure(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings that have a value, by the name of the figure that is declared to show them."""
    from sfumato.assess.measure import number_of

    shown: dict[str, list[Finding]] = {}
    for finding in findings:
        number = number_of(finding.name)
        if number is not None and number.figure and finding.value is not None:
            shown.setdefault(number.figure, []).append(finding)
    return shown


def attack_figures(findings: Sequence[Finding]) -> tuple[Figure, ...]:
    """Attacks that hit people, attacks that score, and each on single columns; where the owner may see more, twice."""
    shown = {name: some for name, some in by_figure(findings).items() if name.startswith("attacks/")}
    figures: list[Figure] = []
    for name in sorted(shown, key=lambda name: (name != "attacks/all", name != "attacks/scores")):
        some = shown[name]
        if name not in _WHOLE and len(some) < 2:
            continue
        public = [finding for finding in some if finding.public]
        if public:
            figures.append(_attack_figure(name, public, public=True))
        if len(public) < len(some):
            figures.append(_attack_figure(name, some, public=False))
    return tuple(figures)


def _attack_figure(name: str, findings: Sequence[Finding], *, public: bool) -> Figure:
    ranked = sorted(findings, key=rank)
    top, most = ranked[0], MOST_ATTACKS if name == "attacks/all" else MOST_ROWS
    rows = [_row_of(finding, _title(finding), attack=True) for finding in ranked[:most]]
    left = f" The first {most} of {len(ranked)} are drawn." if len(ranked) > most else ""
    spoken = spoken_name(name.removeprefix("attacks/"))
    usual = (f"{spoken}, by column", "Bars, marks and circles as in the figure of all attacks.")
    title, caption = _WHOLE.get(name, usual)
    beside = "" if top.control is None else f", against {show(top.control, top.unit)} on the control group"
    return draw(
        name,
        lambda axes: _paint_rates(axes, rows, scores=any(finding.unit != "share" for finding in findings)),
        size=_size(rows),
        title=title,
        caption=caption + left,
        alt=f"{title}: {len(rows)} bars. First stands {_title(top)} with {show(top.value, top.unit)}{beside}.",
        public=public,
    )


def _paint_rates(axes: Axes, rows: Sequence[_Row], *, scores: bool) -> None:
    _paint_attacks(axes, rows)
    axes.x_label = "score" if scores else "success"
    if not scores:
        places = ticks(*axes.x, 5)
        axes.x_ticks = list(zip(places, percents(places), strict=True))


def _title(finding: Finding) -> str:
    column = finding.name.partition("/")[2]
    return column or spoken_name(finding.name)


def model_figures(findings: Sequence[Finding]) -> tuple[Figure, ...]:
    """A figure for each kind of model, and for the owner one of the classes of each model."""
    shown = by_figure(finding for finding in findings if finding.baseline is not None)
    classes = [name for name in shown if name.startswith("models/") and name not in _KINDS]
    return tuple(_model_figure(name, shown[name]) for name in (*_KINDS, *classes) if name in shown)


def _model_figure(figure: str, findings: Sequence[Finding]) -> Figure:
    name = figure.removeprefix("models/")
    of_classes = (f"{spoken_name(name)}: recall of each class", "recall")
    title, axis = _KINDS.get(figure, of_classes)
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
        axes.x_label = axis
        if all(finding.unit == "share" for finding in findings):
            places = ticks(*axes.x, 5)
            axes.x_ticks = list(zip(places, percents(places), strict=True))

    caption = (_MODELS if figure in _KINDS else "Bars and marks as above.") + left
    alt = f"{title}: {len(rows)} bars for models trained on the original, and marks for models trained on the release."
    public = all(finding.public for finding in findings)
    return draw(figure, paint, size=_size(rows), title=title, caption=caption, alt=alt, public=public)


def _paint_attacks(axes: Axes, rows: Sequence[_Row]) -> None:
    """Draws the success of attacks as bars, with guessing and the control as marks."""
    _frame(axes, rows)
    axes.bars(range(len(rows)), [row.value or 0.0 for _, row in rows], 0.34, MAIN, MAIN_FILL)
    axes.name("members", "area", MAIN, MAIN_FILL)
    guessed, controlled = [], []
    for place, (_, row) in enumerate(rows):
        _whisker(axes, place, row.interval, MAIN)
        if row.control is not None:
            _whisker(axes, place + 0.23, row.control_interval, BASE)
            controlled.append((row.control, place + 0.23))
        elif row.baseline is not None:  # one comparison a row
            guessed.append((row.baseline, place))
    for points, text, shape, colour, size in (
        (controlled, "control group", "circle", BASE, 4.5),
        (guessed, "baseline", "bar", INK, 15.0),
    ):
        if points:
            xs, ys = zip(*points, strict=True)
            axes.marks(xs, ys, shape, colour, sizes=size)
            axes.name(text, shape, colour, size=min(size, 9.0))


def _paint_models(axes: Axes, rows: Sequence[_Row]) -> None:
    """Draws what models reach that learnt from the original as bars, and from the released table as marks."""
    _frame(axes, rows)
    axes.bars(range(len(rows)), [row.baseline or 0.0 for _, row in rows], 0.34, BASE, BASE_FILL)
    axes.name("trained on the original", "area", BASE, BASE_FILL)
    for place, (_, row) in enumerate(rows):
        _whisker(axes, place, row.interval, MAIN)
    axes.marks([row.value or 0.0 for _, row in rows], range(len(rows)), "diamond", MAIN, MAIN)
    axes.name("trained on the release", "diamond", MAIN, MAIN)


def _whisker(axes: Axes, place: float, interval: _Interval, colour: str) -> None:
    if interval is not None:
        axes.line(interval, [place, place], colour, 1.6)


def _frame(axes: Axes, rows: Sequence[_Row]) -> None:
    """The ends of the axes, the name of each row over it, and where 0 is."""
    ends = [0.0]
    for _, row in rows:
        pieces = (row.value, row.baseline, row.control, *(row.interval or ()), *(row.control_interval or ()))
        ends += [piece for piece in pieces if piece is not None]
    low, high = min(ends), max(0.05, *ends)
    reach = 0.02 * (high - low)
    axes.x, axes.y = (low - reach if low < 0 else 0.0, high + reach), (len(rows) - 0.4, -0.75)
    axes.y_ticks, axes.lines = [], "left bottom" if low >= 0 else "bottom"
    for place, (text, _) in enumerate(rows):
        axes.write(axes.x[0], place - 0.28, text, off=(2.0, 0.0))
        if low < 0:
            axes.line([0.0, 0.0], [place - 0.25, place + 0.35], INK, 0.8)


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
            title="Distance to closest record",
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


def group_figures(workings: OwnerDetails) -> tuple[Figure, ...]:
    """Histogram of group sizes and the counts of records by level asked and got; for the owner alone."""
    if workings.labels is None or workings.levels is None:
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
