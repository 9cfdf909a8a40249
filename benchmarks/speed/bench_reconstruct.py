"""Speed of the reconstruction: a million values in 1,000 intervals, and thousands of small count vectors."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from sfumato.core.distributions.domains import Reals
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.survey.reconstruct import Channel, reconstruct, reconstruct_counts

LAWS = {
    "gaussian": {"name": "gaussian", "sd": 5},
    "uniform": {"name": "uniform", "reach": 10},
    "laplace": {"name": "laplace", "scale": 5},
}


@pytest.mark.parametrize("name", LAWS)
def bench_reconstruct_a_million(benchmark: BenchmarkFixture, name: str) -> None:
    rng = np.random.default_rng(0)
    spec = NoiseSpec(Reals(0.0, 100.0, 0.01), LAWS[name])
    first = rng.random(1_000_000) < 0.6
    truth = np.clip(np.where(first, rng.normal(30, 6, first.size), rng.normal(65, 9, first.size)), 0, 100)
    released = spec.randomize(truth, rng)
    benchmark.pedantic(reconstruct, (released, spec), {"intervals": 1000}, rounds=3, iterations=1)


@pytest.mark.parametrize("rows", [1, 1000])
def bench_reconstruct_counts(benchmark: BenchmarkFixture, rows: int) -> None:
    rng = np.random.default_rng(0)
    kernel = np.exp(-(np.arange(-40, 41) ** 2) / (2 * 10.0**2))
    matrix = np.array([np.r_[np.zeros(i), kernel, np.zeros(39 - i)] for i in range(40)]) / kernel.sum()
    counts = rng.multinomial(500, rng.dirichlet(np.ones(40)) @ matrix, size=rows)
    benchmark(reconstruct_counts, counts, Channel.of(matrix))
