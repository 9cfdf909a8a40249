"""Speed of noise laws, operators and the breach calculator; draws come from the generator of a release."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from sfumato.core.distributions.domains import Integers
from sfumato.core.distributions.noise import LAWS, choose_step, law_of_size
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.randomness import Randomness
from sfumato.survey.breach import answer_breach
from sfumato.survey.channel import uncertainty, uniform_prior

DRAWS = 1_000_000
DOMAIN = Integers(0, 1000)
SPECS: dict[str, dict[str, Any]] = {
    "keep-or-replace": {"keep": 0.2},
    "shift-modulo": {"reach": 100},
    "mixture": {"weight": 0.5, "of": {"name": "shift-modulo", "reach": 100}},
    "response": {"epsilon": 3.0},
    "uniform": {"reach": 100},
    "gaussian": {"sd": 100},
    "laplace": {"scale": 500},
    "interval": {"edges": [200, 800]},
}


@pytest.mark.parametrize("name", LAWS)
def bench_draw_noise(benchmark: BenchmarkFixture, name: str) -> None:
    law = law_of_size(name, 1.0, choose_step(1.0))
    benchmark(law.draw, DRAWS, Randomness().generator("bench"))


@pytest.mark.parametrize("name", SPECS)
def bench_randomize(benchmark: BenchmarkFixture, name: str) -> None:
    operator = NoiseSpec(DOMAIN, {"name": name, **SPECS[name]}).operator
    codes = np.random.default_rng(7).integers(0, DOMAIN.size, DRAWS)
    operator.randomize(codes[:10], Randomness().generator("bench"))  # what is computed once a law
    benchmark(operator.randomize, codes, Randomness().generator("bench"))


@pytest.mark.parametrize("name", SPECS)
def bench_breach(benchmark: BenchmarkFixture, name: str) -> None:
    spec = NoiseSpec(DOMAIN, {"name": name, **SPECS[name]})
    benchmark(answer_breach, spec, uniform_prior(DOMAIN), "x not in 200..800")


@pytest.mark.parametrize("name", SPECS)
def bench_uncertainty(benchmark: BenchmarkFixture, name: str) -> None:
    spec = NoiseSpec(DOMAIN, {"name": name, **SPECS[name]})
    benchmark(uncertainty, spec.operator, uniform_prior(DOMAIN))
