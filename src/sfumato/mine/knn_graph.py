"""The graph of nearest neighbours, weighted by similarity: the start of Chameleon (Karypis, Han, Kumar 1999)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = ["LEAST_SIMILARITY", "neighbour_graph"]

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
