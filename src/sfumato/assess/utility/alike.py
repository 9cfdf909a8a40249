"""Which rows of two tables are looked at where not all of them are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.study import Study, sample

__all__ = ["note", "rows_alike"]

_Rows = NDArray[np.int64]


def rows_alike(study: Study, most: int, rng: np.random.Generator) -> tuple[_Rows, _Rows]:
    """Draw at most so many rows of the original and of the released table.

    Tables of one length are looked at in the same places, so that a copy stays a copy and a table that was changed
    row by row is compared with the rows that it came from.
    """
    here, there = len(study.original), len(study.released)
    first = sample(here, most, rng)
    return first, first if here == there else sample(there, most, rng)


def note(study: Study, here: _Rows, there: _Rows) -> str:
    """Say on how many rows a number was found, where these are not all."""
    if len(here) == len(study.original) and len(there) == len(study.released):
        return ""
    return f"; counted on {len(here)} original and {len(there)} released rows drawn at random"
