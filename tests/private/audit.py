"""Audit of the private chain: what an attacker tells from many releases of two neighbouring tables.

White box: every noisy count of a run is recorded, and the log-likelihood ratio of both tables is computed with the
noise that the ledger claims. Black box: an attacker sees released rows alone. In the worst case all other people are
alike, and the person differs from them in every column, so that each measurement changes by its full sensitivity.

Nasr et al., *Tight auditing of differentially private machine learning*, USENIX Security 2023; Dong, Roth and Su,
*Gaussian differential privacy*, JRSS B 2022, corollary 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr
from scipy.stats import beta, nct, norm

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.amplification import rho_of
from sfumato.core.distributions.noise import representable_variance
from sfumato.methods.private.columns import Domain
from sfumato.methods.private.draw import draw_rows
from sfumato.methods.private.ledger import Ledger, Measurement
from sfumato.methods.private.measure import measure
from sfumato.methods.private.people import People
from sfumato.methods.private.settings import settings_for

__all__ = [
    "DELTA",
    "DOMAINS",
    "Attack",
    "attack_rows",
    "changes_by_the_person",
    "epsilon_shown",
    "epsilon_shown_by_gaussian_noise",
    "less_noise",
    "losses",
    "worst_case",
]

DELTA = 1e-5
DOMAINS = (Domain("age", 8, True, False), Domain("pay", 8, True, False), Domain("class", 2, False, False))
_TARGET = 2
_OTHERS = 100
_THRESHOLDS = 9
_Release = Callable[[Ledger, Measurement, float], Floats]


def worst_case(*, member: bool) -> People:
    """People who are all alike, and, if ``member``, one at the other end of every column."""
    others = np.zeros(_OTHERS, dtype=np.int64)
    return People(tuple(np.append(others, domain.size - 1) if member else others for domain in DOMAINS))


@contextmanager
def less_noise(factor: float) -> Iterator[None]:
    """Break the product: its noise has a standard deviation smaller by a factor, and the ledger does not know."""
    noised = Ledger.noised

    def broken(self: Ledger, measurement: Measurement, parts: list[tuple[slice, Fraction]]) -> Floats:
        smaller = [(where, representable_variance(variance / Fraction(factor) ** 2)) for where, variance in parts]
        return noised(self, measurement, smaller)

    with mock.patch.object(Ledger, "noised", broken):
        yield


@dataclass
class _Transcript:
    """A run of the product: what it measured, what left, and what the same outputs were measured from on other people.

    ``claimed`` is the noise variance of each part that the ledger charges for.
    """

    measured: list[Measurement] = field(default_factory=list)
    on_others: list[Ints] = field(default_factory=list)
    outputs: list[Floats] = field(default_factory=list)
    claimed: list[list[tuple[slice, Fraction]]] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, people: People, others: People, epsilon: float, rng: np.random.Generator) -> _Transcript:
        """Run the product on people, then compute the measurements of others for the same outputs."""
        run, state = cls(), rng.bit_generator.state
        with mock.patch.object(Ledger, "release", run._recorded(Ledger.release)):
            _measure(people, epsilon, rng)
        after, rng.bit_generator.state = rng.bit_generator.state, state
        with mock.patch.object(Ledger, "release", run._replayed()):
            _measure(others, epsilon, rng)
        rng.bit_generator.state = after
        assert len(run.measured) == len(run.on_others)
        return run

    def _recorded(self, release: _Release) -> _Release:
        def recorded(ledger: Ledger, measurement: Measurement, rho: float) -> Floats:
            self.outputs.append(release(ledger, measurement, rho))
            self.measured.append(measurement)
            self.claimed.append(ledger._parts(measurement, rho))
            self.states.append(ledger.rng.bit_generator.state)
            return self.outputs[-1]

        return recorded

    def _replayed(self) -> _Release:
        def replayed(ledger: Ledger, measurement: Measurement, _: float) -> Floats:
            at = len(self.on_others)
            self.on_others.append(measurement.values)
            ledger.rng.bit_generator.state = self.states[at]  # what is sampled from outputs is the same, too
            return self.outputs[at]

        return replayed

    def loss(self) -> float:
        """Log-likelihood ratio of people to others."""
        return float(
            sum(
                ((own.values[at] - other[at]) * (output[at] - (own.values[at] + other[at]) / 2)).sum() / float(variance)
                for own, other, output, parts in zip(
                    self.measured, self.on_others, self.outputs, self.claimed, strict=True
                )
                for at, variance in parts
            )
        )

    def changes(self) -> dict[str, float]:
        """Smallest squared change of each step's measurements, over their squared sensitivity."""
        found: dict[str, float] = {}
        for one, other in zip(self.measured, self.on_others, strict=True):
            change = one.values - other
            squared = sum(float((change[at] ** 2).sum() / part) for at, part in one.noise_variances(Fraction(1)))
            found[one.step] = min(found.get(one.step, np.inf), squared / one.squared_sensitivity)
        return found


def changes_by_the_person(epsilon: float, seed: int) -> dict[str, float]:
    """Smallest squared change of each step's measurements in the worst case, over their squared sensitivity."""
    people, others = worst_case(member=True), worst_case(member=False)
    return _Transcript.of(people, others, epsilon, np.random.default_rng(seed)).changes()


