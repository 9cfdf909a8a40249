"""Which family of groups a record joined, and when each family left: whether published rows rest on a record."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.condense.maintainer import Absorbed, Maintainer
from sfumato.documents import from_json, write_json
from sfumato.stream.format import Entry, StateError

__all__ = ["LEFT", "UNKNOWN", "absorb_traced", "entry_of_left", "families_left"]

LEFT = "kept-left"
"""Kind of the entry that tells when families left last; written where rows are kept for measuring."""

UNKNOWN = -1
"""The family of a record of which nobody saw the group that it joined."""

_FEWEST = 16  # records that are absorbed at once while it is noted which family each joins


def absorb_traced(
    maintainer: Maintainer, values: NDArray[np.float64], levels: NDArray[np.int64]
) -> tuple[Absorbed, NDArray[np.int64]]:
    """Let records join, and tell the family that each joined; -1 where that is not known.

    Groups that split within a call are gone when it ends, so few records are absorbed at once; how they are cut changes
    no group. Not known are those who had to wait, and those who joined a group that came and went within a call.
    """
    done = [maintainer.absorb(values[:0], levels[:0])]
    families = [np.empty(0, dtype=np.int64)]
    first = 0
    while first < len(levels):
        last = first + max(_FEWEST, len(maintainer.ids))
        ids, family = maintainer.ids, maintainer.family
        done.append(maintainer.absorb(values[first:last], levels[first:last]))
        ids, where = np.unique(np.concatenate([ids, maintainer.ids]), return_index=True)
        family = np.concatenate([family, maintainer.family])[where]
        joined = done[-1].where
        place = np.minimum(np.searchsorted(ids, joined), len(ids) - 1)
        families.append(np.where(ids[place] == joined, family[place], UNKNOWN))
        first = last
    whole = Absorbed(
        sum(part.absorbed for part in done),
        sum(part.pending for part in done),
        sum(part.admitted for part in done),
        sum(part.splits for part in done),
        np.concatenate([part.where for part in done]),
    )
    return whole, np.concatenate(families)


def families_left(body: bytes) -> dict[int, int]:
    """Read of each family the epoch in which it left last.

    Raises
    ------
    StateError
    """
    try:
        return {int(family): epoch for family, epoch in from_json(dict[str, int], body).items()}
    except ValueError:
        raise StateError("the state does not tell when families left; use the version that wrote it") from None


def entry_of_left(told: dict[str, int]) -> Entry:
    """Write of each family the epoch in which it left last."""
    return Entry(LEFT, "", write_json(told).encode())
