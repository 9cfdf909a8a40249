"""Growing and pruning a binary tree on interval codes: gini splits at interval boundaries, pruning by code length.

The tree is that of AS00, section 4 (R. Agrawal, R. Srikant: Privacy-Preserving Data Mining, SIGMOD 2000), which sees a
column as the interval that each record is held to lie in. Pruning is by minimum description length (M. Mehta,
J. Rissanen, R. Agrawal: MDL-based Decision Tree Pruning, KDD 1995): it needs no records held out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAF", "Nodes", "Refine", "grow", "leaf_of", "prune"]

LEAF = -1
"""Stands in the place of column and children at a leaf."""

_GAIN = 1e-12  # part of the score by which a split must lift it: less is rounding

Refine = Callable[["NDArray[np.int64]", frozenset[int]], None]
"""Holds the records of a node to intervals anew and writes them into the codes that `grow` was given.

It is told their rows and the columns that were asked about on the way to the node."""


@dataclass(frozen=True, eq=False, repr=False)
class Nodes:
    """The nodes of a tree, the root first and every child after its parent.

    Parameters
    ----------
    column, boundary : ndarray of shape (nodes,)
        Records in intervals below the boundary of this column go left; `LEAF` and 0 at a leaf.
    left, right : ndarray of shape (nodes,)
    counts : ndarray of shape (nodes, classes)
        Training records of each class.
    """

    column: NDArray[np.int64]
    boundary: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.column)

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return int((self.column == LEAF).sum())

    @property
    def depth(self) -> int:
        """Splits on the longest path."""
        depth = np.zeros(len(self), dtype=np.int64)
        for node in np.flatnonzero(self.column != LEAF):
            depth[[self.left[node], self.right[node]]] = depth[node] + 1
        return int(depth.max())


def grow(
    codes: NDArray[np.int64],
    classes: NDArray[np.int64],
    sizes: tuple[int, ...],
    *,
    n_classes: int,
    max_depth: int | None,
    min_leaf: int,
    refine: Refine | None = None,
) -> Nodes:
    """Grow a tree: every node is split where the gini index falls most, until nothing falls or leaves get too small.

    Parameters
    ----------
    codes : ndarray of shape (n, d)
        Interval of each record in each column; ``refine`` may write into it.
    classes : ndarray of shape (n,)
    sizes : tuple of int
        Intervals of each column.
    n_classes, max_depth, min_leaf : int
    refine : callable, optional
        Called for every node below the root before it is split [AS00, algorithm Local].
    """
    counts = [np.bincount(classes, minlength=n_classes)]
    column, boundary, left, right = [LEAF], [0], [LEAF], [LEAF]
    waiting: list[tuple[int, NDArray[np.int64], int, frozenset[int]]]
    waiting = [(0, np.arange(len(classes)), 0, frozenset())]
    while waiting:
        node, rows, depth, asked = waiting.pop()
        pure = counts[node].max() == len(rows)
        if pure or len(rows) < 2 * min_leaf or (max_depth is not None and depth >= max_depth):
            continue
        if refine is not None and node:
            refine(rows, asked)
        found = best_split(codes[rows], classes[rows], sizes, counts[node], min_leaf)
        if found is None:
            continue
        column[node], boundary[node] = found
        below = codes[rows, found[0]] < found[1]
        for side, part in ((left, rows[below]), (right, rows[~below])):
            side[node] = len(column)
            waiting.append((len(column), part, depth + 1, asked | {found[0]}))
            counts.append(np.bincount(classes[part], minlength=n_classes))
            for each in (column, left, right):
                each.append(LEAF)
            boundary.append(0)
    arrays = [np.array(each, dtype=np.int64) for each in (column, boundary, left, right, counts)]
    return Nodes(*arrays)


def best_split(
    codes: NDArray[np.int64],
    classes: NDArray[np.int64],
    sizes: tuple[int, ...],
    total: NDArray[np.int64],
    min_leaf: int,
) -> tuple[int, int] | None:
    """Column and boundary whose two sides have the lowest weighted gini index; None where none is lower.

    With n_c records of class c among n on a side, its index times n is n - sum_c n_c^2 / n, so the sum of the two
    fractions is to be highest; their common fraction is of whole numbers, so that the order of the classes changes no
    bit. Equal splits go to the first column and the lowest boundary.
    """
    start = np.concatenate([[0], np.cumsum(sizes)])
    width, k = int(start[-1]), len(total)
    cells = (codes + start[:-1]) * k + classes[:, None]
    held = np.bincount(cells.ravel(), minlength=width * k).reshape(width, k)
    ahead = np.cumsum(held, axis=0)
    of_column = np.repeat(np.arange(len(sizes)), sizes)
    left = ahead - _before(ahead, start)[of_column]
    right = total - left
    n_left, n_right = (side.sum(axis=1).astype(np.float64) for side in (left, right))
    squares = [(side.astype(np.float64) ** 2).sum(axis=1) for side in (left, right)]
    whole = squares[0] * n_right + squares[1] * n_left  # whole numbers, exact up to 2^53: equal splits stay equal
    score = np.divide(whole, n_left * n_right, out=np.zeros_like(whole), where=n_left * n_right > 0)
    score[(n_left < min_leaf) | (n_right < min_leaf)] = -np.inf
    best = int(np.argmax(score))
    unsplit = float((total**2).sum() / total.sum())
    if not score[best] > unsplit * (1.0 + _GAIN):
        return None
    return int(of_column[best]), int(best - start[of_column[best]] + 1)


def _before(ahead: NDArray[np.int64], start: NDArray[np.int64]) -> NDArray[np.int64]:
    """What columns before each one have added to a running count over all columns."""
    return np.concatenate([np.zeros((1, ahead.shape[1]), dtype=np.int64), ahead[start[1:-1] - 1]])


def prune(nodes: Nodes, sizes: tuple[int, ...]) -> Nodes:
    """Cut off every subtree that costs more bits than the leaf in its place.

    A node says in one bit whether it is a leaf; a split names its column and boundary; a leaf with n_c records of class
    c among n costs sum_c n_c log(n / n_c) + (k - 1)/2 log(n / 2) + log(pi^(k/2) / Gamma(k/2)) for its k classes.
    """
    cost = 1.0 + _leaf_bits(nodes.counts)
    column = nodes.column.copy()
    bits = math.log2(len(sizes)) + np.log2(np.maximum(np.array(sizes) - 1, 1))
    for node in np.flatnonzero(nodes.column != LEAF)[::-1]:
        split = 1.0 + bits[column[node]] + cost[nodes.left[node]] + cost[nodes.right[node]]
        if split < cost[node]:
            cost[node] = split
        else:
            column[node] = LEAF
    return _keep_reached(nodes, column)


def _leaf_bits(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    k, n = counts.shape[1], counts.sum(axis=1)
    held = np.sort(counts, axis=1).astype(np.float64)  # sorted: the order of the classes changes no bit
    data = (held * np.log2(n[:, None] / np.maximum(held, 1.0))).sum(axis=1)
    shape = (math.log(math.pi) * k / 2.0 - math.lgamma(k / 2.0)) / math.log(2.0)
    return np.asarray(data + (k - 1) / 2.0 * np.log2(np.maximum(n, 2) / 2.0) + shape)


def _keep_reached(nodes: Nodes, column: NDArray[np.int64]) -> Nodes:
    """Drop the nodes that no path leads to any more; the order of the others stays."""
    reached = np.zeros(len(nodes), dtype=np.bool_)
    reached[0] = True
    for node in range(len(nodes)):
        if reached[node] and column[node] != LEAF:
            reached[[nodes.left[node], nodes.right[node]]] = True
    place = np.cumsum(reached) - 1
    inner = column[reached] != LEAF
    children = [np.where(inner, place[side[reached]], LEAF) for side in (nodes.left, nodes.right)]
    boundary = np.where(inner, nodes.boundary[reached], 0)
    return Nodes(column[reached], boundary, children[0], children[1], nodes.counts[reached])


def leaf_of(nodes: Nodes, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Leaf that each record comes to."""
    at = np.zeros(len(codes), dtype=np.int64)
    inside = np.flatnonzero(nodes.column[at] != LEAF)
    while len(inside):
        node = at[inside]
        below = codes[inside, nodes.column[node]] < nodes.boundary[node]
        at[inside] = np.where(below, nodes.left[node], nodes.right[node])
        inside = inside[nodes.column[at[inside]] != LEAF]
    return at
