"""How far an attack gets beyond what it gets on people held out, from a release that knows nobody, or by guessing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.intervals import CONFIDENCE

__all__ = ["FALSE_ALARMS", "Gain", "gains", "is_rate", "rank"]

FALSE_ALARMS = 0.001
"""How often any attack of a report is called a success on a release that knows nobody, at most."""

_CONCEDED = "group-linkage"  # a group hides which of its members a person is, not where they are


@dataclass(frozen=True)
class Gain:
    """What an attack gains on people of the table.

    Parameters
    ----------
    finding : Finding
        With a value.
    against : float
        The control, or the baseline where nobody was held out.
    controlled : bool
        Whether it is the control.
    excess : float
        Value less ``against``.
    certain : bool
        Whether the excess is more than chance: the limits of a difference of two shares from the limits of each
        (Newcombe 1998, method 10), so wide that of all attacks together `FALSE_ALARMS` are beyond by chance. A baseline
        that was measured comes from rows other than the released ones, which were drawn, too: it takes twice the
        variance, as much again for the rows as for the people.
    conceded : bool
        Whether every certificate refuses to promise that the attack fails.
    """

    finding: Finding
    against: float
    controlled: bool
    excess: float
    certain: bool
    conceded: bool


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
    >>> from sfumato.assess.frame import Number, success
    >>> from sfumato.assess.intervals import Tries
    >>> values = success(Tries(30, 100), guess=0.01, control=Tries(2, 100))
    >>> found = [Number(name, "").finding(Family.ATTACK, values) for name in ("a", "b")]
    >>> [(round(gain.excess, 2), gain.certain) for gain in gains(found)]
    [(0.28, True), (0.28, True)]
    """
    rates = [finding for finding in findings if "/" not in finding.name and is_rate(finding)]
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
