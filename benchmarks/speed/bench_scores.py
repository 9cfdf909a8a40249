"""Speed of normal scores, there and back, beside sorting the same numbers."""

from __future__ import annotations

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.speed.bench_chain import mixed_records
from sfumato.methods.condense.facts import GroupSynthesis
from sfumato.methods.condense.synthesize import NormalScores
from sfumato.methods.protocol import MethodResult


def bench_normal_scores(benchmark: BenchmarkFixture) -> None:
    records = mixed_records(100_000)
    drawn = GroupSynthesis("mean and covariance", "uniform along eigenvectors", len(records))

    def there_and_back() -> None:
        scored = NormalScores.of(records, 10)
        scored.back(MethodResult(scored.records, (drawn,), None))

    benchmark(there_and_back)


def bench_sort_numbers(benchmark: BenchmarkFixture) -> None:
    values = mixed_records(100_000).values
    benchmark(lambda: np.sort(values, axis=0))
