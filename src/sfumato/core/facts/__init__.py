"""Facts of a release, and what follows from each: claims, checks, and lines of reports."""

from __future__ import annotations

from sfumato.core.facts import fact, release
from sfumato.core.facts.fact import *  # noqa: F403  # noqa: F403
from sfumato.core.facts.release import *  # noqa: F403

__all__: list[str] = []
__all__ += fact.__all__
__all__ += release.__all__
