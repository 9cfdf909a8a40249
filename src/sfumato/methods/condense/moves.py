"""A leaf of neighbouring groups, and moves that make them more compact: relocate, swap, dissolve, split.

Every move keeps each group at least as large as the highest level inside it, and each is taken only if it lowers the
sum of squares exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import inner, whole
from sfumato.methods.condense.trees import squared_gap

__all__ = [
    "NONE",
    "RELOCATE",
    "SWAP",
    "Leaf",
    "best_move",
    "dissolve",
    "highest_but",
    "mark",
    "measure",
    "refresh",
    "relocate",
    "split",
    "swap",
    "write_gaps",
]


class Leaf(NamedTuple):
    """The records of a leaf and the groups they are in; slots of size 0 are free.

    ``own`` is each record's squared distance to its own centre, ``distance[g, i]`` that of record i to centre g, and
    ``bar`` the highest level inside a group. ``gaps[i, j]`` is the squared distance of two records: where it was
    written all else follows from it, whatever the number of columns, and centres are not kept; where it is empty
    distances follow from values and centres.

    Time is counted in changes of groups, by ``clock``. ``changed[g]`` is when group g last changed, ``looked[i]`` when
    the moves of record i were last looked at, ``tried[g]`` when group g was last tried to be split: what has not
    changed since need not be looked at again.
    """

    values: Floats
    level: Ints
    label: Ints
    own: Floats
    centre: Floats
    distance: Floats
    size: Ints
    bar: Ints
    gaps: Floats
    clock: Ints
    changed: Ints
    looked: Ints
    tried: Ints


@inner
def mark(leaf: Leaf, group: int) -> None:
    """Note that a group has changed."""
    leaf.clock[0] += 1
    leaf.changed[group] = leaf.clock[0]


@inner
def _squared_gap(leaf: Leaf, i: int, j: int) -> float:
    """Squared distance of two records."""
    if leaf.gaps.shape[0] > 0:
        return float(leaf.gaps[i, j])
    return squared_gap(leaf.values, i, leaf.values, j)


@inner
def write_gaps(leaf: Leaf) -> None:
    """Write the squared distances of all pairs of records; column by column, so that processors can do many at once."""
    n, d = leaf.values.shape
    across = np.empty((d, n))
    for i in range(n):
        for t in range(d):
            across[t, i] = leaf.values[i, t]
    for i in range(n):
        for j in range(i + 1):
            leaf.gaps[i, j] = 0.0
        for t in range(d):
            x = across[t, i]
            for j in range(i):
                gap = x - across[t, j]
                leaf.gaps[i, j] += gap * gap
        for j in range(i):
            leaf.gaps[j, i] = leaf.gaps[i, j]


@inner
def measure(leaf: Leaf, group: int) -> None:
    """Bring the distances to a centre, and those of its own records, up to date."""
    for i in range(leaf.values.shape[0]):
        total = squared_gap(leaf.values, i, leaf.centre, group)
        leaf.distance[group, i] = total
        if leaf.label[i] == group:
            leaf.own[i] = total


@inner
def refresh(leaf: Leaf, group: int) -> None:
    """Compute a group anew from its labels; an empty one lies infinitely far."""
    n, d = leaf.values.shape
    size, bar = whole(0), 0
    for i in range(n):
        if leaf.label[i] == group:
            size += 1
            bar = max(bar, leaf.level[i])
    leaf.size[group] = size
    leaf.bar[group] = bar
    if size == 0:
        for i in range(n):
            leaf.distance[group, i] = np.inf
        return
    if leaf.gaps.shape[0] > 0:
        _measure_by_gaps(leaf, group, size)
        return
    for t in range(d):
        leaf.centre[group, t] = 0.0
    for i in range(n):
        if leaf.label[i] == group:
            for t in range(d):
                leaf.centre[group, t] += leaf.values[i, t]
    for t in range(d):
        leaf.centre[group, t] /= size
    measure(leaf, group)


@inner
def _measure_by_gaps(leaf: Leaf, group: int, size: int) -> None:
    """Distances to a centre: the mean squared distance to its records, less half of that among them."""
    n = leaf.label.shape[0]
    for i in range(n):
        leaf.distance[group, i] = 0.0
    for j in range(n):
        if leaf.label[j] == group:
            for i in range(n):
                leaf.distance[group, i] += leaf.gaps[j, i]
    among = 0.0
    for j in range(n):
        if leaf.label[j] == group:
            among += leaf.distance[group, j]
    among /= 2.0 * size * size
    for i in range(n):
        leaf.distance[group, i] = max(leaf.distance[group, i] / size - among, 0.0)
        if leaf.label[i] == group:
            leaf.own[i] = leaf.distance[group, i]


@inner
def highest_but(leaf: Leaf, group: int, record: int) -> int:
    """Highest level in a group without one of its records."""
    bar = 0
    for i in range(leaf.label.shape[0]):
        if i != record and leaf.label[i] == group:
            bar = max(bar, leaf.level[i])
    return bar


@inner
def _settled_by_gaps(leaf: Leaf, a: int, b: int) -> bool:
    """Note that two groups have changed, and bring them up to date if the gaps of all pairs are known."""
    mark(leaf, a)
    mark(leaf, b)
    if leaf.gaps.shape[0] > 0:
        refresh(leaf, a)
        refresh(leaf, b)
    return bool(leaf.gaps.shape[0] > 0)


NONE, RELOCATE, SWAP = 0, 1, 2

_ROUNDING = 1e-10  # a gain below this share of what it is computed from may be rounding


@inner
def best_move(leaf: Leaf, i: int, lowest: int, row: Floats) -> tuple[float, int, int]:
    """Find what is best for record i: nothing, another group, or the place of a later record.

    Joining a group of size n at squared distance q adds q*n/(n+1), leaving one of size n gives q*n/(n-1). Exchanging i
    of a with j of b gives |xi-xj|^2 * (1/na + 1/nb) minus what the distances to the centres change; most pairs are
    rejected by |xi-xj|^2 <= 2*(|xi-ca|^2 + |xj-ca|^2) without touching their coordinates. What a move gives hangs on
    its two groups alone, so pairs of groups that have not changed since are not looked at again.
    """
    a, since = leaf.label[i], leaf.looked[i]
    anew = leaf.changed[a] > since
    slots = leaf.size.shape[0]
    if not anew and not _any_changed(leaf, since):
        return 0.0, NONE, -1
    leaf.looked[i] = leaf.clock[0]
    here, size, level = leaf.own[i], leaf.size[a], leaf.level[i]
    best, kind, target = _ROUNDING * here, NONE, -1
    for b in range(slots):
        row[b] = leaf.distance[b, i]
    free = size > leaf.bar[a]
    if not free and size > lowest and level == leaf.bar[a]:
        free = size > highest_but(leaf, a, i)
    if free and size > 1:
        leaving = here * size / (size - 1.0)
        for b in range(slots):
            other = leaf.size[b]
            if b != a and other > 0 and other + 1 >= level and (anew or leaf.changed[b] > since):
                gain = leaving - row[b] * other / (other + 1.0)
                if gain > best:
                    best, kind, target = gain, RELOCATE, b
    inverse = 1.0 / size
    for j in range(i + 1, leaf.label.shape[0]):
        b = leaf.label[j]
        if b == a or not (anew or leaf.changed[b] > since):
            continue
        there = leaf.distance[a, j]
        change = there + row[b] - here - leaf.own[j]
        weight = inverse + 1.0 / leaf.size[b]
        if 2.0 * (here + there) * weight - change <= best or leaf.size[b] < level or size < leaf.level[j]:
            continue
        gain = _squared_gap(leaf, i, j) * weight - change
        if gain > best and gain > _ROUNDING * (there + row[b]):
            best, kind, target = gain, SWAP, j
    return (best if kind != NONE else 0.0), kind, target


@inner
def _any_changed(leaf: Leaf, since: int) -> bool:
    found = False
    for group in range(leaf.size.shape[0]):
        found |= leaf.changed[group] > since and leaf.size[group] > 0
    return found


@inner
def relocate(leaf: Leaf, i: int, b: int) -> None:
    """Move record i to group b."""
    a = leaf.label[i]
    left, right = leaf.size[a], leaf.size[b]
    leaf.label[i] = b
    if _settled_by_gaps(leaf, a, b):
        return
    for t in range(leaf.values.shape[1]):
        leaf.centre[a, t] += (leaf.centre[a, t] - leaf.values[i, t]) / (left - 1.0)
        leaf.centre[b, t] += (leaf.values[i, t] - leaf.centre[b, t]) / (right + 1.0)
    leaf.size[a] = left - 1
    leaf.size[b] = right + 1
    leaf.bar[b] = max(leaf.bar[b], leaf.level[i])
    if leaf.level[i] == leaf.bar[a]:
        leaf.bar[a] = highest_but(leaf, a, leaf.label.shape[0])
    measure(leaf, a)
    measure(leaf, b)


@inner
def swap(leaf: Leaf, i: int, j: int) -> None:
    """Exchange two records of different groups."""
    a, b = leaf.label[i], leaf.label[j]
    leaf.label[i], leaf.label[j] = b, a
    if _settled_by_gaps(leaf, a, b):
        return
    for t in range(leaf.values.shape[1]):
        gap = leaf.values[j, t] - leaf.values[i, t]
        leaf.centre[a, t] += gap / leaf.size[a]
        leaf.centre[b, t] -= gap / leaf.size[b]
    if leaf.level[i] != leaf.level[j]:
        leaf.bar[a] = highest_but(leaf, a, leaf.label.shape[0])
        leaf.bar[b] = highest_but(leaf, b, leaf.label.shape[0])
    measure(leaf, a)
    measure(leaf, b)


@inner
def dissolve(leaf: Leaf, a: int, least: float, members: Ints, target: Ints) -> float:
    """Hand the records of a group to their nearest groups, if the sum of squares then falls by more than ``least``.

    Returns by how much it did. A quick sum tells most groups that cannot gain; the others are dissolved, measured
    and restored where it was not worth it. A ``least`` of minus infinity dissolves whatever it costs.
    """
    held, inside, joining = whole(0), 0.0, 0.0
    for i in range(leaf.label.shape[0]):
        if leaf.label[i] != a:
            continue
        nearest, cost = -1, np.inf
        for b in range(leaf.size.shape[0]):
            if b != a and leaf.size[b] > 0 and leaf.size[b] + 1 >= leaf.level[i]:
                adds = leaf.distance[b, i] * leaf.size[b] / (leaf.size[b] + 1.0)
                if adds < cost:
                    nearest, cost = b, adds
        if nearest < 0:
            return 0.0
        members[held], target[held] = i, nearest
        held += 1
        inside += leaf.own[i]
        joining += cost
    if held == 0 or inside - joining <= least:
        return 0.0
    before = inside + _inside_targets(leaf, target, held)
    for place in range(held):
        leaf.label[members[place]] = target[place]
    _refresh_targets(leaf, target, held)
    gain = before - _inside_targets(leaf, target, held)
    undone = gain <= least + _ROUNDING * before
    if undone:
        for place in range(held):
            leaf.label[members[place]] = a
        _refresh_targets(leaf, target, held)
        gain = 0.0
    refresh(leaf, a)
    if not undone or leaf.gaps.shape[0] == 0:  # a centre that was computed anew is rounded otherwise
        mark(leaf, a)
        for place in range(held):
            mark(leaf, target[place])
    return gain


@inner
def _is_first(target: Ints, place: int) -> bool:
    first = True
    for earlier in range(place):
        if target[earlier] == target[place]:
            first = False
    return first


@inner
def _inside_targets(leaf: Leaf, target: Ints, held: int) -> float:
    """Sum the squares inside the groups that targets name, each once."""
    total = 0.0
    for place in range(held):
        if _is_first(target, place):
            for i in range(leaf.label.shape[0]):
                if leaf.label[i] == target[place]:
                    total += leaf.own[i]
    return total


@inner
def _refresh_targets(leaf: Leaf, target: Ints, held: int) -> None:
    for place in range(held):
        if _is_first(target, place):
            refresh(leaf, target[place])


@inner
def split(leaf: Leaf, a: int, lowest: int, members: Ints, key: Floats) -> float:
    """Cut a group in two along the line between its farthest records, where both parts are large enough.

    Returns by how much the sum of squares fell: splitting never raises it. Takes the first free slot.
    """
    n = leaf.values.shape[0]
    free = -1
    for b in range(leaf.size.shape[0]):
        if leaf.size[b] == 0:
            free = b
            break
    if free < 0 or leaf.size[a] < leaf.bar[a] + lowest or leaf.changed[a] <= leaf.tried[a]:
        return 0.0
    leaf.tried[a] = leaf.clock[0]
    held, far = whole(0), whole(-1)
    for i in range(n):
        if leaf.label[i] == a:
            members[held] = i
            held += 1
            if far < 0 or leaf.own[i] > leaf.own[far]:
                far = i
    _order_along(leaf, far, members, held, key)
    cut, gain = _best_cut(leaf, a, members, held)
    if cut == 0:
        return 0.0
    for place in range(cut, held):
        leaf.label[members[place]] = free
    refresh(leaf, a)
    refresh(leaf, free)
    mark(leaf, a)
    mark(leaf, free)
    return gain


@inner
def _order_along(leaf: Leaf, far: int, members: Ints, held: int, key: Floats) -> None:
    """Sort members along the line from a far record to the one farthest from it."""
    d = leaf.values.shape[1]
    opposite, widest = far, -1.0
    for place in range(held):
        apart = _squared_gap(leaf, members[place], far)
        if apart > widest:
            opposite, widest = members[place], apart
    for place in range(held):
        along = 0.0
        if leaf.gaps.shape[0] > 0:
            along = leaf.gaps[members[place], far] - leaf.gaps[members[place], opposite]
        else:
            for t in range(d):
                along += leaf.values[members[place], t] * (leaf.values[opposite, t] - leaf.values[far, t])
        member, spot = members[place], place
        while spot > 0 and key[spot - 1] > along:
            key[spot] = key[spot - 1]
            members[spot] = members[spot - 1]
            spot -= 1
        key[spot] = along
        members[spot] = member


@inner
def _best_cut(leaf: Leaf, a: int, members: Ints, held: int) -> tuple[int, float]:
    """Find the cut of ordered members that lowers the sum of squares most with both parts large enough."""
    after = np.empty(held + 1, dtype=np.int64)
    after[held] = 0
    for place in range(held - 1, -1, -1):
        after[place] = max(after[place + 1], leaf.level[members[place]])
    left = np.empty(leaf.values.shape[1] if leaf.gaps.shape[0] == 0 else 0)
    for t in range(left.shape[0]):
        left[t] = 0.0
    before, cut, best, apart = 0, 0, 0.0, 0.0
    for place in range(held - 1):
        i = members[place]
        before = max(before, leaf.level[i])
        if leaf.gaps.shape[0] > 0:
            apart += _lengthened(leaf, members, place)
        else:
            apart = 0.0
            for t in range(left.shape[0]):
                left[t] += leaf.values[i, t] - leaf.centre[a, t]
                apart += left[t] * left[t]  # the right part's sum is minus the left's
        size = place + 1
        if size >= before and held - size >= after[size]:
            gain = apart / size + apart / (held - size)
            if gain > best:
                cut, best = size, gain
    return cut, best


@inner
def _lengthened(leaf: Leaf, members: Ints, place: int) -> float:
    """By how much |sum of (x - centre)|^2 over the first members grows with the next one."""
    i = members[place]
    more = leaf.own[i]
    for earlier in range(place):
        j = members[earlier]
        more += leaf.own[i] + leaf.own[j] - leaf.gaps[i, j]  # twice the inner product
    return float(more)
