"""Speed of the chain on mixed tables of ten columns, and how it grows with the rows."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout, Records
from sfumato.methods.chain import Chain

NUMBERS, CATEGORIES, LABELS = 8, 2, 5


def mixed_records(rows: int) -> Records:
    """Draw eight numbers and two categories that hang on four common causes, of one population for every size."""
    rng = np.random.default_rng(7)
    loadings = rng.standard_normal((4, NUMBERS))
    causes = rng.standard_normal((rows, 4))
    values = np.zeros((rows, NUMBERS + CATEGORIES * LABELS))
    values[:, :NUMBERS] = causes @ loadings + rng.standard_normal((rows, NUMBERS))
    layout: Layout = tuple(Block(f"n{j}", BlockKind.NUMBER, j, j + 1, (0.0,), 0.0, 1.0) for j in range(NUMBERS))
    for j in range(CATEGORIES):
        start = NUMBERS + j * LABELS
        label = np.clip(causes[:, j] * 1.5 + 2.5, 0, LABELS - 1).astype(np.int64)
        values[np.arange(rows), start + label] = CATEGORY_SCALE
        layout += (Block(f"c{j}", BlockKind.CATEGORY, start, start + LABELS, (0.0,) * LABELS),)
    nothing = np.zeros(rows, dtype=np.int64)
    return Records(values, layout, nothing, nothing.copy())


@pytest.mark.parametrize("rows", [10_000, 100_000])
def bench_chain(benchmark: BenchmarkFixture, rows: int) -> None:
    records = mixed_records(rows)
    benchmark(lambda: Chain().sanitize(records, rng=np.random.default_rng(8)))
