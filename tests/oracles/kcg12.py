"""Figures 3 and 5 of KCG12 transcribed line by line, with the decisions of errata BCG10.4 and KCG12.2.

Written from the paper: sets of record numbers, exact fractions, every size counted anew. Slow on purpose. K-means
(step 1-1) is not transcribed: the figure starts from whatever clusters and centres it gave. Equal distances go to the
lower record, equal sizes to the earlier cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Point = tuple[Fraction, ...]
Group = frozenset[int]


def exact(rows: Sequence[Sequence[float]]) -> list[Point]:
    """Give the same points as fractions."""
    return [tuple(Fraction(cell) for cell in row) for row in rows]


def squared(x: Point, y: Point) -> Fraction:
    """Give the squared distance."""
    return sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), Fraction(0))


def modified_condensation(
    points: Sequence[Point], clusters: Sequence[Group], centres: Sequence[Point], k: int
) -> tuple[list[Group], list[tuple[int, Group]]]:
    """Steps 1-2 to 1-5 of figure 3; also every move, as the taking cluster and the records taken.

    Errata BCG10.4: the order is that of the sizes now, not of the sizes before the loop, and a cluster that has had its
    turn gives nothing.
    """
    c = [set(cluster) for cluster in clusters]
    waiting = set(range(len(c)))
    moves = []
    while waiting:
        i = min(waiting, key=lambda j: (len(c[j]), j))  # 1-2
        waiting.remove(i)  # 1-3
        if len(c[i]) < k:  # 1-4
            larger = {x for j in waiting for x in c[j]}
            assert len(c[i]) + len(larger) >= k * (1 + len(waiting))  # the rest can always be completed
            nearest = sorted(larger, key=lambda x: (squared(points[x], centres[i]), x))
            moved = frozenset(nearest[: k - len(c[i])])
            for j in waiting:
                c[j] -= moved
            c[i] |= moved
            moves.append((i, moved))
    return [frozenset(cluster) for cluster in c], moves


def holistic(points: Sequence[Point], clusters: Sequence[Group], centres: Sequence[Point], k: int) -> list[Group]:
    """Vaidya's variant as [BCG10, sec. 3.1] tells it: clusters smaller than k go to the nearest that are left."""
    c = {j: set(cluster) for j, cluster in enumerate(clusters) if cluster}
    while len(c) > 1:
        i = min(c, key=lambda j: (len(c[j]), j))
        if len(c[i]) >= k:
            break
        records = c.pop(i)
        for x in records:
            c[min(c, key=lambda j: (squared(points[x], centres[j]), j))].add(x)
    return [frozenset(cluster) for cluster in c.values()]


def approximate_gcd(counts: Sequence[int], t: int) -> int:
    """Step 1 of figure 5, the divisor by trial."""
    units = []
    for count in counts:  # 1-2
        unit = 0
        while (unit + 1) * t <= count:
            unit += 1
        if unit == 0:
            raise ValueError("a class is smaller than t")  # errata KCG12.2
        units.append(unit)
    g = max(divisor for divisor in range(1, min(units) + 1) if all(unit % divisor == 0 for unit in units))  # 1-3
    return g * t


def weighted_distance(x: Point, y: Point, v: int, w: Fraction) -> Fraction:
    """Equation 1 of BCG10: attribute v is the response."""
    m = len(x)
    others = sum(((1 - w) * (x[j] - y[j]) ** 2 / (m - 1) for j in range(m) if j != v), Fraction(0))
    return w * (x[v] - y[v]) ** 2 + others
