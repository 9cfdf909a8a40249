"""Rows of bars and marks, each under its own name: attacks beside guessing and people held out, and what models reach.

They are readable on a phone, and without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.assess.catalogue import declared
from sfumato.assess.figures.axes import Axes, draw
from sfumato.assess.figures.scales import percents, ticks
from sfumato.assess.figures.svg import BASE, BASE_FILL, INK, MAIN, MAIN_FILL, Figure, label
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
    axes.x_label = "score" if scores else "of 100"
    if not scores:
        axes.x_ticks = [(place, f"{100 * place:.3g}") for place in ticks(*axes.x, 5)]


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
        axes.x_label = axis
        if all(finding.unit == "share" for finding in findings):
            places = ticks(*axes.x, 5)
            axes.x_ticks = list(zip(places, percents(places), strict=True))

    caption = "Bars and marks as above." if name.startswith("recall") else _MODELS
    alt = f"{title}: {len(rows)} bars for models that learnt from the original, and marks for the released table."
    return draw(f"models/{name}", paint, size=_size(rows), title=title, caption=caption + left, alt=alt, public=public)


def _paint_attacks(axes: Axes, rows: Sequence[_Row]) -> None:
    """Draws the success of attacks as bars, with guessing and the control as marks."""
    _frame(axes, rows)
    axes.bars(range(len(rows)), [row.value for row in rows], 0.34, MAIN, MAIN_FILL)
    axes.name("people in the table", "area", MAIN, MAIN_FILL)
    guessed, controlled = [], []
    for place, row in enumerate(rows):
        _whisker(axes, place, row.interval, MAIN)
        if row.control is not None:
            _whisker(axes, place + 0.23, row.control_interval, BASE)
            controlled.append((row.control, place + 0.23))
        elif row.baseline is not None:  # one comparison a row
            guessed.append((row.baseline, place))
    for points, text, shape, colour, size in (
        (controlled, "people not in it", "circle", BASE, 4.5),
        (guessed, "guessing", "bar", INK, 15.0),
    ):
        if points:
            xs, ys = zip(*points, strict=True)
            axes.marks(xs, ys, shape, colour, sizes=size)
            axes.name(text, shape, colour, size=min(size, 9.0))


def _paint_models(axes: Axes, rows: Sequence[_Row]) -> None:
    """Draws what models reach that learnt from the original as bars, and from the released table as marks."""
    _frame(axes, rows)
    axes.bars(range(len(rows)), [row.baseline or 0.0 for row in rows], 0.34, BASE, BASE_FILL)
    axes.name("learnt from the original", "area", BASE, BASE_FILL)
    for place, row in enumerate(rows):
        _whisker(axes, place, row.interval, MAIN)
    axes.marks([row.value for row in rows], range(len(rows)), "diamond", MAIN, MAIN)
    axes.name("from the released table", "diamond", MAIN, MAIN)


def _whisker(axes: Axes, place: float, interval: _Interval, colour: str) -> None:
    if interval is not None:
        axes.line(interval, [place, place], colour, 1.6)


def _frame(axes: Axes, rows: Sequence[_Row]) -> None:
    """The ends of the axes, the name of each row over it, and where 0 is."""
    ends = [0.0]
    for row in rows:
        pieces = (row.value, row.baseline, row.control, *(row.interval or ()), *(row.control_interval or ()))
        ends += [piece for piece in pieces if piece is not None]
    low, high = min(ends), max(0.05, *ends)
    reach = 0.02 * (high - low)
    axes.x, axes.y = (low - reach if low < 0 else 0.0, high + reach), (len(rows) - 0.4, -0.75)
    axes.y_ticks, axes.lines = [], "left bottom" if low >= 0 else "bottom"
    for place, row in enumerate(rows):
        axes.write(axes.x[0], place - 0.28, row.text, off=(2.0, 0.0))
        if low < 0:
            axes.line([0.0, 0.0], [place - 0.25, place + 0.35], INK, 0.8)
