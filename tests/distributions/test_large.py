"""Domains too large for a matrix: the form of a law gives what its matrix gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.distributions.domains import Integers
from sfumato.core.distributions.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.core.distributions.operators import Additive, KeepOrReplace, ShiftModulo
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.survey import channel as channel_module
from sfumato.survey.breach import answer_breach, worst_outputs
from sfumato.survey.channel import has_form, informative_outputs, spread, uncertainty, uniform_prior
from tests.distributions.test_operators import ALL
from tests.examples import examples

WITH_FORM = [
    operator for operator in [*ALL, Additive(40, DiscreteLaplace(0.7)), ShiftModulo(9, 4)] if has_form(operator)
]


def random_prior(rng: np.random.Generator, size: int) -> Any:
    """Give a prior in which values may have no probability at all."""
    prior = rng.dirichlet(np.full(size, 0.5)) * (rng.random(size) < 0.7)
    prior[rng.integers(size)] += 0.1
    return prior / prior.sum()


@examples(80)
@given(st.integers(0, 2**32 - 1), st.sampled_from(WITH_FORM))
def test_sums_by_the_form_are_those_of_the_matrix(seed: int, operator: Any) -> None:
    weights = random_prior(np.random.default_rng(seed), operator.size)
    rows = operator.probabilities(np.array(informative_outputs(operator)))
    found = spread(operator, weights)
    assert found.shape == (len(rows),)
    np.testing.assert_allclose(found, rows @ weights, rtol=1e-9, atol=1e-15)
    assert ((found == 0) == (rows @ weights == 0)).all()


@pytest.mark.parametrize("operator", WITH_FORM, ids=repr)
def test_worst_outputs_and_entropies_are_the_same_either_way(operator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        prior = random_prior(rng, operator.size)
        mask = rng.permutation(np.arange(operator.size) < rng.integers(1, operator.size))
        dense, known = worst_outputs(operator, prior, mask), uncertainty(operator, prior)
        with monkeypatch.context() as small:
            small.setattr(channel_module, "LARGE", 0)
            large, as_well = worst_outputs(operator, prior, mask), uncertainty(operator, prior)
        assert large.highest == pytest.approx(dense.highest, rel=1e-9, abs=1e-12)
        assert large.lowest == pytest.approx(dense.lowest, rel=1e-9, abs=1e-12)
        assert as_well.before == known.before
        assert as_well.after == pytest.approx(known.after, abs=1e-9)


@pytest.mark.parametrize(
    "law",
    [
        {"name": "keep-or-replace", "keep": 0.01},
        {"name": "shift-modulo", "reach": 20_000},
        {"name": "mixture", "weight": 0.5, "of": {"name": "shift-modulo", "reach": 20_000}},
        {"name": "laplace", "scale": 100_000},
        {"name": "uniform", "reach": 30_000},
        {"name": "interval", "edges": [50_000, 100_000]},
    ],
    ids=lambda law: str(law["name"]),
)
def test_incomes_up_to_a_million_are_no_trouble(law: dict[str, Any]) -> None:
    spec = NoiseSpec(Integers(0, 1_000_000), law)
    found = answer_breach(spec, uniform_prior(spec.domain), "x >= 900000")
    left = uncertainty(spec.operator, uniform_prior(spec.domain))
    assert found.prior <= found.worst.highest <= found.upper * (1 + 1e-9)
    assert found.certain == math.isinf(spec.gamma)
    assert 0 < left.after < left.before


def test_gaussian_noise_and_matrices_have_no_such_form() -> None:
    assert not has_form(Additive(5, DiscreteGaussian(2.0)))
    assert has_form(KeepOrReplace(5, 0.5))
