"""The headline sentences of a report: utility, risk, and the columns that contribute most to the risk.

Every sentence is a function of findings, and its numbers are theirs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from sfumato.assess.findings import FEW, ColumnRisk, Family, Finding, Gain, excess_interval, gains
from sfumato.assess.glossary import CI, attack_name, percent, percent_range, score, score_range, show, term_of
from sfumato.assess.verdict import FAMILIES, Verdict

__all__ = [
    "KNOWN_ROWS",
    "by_knowledge",
    "fitting",
    "gain_sentence",
    "known_rows_sentence",
    "risk_aside",
    "risk_sentence",
    "risky_columns",
    "risky_kinds",
    "use_sentence",
]

KNOWN_ROWS = 5
"""Original rows that an attacker is taken to know if a secret key moved the table."""

_TO_TRY = "To try next:"
_KNOWN_INPUT = "known-input-recovery"
_MOST_COLUMNS = 3
_MORE = 0.02  # that a model's score is above chance, or it predicts next to nothing
_SCORES = {
    "auc-": ("AUC", "majority class"),
    "balanced-accuracy-": ("balanced accuracy", "majority class"),
    "response-r2-": ("R\u00b2", "mean"),
}
"""By the start of a finding's name: the measure that leads, and the guess that needs no model."""
_LEAST = 0.005  # a share of people that is worth a word


