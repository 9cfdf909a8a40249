"""A finding: one measured number with all that a reader needs to understand it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sfumato.assess.intervals import Tries
from sfumato.documents import plain

__all__ = ["Direction", "Family", "Finding", "Tries", "not_run"]


class Family(StrEnum):
    """What a finding speaks of."""

    PRIVACY = "privacy"
    UTILITY = "utility"
    ATTACK = "attack"


class Direction(StrEnum):
    """Which way is good."""

    HIGHER = "higher-is-better"
    LOWER = "lower-is-better"


@dataclass(frozen=True)
class Finding:
    """One measured number.

    Parameters
    ----------
    name : str
    family : Family
    value : float or None
        None where it was not run.
    direction : Direction
    range : tuple of float
        Worst and best possible value in numeric order; None for an open end.
    meaning : str
        One sentence that a steward understands.
    interval : tuple of float, optional
        Where the number may lie, 95 %; None for an exact count.
    baseline : float, optional
        What the number would be if nothing were wrong (for utility); for attacks by guessing, or, where an interval
        comes with it, from a release that knows nobody.
    control : float, optional
        The same number on rows that were held out.
    because : str, optional
        Why it was not run.
    public : bool
        Whether it may stand in the edition that leaves with the release.
    control_interval : tuple of float, optional
        Where the control may lie, 95 %.
    attempts : int, optional
        How many people were attacked, or rows tested, for it.
    baseline_interval : tuple of float, optional
        Where the baseline of an attack may lie, 95 %; None where it is reckoned.
    unit : str
        How a page writes the number: "share" as a percentage, "percent" and "count" as they are.
    inside, outside : Tries, optional
        Of an attack: what value and control rest on.
    applies : bool
        False where it was not run because such a table has nothing that it could attack; nothing is unknown then.
    """

    name: str
    family: Family
    value: float | None
    direction: Direction
    range: tuple[float | None, float | None]
    meaning: str
    interval: tuple[float, float] | None = None
    baseline: float | None = None
    control: float | None = None
    because: str | None = None
    public: bool = True
    unit: str = ""
    control_interval: tuple[float, float] | None = None
    attempts: int | None = None
    baseline_interval: tuple[float, float] | None = None
    inside: Tries | None = None
    outside: Tries | None = None
    applies: bool = True

    @property
    def status(self) -> str:
        """Measured, or not run."""
        return "measured" if self.value is not None else "not-run"

    def to_json(self) -> dict[str, Any]:
        """The finding as a JSON object; a number that is not finite is null."""
        document: dict[str, Any] = {name: _finite(value) for name, value in plain(self).items()}
        return document | {"status": self.status}


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def not_run(
    name: str,
    family: Family,
    direction: Direction,
    meaning: str,
    because: str,
    *,
    public: bool = True,
    applies: bool = True,
) -> Finding:
    """A finding that could not be measured, and why; never a zero."""
    bounds = (None, None)
    return Finding(name, family, None, direction, bounds, meaning, because=because, public=public, applies=applies)
