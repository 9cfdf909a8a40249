"""Speed of modified condensation and of the holistic variant, whole and step by step."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture

from sfumato.core.groups.kmeans import fill_clusters, holistic_groups, k_means, modified_groups

ROWS, DIM, K = 5_000, 10, 10


def random_values(rows: int = ROWS, dim: int = DIM) -> NDArray[np.float64]:
    """Draw standard normal rows."""
    return np.random.default_rng(7).standard_normal((rows, dim))


def cluster(values: NDArray[np.float64], count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Cluster with a fresh generator, so that every round does the same work."""
    return k_means(values, count, np.random.default_rng(8))


def group_modified(values: NDArray[np.float64], k: int) -> None:
    """Group with a fresh generator."""
    modified_groups(values, k, np.random.default_rng(8))


def group_holistic(values: NDArray[np.float64], k: int) -> None:
    """Group with a fresh generator."""
    holistic_groups(values, k, np.random.default_rng(8))


@pytest.mark.parametrize("k", [K, 500])
def bench_modified(benchmark: BenchmarkFixture, k: int) -> None:
    benchmark(group_modified, random_values(), k)


def bench_modified_30000_rows(benchmark: BenchmarkFixture) -> None:
    benchmark.pedantic(group_modified, (random_values(30_000), 20), rounds=1, warmup_rounds=0)


def bench_holistic(benchmark: BenchmarkFixture) -> None:
    benchmark(group_holistic, random_values(), K)


def bench_k_means(benchmark: BenchmarkFixture) -> None:
    benchmark(cluster, random_values(), ROWS // K)


def bench_fill_clusters(benchmark: BenchmarkFixture) -> None:
    values = random_values()
    labels, centres = cluster(values, ROWS // K)
    benchmark(fill_clusters, values, labels, centres, K)
