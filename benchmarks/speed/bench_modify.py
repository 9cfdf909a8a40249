"""Speed of the modifications on mixed tables of ten columns."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.speed.modify import records_with_gaps
from sfumato.methods.modify import Blocking
from sfumato.methods.modify.swap import Downgrading, Subsampling, Swapping
from sfumato.methods.protocol import Mechanism

MECHANISMS: dict[str, Mechanism] = {
    "swap": Swapping(pass_categories=True),
    "swap-leaves": Swapping(within="leaves"),
    "subsample": Subsampling(),
    "block": Blocking(columns=("c0", "c1", "w0", "w1"), k=200),
    "downgrade": Downgrading("c0", limit=0.5),
}


@pytest.mark.parametrize("name", MECHANISMS)
def bench_modify(benchmark: BenchmarkFixture, name: str) -> None:
    records = records_with_gaps(20_000)
    benchmark(lambda: MECHANISMS[name].sanitize(records, rng=np.random.default_rng(8)))
