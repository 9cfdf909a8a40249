"""Chameleon: clusters of any shape from a graph of near neighbours, the tables' hierarchical method [OZ03, sec. 5]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from sfumato.core.errors import BadInput, OptionError
from sfumato.mining.clusters import check_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = [
    "LEAST_SIMILARITY",
    "Chameleon",
    "Links",
    "bisector",
    "goodness",
    "join_apart",
    "labels_at",
    "link",
    "load_metis",
    "loss",
    "merge_all",
    "neighbour_graph",
    "split_loose",
    "stop_at",
    "sub_clusters",
]

LEAST_SIMILARITY = 1e-3
"""Similarity of neighbours that lie very far: an edge never vanishes, since METIS takes weights above zero only."""


def neighbour_graph(values: NDArray[np.float64], n_neighbors: int) -> csr_array:
    """Join each row to its nearest neighbours by edges that are the heavier the nearer they are.

    An edge stands where either end is among the n_neighbors nearest of the other. Its weight is the similarity
    exp(-(distance / D)^2), where D is the mean distance of all rows to their neighbours: it does not change when all
    columns are multiplied by one number, and one scale for all rows lets edges across sparse places weigh little,
    which tells noise and gaps from clusters. The paper leaves the similarity open.

    Returns
    -------
    csr_array of shape (n, n)
        Symmetric, no loops, weights from LEAST_SIMILARITY to 1.
    """
    from scipy.sparse import csr_array
    from sklearn.neighbors import NearestNeighbors

    n = len(values)
    k = min(n_neighbors, n - 1)
    distance, neighbour = NearestNeighbors(n_neighbors=k).fit(values).kneighbors()
    scale = distance.mean() or 1.0  # all rows equal: all edges weigh 1
    similarity = np.maximum(np.exp(-((distance / scale) ** 2)), LEAST_SIMILARITY)
    directed = csr_array((similarity.ravel(), neighbour.ravel(), np.arange(n + 1) * k), shape=(n, n))
    graph = csr_array(directed.maximum(directed.T))
    graph.sort_indices()
    return graph


if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Rows = NDArray[np.int64]

QUARTER = 500
"""METIS's ufactor for finding sub-clusters: the larger side holds at most 1.5 / 2 of the rows, the smaller 25 %."""
HALF = 100
"""METIS's ufactor for the bisector of a cluster, whose sides are roughly equal: the larger holds at most 55 %."""
TENTH = 800
"""METIS's ufactor for the search of a weak place in a sub-cluster: the smaller side holds at least 10 %."""
LOOSE = 0.25
"""A sub-cluster is loose where its lightest cut weighs less than this share of what is usual."""
LEAST_PIECE = 0.05
"""A loose sub-cluster is not cut into pieces below this share of the size that sub-clusters may have."""
_TRIES = {QUARTER: 10, TENTH: 10, HALF: 3}  # cuts that METIS tries; it keeps the lightest
_UNITS = 1000  # METIS counts in whole numbers: a similarity of 1 weighs this much


def load_metis() -> Any:
    """Give the module pymetis.

    Raises
    ------
    OptionError
        Where it is not installed.
    """
    try:
        import pymetis
    except ImportError:
        raise OptionError(
            "Chameleon needs METIS through pymetis, which is not installed; run pip install pymetis"
        ) from None
    return pymetis


def sub_clusters(graph: csr_array, size: int, seed: int) -> Rows:
    """Cut the graph in two along light edges, and the parts again, until none has more than `size` rows.

    Each cut leaves at least 25 % of the rows on either side [phase 1]. The paper cuts the largest part first; since
    all parts above `size` are cut in the end, the order changes nothing. A graph in pieces starts from its pieces.

    Returns
    -------
    ndarray of shape (n,)
        Sub-cluster of each row, numbered from 0.
    """
    from scipy.sparse.csgraph import connected_components

    pieces = connected_components(graph, directed=False)[1].astype(np.int64)
    waiting, found = _members(pieces), []
    while waiting:
        rows = waiting.pop()
        if len(rows) <= size:
            found.append(rows)
            continue
        _, _, side = _cut(graph, rows, QUARTER, seed)
        waiting += [rows[side], rows[~side]]
    return _labels(found)


def split_loose(graph: csr_array, labels: Rows, size: int, seed: int) -> Rows:
    """Cut sub-clusters again that hold together at one thin place only.

    Not in the paper. A cut that must leave 25 % on either side can leave the end of one cluster and the end of another
    in one sub-cluster. Its own bisector then weighs next to nothing, which makes its relative interconnectivity
    with both clusters huge, and merges them. So a sub-cluster whose lightest cut is below LOOSE times the median of
    all (taken as growing with the square root of the size) is cut there, down to pieces of LEAST_PIECE * size rows.
    """
    parts = _members(labels)
    cuts = [_cut(graph, rows, TENTH, seed) for rows in parts]
    usual = np.median([weight for weight, _, _ in cuts]) / np.sqrt(np.median([len(rows) for rows in parts]))
    waiting, found = list(zip(parts, cuts, strict=True)), []
    while waiting:
        rows, (weight, _, side) = waiting.pop()
        pieces = [rows[side], rows[~side]]
        if weight < LOOSE * usual * np.sqrt(len(rows)) and min(map(len, pieces)) >= max(2.0, LEAST_PIECE * size):
            waiting += [(piece, _cut(graph, piece, TENTH, seed)) for piece in pieces]
        else:
            found.append(rows)
    return _labels(found)


