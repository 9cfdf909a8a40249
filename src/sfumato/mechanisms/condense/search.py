"""Local search inside a leaf of neighbouring groups: moves until none helps, then kicks and moves again.

A kick dissolves one group or two whatever it costs. It is judged only after the moves have settled, against groups
that had settled too: compared with groups that could still improve, a kick that only did harm would look like a gain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import inner, whole
from sfumato.mechanisms.condense.leaf import Leaf, highest_but, refresh
from sfumato.mechanisms.condense.moves import NONE, RELOCATE, SWAP, best_move, dissolve, relocate, split, swap

__all__ = ["below", "descend", "fit_widths", "kick", "mix"]

_SETTLING = 20  # passes before the first kick and after each: nothing counts until it has settled
_WORTH = 1e-10  # a kick must lower the sum of squares by this share, or it may be rounding


class _Kept(NamedTuple):
    """The groups to go back to: labels, and when what was changed and looked at, as in `Leaf`."""

    label: NDArray[np.int64]
    changed: NDArray[np.int64]
    looked: NDArray[np.int64]
    tried: NDArray[np.int64]


@inner
def mix(state: NDArray[np.uint64]) -> np.uint64:
    """Advance a small generator (splitmix64): kicks need variety, not secrecy."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(z ^ (z >> np.uint64(31)))


@inner
def below(state: NDArray[np.uint64], n: int) -> int:
    """Draw a number from 0 to n-1."""
    return whole(mix(state) % np.uint64(n))


@inner
def descend(
    leaf: Leaf,
    passes: int,
    lowest: int,
    members: NDArray[np.int64],
    target: NDArray[np.int64],
    key: NDArray[np.float64],
    row: NDArray[np.float64],
) -> float:
    """Take the best move of each record, then dissolve and split groups, until nothing helps or passes are spent.

    Returns by how much the sum of squares fell.
    """
    total = 0.0
    for _ in range(passes):
        gained = 0.0
        for i in range(leaf.label.shape[0]):
            gain, kind, where = best_move(leaf, i, lowest, row)
            if kind == RELOCATE:
                relocate(leaf, i, where)
            elif kind == SWAP:
                swap(leaf, i, where)
            gained += gain
        for a in range(leaf.size.shape[0]):
            if leaf.size[a] > 0:
                gained += dissolve(leaf, a, 0.0, members, target)
        for a in range(leaf.size.shape[0]):
            if leaf.size[a] > 0:
                gained += split(leaf, a, lowest, members, key)
        total += gained
        if gained <= 0.0:
            break
    return total


@inner
def kick(
    leaf: Leaf,
    most: int,
    tries: int,
    lowest: int,
    state: NDArray[np.uint64],
    members: NDArray[np.int64],
    target: NDArray[np.int64],
    key: NDArray[np.float64],
    row: NDArray[np.float64],
) -> float:
    """Settle, then dissolve one group after the other and settle again, keeping what is better.

    The first kick of a group dissolves it alone, further ones also a random one of those that took its records. A group
    that was kicked in vain in all its tries is not kicked again before it has changed, so that a leaf is left once
    kicks no longer help, or after the most kicks that it affords. Returns by how much the sum of squares fell.
    """
    slots = leaf.size.shape[0]
    first = _sum_of_squares(leaf)
    descend(leaf, whole(_SETTLING), lowest, members, target, key, row)
    best = _sum_of_squares(leaf)
    kept = _Kept(leaf.label.copy(), leaf.changed.copy(), leaf.looked.copy(), leaf.tried.copy())
    in_vain = np.zeros(slots, dtype=np.int64)
    for _ in range(most):
        group = _next_kicked(leaf, in_vain, tries, below(state, slots))
        if group < 0:
            break
        in_vain[group] += 1
        held = leaf.size[group]
        dissolve(leaf, group, -np.inf, members, target)
        if in_vain[group] > 1 and leaf.size[group] == 0:
            dissolve(leaf, target[below(state, held)], -np.inf, members, target)
        descend(leaf, whole(_SETTLING), lowest, members, target, key, row)
        now = _sum_of_squares(leaf)
        if now < best - _WORTH * best:
            best = now
            _keep(leaf, kept, in_vain)
        else:
            _restore(leaf, kept)
    return first - best


@inner
def _sum_of_squares(leaf: Leaf) -> float:
    total = 0.0
    for i in range(leaf.own.shape[0]):
        total += leaf.own[i]
    return total


@inner
def _next_kicked(leaf: Leaf, in_vain: NDArray[np.int64], tries: int, start: int) -> int:
    """Find the first group from a place on that has tries left; -1 where there is none."""
    slots = leaf.size.shape[0]
    for step in range(slots):
        group = (start + step) % slots
        if leaf.size[group] > 0 and in_vain[group] < tries:
            return int(group)
    return -1


@inner
def _keep(leaf: Leaf, kept: _Kept, in_vain: NDArray[np.int64]) -> None:
    """Make the present groups the kept ones; those that differ may be kicked again."""
    for i in range(kept.label.shape[0]):
        if kept.label[i] != leaf.label[i]:
            in_vain[kept.label[i]] = 0
            in_vain[leaf.label[i]] = 0
        kept.label[i] = leaf.label[i]
        kept.looked[i] = leaf.looked[i]
    for group in range(kept.changed.shape[0]):
        kept.changed[group] = leaf.changed[group]
        kept.tried[group] = leaf.tried[group]


@inner
def _restore(leaf: Leaf, kept: _Kept) -> None:
    """Put records back under their earlier labels and compute the groups that differ; times are what they were."""
    touched = np.zeros(leaf.size.shape[0], dtype=np.bool_)
    for i in range(kept.label.shape[0]):
        if leaf.label[i] != kept.label[i]:
            touched[leaf.label[i]] = True
            touched[kept.label[i]] = True
            leaf.label[i] = kept.label[i]
        leaf.looked[i] = kept.looked[i]
    for group in range(touched.shape[0]):
        leaf.changed[group] = kept.changed[group]
        leaf.tried[group] = kept.tried[group]
        if touched[group]:
            refresh(leaf, group)


_LEAST = 1e-9  # a gain in n * log(width) below this may be rounding


@inner
def _cost(inside: float, size: float, floor: float) -> float:
    """Size times log(variance) of a group; the floor keeps twins from being worth any price."""
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
