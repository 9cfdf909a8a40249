"""An exact index over centroids that move and split: the closest eligible one without looking at them all.

Centroids lie in leaves of 16 places, leaves and nodes in the boxes of nodes of 16, up to one root. All 16 distances, to
centroids or to boxes, are taken side by side, each summed over the coordinates in the same order as in brute force.
Rounding is monotone, so the distance to a box is never above that of a centroid inside it, as they are computed: what
is left out cannot be the closest, and the answer is that of brute force to the bit, ties and all.

A centroid that moves stays in its leaf, and the boxes above it widen. A new one goes to a leaf nearby that has room, or
else to loose leaves, which are always looked at. Boxes that have widened too much cost time and never a wrong answer;
then the index is built anew (`is_stale`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import compiled, inner
from sfumato.core.threads import one_blas_thread
from sfumato.methods.condense.slots import Slots

__all__ = [
    "BLOCK",
    "LEAVES",
    "LOOSE",
    "SINCE",
    "WIDTH",
    "CentroidSearch",
    "DistanceCache",
    "Index",
    "build_index",
    "cache_size",
    "closest_cached",
    "closest_in_index",
    "empty_cache",
    "fill_cache",
    "insert",
    "is_stale",
    "lower_counts",
    "move",
    "rewrite_column",
]

WIDTH = 16
"""Places of a leaf and boxes of a node: four or eight at a time fit the machine's registers."""

LEAVES, LOOSE, BUILT, SINCE, LOOKED, ASKED = range(6)


class Index(NamedTuple):
    """The arrays of the index.

    Box j of node n is that of node ``child[n, j]``, or of leaf -1 - ``child[n, j]`` where that is negative; node 0 is
    the root. ``leaf_up`` and ``node_up`` are the node above and the box in it, ``most`` is the highest count in a box.
    ``numbers`` holds the leaves in the tree and the loose ones after them, the groups when it was built, arrivals
    since, and how many nodes and leaves were looked at for how many questions.
    """

    point: Floats
    member: Ints
    used: Ints
    low: Floats
    high: Floats
    most: Ints
    child: Ints
    leaf_up: Ints
    node_up: Ints
    leaf_of: Ints
    place_of: Ints
    numbers: Ints
    apart: Floats
    stack: Ints
    bounds: Floats


