"""How far attacks get: bars with their intervals, beside guessing and beside people held out."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.assess.figures.rows import MOST_ROWS, Row, paint_attacks, row_of, size_of
from sfumato.assess.figures.svg import Axes, Figure, draw
from sfumato.assess.findings import Finding
from sfumato.assess.gains import is_rate, rank
from sfumato.assess.words import show, spoken_name

__all__ = ["risk_figures"]

_CAPTION = (
    "What an attack gets on people in the table (bar), by guessing or from a release that knows nobody (upright mark) "
    "and on people held out (circle); "
    "lines are 95 % intervals. A bar that reaches beyond the circle is what being in the table cost; at the top the "
    "attack that gains most, at the end what no claim rules out."
)


def risk_figures(findings: Sequence[Finding]) -> tuple[Figure, ...]:
    """Draw all attacks, and each attack on single columns; where the owner may see more, twice."""
    shown = [finding for finding in findings if is_rate(finding)]
    groups: dict[str, list[Finding]] = {}
    for finding in shown:
        first, slash, _ = finding.name.partition("/")
        groups.setdefault(first if slash else "", []).append(finding)
    figures: list[Figure] = []
    for name, some in sorted(groups.items(), key=lambda pair: pair[0] != ""):
        if name and len(some) < 2:
            continue
        public = [finding for finding in some if finding.public]
        if public:
            figures.append(_figure(name, public, public=True))
        if len(public) < len(some):
            figures.append(_figure(name, some, public=False))
    return tuple(figures)


def _figure(name: str, findings: Sequence[Finding], *, public: bool) -> Figure:
    ranked = sorted(findings, key=rank)
    top = ranked[0]
    rows = [row_of(finding, _title(finding)) for finding in ranked[:MOST_ROWS]]
    left = f" Drawn are {MOST_ROWS} of {len(ranked)}." if len(ranked) > MOST_ROWS else ""
    title = f"{spoken_name(name)}, column by column" if name else "Attacks"
    beside = "" if top.control is None else f", against {show(top.control, top.unit)} on people held out"
    return draw(
        f"attacks/{name or 'all'}",
        lambda axes: _paint(axes, rows, scores=any(finding.unit != "share" for finding in findings)),
        size=size_of(rows),
        title=title,
        caption=("Bars, marks and circles as in the figure of all attacks." if name else _CAPTION) + left,
        alt=f"{title}: {len(rows)} bars. First stands {_title(top)} with {show(top.value, top.unit)}{beside}.",
        public=public,
    )


def _paint(axes: Axes, rows: Sequence[Row], *, scores: bool) -> None:
    paint_attacks(axes, rows)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    axes.set_xlabel("attempts that succeed" + (", or score in % of the worst" if scores else ""))


def _title(finding: Finding) -> str:
    column = finding.name.partition("/")[2]
    return column or spoken_name(finding.name)
