"""Trees that cut points into neighbourhoods: along principal axes for the start, along random ones for each round."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import compiled, inner, whole

__all__ = ["Span", "around", "below", "mix", "principal_tree", "random_tree", "select", "squared_gap", "start_groups"]

_SAMPLE = 512  # records of a node that its principal axis is computed from
_FEWEST = 4  # groups in a leaf: with fewer there is nothing to exchange


@inner
def squared_gap(a: Floats, i: int, b: Floats, j: int) -> float:
    """Squared distance of row i of one matrix to row j of another."""
    total = 0.0
    for t in range(a.shape[1]):
        gap = a[i, t] - b[j, t]
        total += gap * gap
    return total


@inner
def select(order: Ints, key: Floats, first: int, last: int, cut: int) -> None:
    """Reorder ``order[first:last]`` so that the smallest keys stand before the cut (quickselect)."""
    low, high = first, last - 1
    while low < high:
        a, b, c = key[order[low]], key[order[(low + high) // 2]], key[order[high]]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while key[order[i]] < pivot:
                i += 1
            while key[order[j]] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if cut <= j:
            high = j
        elif cut >= i:
            low = i
        else:
            return


class Span(NamedTuple):
    """The part of an order that a tree is built over, and how deep; all the way down if the depth is negative."""

    first: int
    last: int
    depth: int


@compiled
def random_tree(
    centres: Floats,
    weight: Ints,
    most: tuple[int, int],
    seed: np.uint64,
    order: Ints,
    key: Floats,
    span: Span,
    bounds: Ints,
) -> int:
    """Cut the groups of a span into leaves of at most ``most`` groups and records, along random directions.

    A direction joins two random centres of the node. Its randomness hangs on seed and place alone, so that parts of the
    tree can be built apart. Writes where leaves begin and returns how many there are.
    """
    d, (most_groups, most_records) = centres.shape[1], most
    state = np.empty(1, dtype=np.uint64)
    stack = np.empty((256, 3), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = span.first, span.last, 0
    top, leaves = 1, 0
    direction = np.empty(d)
    while top:
        top -= 1
        low, high, level = stack[top, 0], stack[top, 1], stack[top, 2]
        records = 0
        for place in range(low, high):
            records += weight[order[place]]
        parts = max((high - low + most_groups - 1) // most_groups, (records + most_records - 1) // most_records)
        parts = min(parts, (high - low) // _FEWEST)
        if parts <= 1 or level == span.depth:
            bounds[leaves] = low
            leaves += 1
            continue
        state[0] = seed ^ (np.uint64(low) << np.uint64(32)) ^ np.uint64(high)
        mix(state)
        p, q = order[low + below(state, high - low)], order[low + below(state, high - low)]
        for t in range(d):
            direction[t] = centres[p, t] - centres[q, t]
        for place in range(low, high):
            along = 0.0
            for t in range(d):
                along += centres[order[place], t] * direction[t]
            key[order[place]] = along
        cut = low + (high - low) * (parts // 2) // parts
        select(order, key, low, high, cut)
        stack[top, 0], stack[top, 1], stack[top, 2] = cut, high, level + 1
        stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2] = low, cut, level + 1
        top += 2
    return leaves


@compiled
def principal_tree(
    values: Floats,
    level: Ints,
    most: int,
    unit: int,
    order: Ints,
    key: Floats,
    span: Span,
    bounds: Ints,
) -> int:
    """Cut the records of a span in halves along their principal axes into leaves of at most ``most`` records.

    Cuts fall on multiples of ``unit``. A node whose highest level is more than half of it is not cut in halves: the
    records nearest to that record make one group of their own, with every record whose level could not be met
    outside it. Writes where leaves begin and returns how many there are.
    """
    stack = np.empty((256, 3), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = span.first, span.last, 0
    top, leaves = 1, 0
    axis = np.empty(values.shape[1])
    while top:
        top -= 1
        low, high, deep = stack[top, 0], stack[top, 1], stack[top, 2]
        size, highest, who = high - low, whole(0), whole(-1)
        for place in range(low, high):
            if level[order[place]] > highest:
                highest, who = level[order[place]], order[place]
        if size <= most or deep == span.depth or size == highest:
            bounds[leaves] = low
            leaves += 1
            continue
        if size >= 2 * highest + unit:
            _principal_axis(values, order, low, high, axis)
            for place in range(low, high):
                along = 0.0
                for t in range(values.shape[1]):
                    along += values[order[place], t] * axis[t]
                key[order[place]] = along
            cut = low + (size // 2) // unit * unit
            select(order, key, low, high, cut)
        else:
            cut = around(values, level, order, key, low, high, who)
        if cut == high:
            bounds[leaves] = low
            leaves += 1
            continue
        stack[top, 0], stack[top, 1], stack[top, 2] = cut, high, deep + 1
        stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2] = low, cut, deep + 1
        top += 2
    return leaves


@inner
def around(values: Floats, level: Ints, order: Ints, key: Floats, low: int, high: int, who: int) -> int:
    """Put the nearest records of one with a very high level first; give where they end."""
    rest, bound = high - low - level[who], 0
    for place in range(low, high):
        apart = squared_gap(values, order[place], values, who)
        if level[order[place]] > rest:  # the rest could not meet it: it goes along, wherever it lies
            apart = -1.0
            bound += 1
        key[order[place]] = apart
    cut = whole(low + max(level[who], bound))
    if cut >= high:
        return high
    select(order, key, low, high, cut)
    highest = 0
    for place in range(cut, high):
        highest = max(highest, level[order[place]])
    return cut if highest <= high - cut else high


@inner
def _principal_axis(values: Floats, order: Ints, low: int, high: int, axis: Floats) -> None:
    """Find the direction of greatest variance of a node by power iteration over a sample of it."""
    d = values.shape[1]
    step = max(1, (high - low) // _SAMPLE)
    mean, turned = np.empty(d), np.empty(d)
    for t in range(d):
        mean[t] = 0.0
        turned[t] = 0.0
    used = 0
    for place in range(low, high, step):
        used += 1
        for t in range(d):
            mean[t] += values[order[place], t]
    for t in range(d):
        mean[t] /= used
    for place in range(low, high, step):
        for t in range(d):
            turned[t] += (values[order[place], t] - mean[t]) ** 2
    widest = 0
    for t in range(d):
        axis[t] = 1e-3
        widest = t if turned[t] > turned[widest] else widest
    axis[widest] = 1.0
    for _ in range(6):
        for t in range(d):
            turned[t] = 0.0
        for place in range(low, high, step):
            along = 0.0
            for t in range(d):
                along += (values[order[place], t] - mean[t]) * axis[t]
            for t in range(d):
                turned[t] += along * (values[order[place], t] - mean[t])
        length = 0.0
        for t in range(d):
            length += turned[t] * turned[t]
        if length <= 0.0:
            return
        for t in range(d):
            axis[t] = turned[t] / np.sqrt(length)


@inner
def start_groups(values: Floats, level: Ints, label: Ints) -> int:
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
def _farthest(values: Floats, left: Ints, done: int, last: int) -> int:
    """Find the record farthest from the mean of those left, or from the last seed."""
    n, d = values.shape
    centre = np.empty((1, d))
    for t in range(d):
        centre[0, t] = values[last, t] if last >= 0 else 0.0
    if last < 0:
        for place in range(done, n):
            for t in range(d):
                centre[0, t] += values[left[place], t] / (n - done)
    chosen, widest = left[done], -1.0
    for place in range(done, n):
        apart = squared_gap(values, left[place], centre, 0)
        if apart > widest or (apart == widest and left[place] < chosen):
            chosen, widest = left[place], apart
    return whole(chosen)


@inner
def _gather(values: Floats, level: Ints, left: Ints, done: int, key: Floats, seed: int, highest: int) -> int:
    """Bring a seed and its nearest records next, until they are as many as the highest level among them."""
    n = values.shape[0]
    for place in range(done, n):
        key[left[place]] = squared_gap(values, left[place], values, seed)
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
def _join(values: Floats, level: Ints, label: Ints, record: int, groups: int) -> None:
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
def _gather_unplaced(level: Ints, label: Ints, groups: int) -> int:
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
