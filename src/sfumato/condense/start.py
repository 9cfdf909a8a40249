"""The first groups of a leaf: from its extremes inwards, each as large as the highest level inside."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import inner, whole
from sfumato.condense.trees import around, select

__all__ = ["start_groups"]


@inner
def start_groups(values: NDArray[np.float64], level: NDArray[np.int64], label: NDArray[np.int64]) -> int:
    """Group the records of a leaf as MDAV does, with a level for each; returns how many groups there are.

    The record farthest from the mean, and then the one farthest from that record, take their nearest neighbours until
    the group is as large as the highest level inside. Where fewer than twice the highest level are left, the record of
    that level takes as many as it needs. What is left at the end joins the nearest group that is large
    enough; where none is, groups are taken in until the rest is enough itself.
    """
    n = values.shape[0]
    left, key = np.empty(n, dtype=np.int64), np.empty(n)
    for i in range(n):
        left[i] = i
        label[i] = -1
    groups, done, last = 0, whole(0), whole(-1)
    while done < n:
        highest, who = whole(0), whole(-1)
        for place in range(done, n):
            if level[left[place]] > highest:
                highest, who = level[left[place]], left[place]
        if n - done < highest:
            break
        seed = who
        if n - done >= 2 * highest:
            seed = _farthest(values, left, done, last)
            end = _gather(values, level, left, done, key, seed, highest)
        else:
            end = around(values, level, left, key, done, whole(n), who)
        for place in range(done, end):
            label[left[place]] = groups
        done = end
        groups += 1
        last = seed if last < 0 else whole(-1)
    for place in range(done, n):
        _join(values, level, label, left[place], groups)
    return _gather_unplaced(level, label, groups)


@inner
def _farthest(values: NDArray[np.float64], left: NDArray[np.int64], done: int, last: int) -> int:
    """Find the record farthest from the mean of those left, or from the last seed."""
    n, d = values.shape
    centre = np.empty(d)
    for t in range(d):
        centre[t] = values[last, t] if last >= 0 else 0.0
    if last < 0:
        for place in range(done, n):
            for t in range(d):
                centre[t] += values[left[place], t] / (n - done)
    chosen, widest = left[done], -1.0
    for place in range(done, n):
        apart = 0.0
        for t in range(d):
            gap = values[left[place], t] - centre[t]
            apart += gap * gap
        if apart > widest or (apart == widest and left[place] < chosen):
            chosen, widest = left[place], apart
    return whole(chosen)


@inner
def _gather(
    values: NDArray[np.float64],
    level: NDArray[np.int64],
    left: NDArray[np.int64],
    done: int,
    key: NDArray[np.float64],
    seed: int,
    highest: int,
) -> int:
    """Bring a seed and its nearest records next, until they are as many as the highest level among them."""
    n = values.shape[0]
    for place in range(done, n):
        apart = 0.0
        for t in range(values.shape[1]):
            gap = values[left[place], t] - values[seed, t]
            apart += gap * gap
        key[left[place]] = apart
    key[seed] = -1.0
    select(left, key, done, n, done + highest - 1)
    lowest = highest
    for place in range(done, done + highest):
        lowest = min(lowest, level[left[place]])
    if lowest == highest:  # all are needed: their order does not matter
        return done + highest
    for place in range(done + 1, done + highest):
        record, spot = left[place], place
        while spot > done and key[left[spot - 1]] > key[record]:
            left[spot] = left[spot - 1]
            spot -= 1
        left[spot] = record
    bar = 0
    for place in range(done, done + highest):
        bar = max(bar, level[left[place]])
        if place + 1 - done >= bar:
            return place + 1
    return done + highest


@inner
def _join(
    values: NDArray[np.float64], level: NDArray[np.int64], label: NDArray[np.int64], record: int, groups: int
) -> None:
    """Put a record into the group with the nearest centre that is large enough with it, if there is one."""
    n, d = values.shape
    centre, size = np.empty((groups, d)), np.empty(groups, dtype=np.int64)
    for group in range(groups):
        size[group] = 0
        for t in range(d):
            centre[group, t] = 0.0
    for i in range(n):
        if label[i] >= 0:
            size[label[i]] += 1
            for t in range(d):
                centre[label[i], t] += values[i, t]
    nearest = np.inf
    for group in range(groups):
        if size[group] + 1 < level[record]:
            continue
        apart = 0.0
        for t in range(d):
            gap = values[record, t] - centre[group, t] / size[group]
            apart += gap * gap
        if apart < nearest:
            nearest, label[record] = apart, group


@inner
def _gather_unplaced(level: NDArray[np.int64], label: NDArray[np.int64], groups: int) -> int:
    """Make one group of the records that no group could take, with as many whole groups as they need."""
    unplaced, highest = 0, 0
    for i in range(label.shape[0]):
        if label[i] < 0:
            unplaced += 1
            highest = max(highest, level[i])
    while 0 < unplaced < highest and groups > 0:
        groups -= 1
        for i in range(label.shape[0]):
            if label[i] == groups:
                label[i] = -1
                unplaced += 1
                highest = max(highest, level[i])
    if unplaced == 0:
        return groups
    for i in range(label.shape[0]):
        if label[i] < 0:
            label[i] = groups
    return groups + 1
