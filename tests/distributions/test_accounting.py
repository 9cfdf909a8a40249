"""The conversion of zero-concentrated differential privacy, against closed forms and an independent library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.core.distributions.amplification import delta_of, epsilon_of, membership_bounds, rho_of


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_an_independent_library_confirms_the_conversion(epsilon: float, delta: float) -> None:
    events = pytest.importorskip("dp_accounting")
    library = pytest.importorskip("dp_accounting.rdp")
    accountant = library.RdpAccountant(orders=1 + np.geomspace(0.1, 5000, 2000))
    accountant.compose(events.ZCDpEvent(rho_of(epsilon, delta)))
    assert accountant.get_epsilon(delta) == pytest.approx(epsilon, rel=1e-4)


@given(st.floats(0.01, 20.0), st.sampled_from([1e-4, 1e-6, 1e-10]))
def test_the_conversion_and_its_inverse_agree(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert delta_of(rho, epsilon) <= delta
    assert epsilon_of(rho, delta) == pytest.approx(epsilon, rel=1e-5)
    assert delta_of(rho * 1.001, epsilon) > delta * 0.99


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_bound_is_no_worse_than_the_simple_conversion_and_no_better_than_the_gaussian(epsilon: float) -> None:
    delta = 1e-5
    rho = rho_of(epsilon, delta)
    simple = (np.sqrt(np.log(1 / delta) + epsilon) - np.sqrt(np.log(1 / delta))) ** 2  # Bun and Steinke, prop. 1.3
    assert rho >= simple
    mu = np.sqrt(2 * rho)  # a Gaussian mechanism is rho-zCDP and has this exact delta
    exact = stats.norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * stats.norm.cdf(-epsilon / mu - mu / 2)
    assert exact <= delta


@pytest.mark.parametrize("rho", [0.001, 0.03, 0.2, 2.0])
def test_no_test_against_gaussian_noise_beats_the_membership_bounds(rho: float) -> None:
    mu = np.sqrt(2 * rho)
    auc, rate = membership_bounds(rho)
    assert stats.norm.cdf(mu / np.sqrt(2)) <= auc <= 1
    assert stats.norm.cdf(stats.norm.ppf(0.01) + mu) <= rate <= 1


def test_the_bounds_at_the_usual_budget() -> None:
    assert membership_bounds(rho_of(1.0, 1e-5)) == (0.5862, 0.0206)
