"""Transactions of items, the frequent sets in them, how often sets are held in part, and the rules between items.

One miner serves the transactions' own verbs and the rule measures of every report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Bools, Ints

__all__ = ["Bitmaps", "Transactions", "are_within", "distinct_keys", "least_count", "partial_counts"]


_AT_ONCE = 200_000  # entries
_HAIR = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Transactions:
    """Items of each transaction, numbered from 0, in rising order and each once.

    Parameters
    ----------
    items : array of int32
        Of all transactions, one after the other.
    starts : array of int64
        Start of each transaction, and the end of the last one.
    width : int
        How many different items there may be.
    """

    items: NDArray[np.int32]
    starts: Ints
    width: int

    def __post_init__(self) -> None:
        if len(self.starts) < 1 or self.starts[0] != 0 or self.starts[-1] != len(self.items):
            raise ValueError("transactions begin at 0 and end where their items do")
        if len(self.items) and (self.items.min() < 0 or self.items.max() >= self.width):
            raise ValueError("items lie outside those that there may be")

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __repr__(self) -> str:
        return f"Transactions({len(self)} transactions, {len(self.items)} entries, {self.width} items)"

    @classmethod
    def of(cls, transactions: Iterable[Sequence[int]], width: int | None = None) -> Transactions:
        """Transactions from plain lists of item numbers; an item that stands twice is taken once.

        Examples
        --------
        >>> Transactions.of([[3, 1, 1], [], [0]])
        Transactions(3 transactions, 3 entries, 4 items)
        """
        lists = [np.asarray(transaction, dtype=np.int64) for transaction in transactions]
        sizes = np.array([len(each) for each in lists], dtype=np.int64)
        flat = np.concatenate([*lists, np.empty(0, dtype=np.int64)])
        whole = int(flat.max(initial=-1)) + 1 if width is None else width
        return cls.from_pairs(np.repeat(np.arange(len(lists)), sizes), flat, len(lists), whole)

    @classmethod
    def from_pairs(
        cls, rows: Ints, items: Ints, transactions: int, width: int, *, distinct: bool = False
    ) -> Transactions:
        """Transactions from pairs of a transaction and an item, in any order; pairs that stand twice are taken once.

        ``distinct`` where no pair does, which saves looking for them.
        """
        keys = rows * np.int64(max(width, 1)) + items
        keys = np.sort(keys) if distinct else distinct_keys(keys)
        places, held = np.divmod(keys, max(width, 1))
        starts = np.zeros(transactions + 1, dtype=np.int64)
        np.cumsum(np.bincount(places, minlength=transactions), out=starts[1:])
        return cls(held.astype(np.int32), starts, width)

    @classmethod
    def from_ranks(cls, codes: NDArray[np.int32], starts: Ints, ranks: Ints) -> Transactions:
        """Transactions of items in any order, numbered by the rank of their code; duplicates are taken once.

        ``codes`` are overwritten, and some transactions at a time, so that little memory is used beside them.
        """
        width, used = max(len(ranks), 1), 0
        sizes = np.zeros(len(starts) - 1, dtype=np.int64)
        for first, last in _blocks(starts):
            held = ranks[codes[starts[first] : starts[last]]]
            rows = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
            places, items = np.divmod(distinct_keys(rows * width + held), width)
            sizes[first:last] = np.bincount(places, minlength=last - first)
            codes[used : used + len(items)] = items
            used += len(items)
        return cls(codes[:used], np.concatenate([[0], np.cumsum(sizes)]), len(ranks))

    @property
    def sizes(self) -> Ints:
        """How many items each transaction holds."""
        return np.diff(self.starts)

    @property
    def rows(self) -> Ints:
        """The transaction of each entry."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def counts(self) -> Ints:
        """How many transactions hold each item."""
        return np.asarray(self.class_counts(np.zeros(len(self), dtype=np.int64), 1)[0])

    def class_counts(self, classes: Ints, count: int) -> Ints:
        """Number of transactions of each class that hold each item: (classes, items)."""
        found = np.zeros(count * self.width, dtype=np.int64)
        for first, last in _blocks(self.starts):
            of = np.repeat(classes[first:last], np.diff(self.starts[first : last + 1]))
            keys = of * self.width + self.items[self.starts[first] : self.starts[last]]
            found += np.bincount(keys, minlength=len(found))
        return found.reshape(count, self.width)

    def transaction(self, place: int) -> NDArray[np.int32]:
        """Items of one transaction."""
        return self.items[self.starts[place] : self.starts[place + 1]]

    def take(self, places: Ints) -> Transactions:
        """Some of the transactions, in this order."""
        sizes = self.sizes[places]
        starts = np.zeros(len(places) + 1, dtype=np.int64)
        np.cumsum(sizes, out=starts[1:])
        shift = np.repeat(self.starts[places] - starts[:-1], sizes)
        return Transactions(self.items[np.arange(starts[-1]) + shift], starts, self.width)

    def having(self, keep: Bools) -> Transactions:
        """The same transactions with only those entries that are to be kept."""
        starts = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.rows[keep], minlength=len(self)), out=starts[1:])
        return Transactions(self.items[keep], starts, self.width)

    def without(self, keys: Ints) -> Transactions:
        """The same transactions without these entries, by their keys."""
        own, keep = self.keys(), np.ones(len(self.items), dtype=np.bool_)
        keep[np.searchsorted(own, keys[are_within(keys, own)])] = False
        return self.having(keep)

    def keys(self) -> Ints:
        """One number for each entry, of its transaction and its item, in rising order."""
        return self.rows * np.int64(max(self.width, 1)) + self.items


