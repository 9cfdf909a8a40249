"""Chameleon: clusters of any shape by dynamic modelling (Karypis, Han, Kumar, IEEE Computer 32(8), 1999)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from sfumato.errors import BadInput, OptionError
from sfumato.mine.bisection import load_metis, split_loose, sub_clusters
from sfumato.mine.inputs import check_whole
from sfumato.mine.knn_graph import neighbour_graph
from sfumato.mine.merge import join_apart, labels_at, loss, merge_all, stop_at

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = ["Chameleon"]


class Chameleon(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters that are merged where they are joined as tightly as they hold together inside.

    Three phases: a graph of nearest neighbours, its edges weighted by similarity; sub-clusters, cut out of it along
    light edges by METIS; and merging, always the pair of highest RI * RC^alpha. With EC(i, j) the edges between
    clusters i and j, EC(i) the edges that a min-cut bisector of cluster i cuts, and S the mean weight of edges::

        RI(i, j) = |EC(i, j)| / ((|EC(i)| + |EC(j)|) / 2)                  relative interconnectivity
        RC(i, j) = S_EC(i, j) / (|Ci| / (|Ci| + |Cj|) * S_EC(i)            relative closeness
                                + |Cj| / (|Ci| + |Cj|) * S_EC(j))

    Parameters
    ----------
    n_clusters : int, default=8
    n_neighbors : int, default=10
        Neighbours of a row in the graph.
    partition_size : float, default=0.025
        Rows that a sub-cluster may have, as a share of all; at least `n_neighbors` rows, at most half the
        average cluster.
    alpha : float, default=2.0
        Above 1 closeness counts more, below 1 interconnectivity.
    min_cluster_share : float, default=0.15
        A cluster below this share of the average one (n_samples / n_clusters) is not counted among the `n_clusters`;
        what is left in such clusters is noise, label -1. With 0 nothing is noise, as in the paper.
    n_init : int, default=8
        Runs of partition and merging; the one whose clusters lose the least of their edges is kept.
    random_state : int, RandomState or None, default=None
        METIS starts from random places.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, the largest first; -1 is noise.
    n_subclusters_ : int
        Sub-clusters of the run that was kept.
    loss_ : float
        Normalised cut of the run that was kept: the sum over clusters of the share of edge weight that leaves them.
    n_features_in_ : int

    Notes
    -----
    Distances are taken as the matrix comes: standardize columns first where their units differ.
    What the paper leaves open or does not have: the similarity (`neighbour_graph`); sub-clusters that hold together
    at one thin place are cut there (`split_loose`); several runs, since METIS is random; small clusters as noise;
    pieces of the graph that no edge joins are merged by the gap between them, last (`join_apart`). The paper partitions
    with hMETIS, which is METIS for hypergraphs. Round clusters that overlap are better left to K-means.

    Examples
    --------
    >>> from sfumato.mine import Chameleon
    >>> angle = np.linspace(0.0, 2.0 * np.pi, 150, endpoint=False)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> labels = Chameleon(n_clusters=2, random_state=0).fit_predict(np.concatenate([ring, 0.4 * ring]))
    >>> np.unique(labels[:150]).tolist(), np.unique(labels[150:]).tolist()
    ([0], [1])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 10,
        partition_size: float = 0.025,
        alpha: float = 2.0,
        min_cluster_share: float = 0.15,
        n_init: int = 8,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.partition_size = partition_size
        self.alpha = alpha
        self.min_cluster_share = min_cluster_share
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Chameleon:  # noqa: N803, ARG002
        """Cluster the rows.

        Raises
        ------
        BadInput
            Where there are fewer rows than clusters.
        OptionError
            Where a parameter is out of range or pymetis is not installed.
        """
        self._check()
        values = np.asarray(validate_data(self, X, dtype=np.float64, ensure_min_samples=2))
        if len(values) < self.n_clusters:
            raise BadInput(f"there are {len(values)} rows for {self.n_clusters} clusters; ask for fewer clusters")
        load_metis()
        graph = neighbour_graph(values, self.n_neighbors)
        self.loss_ = np.inf
        for seed in check_random_state(self.random_state).randint(2**31 - 1, size=self.n_init):
            labels, parts = self._run(values, graph, int(seed))
            lost = loss(graph, labels)
            if lost < self.loss_:
                self.loss_, self.labels_, self.n_subclusters_ = lost, labels, parts
        return self

    def _run(self, values: NDArray[np.float64], graph: csr_array, seed: int) -> tuple[NDArray[np.int64], int]:
        """Partition and merge once: the labels and the number of sub-clusters."""
        n, average = len(values), len(values) / self.n_clusters
        size = max(1, int(min(max(self.partition_size * n, self.n_neighbors), average / 2.0)))
        parts = split_loose(graph, sub_clusters(graph, size, seed), size, seed)
        merges = merge_all(graph, parts, self.alpha, seed)
        merges += join_apart(values, labels_at(parts, merges))
        last = stop_at(parts, merges, self.n_clusters, self.min_cluster_share * average)
        return _largest(labels_at(parts, merges[:last]), self.n_clusters), int(parts.max()) + 1

    def _check(self) -> None:
        for name in ("n_clusters", "n_neighbors", "n_init"):
            check_whole(name, getattr(self, name), 1)
        for name, low, high in (("partition_size", 0.0, 1.0), ("min_cluster_share", 0.0, 1.0), ("alpha", 0.0, np.inf)):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int | float) or not low <= number <= high:
                raise OptionError(f"{name} is {number!r}; give a number from {low:g} to {high:g}")


def _largest(labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.int64]:
    """Give the largest clusters numbers from 0, the largest first, and the rest -1 for noise."""
    _, place, count = np.unique(labels, return_inverse=True, return_counts=True)
    number = np.full(len(count), -1, dtype=np.int64)
    number[np.argsort(-count, kind="stable")[:n_clusters]] = np.arange(n_clusters)
    return np.asarray(number[place])
