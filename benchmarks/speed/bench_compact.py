"""Speed of the compact grouping and of exact MDAV on a few thousand rows, one effort a benchmark."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture

from sfumato.methods.condense.compact import CompactSearch, compact_groups
from sfumato.methods.condense.partition import mdav_groups

ROWS, DIM, K = 5_000, 10, 5


def random_values(rows: int = ROWS, dim: int = DIM) -> NDArray[np.float64]:
    """Draw standard normal rows."""
    return np.random.default_rng(7).standard_normal((rows, dim))


def group_compactly(values: NDArray[np.float64], levels: NDArray[np.int64], effort: str, threads: int = 1) -> None:
    """Group with a fresh generator, so that every round does the same work."""
    compact_groups(values, levels, np.random.default_rng(8), effort=effort, search=CompactSearch(threads))


@pytest.mark.parametrize("effort", ["fast", "default"])
def bench_compact_one_level(benchmark: BenchmarkFixture, effort: str) -> None:
    benchmark(group_compactly, random_values(), np.full(ROWS, K), effort)


def bench_compact_thorough(benchmark: BenchmarkFixture) -> None:
    benchmark(group_compactly, random_values(100), np.full(100, K), "thorough")


def bench_compact_levels_k_to_5k(benchmark: BenchmarkFixture) -> None:
    levels = np.random.default_rng(11).integers(K, 5 * K + 1, size=ROWS)
    benchmark(group_compactly, random_values(), levels, "fast")


@pytest.mark.parametrize("dim", [2, 50])
def bench_compact_columns(benchmark: BenchmarkFixture, dim: int) -> None:
    benchmark(group_compactly, random_values(dim=dim), np.full(ROWS, K), "fast")


@pytest.mark.parametrize("threads", [1, 2])
def bench_compact_threads(benchmark: BenchmarkFixture, threads: int) -> None:
    rows = 30_000  # fewer are grouped by one thread whatever is asked
    benchmark(group_compactly, random_values(rows), np.full(rows, K), "fast", threads)


def bench_mdav(benchmark: BenchmarkFixture) -> None:
    benchmark(mdav_groups, random_values(), K)
