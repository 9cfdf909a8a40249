"""`Groups`: the statistics of condensed groups, which all parts of the package share [AY05, sec. 2]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal, TableError
from sfumato.core.groups.facts import CountsKept, Grouped
from sfumato.core.records import BlockKind, Layout, Records, width

__all__ = [
    "Groups",
    "centroids",
    "check_feasible",
    "check_partition",
    "check_values",
    "columns_of_blocks",
    "concat",
    "count_near_identical",
    "eigen",
    "facts_of_groups",
    "label_by_stratum",
    "nearest_centre",
    "response_weights",
    "split_groups",
    "squared_distances",
    "ssq",
    "summarize",
]


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """Statistics of g groups of records in d coordinates.

    Parameters
    ----------
    count : ndarray of shape (g,)
        Records in each group, the paper's n(G).
    mean : ndarray of shape (g, d)
        Centroids.
    scatter : ndarray of shape (g, d, d)
        Sums of products about the centroid. Kept centred because raw sums cancel (errata AY05.9).
    level_sum : ndarray of shape (g,)
        Sum of the records' privacy levels, the paper's Ps(G).
    level_max : ndarray of shape (g,)
        Highest level inside, or an upper bound of it after a split.
    """

    count: Ints
    mean: Floats
    scatter: Floats
    level_sum: Floats
    level_max: Ints

    def __post_init__(self) -> None:
        g, d = self.mean.shape
        shapes = (self.count.shape, self.scatter.shape, self.level_sum.shape, self.level_max.shape)
        if shapes != ((g,), (g, d, d), (g,), (g,)):
            raise ValueError(f"statistics of {g} groups in {d} coordinates have the shapes {shapes}")

    def __len__(self) -> int:
        return len(self.count)

    def __repr__(self) -> str:
        return f"Groups(g={len(self)}, d={self.mean.shape[1]})"

    @property
    def covariance(self) -> Floats:
        """C(G), with divisor n(G) [AY05, observation 2.2]."""
        return np.asarray(self.scatter / self.count[:, None, None])

    @property
    def first_order(self) -> Floats:
        """Fs(G): sums of the coordinates [AY05, sec. 2]."""
        return np.asarray(self.mean * self.count[:, None])

    @property
    def second_order(self) -> Floats:
        """Sc(G): sums of products of coordinates, about the origin [AY05, sec. 2]."""
        outer = self.mean[:, :, None] * self.mean[:, None, :]
        return np.asarray(self.scatter + self.count[:, None, None] * outer)

    @property
    def ssq(self) -> float:
        """Sum of squared distances of all records to their centroids."""
        return float(np.trace(self.scatter, axis1=1, axis2=2).sum())

    def take(self, which: Ints | slice) -> Groups:
        """Select groups."""
        return Groups(
            self.count[which], self.mean[which], self.scatter[which], self.level_sum[which], self.level_max[which]
        )

    def to_sums(self, origin: Floats) -> tuple[Ints, Floats, Floats]:
        """Counts, sums and sums of products about an agreed public point; these add up across owners."""
        shifted = self.mean - origin
        weight = self.count[:, None]
        outer = weight[:, :, None] * shifted[:, :, None] * shifted[:, None, :]
        return self.count, weight * shifted, self.scatter + outer


def summarize(values: Floats, labels: Ints, levels: Ints, count: int | None = None) -> Groups:
    """Statistics of the groups 0 .. g-1 given by labels.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    labels : ndarray of shape (n,)
        Every group from 0 to the last has at least one record.
    levels : ndarray of shape (n,)
    count : int, optional
        Number of groups, where it is known.

    Examples
    --------
    >>> groups = summarize(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1]), np.array([2, 2, 1]))
    >>> groups.count.tolist(), groups.mean.ravel().tolist(), groups.scatter.ravel().tolist()
    ([2, 1], [1.0, 5.0], [2.0, 0.0])
    """
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels, minlength=count or 0)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    ordered = values[order]
    mean = np.add.reduceat(ordered, starts, axis=0) / sizes[:, None]
    centred = ordered - np.repeat(mean, sizes, axis=0)
    scatter = np.empty((len(sizes), values.shape[1], values.shape[1]))
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        rows = centred[starts[same, None] + np.arange(size)]
        scatter[same] = rows.transpose(0, 2, 1) @ rows
    ordered_levels = levels[order]
    return Groups(
        count=sizes.astype(np.int64),
        mean=mean,
        scatter=scatter,
        level_sum=np.add.reduceat(ordered_levels, starts).astype(np.float64),
        level_max=np.maximum.reduceat(ordered_levels, starts).astype(np.int64),
    )


def concat(*parts: Groups) -> Groups:
    """Concatenate groups."""
    return Groups(
        np.concatenate([part.count for part in parts]),
        np.concatenate([part.mean for part in parts]),
        np.concatenate([part.scatter for part in parts]),
        np.concatenate([part.level_sum for part in parts]),
        np.concatenate([part.level_max for part in parts]),
    )


def split_groups(groups: Groups) -> tuple[Groups, Groups]:
    """Cut every group in two along its longest axis, without access to records.

    Implements the split of group statistics [AY05, sec. 3, fig. 7]. A group is taken as uniform along its
    leading eigenvector e1, hence of range a = sqrt(12 * lambda1) (errata AY05.1).

    Notes
    -----
    Departs from the paper for odd counts (errata AY05.3): the range is cut at f = n1/n, the pieces'
    centroids lie at -(1-f)*a/2 and +f*a/2 and their variances along e1 are (f*a)^2/12 and ((1-f)*a)^2/12. At
    f = 1/2 that is the paper's formula, and merging the pieces gives back the parent exactly.
    Ps divides in proportion; both halves inherit the highest level. Cost O(g * d^3).
    """
    if (groups.count < 2).any():
        raise ValueError(f"{int((groups.count < 2).sum())} groups have a single record; only larger ones split")
    eigenvalues, eigenvectors = eigen(groups.covariance)
    lambda1, e1 = np.maximum(eigenvalues[:, -1], 0.0), eigenvectors[:, :, -1]
    reach = np.sqrt(12.0 * lambda1)
    left_count = groups.count // 2
    fraction = left_count / groups.count
    along = e1[:, :, None] * e1[:, None, :]

    def piece(share: np.ndarray, count: np.ndarray, shift: np.ndarray) -> Groups:
        shrunk = (lambda1 * (share**2 - 1.0))[:, None, None] * along  # lambda1 -> share^2 * lambda1
        return Groups(
            count,
            groups.mean + shift[:, None] * e1,
            count[:, None, None] * (groups.covariance + shrunk),
            groups.level_sum * share,
            groups.level_max.copy(),
        )

    left = piece(fraction, left_count, -(1.0 - fraction) * reach / 2.0)
    right = piece(1.0 - fraction, groups.count - left_count, fraction * reach / 2.0)
    return left, right


def eigen(symmetric: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues in ascending order, and eigenvectors as columns with a fixed sign.

    LAPACK leaves the sign open, and what it chooses depends on the processor: the same seed would draw other rows on
    another machine. Here the sum of an eigenvector's entries times cos 1, cos 2, ... is positive, which few vectors
    make 0: of entries that rounding alone tells apart, such as those of two categories, none decides.

    Parameters
    ----------
    symmetric : ndarray of shape (..., d, d)

    Examples
    --------
    >>> values, vectors = eigen(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> values.round(3).tolist(), vectors.round(3).tolist()
    ([1.0, 3.0], [[0.707, 0.707], [-0.707, 0.707]])
    """
    eigenvalues, eigenvectors = np.linalg.eigh(symmetric)
    side = np.cos(np.arange(1.0, symmetric.shape[-1] + 1.0)) @ eigenvectors
    return eigenvalues, eigenvectors * np.where(side < 0.0, -1.0, 1.0)[..., None, :]


