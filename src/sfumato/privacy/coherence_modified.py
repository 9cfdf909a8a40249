"""Facts of the classic modifications that cannot all be true."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.core.facts import Aggregated, Alike, Blocked, Downgraded, Fact, Sampled, Swapped, Unchanged

__all__ = ["columns_agree", "is_modified", "modified_names"]


def is_modified(fact: Fact) -> bool:
    """Tell whether a fact of a modification agrees with itself."""
    match fact:
        case Swapped():
            return _are_names(fact.columns, fact.changed) and _is_swapped(fact)
        case Sampled():
            return (
                1 <= fact.drawn <= fact.persons <= fact.records
                and fact.drawn <= fact.rows <= fact.records
                and (fact.drawn < fact.persons) <= (fact.rows < fact.records)
                and (fact.by_person or (fact.persons, fact.drawn) == (fact.records, fact.rows))
            )
        case Aggregated():
            return _are_names(fact.columns, fact.levels, fact.hierarchies) and min(fact.levels) >= 1
        case Alike():
            return (
                _are_names(fact.columns)
                and 1 <= fact.fewest <= fact.rows
                and fact.alone <= fact.rows
                and (fact.fewest == 1) == (fact.alone > 0)
            )
        case Unchanged():
            return _are_names(fact.columns) and 0 <= fact.missing <= len(fact.columns)
        case Blocked():
            return (
                _are_names(fact.columns, fact.cells)
                and 2 <= fact.asked_min <= fact.asked_max
                and fact.asked_min <= fact.least <= fact.rows
                and fact.asked_max <= fact.rows
                and all(0 <= cells <= fact.rows for cells in fact.cells)
            )
        case Downgraded():
            return _is_downgraded(fact)
        case _:
            return False


def _are_names(columns: Sequence[str], *beside: Sequence[object]) -> bool:
    """Tell whether there are columns, each once, and as many entries beside them."""
    return (
        bool(columns)
        and len(set(columns)) == len(columns)
        and all(len(entries) == len(columns) for entries in beside)
        and all(entry >= 0 for entries in beside for entry in entries if isinstance(entry, int))
    )


def _is_swapped(fact: Swapped) -> bool:
    fine = all(changed <= fact.rows for changed in fact.changed) and fact.missing <= len(fact.columns)
    if fact.within == "window":
        bare = fact.target is None and not fact.leaves and not fact.smallest
        return fine and bare and fact.window is not None and 0 < fact.window <= 100
    return (
        fine
        and fact.window is None
        and fact.target is not None
        and fact.leaves >= 1
        and fact.smallest >= 1
        and fact.leaves * fact.smallest <= fact.rows
    )


def _is_downgraded(fact: Downgraded) -> bool:
    return (
        (not fact.columns or _are_names(fact.columns, fact.cells))
        and len(fact.columns) == len(fact.cells)
        and fact.private not in fact.columns
        and all(1 <= cells <= fact.hidden for cells in fact.cells)
        and 1 <= fact.hidden <= fact.rows
        and math.isfinite(fact.limit)
        and 0 <= fact.most <= fact.limit + 1e-9
        and 1 <= fact.rules_after <= fact.rows
        and 1 <= fact.rules_before <= fact.rows
    )


def modified_names(facts: Sequence[Fact]) -> set[str]:
    """Columns that facts of a modification name, all of which are released."""
    names = set[str]()
    for fact in facts:
        if isinstance(fact, Aggregated | Alike | Blocked | Downgraded | Swapped | Unchanged):
            names |= set(fact.columns)
        if isinstance(fact, Downgraded):
            names.add(fact.private)
        if isinstance(fact, Swapped) and fact.target is not None:
            names.add(fact.target)
    return names


def columns_agree(facts: Sequence[Fact]) -> bool:
    """Tell whether no column is exchanged and as it was, and blocked columns are those that rows are alike in."""
    swapped = {name for fact in facts if isinstance(fact, Swapped) for name in fact.columns}
    same = {name for fact in facts if isinstance(fact, Unchanged) for name in fact.columns}
    blocked = [fact for fact in facts if isinstance(fact, Blocked)]
    alike = [fact for fact in facts if isinstance(fact, Alike)]
    fine = all(fact.columns == one.columns and fact.fewest >= one.least for fact in alike for one in blocked)
    return fine and not swapped & same
