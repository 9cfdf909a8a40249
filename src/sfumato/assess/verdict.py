"""What a policy says to a release: the ruling, its reasons in plain words, and what to try next."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sfumato.assess.plain import limit_words, missing_words
from sfumato.core.documents import plain

__all__ = ["ChangeTried", "Exceeded", "Missing", "Ruling", "Verdict"]


class Ruling(StrEnum):
    """What a policy says to a release."""

    MEETS = "meets"
    DOES_NOT_MEET = "does-not-meet"
    CANNOT_TELL = "cannot-tell"


@dataclass(frozen=True)
class Exceeded:
    """A limit that is exceeded, or a requirement that is not met."""

    limit: str  # its name in the policy
    finding: str | None  # the finding that shows it; None of a requirement
    # what there is: a gain or score as it was measured, or what is required; None where the method has no such thing
    value: float | int | bool | str | None
    allowed: float | int | bool | str  # what the policy asks
    interval: tuple[float, float] | None = None  # where the value may lie, of which the lower end is above the limit


@dataclass(frozen=True)
class Missing:
    """What a limit could not be judged by."""

    limit: str
    finding: str | None
    because: str
    needed: bool = True  # false where the limit is left out for it, and the outcome does not hang on it


@dataclass(frozen=True)
class ChangeTried:
    """A column dropped or coarsened, tried on a sample: what that did to the worst of what the policy judges.

    ``before`` and ``after`` are multiples of what the policy allows, 1 at the limit. ``clear`` says that the worst
    finding fell by more than chance.
    """

    column: str
    change: str  # what was done, in words
    how: str  # how `sanitize` is told
    before: float
    after: float
    people: int
    clear: bool

    @property
    def sentence(self) -> str:
        """What it did, for the owner."""
        change = f"{self.change[:1].upper()}{self.change[1:]}"
        return f"{change} the worst attack got {self.after:.1f} times what is allowed, and not {self.before:.1f} times."


@dataclass(frozen=True)
class Verdict:
    """What a policy says to a release."""

    policy: str  # its name
    outcome: Ruling
    exceeded: tuple[Exceeded, ...] = ()  # empty unless the outcome is that the release does not meet the policy
    missing: tuple[Missing, ...] = ()
    to_try: tuple[str, ...] = ()  # command lines that may help; where some were tried, those that met the policy
    purpose: str = field(default="", compare=False)  # for whom the policy is, in a sentence
    edited: bool = False  # whether the policy has the name of one that is built in and asks for something else
    tried: int | None = None  # other settings that were tried on the table for it; None where none could be
    asked: bool = True  # false where no policy was named, and it was judged by the usual one; nothing is refused then
    changes: tuple[ChangeTried, ...] = ()  # columns changed on a sample, the one that helps most first

    @property
    def helpful(self) -> tuple[str, ...]:
        """Which columns, dropped or coarsened, clearly lower the worst of the risk, for the owner; the most first."""
        return tuple(each.sentence for each in self.changes if each.clear)

    @property
    def changes_said(self) -> str:
        """How it was looked for columns to change; empty where it was not."""
        if not self.changes:
            return ""
        people = f"Tried on {self.changes[0].people:,} people of the table"
        if any(each.clear for each in self.changes):
            return f"{people}."
        columns = ", ".join(dict.fromkeys(f"'{each.column}'" for each in self.changes))
        return f"{people}, changing one of {columns} alone does not clearly lower the worst of it."

    @property
    def title(self) -> str:
        """Name of the policy for readers."""
        return f"{self.policy} (edited)" if self.edited else self.policy

    @property
    def refuses(self) -> bool:
        """Whether the release may not leave for it."""
        return self.asked and self.outcome is not Ruling.MEETS

    @property
    def heading(self) -> str:
        """Ruling and policy in a few words, for anybody."""
        return f"{_HEADINGS[self.outcome]} {self.title!r}"

    @property
    def clause(self) -> str:
        """Ruling and policy as the beginning of a sentence about the release."""
        return f"{_CLAUSES[self.outcome]} the policy {self.title!r}"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not met or cannot be told, for the owner."""
        return (*map(_exceeded_words, self.exceeded), *(_missing_words(each) for each in self.missing if each.needed))

    @property
    def left_out(self) -> str:
        """What was not judged and need not be, for the owner; empty where nothing was left out."""
        told = [_missing_words(each) for each in self.missing if not each.needed]
        return f"Not judged: {'; '.join(told)}." if told else ""

    @property
    def hint(self) -> str:
        """How more could be told; empty where everything was."""
        unsure = any(each.because.startswith("it may be") for each in self.missing)
        return "With more people held out or attacked this could be told." if unsure else ""

    @property
    def none_found(self) -> str:
        """That no command is known to help, and how far it was looked for one; for the owner."""
        if self.tried is None:
            return "No command is known that would help."
        if not self.tried:
            return "No setting is known that would meet it: with so few people too little could be told of any."
        many = "One other setting was" if self.tried == 1 else f"{self.tried} other settings were"
        return f"{many} tried, and none would meet it in 9 of 10 runs; 'sfumato tune' looks further."

    @property
    def unasked(self) -> str:
        """That nobody named the policy, for anybody; empty where somebody did."""
        if self.asked:
            return ""
        held = "" if self.outcome is Ruling.MEETS else " Nothing was held back for it, which is no permission."
        return f"No policy was named, so {self.title!r} was taken.{held}"

    @property
    def answer(self) -> str:
        """Whether it may be sent, for the owner."""
        return _ANSWERS[self.outcome]

    def sentence(self) -> str:
        """Verdict in one sentence, for the owner."""
        return f"{self.heading}: {'; '.join(self.reasons)}." if self.reasons else f"{self.heading}."

    def short_sentence(self) -> str:
        """Ruling with its first reason, and how many more there are; for the owner."""
        aside = "" if self.asked else " (none was named)"
        rest = len(self.reasons) - 1
        more = f"; {rest} more reason{'s' * (rest > 1)}" if rest > 0 else ""
        held = "" if self.outcome is Ruling.MEETS else f" {self.answer}"
        return f"{self.heading}{aside}: {self.reasons[0]}{more}.{held}" if self.reasons else f"{self.heading}{aside}."

    def to_json(self) -> dict[str, Any]:
        """Verdict as in ``report.json``."""
        told = plain(self)
        return {key.removeprefix("to_"): told[key] for key in _WRITTEN}


