"""The reconstruction against chapter 4 of JS07, transcribed value by value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from sfumato.core.distributions.domains import Integers, Universe
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.survey.reconstruct import reconstruct
from tests.examples import at_length
from tests.oracles.js07 import Interval, continuous_step, discrete_step, until_chi_square

LAWS: list[dict[str, Any]] = [
    {"name": "keep-or-replace", "keep": 0.3},
    {"name": "shift-modulo", "reach": 2},
    {"name": "mixture", "weight": 0.5, "of": {"name": "shift-modulo", "reach": 3}},
]


def _released(domain: Universe, law: dict[str, Any], seed: int, n: int) -> tuple[NoiseSpec, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    spec = NoiseSpec(domain, law)
    truth = np.clip(np.rint(rng.normal(0.4, 0.15, n) * (domain.size - 1)), 0, domain.size - 1).astype(np.int64)
    return spec, spec.randomize(domain.decode(truth), rng)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_discrete_rule_is_the_one_printed(law: dict[str, Any], seed: int) -> None:
    spec, released = _released(Integers(0, 10), law, seed, 150)
    chances = spec.operator.probabilities(np.arange(11))
    expected, iterations = until_chi_square(
        lambda pr: discrete_step(released.tolist(), lambda z, x: float(chances[z, x]), pr), 11, 150, chi2.ppf(0.95, 10)
    )
    found = reconstruct(released, spec, method="bayes", stop="chi-square", least=0)
    assert (found.iterations, found.stopped_by) == (iterations, "chi-square")
    np.testing.assert_allclose(found.probability, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("law", "density"),
    [
        ({"name": "gaussian", "sd": 12}, lambda d: math.exp(-((d / 12) ** 2) / 2)),
        ({"name": "laplace", "scale": 9}, lambda d: math.exp(-abs(d) / 9)),
    ],
)
@pytest.mark.parametrize("seed", [1, *at_length(2)])
def test_the_rule_on_intervals_is_the_one_printed(law: dict[str, Any], density: Any, seed: int) -> None:
    """Intervals of ten places; beyond the domain they go on as far as records lie."""
    spec, released = _released(Integers(0, 99), law, seed, 200)
    inputs: list[Interval] = [(low - 0.5, low + 9.5) for low in range(0, 100, 10)]
    outputs = [(low - 0.5, low + 9.5) for low in range(-300, 400, 10)]
    expected, iterations = until_chi_square(
        lambda pr: continuous_step(released.tolist(), density, inputs, outputs, pr), 10, 200, chi2.ppf(0.95, 9)
    )
    found = reconstruct(released, spec, intervals=10, method="bayes", stop="chi-square", least=0)
    assert (found.iterations, found.stopped_by) == (iterations, "chi-square")
    np.testing.assert_allclose(found.probability, expected, atol=1e-12)
