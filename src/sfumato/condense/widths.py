"""Local search for groups of different width: tight where records are dense, wide where they are scattered.

The sum of squares asks for groups of about one width and so takes apart a dense region to fill wide groups around it.
Taken as the likelihood of records in round groups, each with a width of its own, the sum over groups of
n * log(sum of squares / n) leaves dense regions whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import inner
from sfumato.condense.leaf import Leaf, highest_but
from sfumato.condense.moves import NONE, RELOCATE, SWAP, relocate, swap

__all__ = ["fit_widths"]

_LEAST = 1e-9  # a gain in n * log(width) below this may be rounding


@inner
def _cost(inside: float, size: float, floor: float) -> float:
    """Give n * log(variance) of a group; the floor keeps twins from being worth any price."""
    return float(size * np.log(max(inside, 0.0) / size + floor))


@inner
def fit_widths(leaf: Leaf, passes: int, lowest: int, floor: float) -> float:
    """Take the best move of each record until none helps or passes are spent; give by how much the cost fell."""
    slots = leaf.size.shape[0]
    inside, cost = np.empty(slots), np.empty(slots)
    _sum_up(leaf, inside, cost, floor)
    total = 0.0
    for _ in range(passes):
        gained = 0.0
        for i in range(leaf.label.shape[0]):
            gain, kind, where = _best_move(leaf, inside, cost, i, lowest, floor)
            if kind == RELOCATE:
                relocate(leaf, i, where)
            elif kind == SWAP:
                swap(leaf, i, where)
            if kind != NONE:
                _sum_up(leaf, inside, cost, floor)
            gained += gain
        total += gained
        if gained <= 0.0:
            break
    return total


@inner
def _sum_up(leaf: Leaf, inside: NDArray[np.float64], cost: NDArray[np.float64], floor: float) -> None:
    """Sum the squares inside each group, and give the cost of each."""
    for group in range(inside.shape[0]):
        inside[group] = 0.0
    for i in range(leaf.label.shape[0]):
        inside[leaf.label[i]] += leaf.own[i]
    for group in range(inside.shape[0]):
        cost[group] = _cost(inside[group], leaf.size[group], floor) if leaf.size[group] > 0 else 0.0


@inner
def _best_move(
    leaf: Leaf, inside: NDArray[np.float64], cost: NDArray[np.float64], i: int, lowest: int, floor: float
) -> tuple[float, int, int]:
    """Find what lowers the cost most: nothing, another group for record i, or the place of a later record.

    A record that takes the place of another in a group of size n changes its sum of squares by the difference of their
    squared distances to the centre, less |xi-xj|^2 / n, which is at most 2 * (|xi-c|^2 + |xj-c|^2) / n. That, and
    log(y) >= 1 - 1/y, reject most pairs without touching their coordinates or taking a logarithm.
    """
    a = leaf.label[i]
    here, size, level = leaf.own[i], leaf.size[a], leaf.level[i]
    best, kind, target = _LEAST * size, NONE, -1
    free = size > leaf.bar[a]
    if not free and size > lowest and level == leaf.bar[a]:
        free = size > highest_but(leaf, a, i)
    if free and size > 1:
        left = _cost(inside[a] - here * size / (size - 1.0), size - 1.0, floor)
        for b in range(leaf.size.shape[0]):
            other = leaf.size[b]
            if b != a and other > 0 and other + 1 >= level:
                joined = _cost(inside[b] + leaf.distance[b, i] * other / (other + 1.0), other + 1.0, floor)
                gain = cost[a] + cost[b] - left - joined
                if gain > best:
                    best, kind, target = gain, RELOCATE, b
    width = inside[a] + size * floor
    for j in range(i + 1, leaf.label.shape[0]):
        b = leaf.label[j]
        other = leaf.size[b]
        if b == a or other < level or size < leaf.level[j]:
            continue
        one = inside[a] - here + leaf.distance[a, j]
        two = inside[b] - leaf.own[j] + leaf.distance[b, i]
        most = 2.0 * min(here + leaf.distance[a, j], leaf.own[j] + leaf.distance[b, i])
        narrow = max(one - most / size, 0.0) + size * floor
        slim = max(two - most / other, 0.0) + other * floor
        if size * (width / narrow - 1.0) + other * ((inside[b] + other * floor) / slim - 1.0) <= best:
            continue
        apart = 0.0
        for t in range(leaf.values.shape[1]):
            gap = leaf.values[i, t] - leaf.values[j, t]
            apart += gap * gap
        after = _cost(one - apart / size, size, floor) + _cost(two - apart / other, other, floor)
        gain = cost[a] + cost[b] - after
        if gain > best:
            best, kind, target = gain, SWAP, j
    return (best if kind != NONE else 0.0), kind, target
