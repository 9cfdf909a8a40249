"""Classification by neighbouring groups, with known classes or classes in the moments [AY05, sec. 1, second use]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import BadInput, OptionError, SchemaError
from sfumato.core.groups import Groups, nearest_centre
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout, width
from sfumato.mining.clusters import blocks, check_fitted, check_groups, check_rows, log_gaussian, whiteners

__all__ = [
    "CentroidNeighbours",
    "GroupClassParts",
    "GroupNeighbours",
    "attributes",
    "class_counts",
    "group_covariances",
    "parts_of_labels",
    "parts_of_target",
]

_CAUTION = 1.0  # a class that one record of the group holds is placed half way: the record itself is not


@dataclass(frozen=True, eq=False, repr=False)
class GroupClassParts:
    """Parts of groups with one class each.

    Parameters
    ----------
    classes : ndarray of shape (c,)
    code : ndarray of shape (p,)
        Class of each piece, an index into ``classes``.
    weight : ndarray of shape (p,)
        Records in the piece.
    mean : ndarray of shape (p, d)
    scatter : ndarray of shape (g, d, d)
        Scatter about the pieces' means, one for each group.
    group : ndarray of shape (p,)
        Group that each piece is part of.
    count : ndarray of shape (g,)
        Records of each group.
    """

    classes: NDArray[Any]
    code: Ints
    weight: Floats
    mean: Floats
    scatter: Floats
    group: Ints
    count: Floats


def parts_of_labels(groups: Groups, labels: Any) -> GroupClassParts:
    """Whole groups as parts; their classes are known because no group mixes classes [AY05, sec. 3].

    Raises
    ------
    BadInput
        If there is not one label for each group, or a single class.
    """
    check_groups(groups)
    names = np.asarray(labels)
    if names.shape != (len(groups),):
        raise BadInput(f"labels have shape {names.shape} for {len(groups)} groups; give one class for each group")
    classes, code = np.unique(names, return_inverse=True)
    if len(classes) < 2:
        raise BadInput(f"the {len(groups)} groups have one class; classification needs two or more")
    count = groups.count.astype(np.float64)
    whole = np.arange(len(groups))
    return GroupClassParts(classes, code.astype(np.int64), count, groups.mean, groups.scatter, whole, count)


def parts_of_target(groups: Groups, layout: Layout, column: str) -> GroupClassParts:
    """Divide groups into their classes by the moments alone.

    With b the one-hot coordinate of class c (`CATEGORY_SCALE` or 0), the group's scatter between attributes and b is
    s = sum_i (x_i - m) b_i = scale * n_c * (m_c - m): the mean m_c of every class inside a group is in the moments.
    A piece is placed at m + s / (scale * (n_c + 1)), where the 1 keeps back half the deviation of a class that a single
    record holds. The scatter about pieces so placed, f = n_c / (n_c + 1) of the way d_c = m_c - m, is
    S - sum_c n_c (2f - f^2) d_c d_c^T, exactly.

    Notes
    -----
    Rows with a missing class hold the block's fill; their part of s, fill_c times the scatter with the indicator of
    missing cells, is taken out, and they belong to no piece.
    """
    block, indicator, keep = _find_target(groups, layout, column)
    held = class_counts(groups, layout, column)
    cross = groups.scatter[:, keep, block.where]
    if indicator is not None:
        cross = cross - groups.scatter[:, keep, indicator.start, None] * np.asarray(block.fill)
    away = cross / (CATEGORY_SCALE * np.maximum(held, 1))[:, None, :]  # m_c - m; 0 where the class is not there
    share = held / (held + _CAUTION)
    scatter = groups.scatter[:, keep[:, None], keep[None, :]]
    scatter -= (away * (held * (2.0 * share - share**2))[:, None, :]) @ away.transpose(0, 2, 1)
    group, code = np.nonzero(held)
    return GroupClassParts(
        classes=np.arange(held.shape[1]),
        code=code,
        weight=held[group, code].astype(np.float64),
        mean=groups.mean[group[:, None], keep] + share[group, code, None] * away[group, :, code],
        scatter=_positive(scatter),
        group=group,
        count=groups.count.astype(np.float64),
    )


def class_counts(groups: Groups, layout: Layout, column: str) -> Ints:
    """Count each class in each group: count * mean of the one-hot block / `CATEGORY_SCALE` (AY05, observation 2.1).

    Returns
    -------
    ndarray of shape (g, categories)
    """
    from sfumato.core.groups.discrete import category_counts, missing_counts

    block, indicator, _ = _find_target(groups, layout, column)
    gone = np.zeros(len(groups), dtype=np.int64) if indicator is None else missing_counts(groups, indicator)
    counts = category_counts(groups, block, gone)
    if (counts.sum(axis=0) > 0).sum() < 2:
        raise BadInput(f"column {column!r} has records in fewer than two classes; classification needs two or more")
    return counts


def attributes(layout: Layout, column: str) -> Ints:
    """Coordinates other than the target's, in the order of a query."""
    inside = [np.arange(block.start, block.stop) for block in layout if block.column != column]
    return np.concatenate([np.empty(0, dtype=np.int64), *inside])


