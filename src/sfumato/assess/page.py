"""The report as a page: what was promised, what was measured, what must not be said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from sfumato.assess.figures.histograms import MOST_COLUMNS
from sfumato.assess.figures.svg import Figure
from sfumato.assess.findings import Family, Finding
from sfumato.assess.words import forbidden_sentence, measured_sentence, promised_sentence, show, spoken_name

if TYPE_CHECKING:
    import jinja2

    from sfumato.assess.report import Report

__all__ = ["visible_figures", "write_page"]

_FAMILIES = {
    Family.PRIVACY: "What it may give away",
    Family.UTILITY: "What it is still good for",
    Family.ATTACK: "How far published attacks get",
}
_BESIDE = {"distances": Family.PRIVACY, "groups": Family.PRIVACY, "models": Family.UTILITY, "attacks": Family.ATTACK}
"""Figures that stand beside the findings of a family."""
_SECTIONS = {
    "components": ("At one look", ""),
    "association": (
        "Links between columns",
        "How strongly two columns hang together: correlation for numbers, its counterparts where categories are "
        "involved.",
    ),
    "marginals": (
        "Column by column",
        "The share of rows at each value. Of numbers and dates the outermost bars gather what lies beyond.",
    ),
}


def write_page(report: Report, *, edition: Literal["owner", "public"], certificate: dict[str, Any] | None) -> str:
    """Write the page of an edition; everything in it that came from outside is escaped."""
    owner = edition == "owner"
    findings = [finding for finding in report.findings if owner or finding.public]
    rooms = _rooms(report.figures, owner=owner)
    document = certificate or {}
    return _template().render(
        owner=owner,
        verdict=report.verdict,
        notes=report.notes,
        rehearsal=document.get("randomness") == "rehearsal",
        certified=certificate is not None,
        made=_made(report, document),
        sentences=[promised_sentence(certificate), measured_sentence(findings), forbidden_sentence(certificate)],
        claims=[_claim(claim) for claim in document.get("claims") or []],
        refused=[_claim(claim) for claim in document.get("refused") or []],
        families=_families(findings, rooms),
        looked=_looked(report, owner=owner),
        slowest=_slowest(report.seconds) if owner else [],
        sections=_sections(rooms),
    )


@cache
def _template() -> jinja2.Template:
    """The page's template, compiled once for all editions and reports of a process."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sfumato.assess", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("report.html")


def _made(report: Report, document: dict[str, Any]) -> list[tuple[str, str]]:
    """List how the table was made, from what the certificate says."""
    made = [("Original rows", f"{report.rows_original:,}"), ("Released rows", f"{report.rows_released:,}")]
    if document.get("method"):
        method = str(document["method"])
        made.insert(0, ("Method", f"{method} (group condensation)" if method.startswith("condense") else method))
    parameters = document.get("parameters")
    if isinstance(parameters, dict) and parameters:
        made.append(("Parameters", ", ".join(f"{key} = {value}" for key, value in parameters.items())))
    levels = document.get("levels")
    if isinstance(levels, dict):
        made.extend(
            (words, f"{levels[key]:,}" if isinstance(levels[key], int) else str(levels[key]))
            for key, words in _LEVELS.items()
            if levels.get(key) is not None
        )
    return made


_LEVELS = {
    "asked_min": "Lowest level asked",
    "asked_max": "Highest level asked",
    "smallest_group": "Smallest group",
    "groups": "Groups",
    "violations": "Records below their level",
}


def _claim(claim: dict[str, Any]) -> dict[str, str]:
    parts = {key: claim.get(key) or "" for key in ("claim", "kind", "basis", "assumes", "because")}
    return {
        key: "; ".join(str(part) for part in value) if isinstance(value, (list, tuple)) else str(value)
        for key, value in parts.items()
    }


def _families(findings: Sequence[Finding], rooms: dict[str, list[Figure]]) -> list[dict[str, Any]]:
    """Sort findings by family, those of single columns or classes apart, each family with its figures."""
    families = []
    for family, title in _FAMILIES.items():
        some = [finding for finding in findings if finding.family is family]
        measured = [finding for finding in some if finding.value is not None and "/" not in finding.name]
        if some:
            figures = [figure for room, those in rooms.items() if _BESIDE.get(room) is family for figure in those]
            folds = _folds(some)
            families.append({"title": title, "table": _table(measured), "folds": folds, "figures": figures})
    return families


