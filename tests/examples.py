"""How many examples a property test draws, where the profile's own count does not serve."""

from __future__ import annotations

from hypothesis import settings


def examples(count: int) -> settings:
    """``count`` examples in ``make test``, as many times more in ``make slow`` as its profile draws more."""
    return settings(max_examples=count * settings().max_examples // settings.get_profile("fixed").max_examples)
