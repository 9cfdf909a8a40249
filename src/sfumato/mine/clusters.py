"""K-means on groups: Lloyd's steps on weighted centroids, inertia that of the records [AY05, sec. 1, second use]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import BadInput
from sfumato.mine.inputs import blocks, check_fitted, check_groups, check_rows, check_whole

if TYPE_CHECKING:
    from sfumato.core.groups import Groups

__all__ = ["GroupKMeans", "cut_groups", "inertia", "lloyd", "seed_centres"]


@dataclass(kw_only=True, eq=False)
class GroupKMeans:
    """K-means of the records behind groups, where the records of a group go to one cluster together.

    The sum of squares of n records with mean m and scatter S about a centre c is n |m - c|^2 + tr(S). The second term
    does not depend on c, so Lloyd's steps on centroids weighted by counts are exact; with it the inertia is that
    of the records under the same assignment.

    Parameters
    ----------
    n_clusters : int, default=8
    n_init : int, default=10
        Seedings; the run of lowest inertia is kept.
    max_iter : int, default=300
        Lloyd steps of one run.
    random_state : int, default=0
        Seed of the seedings: the same groups always give the same clusters.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d)
    labels_ : ndarray of shape (g,)
        Cluster of each group.
    inertia_ : float
        Sum of squared distances of the *records* to the centres of their groups' clusters.
    n_iter_ : int
        Lloyd steps of the run that was kept.

    Examples
    --------
    >>> from sfumato.core.groups import summarize
    >>> X = np.array([[0.0], [2.0], [10.0], [12.0], [14.0], [16.0]])
    >>> groups = summarize(X, np.array([0, 0, 1, 1, 2, 2]), np.full(6, 2))
    >>> clusters = GroupKMeans(n_clusters=2).fit(groups)
    >>> sorted(clusters.cluster_centers_.ravel().tolist()), clusters.inertia_
    ([1.0, 13.0], 22.0)
    """

    n_clusters: int = 8
    n_init: int = 10
    max_iter: int = 300
    random_state: int = 0
    cluster_centers_: NDArray[np.float64] = field(init=False, repr=False)
    labels_: NDArray[np.int64] = field(init=False, repr=False)
    inertia_: float = field(init=False, repr=False)
    n_iter_: int = field(init=False, repr=False)

    def fit(self, groups: Groups) -> GroupKMeans:
        """Cluster the groups.

        Raises
        ------
        BadInput
            Where there are fewer groups, or fewer different centroids, than clusters.
        """
        self._check(groups)
        best = np.inf
        for start in range(self.n_init):
            rng = np.random.default_rng([self.random_state, start])
            seeds = seed_centres(groups, self.n_clusters, rng)
            labels, centres, steps = lloyd(groups, seeds, self.max_iter)
            reached = inertia(groups, labels, centres)
            if reached < best:
                best, self.inertia_, self.n_iter_ = reached, reached, steps
                self.labels_, self.cluster_centers_ = labels, centres
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """Cluster whose centre is nearest to each row."""
        check_fitted(self, "cluster_centers_")
        return _nearest(check_rows(X, self.cluster_centers_.shape[1]), self.cluster_centers_)

    def _check(self, groups: Groups) -> None:
        for name in ("n_clusters", "n_init", "max_iter"):
            check_whole(name, getattr(self, name), 1)
        check_whole("random_state", self.random_state, 0)
        check_groups(groups)
        if len(groups) < self.n_clusters:
            raise BadInput(f"there are {len(groups)} groups for {self.n_clusters} clusters; ask for fewer clusters")
        different = len(np.unique(groups.mean, axis=0))
        if different < self.n_clusters:
            raise BadInput(
                f"the {len(groups)} groups have {different} different centroids for {self.n_clusters} clusters; "
                "ask for fewer clusters"
            )


def inertia(groups: Groups, labels: NDArray[np.int64], centres: NDArray[np.float64]) -> float:
    """Sum the squared distances of all records to their cluster's centre: sum_g n_g |m_g - c|^2 + tr(S_g)."""
    return float(groups.count @ ((groups.mean - centres[labels]) ** 2).sum(axis=1)) + groups.ssq


