"""Rules between items, from frequent sets: how often who holds the items on the left holds the one on the right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.itemsets.mining import Itemsets, mix

__all__ = ["FoundRules", "rules_of"]

_HAIR = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class FoundRules:
    """Rules with one item on their right.

    Parameters
    ----------
    sets : array of int64
        Place of the whole set of each rule among the itemsets.
    right : array of int64
        The item on its right.
    confidence : array of float
    keys : array of uint64
        One number for each rule, the same for equal rules.
    """

    sets: NDArray[np.int64]
    right: NDArray[np.int64]
    confidence: NDArray[np.float64]
    keys: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.sets)

    def __repr__(self) -> str:
        return f"FoundRules({len(self)})"


def rules_of(itemsets: Itemsets, min_confidence: float) -> FoundRules:
    """All rules with one item on their right that are right at least so often; a hair's breadth is forgiven.

    The sets must be all frequent ones, so that with each of them what is left without an item is there too.
    """
    lengths = itemsets.lengths
    entries = np.flatnonzero(np.repeat(lengths > 1, lengths))
    whole = np.repeat(np.arange(len(itemsets)), lengths)[entries]
    right = itemsets.items[entries].astype(np.int64)
    keys = itemsets.keys()
    order = np.argsort(keys)
    left = order[np.minimum(np.searchsorted(keys, keys[whole] ^ mix(right), sorter=order), max(len(keys) - 1, 0))]
    confidence = itemsets.counts[whole] / np.maximum(itemsets.counts[left], 1)
    kept = confidence >= min_confidence - _HAIR
    with np.errstate(over="ignore"):
        named = keys[whole[kept]] + mix(right[kept] + (1 << 40))
    return FoundRules(whole[kept], right[kept], confidence[kept], named)
