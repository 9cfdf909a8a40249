"""The report as pages: verdict, risk, utility, what to change, then the details in at most eight boxes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sfumato.assess.figures import Figure
from sfumato.assess.figures.columns import MOST_COLUMNS
from sfumato.assess.findings import Family, Finding, excess_interval, gains, rank
from sfumato.assess.glossary import TERMS, command_words, linked_terms, percent, show, spoken_name
from sfumato.assess.plain import by_knowledge, risk_aside, risk_sentence, risky_columns, risky_kinds, use_sentence
from sfumato.assess.verdict import RiskRow, risk_table
from sfumato.core.pages import page_template

if TYPE_CHECKING:
    import jinja2

    from sfumato.assess.report import Report

__all__ = ["Standard", "standards", "visible_figures", "write_page", "write_summary"]


@dataclass(frozen=True)
class Standard:
    """A framework, and the facts under each of its questions."""

    name: str
    facts: tuple[tuple[str, str], ...]
    not_covered: str


def standards(report: Report, document: Mapping[str, Any], *, owner: bool) -> list[Standard]:
    """The facts under each framework; NIST SP 800-226 only for a method with a privacy budget."""
    findings = [finding for finding in report.findings if owner or finding.public]
    rows = {each.risk: each for each in reversed(risk_table(findings, report.verdict))}
    found = [_wp29(rows), _iso(report, findings, rows)]
    privacy = document.get("privacy")
    if isinstance(privacy, dict):
        found.append(_nist(privacy))
    return [*found, _hipaa(report, document)]


def _wp29(rows: dict[str, RiskRow]) -> Standard:
    named = ("Singling out", "Linkability", "Inference")
    return Standard(
        "WP29 opinion 05/2014 and EDPB: three risks",
        (
            *((name, _risk_fact(rows.get(name))) for name in named),
            ("Further: membership inference", _risk_fact(rows.get("Membership inference"))),
        ),
        "Whether the release is anonymous in the sense of the GDPR, and risks from data that was not measured.",
    )


def _risk_fact(row: RiskRow | None) -> str:
    if row is None:
        return "Not measured."
    interval = f" ({row.excess_interval})" if row.excess_interval else ""
    limit = "" if row.limit == "\u2013" else f"; limit: {row.limit}, {row.status}"
    success = f"{row.members} on members, {row.control} on the control group"
    return f"{row.attack}: {success}, excess {row.excess}{interval}{limit}."


def _iso(report: Report, findings: Sequence[Finding], rows: dict[str, RiskRow]) -> Standard:
    attacks = [each for each in findings if each.family is Family.ATTACK and "/" not in each.name]
    run = [each for each in attacks if each.value is not None]
    tested = report.sizes.get("attempts")
    sample = f" At most {tested:,} records were attacked." if isinstance(tested, int) else ""
    group = f"a control group of {report.rows_held_out:,} records" if report.rows_held_out else "no control group"
    purpose = report.verdict.purpose if report.verdict is not None else ""
    average = rows.get("Linkability")
    most = "Success on all attacked records, on average: " + _risk_fact(average) if average else "Not measured."
    return Standard(
        "ISO/IEC 27559: de-identification framework",
        (
            (
                "Threat model",
                "Attackers who hold the release and know a few columns of a person's record, half of them, or all but "
                "one.",
            ),
            ("Recipient", purpose or "Not stated: no built-in policy names one."),
            ("Average risk", most),
            ("Maximum risk", _outliers(findings)),
            ("Population or sample", f"{report.rows_original:,} original records against {group}.{sample}"),
            (
                "Adversarial testing",
                f"{len(run)} of {len(attacks)} attacks were run; {_skipped(len(attacks) - len(run))}",
            ),
        ),
        "The recipient's environment, contracts and access controls, and the likelihood that an attack is attempted.",
    )


def _skipped(number: int) -> str:
    return "none was left out." if not number else f"{number} did not apply or could not run, each with its reason."


def _outliers(findings: Sequence[Finding]) -> str:
    """Risk of the most exposed people, as far as it was measured."""
    found = {each.name: each for each in findings if each.value is not None}
    parts = [
        f"{words} {percent(found[name].value or 0.0)}"
        for name, words in (
            ("membership-outliers", "membership inference on outliers, TPR at 5\u00a0% FPR:"),
            ("outlier-inference", "attribute inference on outliers:"),
        )
        if name in found
    ]
    return f"On the most exposed records, {'; '.join(parts)}." if parts else "Not measured on the most exposed records."


def _nist(privacy: dict[str, object]) -> Standard:
    facts = [("Unit of privacy", str(privacy.get("unit", "not stated")))]
    for key, words in (("epsilon", "Epsilon"), ("delta", "Delta"), ("rho", "Rho (zCDP)"), ("neighbours", "Neighbours")):
        if privacy.get(key) is not None:
            facts.append((words, f"{privacy[key]}"))
    facts.append(("Trust model", "Central: the data owner sees the original table and runs the method."))
    return Standard(
        "NIST SP 800-226: differential privacy guarantee",
        tuple(facts),
        "Side channels of the machine, and earlier releases from the same people that share no budget file.",
    )


def _hipaa(report: Report, document: Mapping[str, Any]) -> Standard:
    method = document.get("method")
    levels = document.get("levels")
    smallest = levels.get("smallest_group") if isinstance(levels, dict) else None
    group = "" if smallest is None else f", smallest group {smallest}"
    verdict = report.verdict
    result = "No policy was applied." if verdict is None else f"{verdict.heading}."
    return Standard(
        "HIPAA expert determination, 45 CFR 164.514(b)(1)",
        (
            ("Methods", f"Method {method}{group}." if method else "There is no certificate of the method."),
            ("Results", f"{result} The risk table above has the measured risks and their intervals."),
            (
                "Documentation",
                "This report and certificate.json." if method else "This report.",
            ),
        ),
        "The determination itself, which only a qualified expert can make, and what the recipient can reasonably know.",
    )


STRIP = 12
"""Most columns of the strip of small pictures."""
_FAMILIES = {
    Family.ATTACK: ("Attacks", "attacks"),
    Family.PRIVACY: ("Other privacy measures", "privacy"),
    Family.UTILITY: ("Utility measures", "utility"),
}
"""Title of the box of each family, and its id."""
_BESIDE = {
    "attacks": Family.ATTACK,
    "distances": Family.PRIVACY,
    "groups": Family.PRIVACY,
    "models": Family.UTILITY,
    "components": Family.UTILITY,
    "association": Family.UTILITY,
}
"""Figures that belong to the findings of a family."""
_MOST_CLAIMS = 3  # of a printed page
_MOST_REASONS = 3
_ON_ONE_PAGE = ("Method", "Smallest group", "Groups", "Smallest leaf", "Leaves")


def write_page(report: Report, *, edition: Literal["owner", "public"], certificate: Mapping[str, Any] | None) -> str:
    """Write the page of an edition; everything in it that came from outside is escaped."""
    owner = edition == "owner"
    findings = [finding for finding in report.findings if owner or finding.public]
    figures = visible_figures(report.figures, owner=owner)
    columns = [figure for figure in figures if figure.name.startswith("marginals/")]
    return _page("report.html").render(
        **_content(report, findings, certificate, owner=owner),
        strip=_strip(figures, findings, owner=owner),
        attackers=by_knowledge(findings),
        made=_made(report, certificate or {}),
        families=_families(findings, figures),
        looked=_looked(report, owner=owner),
        slowest=_slowest(report.seconds) if owner else [],
        column_figures=columns,
        more_columns=len(columns) == MOST_COLUMNS,
        most_columns=MOST_COLUMNS,
        standards=standards(report, certificate or {}, owner=owner),
        terms=TERMS,
    )


def write_summary(report: Report, *, certificate: Mapping[str, Any] | None) -> str:
    """Write one printed page for the person who signs for a release; it stays with the owner."""
    content = _content(report, report.findings, certificate, owner=True)
    document = certificate or {}
    for name in ("claims", "refused"):
        content[f"more_{name}"] = max(0, len(content[name]) - _MOST_CLAIMS)
        content[name] = content[name][:_MOST_CLAIMS]
    return _page("summary.html").render(
        **content,
        most_reasons=_MOST_REASONS,
        made=[(name, value) for name, value in _made(report, document) if name in _ON_ONE_PAGE],
        hashed=str(document.get("table_sha256") or ""),
    )


def _content(
    report: Report, findings: Sequence[Finding], certificate: Mapping[str, Any] | None, *, owner: bool
) -> dict[str, Any]:
    """What every page has: verdict, risk, utility, columns, claims."""
    document = certificate or {}
    return {
        "owner": owner,
        "verdict": report.verdict,
        "notes": report.notes,
        "dry_run": document.get("randomness") == "dry-run",
        "certified": certificate is not None,
        "use": use_sentence(findings, report.target, short=not owner),
        "risk": risk_sentence(findings, report.verdict),
        "aside": risk_aside(findings),
        "risks": risk_table(findings, report.verdict),
        "held_out": report.rows_held_out,
        "rows": (report.rows_original, report.rows_released, report.rows_held_out),
        "method": str(document.get("method") or ""),
        "created": str(document.get("created", ""))[:10],
        "version": str(document.get("sfumato", "")),
        "columns": risky_columns(report.columns) if owner else [],
        "kinds": risky_kinds(findings) if owner else [],
        "claims": [_claim(claim) for claim in document.get("claims") or []],
        "refused": [_claim(claim) for claim in document.get("refused") or []],
    }


def _strip(figures: Sequence[Figure], findings: Sequence[Finding], *, owner: bool) -> dict[str, object]:
    """Small pictures of columns: for the owner those that moved most, for others the first of the table."""
    moved = {
        finding.name.partition("/")[2]: finding.value or 0.0
        for finding in findings
        if finding.name.startswith("marginal-distance/")
    }
    columns = [figure for figure in figures if figure.name.startswith("marginals/") and figure.small]
    if owner:
        columns = sorted(columns, key=lambda figure: -moved.get(figure.title, 0.0))
    shown = [(figure.title, figure.small) for figure in columns[:STRIP]]
    return {"tiles": shown, "left": len(columns) - len(shown)}


def _page(name: str) -> jinja2.Template:
    return page_template(
        name, "sfumato.assess", filters=(("command_words", command_words), ("linked_terms", linked_terms))
    )


def _made(report: Report, document: Mapping[str, Any]) -> list[tuple[str, str]]:
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
        chained = document.get("method") == "chain"
        made.extend(
            (
                _OF_LEAVES.get(words, words) if chained else words,
                f"{levels[key]:,}" if isinstance(levels[key], int) else str(levels[key]),
            )
            for key, words in _LEVELS.items()
            if levels.get(key) is not None
        )
    return made


_LEVELS = {
    "smallest_group": "Smallest group",
    "groups": "Groups",
    "violations": "Records below their level",
}
_OF_LEAVES = {"Smallest group": "Smallest leaf", "Groups": "Leaves"}  # what a chain has in their place


def _claim(claim: dict[str, object]) -> dict[str, str]:
    parts = {key: claim.get(key) or "" for key in ("claim", "kind", "basis", "assumes", "reason")}
    return {
        key: "; ".join(str(part) for part in value) if isinstance(value, (list, tuple)) else str(value)
        for key, value in parts.items()
    }


def _families(findings: Sequence[Finding], figures: Sequence[Figure]) -> list[dict[str, object]]:
    """A box for each family with its tables and figures; attacks with a significant excess stand first."""
    families: list[dict[str, object]] = []
    for family, (title, name) in _FAMILIES.items():
        some = [finding for finding in findings if finding.family is family]
        if some:
            shown = [figure for figure in figures if _BESIDE.get(figure.name.partition("/")[0]) is family]
            families.append({"title": title, "id": name, "tables": _tables(family, title, some), "figures": shown})
    return families


def _tables(family: Family, title: str, findings: Sequence[Finding]) -> list[dict[str, object]]:
    """Tables of a family: whole ones, those of single columns or classes, and what was not run."""
    whole = [finding for finding in findings if finding.value is not None and "/" not in finding.name]
    parts = {title: whole}
    if family is Family.ATTACK:
        gaining = {gain.finding.name for gain in gains(whole) if gain.certain and not gain.conceded}
        ranked = sorted(whole, key=rank)
        parts = {
            "Attacks with a significant excess": [finding for finding in ranked if finding.name in gaining],
            "Other attacks": [finding for finding in ranked if finding.name not in gaining],
        }
    tables = [{"title": f"{name} ({len(some)})", **_table(some)} for name, some in parts.items() if some]
    single: dict[str, list[Finding]] = {}
    for finding in findings:
        if "/" in finding.name and finding.value is not None:
            single.setdefault(finding.name.partition("/")[0], []).append(finding)
    tables += [{"title": _part_title(name, some), **_table(some)} for name, some in single.items()]
    idle = [finding for finding in findings if finding.value is None]
    return tables + ([{"title": f"Not run, with the reason ({len(idle)})", **_table(idle)}] if idle else [])


def _part_title(name: str, findings: Sequence[Finding]) -> str:
    kind = "by class" if name.startswith("recall") else "by column"
    kind = "by number of known rows" if name == "known-input-recovery" else kind
    return f"{spoken_name(name)}, {kind} ({len(findings)})"


def _table(findings: Sequence[Finding]) -> dict[str, object]:
    """Rows of a table; it has a column for controls where a finding has one, and says once what many rows would."""
    rows = [_row(finding) for finding in findings]
    clauses = [_CLAUSE.split(row["meaning"]) for row in rows]
    frequencies: dict[str, list[str]] = {}
    for row, each in zip(rows, clauses, strict=True):
        for clause in each[1:]:
            frequencies.setdefault(clause.strip(".;"), []).append(row["name"])
    again = {clause: names for clause, names in frequencies.items() if len(names) > 1 and not _COUNTED.match(clause)}
    for row, each in zip(rows, clauses, strict=True):
        kept = [clause for place, clause in enumerate(each) if not place or clause.strip(".;") not in again]
        row["meaning"] = _GOES_ON.sub("; ", _ENDED.sub(". ", f"{' '.join(kept).rstrip('.;')}."))
    return {
        "rows": rows,
        "controlled": any(finding.control is not None for finding in findings),
        "compared": any(finding.excess is not None for finding in findings),
        "caveats": [_caveat(clause, names, len(rows)) for clause, names in again.items()],
    }


def _caveat(clause: str, names: Sequence[str], rows: int) -> str:
    """A clause that several rows have, and which these are."""
    if len(names) == rows:
        return f"{clause[:1].upper()}{clause[1:]}."
    first = clause[:1] if clause[1:2].isupper() else clause[:1].lower()
    return f"{names[0]} and {len(names) - 1} more: {first}{clause[1:]}."


_CLAUSE = re.compile(r"(?<=[.;])(?<!et al\.) ")
_ENDED = re.compile(r"; (?=[A-Z])")  # where a clause between was taken out
_GOES_ON = re.compile(r"(?<!et al)\. (?=[a-z])")
_COUNTED = re.compile("counted on ", re.IGNORECASE)
_DIRECTION = re.compile(
    r"(?:less|lower|more|higher) is better, and |,? and (?:less|lower|more|higher) is better\b(?!,)"
    r"|[;,] (?:less|lower|more|higher) is better(?=[.;])"
)
"""Which way is good, in a sentence; a column of the table says it."""


def _row(finding: Finding) -> dict[str, str]:
    unit = finding.unit
    low, high = finding.range
    bounds = f"{show(low, unit) if low is not None else 'any'} to {show(high, unit) if high is not None else 'any'}"
    tries = "attempts" if finding.family is Family.ATTACK else "tested"
    excess = excess_interval(finding)
    return {
        "name": spoken_name(finding.name),
        "value": show(finding.value, unit) if finding.value is not None else "not run",
        "reason": (finding.reason or "no reason was recorded") if finding.value is None else "",
        "interval": "exact" if finding.interval is None else _between(finding.interval, unit),
        "attempts": "" if finding.attempts is None else f"{finding.attempts:,} {tries}",
        "baseline": show(finding.baseline, unit),
        "control": show(finding.control, unit),
        "excess": show(finding.excess, unit).replace("-", "\u2212"),
        "excess_interval": "" if excess is None else _between(excess, unit).replace("-", "\u2212"),
        "control_interval": "" if finding.control_interval is None else _between(finding.control_interval, unit),
        "direction": finding.direction.value.replace("-", " "),
        "arrow": "\u2191" if finding.direction.value.startswith("higher") else "\u2193",
        "range": "" if finding.range == (None, None) else bounds,
        "meaning": _DIRECTION.sub("", finding.meaning),
    }


def _between(interval: tuple[float, float], unit: str) -> str:
    low, high = (show(end, unit) for end in interval)
    return low if low == high else f"{low} to {high}"


_LOOKED = {
    "attempts": "Records attacked, at most",
    "training": "Training rows per model, at most",
    "testing": "Test rows per model, at most",
    "queries": "Counting queries, at most",
    "time_limit": "Time limit, seconds",
    "estimate": "Expected time, seconds",
}


def _looked(report: Report, *, owner: bool) -> list[tuple[str, str]]:
    """Sample sizes of the measurement; times are for the owner."""
    looked = [
        (words, f"{report.sizes[key]:,g}" if isinstance(report.sizes[key], int | float) else str(report.sizes[key]))
        for key, words in _LOOKED.items()
        if report.sizes.get(key) is not None and (owner or key not in ("time_limit", "estimate"))
    ]
    times = (("sanitizing", "Sanitizing, seconds"), ("all", "Measuring, seconds"))  # the first of JS07's criteria
    spent = [(words, show(report.seconds[key])) for key, words in times if key in report.seconds]
    return [*looked, *spent] if owner else looked


def _slowest(seconds: dict[str, float]) -> list[tuple[str, str]]:
    ranked = sorted(((each, name) for name, each in seconds.items() if name not in ("all", "sanitizing")), reverse=True)
    return [(name.replace("-", " "), f"{each:.2g} s") for each, name in ranked[:5]] if len(ranked) > 1 else []


def visible_figures(figures: Iterable[Figure], *, owner: bool) -> tuple[Figure, ...]:
    """Choose the figures of an edition; of twins the owner sees the one that shows more."""
    chosen: dict[str, Figure] = {}
    for figure in figures:
        if figure.name not in chosen if figure.public else owner:
            chosen[figure.name] = figure
    return tuple(chosen.values())
