"""Segment: groups of exactly p neighbours from the records of one level [AY05, fig. 3]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import compiled
from sfumato.groups.distances import centroids, closest
from sfumato.progress import tell

__all__ = ["segment"]

_PAIRS_A_CALL = 50_000_000  # coordinates compared between two looks at Ctrl-C and the progress bar


def segment(
    values: NDArray[np.float64], pool: NDArray[np.int64], p: int, order: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Cut the records of one privacy level into groups of p neighbours.

    Implements Segment [AY05, fig. 3].

    Parameters
    ----------
    values : ndarray of shape (n, d)
    pool : ndarray of int
        The records of D_p, as rows of values.
    p : int
        The privacy level.
    order : ndarray of int
        A random order of all n records. The sampled point is the first of D_p in this order that is still there,
        which is a uniform choice among those left.

    Returns
    -------
    list of ndarray
        The groups as rows of values; none where D_p has fewer than p records.

    Notes
    -----
    The paper leaves open whether centroids move while the remaining points are assigned: here they stay. Equal
    distances go to the lower row.
    """
    if len(pool) < p:
        return []
    ranked = np.empty(len(order), dtype=np.int64)
    ranked[order] = np.arange(len(order))
    remaining = np.sort(pool)
    seeds = pool[np.argsort(ranked[pool])]
    place = np.full(len(values), -1, dtype=np.int64)
    place[remaining] = np.arange(len(remaining))
    members = np.empty((len(pool) // p, p), dtype=np.int64)
    formed, cursor, left = 0, 0, len(pool)
    while formed < len(members):
        batch = max(1, _PAIRS_A_CALL // (left * values.shape[1] + 1))
        stop = min(len(members), formed + batch)
        cursor, left = _form_groups(values, remaining, place, seeds, cursor, left, members[formed:stop])
        formed = stop
        tell("grouping", formed / len(members))
    groups = list(members)
    rest = remaining[:left]
    if len(rest):
        centres = centroids(values, groups)
        nearest = closest(values[rest], centres)
        for group in np.unique(nearest):
            groups[group] = np.concatenate([groups[group], np.sort(rest[nearest == group])])
    return groups


@compiled
def _form_groups(
    values: NDArray[np.float64],
    remaining: NDArray[np.int64],
    place: NDArray[np.int64],
    seeds: NDArray[np.int64],
    cursor: int,
    left: int,
    members: NDArray[np.int64],
) -> tuple[int, int]:
    """Fill members with the next seeds and their nearest remaining records; shrinks remaining in place."""
    p = members.shape[1]
    d = values.shape[1]
    best = np.empty(max(p - 1, 1))
    who = np.empty(max(p - 1, 1), dtype=np.int64)
    for group in range(members.shape[0]):
        while place[seeds[cursor]] < 0:
            cursor += 1
        seed = seeds[cursor]
        left = _take_out(remaining, place, seed, left)
        held = 0
        for slot in range(left):
            row = remaining[slot]
            bound = best[held - 1] if held == p - 1 and held > 0 else np.inf
            distance = 0.0
            column = 0
            while column < d and distance <= bound:  # partial sums only grow: stop when it cannot enter
                stop = min(column + 8, d)
                part = 0.0
                for j in range(column, stop):
                    gap = values[seed, j] - values[row, j]
                    part += gap * gap
                distance += part
                column = stop
            if held == p - 1 and (held == 0 or distance > bound or (distance == bound and row > who[held - 1])):
                continue
            spot = held if held < p - 1 else held - 1
            while spot > 0 and (best[spot - 1] > distance or (best[spot - 1] == distance and who[spot - 1] > row)):
                best[spot] = best[spot - 1]
                who[spot] = who[spot - 1]
                spot -= 1
            best[spot] = distance
            who[spot] = row
            held = min(held + 1, p - 1)
        members[group, 0] = seed
        for slot in range(p - 1):
            members[group, slot + 1] = who[slot]
            left = _take_out(remaining, place, who[slot], left)
    return cursor, left


@compiled
def _take_out(remaining: NDArray[np.int64], place: NDArray[np.int64], row: int, left: int) -> int:
    """Remove one row from the remaining ones by putting the last in its place."""
    spot = place[row]
    last = remaining[left - 1]
    remaining[spot] = last
    place[last] = spot
    place[row] = -1
    return left - 1