def bisector(graph: csr_array, rows: Rows, seed: int) -> tuple[float, int]:
    """Give the weight and the number of the edges that a cluster loses when it is cut into two nearly equal halves.

    The weight is the internal interconnectivity |EC_C|, weight over number the internal closeness S_EC_C.
    """
    weight, edges, _ = _cut(graph, rows, HALF, seed)
    return weight, edges


def _cut(graph: csr_array, rows: Rows, imbalance: int, seed: int) -> tuple[float, int, NDArray[np.bool_]]:
    """Cut the graph of some rows in two: weight and number of the edges cut, and the side of each row."""
    if len(rows) < 2:
        return 0.0, 0, np.zeros(len(rows), dtype=np.bool_)
    inside = graph[rows][:, rows]
    side = _sides(inside, imbalance, seed)
    start = np.repeat(side, np.diff(inside.indptr))
    across = start & ~side[inside.indices]  # each edge is stored twice: one way is enough
    return float(inside.data[across].sum()), int(across.sum()), side


def _sides(graph: csr_array, imbalance: int, seed: int) -> NDArray[np.bool_]:
    """Tell for each row on which side of a light cut it lies; neither side is empty."""
    n = graph.shape[0]
    if n > 2 and graph.nnz:
        metis = load_metis()
        weights = np.maximum(np.rint(graph.data * _UNITS), 1).astype(np.int32)
        options = metis.Options(seed=seed, ufactor=imbalance, ncuts=_TRIES[imbalance])
        edges = metis.CSRAdjacency(graph.indptr, graph.indices)
        cut = metis.part_graph(2, edges, eweights=weights, recursive=True, options=options)
        side = np.asarray(cut.vertex_part) == 1
        if 0 < side.sum() < n:
            return np.asarray(side)
    return np.arange(n) < n // 2  # nothing to choose by


def _members(labels: Rows) -> list[Rows]:
    """Give the rows of each part, in the order of the parts' numbers."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels))[:-1])


def _labels(parts: list[Rows]) -> Rows:
    """Give the number of each row's part, counted from 0."""
    labels = np.empty(sum(map(len, parts)), dtype=np.int64)
    for number, rows in enumerate(parts):
        labels[rows] = number
    return labels


if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Floats = NDArray[np.float64]
    Labels = NDArray[np.int64]


@dataclass
class Links:
    """What the criterion needs of m clusters; merging changes it in place.

    Attributes
    ----------
    size : ndarray of shape (m,)
        Rows of each cluster, |C|.
    inner_weight, inner_closeness : ndarray of shape (m,)
        Of the edges that the cluster's bisector cuts: sum of weights |EC_C| and mean weight S_EC_C.
    weight, edges : ndarray of shape (m, m)
        Of the edges between two clusters: sum of weights |EC_(Ci,Cj)| and number. Zero on the diagonal.
    """

    size: Floats
    inner_weight: Floats
    inner_closeness: Floats
    weight: Floats
    edges: Floats


def link(graph: csr_array, labels: Labels, seed: int) -> Links:
    """Measure the clusters of a graph, each by its own bisector, each pair by the edges between."""
    m = int(labels.max()) + 1
    start = np.repeat(labels, np.diff(graph.indptr))
    pair = start * m + labels[graph.indices]
    weight = np.bincount(pair, weights=graph.data, minlength=m * m).reshape(m, m).astype(np.float64)
    edges = np.bincount(pair, minlength=m * m).reshape(m, m).astype(np.float64)
    np.fill_diagonal(weight, 0.0)
    np.fill_diagonal(edges, 0.0)
    size = np.bincount(labels, minlength=m).astype(np.float64)
    links = Links(size, np.zeros(m), np.zeros(m), weight, edges)
    for cluster in range(m):
        _measure(links, cluster, graph, np.flatnonzero(labels == cluster), seed)
    return links


