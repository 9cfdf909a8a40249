"""An audit of the product finds no more than the proof allows, and finds noise that is too small.

Seeds are fixed; with other seeds a false alarm has a probability below 1e-6 for each bound.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from sfumato.core.distributions.amplification import membership_bounds, rho_of
from sfumato.methods.private.ledger import Measurement
from tests.private.audit import (
    DELTA,
    attack_rows,
    changes_by_the_person,
    epsilon_shown,
    epsilon_shown_by_gaussian_noise,
    less_noise,
    losses,
)

FALSE_ALARM = 1e-6


def shown(epsilon: float, runs: int) -> tuple[float, float]:
    members, others = (losses(member=way, runs=runs, epsilon=epsilon, seed=11 + way) for way in (True, False))
    return (
        epsilon_shown(members, others, DELTA, FALSE_ALARM),
        epsilon_shown_by_gaussian_noise(members, others, DELTA, FALSE_ALARM),
    )


def test_noisy_counts_show_no_more_than_the_claimed_epsilon() -> None:
    anyhow, gaussian = shown(10.0, runs=150)
    assert 0 < anyhow <= gaussian
    assert 5.0 < gaussian <= 10.0  # close enough to mean something


def test_the_audit_catches_noise_that_is_too_small_by_a_factor_of_one_and_a_half() -> None:
    with less_noise(1.5):
        assert shown(10.0, runs=250)[1] > 10.0


def test_released_rows_show_no_more_than_the_bound_on_membership_inference() -> None:
    auc, rate = membership_bounds(rho_of(1.0, DELTA))
    found = attack_rows(runs=100, epsilon=1.0, seed=5, false_alarm=FALSE_ALARM)
    assert found.least_auc <= auc
    assert found.least_rate <= rate
    with less_noise(100.0):
        found = attack_rows(runs=100, epsilon=1.0, seed=5, false_alarm=FALSE_ALARM)
    assert found.least_auc > auc


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "runs"), [(1.0, 13_000), (3.0, 2_500)])
def test_many_runs_show_most_of_the_claimed_epsilon_and_never_more(epsilon: float, runs: int) -> None:
    members, others = (losses(member=way, runs=runs, epsilon=epsilon, seed=21 + way) for way in (True, False))
    rho = rho_of(epsilon, DELTA)
    for side, mean in ((members, rho), (others, -rho)):  # as the bound for Gaussian noise takes them to be
        assert kstest((side - mean) / np.sqrt(2 * rho), "norm").pvalue > FALSE_ALARM
    assert epsilon_shown(members, others, DELTA, FALSE_ALARM) <= epsilon
    assert 0.6 * epsilon < epsilon_shown_by_gaussian_noise(members, others, DELTA, FALSE_ALARM) <= epsilon
    with less_noise(1.5):
        assert shown(epsilon, runs)[1] > epsilon


def test_every_kind_of_measurement_is_audited() -> None:
    """The worst case has all that need no option, and the person changes each by its full sensitivity."""
    changes = changes_by_the_person(10.0, seed=3)
    assert set(changes) == {kind.step for kind in Measurement.__subclasses__() if not kind.optional}
    assert all(0.95 <= change <= 1.0 for change in changes.values())
