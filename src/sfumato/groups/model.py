"""`Groups`: the statistics of condensed groups, the one thing that all sides of the house share [AY05, sec. 2]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Groups", "summarize"]


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

    count: NDArray[np.int64]
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]
    level_sum: NDArray[np.float64]
    level_max: NDArray[np.int64]

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
    def covariance(self) -> NDArray[np.float64]:
        """C(G), with divisor n(G) [AY05, observation 2.2]."""
        return np.asarray(self.scatter / self.count[:, None, None])

    @property
    def first_order(self) -> NDArray[np.float64]:
        """Fs(G): sums of the coordinates [AY05, sec. 2]."""
        return np.asarray(self.mean * self.count[:, None])

    @property
    def second_order(self) -> NDArray[np.float64]:
        """Sc(G): sums of products of coordinates, about the origin [AY05, sec. 2]."""
        outer = self.mean[:, :, None] * self.mean[:, None, :]
        return np.asarray(self.scatter + self.count[:, None, None] * outer)

    @property
    def ssq(self) -> float:
        """Sum of squared distances of all records to their centroids."""
        return float(np.trace(self.scatter, axis1=1, axis2=2).sum())

    def take(self, which: NDArray[np.int64] | slice) -> Groups:
        """Select groups."""
        return Groups(
            self.count[which], self.mean[which], self.scatter[which], self.level_sum[which], self.level_max[which]
        )

    def to_sums(
        self, origin: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Give counts, sums and sums of products about an agreed public point, which add across owners."""
        shifted = self.mean - origin
        weight = self.count[:, None]
        outer = weight[:, :, None] * shifted[:, :, None] * shifted[:, None, :]
        return self.count, weight * shifted, self.scatter + outer


def summarize(
    values: NDArray[np.float64], labels: NDArray[np.int64], levels: NDArray[np.int64], count: int | None = None
) -> Groups:
    """Compute the statistics of the groups 0 .. g-1 that labels name.

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
