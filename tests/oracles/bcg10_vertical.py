"""Algorithm 2 of BCG10 for owners of columns: lines 4 and 20 to 26 transcribed line by line, errata BCG10.1 applied.

Lines 5 to 11 are `tests.oracles.bcg10.groups_with_errata`. Each owner's columns are a list of rows; what is added up
over owners is written as such a sum. Slow on purpose. The transform matrix and the noise are handed in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Row = Sequence[float]
Table = Sequence[Row]
Matrix = list[list[float]]


def partial(x: Row, c: Row) -> float:
    """One owner's part of a squared distance; its columns are scaled by the roots of their weights [eq. 1]."""
    return math.fsum((a - b) ** 2 for a, b in zip(x, c, strict=True))


def k_means(owners: Sequence[Table], first: Sequence[int], rounds: int) -> tuple[list[int], list[Matrix], float]:
    """Line 4, K-means with K = g after [7]: each owner moves the centres of its own columns.

    Gives the clusters, each owner's centres, and how clear the closest decision was.
    """
    n, g = len(owners[0]), len(first)
    centres: list[Matrix] = [[list(table[row]) for row in first] for table in owners]
    clusters: list[int] | None = None
    clearest = math.inf
    for _ in range(rounds):
        chosen = []
        for i in range(n):
            apart = [
                math.fsum(partial(table[i], c[j]) for table, c in zip(owners, centres, strict=True)) for j in range(g)
            ]
            chosen.append(apart.index(min(apart)))
            if g > 1:
                clearest = min(clearest, sorted(apart)[1] - min(apart))
        if chosen == clusters:
            break
        clusters = chosen
        for table, c in zip(owners, centres, strict=True):
            for j in range(g):
                members = [table[i] for i in range(n) if clusters[i] == j]
                if members:
                    c[j] = [math.fsum(column) / len(members) for column in zip(*members, strict=True)]
    assert clusters is not None
    return clusters, centres, clearest


def perturb(
    owners: Sequence[Table], transform: Matrix, r: Matrix, r_1: Matrix, r_2: Matrix
) -> tuple[list[float], Matrix]:
    """Lines 20 to 26 of one group; ``r`` is the random share of line 22, ``r_1`` and ``r_2`` the noise of line 24.

    Gives the ranges of line 23, of which b times is the scale of the noise, and what is added to the output.
    """
    n, m = len(owners[0]), len(transform)
    products, start = [], 0
    for table in owners:  # 21: D_l M_l, with the rows of M that correspond to the columns of P_l
        wide = len(table[0])
        rows = transform[start : start + wide]
        products.append([[math.fsum(row[a] * rows[a][j] for a in range(wide)) for j in range(m)] for row in table])
        start += wide
    d_p1 = r  # 22
    d_p2 = [[math.fsum(each[i][j] for each in products) - r[i][j] for j in range(m)] for i in range(n)]
    column = [[d_p1[i][j] + d_p2[i][j] for i in range(n)] for j in range(m)]
    ranges = [max(each) - min(each) for each in column]  # 23
    d_pn = [[d_p1[i][j] + r_1[i][j] + d_p2[i][j] - r_2[i][j] for j in range(m)] for i in range(n)]  # 25
    released = [[math.fsum(d_pn[i][j] * transform[a][j] for j in range(m)) for a in range(m)] for i in range(n)]  # 26
    return ranges, released
