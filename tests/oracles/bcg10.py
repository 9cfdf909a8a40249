"""Theorem 1 and algorithm 2 of BCG10 for one owner, transcribed line by line, with errata BCG10.1 and BCG10.4.

Written from the paper: lists, sums of plain numbers, every size counted anew. Slow on purpose. K-means (line 4) is not
transcribed, the lines start from whatever clusters and centres it gave; neither is the eigenvector routine behind
line 14 nor the source of the noise: both are handed in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

Row = Sequence[float]
Matrix = list[list[float]]
Group = frozenset[int]


def theorem_1(rho1: float, rho2: float, delta: float) -> bool:
    """Neither an upward rho1-to-rho2 nor a downward rho2-to-rho1 breach; the paper's delta is b (errata BCG10.1)."""
    return (rho2 / rho1) * (1 - rho1) / (1 - rho2) > math.exp(1 / delta)


def squared(x: Sequence[Fraction], y: Sequence[Fraction]) -> Fraction:
    return sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), Fraction(0))


def groups_as_printed(
    points: Sequence[Sequence[Fraction]], clusters: Sequence[Group], centres: Sequence[Sequence[Fraction]]
) -> list[Group]:
    """Lines 5 to 11 to the letter: sorted once, and a donor that has had no turn yet may be left with too few."""
    g, limit = len(clusters), len(points) // len(clusters)
    order = sorted(range(g), key=lambda i: (len(clusters[i]), i))  # 5
    c = [set(clusters[i]) for i in order]
    groups = []
    for i in range(g):  # 6
        group = set(c[i])  # 7
        if len(c[i]) < limit:  # 8
            larger = {x for j in range(i + 1, g) for x in c[j]}
            nearest = sorted(larger, key=lambda x: (squared(points[x], centres[order[i]]), x))
            moved = set(nearest[: limit - len(c[i])])  # 9
            group |= moved
            for j in range(i + 1, g):
                c[j] -= moved
        groups.append(frozenset(group))
    return groups


def groups_with_errata(
    points: Sequence[Sequence[Fraction]], clusters: Sequence[Group], centres: Sequence[Sequence[Fraction]]
) -> list[Group]:
    """Lines 5 to 11 with errata BCG10.4: the next cluster is the smallest one now, and a final one gives nothing."""
    c = {i: set(cluster) for i, cluster in enumerate(clusters)}
    limit = len(points) // len(clusters)
    groups: dict[int, Group] = {}
    while c:
        i = min(c, key=lambda j: (len(c[j]), j))  # 5, 6
        group = c.pop(i)  # 7
        if len(group) < limit:  # 8
            larger = {x for cluster in c.values() for x in cluster}
            nearest = sorted(larger, key=lambda x: (squared(points[x], centres[i]), x))
            moved = set(nearest[: limit - len(group)])  # 9
            group |= moved
            for cluster in c.values():
                cluster -= moved
        groups[i] = frozenset(group)
    return [groups[i] for i in sorted(groups)]


def covariance(d: Sequence[Row]) -> Matrix:
    """Line 13, as one owner computes it."""
    n, m = len(d), len(d[0])
    mean = [math.fsum(row[j] for row in d) / n for j in range(m)]
    return [[math.fsum((row[a] - mean[a]) * (row[b] - mean[b]) for row in d) / n for b in range(m)] for a in range(m)]


def perturb(d: Sequence[Row], transform: Matrix, b: float, unit: Sequence[Row]) -> Matrix:
    """Lines 16 to 19 of one group; ``unit`` is Laplace noise of scale 1 (errata BCG10.1: b_j is a scale)."""
    n, m = len(d), len(d[0])
    d_p = [[math.fsum(d[i][a] * transform[a][j] for a in range(m)) for j in range(m)] for i in range(n)]  # 16
    b_ = [b * (max(row[j] for row in d_p) - min(row[j] for row in d_p)) for j in range(m)]  # 17
    noised = [[d_p[i][j] + b_[j] * unit[i][j] for j in range(m)] for i in range(n)]  # 18
    return [[math.fsum(noised[i][j] * transform[a][j] for j in range(m)) for a in range(m)] for i in range(n)]  # 19
