"""How much a test tries: more in ``make slow`` than in ``make test``."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

USUAL = 50
"""Examples of a property test that asks for no other number."""


def examples(count: int, *, few: int | None = None) -> settings:
    """``few`` examples in ``make test``, a third of ``count`` unless told; ten times ``count`` in ``make slow``."""
    return settings(max_examples=sized(few or max(1, count // 3), 10 * count))


def in_full() -> bool:
    """Whether this is ``make slow``, which runs every test with all that it tries."""
    return settings().max_examples >= 10 * USUAL


def sized(few: T, whole: T) -> T:
    """The size of what a test tries: a few in ``make test``, the whole in ``make slow``."""
    return whole if in_full() else few


def at_length(*values: Any) -> list[Any]:
    """Parameters that are tried in ``make slow`` only; of several names, each value is a tuple."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow) for value in values
    ]
