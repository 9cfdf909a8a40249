"""The risk table of a report: singling out, linkability, inference and membership inference, by strongest attack.

The first three are the risks of the Article 29 Working Party's opinion 05/2014 on anonymisation techniques.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sfumato.assess.findings import Finding, Gain, column_gains, excess_interval, gains
from sfumato.assess.glossary import CI, explain, limit_number, limit_range, spoken_name
from sfumato.assess.verdict import LimitResult, Ruling, Verdict

__all__ = ["FAMILIES", "RiskRow", "risk_table"]

FAMILIES: dict[str, Callable[[str], bool]] = {
    "linkage-excess": lambda name: name.startswith(("linkage-", "own-row-linkage-", "linkability")) and "/" not in name,
    "attribute-excess": lambda name: name.startswith("attribute-inference-") or name == "known-input-recovery",
    "singling-out-excess": lambda name: (
        name.startswith("singling-out-") or name in ("outlier-inference", "extreme-values-disclosed")
    ),
    "membership-auc": lambda name: name.startswith("membership-auc-"),
    "membership-tpr": lambda name: name.startswith("membership-tpr"),
}
"""Which findings each limit of a policy looks at, by name."""

_RISKS = {
    "singling-out-excess": "singling out",
    "linkage-excess": "linkability",
    "attribute-excess": "inference",
    "membership-auc": "membership inference",
    "membership-tpr": "membership inference",
}
_SCORES = {"membership-auc": "AUC", "membership-tpr": "TPR"}
_STATUS = {Ruling.MEETS: "met", Ruling.DOES_NOT_MEET: "exceeded", Ruling.INCONCLUSIVE: "inconclusive"}
_DASH = "\u2013"


@dataclass(frozen=True)
class RiskRow:
    """One line of the risk table, as text."""

    risk: str
    clause: str  # explains the risk; empty if the row before did
    attack: str
    members: str
    members_interval: str
    control: str
    excess: str
    excess_interval: str
    limit: str
    status: str
    outcome: str  # of the limit, as in the verdict; empty if none applies


def risk_table(findings: Sequence[Finding], verdict: Verdict | None) -> list[RiskRow]:
    """A row for each limit that has a measured attack; without a verdict the attack with the largest excess."""
    found = {finding.name: finding for finding in findings}
    results = {each.limit: each for each in (() if verdict is None else verdict.limits) if each.finding in found}
    ranked = [gain for gain in (*gains(findings), *column_gains(findings)) if not gain.conceded]
    rows = []
    for limit in _RISKS:
        if limit in results:
            rows.append(_judged(results[limit], found[results[limit].finding]))
            continue
        some = [gain for gain in ranked if FAMILIES[limit](gain.finding.name)]
        if some:
            rows.append(_measured(limit, max(some, key=lambda gain: (gain.certain, gain.excess)), verdict))
    first = {row.risk: row for row in reversed(rows)}
    return [row if first[row.risk] is row else replace(row, clause="") for row in rows]


def _judged(result: LimitResult, finding: Finding) -> RiskRow:
    """The row of a limit that was compared with its interval."""
    limit, score = result.limit, result.limit in _SCORES
    interval = f"{CI} {limit_range(limit, result.interval)}"
    if score:
        control, excess, ends = finding.control, finding.excess, excess_interval(finding)
    else:
        control, excess, ends = result.control, result.value, result.interval
    allowed = f"{'excess' if not score else _SCORES[limit]}\u00a0{limit_number(limit, result.allowed)}"
    pooled = finding.name.startswith("singling-out-") and result.members != finding.value
    return _row(
        limit,
        "Singling out, univariate and multivariate" if pooled else _attack(finding.name),
        (result.members, interval if score else ""),
        _control(limit, control, guessed=finding.control is None and not score),
        (excess, ends),
        allowed,
        (_STATUS[result.outcome], result.outcome.value),
    )


def _measured(limit: str, gain: Gain, verdict: Verdict | None) -> RiskRow:
    """The row of an attack that no limit was compared with."""
    finding = gain.finding
    assert finding.value is not None
    interval = "" if finding.interval is None else f"{CI} {limit_range(limit, finding.interval)}"
    status = "not judged" if verdict is not None else "significant" if gain.certain else "not significant"
    return _row(
        limit,
        _attack(finding.name),
        (finding.value, interval if limit in _SCORES else ""),
        _control(limit, gain.against, guessed=not gain.controlled),
        (gain.excess, excess_interval(finding)),
        _DASH,
        (status, ""),
    )


def _row(
    limit: str,
    attack: str,
    members: tuple[float, str],
    control: str,
    excess: tuple[float | None, tuple[float, float] | None],
    allowed: str,
    status: tuple[str, str],
) -> RiskRow:
    risk = _RISKS[limit]
    value, ends = excess
    score = f"{_SCORES[limit]} " if limit in _SCORES else ""
    return RiskRow(
        f"{risk[:1].upper()}{risk[1:]}",
        explain(risk),
        attack,
        f"{score}{limit_number(limit, members[0])}",
        members[1],
        control,
        _DASH if value is None else limit_number(limit, value),
        "" if ends is None or value is None else f"{CI} {_signed_range(limit, ends)}",
        allowed,
        *status,
    )


def _attack(name: str) -> str:
    """Name of an attack with the column that it attacks."""
    first, _, column = name.partition("/")
    return f'{spoken_name(first)}; column "{column}"' if column else spoken_name(name)


def _signed_range(limit: str, ends: tuple[float, float]) -> str:
    if limit != "membership-auc":
        return limit_range(limit, ends)
    return " to ".join(limit_number(limit, end) for end in ends)


def _control(limit: str, value: float | None, *, guessed: bool) -> str:
    if value is None:
        return _DASH
    return f"{limit_number(limit, value)}{' (baseline)' if guessed else ''}"
