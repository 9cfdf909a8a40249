"""ConstructGroups and its three steps: condensation with a privacy level for each record [AY05, figs. 2 to 5]."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import compiled
from sfumato.core.groups import centroids, nearest_centre, squared_distances, ssq
from sfumato.core.progress import tell

__all__ = [
    "attrition",
    "cannibalize",
    "construct_groups",
    "place_deficient",
    "segment",
]

_PAIRS_A_CALL = 50_000_000  # coordinates compared between two looks at Ctrl-C and the progress bar


def segment(values: Floats, pool: Ints, p: int, order: Ints) -> list[Ints]:
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
        nearest = nearest_centre(values[rest], centres)
        for group in np.unique(nearest):
            groups[group] = np.concatenate([groups[group], np.sort(rest[nearest == group])])
    return groups


@compiled
def _form_groups(
    values: Floats, remaining: Ints, place: Ints, seeds: Ints, cursor: int, left: int, members: Ints
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
def _take_out(remaining: Ints, place: Ints, row: int, left: int) -> int:
    """Remove one row from the remaining ones by putting the last in its place."""
    spot = place[row]
    last = remaining[left - 1]
    remaining[spot] = last
    place[last] = spot
    place[row] = -1
    return left - 1


_BLOCK = 4_000_000  # distances held at once


def attrition(
    values: Floats, levels: Ints, lower: list[Ints], upper: list[Ints], p: int
) -> tuple[list[Ints], list[Ints]]:
    """Move records of H_p that a group can spare to the closest viable group of H_{p-1}.

    Implements Attrition [AY05, fig. 5].

    Parameters
    ----------
    values : ndarray of shape (n, d)
    levels : ndarray of shape (n,)
    lower, upper : list of ndarray
        H_{p-1} and H_p, groups as rows of values.
    p : int
        The privacy level of H_p.

    Returns
    -------
    lower, upper : list of ndarray

    Notes
    -----
    Improve(X) is the distance to the own centroid minus that to the closest viable one, the figure's sign (errata
    AY05.4); only points with Improve > 0 move, at most p' - p from a group of p'. A group is viable for X when it has
    at least level(X) records with X in it. Centroids are those at the start, as in the figure's first loop.
    """
    spare = [index for index, group in enumerate(upper) if len(group) > p]
    if not lower or not spare:
        return lower, upper
    low_centres = centroids(values, lower)
    low_sizes = np.array([len(group) for group in lower])
    gained: list[list[Ints]] = [[group] for group in lower]
    upper = list(upper)
    for index in spare:
        group = upper[index]
        points = values[group]
        current = np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1))  # Distc(X, p)
        other, target = closest_viable(points, levels[group], low_centres, low_sizes)  # Disto(X, p-1)
        improve = current - other
        best = np.argsort(-improve, kind="stable")[: len(group) - p]
        moved = best[improve[best] > 0.0]
        for point in moved:
            gained[target[point]].append(group[point : point + 1])
        upper[index] = np.delete(group, moved)
    return [np.concatenate(parts) for parts in gained], upper


def closest_viable(points: Floats, levels: Ints, centres: Floats, sizes: Ints) -> tuple[Floats, Ints]:
    """Distance to, and the index of, the closest group that would be large enough for each point.

    The distance is infinite if no group is viable.
    """
    distance = np.empty(len(points))
    target = np.empty(len(points), dtype=np.int64)
    block = max(1, _BLOCK // max(1, centres.size))
    for first in range(0, len(points), block):
        part = slice(first, first + block)
        squared = squared_distances(points[part], centres)
        squared[sizes[None, :] + 1 < levels[part, None]] = np.inf
        target[part] = np.argmin(squared, axis=1)
        distance[part] = np.sqrt(squared.min(axis=1))
    return distance, target


def cannibalize(values: Floats, levels: Ints, lower: list[Ints], upper: list[Ints]) -> tuple[list[Ints], list[Ints]]:
    """Dissolve groups of H_{p-1} into H_p where that lowers the sum of squares.

    Implements Cannibalize [AY05, fig. 4].

    Parameters
    ----------
    values : ndarray of shape (n, d)
    levels : ndarray of shape (n,)
    lower, upper : list of ndarray
        H_{p-1} and H_p, groups as rows of values.

    Returns
    -------
    lower, upper : list of ndarray

    Notes
    -----
    The qualitative test compares SSQ exactly (errata AY05.6). The numerical test dissolves a group that is smaller
    than a level inside it (errata AY05.5). Each group is tested against H_p as the groups before it left it.
    """
    if not upper:
        return lower, upper
    centres = centroids(values, upper)
    sizes = np.array([len(group) for group in upper])
    joined: list[list[Ints]] = [[group] for group in upper]
    kept = []
    for group in lower:
        points = values[group]
        nearest = nearest_centre(points, centres)
        cost, touched = cost_of_joining(points, nearest, centres, sizes)
        deficient = len(group) < levels[group].max()
        if not deficient and cost >= ssq(points):
            kept.append(group)
            continue
        for target, (centre, size) in touched.items():
            joined[target].append(group[nearest == target])
            centres[target], sizes[target] = centre, size
    return kept, [np.concatenate(parts) for parts in joined]


def cost_of_joining(
    points: Floats, nearest: Ints, centres: Floats, sizes: Ints
) -> tuple[float, dict[int, tuple[Floats, int]]]:
    """Count by how much SSQ grows when each point joins its group, and what those groups become.

    A point that joins a group of size n at squared distance q from its centroid adds q*n/(n+1) and moves the
    centroid by 1/(n+1) of the way (errata AY05.6).
    """
    cost = 0.0
    touched: dict[int, tuple[Floats, int]] = {}
    for point, target in zip(points, nearest.tolist(), strict=True):
        centre, size = touched.get(target, (centres[target], int(sizes[target])))
        gap = point - centre
        cost += float(gap @ gap) * size / (size + 1)
        touched[target] = (centre + gap / (size + 1), size + 1)
    return cost, touched


def construct_groups(values: Floats, levels: Ints, order: Ints) -> list[Ints]:
    """Group records so that each group is at least as large as the highest level inside it.

    Implements ConstructGroups [AY05, fig. 2]; one level for all records is the homogeneous case.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    levels : ndarray of shape (n,)
        Privacy level p(i) of each record; none above n.
    order : ndarray of shape (n,)
        A random order of the records, for sampling.

    Returns
    -------
    list of ndarray
        The groups as rows of values.

    Notes
    -----
    Departs from the figure (errata AY05.5): where no group of level p can form, its records join D_{p+1} before its
    Segment, and what is left after the last level is placed by `place_deficient`. Followed to the letter, the
    figure loses such records.
    """
    groups = [np.array([row]) for row in np.flatnonzero(levels == 1)]  # H_1
    carried = np.empty(0, dtype=np.int64)
    for p in np.unique(levels[levels > 1]).tolist():
        pool = np.concatenate([carried, np.flatnonzero(levels == p)])
        upper = segment(values, pool, p, order)  # H_p
        if not upper:
            carried = pool
            continue
        carried = np.empty(0, dtype=np.int64)
        lower, upper = cannibalize(values, levels, groups, upper)
        lower, upper = attrition(values, levels, lower, upper, p)
        groups = lower + upper
        tell("grouping", p / int(levels.max()))
    return place_deficient(values, levels, groups, carried)


def place_deficient(values: Floats, levels: Ints, groups: list[Ints], carried: Ints) -> list[Ints]:
    """Place the records that formed no group at any level (errata AY05.5).

    Each joins the group that costs least SSQ and is large enough with it, lower levels first. Those for which no group
    is large enough stand together and join likewise; where no single group makes them enough they take in the one
    that costs least SSQ and try again. If no group ever formed, all records are one.
    """
    if not len(carried):
        return groups
    if not groups:
        return [carried]
    groups = list(groups)
    centres = centroids(values, groups)
    sizes = np.array([len(group) for group in groups])
    waiting = []
    for row in carried[np.lexsort((carried, levels[carried]))]:
        cost = ((centres - values[row]) ** 2).sum(axis=1) * sizes / (sizes + 1)
        cost[sizes + 1 < levels[row]] = np.inf
        target = int(np.argmin(cost))
        if not np.isfinite(cost[target]):
            waiting.append(row)
            continue
        groups[target] = np.append(groups[target], row)
        centres[target] += (values[row] - centres[target]) / (sizes[target] + 1)
        sizes[target] += 1
    together = np.array(waiting, dtype=np.int64)
    while len(together) < (need := int(levels[together].max(initial=0))):
        centre, size = values[together].mean(axis=0), len(together)
        cost = ((centres - centre) ** 2).sum(axis=1) * sizes * size / (sizes + size)
        enough = sizes + size >= need
        if enough.any():
            cost[~enough] = np.inf
        target = int(np.argmin(cost))
        together = np.concatenate([together, groups.pop(target)])
        centres, sizes = np.delete(centres, target, axis=0), np.delete(sizes, target)
    return [*groups, together] if len(together) else groups
