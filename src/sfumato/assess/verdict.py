"""The verdict of a policy on a release: the outcome, each limit with its result, the reasons, and what to change."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from sfumato.assess.glossary import limit_name, limit_sentence
from sfumato.core.documents import plain

__all__ = ["ChangeTried", "ExceededLimit", "LimitResult", "Ruling", "UndecidedLimit", "Verdict"]


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
    def left_out(self) -> str:
        """Limits that were not judged and do not change the outcome, for the owner; empty if there are none."""
        return " ".join(f"{_missing_words(each)}." for each in self.missing if not each.needed)

    @property
    def hint(self) -> str:
        """How an inconclusive limit can be decided; empty if none is inconclusive."""
        unsure = any(each.interval is not None for each in self.missing)
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
    return limit_sentence(each.limit, each.finding, float(each.value or 0.0), float(each.allowed), each.interval)


def _missing_words(each: UndecidedLimit) -> str:
    """Why a limit could not be judged, without a full stop."""
    if each.value is not None and each.allowed is not None:
        return limit_sentence(each.limit, each.finding, each.value, each.allowed, each.interval)
    name = limit_name(each.limit, each.finding)
    return f"{name[:1].upper()}{name[1:]} was not judged: {each.reason}"
