"""Excess risk over shadow releases, with confidence intervals that hold at every look.

In each shadow release some people are members and the others controls, by independent coins. The excess of an attack
in one release is its mean success on members minus that on controls. A person's expected success, from earlier
releases, is subtracted first: it does not depend on the coin, so that the excess stays unbiased, and what differs
between people is no longer noise.

Over releases the excesses are independent given the table, and each is a mean over hundreds of people: their mean has
Student's interval. The variance between few releases is moderated by the variance that people within a release imply,
times its inflation over all attacks [Smyth 2004]. It speaks of the risk of the method on *this table*. For *people like
these* the variance over persons is added, as for means that are clustered two ways [Cameron, Gelbach & Miller 2011].
All intervals of an audit hold together (Bonferroni), also if it stops as soon as a limit is decided: look l spends
1 / (l (l + 1)) of the error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Bools, Floats, Ints

__all__ = [
    "FALSE_ALARMS",
    "MEMBERS",
    "PILOT",
    "AreaSeries",
    "Estimate",
    "RateSeries",
    "Series",
    "TailSeries",
    "area_of",
    "error_of_look",
    "inflation",
    "is_look",
]

MEMBERS = 0.87
"""Chance of each person to be in a shadow release. The risk of a release of few people is no bound for that of many."""

PILOT = 2
"""First shadow releases, from which expected success and thresholds are learned; they are not counted."""

FALSE_ALARMS = 0.01
"""False positive rate of the true positive rate that is estimated."""

_LOOKS = (6, 9, 13, 19, 28, 42, 63, 95, 142, 213, 320, 480, 720, 1080)
_PRIOR = 2.0  # releases that the mean over all people weighs in a person's expected success


_FREEDOM = 10.0  # degrees of freedom that the variance within releases counts for


def inflation(series: Iterable[Series]) -> float:
    """How many times the variance within releases the variance between them is, over all attacks; 1 at least."""
    both = [each.variances() for each in series if len(each.values) > 1]
    ratios = [between / within for between, within in both if within > 0.0]
    return max(1.0, float(np.mean(ratios))) if ratios else 1.0


def is_look(releases: int) -> bool:
    """Whether intervals are looked at after this number of counted releases."""
    return releases in _LOOKS


def error_of_look(look: int, error: float) -> float:
    """Part of an error probability that a look spends, from 1; over all looks they add up to it.

    Examples
    --------
    >>> round(sum(error_of_look(look, 0.05) for look in range(1, 10_000)), 4)
    0.05
    """
    return error / (look * (look + 1))


@dataclass(frozen=True)
class Estimate:
    """An excess or score with its intervals, from a number of counted releases."""

    members: float  # success on members, or the score
    value: float  # the excess, or the score
    table: tuple[float, float]  # over releases of this table
    people: tuple[float, float]  # over releases, and people like these
    releases: int
    controls: int  # attacks on people who were not in the release
    spread: float  # standard deviation of the value between releases

    @property
    def reach(self) -> float:
        """Half of the length of the interval for this table."""
        return (self.table[1] - self.table[0]) / 2

    def releases_needed(self, allowed: float, luck: float = 0.0) -> int | None:
        """Counted releases after which the interval would exclude a limit; None if it lies at the limit.

        With luck the value is farther from the limit than it was found.
        """
        distance = abs(allowed - self.value) + luck
        return None if distance < 1e-9 else math.ceil(self.releases * (self.reach / distance) ** 2 - 1e-9)


class Series:
    """Values of one attack over releases; ``nothing`` is what an attack has that learns nothing."""

    nothing, low, high = 0.0, -1.0, 1.0

    def __init__(self, persons: int) -> None:
        self.values: list[float] = []
        self.members: list[float] = []
        self.controls = 0
        self._person, self._within = np.zeros(persons), 0.0

    def add(self, people: Ints, member: Bools, score: Floats, *, count: bool = True) -> None:
        """Add a release: who was attacked, whether they were members, and the success or score of each."""
        raise NotImplementedError

    def _count(self, people: Ints, member: Bools, value: float, members: float, influence: Floats) -> None:
        """Count a release with the influence of each person on its value."""
        self.values.append(value)
        self.members.append(members)
        self.controls += int((~member).sum())
        np.add.at(self._person, people, influence)
        self._within += float((influence**2).sum())

    def settle(self) -> None:
        """Called before anything is estimated, for a series that has to learn first."""

    def variances(self) -> tuple[float, float]:
        """Variance of the mean, as releases differ and as people within releases do."""
        values = np.array(self.values)
        return float(values.var(ddof=1)) / len(values), self._within / len(values) ** 2

    def estimate(self, error: float, inflated: float = 1.0) -> Estimate:
        """The mean over releases, with intervals that are wrong with at most this probability.

        ``inflated`` is the `inflation` of all attacks of the audit.
        """
        from scipy.special import stdtrit

        values = np.array(self.values)
        count = len(values)
        own, within = self.variances()
        freedom = count - 1 + _FREEDOM
        between = ((count - 1) * own + _FREEDOM * max(1.0, inflated) * within) / freedom
        persons = max(0.0, (float((self._person**2).sum()) - self._within) / count**2)
        quantile = float(stdtrit(freedom, 1.0 - error / 2))
        least = math.log(2.0 / error) / max(1, self.controls)  # events that none of the controls showed
        mean = min(self.high, max(self.low, float(values.mean())))
        reach = max(quantile * math.sqrt(between), least)
        wider = max(quantile * math.sqrt(between + persons), least)
        table, people = ((max(self.low, mean - each), min(self.high, mean + each)) for each in (reach, wider))
        return Estimate(
            float(np.mean(self.members)), mean, table, people, count, self.controls, math.sqrt(between * count)
        )


class RateSeries(Series):
    """Excess of an attack that succeeds or not: success on members minus success on controls."""

    def __init__(self, persons: int) -> None:
        super().__init__(persons)
        self._hits, self._tries = np.zeros(persons), np.zeros(persons)
        self.counts = np.zeros((persons, 4))  # successes and attempts of each person as member, then as control

    def add(self, people: Ints, member: Bools, score: Floats, *, count: bool = True) -> None:
        """Add a release."""
        tries = self._tries.sum()
        prior = float(self._hits.sum() / tries) if tries else 0.0
        expected = (self._hits[people] + _PRIOR * prior) / (self._tries[people] + _PRIOR)
        if count:
            value, influence = _difference(score - expected, member)
            self._count(people, member, value, float(score[member].mean()), influence)
        np.add.at(self._hits, people, score)
        np.add.at(self._tries, people, 1.0)
        for place, side in ((0, member), (2, ~member)):
            np.add.at(self.counts[:, place], people[side], score[side])
            np.add.at(self.counts[:, place + 1], people[side], 1.0)


def _difference(values: Floats, member: Bools) -> tuple[float, NDArray[np.float64]]:
    """Mean on members minus mean on controls, and the influence of each person on it."""
    inside, outside = float(values[member].mean()), float(values[~member].mean())
    influence = np.where(member, (values - inside) / member.sum(), (outside - values) / (~member).sum())
    return inside - outside, influence


class AreaSeries(Series):
    """Area under the ROC curve of a score that is higher for members, 0.5 if it learns nothing."""

    nothing, low, high = 0.5, 0.0, 1.0

    def __init__(self, persons: int) -> None:
        super().__init__(persons)
        self._scores, self._tries = np.zeros(persons), np.zeros(persons)

    def add(self, people: Ints, member: Bools, score: Floats, *, count: bool = True) -> None:
        """Add a release; the area of the expected scores, which is 0.5 but for chance, is subtracted."""
        tries = self._tries.sum()
        prior = float(self._scores.sum() / tries) if tries else 0.0
        if count:
            expected = (self._scores[people] + prior) / (self._tries[people] + 1.0)
            area, influence = area_of(score, member)
            chance, other = area_of(expected, member)
            self._count(people, member, area - (chance - 0.5), area, influence - other)
        np.add.at(self._scores, people, score)
        np.add.at(self._tries, people, 1.0)


def area_of(scores: Floats, member: Bools) -> tuple[float, NDArray[np.float64]]:
    """Area under the ROC curve, ties counting half, and the influence of each person on it."""
    inside, outside = scores[member], scores[~member]
    ups, downs = _placements(inside, outside), _placements(outside, inside)
    area = float(ups.mean())
    influence = np.empty(len(scores))
    influence[member] = (ups - area) / len(inside)
    influence[~member] = (1.0 - area - downs) / len(outside)
    return area, influence


def _placements(these: Floats, those: Floats) -> NDArray[np.float64]:
    ordered = np.sort(those)
    below, up_to = (np.searchsorted(ordered, these, side=side) for side in ("left", "right"))
    return np.asarray((below + up_to) / (2 * len(those)))


class TailSeries(RateSeries):
    """True positive rate at a false positive rate of 1 %: 1 % plus the excess of scores above a threshold.

    The threshold is exceeded by 1 % of the controls of all earlier releases.
    """

    nothing, low, high = FALSE_ALARMS, 0.0, 1.0

    def __init__(self, persons: int) -> None:
        super().__init__(persons)
        self._controls: list[Floats] = []

    def add(self, people: Ints, member: Bools, score: Floats, *, count: bool = True) -> None:
        """Add a release."""
        if self._controls:
            line = np.quantile(np.concatenate(self._controls), 1.0 - FALSE_ALARMS, method="higher")
            super().add(people, member, (score > line).astype(np.float64), count=count)
            if count:
                self.values[-1] += FALSE_ALARMS
                self.members[-1] = self.values[-1]
        self._controls.append(score[~member])