Column = tuple[NDArray[np.generic], bool]


def columns_of_blocks(values: Floats, layout: Layout) -> list[Column]:
    """Coordinates of each column, and whether it is numeric."""
    columns: dict[str, tuple[list[Floats], bool]] = {}
    for block in layout:
        parts, number = columns.get(block.column, ([], False))
        columns[block.column] = ([*parts, values[:, block.where]], number or block.kind is BlockKind.NUMBER)
    return [(np.hstack(parts), number) for parts, number in columns.values()]


def count_near_identical(columns: Iterable[Column], labels: Ints) -> int:
    """Rows in groups that vary in no numeric column and in at most one other column.

    A group's mean is then its record; where one column of categories varies, its counts are kept, so that the rows of
    the group are its records in another order.

    Examples
    --------
    >>> age, town = np.array([30.0, 30.0, 30.0, 41.0]), np.array(["Bari", "Oslo", "Oslo", "Oslo"])
    >>> count_near_identical([(age, True), (town, False)], np.array([0, 0, 1, 1]))
    2
    """
    if not len(labels):
        return 0
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    moving, other = np.zeros(len(first), dtype=np.bool_), np.zeros(len(first), dtype=np.int64)
    for cells, number in columns:
        differs = cells != cells[first[group]]
        varies = np.bincount(group[differs.reshape(len(group), -1).any(axis=1)], minlength=len(first)) > 0
        if number:
            moving |= varies
        else:
            other += varies
    return int((~moving & (other <= 1))[group].sum())


