"""Speed of static condensation, one function a benchmark [AY05, sec. 2]."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture

from sfumato.core.groups import Groups, summarize
from sfumato.core.groups.generate import generate
from sfumato.core.records import Block, BlockKind, Layout
from sfumato.methods.condense.paper import construct_groups, segment

ROWS, DIM, K = 5_000, 10, 10


def random_values(rows: int = ROWS, dim: int = DIM) -> NDArray[np.float64]:
    """Draw standard normal rows."""
    return np.random.default_rng(7).standard_normal((rows, dim))


def random_order(rows: int = ROWS) -> NDArray[np.int64]:
    """Draw an order of the rows."""
    return np.random.default_rng(8).permutation(rows)


def grouped(dim: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Give values, labels of groups of K records, and levels."""
    labels = np.random.default_rng(9).permutation(np.arange(ROWS) // K)
    return random_values(dim=dim), labels, np.full(ROWS, K)


def numeric_layout(dim: int) -> Layout:
    """Give a layout of numbers."""
    return tuple(Block(f"x{j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(dim))


def mixed_groups() -> tuple[Groups, Layout]:
    """Give groups of DIM numbers and one column of five categories."""
    values, labels, levels = grouped(DIM)
    codes = np.random.default_rng(10).integers(5, size=ROWS)
    values = np.concatenate([values, np.eye(5)[codes] * np.sqrt(0.5)], axis=1)
    category = Block("c", BlockKind.CATEGORY, DIM, DIM + 5, (0.0,) * 5)
    return summarize(values, labels, levels), (*numeric_layout(DIM), category)


def bench_segment(benchmark: BenchmarkFixture) -> None:
    benchmark(segment, random_values(), np.arange(ROWS), K, random_order())


def bench_construct_groups_one_level(benchmark: BenchmarkFixture) -> None:
    benchmark(construct_groups, random_values(), np.full(ROWS, K), random_order())


def bench_construct_groups_levels_k_to_5k(benchmark: BenchmarkFixture) -> None:
    levels = np.random.default_rng(11).integers(K, 5 * K + 1, size=ROWS)
    benchmark(construct_groups, random_values(), levels, random_order())


@pytest.mark.parametrize("dim", [10, 50])
def bench_summarize(benchmark: BenchmarkFixture, dim: int) -> None:
    benchmark(summarize, *grouped(dim))


@pytest.mark.parametrize("dim", [10, 50])
def bench_generate(benchmark: BenchmarkFixture, dim: int) -> None:
    benchmark(generate, summarize(*grouped(dim)), numeric_layout(dim), np.random.default_rng(12))


def bench_generate_with_categories(benchmark: BenchmarkFixture) -> None:
    benchmark(generate, *mixed_groups(), np.random.default_rng(12))
