"""Speed of dynamic condensation, one function a benchmark [AY05, sec. 3]."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.speed.stream import K, draw, rough_groups
from sfumato.methods.condense.centroid_index import build_index
from sfumato.methods.condense.maintainer import Maintainer

GROUPS, DIM, BATCH = 5_000, 10, 1_000


def started(kind: str) -> Maintainer:
    """Give a maintainer with GROUPS groups that have moved."""
    rng = np.random.default_rng(7)
    first = draw(kind, GROUPS * K, DIM, rng)
    maintainer = Maintainer(DIM, k=K, split="paper")
    maintainer.start(first, np.full(len(first), K), rough_groups(first, K))
    maintainer.absorb(draw(kind, 5_000, DIM, rng), np.full(5_000, K))
    return maintainer


@pytest.mark.parametrize("kind", ["clustered", "unstructured"])
def bench_absorb(benchmark: BenchmarkFixture, kind: str) -> None:
    maintainer, batch = started(kind), draw(kind, BATCH, DIM, np.random.default_rng(8))
    benchmark(maintainer.absorb, batch, np.full(BATCH, K))


def bench_build_index(benchmark: BenchmarkFixture) -> None:
    maintainer = started("clustered")
    benchmark(build_index, maintainer._store, len(maintainer.ids))


def bench_maintainer_state(benchmark: BenchmarkFixture) -> None:
    benchmark(started("clustered").state)
