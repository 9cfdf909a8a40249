"""Algorithm 2 of BCG10 for owners who each have some rows, lines 1 to 11 and 15 to 19, transcribed line by line.

Written from the paper: lists, plain numbers, every sum again over all rows, and one place where all rows meet. How a
mean is rounded is handed in, for the protocol counts in whole steps; so are the first centres, which the paper leaves
open, the transform matrices and the noise. Lines 5 to 11 are those of `tests.oracles.bcg10`, with errata BCG10.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from tests.oracles.bcg10 import Group, Matrix, Row, groups_with_errata, squared

Points = Sequence[Sequence[Fraction]]
Mean = Callable[[Sequence[Points]], list[Fraction]]


def data_size(parts: Sequence[Points]) -> int:
    """Lines 1 to 3."""
    return sum(len(part) for part in parts)


def exact_mean(parts: Sequence[Points]) -> list[Fraction]:
    """The mean of all rows of a cluster, which lie at several owners."""
    rows = [row for part in parts for row in part]
    return [sum((row[j] for row in rows), Fraction(0)) / len(rows) for j in range(len(rows[0]))]


def mean_in_steps(parts: Sequence[Points]) -> list[Fraction]:
    """The same of rows that count in whole steps: every owner rounds its sum over the common size, half up."""
    size = data_size(parts)
    width = len(next(row for part in parts for row in part))
    rounded = [
        [math.floor(sum((row[j] for row in part), Fraction(0)) / size + Fraction(1, 2)) for j in range(width)]
        for part in parts
    ]
    return [Fraction(sum(own[j] for own in rounded)) for j in range(width)]


def k_means(
    parts: Sequence[Points], first: Points, rounds: int, mean: Mean
) -> tuple[list[Group], list[list[Fraction]], int]:
    """Line 4: clusters of the joined rows, their centres, and the rounds that it took."""
    joined = [row for part in parts for row in part]
    owner = [place for place, part in enumerate(parts) for _ in part]
    centres, label = [list(centre) for centre in first], [-1] * len(joined)
    for done in range(rounds):
        nearest = [min(range(len(centres)), key=lambda j: (squared(row, centres[j]), j)) for row in joined]
        if nearest == label:
            return _clusters(label, len(centres)), centres, done + 1
        label = nearest
        for j in range(len(centres)):
            cluster = [
                [joined[i] for i in range(len(joined)) if label[i] == j and owner[i] == place]
                for place in range(len(parts))
            ]
            if any(cluster):
                centres[j] = mean(cluster)
    return _clusters(label, len(centres)), centres, rounds


def _clusters(label: Sequence[int], g: int) -> list[Group]:
    return [frozenset(i for i, own in enumerate(label) if own == j) for j in range(g)]


def groups(parts: Sequence[Points], first: Points, rounds: int, mean: Mean) -> tuple[list[Group], int]:
    """Lines 1 to 11: groups of places in the joined rows, and the rounds of K-means."""
    joined = [row for part in parts for row in part]
    assert len(joined) == data_size(parts)  # 2
    clusters, centres, done = k_means(parts, first, rounds, mean)  # 4
    return groups_with_errata(joined, clusters, centres), done  # 5 to 11


def perturb(
    parts: Sequence[Sequence[Row]], transform: Matrix, b: float, units: Sequence[Sequence[Row]]
) -> list[Matrix]:
    """Lines 15 to 19 of one group; ``units`` is each owner's Laplace noise of scale 1 (errata BCG10.1)."""
    m, wide = len(transform), len(transform[0])
    d_p = [  # 16
        [[math.fsum(row[a] * transform[a][j] for a in range(m)) for j in range(wide)] for row in part] for part in parts
    ]
    columns = [[row[j] for part in d_p for row in part] for j in range(wide)]
    b_ = [b * (max(column) - min(column)) for column in columns]  # 17
    noised = [  # 18
        [[value + b_[j] * unit[j] for j, value in enumerate(row)] for row, unit in zip(part, own, strict=True)]
        for part, own in zip(d_p, units, strict=True)
    ]
    return [  # 19
        [[math.fsum(row[j] * transform[a][j] for j in range(wide)) for a in range(m)] for row in part]
        for part in noised
    ]
