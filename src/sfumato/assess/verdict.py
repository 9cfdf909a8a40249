"""A verdict: whether a release meets a policy, why not, what lacks to tell, and what to try next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sfumato.assess.words import show, spoken_name
from sfumato.documents import plain

__all__ = ["Exceeded", "Missing", "Ruling", "Verdict"]


class Ruling(StrEnum):
    """What a policy says to a release."""

    MEETS = "meets"
    DOES_NOT_MEET = "does-not-meet"
    CANNOT_TELL = "cannot-tell"


@dataclass(frozen=True)
class Exceeded:
    """A limit that is exceeded, or a requirement that is not met.

    Parameters
    ----------
    limit : str
        Its name in the policy.
    finding : str or None
        The finding that shows it; None of a requirement.
    value : float, int, bool, str or None
        What there is: a gain or score as it was measured, or what is required; None where the method has no such thing.
    allowed : float, int, bool or str
        What the policy asks.
    interval : tuple of float, optional
        Where the value may lie, of which the lower end is above the limit.
    """

    limit: str
    finding: str | None
    value: float | int | bool | str | None
    allowed: float | int | bool | str
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Missing:
    """What a limit could not be judged by.

    Parameters
    ----------
    limit : str
    finding : str or None
    because : str
    needed : bool
        False where the limit is left out for it, and the outcome does not hang on it.
    """

    limit: str
    finding: str | None
    because: str
    needed: bool = True


@dataclass(frozen=True)
class Verdict:
    """What a policy says to a release.

    Parameters
    ----------
    policy : str
        Its name.
    outcome : Ruling
    exceeded : tuple of Exceeded
        Empty unless the outcome is that the release does not meet the policy.
    missing : tuple of Missing
    to_try : tuple of str
        Command lines that may help.
    edited : bool
        Whether the policy has the name of one that is built in and asks for something else.
    """

    policy: str
    outcome: Ruling
    exceeded: tuple[Exceeded, ...] = ()
    missing: tuple[Missing, ...] = ()
    to_try: tuple[str, ...] = ()
    edited: bool = False

    @property
    def title(self) -> str:
        """Name of the policy for readers."""
        return f"{self.policy} (edited)" if self.edited else self.policy

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
        """Why it is not met or cannot be told, and what was left out; for the owner."""
        return (*map(_exceeded_words, self.exceeded), *map(_missing_words, self.missing))

    def sentence(self) -> str:
        """Verdict in one sentence, for the owner."""
        return f"{self.heading}: {'; '.join(self.reasons)}." if self.reasons else f"{self.heading}."

    def to_json(self) -> dict[str, Any]:
        """Verdict as in ``report.json``."""
        told = plain(self)
        return {key.removeprefix("to_"): told[key] for key in _WRITTEN}


_WRITTEN = ("policy", "edited", "outcome", "exceeded", "missing", "to_try")
_HEADINGS = {
    Ruling.MEETS: "Meets the policy",
    Ruling.DOES_NOT_MEET: "Does not meet the policy",
    Ruling.CANNOT_TELL: "It cannot be told whether this meets the policy",
}

_CLAUSES = {
    Ruling.MEETS: "the release meets",
    Ruling.DOES_NOT_MEET: "the release does not meet",
    Ruling.CANNOT_TELL: "it cannot be told whether the release meets",
}


def _exceeded_words(each: Exceeded) -> str:
    """A limit or requirement that is not kept, in plain words."""
    if each.limit == "held_out":
        return "no people were held out"
    if each.limit == "persons_per_group":
        there = "the method makes no groups" if each.value is None else f"the smallest group has {each.value}"
        return f"{there} and {each.allowed} persons a group are asked"
    if each.limit == "rare":
        return "categories that few people have may show"
    ends = "" if each.interval is None else f"{show(each.interval[0])} to {show(each.interval[1])}, "
    value = show(each.value if isinstance(each.value, float) else None)
    return f"{each.limit} is {value} ({ends}{_finding_words(each.finding)}) and {each.allowed} is allowed"


def _missing_words(each: Missing) -> str:
    """What a limit could not be judged by, in plain words."""
    which = f" ({_finding_words(each.finding)})" if each.finding else ""
    return f"{each.limit}: {each.because}{which}"


def _finding_words(name: str | None) -> str:
    words = spoken_name(name or "")
    return words[:1].lower() + words[1:]
