"""Exact MDAV (Domingo-Ferrer and Torra 2005): groups of k from the extremes inwards, the field's yardstick."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import compiled, fixed
from sfumato.core.progress import tell

__all__ = ["mdav_groups"]

_PAIRS_A_CALL = 50_000_000  # coordinates compared between two looks at Ctrl-C and the progress bar


def mdav_groups(values: NDArray[np.float64], k: int) -> list[NDArray[np.int64]]:
    """Group records by MDAV, which knows one level only.

    While at least 3k records are left, the one farthest from their mean takes its k-1 nearest, and then the one
    farthest from that record does. Of 2k to 3k-1 records one more group is taken and the rest is the last; fewer
    than 2k are one group.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    k : int

    Returns
    -------
    list of ndarray
        The groups as rows of values.

    Notes
    -----
    Equal distances go to the lower row. Cost O(n^2 d / k).
    """
    n, d = values.shape
    values = fixed(values, np.float64)
    left = np.arange(n)
    members = np.empty((n // k + 1, k), dtype=np.int64)
    distance = np.empty(n)
    remaining, groups = n, 0
    while remaining >= 2 * k:
        batch = max(1, _PAIRS_A_CALL // (remaining * d + 1))
        remaining, groups = _take_groups(values, k, left, remaining, members, groups, distance, batch)
        tell("grouping", 1.0 - remaining / n)
    made = list(members[:groups])
    return [*made, left[:remaining].copy()] if remaining else made


@compiled
def _take_groups(
    values: NDArray[np.float64],
    k: int,
    left: NDArray[np.int64],
    remaining: int,
    members: NDArray[np.int64],
    groups: int,
    distance: NDArray[np.float64],
    batch: int,
) -> tuple[int, int]:
    """Take some more groups from the records left, which stay in the order of their rows."""
    d = values.shape[1]
    centre = np.empty(d)
    for _ in range(batch):
        if remaining < 2 * k:
            break
        pair = 2 if remaining >= 3 * k else 1
        for t in range(d):
            total = 0.0
            for place in range(remaining):
                total += values[left[place], t]
            centre[t] = total / remaining
        for _turn in range(pair):
            far, widest = 0, -1.0
            for place in range(remaining):
                apart = 0.0
                for t in range(d):
                    gap = values[left[place], t] - centre[t]
                    apart += gap * gap
                if apart > widest:
                    far, widest = left[place], apart
            for t in range(d):
                centre[t] = values[far, t]
            remaining = _take_nearest(values, centre, left, remaining, members[groups], distance)
            groups += 1
    return remaining, groups


@compiled
def _take_nearest(
    values: NDArray[np.float64],
    centre: NDArray[np.float64],
    left: NDArray[np.int64],
    remaining: int,
    group: NDArray[np.int64],
    distance: NDArray[np.float64],
) -> int:
    """Move the records nearest to a point from those left into a group."""
    k, d = group.shape[0], values.shape[1]
    held = 0
    for place in range(remaining):
        apart = 0.0
        for t in range(d):
            gap = values[left[place], t] - centre[t]
            apart += gap * gap
        if held == k and apart >= distance[k - 1]:
            continue
        spot = held if held < k else k - 1
        while spot > 0 and distance[spot - 1] > apart:
            distance[spot] = distance[spot - 1]
            group[spot] = group[spot - 1]
            spot -= 1
        distance[spot] = apart
        group[spot] = left[place]
        held = min(held + 1, k)
    kept = 0
    for place in range(remaining):
        taken = False
        for member in range(k):
            if group[member] == left[place]:
                taken = True
                break
        if not taken:
            left[kept] = left[place]
            kept += 1
    return kept
