"""Baskets in compressed sparse rows: which items each one holds, and nothing for those that it does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Baskets", "are_within", "distinct_keys"]


@dataclass(frozen=True, eq=False, repr=False)
class Baskets:
    """Items of each basket, numbered from 0, in rising order and each once.

    Parameters
    ----------
    items : array of int32
        Of all baskets, one after the other.
    starts : array of int64
        Where each basket begins, and at last where the last one ends.
    width : int
        How many different items there may be.
    """

    items: NDArray[np.int32]
    starts: NDArray[np.int64]
    width: int

    def __post_init__(self) -> None:
        if len(self.starts) < 1 or self.starts[0] != 0 or self.starts[-1] != len(self.items):
            raise ValueError("baskets begin at 0 and end where their items do")
        if len(self.items) and (self.items.min() < 0 or self.items.max() >= self.width):
            raise ValueError("items lie outside those that there may be")

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __repr__(self) -> str:
        return f"Baskets({len(self)} baskets, {len(self.items)} entries, {self.width} items)"

    @classmethod
    def of(cls, baskets: Iterable[Sequence[int]], width: int | None = None) -> Baskets:
        """Baskets from plain lists of item numbers; an item that stands twice is taken once.

        Examples
        --------
        >>> Baskets.of([[3, 1, 1], [], [0]])
        Baskets(3 baskets, 3 entries, 4 items)
        """
        lists = [np.asarray(basket, dtype=np.int64) for basket in baskets]
        sizes = np.array([len(each) for each in lists], dtype=np.int64)
        flat = np.concatenate([*lists, np.empty(0, dtype=np.int64)])
        whole = int(flat.max(initial=-1)) + 1 if width is None else width
        return cls.from_pairs(np.repeat(np.arange(len(lists)), sizes), flat, len(lists), whole)

    @classmethod
    def from_pairs(
        cls, rows: NDArray[np.int64], items: NDArray[np.int64], baskets: int, width: int, *, distinct: bool = False
    ) -> Baskets:
        """Baskets from pairs of a basket and an item, in any order; pairs that stand twice are taken once.

        ``distinct`` where no pair does, which saves looking for them.
        """
        keys = rows * np.int64(max(width, 1)) + items
        keys = np.sort(keys) if distinct else distinct_keys(keys)
        places, held = np.divmod(keys, max(width, 1))
        starts = np.zeros(baskets + 1, dtype=np.int64)
        np.cumsum(np.bincount(places, minlength=baskets), out=starts[1:])
        return cls(held.astype(np.int32), starts, width)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many items each basket holds."""
        return np.diff(self.starts)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The basket of each entry."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many baskets hold each item."""
        return np.bincount(self.items, minlength=self.width)

    def basket(self, place: int) -> NDArray[np.int32]:
        """Items of one basket."""
        return self.items[self.starts[place] : self.starts[place + 1]]

    def take(self, places: NDArray[np.int64]) -> Baskets:
        """Some of the baskets, in this order."""
        sizes = self.sizes[places]
        starts = np.zeros(len(places) + 1, dtype=np.int64)
        np.cumsum(sizes, out=starts[1:])
        shift = np.repeat(self.starts[places] - starts[:-1], sizes)
        return Baskets(self.items[np.arange(starts[-1]) + shift], starts, self.width)

    def having(self, keep: NDArray[np.bool_]) -> Baskets:
        """The same baskets with only those entries that are to be kept."""
        starts = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.rows[keep], minlength=len(self)), out=starts[1:])
        return Baskets(self.items[keep], starts, self.width)

    def without(self, keys: NDArray[np.int64]) -> Baskets:
        """The same baskets without these entries, by their keys."""
        own, keep = self.keys(), np.ones(len(self.items), dtype=np.bool_)
        keep[np.searchsorted(own, keys[are_within(keys, own)])] = False
        return self.having(keep)

    def keys(self) -> NDArray[np.int64]:
        """One number for each entry, of its basket and its item, in rising order."""
        return self.rows * np.int64(max(self.width, 1)) + self.items


def distinct_keys(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keys in rising order, each once; by sorting, which is many times faster than NumPy's hashing of long arrays."""
    ordered = np.sort(keys)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def are_within(keys: NDArray[Any], ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """Which keys are among those in rising order."""
    if not len(ordered):
        return np.zeros(len(keys), dtype=np.bool_)
    return np.asarray(ordered[np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)] == keys)