def _find_target(groups: Groups, layout: Layout, column: str) -> tuple[Block, Block | None, Ints]:
    check_groups(groups)
    if width(layout) != groups.mean.shape[1]:
        raise BadInput(
            f"the layout has {width(layout)} coordinates and the groups {groups.mean.shape[1]}; "
            "give the layout of the records that were grouped"
        )
    own = {block.kind: block for block in layout if block.column == column}
    if BlockKind.CATEGORY not in own:
        raise SchemaError(f"column {column!r} is not a block of categories in the layout; name a nominal column")
    keep = attributes(layout, column)
    if not len(keep):
        raise SchemaError(f"column {column!r} is the only one in the layout; classification needs attributes")
    return own[BlockKind.CATEGORY], own.get(BlockKind.MISSING), keep


def _positive(scatter: Floats) -> Floats:
    """Clip negative eigenvalues to 0, which splitting and rounded counts can cause."""
    eigenvalues, eigenvectors = np.linalg.eigh(scatter)
    if (eigenvalues >= 0.0).all():
        return scatter
    return np.asarray((eigenvectors * np.maximum(eigenvalues, 0.0)[:, None, :]) @ eigenvectors.transpose(0, 2, 1))


_FLOOR = 1e-6  # of the mean variance of a coordinate: what a group of identical records is blurred by


@dataclass(kw_only=True, eq=False)
class GroupNeighbours:
    """Classify by the density of groups around a query, each a Gaussian with the group's moments.

    A class has the density sum of n_g N(x; m_g, C_g) over its groups, and the densest class is the answer. Groups far
    away weigh nothing, so this is a nearest-neighbour rule that knows how many records a group has and which way they
    spread. A group of k records tells little about d * d covariances, so each is drawn toward what all groups share,
    after Friedman (Regularized Discriminant Analysis, JASA 84, 1989):

        C_g = (S_g + t * diag(W)) / (n_g + t),   W = sum_g S_g / sum_g n_g,   t = shrinkage * d.

    Parameters
    ----------
    shrinkage : float, default=4.0
        Records, for each coordinate, that the shared variances count for. 4 was the best of 1, 2, 4 and 8 on seven
        tables (WDBC, German credit, wine, iris, waveform, MAGIC, digits; k of 5 to 50), and the diagonal of W was
        better than W itself or a sphere.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        The labels, or 0 .. c-1 in the order of the target's categories.
    n_features_in_ : int
        Coordinates that a query must have.

    Notes
    -----
    Groups of one record each answer as the nearest record does. Cost of fitting O(g d^3), of a query O(g d^2).

    Examples
    --------
    >>> from sfumato.core.groups import summarize
    >>> X = np.array([[0.0, 0.0], [0.0, 2.0], [5.0, 0.0], [5.0, 2.0]])
    >>> groups = summarize(X, np.array([0, 0, 1, 1]), np.full(4, 2))
    >>> GroupNeighbours().fit(groups, ["left", "right"]).predict([[1.0, 9.0], [4.0, 9.0]]).tolist()
    ['left', 'right']
    """

    shrinkage: float = 4.0
    classes_: NDArray[Any] = field(init=False, repr=False)
    n_features_in_: int = field(init=False, repr=False)
    _pieces: GroupClassParts = field(init=False, repr=False)
    _whitener: Floats = field(init=False, repr=False)
    _log_det: Floats = field(init=False, repr=False)

    def fit(self, groups: Groups, labels: Any) -> GroupNeighbours:
        """Fit to groups of one class each.

        Parameters
        ----------
        groups : Groups
        labels : array of shape (g,)
            The class of each group.
        """
        return self._learn(parts_of_labels(groups, labels))

    def fit_target(self, groups: Groups, layout: Layout, column: str) -> GroupNeighbours:
        """Fit to groups of mixed classes, with the class as a one-hot block of the moments.

        Each group is divided into its classes by `sfumato.mining.neighbours.parts_of_target`.

        Parameters
        ----------
        groups : Groups
        layout : tuple of Block
            What the coordinates mean. A query has all of them but the target's, in this order.
        column : str
            The target.
        """
        return self._learn(parts_of_target(groups, layout, column))

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Share of each class in the density at each row, of shape (rows, c)."""
        check_fitted(self, "classes_")
        rows = check_rows(X, self.n_features_in_)
        answer = np.empty((len(rows), len(self.classes_)))
        for part in blocks(len(rows), self._pieces.mean.size):
            answer[part] = self._shares(rows[part])
        return answer

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Class with the highest density at each row."""
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[np.argmax(shares, axis=1)])

    def _learn(self, pieces: GroupClassParts) -> GroupNeighbours:
        if not self.shrinkage >= 0.0 or not np.isfinite(self.shrinkage):
            raise OptionError(f"shrinkage is {self.shrinkage!r}; give a number from 0")
        covariance = group_covariances(pieces, self.shrinkage)
        whitener, log_det = whiteners(covariance)
        self._whitener, self._log_det = whitener[pieces.group], log_det[pieces.group]
        self.classes_, self.n_features_in_, self._pieces = pieces.classes, pieces.mean.shape[1], pieces
        return self

    def _shares(self, rows: Floats) -> Floats:
        log_density = log_gaussian(rows, self._pieces.mean, self._whitener, self._log_det) + np.log(self._pieces.weight)
        density = np.exp(log_density - log_density.max(axis=1, keepdims=True))  # the densest group has 1: no underflow
        shares = density @ np.equal.outer(self._pieces.code, np.arange(len(self.classes_))).astype(np.float64)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def group_covariances(pieces: GroupClassParts, shrinkage: float) -> Floats:
    """Shrink each group's covariance toward the common variances.

    C_g = (S_g + t diag(W)) / (n_g + t) with t = shrinkage * d, after Friedman (1989). A millionth of the mean variance
    of all records is added, so that a density exists where coordinates do not vary inside groups.
    """
    total, d = pieces.count.sum(), pieces.mean.shape[1]
    within = np.diagonal(pieces.scatter, axis1=1, axis2=2).sum(axis=0) / total
    centre = pieces.weight @ pieces.mean / pieces.weight.sum()
    between = pieces.weight @ (pieces.mean - centre) ** 2 / pieces.weight.sum()
    variance = float((within + between).mean())
    floor = np.eye(d) * _FLOOR * (variance if variance > 0.0 else 1.0)
    strength = shrinkage * d
    drawn = pieces.scatter + strength * np.diag(within)
    return np.asarray(drawn / (pieces.count + strength)[:, None, None] + floor)


