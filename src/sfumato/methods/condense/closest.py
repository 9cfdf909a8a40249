"""The closest centroid: by the index, or by all distances of a block of arrivals where the index is of no help.

In many dimensions without clusters every centroid is about as far as every other, and no box can be left out. Then the
squared distances of a block of records to all centroids are one matrix product, kept true as centroids move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import inner
from sfumato.core.threads import one_blas_thread
from sfumato.methods.condense.centroid_index import ASKED, LOOKED, WIDTH, Index, build_index
from sfumato.methods.condense.slots import Slots

__all__ = [
    "BLOCK",
    "CentroidSearch",
    "DistanceCache",
    "cache_size",
    "closest_cached",
    "empty_cache",
    "fill_cache",
    "rewrite_column",
]

BLOCK = 64
"""Records in a cache."""

_LANES = 128  # columns that are compared side by side
EPSILON = float(np.finfo(np.float64).eps)


class DistanceCache(NamedTuple):
    """Squared distances less ``own``, the squared length of each record, about a common origin.

    Row r of ``near`` is of record ``first[0] + r``; columns without a group are infinite. ``reach[r]`` bounds what any
    rounding error is a share of. ``terms`` holds -2 c and |c|^2 of each centroid c about ``origin``, for the next one.
    """

    near: Floats
    own: Floats
    reach: Floats
    first: Ints
    lanes: Floats
    terms: Floats
    origin: Floats


def empty_cache() -> DistanceCache:
    """A cache with no records on it."""
    none = np.empty(0)
    return DistanceCache(np.empty((0, 0)), none, none, np.zeros(1, np.int64), np.empty(_LANES), np.empty((0, 0)), none)


def fill_cache(
    before: DistanceCache, store: Slots, groups: int, values: Floats, first: int, last: int, memory: Floats
) -> DistanceCache:
    """Write the distances of records ``first`` to ``last`` to the centroids of all groups, with room for new ones.

    ``before`` is the cache of the records just before, whose terms are still true, or a blank one; ``memory`` is memory
    for at least ``cache_size`` numbers.
    """
    d = values.shape[1]
    origin, terms = before.origin, before.terms
    if len(terms) != len(store.ids):
        origin = store.mean[:groups].mean(axis=0)  # near the data, so that little cancels
        terms = np.empty((len(store.ids), d + 1))
        centred = store.mean[:groups] - origin
        np.multiply(centred, -2.0, out=terms[:groups, :d])
        np.einsum("ij,ij->i", centred, centred, out=terms[:groups, d])
    records = np.ones((last - first, d + 1))
    np.subtract(values[first:last], origin, out=records[:, :d])
    own = np.einsum("ij,ij->i", records[:, :d], records[:, :d])
    columns = _columns(groups, last - first)
    near = memory[: (last - first) * columns].reshape(last - first, columns)
    with one_blas_thread():  # small products: threads mostly wait for one another
        np.matmul(records, terms[:groups].T, out=near[:, :groups])
    near[:, groups:] = np.inf
    reach = (np.sqrt(own) + np.sqrt(terms[:groups, d].max())) ** 2
    return DistanceCache(near, own, reach, np.array([first]), np.empty(_LANES), terms, origin)


def cache_size(groups: int, records: int) -> int:
    """How many numbers a cache holds."""
    return records * _columns(groups, records)


def _columns(groups: int, records: int) -> int:
    return -(-(groups + records) // _LANES) * _LANES


@inner
def closest_cached(cache: DistanceCache, store: Slots, i: int, x: Floats, level: int, stratum: int) -> int:
    """Slot of the closest centroid of a stratum whose group has level - 1 records or more, or -1; lowest id of equals.

    Where the closest of all is too small for the level or of another stratum, the row is gone through once more.
    """
    near, lanes, count, ids, mean, strata = cache.near, cache.lanes, store.count, store.ids, store.mean, store.stratum
    row = i - cache.first[0]
    own, reach = cache.own[row], cache.reach[row]
    least = _least(near, row, lanes)
    best = _best_within(near, row, least, own, reach, lanes, count, ids, strata, mean, x, level, stratum)
    if best >= 0:
        return best
    least = np.inf  # the closest group is no candidate: look at those that are
    for slot in range(near.shape[1]):
        if near[row, slot] < least and count[slot] >= level - 1 and strata[slot] == stratum:
            least = near[row, slot]
    return _best_within(near, row, least, own, reach, lanes, count, ids, strata, mean, x, level, stratum)


@inner
def _least(near: Floats, row: int, lanes: Floats) -> float:
    """Smallest number of a row, and in ``lanes[j]`` that of columns j, j + 128, j + 256 and so on."""
    width = lanes.shape[0]  # not a constant, which lets the compiler take several at a time
    for j in range(width):
        lanes[j] = np.inf
    for base in range(0, near.shape[1], width):
        for j in range(width):
            own, so_far = near[row, base + j], lanes[j]
            lanes[j] = own if own < so_far else so_far
    least = np.inf
    for j in range(width):
        least = min(least, lanes[j])
    return least


@inner
def _best_within(
    near: Floats,
    row: int,
    least: float,
    own: float,
    reach: float,
    lanes: Floats,
    count: Ints,
    ids: Ints,
    strata: Ints,
    mean: Floats,
    x: Floats,
    level: int,
    stratum: int,
) -> int:
    """Compute the distances near the least again and give the slot of the smallest; -1 where the least is of no use."""
    if least == np.inf:
        return -1
    d, width, sure, best, nearest = x.shape[0], lanes.shape[0], False, -1, np.inf
    error = 4.0 * (d + 8) * EPSILON * (reach + max(least + own, 0.0))
    limit = least + 2.0 * error
    for lane in range(width):
        if lanes[lane] > limit:
            continue
        for slot in range(lane, near.shape[1], width):
            if near[row, slot] > limit or count[slot] < level - 1 or strata[slot] != stratum:
                continue
            sure = sure or near[row, slot] == least
            apart = 0.0
            for t in range(d):
                gap = x[t] - mean[slot, t]
                apart += gap * gap
            if apart < nearest or (apart == nearest and ids[slot] < ids[best]):
                best, nearest = slot, apart
    return best if sure else -1


@inner
def rewrite_column(cache: DistanceCache, store: Slots, slot: int, values: Floats, following: int) -> None:
    """Compute a column anew for the records from ``following`` on, after its centroid has moved, and its terms."""
    near, mean, own, first = cache.near, store.mean, cache.own, cache.first[0]
    d, square = mean.shape[1], 0.0
    for t in range(d):
        centred = mean[slot, t] - cache.origin[t]
        cache.terms[slot, t] = -2.0 * centred
        square += centred * centred
    cache.terms[slot, d] = square
    for row in range(following - first, near.shape[0]):
        apart = 0.0
        for t in range(d):
            gap = values[first + row, t] - mean[slot, t]
            apart += gap * gap
        near[row, slot] = apart - own[row]


_FEWEST = 512  # groups below which a cache does not pay
_SHARE = 0.2  # places looked at for each group, above which a cache costs less than the index; measured
_WORTH = 200_000  # numbers that the index must look at in place of a cache, or the cache costs more; measured
_STRETCH = 1024  # records between two looks at what the index costs
_TRIAL, _TRIAL_EVERY = 32, 4096  # records by which the index is tried again, and how often


class CentroidSearch:
    """The index over a store's centroids, and what it has cost of late. Only speed depends on it."""

    def __init__(self, store: Slots) -> None:
        self.index: Index = build_index(store, 0)
        self._caching = False  # whether caches are used at present
        self._cached = 0  # records since the index was tried last
        self._looked = 0.0  # centroids that the index looked at for a record
        self._cache, self._memory = empty_cache(), np.empty(0)

    def renew(self, store: Slots, groups: int) -> None:
        """Build the index anew, where groups have moved and split or the store has grown."""
        kept = self.index.numbers[[LOOKED, ASKED]]
        self.index = build_index(store, groups)
        self.index.numbers[[LOOKED, ASKED]] = kept
        self._cache = empty_cache()

    def next_block(self, store: Slots, groups: int, values: Floats, first: int) -> tuple[int, DistanceCache]:
        """Tell how far to go by the same means, and give the cache, which is blank where the index is to be used."""
        self._caching = groups >= _FEWEST and self._index_is_slow(groups)
        left = values[first:]
        if not self._caching or left.size * self._looked < _WORTH:  # few records do not fill a cache
            return self._by_index(min(len(values), first + _STRETCH))
        if self._cached >= _TRIAL_EVERY:
            self._cached = 0
            self.index.numbers[[LOOKED, ASKED]] = 0
            return self._by_index(min(len(values), first + _TRIAL))
        last = min(len(values), first + BLOCK)
        self._cached += last - first
        if len(self._memory) < cache_size(groups, last - first):
            self._memory = np.empty(2 * cache_size(groups, BLOCK))
        self._cache = fill_cache(self._cache, store, groups, values, first, last, self._memory)
        return last, self._cache

    def _by_index(self, last: int) -> tuple[int, DistanceCache]:
        if len(self._cache.near):
            self._cache = empty_cache()  # what it says of the centroids will no longer be true
        return last, self._cache

    def _index_is_slow(self, groups: int) -> bool:
        """Judge by the questions since the last judgement; with too few of them the last one stands."""
        looked, asked = (int(number) for number in self.index.numbers[[LOOKED, ASKED]])
        if asked < _TRIAL:
            return self._caching
        self.index.numbers[[LOOKED, ASKED]] = 0
        self._looked = looked * WIDTH / asked
        return self._looked > _SHARE * groups