def check_values(values: Floats) -> None:
    """Refuse records without finite distances."""
    if not values.shape[1]:
        raise TableError("the records have no coordinates to group by; sanitize at least one column")
    unmeasurable = int((~np.isfinite(values)).any(axis=1).sum())
    if unmeasurable:
        raise TableError(f"{unmeasurable} records hold a number that is not finite; remove them or mark them missing")


def check_feasible(levels: Ints, strata: Ints) -> None:
    """Refuse levels that no grouping can satisfy."""
    if not len(levels):
        raise LevelError("there are 0 records; provide at least as many as the highest privacy level")
    if (levels < 1).any():
        raise LevelError(f"{int((levels < 1).sum())} privacy levels are zero or negative; levels start at 1")
    names, codes = np.unique(strata, return_inverse=True)
    sizes = np.bincount(codes)
    highest = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(highest, codes, levels)
    short = sizes < highest
    if not short.any():
        return
    if len(names) == 1:
        raise LevelError(
            f"there are {sizes[0]} records and the highest privacy level is {highest[0]}; "
            "lower the level or add more records"
        )
    smallest = int(np.argmin(np.where(short, sizes, sizes.max() + 1)))
    raise LevelError(
        f"{int(short.sum())} of {len(names)} strata have fewer records than the highest privacy level in them (the "
        f"smallest has {sizes[smallest]} and level {highest[smallest]}); pool small strata or lower the level"
    )


def label_by_stratum(values: Floats, levels: Ints, strata: Ints, group: Callable[[Ints], Sequence[Ints]]) -> Ints:
    """Label each record with its group: the records of each stratum are grouped apart.

    ``group`` takes the rows of a stratum and gives its groups as places in them.

    Raises
    ------
    LevelError
        If a stratum has fewer records than the highest level in it.
    PrivacyRefusal
        If a group came out smaller than a level inside it; nothing is released then.
    """
    check_feasible(levels, strata)
    check_values(values)
    labels, formed = np.full(len(levels), -1, dtype=np.int64), 0  # a record that no group takes is refused below
    for stratum in np.unique(strata):
        rows = np.flatnonzero(strata == stratum)
        groups = group(rows)
        sizes = [len(members) for members in groups]
        labels[rows[np.concatenate(groups)]] = np.repeat(np.arange(formed, formed + len(groups)), sizes)
        formed += len(groups)
    check_partition(labels, levels)
    return labels


def check_partition(labels: Ints, levels: Ints) -> None:
    """Fail closed if a record has no group, or a group is smaller than a level inside it."""
    sizes = np.bincount(labels) if len(labels) and labels.min() >= 0 else np.zeros(1, dtype=np.int64)
    violations = int((sizes[labels] < levels).sum()) if len(sizes) > labels.max(initial=0) else len(labels)
    if violations or (sizes == 0).any():
        raise PrivacyRefusal(
            f"{violations} records came out in a group smaller than their privacy level; nothing is released. "
            "Please report this as a defect"
        )


