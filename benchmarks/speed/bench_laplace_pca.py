"""Speed of Laplace noise on the principal components of groups."""

from __future__ import annotations

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from sfumato.core.records import Block, BlockKind, Records
from sfumato.methods.perturb.laplace_pca import LaplacePCA, perturb_groups

N, D, K = 50_000, 9, 100


def _records() -> Records:
    values = np.random.default_rng(7).normal(size=(N, D))
    layout = tuple(Block(f"x{place}", BlockKind.NUMBER, place, place + 1, (0.0,)) for place in range(D))
    nothing = np.zeros(N, dtype=np.int64)
    return Records(values, layout, nothing, nothing.copy(), "x0")


def bench_perturb_groups(benchmark: BenchmarkFixture) -> None:
    records, labels = _records(), np.arange(N) // K
    benchmark(perturb_groups, records, labels, 0.2, LaplacePCA.grid, np.random.default_rng(8))


def bench_laplace_pca(benchmark: BenchmarkFixture) -> None:
    records = _records()
    LaplacePCA(k=K).sanitize(records, rng=np.random.default_rng(8))  # compiles
    benchmark(LaplacePCA(k=K).sanitize, records, rng=np.random.default_rng(8))
