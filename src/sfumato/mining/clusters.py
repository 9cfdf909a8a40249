"""K-means and Gaussian mixtures from counts, means and scatters of groups [AY05, sec. 1, second use].

Of the mixture, the steps are those of Verbeek, Nunnink and Vlassis (Accelerated EM-based clustering of large data sets,
Data Mining and Knowledge Discovery 13, 2006): the records of a group share one responsibility, which makes EM climb a
lower bound of the log-likelihood of the records that needs no more than their moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import BadInput, OptionError
from sfumato.core.groups import Groups, concat, nearest_centre, split_groups

__all__ = [
    "Components",
    "GroupKMeans",
    "GroupMixture",
    "blocks",
    "check_fitted",
    "check_groups",
    "check_rows",
    "check_whole",
    "cut_groups",
    "expect",
    "inertia",
    "lloyd",
    "log_gaussian",
    "maximize",
    "seed_centres",
    "whiteners",
]


def check_groups(groups: Groups) -> None:
    """Refuse unusable groups: none at all, empty ones, or non-finite statistics."""
    if not len(groups):
        raise BadInput("there are 0 groups; provide at least one")
    empty = int((groups.count < 1).sum())
    if empty:
        raise BadInput(f"{empty} of {len(groups)} groups have no records; leave them out")
    flat = groups.scatter.reshape(len(groups), -1)
    odd = int((~np.isfinite(groups.mean).all(axis=1) | ~np.isfinite(flat).all(axis=1)).sum())
    if odd:
        raise BadInput(f"{odd} of {len(groups)} groups have statistics that are not finite; leave them out")


def check_rows(rows: Any, d: int) -> Floats:
    """Rows as a float matrix with the d coordinates of the fitted groups."""
    values = np.asarray(rows, dtype=np.float64)
    if values.ndim != 2:
        raise BadInput(f"rows have {values.ndim} dimensions; give a matrix, one row for each record")
    if values.shape[1] != d:
        raise BadInput(f"rows have {values.shape[1]} coordinates and the groups {d}; encode them as the groups were")
    odd = int((~np.isfinite(values)).any(axis=1).sum())
    if odd:
        raise BadInput(f"{odd} of {len(values)} rows have missing or infinite coordinates; fill them or leave them out")
    return values


def check_whole(name: str, number: int, low: int) -> None:
    """Refuse a parameter that is not an integer or too small."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < low:
        raise OptionError(f"{name} is {number!r}; give a whole number from {low}")


def check_fitted(miner: object, result: str) -> None:
    """Refuse to predict before `fit`."""
    if not hasattr(miner, result):
        raise BadInput(f"{type(miner).__name__} has learned nothing yet; call fit first")


_NUMBERS = 4_000_000
"""Numbers that one block may hold: 32 MB."""


def whiteners(covariance: Floats) -> tuple[Floats, Floats]:
    """For each covariance A = L^-1 with L L^T = C, and log det C.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a covariance is not positive definite.
    """
    lower = np.linalg.cholesky(covariance)
    log_det = 2.0 * np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(axis=-1)
    return np.linalg.solve(lower, np.broadcast_to(np.eye(covariance.shape[-1]), lower.shape)), log_det


def log_gaussian(rows: Floats, mean: Floats, whitener: Floats, log_det: Floats) -> Floats:
    """Compute log N(x; m_j, C_j) = -(d log 2 pi + log det C_j + |A_j (x - m_j)|^2) / 2 for each row and each j.

    Returns
    -------
    ndarray of shape (rows, gaussians)
    """
    g, d = mean.shape
    centre = np.einsum("gij,gj->gi", whitener, mean).reshape(g * d)
    far = (rows @ whitener.reshape(g * d, d).T - centre).reshape(len(rows), g, d)
    return np.asarray(-0.5 * (d * np.log(2.0 * np.pi) + log_det + np.einsum("qgd,qgd->qg", far, far)))


