"""The remaining privacy, in bits: against its definition and the printed example of Agrawal and Aggarwal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.distributions.noise import DiscreteLaplace, DiscreteUniform
from sfumato.core.distributions.operators import Additive, KeepOrReplace, Response, transition
from sfumato.survey.channel import uncertainty
from tests.distributions.test_operators import ALL, FINITE


def bits(chances: Any) -> float:
    """Give the entropy of probabilities by its definition."""
    return -math.fsum(p * math.log2(p) for p in np.ravel(chances).tolist() if p > 0)


@given(st.integers(0, 2**32 - 1), st.sampled_from(FINITE))
def test_what_is_left_is_the_joint_entropy_less_that_of_the_answers(seed: int, operator: Any) -> None:
    prior = np.random.default_rng(seed).dirichlet(np.full(operator.size, 0.5))
    joint = prior[:, None] * transition(operator)
    found = uncertainty(operator, prior)
    assert found.before == pytest.approx(bits(prior), abs=1e-9)
    assert found.after == pytest.approx(bits(joint) - bits(joint.sum(axis=0)), abs=1e-9)
    assert found.loss == pytest.approx(1 - 2.0**-found.information, abs=1e-12)
    assert found.privacy == pytest.approx(2.0**found.after)


@pytest.mark.parametrize("operator", ALL, ids=repr)
def test_an_answer_never_adds_uncertainty_on_average(operator: Any) -> None:
    found = uncertainty(operator, np.full(operator.size, 1 / operator.size))
    assert 0 <= found.after <= found.before + 1e-12
    assert 0 <= found.loss < 1


def test_laplace_answers_beyond_the_ends_count_as_often_as_they_come() -> None:
    operator, prior = Additive(5, DiscreteLaplace(3.0)), np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    wide = np.arange(-150, 156)
    joint = operator.probabilities(wide).T * prior[:, None]
    expected = bits(joint) - bits(joint.sum(axis=0))
    assert uncertainty(operator, prior).after == pytest.approx(expected, abs=1e-9)


def test_a_uniform_value_under_noise_of_its_own_width_loses_39_percent() -> None:
    """Agrawal and Aggarwal 2001: the sum of two uniform variables has the entropy of a triangle, I = 1/2 nat."""
    size = 400
    found = uncertainty(Additive(size, DiscreteUniform(size / 2)), np.full(size, 1 / size))
    assert found.information * math.log(2) == pytest.approx(0.5, abs=0.005)
    assert found.loss == pytest.approx(0.3935, abs=0.003)


def test_privacy_has_to_be_lowered_once_the_distribution_is_known() -> None:
    """JS07, 2.2.2.1. The example of Agrawal and Aggarwal 2001: values in [0, 1] or [4, 5], noise in [-1, 1].

    Nominally a value is as uncertain as in an interval of length 2; who knows the distribution knows which half it is
    in, and is left with less than 1.
    """
    places, step = 501, 0.01
    prior = np.where((np.arange(places) <= 100) | (np.arange(places) >= 400), 1.0, 0.0)
    operator = Additive(places, DiscreteUniform(100.0))
    nominal = uncertainty(operator, np.full(places, 1 / places))
    known = uncertainty(operator, prior / prior.sum())
    assert 1.5 < nominal.privacy * step < 2.01
    assert known.privacy * step < 1.0


def test_pure_chance_tells_nothing_and_the_truth_tells_all() -> None:
    prior = np.array([0.5, 0.25, 0.125, 0.125])
    assert uncertainty(KeepOrReplace(4, 0.25), prior).information == pytest.approx(0.0, abs=1e-12)
    truth = uncertainty(Response(tuple(map(tuple, np.eye(4).tolist()))), prior)
    assert (truth.after, truth.information, truth.privacy) == (0.0, 1.75, 1.0)
