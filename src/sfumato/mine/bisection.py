"""Min-cut bisection with METIS, and the sub-clusters it leaves: phase 1 of Chameleon (Karypis, Han, Kumar 1999)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import OptionError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Rows = NDArray[np.int64]

__all__ = ["bisector", "load_metis", "split_loose", "sub_clusters"]

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
            "Chameleon needs METIS through pymetis, which is not installed; run pip install 'sfumato[cluster]'"
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
