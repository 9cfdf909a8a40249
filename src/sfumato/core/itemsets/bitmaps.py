"""Items as bitmaps over baskets, and in how many baskets of each class a set is held in whole or in part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sfumato.core.compiled import compiled, fixed
from sfumato.core.itemsets.baskets import Baskets

__all__ = ["Bitmaps", "partial_counts", "popcount"]

Words = NDArray[np.uint64]
_LONGEST = 15  # items of a set that is counted in part


@intrinsic
def _popcount(_context: Any, _word: Any) -> Any:
    """How many bits of a word are set."""

    def generate(_: Any, builder: Any, __: Any, words: Any) -> Any:
        return builder.ctpop(words[0])

    return types.uint64(types.uint64), generate


popcount = cast("Callable[[np.uint64], np.uint64]", _popcount)
"""How many bits of a word are set, inside a kernel."""


@dataclass(frozen=True, eq=False, repr=False)
class Bitmaps:
    """For each of some items a bit for each basket; baskets of one class stand in words of their own.

    Parameters
    ----------
    bits : array (items, words)
    places : array of int64
        Row of each item of the baskets; -1 of those without one.
    ranges : array (classes + 1,)
        Words where each class begins, and where the last one ends.
    sizes : array (classes,)
        Baskets of each class.
    """

    bits: Words
    places: NDArray[np.int64]
    ranges: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, baskets: Baskets, items: NDArray[np.int64], classes: NDArray[np.int64] | None = None) -> Bitmaps:
        """Bitmaps of some items; ``classes`` numbers the class of each basket from 0."""
        labels = np.zeros(len(baskets), dtype=np.int64) if classes is None else classes
        sizes = np.bincount(labels, minlength=1)
        ranges = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(-(-sizes // 64), out=ranges[1:])
        first = np.zeros(len(sizes), dtype=np.int64)
        np.cumsum(sizes[:-1], out=first[1:])
        order = np.argsort(labels, kind="stable")
        slot = np.empty(len(baskets), dtype=np.int64)
        slot[order] = np.arange(len(baskets)) - first[labels[order]] + 64 * ranges[labels[order]]
        places = np.full(baskets.width, -1, dtype=np.int64)
        places[items] = np.arange(len(items))
        bits = np.zeros((len(items), int(ranges[-1])), dtype=np.uint64)
        _set_bits(fixed(baskets.items, np.int32), fixed(baskets.starts, np.int64), fixed(slot, np.int64), places, bits)
        return cls(bits, places, ranges, sizes)


def partial_counts(bitmaps: Bitmaps, sets: Sequence[Sequence[int]] | NDArray[np.int64]) -> NDArray[np.int64]:
    """In how many baskets of each class so many items of each set are: (sets, classes, items + 1).

    All sets have the same number of items, at most 15.

    Examples
    --------
    >>> baskets = Baskets.of([[0, 1], [0], [2]])
    >>> partial_counts(Bitmaps.of(baskets, np.arange(3)), [[0, 1]]).tolist()
    [[[1, 1, 1]]]
    """
    array = np.atleast_2d(np.asarray(sets, dtype=np.int64))
    if array.shape[1] > _LONGEST:
        raise ValueError(f"sets of more than {_LONGEST} items are not counted in part")
    rows = bitmaps.places[array]
    if (rows < 0).any():
        raise ValueError("a set holds an item without a bitmap")
    counts = np.zeros((len(array), len(bitmaps.sizes), array.shape[1] + 1), dtype=np.int64)
    _count_parts(bitmaps.bits, fixed(rows, np.int64), fixed(bitmaps.ranges, np.int64), counts)
    counts[:, :, 0] = bitmaps.sizes - counts[:, :, 1:].sum(axis=2)
    return counts


@compiled
def _set_bits(items: Any, starts: Any, slot: Any, places: Any, bits: Any) -> None:
    for basket in range(len(starts) - 1):
        word, bit = slot[basket] >> 6, np.uint64(slot[basket] & 63)
        for entry in range(starts[basket], starts[basket + 1]):
            row = places[items[entry]]
            if row >= 0:
                bits[row, word] |= np.uint64(1) << bit


@compiled
def _count_parts(bits: Any, sets: Any, ranges: Any, counts: Any) -> None:
    """Add up the items of a set bit by bit in four planes, 64 baskets at a time."""
    none = np.uint64(0)
    length = sets.shape[1]
    for one in range(len(sets)):
        for group in range(len(ranges) - 1):
            for word in range(ranges[group], ranges[group + 1]):
                p0, p1, p2, p3 = none, none, none, none
                for place in range(length):
                    carry = bits[sets[one, place], word]
                    p0, carry = p0 ^ carry, p0 & carry
                    if length > 1:
                        p1, carry = p1 ^ carry, p1 & carry
                    if length > 3:
                        p2, carry = p2 ^ carry, p2 & carry
                    if length > 7:
                        p3 = p3 ^ carry
                for held in range(1, length + 1):
                    mask = p0 if held & 1 else ~p0
                    mask &= p1 if held & 2 else ~p1
                    mask &= p2 if held & 4 else ~p2
                    mask &= p3 if held & 8 else ~p3
                    counts[one, group, held] += popcount(mask)