def losses(*, member: bool, runs: int, epsilon: float, seed: int) -> Floats:
    """Privacy loss of each run on the table with or without the person: log-likelihood ratio of with to without."""
    rng, people, others = np.random.default_rng(seed), worst_case(member=member), worst_case(member=not member)
    found = np.array([_Transcript.of(people, others, epsilon, rng).loss() for _ in range(runs)])
    return found if member else -found


@dataclass(frozen=True)
class Attack:
    """Membership inference from released rows: AUC and true-positive rate at 1 % false positives, with lower bounds."""

    auc: float
    least_auc: float
    rate: float
    least_rate: float


def attack_rows(*, runs: int, epsilon: float, seed: int, false_alarm: float) -> Attack:
    """Attack releases with and without the person, half of each to learn from and half to attack.

    The attacker knows everybody else, and the method: a logistic regression on counts of the person's cells in shadow
    releases. The standard error of the AUC is that of its placement values (DeLong).
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    members, others = (_person_counts(member=way, runs=runs, epsilon=epsilon, seed=seed + way) for way in (True, False))
    half = runs // 2
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(np.vstack([members[:half], others[:half]]), np.repeat([True, False], half))
    known = np.sort(model.decision_function(others[:half]))
    ours, theirs = (np.sort(model.decision_function(side[half:])) for side in (members, others))
    below, above = (_placed(ours, theirs), 1 - _placed(theirs, ours))
    error = np.sqrt(below.var(ddof=1) / len(ours) + above.var(ddof=1) / len(theirs))
    hits = int((ours > np.quantile(known, 0.99)).sum())
    least = beta.ppf(false_alarm, hits, len(ours) - hits + 1) if hits else 0.0
    auc = float(below.mean())
    return Attack(auc, float(auc + norm.ppf(false_alarm) * error), hits / len(ours), float(least))


def _placed(scores: Floats, among: Floats) -> Floats:
    """Share of sorted scores below each score, ties by half."""
    return np.asarray(
        (np.searchsorted(among, scores, side="left") + np.searchsorted(among, scores, side="right")) / (2 * len(among))
    )


def _person_counts(*, member: bool, runs: int, epsilon: float, seed: int, rows: int = 2_000) -> Floats:
    """Shares of the rows of each release that have the person's cells, or cells near them, alone and together."""
    rng, person = np.random.default_rng(seed), [domain.size - 1 for domain in DOMAINS]
    people, found = worst_case(member=member), []
    for _ in range(runs):
        drawn = draw_rows(_measure(people, epsilon, rng), rows, rng)
        same = np.array([places == own for places, own in zip(drawn, person, strict=True)])
        near = np.array([places >= (domain.size + 1) // 2 for places, domain in zip(drawn, DOMAINS, strict=True)])
        found.append([*same.mean(axis=1), *near.mean(axis=1), same.all(axis=0).mean(), near.all(axis=0).mean()])
    return np.array(found)


def _measure(people: People, epsilon: float, rng: np.random.Generator) -> Any:
    ledger = Ledger(rho_of(epsilon, DELTA), rng)
    return measure(people, DOMAINS, _TARGET, settings_for(DOMAINS, _TARGET, epsilon), ledger, rng)


# ---------------------------------------------------------------------------------------------------------- bounds


def epsilon_shown(members: Floats, others: Floats, delta: float, false_alarm: float) -> float:
    """Lower confidence bound on epsilon, whatever the noise: P(loss > t | member) <= e^epsilon P(... | other) + delta.

    Rates are bounded by Clopper and Pearson, at a few thresholds that are fixed by the claimed distribution.
    """
    level, best = false_alarm / (2 * _THRESHOLDS), 0.0
    for threshold in np.linspace(0.0, 4.0, _THRESHOLDS):
        hits, alarms = int((members > threshold).sum()), int((others > threshold).sum())
        hit = beta.ppf(level, hits, len(members) - hits + 1) if hits else 0.0
        alarm = beta.ppf(1 - level, alarms + 1, len(others) - alarms) if alarms < len(others) else 1.0
        best = max(best, float(np.log(max(hit - delta, 1e-300) / alarm)))
    return best


def epsilon_shown_by_gaussian_noise(members: Floats, others: Floats, delta: float, false_alarm: float) -> float:
    """Lower confidence bound on epsilon if losses are normal: that of Gaussian noise of unknown scale.

    The standardized difference of the means has a noncentral t distribution; mu-Gaussian differential privacy is at
    delta = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2).
    """
    freedom, scale = len(members) + len(others) - 2, np.sqrt(1 / len(members) + 1 / len(others))
    spread = np.sqrt((members.var(ddof=1) * (len(members) - 1) + others.var(ddof=1) * (len(others) - 1)) / freedom)
    observed = (members.mean() - others.mean()) / spread / scale
    if nct.sf(observed, freedom, 0.0) > false_alarm:
        return 0.0
    mu = scale * brentq(lambda centre: nct.sf(observed, freedom, centre) - false_alarm, 0.0, observed)
    return float(brentq(lambda epsilon: _gaussian_delta(epsilon, mu) - delta, 0.0, 1e4)) if mu > 0 else 0.0


def _gaussian_delta(epsilon: float, mu: float) -> float:
    return float(ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))