def seed_centres(groups: Groups, n_clusters: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Choose first centres among the centroids by greedy k-means++, weighted by counts.

    A centroid is drawn with probability proportional to n_g D_g^2, where D_g is its distance to the nearest centre
    chosen so far (Arthur and Vassilvitskii, SODA 2007); of 2 + log(n_clusters) draws the one that lowers the sum most
    is kept.
    """
    from scipy.spatial.distance import cdist

    trials = 2 + int(np.log(n_clusters))
    chosen = [int(rng.choice(len(groups), p=groups.count / groups.count.sum()))]
    gap = cdist(groups.mean, groups.mean[chosen], "sqeuclidean")[:, 0]
    while len(chosen) < n_clusters:
        weight = groups.count * gap
        drawn = rng.choice(len(groups), size=trials, p=weight / weight.sum())
        left = np.minimum(gap[:, None], cdist(groups.mean, groups.mean[drawn], "sqeuclidean"))
        best = int(np.argmin(groups.count @ left))
        chosen.append(int(drawn[best]))
        gap = left[:, best]
    return np.asarray(groups.mean[chosen])


def lloyd(
    groups: Groups, centres: NDArray[np.float64], max_iter: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Assign groups to the nearest centre and move the centres to the mean of their records, until nothing changes.

    Returns
    -------
    labels, centres, steps
        Each centre is the mean of the records assigned to it.
    """
    labels = np.full(len(groups), -1, dtype=np.int64)
    for step in range(1, max_iter + 1):
        nearest = _fill_empty(groups, _nearest(groups.mean, centres), centres)
        if np.array_equal(nearest, labels):
            return labels, centres, step
        labels, centres = nearest, _means(groups, nearest, len(centres))
    return labels, centres, max_iter


def _nearest(rows: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.int64]:
    from scipy.spatial.distance import cdist

    nearest = np.empty(len(rows), dtype=np.int64)
    for part in blocks(len(rows), len(centres)):
        nearest[part] = np.argmin(cdist(rows[part], centres, "sqeuclidean"), axis=1)
    return nearest


def _fill_empty(groups: Groups, labels: NDArray[np.int64], centres: NDArray[np.float64]) -> NDArray[np.int64]:
    """Move to each empty cluster the group that costs most where it is and does not leave its own cluster empty."""
    sizes = np.bincount(labels, minlength=len(centres))
    if (sizes > 0).all():
        return labels
    cost = groups.count * ((groups.mean - centres[labels]) ** 2).sum(axis=1)
    labels = labels.copy()
    for empty in np.flatnonzero(sizes == 0):
        group = int(np.argmax(np.where(sizes[labels] > 1, cost, -1.0)))
        sizes[labels[group]] -= 1
        labels[group], cost[group], sizes[empty] = empty, 0.0, 1
    return labels


def _means(groups: Groups, labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.float64]:
    member = np.equal.outer(np.arange(n_clusters), labels) * groups.count
    return np.asarray(member @ groups.mean / member.sum(axis=1, keepdims=True))


def cut_groups(groups: Groups, *, times: int = 3) -> Groups:
    """Cut every group along its longest axis, then the pieces, and so on; a piece of one record stays.

    A miner that sends a whole group one way is coarse where a group lies across a border; its pieces need not go
    together. They are made of the group's statistics alone, by `core.groups.split_groups`, so they say nothing about
    a record that the group did not, although they count fewer than k.

    Parameters
    ----------
    groups : Groups
    times : int, default=3
        Cuts one after the other, which give up to 2^times pieces a group.

    Notes
    -----
    Merged again, the pieces are the group, so counts, means and scatters of all records stay as they were.

    Examples
    --------
    >>> from sfumato.core.groups import summarize
    >>> groups = summarize(np.arange(8.0)[:, None], np.zeros(8, dtype=np.int64), np.full(8, 8))
    >>> len(cut_groups(groups, times=2)), np.sort(cut_groups(groups, times=2).mean.ravel()).round(2).tolist()
    (4, [0.52, 2.51, 4.49, 6.48])
    """
    from sfumato.core.groups import concat, split_groups

    check_whole("times", times, 0)
    check_groups(groups)
    for _ in range(times):
        larger, single = np.flatnonzero(groups.count > 1), np.flatnonzero(groups.count == 1)
        groups = concat(*split_groups(groups.take(larger)), groups.take(single)) if len(larger) else groups
    return groups
