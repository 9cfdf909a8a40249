"""Engines of several parties in one test process: one worker process each, called together from threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.parties.arithmetic import Operation, evaluate
from sfumato.parties.spu import SpuEngine, engine_python
from tests.ports import free_port

T = TypeVar("T")
Words = NDArray[np.uint64]


def need_engine() -> None:
    """Skip where the engine's environment was not made."""
    try:
        engine_python()
    except OptionError:
        pytest.skip("no Python with the engine for secure computation was found: run 'make engine'")


def free_addresses(count: int) -> list[str]:
    return [f"127.0.0.1:{free_port()}" for _ in range(count)]


def together(actions: Sequence[Callable[[], T]]) -> list[T]:
    """Do all at the same time and give what each gives; the first that failed fails here."""
    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.result() for future in [pool.submit(action) for action in actions]]


def start_engines(
    protocol: str,
    computing: tuple[int, ...],
    *,
    timeout: float = 60.0,
    failed: Callable[[], object] | None = None,
) -> list[SpuEngine]:
    addresses = dict(zip(computing, free_addresses(len(computing)), strict=True))

    def start(rank: int) -> SpuEngine:
        return SpuEngine(protocol, rank, addresses, timeout=timeout, failed=failed)

    return together([partial(start, rank) for rank in computing])


def split(values: NDArray[np.int64]) -> tuple[Words, Words]:
    """Two uniform shares."""
    mask = np.random.default_rng().integers(0, 1 << 64, size=values.shape, dtype=np.uint64)
    return mask, values.astype(np.int64).view(np.uint64) - mask


def run_shares(
    engines: Sequence[SpuEngine], operation: Operation, values: Sequence[NDArray[np.int64]]
) -> tuple[list[Words], list[Words]]:
    """Run an operation and give the result shares of the first and of the last party."""
    shares = [split(value) for value in values]
    inputs: list[list[Words | None]] = [[None] * len(values) for _ in engines]
    inputs[0], inputs[-1] = [first for first, _ in shares], [last for _, last in shares]
    pairs = list(zip(engines, inputs, strict=True))
    results = together([partial(engine.run, operation, held) for engine, held in pairs])
    for helper in results[1:-1]:
        assert all(share is None for share in helper)
    first, last = ([share for share in side if share is not None] for side in (results[0], results[-1]))
    return first, last


def assert_exact(engines: Sequence[SpuEngine], operation: Operation, *values: NDArray[np.int64]) -> None:
    """Compare with what the operation is in the clear, to the last bit."""
    first, last = run_shares(engines, operation, values)
    wanted = evaluate(operation, values)
    assert len(first) == len(last) == len(wanted)
    for here, there, want in zip(first, last, wanted, strict=True):
        np.testing.assert_array_equal((here + there).view(np.int64), want)
