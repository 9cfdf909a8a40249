"""Local search inside a leaf of neighbouring groups: moves until none helps, then kicks and moves again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import inner, whole
from sfumato.condense.moves import RELOCATE, SWAP, Leaf, best_move, dissolve, refresh, relocate, split, swap

__all__ = ["below", "descend", "iterate", "mix"]

_SETTLING = 20  # passes after a kick: it counts only once it has settled


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
def iterate(
    leaf: Leaf,
    passes: int,
    tries: int,
    lowest: int,
    state: NDArray[np.uint64],
    members: NDArray[np.int64],
    target: NDArray[np.int64],
    key: NDArray[np.float64],
    row: NDArray[np.float64],
) -> float:
    """Descend, then kick the leaf and descend again, some tries long; keep what is no worse.

    Returns by how much the sum of squares fell.
    """
    n = leaf.label.shape[0]
    kept = np.empty(n, dtype=np.int64)
    first = 0.0
    for i in range(n):
        first += leaf.own[i]
        kept[i] = leaf.label[i]
    best = np.inf
    for attempt in range(tries + 1):
        if attempt > 0:  # a kick: dissolve a group whatever it costs
            dissolve(leaf, leaf.label[below(state, n)], -np.inf, members, target)
        descend(leaf, passes if attempt == 0 else _SETTLING, lowest, members, target, key, row)
        now = 0.0
        for i in range(n):
            now += leaf.own[i]
        if now <= best:
            best = now
            for i in range(n):
                kept[i] = leaf.label[i]
        else:
            _restore(leaf, kept)
    return first - best


@inner
def _restore(leaf: Leaf, kept: NDArray[np.int64]) -> None:
    """Give records their earlier labels and compute anew the groups that differ."""
    touched = np.empty(leaf.size.shape[0], dtype=np.bool_)
    for group in range(touched.shape[0]):
        touched[group] = False
    for i in range(kept.shape[0]):
        if leaf.label[i] != kept[i]:
            touched[leaf.label[i]] = True
            touched[kept[i]] = True
            leaf.label[i] = kept[i]
    for group in range(touched.shape[0]):
        if touched[group]:
            refresh(leaf, group)