def blocks(rows: int, width: int) -> Iterator[slice]:
    """Slices of rows whose arrays of ``width`` numbers per row stay within a memory bound."""
    step = max(1, _NUMBERS // max(width, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


@dataclass(kw_only=True, eq=False)
class GroupKMeans:
    """K-means on groups; all records of a group share a cluster.

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
    cluster_centers_: Floats = field(init=False, repr=False)
    labels_: Ints = field(init=False, repr=False)
    inertia_: float = field(init=False, repr=False)
    n_iter_: int = field(init=False, repr=False)

    def fit(self, groups: Groups) -> GroupKMeans:
        """Cluster the groups.

        Raises
        ------
        BadInput
            If there are fewer groups, or fewer different centroids, than clusters.
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

    def predict(self, X: Any) -> Ints:  # noqa: N803
        """Nearest cluster of each row."""
        check_fitted(self, "cluster_centers_")
        return nearest_centre(check_rows(X, self.cluster_centers_.shape[1]), self.cluster_centers_)

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


def inertia(groups: Groups, labels: Ints, centres: Floats) -> float:
    """Sum the squared distances of all records to their cluster's centre: sum_g n_g |m_g - c|^2 + tr(S_g)."""
    return float(groups.count @ ((groups.mean - centres[labels]) ** 2).sum(axis=1)) + groups.ssq


def seed_centres(groups: Groups, n_clusters: int, rng: np.random.Generator) -> Floats:
    """Initial centres among the centroids by greedy k-means++, weighted by counts.

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


def lloyd(groups: Groups, centres: Floats, max_iter: int) -> tuple[Ints, Floats, int]:
    """Alternate assignment and centre updates until nothing changes.

    Returns
    -------
    labels, centres, steps
        Each centre is the mean of the records assigned to it.
    """
    labels = np.full(len(groups), -1, dtype=np.int64)
    for step in range(1, max_iter + 1):
        nearest = _fill_empty(groups, nearest_centre(groups.mean, centres), centres)
        if np.array_equal(nearest, labels):
            return labels, centres, step
        labels, centres = nearest, _means(groups, nearest, len(centres))
    return labels, centres, max_iter


def _fill_empty(groups: Groups, labels: Ints, centres: Floats) -> Ints:
    """Move to each empty cluster the group with the highest cost that does not empty its own cluster."""
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


def _means(groups: Groups, labels: Ints, n_clusters: int) -> Floats:
    member = np.equal.outer(np.arange(n_clusters), labels) * groups.count
    return np.asarray(member @ groups.mean / member.sum(axis=1, keepdims=True))


def cut_groups(groups: Groups, *, times: int = 3) -> Groups:
    """Cut groups repeatedly along their longest axis; groups of one record stay.

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
    check_whole("times", times, 0)
    check_groups(groups)
    for _ in range(times):
        larger, single = np.flatnonzero(groups.count > 1), np.flatnonzero(groups.count == 1)
        groups = concat(*split_groups(groups.take(larger)), groups.take(single)) if len(larger) else groups
    return groups


@dataclass(frozen=True, eq=False, repr=False)
class Components:
    """The Gaussians of a mixture: weights (c,), means (c, d), covariances (c, d, d)."""

    weights: Floats
    means: Floats
    covariances: Floats


@dataclass(kw_only=True, eq=False)
class GroupMixture:
    """Gaussian mixture of the records behind groups.

    Parameters
    ----------
    n_components : int, default=1
    reg_covar : float, default=1e-6
        Variance that every record is taken to carry in each coordinate besides its own; keeps covariances positive.
    tol : float, default=1e-3
        EM stops where a step lifts the bound by less than this for each record.
    max_iter : int, default=100
    n_init : int, default=1
        Runs from different K-means seedings; the one of highest bound is kept.
    random_state : int, default=0

    Attributes
    ----------
    weights_, means_, covariances_ : ndarray
    responsibilities_ : ndarray of shape (g, n_components)
        Share of each component in each group.
    lower_bound_ : float
        Lower bound of the mean log-likelihood of the records; equal to it where every group is one record and
        ``reg_covar`` is 0.
    converged_ : bool
    n_iter_ : int

    Examples
    --------
    >>> from sfumato.core.groups import summarize
    >>> X = np.array([[0.0], [2.0], [10.0], [14.0]])
    >>> groups = summarize(X, np.array([0, 0, 1, 1]), np.full(4, 2))
    >>> mixture = GroupMixture(n_components=2).fit(groups)
    >>> sorted(mixture.means_.ravel().round(3).tolist()), sorted(mixture.covariances_.ravel().round(3).tolist())
    ([1.0, 12.0], [1.0, 4.0])
    """

    n_components: int = 1
    reg_covar: float = 1e-6
    tol: float = 1e-3
    max_iter: int = 100
    n_init: int = 1
    random_state: int = 0
    weights_: Floats = field(init=False, repr=False)
    means_: Floats = field(init=False, repr=False)
    covariances_: Floats = field(init=False, repr=False)
    responsibilities_: Floats = field(init=False, repr=False)
    lower_bound_: float = field(init=False, repr=False)
    converged_: bool = field(init=False, repr=False)
    n_iter_: int = field(init=False, repr=False)

    def fit(self, groups: Groups, responsibilities: Any = None) -> GroupMixture:
        """Fit the mixture.

        Parameters
        ----------
        groups : Groups
        responsibilities : array of shape (g, n_components), optional
            Starting point; by default the clusters of `GroupKMeans`.
        """
        self._check(groups)
        best = -np.inf
        for start in self._starts(groups, responsibilities):
            components, shares, bound, steps, converged = self._climb(groups, start)
            if bound > best:
                best, self.lower_bound_, self.n_iter_, self.converged_ = bound, bound, steps, converged
                self.responsibilities_ = shares
                self.weights_, self.means_ = components.weights, components.means
                self.covariances_ = components.covariances
        return self

    def score_samples(self, X: Any) -> Floats:  # noqa: N803
        """Log-density of each row."""
        return np.asarray(np.logaddexp.reduce(self._joint(X), axis=1))

    def score(self, X: Any) -> float:  # noqa: N803
        """Mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Posterior probability of each component at each row."""
        joint = self._joint(X)
        return np.asarray(np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)))

    def predict(self, X: Any) -> Ints:  # noqa: N803
        """Most likely component of each row."""
        return np.asarray(np.argmax(self._joint(X), axis=1))

    def _joint(self, X: Any) -> Floats:  # noqa: N803
        check_fitted(self, "means_")
        rows = check_rows(X, self.means_.shape[1])
        whitener, log_det = whiteners(self.covariances_)
        joint = np.empty((len(rows), len(self.weights_)))
        for part in blocks(len(rows), self.means_.size):
            joint[part] = log_gaussian(rows[part], self.means_, whitener, log_det) + np.log(self.weights_)
        return joint

    def _climb(self, groups: Groups, shares: Floats) -> tuple[Components, Floats, float, int, bool]:
        """Alternate `expect` and `maximize` from given responsibilities until the bound converges."""
        components = maximize(groups, shares, self.reg_covar)
        before = -np.inf
        for step in range(1, self.max_iter + 1):
            shares, bound = expect(groups, components, self.reg_covar)
            components = maximize(groups, shares, self.reg_covar)
            if bound - before < self.tol:
                return components, *expect(groups, components, self.reg_covar), step, True
            before = bound
        return components, *expect(groups, components, self.reg_covar), self.max_iter, False

    def _starts(self, groups: Groups, responsibilities: Any) -> list[Floats]:
        shape = (len(groups), self.n_components)
        if responsibilities is not None:
            given = np.asarray(responsibilities, dtype=np.float64)
            if given.shape != shape:
                raise BadInput(f"responsibilities have shape {given.shape}; give {shape}, a row for each group")
            odd = int((~(given >= 0.0).all(axis=1) | ~np.isclose(given.sum(axis=1), 1.0)).sum())
            if odd:
                raise BadInput(f"the responsibilities of {odd} groups are not shares; each row sums to 1")
            return [given]
        starts = []
        for start in range(self.n_init):
            seed = self.random_state + start
            clusters = GroupKMeans(n_clusters=self.n_components, n_init=1, random_state=seed).fit(groups)
            starts.append(np.eye(self.n_components)[clusters.labels_])
        return starts

    def _check(self, groups: Groups) -> None:
        for name in ("n_components", "n_init", "max_iter"):
            check_whole(name, getattr(self, name), 1)
        check_whole("random_state", self.random_state, 0)
        for name in ("reg_covar", "tol"):
            if not 0.0 <= getattr(self, name) < np.inf:
                raise OptionError(f"{name} is {getattr(self, name)!r}; give a number from 0")
        check_groups(groups)
        if len(groups) < self.n_components:
            raise BadInput(f"there are {len(groups)} groups for {self.n_components} components; ask for fewer")


