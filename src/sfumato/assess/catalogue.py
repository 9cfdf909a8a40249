"""Every measure and every attack of a report, in the order in which they run."""

from __future__ import annotations

from sfumato.assess.frame import Measure

__all__ = ["catalogue"]


def catalogue() -> tuple[Measure, ...]:
    """List the measures; they are loaded when the list is asked for."""
    return ()