def goodness(links: Links, alpha: float) -> Floats:
    """Give RI(Ci, Cj) * RC(Ci, Cj)^alpha for all pairs of clusters [phase 2, RI, RC and their product].

    A pair that no edge joins has 0. A pair of which both bisectors cut nothing is joined more tightly than it holds
    together inside: infinite, whatever the formula's 0 / 0.
    """
    share = links.size * links.inner_closeness
    total = links.size[:, None] + links.size
    with np.errstate(divide="ignore", invalid="ignore"):
        interconnectivity = links.weight / ((links.inner_weight[:, None] + links.inner_weight) / 2.0)
        closeness = (links.weight / links.edges) / ((share[:, None] + share) / total)
        product = interconnectivity * closeness**alpha
    return np.where(links.edges > 0, product, 0.0)


def merge_all(graph: csr_array, labels: Labels, alpha: float, seed: int) -> list[tuple[int, int]]:
    """Merge the pair of highest goodness again and again until no edge is left between clusters.

    The bisector is found once for each sub-cluster, and after a merge for the merged cluster alone.

    Returns
    -------
    list of (kept, gone)
        The merged pairs in order; the cluster goes on under the number `kept`.
    """
    links = link(graph, labels, seed)
    labels = labels.copy()
    merges: list[tuple[int, int]] = []
    while True:
        best = goodness(links, alpha)
        kept, gone = (int(i) for i in np.unravel_index(np.argmax(best), best.shape))
        if best[kept, gone] <= 0.0:
            return merges
        labels[labels == gone] = kept
        _fold(links, kept, gone)
        _measure(links, kept, graph, np.flatnonzero(labels == kept), seed)
        merges.append((kept, gone))


def join_apart(values: Floats, labels: Labels) -> list[tuple[int, int]]:
    """Merge clusters that no edge joins, the pair with the smallest gap between any two of their rows first.

    The paper is silent about a graph in pieces; its criterion is 0 for all of them.
    """
    from scipy.spatial import KDTree

    alive, place = np.unique(labels, return_inverse=True)
    gap = np.full((len(alive), len(alive)), np.inf)
    for i in range(len(alive) if len(alive) > 1 else 0):
        distance, _ = KDTree(values[place == i]).query(values)
        np.minimum.at(gap[i], place, distance)
    np.fill_diagonal(gap, np.inf)
    merges: list[tuple[int, int]] = []
    while len(merges) < len(alive) - 1:
        kept, gone = np.unravel_index(np.argmin(gap), gap.shape)
        gap[kept] = gap[:, kept] = np.minimum(gap[kept], gap[gone])
        gap[gone] = gap[:, gone] = gap[kept, kept] = np.inf
        merges.append((int(alive[kept]), int(alive[gone])))
    return merges


def stop_at(labels: Labels, merges: list[tuple[int, int]], n_clusters: int, smallest: float) -> int:
    """Give the number of merges after which n_clusters clusters of `smallest` rows or more are left, the last such.

    If that number is never reached, `smallest` is halved until it is.
    """
    size = np.bincount(labels)
    left = [int((size >= max(smallest, 1.0)).sum())]
    for kept, gone in merges:
        before = int(size[kept] >= smallest) + int(size[gone] >= smallest)
        size[kept] += size[gone]
        size[gone] = 0
        left.append(left[-1] - before + int(size[kept] >= smallest))
    enough = np.flatnonzero(np.array(left) >= n_clusters)
    if len(enough):
        return int(enough[-1])
    return stop_at(labels, merges, n_clusters, smallest / 2.0)


def labels_at(labels: Labels, merges: list[tuple[int, int]]) -> Labels:
    """Give the cluster of each row after these merges."""
    cluster = np.arange(int(labels.max()) + 1)
    for kept, gone in merges:
        cluster[cluster == gone] = kept
    return np.asarray(cluster[labels])


def loss(graph: csr_array, labels: Labels) -> float:
    """Give the normalised cut: the sum over clusters of the share of edge weight that leaves the cluster.

    It is 0 where no edge leaves any cluster. Noise, label -1, is no cluster, but edges into it leave one.
    """
    start, end = np.repeat(labels, np.diff(graph.indptr)), labels[graph.indices]
    clustered = start >= 0
    all_of_it = np.bincount(start[clustered], weights=graph.data[clustered])
    leaving = np.bincount(start[clustered], weights=(graph.data * (start != end))[clustered])
    return float((leaving / np.where(all_of_it > 0.0, all_of_it, 1.0)).sum())


def _measure(links: Links, cluster: int, graph: csr_array, rows: Labels, seed: int) -> None:
    weight, edges = bisector(graph, rows, seed)
    links.inner_weight[cluster] = weight
    links.inner_closeness[cluster] = weight / edges if edges else 0.0


def _fold(links: Links, kept: int, gone: int) -> None:
    """Add the links of one cluster to another's and leave it without any."""
    links.size[kept] += links.size[gone]
    for matrix in (links.weight, links.edges):
        matrix[kept] += matrix[gone]
        matrix[:, kept] += matrix[:, gone]
        matrix[gone] = matrix[:, gone] = matrix[kept, kept] = 0.0


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
    >>> from benchmarks.chameleon import Chameleon
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
