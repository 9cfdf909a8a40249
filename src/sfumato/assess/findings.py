"""A finding: one measured number with all that a reader needs to understand it, and how far an attack gets.

The gain of an attack is what it gets beyond people held out, a release that knows nobody, or guessing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist
from typing import Any

from sfumato.assess.intervals import CONFIDENCE, Tries
from sfumato.core.documents import plain

__all__ = [
    "FALSE_ALARMS",
    "Direction",
    "Family",
    "Finding",
    "Gain",
    "Tries",
    "column_gains",
    "gains",
    "is_rate",
    "not_run",
    "rank",
]

FALSE_ALARMS = 0.001
"""How often any attack of a report is called a success on a release that knows nobody, at most."""
# a group hides which of its members a person is, not where they are, and who found it picks one of them as its size
# says; the trees of a chain stay with the owner
_CONCEDED = ("group-linkage", "expected-reidentification", "tree-membership")


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
    """One measured number."""

    name: str
    family: Family
    value: float | None  # None where it was not run
    direction: Direction
    range: tuple[float | None, float | None]  # worst and best possible value in numeric order; None for an open end
    meaning: str  # one sentence that a steward understands
    interval: tuple[float, float] | None = None  # where the number may lie, 95 %; None for an exact count
    # what the number would be if nothing were wrong (for utility); for attacks by guessing, or, where an interval comes
    # with it, from a release that knows nobody
    baseline: float | None = None
    control: float | None = None  # the same number on rows that were held out
    because: str | None = None  # why it was not run
    public: bool = True  # whether it may stand in the edition that leaves with the release
    unit: str = ""  # how a page writes the number: "share" as a percentage, "percent" and "count" as they are
    control_interval: tuple[float, float] | None = None  # where the control may lie, 95 %
    attempts: int | None = None  # how many people were attacked, or rows tested, for it
    # where the baseline of an attack may lie, 95 %; None where it is reckoned
    baseline_interval: tuple[float, float] | None = None
    # inside, outside: of an attack: what value and control rest on
    inside: Tries | None = None
    outside: Tries | None = None
    # false where it was not run because such a table has nothing that it could attack; nothing is unknown then
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


@dataclass(frozen=True)
class Gain:
    """What an attack gains on people of the table."""

    finding: Finding  # with a value
    against: float  # the control, or the baseline where nobody was held out
    controlled: bool  # whether it is the control
    excess: float  # value less ``against``
    # whether the excess is more than chance: the limits of a difference of two shares from the limits of each (Newcombe
    # 1998, method 10), so wide that of all attacks together `FALSE_ALARMS` are beyond by chance. A baseline that was
    # measured comes from rows other than the released ones, which were drawn, too: it takes twice the variance, as much
    # again for the rows as for the people
    certain: bool
    conceded: bool  # whether it is conceded by every certificate, or needs what never leaves


def is_rate(finding: Finding) -> bool:
    """Whether a finding says how often, or how well, an attack succeeded: between 0 and 1, and less is better."""
    low, high = finding.range
    if finding.value is None or low is None or high is None or low < 0.0 or high > 1.0:
        return False
    return finding.family is Family.ATTACK and finding.direction is Direction.LOWER


def gains(findings: Iterable[Finding]) -> tuple[Gain, ...]:
    """Rank the attacks that were run, the largest gain first and conceded ones last; single columns are left out.

    Examples
    --------
    >>> from sfumato.assess.algebra import Number, success
    >>> values = success(Tries(30, 100), guess=0.01, control=Tries(2, 100))
    >>> found = [Number(name).finding(Family.ATTACK, values) for name in ("a", "b")]
    >>> [(round(gain.excess, 2), gain.certain) for gain in gains(found)]
    [(0.28, True), (0.28, True)]
    """
    return _ranked([finding for finding in findings if "/" not in finding.name and is_rate(finding)])


def column_gains(findings: Iterable[Finding]) -> tuple[Gain, ...]:
    """Rank the attacks on single columns that were run, the largest gain first."""
    return _ranked([finding for finding in findings if "/" in finding.name and is_rate(finding)])


def _ranked(rates: Sequence[Finding]) -> tuple[Gain, ...]:
    width = _width(len(rates))
    found = (_gain(finding, width) for finding in sorted(rates, key=rank))
    return tuple(gain for gain in found if gain is not None)


def rank(finding: Finding) -> tuple[bool, float]:
    """Sort by this key to have the largest gain first, and last what every certificate concedes."""
    against = finding.control if finding.control is not None else finding.baseline
    return _is_conceded(finding), (against or 0.0) - (finding.value or 0.0)


def _is_conceded(finding: Finding) -> bool:
    return finding.name.startswith(_CONCEDED)


def _width(attacks: int) -> float:
    """By how much to widen limits, so that so many one-sided comparisons are wrong with `FALSE_ALARMS` at most."""
    normal = NormalDist()
    return normal.inv_cdf(1 - FALSE_ALARMS / max(attacks, 1)) / normal.inv_cdf((1 + CONFIDENCE) / 2)


def _gain(finding: Finding, width: float) -> Gain | None:
    value, controlled = finding.value, finding.control is not None
    against = finding.control if controlled else finding.baseline
    limits = finding.control_interval if controlled else finding.baseline_interval
    if value is None or against is None:
        return None
    below = value - finding.interval[0] if finding.interval is not None else 0.0
    above = limits[1] - against if limits is not None else 0.0
    excess = value - against
    drawn = 1 if controlled or limits is None else 2  # rows and people, or people alone
    certain = excess > width * math.sqrt(drawn) * math.hypot(below, above)
    return Gain(finding, against, controlled, excess, certain, _is_conceded(finding))
