"""The report as a page: what was promised, what was measured, what must not be said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from sfumato.assess.figures.marginals import MOST_COLUMNS
from sfumato.assess.figures.svg import Figure
from sfumato.assess.findings import Family, Finding
from sfumato.assess.words import forbidden_sentence, measured_sentence, promised_sentence, show, spoken_name

if TYPE_CHECKING:
    from sfumato.assess.report import Report

__all__ = ["write_page"]

_FAMILIES = {
    Family.PRIVACY: "What it may give away",
    Family.UTILITY: "What it is still good for",
    Family.ATTACK: "How far published attacks get",
}
_SECTIONS = {
    "distances": ("How near released rows come to real ones", ""),
    "groups": (
        "Groups",
        "What only the owner may see of the group condensation: how many records were condensed together.",
    ),
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
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sfumato.assess", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    owner = edition == "owner"
    findings = [finding for finding in report.findings if owner or finding.public]
    document = certificate or {}
    return environment.get_template("report.html").render(
        owner=owner,
        rehearsal=document.get("randomness") == "rehearsal",
        certified=certificate is not None,
        made=_made(report, document),
        sentences=[promised_sentence(certificate), measured_sentence(findings), forbidden_sentence(certificate)],
        claims=[_claim(claim) for claim in document.get("claims") or []],
        refused=[_claim(claim) for claim in document.get("refused") or []],
        tables=_tables(findings),
        sections=_sections(report.figures, owner=owner),
    )


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


def _tables(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Sort findings into a table a family, and one for those of single columns."""
    rows: dict[str, list[dict[str, str]]] = {title: [] for title in _FAMILIES.values()}
    columns: list[dict[str, str]] = []
    for finding in findings:
        (columns if "/" in finding.name else rows[_FAMILIES[finding.family]]).append(_row(finding))
    tables = [{"title": title, "rows": some} for title, some in rows.items() if some]
    return [*tables, {"title": "The same, column by column", "rows": columns}] if columns else tables


def _row(finding: Finding) -> dict[str, str]:
    unit = finding.unit
    low, high = finding.range
    bounds = f"{show(low, unit) if low is not None else 'any'} to {show(high, unit) if high is not None else 'any'}"
    interval = finding.interval
    return {
        "name": spoken_name(finding.name),
        "value": show(finding.value, unit) if finding.value is not None else "not run",
        "because": finding.because or "",
        "interval": "exact" if interval is None else f"{show(interval[0], unit)} to {show(interval[1], unit)}",
        "baseline": show(finding.baseline, unit),
        "control": show(finding.control, unit) if finding.control is not None else "",
        "direction": finding.direction.value.replace("-", " "),
        "arrow": "\u2191" if finding.direction.value.startswith("higher") else "\u2193",
        "range": "" if finding.range == (None, None) else bounds,
        "meaning": finding.meaning,
    }


def _sections(figures: Iterable[Figure], *, owner: bool) -> list[dict[str, Any]]:
    """Choose the figures of an edition and put those together that belong together."""
    chosen: dict[str, Figure] = {}
    for figure in figures:
        wanted = figure.name not in chosen if figure.public else owner
        if wanted:  # of twins the owner sees the one that shows more
            chosen[figure.name] = figure
    rooms: dict[str, list[Figure]] = {}
    for name, figure in chosen.items():
        rooms.setdefault(name.partition("/")[0], []).append(figure)
    order = [*_SECTIONS, *(room for room in rooms if room not in _SECTIONS)]
    sections = []
    for room in order:
        if room in rooms:
            title, words = _SECTIONS.get(room, (room.capitalize(), ""))
            if room == "marginals" and len(rooms[room]) == MOST_COLUMNS:
                words += f" At most {MOST_COLUMNS} columns are drawn, the first of the table."
            sections.append({"room": room, "title": title, "words": words, "figures": rooms[room]})
    return sections
