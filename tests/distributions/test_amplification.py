"""What an amplification promises, against Bayes' rule on random priors and matrices."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.distributions.amplification import (
    combine,
    downward_bound,
    gamma_for,
    gamma_for_downward,
    upward_bound,
)
from sfumato.core.distributions.operators import Response, transition
from sfumato.core.errors import OptionError
from tests.examples import examples

CHANCES = st.floats(0.001, 0.999)
GAMMAS = st.floats(1.0, 1e6)


@examples(100)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_no_posterior_of_any_property_leaves_the_bounds(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    operator = Response(tuple(map(tuple, rng.dirichlet(np.ones(size), size=size).tolist())))
    prior, mask = rng.dirichlet(np.full(size, 0.5)), np.arange(size) < rng.integers(1, size)
    before, gamma = float(prior[mask].sum()), operator.gamma
    joint = prior[:, None] * transition(operator)
    after = joint[mask].sum(axis=0) / joint.sum(axis=0)
    assert (after <= upward_bound(gamma, min(1.0, before)) * (1 + 1e-9)).all()
    assert (after >= downward_bound(gamma, min(1.0, before)) * (1 - 1e-9)).all()


@given(GAMMAS, CHANCES)
def test_the_opposite_property_is_bounded_from_the_other_side(gamma: float, rho1: float) -> None:
    assert downward_bound(gamma, rho1) == pytest.approx(1.0 - upward_bound(gamma, 1.0 - rho1), abs=1e-9)


@given(CHANCES, CHANCES)
def test_the_gamma_for_a_wish_meets_it_exactly(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    assert upward_bound(gamma_for(low, high), low) == pytest.approx(high, rel=1e-9)
    assert downward_bound(gamma_for_downward(high, low), high) == pytest.approx(low, rel=1e-9)


@given(GAMMAS, GAMMAS, CHANCES)
def test_two_answers_bound_what_one_after_the_other_does(first: float, second: float, rho1: float) -> None:
    both = upward_bound(combine([first, second]), rho1)
    assert both == pytest.approx(upward_bound(second, upward_bound(first, rho1)), rel=1e-9)


def test_answers_together_are_bounded_by_the_product_of_their_gammas() -> None:
    one, other = Response.for_epsilon(3, 1.0), Response.for_epsilon(3, 0.5)
    joint = np.einsum("xa,xb->xab", transition(one), transition(other)).reshape(3, 9)
    assert (joint.max(axis=0) / joint.min(axis=0)).max() == pytest.approx(combine([one.gamma, other.gamma]), rel=1e-12)


def test_an_infinite_gamma_promises_nothing_but_that_certainty_stays() -> None:
    assert [upward_bound(math.inf, rho1) for rho1 in (0.0, 0.5, 1.0)] == [0.0, 1.0, 1.0]
    assert [downward_bound(math.inf, rho1) for rho1 in (0.0, 0.5, 1.0)] == [0.0, 0.0, 1.0]


def test_the_example_of_evfimievski_gehrke_and_srikant() -> None:
    """PODS 2003: gamma < 19 rules out breaches from 5 % to 50 %."""
    assert gamma_for(0.05, 0.5) == pytest.approx(19.0, rel=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: upward_bound(0.5, 0.1),
        lambda: upward_bound(math.nan, 0.1),
        lambda: upward_bound(2.0, 1.1),
        lambda: downward_bound(2.0, -0.1),
        lambda: gamma_for(0.5, 0.4),
        lambda: gamma_for(0.0, 0.4),
        lambda: gamma_for(0.5, 1.0),
        lambda: gamma_for_downward(0.4, 0.5),
        lambda: combine([2.0, 0.5]),
    ],
)
def test_numbers_that_are_no_probabilities_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(OptionError):
        make()
