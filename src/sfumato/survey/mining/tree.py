"""A decision tree learned from randomized records and true classes, by reconstructed distributions.

AS00: R. Agrawal, R. Srikant: Privacy-Preserving Data Mining, SIGMOD 2000, section 4 [the source of JS07, ch. 3 and 4].
The tree sees a column as the interval that each record is held to lie in: gini splits at interval boundaries. Pruning
is by minimum description length (M. Mehta, J. Rissanen, R. Agrawal: MDL-based Decision Tree Pruning, KDD 1995): it
needs no records held out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import OptionError
from sfumato.mining.clusters import check_fitted, check_whole
from sfumato.survey.mining.intervals import (
    Intervals,
    ReleasedRecords,
    Source,
    check_classes,
    check_stop,
    distributions,
    read_released,
    true_intervals,
)

__all__ = [
    "LEAF",
    "RECONSTRUCTIONS",
    "Nodes",
    "ReconstructedTree",
    "Refine",
    "grow",
    "hold",
    "in_order",
    "leaf_of",
    "prune",
]

RECONSTRUCTIONS = ("by-class", "local", "global", "none")
"""The ways to reconstruct by name."""


@dataclass(kw_only=True, eq=False)
class ReconstructedTree:
    """Decision tree for true values, learned from randomized ones.

    The distribution of each column is reconstructed over intervals, and the records are held to intervals in the order
    of their randomized values, as many to each as the reconstruction says. No record's value is estimated by that. The
    tree is then grown by the gini index with splits at the boundaries of intervals, and pruned by description length.

    Parameters
    ----------
    specs : mapping of str to NoiseSpec or domain
        The law of each column; for a column that was not randomized, its domain.
    reconstruction : {"by-class", "local", "global", "none"}, default="by-class"
        By class: each class on its own, once. Local: each class on its own, anew at every node. Global: all classes
        together, once. None: a randomized value is taken for the truth; this is what the others are measured against.
    intervals : int, optional
        Of each column; by default one for every 100 records, but 10 to 100.
    max_depth : int, optional
    min_leaf : int, default=20
        Records that a leaf holds at least.
    local_records : int, default=1000
        Local reconstruction ends at nodes with fewer; the intervals of the node above stand.
    pruned : bool, default=True
    stop : {"chi-square", "likelihood"}, default="chi-square"
        When the iteration of the reconstruction ends.
    random_state : int, default=0
        Orders equal randomized values.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
    columns_ : tuple of Intervals
    nodes_ : Nodes
    n_features_in_ : int

    Notes
    -----
    Departs from AS00 in one thing: below a split, local reconstruction leaves the columns that were asked about as they
    were held. The records of a node were chosen by their randomized values there, so noise and value are no longer
    independent, and what is reconstructed from them is wrong; measured in ``benchmarks/results/as00.md``. The noise of
    the other columns had no part in the choice.

    A randomized class is not for the tree: which records lie in which class is what it counts. Use
    `ReconstructedNaiveBayes` with ``target``.

    Examples
    --------
    >>> from sfumato.core.distributions.domains import Integers
    >>> from sfumato.core.distributions.spec import NoiseSpec
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(20, 80, size=2000)
    >>> spec = NoiseSpec(Integers(20, 79), {"name": "uniform", "reach": 30})
    >>> tree = ReconstructedTree(specs={"age": spec}).fit({"age": spec.randomize(age, rng)}, age >= 50)
    >>> tree.predict({"age": [25, 70]}).tolist()
    [False, True]
    """

    specs: Mapping[str, Source]
    reconstruction: str = "by-class"
    intervals: int | None = None
    max_depth: int | None = None
    min_leaf: int = 20
    local_records: int = 1000
    pruned: bool = True
    stop: str = "chi-square"
    random_state: int = 0
    classes_: NDArray[Any] = field(init=False, repr=False)
    columns_: tuple[Intervals, ...] = field(init=False, repr=False)
    nodes_: Nodes = field(init=False, repr=False)
    n_features_in_: int = field(init=False, repr=False)

    def fit(self, X: Any, y: Any) -> ReconstructedTree:  # noqa: N803
        """Learn from randomized records.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Randomized values. A table (mapping, pandas, polars, arrow) is read by the names of ``specs``, an array in
            their order.
        y : array of shape (n,)
            True classes.
        """
        self._check()
        released = read_released(self.specs, X, y, self.intervals)
        unordered = next((column.name for column in released.columns if not column.ordered), None)
        if unordered is not None:
            raise OptionError(f"column {unordered!r} has labels without order; leave it out, or use naive Bayes")
        codes, refine = self._hold(released)
        grown = grow(
            codes,
            released.code,
            released.sizes,
            n_classes=len(released.classes),
            max_depth=self.max_depth,
            min_leaf=self.min_leaf,
            refine=refine,
        )
        self.nodes_ = prune(grown, released.sizes) if self.pruned else grown
        self.classes_, self.columns_ = released.classes, released.columns
        self.n_features_in_ = len(released.columns)
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Share of each class at the leaf that each row of true values comes to."""
        check_fitted(self, "nodes_")
        held = self.nodes_.counts[leaf_of(self.nodes_, true_intervals(self.columns_, X))]
        return np.asarray(held / held.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Most frequent class at the leaf that each row of true values comes to."""
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[np.argmax(shares, axis=1)])

    def describe(self) -> str:
        """Write the tree out, a line for each leaf or question.

        Examples
        --------
        >>> from sfumato.core.distributions.domains import Integers
        >>> tree = ReconstructedTree(specs={"age": Integers(0, 9)}, min_leaf=1)
        >>> print(tree.fit(np.arange(10)[:, None], np.repeat(["no", "yes"], [4, 6])).describe())
        age < 3.5
            no (4 of 4)
        age > 3.5
            yes (6 of 6)
        """
        check_fitted(self, "nodes_")
        return "\n".join(self._lines(0, 0))

    def _lines(self, node: int, depth: int) -> list[str]:
        nodes, indent = self.nodes_, "    " * depth
        if nodes.column[node] == LEAF:
            held = nodes.counts[node]
            return [f"{indent}{self.classes_[np.argmax(held)]} ({held.max()} of {held.sum()})"]
        column = self.columns_[nodes.column[node]]
        bound = f"{column.threshold(int(nodes.boundary[node])):g}"
        sides = (("<", int(nodes.left[node])), (">", int(nodes.right[node])))
        return [
            line
            for sign, child in sides
            for line in (f"{indent}{column.name} {sign} {bound}", *self._lines(child, depth + 1))
        ]

    def _check(self) -> None:
        if self.reconstruction not in RECONSTRUCTIONS:
            raise OptionError(f"there is no reconstruction {self.reconstruction!r}; choose one of {RECONSTRUCTIONS}")
        check_stop(self.stop)
        check_whole("min_leaf", self.min_leaf, 1)
        check_whole("local_records", self.local_records, 1)
        for name, number, low in (("intervals", self.intervals, 2), ("max_depth", self.max_depth, 1)):
            if number is not None:
                check_whole(name, number, low)

    def _hold(self, released: ReleasedRecords) -> tuple[Ints, Refine | None]:
        """Hold the records to intervals, and say how to do it anew at a node."""
        if self.reconstruction == "none":
            sent = zip(released.columns, released.outputs.T, strict=True)
            return np.stack([column.as_sent(each) for column, each in sent], axis=1), None
        together = np.zeros_like(released.code)
        groups = together if self.reconstruction == "global" else released.code
        if self.reconstruction != "global":
            check_classes(released)
        ranks = released.ranks(np.random.default_rng(self.random_state))
        codes = np.empty_like(released.outputs)
        everyone = np.arange(len(groups))
        hold(released, ranks, everyone, groups, codes, stop=self.stop)
        if self.reconstruction != "local":
            return codes, None

        def refine(rows: Ints, splits: frozenset[int]) -> None:
            if len(rows) >= self.local_records:
                hold(released, ranks, rows, groups, codes, stop=self.stop, but=splits)

        return codes, refine


def hold(
    released: ReleasedRecords,
    ranks: Ints,
    rows: Ints,
    groups: Ints,
    codes: Ints,
    *,
    stop: str,
    but: frozenset[int] = frozenset(),
) -> None:
    """Reconstruct every column and hold the records to its intervals [AS00, sec. 4].

    Parameters
    ----------
    released : Released
    ranks : ndarray of shape (n, d)
        Order of the randomized values of each column.
    rows : ndarray of int
        The records.
    groups : ndarray of shape (n,)
        Records of one group are reconstructed together.
    codes : ndarray of shape (n, d)
        Intervals; those of the rows are written.
    stop : str
    but : frozenset of int
        Columns whose intervals stand.
    """
    names, place = np.unique(groups[rows], return_inverse=True)
    for at, column in enumerate(released.columns):
        if at in but:
            continue
        if column.matrix is None:
            codes[rows, at] = column.as_sent(released.outputs[rows, at])
            continue
        shares = distributions(column, released.counts(at, rows, place, len(names)), stop)
        for group, share in enumerate(shares):
            own = rows[place == group]
            codes[own, at] = in_order(ranks[own, at], share)


def in_order(ranks: Ints, share: Floats) -> Ints:
    """Assign intervals to records in the order of their ranks: with N(I_p) = n share_p, the N(I_1) lowest to I_1.

    Counts are rounded if they are summed up, so that none is off by a record and all are given out.

    Examples
    --------
    >>> in_order(np.array([7, 1, 4, 9]), np.array([0.5, 0.0, 0.5]))
    array([2, 0, 0, 2])
    """
    ends = np.rint(np.cumsum(share) * len(ranks))
    codes = np.empty(len(ranks), dtype=np.int64)
    codes[np.argsort(ranks)] = np.searchsorted(ends[:-1], np.arange(len(ranks)), side="right")
    return codes


LEAF = -1
"""Replaces column and children at a leaf."""

_GAIN = 1e-12  # part of the score by which a split must lift it: less is rounding

Refine = Callable[["Ints", frozenset[int]], None]
"""Holds the records of a node to intervals anew and writes them into the codes that `grow` was given.

It receives their rows and the columns tested on the path to the node."""


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

    column: Ints
    boundary: Ints
    left: Ints
    right: Ints
    counts: Ints

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
    codes: Ints,
    classes: Ints,
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
    waiting: list[tuple[int, Ints, int, frozenset[int]]]
    waiting = [(0, np.arange(len(classes)), 0, frozenset())]
    while waiting:
        node, rows, depth, splits = waiting.pop()
        pure = counts[node].max() == len(rows)
        if pure or len(rows) < 2 * min_leaf or (max_depth is not None and depth >= max_depth):
            continue
        if refine is not None and node:
            refine(rows, splits)
        found = best_split(codes[rows], classes[rows], sizes, counts[node], min_leaf)
        if found is None:
            continue
        column[node], boundary[node] = found
        below = codes[rows, found[0]] < found[1]
        for side, part in ((left, rows[below]), (right, rows[~below])):
            side[node] = len(column)
            waiting.append((len(column), part, depth + 1, splits | {found[0]}))
            counts.append(np.bincount(classes[part], minlength=n_classes))
            for each in (column, left, right):
                each.append(LEAF)
            boundary.append(0)
    arrays = [np.array(each, dtype=np.int64) for each in (column, boundary, left, right, counts)]
    return Nodes(*arrays)


def best_split(
    codes: Ints, classes: Ints, sizes: tuple[int, ...], total: Ints, min_leaf: int
) -> tuple[int, int] | None:
    """Column and boundary whose two sides have the lowest weighted gini index; None if none is lower.

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


def _before(ahead: Ints, start: Ints) -> Ints:
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


def _leaf_bits(counts: Ints) -> Floats:
    k, n = counts.shape[1], counts.sum(axis=1)
    held = np.sort(counts, axis=1).astype(np.float64)  # sorted: the order of the classes changes no bit
    data = (held * np.log2(n[:, None] / np.maximum(held, 1.0))).sum(axis=1)
    shape = (math.log(math.pi) * k / 2.0 - math.lgamma(k / 2.0)) / math.log(2.0)
    return np.asarray(data + (k - 1) / 2.0 * np.log2(np.maximum(n, 2) / 2.0) + shape)


def _keep_reached(nodes: Nodes, column: Ints) -> Nodes:
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


def leaf_of(nodes: Nodes, codes: Ints) -> Ints:
    """Leaf that each record comes to."""
    at = np.zeros(len(codes), dtype=np.int64)
    inside = np.flatnonzero(nodes.column[at] != LEAF)
    while len(inside):
        node = at[inside]
        below = codes[inside, nodes.column[node]] < nodes.boundary[node]
        at[inside] = np.where(below, nodes.left[node], nodes.right[node])
        inside = inside[nodes.column[at[inside]] != LEAF]
    return at