@dataclass(kw_only=True, eq=False)
class CentroidNeighbours:
    """Classify by the nearest centroid: its class, or its most frequent class.

    The simple rule: it uses means and class frequencies alone. `GroupNeighbours` was better at 20 of 24 points measured
    (`benchmarks/results/mine_groups.md`).

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
    n_features_in_ : int

    Examples
    --------
    >>> from sfumato.core.groups import summarize
    >>> groups = summarize(np.array([[0.0], [2.0], [5.0], [7.0]]), np.array([0, 0, 1, 1]), np.full(4, 2))
    >>> CentroidNeighbours().fit(groups, ["low", "high"]).predict([[3.0], [4.0]]).tolist()
    ['low', 'high']
    """

    classes_: NDArray[Any] = field(init=False, repr=False)
    n_features_in_: int = field(init=False, repr=False)
    _mean: Floats = field(init=False, repr=False)
    _shares: Floats = field(init=False, repr=False)

    def fit(self, groups: Groups, labels: Any) -> CentroidNeighbours:
        """Fit to groups of one class each; ``labels`` has the class of each group."""
        pieces = parts_of_labels(groups, labels)
        shares = np.equal.outer(pieces.code, np.arange(len(pieces.classes))).astype(np.float64)
        return self._learn(pieces.mean, shares, pieces.classes)

    def fit_target(self, groups: Groups, layout: Layout, column: str) -> CentroidNeighbours:
        """Fit to groups of mixed classes by the class frequencies in their moments."""
        counts = class_counts(groups, layout, column)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return self._learn(groups.mean[:, attributes(layout, column)], shares, np.arange(counts.shape[1]))

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Class frequencies of the nearest group; ties go to the first group."""
        check_fitted(self, "classes_")
        return self._shares[nearest_centre(check_rows(X, self.n_features_in_), self._mean)]

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Most frequent class of the nearest group."""
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[np.argmax(shares, axis=1)])

    def _learn(self, mean: Floats, shares: Floats, classes: NDArray[Any]) -> CentroidNeighbours:
        self.classes_, self.n_features_in_, self._mean, self._shares = classes, mean.shape[1], mean, shares
        return self
