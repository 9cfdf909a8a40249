"""Theorem 1 of BCG10 in numbers and as laws: one component and the whole record, upward and downward."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.distributions.amplification import (
    highest_posterior,
    log_factor,
    lowest_posterior,
    prevents_breach,
    solve_b,
)
from sfumato.core.distributions.noise import DiscreteLaplace
from sfumato.core.errors import OptionError

probabilities = st.floats(1e-6, 1.0 - 1e-6)
scales = st.floats(0.02, 50.0)
counts = st.integers(1, 40)


@pytest.mark.parametrize(
    ("b", "components", "printed"),
    [
        (0.2, 1, 0.129),  # the paper's 0.13, with the scale b
        (0.2 / math.sqrt(2.0), 1, 0.541),  # with the standard deviation b, as line 18 says (errata BCG10.1)
        (0.2, 8, 1.000),  # eight components changed together (errata BCG10.2)
        (1.0, 8, 0.749),
    ],
)
def test_what_had_probability_0_001_can_look_as_probable_as_this(b: float, components: int, printed: float) -> None:
    assert round(highest_posterior(0.001, b, components), 3) == printed


@given(probabilities, scales, counts)
def test_the_bound_is_where_the_theorem_s_inequality_turns(rho1: float, b: float, components: int) -> None:
    rho2 = highest_posterior(rho1, b, components)
    assert rho1 <= rho2 <= 1.0
    if rho2 < 1.0 - 1e-9:
        odds = rho2 * (1.0 - rho1) / (rho1 * (1.0 - rho2))
        assert math.log(odds) == pytest.approx(components / b, rel=1e-6, abs=1e-9)
        assert prevents_breach(rho1, min(rho2 + 1e-6 * (1.0 - rho2), 1.0 - 1e-12), b, components)


@given(probabilities, scales, counts)
def test_downward_is_upward_of_the_opposite(rho: float, b: float, components: int) -> None:
    assert lowest_posterior(rho, b, components) == pytest.approx(
        1.0 - highest_posterior(1.0 - rho, b, components), abs=1e-9
    )


@given(probabilities, scales, counts, counts)
def test_more_noise_bounds_more_and_more_components_bound_less(rho: float, b: float, m: int, more: int) -> None:
    bound = highest_posterior(rho, b, m)
    assert highest_posterior(rho, 2.0 * b, m) <= bound <= highest_posterior(rho, b, m + more)
    assert highest_posterior(rho, b * m, m) == pytest.approx(highest_posterior(rho, b))


@given(probabilities, probabilities, counts)
def test_the_solved_noise_prevents_the_breach_and_a_little_less_does_not(a: float, c: float, components: int) -> None:
    rho1, rho2 = min(a, c), max(a, c)
    if rho2 - rho1 < 1e-9:
        return
    b = solve_b(rho1, rho2, components)
    assert prevents_breach(rho1, rho2, b, components)
    assert not prevents_breach(rho1, rho2, b * (1.0 - 1e-6), components)
    assert highest_posterior(rho1, b, components) <= rho2
    assert lowest_posterior(rho2, b, components) >= rho1


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 2.0))
def test_no_released_value_of_a_component_moves_any_belief_beyond_the_bound(seed: int, b: float) -> None:
    rng = np.random.default_rng(seed)
    places = rng.integers(0, 40, int(rng.integers(2, 12)))
    reach = int(np.ptp(places))
    if not reach:
        return
    law = DiscreteLaplace(scale=b * reach)
    prior = rng.dirichlet(np.ones(len(places)))
    holds = rng.random(len(places)) < 0.5
    rho = float(prior[holds].sum())
    if not 1e-6 < rho < 1.0 - 1e-6:
        return
    outputs = np.arange(-30, 71)
    joint = law.pmf(outputs[:, None] - places[None, :]) * prior
    posterior = joint[:, holds].sum(axis=1) / joint.sum(axis=1)
    assert posterior.max() <= highest_posterior(rho, b) * (1.0 + 1e-9)
    assert posterior.min() >= lowest_posterior(rho, b) * (1.0 - 1e-9)


def test_the_bound_is_reached_at_the_ends_of_the_range() -> None:
    law = DiscreteLaplace(scale=0.2 * 10)
    seen = law.pmf(12 - np.array([0, 10])) * np.array([0.999, 0.001])  # what is asked holds at the upper end alone
    assert seen[1] / seen.sum() == pytest.approx(highest_posterior(0.001, 0.2))


@pytest.mark.parametrize("rho", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_noise_is_solved_for_probabilities_between_0_and_1(rho: float) -> None:
    for call in (lambda: solve_b(rho, 0.5), lambda: solve_b(0.001, rho), lambda: prevents_breach(rho, 0.5, 0.2)):
        with pytest.raises(OptionError, match="probabilities"):
            call()


def test_so_little_noise_that_the_factor_cannot_be_written_bounds_nothing() -> None:
    assert highest_posterior(0.001, 0.001, 5) == 1.0
    assert lowest_posterior(0.999, 0.001, 5) == 0.0


@pytest.mark.parametrize("b", [0.0, -1.0, float("inf"), float("nan"), True])
def test_noise_is_more_than_none(b: float) -> None:
    with pytest.raises(OptionError, match=r"above 0; the default is 0\.2"):
        log_factor(b)


def test_a_belief_cannot_be_bounded_below_where_it_was_nor_for_no_component() -> None:
    with pytest.raises(OptionError, match="rho2 must lie above rho1"):
        solve_b(0.2, 0.2)
    for components in (0, -1):
        with pytest.raises(OptionError, match="at least one component"):
            log_factor(0.2, components)
        with pytest.raises(OptionError, match="at least one component"):
            solve_b(0.1, 0.2, components)
