"""The holistic variant of condensation: K-means, then small clusters dissolved into neighbours [BCG10, sec. 3.1].

It is Vaidya's improvement of condensation (2008), which both KCG12 and BCG10 start from and compare with.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.groups.distances import closest
from sfumato.groups.kmeans import k_means
from sfumato.progress import tell

__all__ = ["dissolve_clusters", "holistic_groups"]


def holistic_groups(
    values: NDArray[np.float64], k: int, rng: np.random.Generator, clusters: int | None = None
) -> list[NDArray[np.int64]]:
    """Group records by K-means into floor(n/k) clusters, and dissolve those that are too small.

    Implements the improved condensation of [BCG10, sec. 3.1].

    Parameters
    ----------
    values : ndarray of shape (n, d)
        Scaled so that Euclid's distance is the one wanted.
    k : int
        Group size, at most n.
    rng : numpy.random.Generator
    clusters : int, optional
        How many K-means starts with, the paper's K; floor(n/k) where it is not given.

    Returns
    -------
    list of ndarray
        At most floor(n/k) groups as rows of values, often far fewer: how many cannot be told beforehand, which is why
        the papers went on to `sfumato.groups.modified`.
    """
    labels, centres = k_means(values, clusters or max(1, len(values) // k), rng)
    labels = dissolve_clusters(values, labels, centres, k)
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    return np.split(order, np.cumsum(sizes[sizes > 0])[:-1])


def dissolve_clusters(
    values: NDArray[np.float64], labels: NDArray[np.int64], centres: NDArray[np.float64], k: int
) -> NDArray[np.int64]:
    """Move the records of clusters smaller than k to the nearest clusters that are left, the smallest cluster first.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    labels : ndarray of shape (n,)
        Cluster of each record.
    centres : ndarray of shape (g, d)
        They stay where they are while records move.
    k : int
        At most n.

    Returns
    -------
    ndarray of shape (n,)
        The labels of clusters that were dissolved are nobody's.

    Notes
    -----
    The paper says no more than "moves records in clusters with fewer than k records to nearest clusters". Here the
    smallest cluster of the moment goes first, so that one that has grown to k by then stays; of equal sizes and equal
    distances the lower cluster. Cost O(n g d).
    """
    labels = np.array(labels, dtype=np.int64)
    counts = np.bincount(labels, minlength=len(centres))
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(counts)[:-1])
    alive = np.flatnonzero(counts)
    while len(alive) > 1 and counts[smallest := alive[np.argmin(counts[alive])]] < k:
        alive = alive[alive != smallest]
        rows = members[smallest]
        target = alive[closest(values[rows], centres[alive])]
        labels[rows] = target
        for row, joined in zip(rows.tolist(), target.tolist(), strict=True):
            members[joined] = np.append(members[joined], row)
            counts[joined] += 1
        tell("grouping", 1.0 - len(alive) / len(centres))
    return labels
