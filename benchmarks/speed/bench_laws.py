"""Speed of the noise laws: a million draws of each, from the generator of a release."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from sfumato.laws import LAWS, choose_step, law_of_size
from sfumato.randomness import Randomness

DRAWS = 1_000_000


@pytest.mark.parametrize("name", LAWS)
def bench_draw_noise(benchmark: BenchmarkFixture, name: str) -> None:
    law = law_of_size(name, 1.0, choose_step(1.0))
    benchmark(law.draw, DRAWS, Randomness().generator("bench"))
