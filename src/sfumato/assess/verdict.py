"""A verdict: whether a release meets a policy, why not, what lacks to tell, and what to try next."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["Exceeded", "Missing", "Outcome", "Verdict"]


class Outcome(StrEnum):
    """What a policy says to a release."""

    MEETS = "meets"
    DOES_NOT_MEET = "does-not-meet"
    CANNOT_TELL = "cannot-tell"

    @property
    def words(self) -> str:
        """Outcome as what a release does to a policy that is named after it."""
        return {"meets": "meets", "does-not-meet": "does not meet", "cannot-tell": "cannot be told to meet"}[self.value]


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
    outcome : Outcome
    exceeded : tuple of Exceeded
        Empty unless the outcome is that the release does not meet the policy.
    missing : tuple of Missing
    to_try : tuple of str
        Command lines that may help.
    edited : bool
        Whether the policy has the name of one that is built in and asks for something else.
    """

    policy: str
    outcome: Outcome
    exceeded: tuple[Exceeded, ...] = ()
    missing: tuple[Missing, ...] = ()
    to_try: tuple[str, ...] = ()
    edited: bool = False

    @property
    def title(self) -> str:
        """Name of the policy for readers."""
        return f"{self.policy} (edited)" if self.edited else self.policy

    def to_json(self) -> dict[str, Any]:
        """Verdict as in ``report.json``."""
        return {
            "policy": self.policy,
            "edited": self.edited,
            "outcome": self.outcome.value,
            "exceeded": [dataclasses.asdict(each) for each in self.exceeded],
            "missing": [dataclasses.asdict(each) for each in self.missing],
            "try": list(self.to_try),
        }
