"""Every set of items that enough transactions hold, depth first over bitmaps (Zaki 2000), and the rules between items.

The transactions of each item, with the more frequent items in them, make a small table of their own, whose columns are
bitmaps: as FP-growth it looks only at transactions that matter, and as Eclat it counts a set by one AND a word. An item
that all transactions of a set hold is not tried with the larger sets: these are the same with it, and are written down
so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import compiled, fixed, inner, whole
from sfumato.core.errors import OptionError
from sfumato.core.itemsets import Transactions

__all__ = [
    "MOST_SETS",
    "FoundRules",
    "Itemsets",
    "frequent_itemsets",
    "mix",
    "rules_of",
]

MOST_SETS = 20_000_000
"""Itemsets that are held at once; more are refused."""


@intrinsic
def _popcount(_context: Any, _word: Any) -> Any:
    """How many bits of a word are set."""

    def generate(_: Any, builder: Any, __: Any, words: Any) -> Any:
        return builder.ctpop(words[0])

    return types.uint64(types.uint64), generate


popcount = cast("Callable[[np.uint64], np.uint64]", _popcount)
"""How many bits of a word are set, inside a kernel."""


@dataclass(frozen=True, eq=False, repr=False)
class Itemsets:
    """Sets of items, each in rising order, and how many transactions hold each.

    Parameters
    ----------
    items : array of int32
        Of all sets, one after the other.
    starts : array of int64
    counts : array of int64
    """

    items: NDArray[np.int32]
    starts: Ints
    counts: Ints

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        return f"Itemsets({len(self)})"

    @property
    def lengths(self) -> Ints:
        """How many items each set has."""
        return np.diff(self.starts)

    def of_length(self, length: int) -> tuple[Ints, Ints]:
        """Itemsets of the given size as rows of a matrix, and their positions."""
        places = np.flatnonzero(self.lengths == length)
        return self.items[self.starts[places][:, None] + np.arange(length)].astype(np.int64), places

    def as_tuples(self) -> list[tuple[int, ...]]:
        """The sets as plain tuples."""
        flat, starts = self.items.tolist(), self.starts.tolist()
        return [tuple(flat[first:last]) for first, last in pairwise(starts)]

    def keys(self) -> NDArray[np.uint64]:
        """One number for each set, the same for equal sets and as good as never for others.

        Without an item it is that XOR the item's own.
        """
        mixed, starts = mix(self.items), self.starts
        if not len(mixed):
            return np.zeros(len(starts) - 1, dtype=np.uint64)
        whole = np.bitwise_xor.reduceat(mixed, np.minimum(starts[:-1], len(mixed) - 1))
        return np.where(np.diff(starts) > 0, whole, np.uint64(0))


def mix(items: NDArray[Any]) -> NDArray[np.uint64]:
    """A number of 64 bits for each item, spread out so that sums of few of them do not meet (splitmix64)."""
    with np.errstate(over="ignore"):
        word = (items.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E37_79B9_7F4A_7C15)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return np.asarray(word ^ (word >> np.uint64(31)))


def frequent_itemsets(transactions: Transactions, min_count: int, *, longest: int | None = None) -> Itemsets:
    """All itemsets with at least the given support, of at most ``longest`` items.

    Raises
    ------
    OptionError
        If there are more than `MOST_SETS`.

    Examples
    --------
    >>> found = frequent_itemsets(Transactions.of([[0, 1, 2], [0, 1], [0]]), 2)
    >>> sorted(zip(found.as_tuples(), found.counts.tolist()))
    [((0,), 3), ((0, 1), 2), ((1,), 2)]
    """
    if min_count < 1:
        raise ValueError("a frequent set is held by at least one transaction")
    counts = transactions.counts
    kept = np.flatnonzero(counts >= min_count)
    kept = kept[np.argsort(counts[kept], kind="stable")]  # the rarest first: its table is the smallest
    codes = np.full(transactions.width, -1, dtype=np.int32)
    codes[kept] = np.arange(len(kept), dtype=np.int32)
    first = fixed(np.concatenate([[0], np.cumsum(counts[kept])]), np.int64)
    items, starts, occurrences = _recoded(
        fixed(transactions.items, np.int32), fixed(transactions.starts, np.int64), fixed(codes, np.int32), first
    )
    limit = int(np.diff(starts).max(initial=0)) if longest is None else longest
    flat, lengths, found, all_found = _mine(
        items, starts, occurrences, first, fixed(kept, np.int32), min_count, max(limit, 1), MOST_SETS
    )
    if not all_found:
        raise OptionError(
            f"more than {MOST_SETS:,} sets of items are frequent; raise --min-support or bound them with --longest"
        )
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    return Itemsets(flat, ends, found)


@compiled
def _recoded(items: Any, starts: Any, codes: Any, first: Any) -> tuple[Any, Any, Any]:
    """Transactions of frequent items alone by their codes, in rising order; and the transactions of each code.

    ``first`` is where the transactions of each code begin. Codes are handed to their transactions one after the other,
    so that nothing is sorted.
    """
    occurrences, cursor = np.empty(first[-1], dtype=np.int32), first[:-1].copy()
    ends = np.zeros(len(starts), dtype=np.int64)
    for transaction in range(len(starts) - 1):
        used = ends[transaction]
        for entry in range(starts[transaction], starts[transaction + 1]):
            code = codes[items[entry]]
            if code >= 0:
                occurrences[cursor[code]] = transaction
                cursor[code] += 1
                used += 1
        ends[transaction + 1] = used
    held, free = np.empty(first[-1], dtype=np.int32), ends[:-1].copy()
    for code in range(len(first) - 1):
        for place in range(first[code], first[code + 1]):
            transaction = occurrences[place]
            held[free[transaction]] = code
            free[transaction] += 1
    return held, ends, occurrences


@inner
def _grown(array: Any, needed: int) -> Any:
    """The array, or twice as long a one with the same head where it is too short."""
    if needed <= len(array):
        return array
    longer = np.empty(max(needed, 2 * len(array)), dtype=array.dtype)
    for place in range(len(array)):  # a slice would compile what to say where lengths differ
        longer[place] = array[place]
    return longer


class _Bitmaps(NamedTuple):
    """Bitmaps one after the other, the item of each, and how many transactions have it."""

    pool: Any
    names: Any
    totals: Any


class _SetStore(NamedTuple):
    """Items, lengths and counts of the sets that were found; how many items there are, and how many sets."""

    flat: Any
    lengths: Any
    found: Any
    used: int
    sets: int


@inner
def _opened(
    items: Any, starts: Any, occurrences: Any, item: int, least: int, partners: Any, place: Any, bitmaps: _Bitmaps
) -> tuple[_Bitmaps, int]:
    """Transactions of an item as bitmaps of the later items that are frequent among them, and how many these are."""
    pool, names, totals = bitmaps.pool, bitmaps.names, bitmaps.totals
    partners[item:] = 0
    for transaction in occurrences:
        last = starts[transaction + 1]
        while last > starts[transaction] and items[last - 1] > item:
            last -= 1
            partners[items[last]] += 1
    words, rows = (len(occurrences) + 63) >> 6, 0
    for other in range(item + 1, len(partners)):
        place[other] = -1
        if partners[other] >= least:
            names, totals = _grown(names, rows + 1), _grown(totals, rows + 1)
            place[other], names[rows], totals[rows] = rows, other, partners[other]
            rows += 1
    pool = _grown(pool, rows * words)
    pool[: rows * words] = np.uint64(0)
    for bit, transaction in enumerate(occurrences if rows else occurrences[:0]):
        last = starts[transaction + 1]
        while last > starts[transaction] and items[last - 1] > item:
            last -= 1
            row = place[items[last]]
            if row >= 0:
                pool[row * words + (bit >> 6)] |= np.uint64(1) << np.uint64(bit & 63)
    return _Bitmaps(pool, names, totals), rows


@inner
def _written(
    written: _SetStore, set_of: Any, size: int, count: int, free: Any, many: int, longest: int, most: int
) -> _SetStore:
    """Write down a set, and the same with every choice of the free items, which all of its transactions hold."""
    used, sets = written.used, written.sets
    flat = _grown(written.flat, used + size)
    lengths, found = _grown(written.lengths, sets + 1), _grown(written.found, sets + 1)
    for at in range(size):
        name, place = set_of[at], used + at
        while place > used and flat[place - 1] > name:
            flat[place] = flat[place - 1]
            place -= 1
        flat[place] = name
    lengths[sets], found[sets] = size, count
    first, begin = sets, used
    used, sets = used + size, sets + 1
    for extra in range(many):
        name, last, source = free[extra], sets, begin
        flat = _grown(flat, used + (used - begin) + (last - first))
        lengths, found = _grown(lengths, last + (last - first)), _grown(found, last + (last - first))
        for one in range(first, last):
            held = lengths[one]
            source += held
            if held >= longest:
                continue
            if sets >= most:
                return _SetStore(flat, lengths, found, used, sets + 1)
            at, place = source - 1, used + held
            while at >= source - held and flat[at] > name:
                flat[place] = flat[at]
                at -= 1
                place -= 1
            flat[place] = name
            while at >= source - held:
                place -= 1
                flat[place] = flat[at]
                at -= 1
            lengths[sets], found[sets] = held + 1, count
            used, sets = used + held + 1, sets + 1
    return _SetStore(flat, lengths, found, used, sets)


@compiled
def _mine(
    items: Any, starts: Any, occurrences: Any, first: Any, kept: Any, least: int, longest: int, most: int
) -> tuple[Any, Any, Any, bool]:
    """Sets of the items that codes stand for, their lengths and counts; and whether there are no more than wanted."""
    width = len(first) - 1
    flat, lengths = np.empty(1 << 12, dtype=np.int32), np.empty(1 << 10, dtype=np.int64)
    written = _SetStore(flat, lengths, np.empty(1 << 10, dtype=np.int64), whole(0), whole(0))
    pool, names = np.empty(1 << 12, dtype=np.uint64), np.empty(1 << 8, dtype=np.int32)
    totals = np.empty(1 << 8, dtype=np.int64)
    partners, place = np.zeros(width, dtype=np.int64), np.full(width, -1, dtype=np.int64)
    base, length = np.zeros(longest + 2, dtype=np.int64), np.zeros(longest + 2, dtype=np.int64)
    cursor, prefix = np.zeros(longest + 2, dtype=np.int64), np.zeros(longest + 2, dtype=np.int32)
    free, many = np.zeros(width + 1, dtype=np.int32), np.zeros(longest + 2, dtype=np.int64)
    for item in range(width):
        support, rows = first[item + 1] - first[item], 0
        if longest > 1:
            own, bitmaps = occurrences[first[item] : first[item + 1]], _Bitmaps(pool, names, totals)
            bitmaps, rows = _opened(items, starts, own, item, least, partners, place, bitmaps)
            pool, names, totals = bitmaps.pool, bitmaps.names, bitmaps.totals
        words = (support + 63) >> 6
        prefix[0], many[1], left = kept[item], 0, 0
        for row in range(rows):  # what all of its transactions hold is free, and the others move up
            if totals[row] == support:
                free[many[1]] = kept[names[row]]
                many[1] += 1
                continue
            if left < row:
                names[left], totals[left] = names[row], totals[row]
                for word in range(words):
                    pool[left * words + word] = pool[row * words + word]
            left += 1
        written = _written(written, prefix, whole(1), support, free, many[1], longest, most)
        if written.sets > most:
            return flat[:0], lengths[:0], lengths[:0], False
        depth = 1 if left > 0 else 0
        base[1], length[1], cursor[1] = 0, left, 0
        while depth > 0:
            if cursor[depth] == length[depth]:
                depth -= 1
                continue
            chosen = base[depth] + cursor[depth]
            cursor[depth] += 1
            prefix[depth] = kept[names[chosen]]
            stop, new, all_free = base[depth] + length[depth], base[depth] + length[depth], many[depth]
            if depth + 1 < longest and chosen + 1 < stop:
                pool = _grown(pool, (2 * stop - chosen) * words)
                names, totals = _grown(names, 2 * stop - chosen), _grown(totals, 2 * stop - chosen)
                for other in range(chosen + 1, stop):
                    both = np.uint64(0)
                    for word in range(words):
                        joined = pool[chosen * words + word] & pool[other * words + word]
                        pool[new * words + word] = joined
                        both += popcount(joined)
                    if both == np.uint64(totals[chosen]):
                        free[all_free] = kept[names[other]]
                        all_free += 1
                    elif both >= np.uint64(least):
                        names[new], totals[new] = names[other], both
                        new += 1
            written = _written(written, prefix, depth + 1, totals[chosen], free, all_free, longest, most)
            if written.sets > most:
                return flat[:0], lengths[:0], lengths[:0], False
            if new > stop:
                depth += 1
                base[depth], length[depth], cursor[depth], many[depth] = stop, new - stop, 0, all_free
    return written.flat[: written.used], written.lengths[: written.sets], written.found[: written.sets], True


_ROUNDING = 1e-12


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

    sets: Ints
    right: Ints
    confidence: Floats
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
    kept = confidence >= min_confidence - _ROUNDING
    with np.errstate(over="ignore"):
        named = keys[whole[kept]] + mix(right[kept] + (1 << 40))
    return FoundRules(whole[kept], right[kept], confidence[kept], named)
