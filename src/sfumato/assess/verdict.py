"""The verdict of a policy on a release: the outcome, each limit with its result, the reasons, and what to change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

from sfumato.assess.audit.intervals import MEMBERS
from sfumato.assess.findings import Finding, Gain, column_gains, excess_interval, gains
from sfumato.assess.glossary import (
    CI,
    explain,
    limit_name,
    limit_number,
    limit_range,
    limit_sentence,
    percent,
    spoken_name,
)
from sfumato.core.documents import plain

__all__ = [
    "FAMILIES",
    "ChangeTried",
    "ExceededLimit",
    "LimitResult",
    "RiskRow",
    "Ruling",
    "UndecidedLimit",
    "Verdict",
    "risk_table",
]


class Ruling(StrEnum):
    """The outcome of a verdict."""

    MEETS = "meets"
    DOES_NOT_MEET = "does-not-meet"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class LimitResult:
    """What was measured under one limit, by the attack that decides it."""

    limit: str  # its name in the policy
    finding: str
    members: float  # success on members, or the score
    control: float | None  # success on the control group, or the baseline; None of a score
    value: float  # the excess, or the score
    interval: tuple[float, float]  # all intervals of a verdict hold together with 95 %
    allowed: float
    outcome: Ruling


@dataclass(frozen=True)
class ExceededLimit:
    """A limit that is exceeded, or a requirement that is not met."""

    limit: str  # its name in the policy
    finding: str | None  # the finding that shows it; None of a requirement
    # the excess or score as measured, or the state of a requirement; None if the method has no such thing
    value: float | int | bool | str | None
    allowed: float | int | bool | str  # what the policy asks
    interval: tuple[float, float] | None = None  # confidence interval of the value; its lower end is above the limit


@dataclass(frozen=True)
class UndecidedLimit:
    """Why a limit could not be judged."""

    limit: str
    finding: str | None
    reason: str
    needed: bool = True  # false if the outcome does not depend on it
    value: float | None = None  # the excess or score, if it was measured and its interval contains the limit
    interval: tuple[float, float] | None = None
    allowed: float | None = None


@dataclass(frozen=True)
class ChangeTried:
    """A column dropped or coarsened, tried on a sample: what that did to the worst of what the policy judges.

    ``before`` and ``after`` are multiples of what the policy allows, 1 at the limit. ``clear`` says that the worst
    finding fell significantly.
    """

    column: str
    change: str  # what was done, in words
    how: str  # the option of `sanitize`, or the line of the schema
    before: float
    after: float
    people: int
    clear: bool

    @property
    def sentence(self) -> str:
        """The effect of the change, for the owner."""
        change = f"{self.change[:1].upper()}{self.change[1:]}"
        return f"{change}, the strongest attack falls from {self.before:.1f} to {self.after:.1f} times its limit."


@dataclass(frozen=True)
class Verdict:
    """The verdict of a policy on a release."""

    policy: str  # its name
    outcome: Ruling
    exceeded: tuple[ExceededLimit, ...] = ()  # empty unless the outcome is that the release does not meet the policy
    missing: tuple[UndecidedLimit, ...] = ()
    to_try: tuple[str, ...] = ()  # command lines that may help; if some were tried, those that met the policy
    purpose: str = field(default="", compare=False)  # for whom the policy is, in a sentence
    edited: bool = False  # whether the policy has the name of a built-in one and other limits
    tried: int | None = None  # other settings that were tried on the table for it; None if none could be
    by: Literal["measurement", "proof"] = "measurement"
    asked: bool = True  # false if no policy was named and the usual one was applied; nothing is refused then
    changes: tuple[ChangeTried, ...] = ()  # columns changed on a sample, the one that helps most first
    limits: tuple[LimitResult, ...] = field(default=(), compare=False)  # every limit that was measured
    shadows: int | None = None  # shadow releases that it rests on; None if the release itself was attacked
    shadows_needed: int | None = None  # that would decide every limit, about; None if none is open
    people_needed: int | None = None  # with whom as many releases would decide it, about

    @property
    def helpful(self) -> tuple[str, ...]:
        """Changes of columns that significantly lower the strongest attack, for the owner; the best first."""
        return tuple(each.sentence for each in self.changes if each.clear)

    @property
    def changes_said(self) -> str:
        """Which changes of columns were tried; empty if none was."""
        if not self.changes:
            return ""
        people = f"Tried on a sample of {self.changes[0].people:,} members"
        if any(each.clear for each in self.changes):
            return f"{people}."
        columns = ", ".join(dict.fromkeys(f'"{each.column}"' for each in self.changes))
        return f"{people}: changing only one of {columns} does not significantly lower the strongest attack."

    @property
    def title(self) -> str:
        """Name of the policy for readers."""
        return f"{self.policy} (edited)" if self.edited else self.policy

    @property
    def refuses(self) -> bool:
        """Whether the policy forbids the release."""
        return self.asked and self.outcome is not Ruling.MEETS

    @property
    def heading(self) -> str:
        """Outcome and policy in a few words, without a full stop, for anybody."""
        proved = self.by == "proof" and self.outcome is Ruling.MEETS
        return f'{_HEADINGS[self.outcome]} "{self.title}"{" by proof" if proved else ""}'

    @property
    def clause(self) -> str:
        """Outcome and policy as the beginning of a sentence about the release."""
        return f'{_CLAUSES[self.outcome]} "{self.title}"'

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the policy is not met or the result is inconclusive, without full stops, for the owner."""
        return (*map(_exceeded_words, self.exceeded), *(_missing_words(each) for each in self.missing if each.needed))

    @property
    def why(self) -> str:
        """The first reason as a sentence; of a release that meets the policy, that every limit is kept."""
        if self.reasons:
            return f"{self.reasons[0]}."
        if self.by == "proof":
            return "The method proves differential privacy at least as strong as the policy asks; see the certificate."
        if not self.limits:
            return "Every requirement of the policy is met."
        number = len(self.limits)
        limits = "The one measured limit is" if number == 1 else f"All {number} measured limits are"
        return f"{limits} met: the upper end of each confidence interval is at most the limit."

    @property
    def basis(self) -> str:
        """What the verdict on the limits rests on, if not on the release alone."""
        if self.shadows is None:
            return ""
        return (
            f"The verdict is on the method with this table: {self.shadows} shadow releases, each without a random "
            f"{percent(1.0 - MEMBERS)} of the people, were attacked. One release varies around it."
        )

    @property
    def left_out(self) -> str:
        """Limits that were not judged and do not change the outcome, for the owner; empty if there are none."""
        return " ".join(f"{_missing_words(each)}." for each in self.missing if not each.needed)

    @property
    def hint(self) -> str:
        """How an inconclusive limit can be decided; empty if none is inconclusive."""
        unsure = any(each.interval is not None for each in self.missing)
        if unsure and self.shadows is not None:
            if self.shadows_needed is None:
                return ""
            people = "" if self.people_needed is None else f", or {self.people_needed:,} people,"
            return f"About {self.shadows_needed:,} shadow releases{people} would decide it; raise the time limit."
        return "A larger hold-out set or more attacked records would narrow the interval." if unsure else ""

    @property
    def none_found(self) -> str:
        """That no command is known to help, and which search found none; for the owner."""
        if self.tried is None:
            return "No command is known that would meet the policy."
        if not self.tried:
            return "No setting can be shown to meet the policy: the table has too few records to decide."
        many = "One other setting was" if self.tried == 1 else f"{self.tried} other settings were"
        return f"{many} tried; none meets the policy in 9 of 10 runs. 'sfumato tune' searches further."

    @property
    def unasked(self) -> str:
        """A note that the policy is the default; empty if it was named."""
        if self.asked:
            return ""
        held = "" if self.outcome is Ruling.MEETS else " Nothing was withheld; this is not a permission to release."
        return f'No policy was named, so "{self.title}" was applied.{held}'

    @property
    def answer(self) -> str:
        """Whether the table may be released, in one sentence, for the owner."""
        return _ANSWERS[self.outcome]

    def sentence(self) -> str:
        """Outcome with all reasons, for the owner."""
        return " ".join([f"{self.heading}.", *(f"{reason}." for reason in self.reasons)])

    def short_sentence(self) -> str:
        """Outcome, first reason, number of further reasons, and whether to release; for the owner."""
        aside = "" if self.asked else " (no policy was named)"
        rest = len(self.reasons) - 1
        more = f" {rest} more reason{'s' * (rest > 1)}." if rest > 0 else ""
        first = f" {self.reasons[0]}.{more}" if self.reasons else ""
        return f"{self.heading}{aside}.{first} {self.answer}"

    def to_json(self) -> dict[str, Any]:
        """Verdict as in ``report.json``."""
        document = plain(self)
        return {key.removeprefix("to_"): document[key] for key in _WRITTEN}


