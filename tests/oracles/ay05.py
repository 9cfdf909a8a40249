"""Figures 2 to 5 of AY05 transcribed line by line, with the decisions of errata AY05.4 to AY05.6.

Written from the paper: sets of record numbers, exact fractions, every centroid and every SSQ computed anew from the
records. Slow on purpose. "Sample a data point" takes the first record of a given order that is still there; equal
distances go to the lower record and to the earlier group. Where the paper leaves a choice between equals that
rounding decides in the real function, `Tie` is raised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

Point = tuple[Fraction, ...]
Group = frozenset[int]

NEAR = 1e-9
"""Relative difference below which rounding may decide."""


class Tie(Exception):
    """The figure leaves open which of equals to take."""


def exact(rows: Sequence[Sequence[float]]) -> list[Point]:
    """Give the same points as fractions."""
    return [tuple(Fraction(cell) for cell in row) for row in rows]


def centroid(points: Sequence[Point], group: Group) -> Point:
    """Give the mean of the group's records."""
    return tuple(sum(cells, Fraction(0)) / len(group) for cells in zip(*(points[i] for i in group), strict=True))


def squared(x: Point, y: Point) -> Fraction:
    """Give the squared distance."""
    return sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), Fraction(0))


def ssq(points: Sequence[Point], groups: Sequence[Group]) -> Fraction:
    """Give the sum of squared distances of records to the centroid of their group."""
    total = Fraction(0)
    for group in groups:
        centre = centroid(points, group)
        total += sum((squared(points[i], centre) for i in group), Fraction(0))
    return total


def closest_group(x: Point, centres: Sequence[Point]) -> int:
    """Give the group with the closest centroid."""
    return min(range(len(centres)), key=lambda g: (squared(x, centres[g]), g))


def construct_groups(points: Sequence[Point], levels: Sequence[int], order: Sequence[int]) -> list[Group]:
    """Figure 2."""
    p = 2
    h = [frozenset({i}) for i, level in enumerate(levels) if level == 1]  # H_1
    carried: set[int] = set()
    while p <= max(levels):  # MaxPrivacyLevel
        d_p = {i for i, level in enumerate(levels) if level == p} | carried
        h_p = segment(points, d_p, p, order)
        if h_p:
            carried = set()
            h, h_p = cannibalize(points, levels, h, h_p)
            h, h_p = attrition(points, levels, h, h_p, p)
        else:
            carried = d_p  # errata AY05.5: they join D_{p+1} before its Segment
        h = h + h_p  # H_p = H_p u H_{p-1}
        p += 1
    return place_deficient(points, levels, h, carried)


def segment(points: Sequence[Point], d_p: set[int], p: int, order: Sequence[int]) -> list[Group]:
    """Figure 3."""
    left = set(d_p)
    h: list[Group] = []
    while len(left) >= p:
        x = next(i for i in order if i in left)
        others = sorted(left - {x}, key=lambda i: (squared(points[x], points[i]), i))
        group = frozenset({x, *others[: p - 1]})
        h.append(group)
        left -= group
    if not h:
        return []
    centres = [centroid(points, group) for group in h]
    for x in sorted(left):  # the remaining data points
        g = closest_group(points[x], centres)
        h[g] = h[g] | {x}
    return h


def cannibalize(
    points: Sequence[Point], levels: Sequence[int], lower: Sequence[Group], upper: Sequence[Group]
) -> tuple[list[Group], list[Group]]:
    """Figure 4."""
    h_p = list(upper)
    if not h_p:
        return list(lower), h_p
    kept = []
    for group in lower:
        centres = [centroid(points, other) for other in h_p]
        assigned = list(h_p)
        for x in group:
            g = closest_group(points[x], centres)
            assigned[g] = assigned[g] | {x}
        added, saved = ssq(points, assigned) - ssq(points, h_p), ssq(points, [group])
        is_lower = added < saved  # errata AY05.6
        if abs(added - saved) <= NEAR * saved and added != 0:
            raise Tie
        deficient = len(group) < max(levels[x] for x in group)  # errata AY05.5
        if is_lower or deficient:
            h_p = assigned
        else:
            kept.append(group)
    return kept, h_p


def attrition(
    points: Sequence[Point], levels: Sequence[int], lower: Sequence[Group], upper: Sequence[Group], p: int
) -> tuple[list[Group], list[Group]]:
    """Figure 5."""
    below = [centroid(points, group) for group in lower]
    improve: dict[int, float] = {}
    closest: dict[int, int] = {}
    for group in upper:
        own = centroid(points, group)
        for x in group:
            viable = [g for g, other in enumerate(lower) if len(other | {x}) >= levels[x]]
            if viable:
                best = viable[closest_group(points[x], [below[g] for g in viable])]
                # errata AY05.4: Distc minus Disto
                improve[x] = math.sqrt(squared(points[x], own)) - math.sqrt(squared(points[x], below[best]))
                closest[x] = best
    h_low, h_p = list(lower), list(upper)
    for index, group in enumerate(upper):
        if len(group) > p:
            useful = sorted((x for x in group if improve.get(x, 0.0) > 0.0), key=lambda x: (-improve[x], x))
            spare = len(group) - p
            # in one dimension all points beyond both centroids have the same Improve
            if len(useful) > spare and improve[useful[spare - 1]] <= (1.0 + NEAR) * improve[useful[spare]]:
                raise Tie
            for x in useful[:spare]:
                h_p[index] = h_p[index] - {x}
                h_low[closest[x]] = h_low[closest[x]] | {x}
    return h_low, h_p


def place_deficient(
    points: Sequence[Point], levels: Sequence[int], groups: Sequence[Group], carried: set[int]
) -> list[Group]:
    """Errata AY05.5: what is still deficient joins the group that costs least SSQ and makes the size sufficient.

    A record at a time, lower levels first. Records that no group can make sufficient stand together, and that group
    does the same.
    """
    h = list(groups)
    if not h:
        return [frozenset(carried)] if carried else []
    waiting: Group = frozenset()
    for x in sorted(carried, key=lambda i: (levels[i], i)):
        joined = _cheapest(points, h, frozenset({x}), need=levels[x])
        if joined is None:
            waiting |= {x}
        else:
            h[joined] = h[joined] | {x}
    while waiting and len(waiting) < max(levels[x] for x in waiting):
        need = max(levels[x] for x in waiting)
        joined = _cheapest(points, h, waiting, need)
        if joined is None:  # no single group is enough
            joined = _cheapest(points, h, waiting, need=0)
        assert joined is not None
        waiting |= h.pop(joined)
    return [*h, waiting] if waiting else h


def _cheapest(points: Sequence[Point], h: Sequence[Group], extra: Group, need: int) -> int | None:
    """Give the group whose union with the extra records adds least SSQ, of those that are then large enough."""
    costs = {
        g: ssq(points, [group | extra]) - ssq(points, [group])
        for g, group in enumerate(h)
        if len(group | extra) >= need
    }
    return min(costs, key=lambda g: (costs[g], g)) if costs else None