def response_weights(layout: Layout, target: str | None, w: float) -> Floats:
    """Weight of each coordinate in the squared distance: w on the response, the rest shared equally.

    Implements d^2 = w (r_v - s_v)^2 + (1 - w) / (m - 1) * sum over the others of (r_l - s_l)^2 [BCG10, eq. 1], with m
    the number of columns. All coordinates of a column, its missing cells too, carry the weight of the column, so that
    a class counts once however many categories it has.

    Parameters
    ----------
    layout : tuple of Block
    target : str or None
        The response; without one all columns weigh the same.
    w : float
        From 0 (the response counts nothing) to 1 (nothing else counts); the paper's default is 0.8.

    Returns
    -------
    ndarray of shape (d,)
        Scale the coordinates by its root, and Euclid's distance is the weighted one.

    Examples
    --------
    >>> from sfumato.core.records import Block, BlockKind
    >>> layout = tuple(Block(name, BlockKind.NUMBER, j, j + 1) for j, name in enumerate("xyz"))
    >>> response_weights(layout, "z", 0.8).round(3).tolist()
    [0.1, 0.1, 0.8]
    """
    if not 0.0 <= w <= 1.0:
        raise OptionError("the weight of the response must lie between 0 and 1; the default is 0.8")
    columns = {block.column for block in layout}
    if target is not None and target not in columns:
        raise OptionError(f"column {target!r} is not among the {len(columns)} sanitized ones; choose another target")
    if target is None or len(columns) == 1:
        return np.full(width(layout), 1.0 / max(1, len(columns)))
    weights = np.full(width(layout), (1.0 - w) / (len(columns) - 1))
    for block in layout:
        if block.column == target:
            weights[block.where] = w
    return weights


def facts_of_groups(
    algorithm: str, records: Records, sizes: Ints, levels: Ints, labels: Ints, tiny: int
) -> tuple[Grouped | CountsKept, ...]:
    """Facts about a partition of records, and about the counts inside groups if there are any to state."""
    categories = sum(block.kind in (BlockKind.CATEGORY, BlockKind.CODE) for block in records.layout)
    missing = sum(block.kind is BlockKind.MISSING for block in records.layout)
    grouped = Grouped(
        algorithm=algorithm,
        records=len(labels),
        groups=len(sizes),
        smallest=int(sizes.min()),
        violations=int((sizes[labels] < levels).sum()),
        tiny=tiny,
        alone=int((sizes == 1).sum()),
        alike=count_near_identical(columns_of_blocks(records.values, records.layout), labels),
    )
    return (grouped, CountsKept(categories, missing)) if categories or missing else (grouped,)


_BLOCK = 4_000_000  # distances held at once


def centroids(values: Floats, groups: Sequence[Ints]) -> Floats:
    """Centroid of each group."""
    sizes = np.array([len(group) for group in groups])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.asarray(np.add.reduceat(values[np.concatenate(groups)], starts, axis=0) / sizes[:, None])


def squared_distances(points: Floats, centres: Floats) -> Floats:
    """Squared distance of every point to every centre, by differences to avoid cancellation."""
    gaps = points[:, None, :] - centres[None, :, :]
    return np.asarray(np.einsum("ijk,ijk->ij", gaps, gaps))


def nearest_centre(rows: Floats, centres: Floats) -> Ints:
    """Nearest centre of each row, the first of equals; computed in blocks of bounded size.

    Examples
    --------
    >>> nearest_centre(np.array([[1.0], [4.0]]), np.array([[0.0], [5.0], [-5.0]])).tolist()
    [0, 1]
    """
    from scipy.spatial.distance import cdist

    block = max(1, _BLOCK // max(1, len(centres)))
    places = np.empty(len(rows), dtype=np.int64)
    for first in range(0, len(rows), block):
        squares = cdist(rows[first : first + block], centres, "sqeuclidean")
        places[first : first + block] = np.argmin(squares, axis=1)
    return places


def ssq(points: Floats) -> float:
    """Sum of squared distances of points to their centroid."""
    return float(((points - points.mean(axis=0)) ** 2).sum())