_WRITTEN = ("policy", "edited", "asked", "outcome", "exceeded", "missing", "to_try", "tried", "changes")
_HEADINGS = {
    Ruling.MEETS: "Meets the policy",
    Ruling.DOES_NOT_MEET: "Does not meet the policy",
    Ruling.CANNOT_TELL: "It cannot be told whether this meets the policy",
}
_ANSWERS = {
    Ruling.MEETS: "It may, as far as this policy goes.",
    Ruling.DOES_NOT_MEET: "Do not send it.",
    Ruling.CANNOT_TELL: "Do not send it yet.",
}
_CLAUSES = {
    Ruling.MEETS: "the release meets",
    Ruling.DOES_NOT_MEET: "the release does not meet",
    Ruling.CANNOT_TELL: "it cannot be told whether the release meets",
}


def _exceeded_words(each: Exceeded) -> str:
    """A limit or requirement that is not kept, in plain words."""
    if each.limit == "held_out":
        return "no people were held out to compare with"
    if each.limit == "persons_per_group":
        there = "the method makes no groups" if each.value is None else f"the smallest group has {each.value} people"
        return f"{there}, and {each.allowed} in every group are asked"
    if each.limit == "rare":
        return "categories that few people have may show"
    return limit_words(each.limit, each.finding, float(each.value or 0.0), float(each.allowed), each.interval)


def _missing_words(each: Missing) -> str:
    """What a limit could not be judged by, in plain words."""
    return missing_words(each.limit, each.finding, each.because)
