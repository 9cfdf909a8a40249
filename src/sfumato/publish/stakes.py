"""What a policy judges: every gain or score of a report that stands against a limit, and what lacks to judge one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sfumato.assess.findings import Tries, difference_interval, exact_interval
from sfumato.assess.report import Missing, Report
from sfumato.publish.policy import Policy

__all__ = ["CONFIDENCE", "FAMILIES", "LEAST_HELD_OUT", "TPR", "Stake", "confidence_of", "stakes_of", "times_allowed"]

CONFIDENCE = 0.95
"""Of all intervals of a verdict together."""

LEAST_HELD_OUT = 1_000
"""People held out with whom the membership attack at 1 % false alarms is judged."""

_OWN_ROW = "own-row-linkage-"
_SINGLING = "singling-out-"
_SCORES = ("membership-auc", "membership-tpr")
TPR = "membership-tpr"
_FALSE_ALARMS, _LEAST_ALLOWED = 0.01, 0.001

FAMILIES: dict[str, Callable[[str], bool]] = {
    "linkage-gain": lambda name: name.startswith(("linkage-", _OWN_ROW, "linkability")) and "/" not in name,
    "attribute-gain": lambda name: name.startswith("attribute-inference-"),
    "singling-gain": lambda name: name.startswith(_SINGLING) or name == "rare-combination-found",
    "membership-auc": lambda name: name.startswith("membership-") and not name.startswith("membership-at-"),
    "membership-tpr": lambda name: name.startswith("membership-at-"),
}


@dataclass(frozen=True)
class Stake:
    """One gain or score that is judged, of a finding against a limit, both by name.

    ``outside`` is the control, a number that is exact, or None of a score. One that is judged together with others
    besides stands ``alone``: it may only exceed the limit.
    """

    limit: str
    finding: str
    inside: Tries
    outside: Tries | float | None
    alone: bool = False

    @property
    def value(self) -> float:
        """The gain, or the score."""
        against = self.outside if isinstance(self.outside, float) else 0.0
        if isinstance(self.outside, Tries):
            against = _share(self.outside)
        return _share(self.inside) - against

    def interval(self, confidence: float) -> tuple[float, float]:
        """Where it may lie with this confidence."""
        if isinstance(self.outside, Tries):
            return difference_interval(self.inside, self.outside, confidence)
        low, high = exact_interval(min(self.inside.hits, self.inside.of), self.inside.of, confidence)
        against = 0.0 if self.outside is None else self.outside
        return low - against, high - against


def confidence_of(stakes: Sequence[Stake]) -> float:
    """Confidence of each interval, so that all of them hold together."""
    return 1.0 - (1.0 - CONFIDENCE) / max(1, len(stakes))


def times_allowed(limit: str, value: float, allowed: float) -> float:
    """How many times what the policy allows beyond a coin, or beyond the false alarms, was found.

    Examples
    --------
    >>> times_allowed("linkage-gain", 0.1, 0.05), round(times_allowed("membership-auc", 0.6, 0.55), 9)
    (2.0, 2.0)
    """
    nothing = {"membership-auc": 0.5, TPR: _FALSE_ALARMS}.get(limit, 0.0)
    return (value - nothing) / max(allowed - nothing, _LEAST_ALLOWED)


def stakes_of(report: Report, policy: Policy) -> tuple[list[Stake], list[Missing]]:
    """List what is judged under each limit, and what lacks."""
    stakes: list[Stake] = []
    missing: list[Missing] = []
    for limit in policy.limits:
        if limit == TPR and report.rows_held_out < LEAST_HELD_OUT:
            told = f"left out, for it takes {LEAST_HELD_OUT:,} people held out and there are {report.rows_held_out:,}"
            missing.append(Missing(limit, None, told, needed=set(policy.limits) == {TPR}))
            continue
        here, lacking = _of_limit(limit, report)
        stakes += _together(here)
        missing += _merged(lacking)
    return stakes, missing


def _merged(missing: Sequence[Missing]) -> list[Missing]:
    """Say a reason once for all attacks that it keeps from being judged."""
    reasons: dict[str, Missing] = {}
    for each in missing:
        known = reasons.get(each.because)
        reasons[each.because] = each if known is None else dataclasses.replace(known, finding=None)
    return list(reasons.values())


def _of_limit(limit: str, report: Report) -> tuple[list[Stake], list[Missing]]:
    family = [finding for finding in report.findings if FAMILIES[limit](finding.name)]
    if limit == "attribute-gain":  # one finding a column; those of a whole attacker say why there is none
        columns = [finding for finding in family if "/" in finding.name]
        family = columns or [finding for finding in family if finding.value is None]
    stakes: list[Stake] = []
    missing: list[Missing] = []
    for finding in family:
        if finding.value is None:
            if finding.applies:
                missing.append(Missing(limit, finding.name, f"not run, because {finding.because}"))
            continue
        outside: Tries | float | None = finding.outside
        if limit in _SCORES:
            outside = None
        elif finding.name.startswith(_OWN_ROW):
            outside = finding.baseline
        if finding.inside is None or not finding.inside.of:
            missing.append(Missing(limit, finding.name, "it is not on record how many were tried"))
        elif outside is None and limit not in _SCORES:
            lacking = "nobody held out could be attacked so" if report.rows_held_out else "no people were held out"
            missing.append(Missing(limit, finding.name, lacking))
        else:
            stakes.append(Stake(limit, finding.name, finding.inside, outside))
    if not stakes and not missing:
        missing.append(Missing(limit, None, "none of its attacks applies to such a table"))
    return stakes, missing


def _together(stakes: Sequence[Stake]) -> list[Stake]:
    """Take the two kinds of singling out together; each may still exceed the limit by itself."""
    kinds = [stake for stake in stakes if stake.finding.startswith(_SINGLING)]
    if len(kinds) < 2:
        return list(stakes)
    first, *others = kinds
    leading = max(kinds, key=lambda stake: stake.value).finding
    whole = Stake(first.limit, leading, first.inside, first.outside)
    for other in others:
        assert isinstance(whole.outside, Tries)
        assert isinstance(other.outside, Tries)
        whole = Stake(first.limit, leading, _sum(whole.inside, other.inside), _sum(whole.outside, other.outside))
    rest = [stake for stake in stakes if stake not in kinds]
    apart = [Stake(stake.limit, stake.finding, stake.inside, stake.outside, alone=True) for stake in kinds]
    return [*rest, whole, *apart]


def _sum(one: Tries, other: Tries) -> Tries:
    return Tries(one.hits + other.hits, one.of + other.of, max(one.times, other.times))


def _share(tries: Tries) -> float:
    return min(1.0, tries.times * tries.hits / tries.of)
