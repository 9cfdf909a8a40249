"""Building the index over centroids: cut them in two where it lowers the sum of squares most, over and over."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import compiled, inner
from sfumato.condense.centroid_index import WIDTH, Index, move
from sfumato.condense.slots import Store

__all__ = ["build_index"]

_FILL = 13  # centroids at most to a leaf when it is built; the other places are for new ones
_SAMPLE = 32  # centroids of a part that tell where to cut it
_FEWEST = 8  # of the sample that each side of a cut has at least
_TRIED = 8  # coordinates along which cuts are tried, those that vary most


def build_index(store: Store, groups: int) -> Index:
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
def _fill(index: Index, store: Store, order: NDArray[np.int64], parts: NDArray[np.int64]) -> None:
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
def _cut_all(
    mean: NDArray[np.float64], order: NDArray[np.int64], parts: NDArray[np.int64], node_up: NDArray[np.int64]
) -> tuple[int, int]:
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
def _cut(
    mean: NDArray[np.float64],
    order: NDArray[np.int64],
    low: int,
    high: int,
    spots: NDArray[np.int64],
    key: NDArray[np.float64],
    tried: NDArray[np.int64],
) -> int:
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
def _most_varied(
    mean: NDArray[np.float64], spots: NDArray[np.int64], n: int, spread: NDArray[np.float64], tried: NDArray[np.int64]
) -> None:
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