def _blocks(starts: Ints) -> Iterator[tuple[int, int]]:
    """First and last transaction of blocks that hold about 200,000 entries each."""
    first, transactions = 0, len(starts) - 1
    while first < transactions:
        last = int(np.searchsorted(starts, starts[first] + _AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), transactions)
        yield first, last
        first = last


def distinct_keys(keys: Ints) -> Ints:
    """Keys in rising order, each once; by sorting, which is many times faster than NumPy's hashing of long arrays."""
    ordered = np.sort(keys)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def are_within(keys: NDArray[Any], ordered: NDArray[Any]) -> Bools:
    """Which keys are among those in rising order."""
    if not len(ordered):
        return np.zeros(len(keys), dtype=np.bool_)
    return np.asarray(ordered[np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)] == keys)


def least_count(share: float, transactions: int) -> int:
    """Fewest transactions that are at least this share of all."""
    return max(1, int(np.ceil(share * transactions - _HAIR)))


Words = NDArray[np.uint64]
_LONGEST = 15  # items of a set that is counted in part
_WORDS = 1 << 14  # that are looked at together


@dataclass(frozen=True, eq=False, repr=False)
class Bitmaps:
    """For each of some items a bit for each transaction; transactions of one class stand in words of their own.

    Parameters
    ----------
    bits : array (items, words)
    places : array of int64
        Row of each item of the transactions; -1 of those without one.
    ranges : array (classes + 1,)
        Words where each class begins, and where the last one ends.
    sizes : array (classes,)
        Transactions of each class.
    """

    bits: Words
    places: Ints
    ranges: Ints
    sizes: Ints

    @classmethod
    def of(cls, transactions: Transactions, items: Ints, classes: Ints | None = None) -> Bitmaps:
        """Bitmaps of some items; ``classes`` numbers the class of each transaction from 0."""
        labels = np.zeros(len(transactions), dtype=np.int64) if classes is None else classes
        sizes = np.bincount(labels, minlength=1)
        ranges = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(-(-sizes // 64), out=ranges[1:])
        before = np.zeros(len(sizes), dtype=np.int64)
        np.cumsum(sizes[:-1], out=before[1:])
        order = np.argsort(labels, kind="stable")
        slot = np.empty(len(transactions), dtype=np.int64)
        slot[order] = np.arange(len(transactions)) - before[labels[order]] + 64 * ranges[labels[order]]
        places = np.full(transactions.width, -1, dtype=np.int64)
        places[items] = np.arange(len(items))
        bits = np.zeros((len(items), int(ranges[-1])), dtype=np.uint64)
        for first, last in _blocks(transactions.starts):
            rows = places[transactions.items[transactions.starts[first] : transactions.starts[last]]]
            slots = np.repeat(slot[first:last], np.diff(transactions.starts[first : last + 1]))[rows >= 0]
            words = rows[rows >= 0] * bits.shape[1] + (slots >> 6)
            np.add.at(bits.reshape(-1), words, np.uint64(1) << (slots & 63).astype(np.uint64))  # each bit is met once
        return cls(bits, places, ranges, sizes)


def partial_counts(bitmaps: Bitmaps, sets: Sequence[Sequence[int]] | Ints) -> Ints:
    """Number of transactions of each class with 0, 1, ... items of each set: (sets, classes, items + 1).

    All sets have the same number of items, at most 15.

    Examples
    --------
    >>> transactions = Transactions.of([[0, 1], [0], [2]])
    >>> partial_counts(Bitmaps.of(transactions, np.arange(3)), [[0, 1]]).tolist()
    [[[1, 1, 1]]]
    """
    array = np.atleast_2d(np.asarray(sets, dtype=np.int64))
    if array.shape[1] > _LONGEST:
        raise ValueError(f"sets of more than {_LONGEST} items are not counted in part")
    rows = bitmaps.places[array]
    if (rows < 0).any():
        raise ValueError("a set holds an item without a bitmap")
    counts = np.zeros((len(array), len(bitmaps.sizes), array.shape[1] + 1), dtype=np.int64)
    step = max(1, _WORDS // max(bitmaps.bits.shape[1], 1))
    for first in range(0, len(array) if bitmaps.bits.shape[1] else 0, step):
        some = slice(first, first + step)
        _add_held(bitmaps.bits, rows[some], bitmaps.ranges, counts[some])
    counts[:, :, 0] = bitmaps.sizes - counts[:, :, 1:].sum(axis=2)
    return counts


def _add_held(bits: Words, rows: Ints, ranges: Ints, counts: Ints) -> None:
    """Add up the items of each set bit by bit in planes of binary digits, 64 transactions a word."""
    planes: list[Words] = []
    for place in range(rows.shape[1]):
        carry = bits[rows[:, place]]
        for digit, plane in enumerate(planes):
            planes[digit], carry = plane ^ carry, plane & carry
        if (place + 1).bit_count() == 1:  # the count needs one more binary digit
            planes.append(carry)
    there = np.flatnonzero(np.diff(ranges))
    for held in range(1, rows.shape[1] + 1):
        mask = planes[0] if held & 1 else ~planes[0]
        for digit, plane in enumerate(planes[1:], start=1):
            mask = mask & (plane if held >> digit & 1 else ~plane)
        ones = np.bitwise_count(mask)
        counts[:, there, held] = np.add.reduceat(ones, ranges[there], axis=1, dtype=np.int64)
