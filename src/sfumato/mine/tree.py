"""A decision tree learned from randomized records and true classes, by reconstructed distributions.

AS00: R. Agrawal, R. Srikant: Privacy-Preserving Data Mining, SIGMOD 2000, section 4 [the source of JS07, ch. 3 and 4].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.mine.growth import LEAF, Nodes, Refine, grow, leaf_of, prune
from sfumato.mine.inputs import check_fitted, check_whole
from sfumato.mine.intervals import (
    Intervals,
    Released,
    Source,
    check_classes,
    check_stop,
    distributions,
    read_released,
    true_intervals,
)

__all__ = ["RECONSTRUCTIONS", "ReconstructedTree", "hold", "in_order"]

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
    >>> from sfumato.core.laws.domains import Integers
    >>> from sfumato.core.laws.spec import NoiseSpec
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

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
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
        >>> from sfumato.core.laws.domains import Integers
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

    def _hold(self, released: Released) -> tuple[NDArray[np.int64], Refine | None]:
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

        def refine(rows: NDArray[np.int64], asked: frozenset[int]) -> None:
            if len(rows) >= self.local_records:
                hold(released, ranks, rows, groups, codes, stop=self.stop, but=asked)

        return codes, refine


def hold(
    released: Released,
    ranks: NDArray[np.int64],
    rows: NDArray[np.int64],
    groups: NDArray[np.int64],
    codes: NDArray[np.int64],
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


def in_order(ranks: NDArray[np.int64], share: NDArray[np.float64]) -> NDArray[np.int64]:
    """Assign intervals to records in the order of their ranks: with N(I_p) = n share_p, the N(I_1) lowest to I_1.

    Counts are rounded where they are summed up, so that none is off by a record and all are given out.

    Examples
    --------
    >>> in_order(np.array([7, 1, 4, 9]), np.array([0.5, 0.0, 0.5]))
    array([2, 0, 0, 2])
    """
    ends = np.rint(np.cumsum(share) * len(ranks))
    codes = np.empty(len(ranks), dtype=np.int64)
    codes[np.argsort(ranks)] = np.searchsorted(ends[:-1], np.arange(len(ranks)), side="right")
    return codes
