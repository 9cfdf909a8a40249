"""AS00's tree on intervals and naive Bayes in plain loops (Agrawal and Srikant 2000, sec. 4; Mehta et al. 1995).

Slow on purpose: gini indices are computed from lists of records, and every cost of pruning anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Node:
    """A leaf, where it has no column."""

    counts: tuple[int, ...]
    column: int | None = None
    boundary: int = 0
    below: Node | None = None
    above: Node | None = None


def counts_of(classes: Codes, k: int) -> tuple[int, ...]:
    return tuple(sum(1 for c in classes if c == each) for each in range(k))


def gini(classes: Codes, k: int) -> Fraction:
    """gini(S) = 1 - sum p_j^2."""
    n = len(classes)
    return 1 - sum((Fraction(count, n) ** 2 for count in counts_of(classes, k)), Fraction(0))


def gini_of_split(one: Codes, other: Codes, k: int) -> Fraction:
    n = len(one) + len(other)
    return Fraction(len(one), n) * gini(one, k) + Fraction(len(other), n) * gini(other, k)


def partition(codes: Codes, classes: Codes, sizes: tuple[int, ...], k: int, min_leaf: int, depth: int | None) -> Node:
    """Partition(S): if most points are of one class return; split by the best of all attributes; go on with both."""
    here = counts_of(classes, k)
    if max(here) == len(classes) or depth == 0:
        return Node(here)
    best: tuple[Fraction, int, int] | None = None
    for column, size in enumerate(sizes):
        for boundary in range(1, size):
            below = codes[:, column] < boundary
            if min(below.sum(), (~below).sum()) < min_leaf:
                continue
            found = gini_of_split(classes[below], classes[~below], k)
            if best is None or found < best[0]:
                best = (found, column, boundary)
    if best is None or best[0] >= gini(classes, k):
        return Node(here)
    _, column, boundary = best
    below = codes[:, column] < boundary
    deeper = None if depth is None else depth - 1
    sides = [partition(codes[side], classes[side], sizes, k, min_leaf, deeper) for side in (below, ~below)]
    return Node(here, column, boundary, sides[0], sides[1])


def leaf_cost(counts: tuple[int, ...]) -> float:
    n, k = sum(counts), len(counts)
    data = sum(c * math.log2(n / c) for c in counts if c)
    return 1 + data + (k - 1) / 2 * math.log2(max(n, 2) / 2) + math.log2(math.pi ** (k / 2) / math.gamma(k / 2))


def pruned(node: Node, sizes: tuple[int, ...]) -> tuple[Node, float]:
    """Give the cheapest tree and its cost."""
    as_leaf = leaf_cost(node.counts)
    if node.column is None or node.below is None or node.above is None:
        return node, as_leaf
    below, cost_below = pruned(node.below, sizes)
    above, cost_above = pruned(node.above, sizes)
    split = 1 + math.log2(len(sizes)) + math.log2(max(sizes[node.column] - 1, 1)) + cost_below + cost_above
    if split < as_leaf:
        return Node(node.counts, node.column, node.boundary, below, above), split
    return Node(node.counts), as_leaf


def leaf(node: Node, row: Codes) -> tuple[int, ...]:
    while node.column is not None and node.below is not None and node.above is not None:
        node = node.below if row[node.column] < node.boundary else node.above
    return node.counts


def associate(values: list[int], wanted: list[int]) -> list[int]:
    """Sort the values; associate the N(I1) lowest with I1, the next N(I2) with I2, and so on."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    intervals = [0] * len(values)
    at = 0
    for interval, count in enumerate(wanted):
        for _ in range(count):
            intervals[order[at]] = interval
            at += 1
    return intervals


def naive_bayes(codes: Codes, classes: Codes, sizes: tuple[int, ...], k: int, row: Codes) -> list[float]:
    """P(c) prod_j P(x_j | c), each with one record more for every interval, scaled to 1."""
    scores = []
    for c in range(k):
        own = [codes[at] for at in range(len(codes)) if classes[at] == c]
        score = len(own) / len(codes)
        for column, size in enumerate(sizes):
            score *= (sum(1 for each in own if each[column] == row[column]) + 1) / (len(own) + size)
        scores.append(score)
    return [score / sum(scores) for score in scores]
