"""Whether the parameters of a modification are those that its facts tell of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.core.facts import Aggregated, Blocked, Downgraded, Fact, Sampled, Swapped

__all__ = ["fits_modified"]


def fits_modified(mechanism: Any, facts: Sequence[Fact]) -> bool:
    """Tell whether a modification with its parameters can have stated these facts."""
    for fact in facts:
        match fact:
            case Swapped() if not _fits_swap(mechanism, fact):
                return False
            case Sampled() if fact.drawn != _drawn(mechanism.share, fact.persons):
                return False
            case Aggregated() if mechanism.method == "aggregate" and not _fits_levels(mechanism, fact):
                return False
            case Blocked() if fact.asked_min < mechanism.k or (mechanism.columns and fact.columns != mechanism.columns):
                return False
            case Downgraded() if (fact.private, fact.limit) != (mechanism.private, mechanism.limit) or (
                mechanism.hidden == 1 and fact.hidden != fact.rows
            ):
                return False
    return True


def _drawn(share: float, persons: int) -> int:
    from sfumato.mechanisms.modify.sample import people_drawn

    return people_drawn(share, persons)


def _fits_swap(mechanism: Any, fact: Swapped) -> bool:
    if mechanism.within != fact.within or (mechanism.columns and fact.columns != mechanism.columns):
        return False
    if fact.within == "window":
        return bool(fact.window == mechanism.window)
    return fact.smallest >= mechanism.leaf and (bool(mechanism.columns) or fact.columns == (fact.target,))


def _fits_levels(mechanism: Any, fact: Aggregated) -> bool:
    """Tell whether every column that was told is at its level."""
    found = dict(zip(fact.columns, zip(fact.hierarchies, fact.levels, strict=True), strict=True))
    return all(
        each.column in found
        and found[each.column][1] == each.level
        and (each.hierarchy is None or found[each.column][0] == each.hierarchy)
        for each in mechanism.traits.coarsened
    )
