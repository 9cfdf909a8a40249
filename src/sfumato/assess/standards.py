"""What was done and measured, by the questions that regulators and reviewers ask; facts only, no legal conclusion.

WP29/EDPB: Article 29 Working Party, opinion 05/2014 (three risks). ISO/IEC 27559:2022: de-identification framework.
NIST SP 800-226: evaluating differential privacy guarantees. HIPAA: expert determination, 45 CFR 164.514(b)(1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.assess.findings import Family, Finding
from sfumato.assess.numbers import percent
from sfumato.assess.risks import RiskRow, risk_table

if TYPE_CHECKING:
    from sfumato.assess.report import Report

__all__ = ["Standard", "standards"]


@dataclass(frozen=True)
class Standard:
    """A framework, and the facts under each of its questions."""

    name: str
    facts: tuple[tuple[str, str], ...]
    not_covered: str


def standards(report: Report, document: dict[str, Any], *, owner: bool) -> list[Standard]:
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


def _nist(privacy: dict[str, Any]) -> Standard:
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


def _hipaa(report: Report, document: dict[str, Any]) -> Standard:
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
