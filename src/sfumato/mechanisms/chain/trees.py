"""Trees that gather records alike in the columns before: grown on bins of at most 256, with whole-number histograms.

All sums are of whole numbers, so that histograms of parts of a table add up to those of the whole in any order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import compiled

__all__ = ["MOST_BINS", "Tree", "grow_tree"]

MOST_BINS = 256
"""Bins of a column that trees are grown on; a code is a byte."""

_FEATURE, _LEFT, _RIGHT, _PARENT, _FIRST, _LAST = range(6)
_NODE = 6  # entries of a node
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes in the order in which they were made, so that children stand after their parents.

    ``nodes`` holds the column that a node is cut by (-1: a leaf), its children and its parent (-1: a root);
    ``lower[node, code]`` tells which codes go to the first child. The first nodes are the roots, one a stratum.
    """

    nodes: NDArray[np.int64]
    lower: NDArray[np.bool_]

    def leaves_of(self, codes: NDArray[np.uint8], roots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Leaf that each record falls into, from the root of its stratum."""
        leaves = np.empty(len(codes), dtype=np.int64)
        _descend(codes, roots, self.nodes, self.lower, leaves)
        return leaves

    def merge(self, short: NDArray[np.bool_]) -> int:
        """Send the records of short leaves to their siblings; how many leaves were short."""
        return int(_merge_short(self.nodes, short))


def grow_tree(
    codes: NDArray[np.uint8],
    bins: NDArray[np.int64],
    nominal: NDArray[np.bool_],
    score: NDArray[np.int64],
    classes: int,
    levels: NDArray[np.int64],
    strata: NDArray[np.int64],
    *,
    leaf: int,
    least_gain: float,
) -> Tree:
    """A tree for a column, cut by the columns before it.

    Parameters
    ----------
    codes : ndarray of shape (n, columns)
        Bin of each cell; the first columns are those before.
    bins : ndarray of shape (columns before,)
        How many bins each of them has.
    nominal : ndarray of shape (columns before,)
        Those whose bins have no order.
    score : ndarray of shape (n,)
        What leaves shall be alike in: a whole number, or a class where there are ``classes``.
    classes : int
        How many classes; 0 where scores are numbers.
    levels : ndarray of shape (n,)
        Level of each record. A leaf holds as many records as the highest inside.
    strata : ndarray of shape (n,)
        Stratum of each record, from 0; each has a root of its own.
    leaf : int
        Fewest records of a leaf.
    least_gain : float
        A cut must lower the spread inside by so many times the spread of one record: one that lowers it less tells of
        these people, and not of others.
    """
    n = len(codes)
    order = np.argsort(strata, kind="stable").astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(strata))])
    most = 2 * max(1, n // leaf) + len(starts)
    nodes, lower = np.empty((most, _NODE), dtype=np.int64), np.zeros((most, MOST_BINS), dtype=np.bool_)
    made = _grow(codes, bins, nominal, score, classes, levels, order, starts, leaf, least_gain, nodes, lower)
    return Tree(nodes[:made], lower[:made])


@compiled
def _grow(
    codes: NDArray[np.uint8],
    bins: NDArray[np.int64],
    nominal: NDArray[np.bool_],
    score: NDArray[np.int64],
    classes: int,
    levels: NDArray[np.int64],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    leaf: int,
    least_gain: float,
    nodes: NDArray[np.int64],
    lower: NDArray[np.bool_],
) -> int:
    """Cut nodes, first made first, as long as a cut gains enough and both sides hold their highest level."""
    columns, width = len(bins), max(classes, 1)
    counts, highs = np.zeros((columns, 256), dtype=np.int64), np.zeros((columns, 256), dtype=np.int64)
    totals = np.zeros((columns, 256, width), dtype=np.int64)
    rank, share, above = np.empty(256, dtype=np.int64), np.empty(256), np.empty(257, dtype=np.int64)
    left, whole = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
    goes_left = np.zeros(256, dtype=np.bool_)
    aside = np.empty(len(order), dtype=np.int64)
    made = len(starts) - 1
    for root in range(made):
        nodes[root, _LEFT] = nodes[root, _RIGHT] = nodes[root, _PARENT] = -1
        nodes[root, _FIRST], nodes[root, _LAST] = starts[root], starts[root + 1]
    node = 0
    while node < made:
        first, last = nodes[node, _FIRST], nodes[node, _LAST]
        n, chosen, top, square = last - first, -1, 0, 0.0
        whole[:] = 0
        for place in range(first, last):
            row = order[place]
            top = max(top, levels[row])
            if classes:
                whole[score[row]] += 1
            else:
                whole[0] += score[row]
                square += float(score[row]) * float(score[row])
        together, major = 0.0, 0
        for t in range(width):
            together += float(whole[t]) * float(whole[t])
            if whole[t] > whole[major]:
                major = t
        together /= max(n, 1)
        spread = (float(n) if classes else square) - together
        best = together + spread * (least_gain / max(n, 1)) + _ROUNDING * together
        looked = columns if n >= 2 * leaf and spread > 0.0 else 0
        for column in range(looked):
            counts[column, : bins[column]] = 0
            highs[column, : bins[column]] = 0
            totals[column, : bins[column]] = 0
        for place in range(first, last if looked else first):  # all columns of a row at once: its codes lie together
            row = order[place]
            its = score[row]
            for column in range(columns):
                x = codes[row, column]
                counts[column, x] += 1
                if classes:
                    totals[column, x, its] += 1
                else:
                    totals[column, x, 0] += its
                if top > leaf:
                    highs[column, x] = max(highs[column, x], levels[row])
        for column in range(looked):
            count, high, total = counts[column], highs[column], totals[column]
            held = 0
            for x in range(bins[column]):
                if count[x]:
                    rank[held] = x
                    held += 1
            if nominal[column]:  # in the order of their share of the largest class, or of their mean score
                for x in range(held):
                    share[x] = total[rank[x], major] / count[rank[x]]
                for x in range(1, held):
                    mine, bin_, y = share[x], rank[x], x - 1
                    while y >= 0 and share[y] > mine:
                        share[y + 1], rank[y + 1] = share[y], rank[y]
                        y -= 1
                    share[y + 1], rank[y + 1] = mine, bin_
            above[held] = 0
            for x in range(held - 1, -1, -1):
                above[x] = max(above[x + 1], high[rank[x]])
            left[:] = 0
            got, below = 0, 0
            for x in range(held - 1):
                bin_ = rank[x]
                got += count[bin_]
                below = max(below, high[bin_])
                for t in range(width):
                    left[t] += total[bin_, t]
                if n - got < leaf:
                    break
                if got < max(leaf, below) or n - got < above[x + 1]:
                    continue
                one, other = 0.0, 0.0
                for t in range(width):
                    one += float(left[t]) * float(left[t])
                    other += float(whole[t] - left[t]) * float(whole[t] - left[t])
                apart = one / got + other / (n - got)
                if apart > best:
                    best, chosen = apart, column
                    goes_left[:] = False
                    for y in range(x + 1):
                        goes_left[rank[y]] = True
        nodes[node, _FEATURE] = chosen
        if chosen >= 0:
            low, put = first, 0
            for place in range(first, last):
                row = order[place]
                if goes_left[codes[row, chosen]]:
                    order[low] = row
                    low += 1
                else:
                    aside[put] = row
                    put += 1
            for place in range(put):
                order[low + place] = aside[place]
            lower[node] = goes_left
            nodes[node, _LEFT], nodes[node, _RIGHT] = made, made + 1
            for child in range(made, made + 2):
                nodes[child, _LEFT] = nodes[child, _RIGHT] = -1
                nodes[child, _PARENT] = node
            nodes[made, _FIRST], nodes[made, _LAST] = first, low
            nodes[made + 1, _FIRST], nodes[made + 1, _LAST] = low, last
            made += 2
        node += 1
    return made


@compiled
def _descend(
    codes: NDArray[np.uint8],
    roots: NDArray[np.int64],
    nodes: NDArray[np.int64],
    lower: NDArray[np.bool_],
    leaves: NDArray[np.int64],
) -> None:
    """Write the leaf of each record."""
    for row in range(len(leaves)):
        node = roots[row]
        while nodes[node, _FEATURE] >= 0:
            side = _LEFT if lower[node, codes[row, nodes[node, _FEATURE]]] else _RIGHT
            node = nodes[node, side]
        leaves[row] = node


@compiled
def _merge_short(nodes: NDArray[np.int64], short: NDArray[np.bool_]) -> int:
    """Send the records of every leaf that is short to its sibling; count the short leaves that records can reach."""
    found = 0
    reached = np.zeros(len(nodes), dtype=np.bool_)
    for node in range(len(nodes)):
        reached[node] |= nodes[node, _PARENT] < 0
        if reached[node] and nodes[node, _FEATURE] >= 0:
            reached[nodes[node, _LEFT]] = reached[nodes[node, _RIGHT]] = True
    for node in range(len(nodes)):
        if not (reached[node] and nodes[node, _FEATURE] < 0 and short[node]):
            continue
        found += 1
        parent = nodes[node, _PARENT]
        if parent >= 0:
            left, right = nodes[parent, _LEFT], nodes[parent, _RIGHT]
            if left == right:  # its sibling is merged into it already, and that is not enough
                nodes[parent, _FEATURE] = -1
            else:
                nodes[parent, _LEFT] = nodes[parent, _RIGHT] = right if node == left else left
    return found
