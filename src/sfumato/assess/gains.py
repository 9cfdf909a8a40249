"""How far an attack gets beyond what it gets on people held out, or beyond guessing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.assess.findings import Direction, Family, Finding

__all__ = ["Gain", "gains", "is_rate"]


@dataclass(frozen=True)
class Gain:
    """What an attack gains on people of the table.

    Parameters
    ----------
    finding : Finding
        With a value.
    against : float
        The control, or guessing where nobody was held out.
    controlled : bool
        Whether it is the control.
    excess : float
        Value less ``against``.
    certain : bool
        Whether the excess is more than chance: 95 % limits of a difference of two shares, from the limits of each
        (Newcombe 1998, method 10).
    """

    finding: Finding
    against: float
    controlled: bool
    excess: float
    certain: bool


def is_rate(finding: Finding) -> bool:
    """Whether a finding says how often, or how well, an attack succeeded: between 0 and 1, and less is better."""
    low, high = finding.range
    if finding.value is None or low is None or high is None or low < 0.0 or high > 1.0:
        return False
    return finding.family is Family.ATTACK and finding.direction is Direction.LOWER


def gains(findings: Iterable[Finding]) -> tuple[Gain, ...]:
    """Rank the attacks that were run by what they gain, the largest first; those on single columns are left out."""
    found = [_gain(finding) for finding in findings if "/" not in finding.name and is_rate(finding)]
    return tuple(sorted((gain for gain in found if gain is not None), key=lambda gain: -gain.excess))


def _gain(finding: Finding) -> Gain | None:
    value, control = finding.value, finding.control
    against = control if control is not None else finding.baseline
    if value is None or against is None:
        return None
    below = value - finding.interval[0] if finding.interval is not None else 0.0
    limits = finding.control_interval if control is not None else None
    above = limits[1] - against if limits is not None else 0.0
    excess = value - against
    return Gain(finding, against, control is not None, excess, excess > math.hypot(below, above))
