"""Merging sub-clusters by relative interconnectivity and closeness: phase 2 of Chameleon (Karypis, Han, Kumar 1999)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato.mine.bisection import bisector

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Floats = NDArray[np.float64]
    Labels = NDArray[np.int64]

__all__ = ["Links", "goodness", "join_apart", "labels_at", "link", "loss", "merge_all", "stop_at"]


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

    Where there are never so many, `smallest` is halved until there are.
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