def expect(groups: Groups, components: Components, reg_covar: float) -> tuple[Floats, float]:
    """Responsibilities: r_gc proportional to w_c exp(mean log-density of the group's records under c).

    The mean log-density needs the moments alone: log N(m_g; mu_c, V_c) - tr(V_c^-1 (S_g / n_g + reg_covar I)) / 2.

    Returns
    -------
    responsibilities : ndarray of shape (g, c)
    bound : float
        sum_g n_g log sum_c w_c exp(...) / sum_g n_g, which the mean log-likelihood of the records is not below. With
        reg_covar it is that of records blurred by this variance, and no step of EM lowers it.
    """
    try:
        whitener, log_det = whiteners(components.covariances)
    except np.linalg.LinAlgError:
        raise BadInput(
            f"a covariance of the {len(components.weights)} components is singular; raise reg_covar or ask for fewer"
        ) from None
    precision = whitener.transpose(0, 2, 1) @ whitener
    constant = np.log(components.weights) - 0.5 * reg_covar * np.trace(precision, axis1=1, axis2=2)
    joint = np.empty((len(groups), len(precision)))
    d = groups.mean.shape[1]
    for part in blocks(len(groups), d * max(d, len(precision))):
        own = groups.scatter[part].reshape(-1, d * d) / groups.count[part, None]
        spread = own @ precision.reshape(len(precision), d * d).T
        joint[part] = log_gaussian(groups.mean[part], components.means, whitener, log_det) - 0.5 * spread + constant
    log_sum = np.logaddexp.reduce(joint, axis=1, keepdims=True)
    return np.exp(joint - log_sum), float(groups.count @ log_sum[:, 0] / groups.count.sum())


def maximize(groups: Groups, responsibilities: Floats, reg_covar: float) -> Components:
    """Components that maximize the bound for given responsibilities, exactly, from the moments.

    w_c = N_c / N, mu_c = sum_g r_gc n_g m_g / N_c, V_c = sum_g r_gc (S_g + n_g (m_g - mu_c)(m_g - mu_c)^T) / N_c
    + reg_covar I, with N_c = sum_g r_gc n_g.
    """
    d = groups.mean.shape[1]
    shares = responsibilities + 1e-100  # a component that no group wants stays a number
    weight = shares * groups.count[:, None]
    total = weight.sum(axis=0)
    means = weight.T @ groups.mean / total[:, None]
    covariances = np.empty((len(total), d, d))
    inside = groups.scatter.reshape(len(groups), d * d)
    for component in range(len(total)):
        apart = groups.mean - means[component]
        spread = (shares[:, component] @ inside).reshape(d, d) + (weight[:, component, None] * apart).T @ apart
        covariances[component] = spread / total[component] + reg_covar * np.eye(d)
    return Components(total / total.sum(), means, covariances)
