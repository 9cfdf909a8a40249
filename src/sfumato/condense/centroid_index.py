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
from numpy.typing import NDArray

from sfumato.compiled import inner
from sfumato.condense.slots import Store

__all__ = [
    "ASKED",
    "BUILT",
    "LEAVES",
    "LOOKED",
    "LOOSE",
    "SINCE",
    "WIDTH",
    "Index",
    "closest_in_index",
    "insert",
    "is_stale",
    "move",
    "settle_counts",
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

    point: NDArray[np.float64]
    member: NDArray[np.int64]
    used: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    most: NDArray[np.int64]
    child: NDArray[np.int64]
    leaf_up: NDArray[np.int64]
    node_up: NDArray[np.int64]
    leaf_of: NDArray[np.int64]
    place_of: NDArray[np.int64]
    numbers: NDArray[np.int64]
    apart: NDArray[np.float64]
    stack: NDArray[np.int64]
    bounds: NDArray[np.float64]


@inner
def is_stale(index: Index, groups: int) -> bool:
    """Tell whether the index should be built anew: a quarter more groups, many moves, or no loose leaf left."""
    numbers = index.numbers
    full = numbers[LEAVES] + numbers[LOOSE] >= index.used.shape[0]
    return bool(full or groups > numbers[BUILT] + numbers[BUILT] // 4 + 64 or numbers[SINCE] > 8 * groups + 4096)


@inner
def closest_in_index(index: Index, store: Store, x: NDArray[np.float64], level: int) -> int:
    """Give the slot of the closest centroid whose group has at least level - 1 records, or -1; the lowest id of equals.

    The arrays are taken out of the tuples once: handing on whole tuples costs more than looking at a leaf.
    """
    stack, bounds, apart, most, child = index.stack, index.bounds, index.apart, index.most, index.child
    point, member, used, low, high = index.point, index.member, index.used, index.low, index.high
    count, ids, numbers = store.count, store.ids, index.numbers
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
                    if count[slot] >= level - 1 and (apart[j] < nearest or best < 0 or ids[slot] < ids[best]):
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
def _distances(point: NDArray[np.float64], leaf: int, x: NDArray[np.float64], apart: NDArray[np.float64]) -> None:
    """Write the squared distances of a record to the places of a leaf; they are infinite where there is none.

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
def _box_distances(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    node: int,
    x: NDArray[np.float64],
    apart: NDArray[np.float64],
) -> None:
    """Write the squared distances of a record to the boxes of a node; they are infinite where there is none."""
    for j in range(apart.shape[0]):
        apart[j] = 0.0
    for t in range(x.shape[0]):
        own = x[t]
        for j in range(apart.shape[0]):
            gap = max(max(low[node, t, j] - own, own - high[node, t, j]), 0.0)
            apart[j] += gap * gap


@inner
def move(index: Index, store: Store, slot: int) -> None:
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
def settle_counts(index: Index, store: Store, slot: int) -> None:
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
def insert(index: Index, store: Store, slot: int, beside: int) -> None:
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