@inner
def is_stale(index: Index, groups: int) -> bool:
    """Tell whether the index should be built anew: a quarter more groups, many moves, or no loose leaf left."""
    numbers = index.numbers
    full = numbers[LEAVES] + numbers[LOOSE] >= index.used.shape[0]
    return bool(full or groups > numbers[BUILT] + numbers[BUILT] // 4 + 64 or numbers[SINCE] > 8 * groups + 4096)


@inner
def closest_in_index(index: Index, store: Slots, x: Floats, level: int, stratum: int) -> int:
    """Slot of the closest centroid of a stratum whose group has level - 1 records or more, or -1; lowest id of equals.

    The arrays are taken out of the tuples once: handing on whole tuples costs more than looking at a leaf.
    """
    stack, bounds, apart, most, child = index.stack, index.bounds, index.apart, index.most, index.child
    point, member, used, low, high = index.point, index.member, index.used, index.low, index.high
    count, ids, strata, numbers = store.count, store.ids, store.stratum, index.numbers
    best, nearest, looked = -1, np.inf, 0
    stack[0], bounds[0] = 0, 0.0
    for loose in range(numbers[LOOSE]):  # on top of the root, so that they are looked at first
        stack[loose + 1], bounds[loose + 1] = -1 - numbers[LEAVES] - loose, 0.0
    top = 1 + numbers[LOOSE]
    while top:
        top -= 1
        if bounds[top] > nearest:
            continue
        looked += 1
        if stack[top] < 0:
            leaf = -1 - stack[top]
            _distances(point, leaf, x, apart)
            for j in range(used[leaf]):
                if apart[j] <= nearest:
                    slot = member[leaf, j]
                    if count[slot] < level - 1 or strata[slot] != stratum:
                        continue
                    if apart[j] < nearest or best < 0 or ids[slot] < ids[best]:
                        best, nearest = slot, apart[j]
            continue
        node, base = stack[top], top
        _box_distances(low, high, node, x, apart)
        for j in range(WIDTH):
            bound = apart[j]
            if bound > nearest or most[node, j] < level - 1:
                continue
            at = top  # the nearest box is put on top
            while at > base and bounds[at - 1] < bound:
                stack[at], bounds[at] = stack[at - 1], bounds[at - 1]
                at -= 1
            stack[at], bounds[at] = child[node, j], bound
            top += 1
    numbers[LOOKED] += looked
    numbers[ASKED] += 1
    return best


@inner
def _distances(point: Floats, leaf: int, x: Floats, apart: Floats) -> None:
    """Write the squared distances of a record to the places of a leaf; they are infinite if there is none.

    The loop over places is the inner one and its length is not a constant, which lets the compiler take several at a
    time; four coordinates a turn spare it storing in between. The sums keep the order of the coordinates.
    """
    d, width, t = x.shape[0], apart.shape[0], 0
    for j in range(width):
        apart[j] = 0.0
    while t + 4 <= d:
        x0, x1, x2, x3 = x[t], x[t + 1], x[t + 2], x[t + 3]
        for j in range(width):
            g0, g1 = x0 - point[leaf, t, j], x1 - point[leaf, t + 1, j]
            g2, g3 = x2 - point[leaf, t + 2, j], x3 - point[leaf, t + 3, j]
            apart[j] = (((apart[j] + g0 * g0) + g1 * g1) + g2 * g2) + g3 * g3
        t += 4
    while t < d:
        x0 = x[t]
        for j in range(width):
            g0 = x0 - point[leaf, t, j]
            apart[j] += g0 * g0
        t += 1


@inner
def _box_distances(low: Floats, high: Floats, node: int, x: Floats, apart: Floats) -> None:
    """Write the squared distances of a record to the boxes of a node; they are infinite if there is none."""
    for j in range(apart.shape[0]):
        apart[j] = 0.0
    for t in range(x.shape[0]):
        own = x[t]
        for j in range(apart.shape[0]):
            gap = max(max(low[node, t, j] - own, own - high[node, t, j]), 0.0)
            apart[j] += gap * gap


@inner
def move(index: Index, store: Slots, slot: int) -> None:
    """Bring the place of a centroid up to date, and make the boxes above it hold it and their counts its count."""
    leaf, place, d = index.leaf_of[slot], index.place_of[slot], store.mean.shape[1]
    low, high, most, mean = index.low, index.high, index.most, store.mean
    for t in range(d):
        index.point[leaf, t, place] = mean[slot, t]
    node, j = index.leaf_up[leaf, 0], index.leaf_up[leaf, 1]
    while node >= 0:  # a loose leaf is under no node
        changed = most[node, j] < store.count[slot]
        most[node, j] = max(most[node, j], store.count[slot])
        for t in range(d):
            if not low[node, t, j] <= mean[slot, t]:
                low[node, t, j] = mean[slot, t]
                changed = True
            if not high[node, t, j] >= mean[slot, t]:
                high[node, t, j] = mean[slot, t]
                changed = True
        if not changed:
            return
        node, j = index.node_up[node, 0], index.node_up[node, 1]


@inner
def lower_counts(index: Index, store: Slots, slot: int) -> None:
    """Lower the highest counts above a group that has split."""
    leaf, most = index.leaf_of[slot], 0
    for j in range(index.used[leaf]):
        most = max(most, store.count[index.member[leaf, j]])
    node, j = index.leaf_up[leaf, 0], index.leaf_up[leaf, 1]
    while node >= 0 and index.most[node, j] != most:
        index.most[node, j] = most
        for other in range(WIDTH):
            most = max(most, index.most[node, other])
        node, j = index.node_up[node, 0], index.node_up[node, 1]


@inner
def insert(index: Index, store: Slots, slot: int, beside: int) -> None:
    """Add a centroid near that of another slot: to its leaf, to the closest leaf under the same node, or loose."""
    leaf, numbers = index.leaf_of[beside], index.numbers
    node = index.leaf_up[leaf, 0]
    if index.used[leaf] == WIDTH and node >= 0:
        _box_distances(index.low, index.high, node, store.mean[slot], index.apart)
        closest = np.inf
        for j in range(WIDTH):
            other = -1 - index.child[node, j]
            if other >= 0 and index.used[other] < WIDTH and index.apart[j] < closest:
                leaf, closest = other, index.apart[j]
    if index.used[leaf] == WIDTH:
        leaf = numbers[LEAVES] + max(numbers[LOOSE] - 1, 0)
        if numbers[LOOSE] == 0 or index.used[leaf] == WIDTH:
            leaf = numbers[LEAVES] + numbers[LOOSE]
            numbers[LOOSE] += 1
    index.member[leaf, index.used[leaf]] = slot
    index.leaf_of[slot], index.place_of[slot] = leaf, index.used[leaf]
    index.used[leaf] += 1
    move(index, store, slot)


_FILL = 13  # centroids at most to a leaf when it is built; the other places are for new ones
_SAMPLE = 32  # centroids of a part that tell where to cut it
_FEWEST = 8  # of the sample that each side of a cut has at least
_TRIED = 8  # coordinates along which cuts are tried, those that vary most


def build_index(store: Slots, groups: int) -> Index:
    """Build the index over the centroids of the first groups of a store, with room for as many as it has slots."""
    d, slots = store.mean.shape[1], len(store.ids)
    order = np.arange(groups)
    parts, node_up = np.zeros((groups + 1, 4), dtype=np.int64), np.full((groups + 1, 2), -1)
    leaves, nodes = _cut_all(store.mean, order, parts, node_up) if groups else (0, 1)
    loose = 3 + groups // 4096  # leaves: few beside those that a question looks at anyway
    deepest = WIDTH * nodes + loose + 1
    index = Index(
        np.full((leaves + loose, d, WIDTH), np.inf),
        np.full((leaves + loose, WIDTH), -1),
        np.zeros(leaves + loose, dtype=np.int64),
        np.full((nodes, d, WIDTH), np.inf),
        np.full((nodes, d, WIDTH), -np.inf),  # a box that holds nothing is infinitely far
        np.full((nodes, WIDTH), -1),
        np.zeros((nodes, WIDTH), dtype=np.int64),
        np.full((leaves + loose, 2), -1),
        node_up[:nodes].copy(),
        np.empty(slots, dtype=np.int64),
        np.empty(slots, dtype=np.int64),
        np.array([leaves, 0, groups, 0, 0, 0]),
        np.empty(WIDTH),
        np.empty(deepest, dtype=np.int64),
        np.empty(deepest),
    )
    if groups:
        _fill(index, store, order, parts[:leaves])
    return index


@compiled
def _fill(index: Index, store: Slots, order: Ints, parts: Ints) -> None:
    """Hang nodes and leaves into their boxes and put the centroids into the leaves; their boxes close around them."""
    for node in range(1, index.child.shape[0]):
        index.child[index.node_up[node, 0], index.node_up[node, 1]] = node
    for leaf in range(parts.shape[0]):
        low, high, node, j = parts[leaf, 0], parts[leaf, 1], parts[leaf, 2], parts[leaf, 3]
        index.leaf_up[leaf, 0], index.leaf_up[leaf, 1] = node, j
        index.child[node, j] = -1 - leaf
        index.used[leaf] = high - low
        for place in range(high - low):
            slot = order[low + place]
            index.member[leaf, place] = slot
            index.leaf_of[slot], index.place_of[slot] = leaf, place
            move(index, store, slot)


@compiled
def _cut_all(mean: Floats, order: Ints, parts: Ints, node_up: Ints) -> tuple[int, int]:
    """Cut the centroids into leaves and tell how many leaves and nodes there are.

    ``parts`` gets of each leaf where its centroids begin and end in ``order``, the node above and the box in it;
    ``node_up`` the same of nodes. A node is cut into parts that fill one node each of the next lower height.
    """
    spots, key, tried = np.empty(_SAMPLE, dtype=np.int64), np.empty(_SAMPLE), np.empty(_TRIED, dtype=np.int64)
    low, high = np.empty(WIDTH, dtype=np.int64), np.empty(WIDTH, dtype=np.int64)
    stack = np.empty((order.shape[0] + WIDTH, 4), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, order.shape[0], -1, -1
    top, leaves, nodes = 1, 0, 0
    while top:
        top -= 1
        low[0], high[0] = stack[top, 0], stack[top, 1]
        node_up[nodes, 0], node_up[nodes, 1] = stack[top, 2], stack[top, 3]
        room = _FILL
        while room * WIDTH < high[0] - low[0]:
            room *= WIDTH
        made = 1
        while made < WIDTH:
            largest = 0
            for j in range(1, made):
                if high[j] - low[j] > high[largest] - low[largest]:
                    largest = j
            if high[largest] - low[largest] <= room:
                break
            cut = _cut(mean, order, low[largest], high[largest], spots, key, tried)
            low[made], high[made], high[largest] = cut, high[largest], cut
            made += 1
        for j in range(made):
            if high[j] - low[j] <= _FILL:
                parts[leaves, 0], parts[leaves, 1], parts[leaves, 2], parts[leaves, 3] = low[j], high[j], nodes, j
                leaves += 1
            else:
                stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = low[j], high[j], nodes, j
                top += 1
        nodes += 1
    return leaves, nodes


@inner
def _cut(mean: Floats, order: Ints, low: int, high: int, spots: Ints, key: Floats, tried: Ints) -> int:
    """Reorder a part so that a cut across one coordinate divides it, and tell where; clusters are not cut through."""
    n = min(_SAMPLE, high - low)
    for i in range(n):
        spots[i] = order[low + i * (high - low) // n]
    _most_varied(mean, spots, n, key, tried)
    fewest = max(1, n * _FEWEST // _SAMPLE)
    across, value, gain = -1, 0.0, 0.0
    for coordinate in range(min(_TRIED, mean.shape[1])):
        t = tried[coordinate]
        total = 0.0
        for i in range(n):  # sorted as it is filled
            own, at = mean[spots[i], t], i
            total += own
            while at > 0 and key[at - 1] > own:
                key[at] = key[at - 1]
                at -= 1
            key[at] = own
        left = 0.0
        for i in range(1, n):
            left += key[i - 1]
            if i < fewest or i > n - fewest or key[i - 1] == key[i]:
                continue
            apart = left / i - (total - left) / (n - i)
            if i * (n - i) * apart * apart > gain:
                across, value, gain = t, key[i - 1], i * (n - i) * apart * apart
    middle = (low + high) // 2
    if across < 0:
        return middle
    cut = low
    for place in range(low, high):
        if mean[order[place], across] <= value:
            order[place], order[cut] = order[cut], order[place]
            cut += 1
    return cut if low < cut < high else middle


@inner
def _most_varied(mean: Floats, spots: Ints, n: int, spread: Floats, tried: Ints) -> None:
    """Write the coordinates in which the sample varies most, the widest first."""
    found = 0
    for t in range(mean.shape[1]):
        origin, total, square = mean[spots[0], t], 0.0, 0.0
        for i in range(1, n):
            gap = mean[spots[i], t] - origin
            total += gap
            square += gap * gap
        own = square - total * total / n
        at = found
        while at > 0 and spread[at - 1] < own:
            if at < tried.shape[0]:
                tried[at], spread[at] = tried[at - 1], spread[at - 1]
            at -= 1
        if at < tried.shape[0]:
            tried[at], spread[at] = t, own
        found = min(found + 1, tried.shape[0])


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


_FEWEST_CELLS = 512  # groups below which a cache does not pay
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
        self._caching = groups >= _FEWEST_CELLS and self._index_is_slow(groups)
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