def _folds(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Fold what is measured for single columns or classes, and what was not run."""
    folded: dict[str, list[Finding]] = {}
    for finding in findings:
        if "/" in finding.name and finding.value is not None:
            folded.setdefault(finding.name.partition("/")[0], []).append(finding)
    folds = [{"title": _fold_title(name, some), "open": False, **_table(some)} for name, some in folded.items()]
    idle = [finding for finding in findings if finding.value is None]
    alone = len(idle) == len(findings)
    return (
        [*folds, {"title": f"Not run, each with its reason ({len(idle)})", "open": alone, **_table(idle)}]
        if idle
        else folds
    )


def _fold_title(name: str, findings: Sequence[Finding]) -> str:
    kind = "class by class" if name.startswith("recall") else "column by column"
    kind = "by the number of rows known" if name == "recovered-cells" else kind
    return f"{spoken_name(name)}, {kind} ({len(findings)})"


def _table(findings: Sequence[Finding]) -> dict[str, Any]:
    """Make the rows of a table; it has a column for controls where a finding has one."""
    return {
        "rows": [_row(finding) for finding in findings],
        "controlled": any(finding.control is not None for finding in findings),
    }


def _row(finding: Finding) -> dict[str, str]:
    unit = finding.unit
    low, high = finding.range
    bounds = f"{show(low, unit) if low is not None else 'any'} to {show(high, unit) if high is not None else 'any'}"
    tries = "attempts" if finding.family is Family.ATTACK else "tested"
    return {
        "name": spoken_name(finding.name),
        "value": show(finding.value, unit) if finding.value is not None else "not run",
        "because": (finding.because or "its reason is not on record") if finding.value is None else "",
        "interval": "exact" if finding.interval is None else _between(finding.interval, unit),
        "attempts": "" if finding.attempts is None else f"{finding.attempts:,} {tries}",
        "baseline": show(finding.baseline, unit),
        "control": show(finding.control, unit),
        "control_interval": "" if finding.control_interval is None else _between(finding.control_interval, unit),
        "direction": finding.direction.value.replace("-", " "),
        "arrow": "\u2191" if finding.direction.value.startswith("higher") else "\u2193",
        "range": "" if finding.range == (None, None) else bounds,
        "meaning": finding.meaning,
    }


def _between(interval: tuple[float, float], unit: str) -> str:
    low, high = (show(end, unit) for end in interval)
    return low if low == high else f"{low} to {high}"


_LOOKED = {
    "attempts": "People attacked, at most",
    "training": "Rows a model learnt from, at most",
    "testing": "Rows a model was tested on, at most",
    "queries": "Counting queries, at most",
    "budget": "Seconds granted",
    "estimate": "Seconds expected",
}


def _looked(report: Report, *, owner: bool) -> list[tuple[str, str]]:
    """List how much was looked at; how long it took is for the owner."""
    looked = [
        (words, f"{report.sizes[key]:,g}" if isinstance(report.sizes[key], int | float) else str(report.sizes[key]))
        for key, words in _LOOKED.items()
        if report.sizes.get(key) is not None and (owner or key not in ("budget", "estimate"))
    ]
    times = (("sanitizing", "Seconds of sanitizing"), ("all", "Seconds of measuring"))  # the first of JS07's criteria
    told = [(words, show(report.seconds[key])) for key, words in times if key in report.seconds]
    return [*looked, *told] if owner else looked


def _slowest(seconds: dict[str, float]) -> list[tuple[str, str]]:
    ranked = sorted(((each, name) for name, each in seconds.items() if name not in ("all", "sanitizing")), reverse=True)
    return [(name.replace("-", " "), f"{each:.2g} s") for each, name in ranked[:5]] if len(ranked) > 1 else []


def _rooms(figures: Iterable[Figure], *, owner: bool) -> dict[str, list[Figure]]:
    """Choose the figures of an edition and put those together that belong together."""
    rooms: dict[str, list[Figure]] = {}
    for figure in visible_figures(figures, owner=owner):
        rooms.setdefault(figure.name.partition("/")[0], []).append(figure)
    return rooms


def visible_figures(figures: Iterable[Figure], *, owner: bool) -> tuple[Figure, ...]:
    """Choose the figures of an edition; of twins the owner sees the one that shows more."""
    chosen: dict[str, Figure] = {}
    for figure in figures:
        if figure.name not in chosen if figure.public else owner:
            chosen[figure.name] = figure
    return tuple(chosen.values())


def _sections(rooms: dict[str, list[Figure]]) -> list[dict[str, Any]]:
    """Lay out the figures that do not stand beside findings."""
    order = [*_SECTIONS, *(room for room in rooms if room not in _SECTIONS and room not in _BESIDE)]
    sections = []
    for room in order:
        if room in rooms:
            title, words = _SECTIONS.get(room, (room.capitalize(), ""))
            if room == "marginals" and len(rooms[room]) == MOST_COLUMNS:
                words += f" At most {MOST_COLUMNS} columns are drawn, the first of the table."
            sections.append({"room": room, "title": title, "words": words, "figures": rooms[room]})
    return sections
