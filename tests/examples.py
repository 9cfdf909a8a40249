"""How much a test tries: more in ``make slow`` than in ``make test``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings


USUAL = 50
"""Examples of a property test that asks for no other number."""


def examples(count: int) -> settings:
    """``count`` examples where ``USUAL`` is the usual number: half of them in ``make test``, ten times in ``make slow``."""
    return settings(max_examples=max(1, count * settings().max_examples // USUAL))


def at_length(*values: Any) -> list[Any]:
    """Parameters that are tried in ``make slow`` only; of several names, each value is a tuple."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow) for value in values
    ]
