"""How much a test tries: more in ``make slow`` than in ``make test``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings


def examples(count: int) -> settings:
    """``count`` examples in ``make test``, as many times more in ``make slow`` as its profile draws more."""
    return settings(max_examples=count * settings().max_examples // settings.get_profile("fixed").max_examples)


def at_length(*values: Any) -> list[Any]:
    """Parameters that are tried in ``make slow`` only; of several names, each value is a tuple."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow) for value in values
    ]
