"""Which of the first records of a stream a static condensation can serve [AY05, sec. 3]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["can_begin"]


def can_begin(levels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the largest set of records none of which asks for a level above the size of the set.

    The others must wait until a group is large enough for them.

    Examples
    --------
    >>> can_begin(np.array([3, 2, 9, 3])).tolist(), can_begin(np.array([2, 5])).tolist()
    ([True, True, False, True], [False, False])
    """
    kept = np.ones(len(levels), dtype=np.bool_)
    while (levels[kept] > kept.sum()).any():
        kept = levels <= kept.sum()
    return kept