_WRITTEN = ("policy", "edited", "asked", "outcome", "by", "exceeded", "missing", "limits", "to_try", "tried", "changes")
_HEADINGS = {
    Ruling.MEETS: "Meets policy",
    Ruling.DOES_NOT_MEET: "Does not meet policy",
    Ruling.INCONCLUSIVE: "Inconclusive for policy",
}
_ANSWERS = {
    Ruling.MEETS: "You may release it under that policy.",
    Ruling.DOES_NOT_MEET: "Do not release it.",
    Ruling.INCONCLUSIVE: "Do not release it yet.",
}
_CLAUSES = {
    Ruling.MEETS: "the release meets policy",
    Ruling.DOES_NOT_MEET: "the release does not meet policy",
    Ruling.INCONCLUSIVE: "the release is inconclusive for policy",
}


def _exceeded_words(each: ExceededLimit) -> str:
    """Why a limit or requirement is not met, without a full stop."""
    if each.limit == "control":
        return "The policy requires a control group; no records were held out"
    if each.limit in ("epsilon", "delta"):
        return f"The policy accepts a proof with {each.limit} at most {each.allowed:g}; this method has {each.value:g}"
    if each.limit == "min_group_size":
        there = "the method forms no groups" if each.value is None else f"the smallest has {each.value}"
        return f"The policy requires groups of at least {each.allowed} people; {there}"
    if each.limit == "rare":
        return "The policy requires rare categories to be hidden; the release may contain some"
    if each.limit == "tails":
        return "The policy requires extreme values to be hidden; the release may contain some"
    return limit_sentence(each.limit, each.finding, float(each.value or 0.0), float(each.allowed), each.interval)


def _missing_words(each: UndecidedLimit) -> str:
    """Why a limit could not be judged, without a full stop."""
    if each.value is not None and each.allowed is not None:
        return limit_sentence(each.limit, each.finding, each.value, each.allowed, each.interval)
    if each.limit == "control":
        return f"There is no control group; {each.reason}"
    name = limit_name(each.limit, each.finding)
    return f"{name[:1].upper()}{name[1:]} was not judged: {each.reason}"


FAMILIES: dict[str, Callable[[str], bool]] = {
    "linkage-excess": lambda name: (
        name.startswith(("linkage-", "own-row-linkage-", "linkability", "shadow-link")) and "/" not in name
    ),
    "attribute-excess": lambda name: (
        name.startswith(("attribute-inference-", "shadow-attribute-inference")) or name == "known-input-recovery"
    ),
    "singling-out-excess": lambda name: (
        name.startswith(("singling-out-", "shadow-singling-out"))
        or name in ("outlier-inference", "extreme-values-disclosed")
    ),
    "membership-auc": lambda name: name.startswith(("membership-auc-", "shadow-auc-")),
    "membership-tpr": lambda name: name.startswith(("membership-tpr", "shadow-tpr-")),
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
