"""The attacker who knows the algorithm: a likelihood ratio per person, learned from shadow releases.

For each person the attacker compares statistics of a release with those of releases with and without the person
[Shokri et al. 2017; Carlini et al. 2022]. Every release is scored by what all others taught, so that each is a test of
an attack that was trained without it. From the scores follows a lower bound of the epsilon that the method can have:
whoever has a smaller one bounds the ratio of true to false positives [Jagielski et al. 2020].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.audit.intervals import AreaSeries, area_of
from sfumato.core.arrays import Bools, Floats, Ints

__all__ = ["LEARNED_FROM", "LikelihoodSeries", "empirical_epsilon"]

LEARNED_FROM = 8
"""Fewest shadow releases that an attack is learned from."""

_SHRINK = 2.0  # releases with and without a person that the mean difference over people weighs
_RIDGE = 1e-3


class LikelihoodSeries(AreaSeries):
    """Area under the ROC curve of a likelihood ratio per person; each release is scored by what all others taught."""

    def __init__(self, persons: int) -> None:
        super().__init__(persons)
        self._statistics: list[Floats] = []
        self._inside: list[Bools] = []
        self._people: Ints = np.empty(0, dtype=np.int64)
        self.scores: NDArray[np.float64] = np.empty((0, 0))  # of every release and person

    def add(self, people: Ints, member: Bools, score: Floats, *, count: bool = True) -> None:  # noqa: ARG002
        """Add the statistics of the same people in one more release; a row for each person."""
        self._people = people
        self._statistics.append(score)
        self._inside.append(member)

    @property
    def member(self) -> NDArray[np.bool_]:
        """Who was in which release."""
        return np.array(self._inside)

    def settle(self) -> None:
        """Score every release by all others."""
        self.values, self.members, self.controls = [], [], 0
        self._person, self._within = np.zeros(len(self._person)), 0.0
        if len(self._statistics) <= LEARNED_FROM:
            return
        self.scores = likelihood_ratios(np.array(self._statistics), self.member)
        for scores, member in zip(self.scores, self.member, strict=True):
            if member.any() and not member.all():
                area, influence = area_of(scores, member)
                self._count(self._people, member, area, area, influence)


def likelihood_ratios(statistics: Floats, member: Bools) -> NDArray[np.float64]:
    """Scores of every release and person, learned from all other releases.

    Statistics of a person are normal with one covariance, and a mean that depends on whether the person is in. How far
    being in moves them is learned for each person, shrunk to the mean over people, because few releases lack a person.
    """
    inside = member.astype(np.float64)[:, :, None]
    with_sum, all_sum = (inside * statistics).sum(axis=0), statistics.sum(axis=0)
    present, releases = inside.sum(axis=0), len(statistics)
    model = _means(with_sum, all_sum, present, np.full_like(present, releases))
    residuals = (statistics - model[0] - inside * model[1]).reshape(-1, statistics.shape[2])
    covariance = residuals.T @ residuals / len(residuals)
    covariance += _RIDGE * np.diag(np.maximum(np.diag(covariance), 1e-12))
    inverse = np.linalg.inv(covariance)
    scores = np.empty(member.shape)
    for place, (own, here) in enumerate(zip(statistics, inside, strict=True)):
        base, moved = _means(with_sum - here * own, all_sum - own, present - here, np.full_like(present, releases - 1))
        scores[place] = np.einsum("ij,jk,ik->i", own - base - moved / 2.0, inverse, moved)
    return scores


def _means(
    with_sum: Floats, all_sum: Floats, present: Floats, releases: Floats
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean of each person's statistics without the person, and how far being in moves them."""
    absent = releases - present
    gap = with_sum / np.maximum(present, 1.0) - (all_sum - with_sum) / np.maximum(absent, 1.0)
    weight = present * absent / releases
    common = (weight * gap).sum(axis=0) / max(float(weight.sum()), 1e-12)
    moved = (weight * gap + _SHRINK * common) / (weight + _SHRINK)
    return (all_sum - present * moved) / releases, moved


def empirical_epsilon(scores: Floats, member: Bools, *, delta: float, error: float = 0.05) -> float:
    """Lower bound of epsilon: the threshold is chosen on every second release and tested on the others."""
    from sfumato.assess.findings import exact_interval

    chosen, tested = ((scores[part::2].ravel(), member[part::2].ravel()) for part in (0, 1))
    if not (chosen[1].any() and tested[1].any() and not chosen[1].all() and not tested[1].all()):
        return 0.0

    def bound(values: Floats, inside: Bools, line: float) -> float:
        above = values >= line
        low = exact_interval(int((above & inside).sum()), int(inside.sum()), 1.0 - error)[0]
        high = exact_interval(int((above & ~inside).sum()), int((~inside).sum()), 1.0 - error)[1]
        return math.log(max(low - delta, 1e-300) / high)

    lines = np.quantile(chosen[0], np.linspace(0.02, 0.999, 50))
    best = max(lines, key=lambda line: bound(*chosen, float(line)))
    return max(0.0, bound(*tested, float(best)))
