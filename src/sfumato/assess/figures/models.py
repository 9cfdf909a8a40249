"""What models reach that learnt from the released table, beside models that learnt from the original."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.assess.figures.rows import MOST_ROWS, paint_models, row_of, size_of
from sfumato.assess.figures.svg import Axes, Figure, draw
from sfumato.assess.findings import Family, Finding
from sfumato.assess.words import spoken_name

__all__ = ["model_figures"]

_KINDS = {
    "accuracy": ("Classes: share of real rows told right", "share of rows told right"),
    "response-correlation": ("Numbers: correlation of answer and truth", "correlation"),
    "response-r2": ("Numbers: share of the variance explained, R\u00b2", "R\u00b2"),
}
_CAPTION = (
    "Both were tested on the same real rows that neither had seen; lines are 95 % intervals. Where the mark reaches "
    "the end of the bar nothing was lost."
)


def model_figures(findings: Sequence[Finding]) -> tuple[Figure, ...]:
    """Draw a figure for each kind of model, and for the owner one of the classes of each model."""
    known = [f for f in findings if f.family is Family.UTILITY and f.value is not None and f.baseline is not None]
    figures = []
    for kind, (title, axis) in _KINDS.items():
        some = [f for f in known if f.name.startswith(f"{kind}-") and "/" not in f.name and f.public]
        if some:
            figures.append(_figure(kind, some, title, axis, public=True))
    classes: dict[str, list[Finding]] = {}
    for finding in known:
        first, slash, _ = finding.name.partition("/")
        if slash and first.startswith("recall"):
            classes.setdefault(first, []).append(finding)
    for name, some in classes.items():
        title = f"{spoken_name(name)}: share of each class found"
        figures.append(_figure(name, some, title, "share of the class found", public=all(f.public for f in some)))
    return tuple(figures)


def _figure(name: str, findings: Sequence[Finding], title: str, axis: str, *, public: bool) -> Figure:
    chosen = findings if len(findings) <= MOST_ROWS else sorted(findings, key=_kept)[:MOST_ROWS]
    rows = [row_of(finding, finding.name.partition("/")[2] or _model(finding.name, name)) for finding in chosen]
    left = f" Drawn are the {MOST_ROWS} of {len(findings)} that lost most." if len(chosen) < len(findings) else ""

    def paint(axes: Axes) -> None:
        paint_models(axes, rows)
        axes.set_xlabel(axis)
        if all(finding.unit == "share" for finding in findings):
            axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")

    caption = "Bars and marks as above." if name.startswith("recall") else _CAPTION
    alt = f"{title}: {len(rows)} bars for models that learnt from the original, and marks for the released table."
    return draw(
        f"models/{name}", paint, size=size_of(rows), title=title, caption=caption + left, alt=alt, public=public
    )


def _model(name: str, kind: str) -> str:
    return spoken_name(name.removeprefix(f"{kind}-"))


def _kept(finding: Finding) -> float:
    return (finding.value or 0.0) - (finding.baseline or 0.0)