def fitting(parts: Sequence[tuple[int, str]], width: int | None, most: int) -> list[str]:
    """Wrap a text to a width and a maximum number of lines; parts with the highest number are dropped first.

    Examples
    --------
    >>> fitting([(0, "one two"), (2, "three"), (1, "four")], 5, 3)
    ['one', '  two', 'four']
    """
    kept = list(parts)
    while True:
        lines = [line for _, text in kept for line in _broken(text, width)]
        taken = sum(-(-len(line) // width) if width else 1 for line in lines)  # the terminal breaks a command itself
        last = max((rank for rank, _ in kept), default=0)
        if taken <= most or not last:
            return lines
        kept.pop(max(place for place, (rank, _) in enumerate(kept) if rank == last))


def _broken(text: str, width: int | None) -> list[str]:
    """Lines that a text takes; a command stays whole, to be copied, and so does a word longer than a line."""
    if width is None or len(text) <= width or text.startswith(_TO_TRY):
        return [text]
    room = textwrap.TextWrapper(width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return room.wrap(text)


# -------------------------------------------------------------------------------------------------------------- utility


def use_sentence(findings: Sequence[Finding], target: str | None, *, short: bool = False) -> str:
    """How well the best model predicts the target of unseen people, else how much the distributions differ.

    The measure is one that a useless model cannot raise. ``short`` leaves out the confidence interval.
    """
    known = {finding.name: finding for finding in findings if finding.value is not None}
    best = next((found for start in _SCORES if (found := _best(known, start)) is not None), None)
    if best is not None:
        return _predicting(best, target, short=short)
    lost, new = known.get("itemsets-lost"), known.get("itemsets-new")
    if lost is not None and new is not None:
        return f"Frequent itemsets: {percent(lost.value or 0.0)} lost, {percent(new.value or 0.0)} new."
    moved = known.get("marginal-distance")
    if moved is None or moved.value is None:
        return "Utility was not measured; the reasons are in the details."
    chance = "" if moved.baseline is None else f" ({percent(moved.baseline)} by sampling alone)"
    sentence = f"Distributions of single columns differ by {percent(moved.value)} on average{chance}."
    pairs = known.get("association-difference")
    if pairs is not None and pairs.value is not None:
        chance = "" if pairs.baseline is None else f" ({score(pairs.baseline)} by sampling alone)"
        sentence += f" Associations between pairs of columns differ by {score(pairs.value)} on average{chance}."
    aim = "Name a column to predict (--target)" if target is None else "Hold out records (--holdout)"
    return sentence if short else f"{sentence} {aim} to measure the loss of a model."


def _best(known: dict[str, Finding], start: str) -> Finding | None:
    """The finding on the model that learns most from the original."""
    some = [finding for name, finding in known.items() if name.startswith(start) and finding.baseline is not None]
    return max(some, key=lambda finding: (finding.baseline or 0.0, finding.value or 0.0), default=None)


def _predicting(best: Finding, target: str | None, *, short: bool) -> str:
    """A score of the release beside that of the original and that of no model."""
    measure, guess = next(words for start, words in _SCORES.items() if best.name.startswith(start))
    value, original, chance = best.value or 0.0, best.baseline or 0.0, best.chance or 0.0
    interval = "" if short or best.interval is None else f"{CI} {score_range(*best.interval)}; "
    column = "the target" if target is None else f'"{target}"'
    hint = (
        f"Predicting {column}: {measure} {score(value)} ({interval}original {score(original)}, {guess} {chance:.3g})."
    )
    useless = " A model of the original does hardly better than chance: this target says little about utility."
    return hint + (useless if original < chance + _MORE else "")


# ----------------------------------------------------------------------------------------------------------------- risk


def risk_sentence(findings: Iterable[Finding], verdict: Verdict | None = None) -> str:
    """Whether any attack succeeds significantly more often on members, and the attack with the largest excess.

    If a secret key moved the table, the known-input attack comes first, and alone if it succeeds. An excess that a
    verdict judged has the confidence interval of the verdict, so that a reader meets one interval of one figure. If the
    method was attacked on shadow releases, these attacks are ranked, and those without a control group follow.
    """
    some = tuple(findings)
    ranked = _leading(some)
    audited = [gain for gain in ranked if _is_audited(gain)]
    uncontrolled = [gain for gain in ranked if audited and gain.certain and not gain.controlled and gain not in audited]
    idle = sum(f.family is Family.ATTACK and f.value is None and f.applies and "/" not in f.name for f in some)
    were = "1 attack was" if idle == 1 else f"{idle} attacks were"
    unknown = f" {were} not run; the risk from {'it' if idle == 1 else 'them'} is unknown." if idle else ""
    certain = sum(gain.certain for gain in ranked)
    known = known_rows_sentence(some)
    if known and certain and ranked[0].finding.name == _KNOWN_INPUT:
        return f"{known}{unknown}"
    known = f"{known} " if known else ""
    if audited:
        ranked, certain = audited, sum(gain.certain for gain in audited)
    if not ranked:
        return f"{known}No {'other ' if known else ''}attack on single people was run.{unknown}"
    controlled = bool(audited) or any(gain.controlled for gain in ranked)
    against = "on the control group" if controlled else "than the baseline explains"
    on_members = f"significantly more often on members than {against}"
    if against.startswith("than"):
        on_members = f"significantly more often {against}"
    succeed = "succeeds" if certain < 2 else "succeed"
    number = "No attack" if not certain else f"{certain} attack{'s' * (certain > 1)}"
    releases = " on shadow releases" if audited else ""
    first = f"{number} (of {len(ranked)}{releases}) {succeed} {on_members}."
    limits = [] if verdict is None else [each.limit for each in verdict.limits]
    free = limits and not any(FAMILIES[limit](ranked[0].finding.name) for limit in limits)
    aside = " (the policy has no limit on it)" if free else ""
    more = ""
    if uncontrolled:
        exceed = "1 attack exceeds its" if len(uncontrolled) == 1 else f"{len(uncontrolled)} attacks exceed their"
        more = f" Without a control group {exceed} baseline: {gain_sentence(uncontrolled[0], verdict)}."
    return f"{known}{first} Largest excess: {gain_sentence(ranked[0], verdict)}{aside}.{more}{unknown}"


def _leading(findings: Sequence[Finding]) -> list[Gain]:
    """Attacks that may lead, significant ones with the largest excess first; a successful known-input attack leads.

    Attacks on shadow releases stand before others.
    """
    some = [gain for gain in gains(findings) if not gain.conceded]
    ranked = sorted(some, key=lambda gain: (not _is_audited(gain), not gain.certain))
    known = [gain for gain in ranked if gain.finding.name == _KNOWN_INPUT and gain.certain]
    return known + [gain for gain in ranked if gain.finding.name != _KNOWN_INPUT]


def _is_audited(gain: Gain) -> bool:
    return gain.finding.name.startswith("shadow-")


def gain_sentence(gain: Gain, verdict: Verdict | None = None) -> str:
    """One attack: name, excess (with its interval if significant), success on members and on the control group."""
    finding = gain.finding
    assert finding.value is not None
    name = attack_name(finding.name)
    judged = next((each for each in (verdict.limits if verdict else ()) if each.finding == finding.name), None)
    interval = excess_interval(finding) if gain.certain else None  # a policy's joint interval says more of the others
    if judged is not None:
        interval = judged.interval if gain.certain else None
    if finding.unit != "share":
        if finding.name.startswith(("membership-auc-", "shadow-auc-")):
            both = finding.interval if judged is None else judged.interval
            ends = "" if both is None or not gain.certain else f"{CI} {both[0]:.2f}\u2013{both[1]:.2f}; "
            against = "control group" if gain.controlled else "guessing"
            return f"{name}, AUC {finding.value:.2f} ({ends}{against} {gain.against:.2f})"
        return f"{name}, {show(finding.value)} (baseline {show(gain.against)})"
    excess, members, compared = gain.excess, finding.value, gain.against
    if judged is not None and judged.control is not None:  # kinds of one attack are judged together
        excess, members, compared = judged.value, judged.members, judged.control
    ends = "" if interval is None else f" ({CI} {percent_range(*interval)})"
    return f"{name}, {percent(excess)}{ends}: {percent(members)} on members, {percent(compared)} {_against(gain)}"


def _against(gain: Gain) -> str:
    if gain.controlled:
        return "on the control group"
    return "on unrelated data" if gain.finding.baseline_interval is not None else "by guessing"


def known_rows_sentence(findings: Sequence[Finding]) -> str:
    """What an attacker recovers who knows a few rows, with the baseline; empty if no key moved the table."""
    found = {finding.name: finding for finding in findings if finding.value is not None}
    finding = found.get(_KNOWN_INPUT)
    if finding is None:
        return ""
    number = max((each for each in range(1, KNOWN_ROWS + 1) if f"{_KNOWN_INPUT}/{each} rows" in found), default=1)
    rows = "1 row" if number == 1 else f"{number} rows"
    hint = f"An attacker who knows {rows} recovers {show(finding.value, 'share')} of the cells"
    interval = "" if finding.interval is None else f" ({CI} {percent_range(*finding.interval)})"
    baseline = "" if finding.baseline is None else f"; baseline {show(finding.baseline, 'share')}"
    return f"{hint}{interval}{baseline}."


def risk_aside(findings: Iterable[Finding]) -> str:
    """The clause that explains the attack with the largest excess; empty if the sentence names none."""
    some = tuple(findings)
    shown = [gain for gain in _leading(some) if gain.certain or not known_rows_sentence(some)]
    term = term_of(shown[0].finding.name) if shown else None
    return "" if term is None else f"{term.name[:1].upper()}{term.name[1:]}: {term.meaning}"


_KNOWN = {"few-columns": "a few columns", "half-columns": "half of the columns", "all-columns": "all columns but one"}


def by_knowledge(findings: Iterable[Finding]) -> list[tuple[str, str, str]]:
    """Attackers by the columns that they know: success of record linkage and of attribute inference."""
    found = {finding.name: finding for finding in findings if finding.value is not None}
    rows = []
    for name, known in _KNOWN.items():
        way = "euclid" if name == "all-columns" else name
        linked = found.get(f"linkage-{way}") or found.get(f"own-row-linkage-{way}")
        inferred = found.get(f"attribute-inference-{name}")
        if linked is not None or inferred is not None:
            rows.append((known, _members_and_control(linked), _members_and_control(inferred)))
    return rows if len(rows) > 1 else []


def _members_and_control(finding: Finding | None) -> str:
    """Success on members, and on the control group or by guessing."""
    if finding is None or finding.value is None:
        return "not run"
    if finding.control is not None:
        return f"{percent(finding.value)} (control {percent(finding.control)})"
    baseline = "" if finding.baseline is None else f" (baseline {percent(finding.baseline)})"
    return f"{percent(finding.value)}{baseline}"


def risky_columns(columns: Sequence[ColumnRisk]) -> list[tuple[str, str]]:
    """The columns that contribute most to the risk, each with its reasons; empty if none stands out."""
    column_reasons = [(risk.column, ", ".join(_reasons(risk))) for risk in columns]
    return [(column, reasons) for column, reasons in column_reasons if reasons][:_MOST_COLUMNS]


def _reasons(risk: ColumnRisk) -> list[str]:
    reasons = []
    if risk.certain and risk.gain is not None and risk.gain >= _LEAST:
        reasons.append(f"excess attribute inference {percent(risk.gain)}")
    if risk.alone >= _LEAST:
        reasons.append(f"makes {percent(risk.alone)} of the records unique")
    if risk.rare:
        people = "1 person has" if risk.rare == 1 else f"{risk.rare} people have"
        reasons.append(f"{people} a rare value (fewer than {FEW} people) that the release contains")
    return reasons


def risky_kinds(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Groups of people whom an attack hits significantly: outliers, unique and extreme values."""
    found = {gain.finding.name: gain for gain in gains(findings) if gain.certain}
    return [(kind, gain_sentence(found[name])) for name, kind in _KINDS.items() if name in found]


_KINDS = {
    "outlier-inference": "Rare combinations of categories",
    "singling-out-univariate": "Extreme and unique values",
    "extreme-values-disclosed": "Extreme values",
}
