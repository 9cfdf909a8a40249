"""What is tuned: the method, the parameter that is its size, and the range that a table leaves it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.assess.study import Study
from sfumato.core.errors import LevelError, OptionError
from sfumato.mechanisms.chain.mechanism import Chain
from sfumato.mechanisms.condense.classwise import ClasswiseCondensation, classes_of
from sfumato.mechanisms.condense.layers import first_of_person
from sfumato.mechanisms.condense.mechanism import Condensation
from sfumato.mechanisms.methods import usual_method
from sfumato.mechanisms.protocol import Mechanism
from sfumato.tuning.metrics import has_classes
from sfumato.tuning.trials import Split

__all__ = ["SHARE", "TUNED", "check_method", "floor_of_chain", "maker", "parts_of", "range_of", "usual_tuned"]

TUNED = ("chain", "classwise", "condense")
"""Methods whose size can be tuned."""

SHARE = 0.1
"""The paper's t as a share of the smallest class, and of the rows held out."""

_FLOORS = {"chain": 25, "classwise": 5, "condense": 5}  # smallest sizes tried unless a level or k asks for more


def check_method(method: str | None, rows: int) -> str | None:
    """Method that was named, or the chain where it is the usual one; None where the target is to decide."""
    if method is None:
        return "chain" if usual_method((), rows) == "chain" else None
    if method not in TUNED:
        known = ", ".join(repr(each) for each in TUNED)
        raise OptionError(f"sizes are tuned for {known}; there is none in {method!r}")
    return method


def usual_tuned(study: Study, method: str | None) -> str:
    """Method that is tuned: of few rows class-wise condensation where the target is a class."""
    if method is None:
        return "classwise" if has_classes(study) else "condense"
    if method == "classwise" and not has_classes(study):
        raise OptionError("class-wise condensation needs a target that is a class; name one, or take condense")
    return method


def floor_of_chain(k: int | None, level: str | int | None) -> int:
    """Fewest persons behind a value of the chain, as `sanitize` takes it: 10, or 2 where levels are asked for."""
    return k if k is not None else Chain.k if level is None else 2


def maker(method: str, floor: int) -> Callable[[int], Mechanism]:
    """Mechanism of a size: the leaf of a chain with this floor, or k of condensation."""
    if method == "chain":
        return lambda size: Chain(k=floor, leaf=size)
    return (
        (lambda size: ClasswiseCondensation(k=size)) if method == "classwise" else (lambda size: Condensation(k=size))
    )


def parts_of(split: Split, method: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Persons of each part that groups may not leave."""
    parts = [split.records.strata] if method != "classwise" else [split.records.strata, classes_of(split.records)[1]]
    codes = np.unique(np.column_stack(parts), axis=0, return_inverse=True)[1].ravel()
    return np.bincount(codes[first_of_person(codes, split.records.persons)])


def range_of(split: Split, method: str, k: int | None) -> tuple[int, int | None, int]:
    """The least size tried, the paper's t, and the largest: the smallest class, or half of the records.

    Of a chain there is no t: the searches of the paper are for groups.
    """
    counts = parts_of(split, method)
    asked = int(split.records.levels.max(initial=0))
    smallest = int(counts.min())
    # a split holds other rows out of the smallest class than the next: leave room for chance
    room = (
        smallest - math.ceil(3 * math.sqrt(smallest * SHARE))
        if method == "classwise" or len(counts) > 1
        else smallest // 2
    )
    if method == "chain":
        low = max(asked, _FLOORS[method], k or 0)
        if room < low:
            raise LevelError(
                f"the smallest part that leaves may not cross has {smallest} people, too few to try leaves of {low}; "
                "pool small strata, or take the method condense"
            )
        return low, None, room
    low = max(2, asked, _FLOORS[method] if k is None else k)
    if room < low:
        raise LevelError(
            f"the smallest part that groups may not leave has {smallest} records, too few to try groups of {low}; "
            "pool small classes, lower --k, or take the method condense"
        )
    return low, min(room, max(low, round(SHARE * smallest))), room
