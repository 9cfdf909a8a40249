"""K-means, holistic groups and modified condensation: move records from larger clusters to smaller [KCG12; BCG10]."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.compiled import compiled, fixed, inner, whole
from sfumato.core.groups import nearest_centre
from sfumato.core.progress import tell

__all__ = [
    "dissolve_clusters",
    "fill_clusters",
    "filled_groups",
    "holistic_groups",
    "k_means",
    "modified_groups",
]

_STEPS = 2_000_000_000  # coordinates that all rounds together may compare
_FEWEST, _MOST = 4, 100  # rounds, whatever that costs
_STEPS_A_CALL = 100_000_000  # coordinates compared between two looks at Ctrl-C and the progress bar


def k_means(values: Floats, count: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Cluster records by Lloyd's algorithm with random records as initial centres.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        Scaled so that Euclid's distance is the one wanted.
    count : int
        Number of clusters, at most n.
    rng : numpy.random.Generator

    Returns
    -------
    labels : ndarray of shape (n,)
        Of equally near centres the first. A cluster may be empty, where records are equal.
    centres : ndarray of shape (count, d)
        The means of the clusters; an empty one keeps the centre that it had.

    Notes
    -----
    Ends when no record changes its cluster, after 100 rounds, or on a large table when a bound on the work is reached,
    after at least 4: with clusters of a few records each most of the gain is in the first rounds. A round costs at most
    n * count * d; a distance is given up as soon as it exceeds the best, and centres that have not moved are looked at
    only where the own centre has moved away. What comes out is Lloyd's K-means to the bit all the same.
    """
    n, d = values.shape
    order = np.argsort(-values.var(axis=0), kind="stable")  # wide coordinates first: most distances end early
    ordered = fixed(values[:, order], np.float64)
    centres = ordered[rng.choice(n, count, replace=False)]
    labels, near = np.zeros(n, dtype=np.int64), np.full(n, -1.0)  # farther than -1: all centres are looked at first
    moved = np.arange(count)
    block = max(1, _STEPS_A_CALL // (count * d))
    steps = 0
    for done in range(_MOST):
        changed = 0
        for first in range(0, n, block):
            last = min(n, first + block)
            some, looked = _assign(ordered, centres, moved, labels, near, first, last)
            changed, steps = changed + some, steps + looked * d
        tell("clustering", max(done / _MOST, min(1.0, steps / _STEPS)))
        if done and not changed:
            break
        before, centres = centres, _means(ordered, labels, centres)
        moved = np.flatnonzero((centres != before).any(axis=1))
        if done + 1 >= _FEWEST and steps >= _STEPS:
            break
    return labels, centres[:, np.argsort(order)]


def _means(values: Floats, labels: Ints, centres: Floats) -> Floats:
    """Mean of each cluster; an empty cluster keeps its centre."""
    sizes = np.bincount(labels, minlength=len(centres))
    sums = np.column_stack([np.bincount(labels, weights=column, minlength=len(centres)) for column in values.T])
    return np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)


@compiled
def _assign(
    values: Floats, centres: Floats, moved: Ints, labels: Ints, near: Floats, first: int, last: int
) -> tuple[int, int]:
    """Label a range of records with their nearest centre; return the number of changes and distances computed.

    ``near`` is how far each record was from its centre in the round before: where it is no farther now, a centre that
    has not moved cannot be nearer.
    """
    d = values.shape[1]
    changed, looked = 0, 0
    for i in range(first, last):
        own = labels[i]
        nearest = 0.0
        for t in range(d):
            gap = values[i, t] - centres[own, t]
            nearest += gap * gap
        away = nearest > near[i]
        count = centres.shape[0] if away else moved.shape[0]
        best = own
        for place in range(count):
            c = place if away else moved[place]
            apart = 0.0
            for t in range(d):
                gap = values[i, t] - centres[c, t]
                apart += gap * gap
                if apart > nearest:
                    break
            if apart < nearest or (apart == nearest and c < best):
                nearest, best = apart, c
        looked += count
        near[i] = nearest
        if best != own:
            labels[i] = best
            changed += 1
    return changed, looked


def holistic_groups(values: Floats, k: int, rng: np.random.Generator, clusters: int | None = None) -> list[Ints]:
    """Group records by K-means into floor(n/k) clusters, and dissolve clusters that are too small.

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
        At most floor(n/k) groups as rows of values, often far fewer: the number is not known beforehand, which is why
        the papers went on to `sfumato.core.groups.kmeans`.
    """
    labels, centres = k_means(values, clusters or max(1, len(values) // k), rng)
    labels = dissolve_clusters(values, labels, centres, k)
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    return np.split(order, np.cumsum(sizes[sizes > 0])[:-1])


def dissolve_clusters(values: Floats, labels: Ints, centres: Floats, k: int) -> Ints:
    """Move the records of clusters smaller than k to the nearest remaining clusters, smallest cluster first.

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
        target = alive[nearest_centre(values[rows], centres[alive])]
        labels[rows] = target
        for row, joined in zip(rows.tolist(), target.tolist(), strict=True):
            members[joined] = np.append(members[joined], row)
            counts[joined] += 1
        tell("grouping", 1.0 - len(alive) / len(centres))
    return labels


_PAIRS_A_CALL = 50_000_000  # coordinates compared between two looks at Ctrl-C and the progress bar


def modified_groups(values: Floats, k: int, rng: np.random.Generator) -> list[Ints]:
    """Group records by K-means into floor(n/k) clusters and fill small ones; see `filled_groups`.

    Implements step 1 of modified condensation [KCG12, fig. 3], lines 4 to 11 of [BCG10, alg. 2]. Step 2, synthetic
    data with the group's mean and the eigenvalues as variances along its axes, is `core.groups.generate`: the figure
    names no law, there it is uniform as in [AY05, eq. 2.1].
    """
    return filled_groups(values, max(1, len(values) // k), rng)


def filled_groups(values: Floats, g: int, rng: np.random.Generator) -> list[Ints]:
    """Group records by K-means into g clusters, and fill clusters that are too small.

    Implements lines 4 to 11 of [BCG10, alg. 2] for one owner.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        Scaled so that Euclid's distance is the weighted one [BCG10, eq. 1].
    g : int
        Number of groups, at most n.
    rng : numpy.random.Generator

    Returns
    -------
    list of ndarray
        The g groups as rows of values, each of floor(n/g) records or more.

    Notes
    -----
    For g = floor(n/k) that is k or a little more [KCG12, step 1-4]. K-means starts from random records, as the papers'
    did; see `k_means` for its rounds. Cost O(n g d) and a round of K-means the same.
    """
    n = len(values)
    labels, centres = k_means(values, g, rng)
    labels = fill_clusters(values, labels, centres, n // g)
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels, minlength=g))[:-1])


def fill_clusters(values: Floats, labels: Ints, centres: Floats, size: int) -> Ints:
    """Move records from larger clusters to smaller ones until each has at least ``size``.

    Implements steps 1-2 to 1-5 of [KCG12, fig. 3], lines 5 to 11 of [BCG10, alg. 2]. The smallest cluster takes the
    records of the others that are closest to its centre, just as many as it lacks, and is then final.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    labels : ndarray of shape (n,)
        Cluster of each record.
    centres : ndarray of shape (g, d)
        They stay where they are while records move.
    size : int
        Records that each cluster must have; at most floor(n/g).

    Returns
    -------
    ndarray of shape (n,)

    Notes
    -----
    Departs from the papers (errata BCG10.4), which sort once and let a donor fall below the limit after its turn:
    here the next cluster is always the smallest one *now* that is not final, and nothing is taken from a final one.
    So the records outside final clusters are always at least ``size`` for each cluster that is not final; a donor may
    become the smallest, and then it is filled in its turn. What is left over stays where K-means put it. Equal
    distances go to the lower row, equal sizes to the lower cluster.
    """
    n, d = values.shape
    if size * len(centres) > n:
        raise ValueError(f"{n} records cannot give {size} to each of {len(centres)} clusters")
    values, centres = fixed(values, np.float64), fixed(centres, np.float64)
    labels = np.array(labels, dtype=np.int64)
    counts = np.bincount(labels, minlength=len(centres)).astype(np.int64)
    final = np.zeros(len(centres), dtype=np.bool_)
    clusters = _Clusters(labels, counts, final, np.arange(n))
    remaining, finished = n, False
    while not finished:
        batch = max(1, _PAIRS_A_CALL // (remaining * d + 1))
        remaining, finished = _fill(values, centres, size, clusters, remaining, batch)
        tell("grouping", 1.0 if finished else 1.0 - remaining / n)
    return labels


class _Clusters(NamedTuple):
    """Clusters while they are filled: that of each record, their sizes, which are final, and records outside these."""

    labels: Ints
    counts: Ints
    final: Bools
    left: Ints


@compiled
def _fill(
    values: Floats, centres: Floats, size: int, clusters: _Clusters, remaining: int, batch: int
) -> tuple[int, bool]:
    """Fill up to ``batch`` clusters; return the number of remaining records and whether all clusters have enough."""
    labels, counts, final, left = clusters.labels, clusters.counts, clusters.final, clusters.left
    distance, row = np.empty(size), np.empty(size, dtype=np.int64)
    for _ in range(batch):
        smallest = whole(-1)
        for c in range(counts.shape[0]):
            if not final[c] and (smallest < 0 or counts[c] < counts[smallest]):
                smallest = c
        if smallest < 0 or counts[smallest] >= size:
            return remaining, True
        need = size - counts[smallest]
        _closest_others(values, centres[smallest], clusters, remaining, smallest, need, distance, row)
        for place in range(need):
            counts[labels[row[place]]] -= 1
            labels[row[place]] = smallest
        counts[smallest], final[smallest] = size, True
        kept = 0
        for place in range(remaining):
            if labels[left[place]] != smallest:
                left[kept] = left[place]
                kept += 1
        remaining = kept
    return remaining, False


@inner
def _closest_others(
    values: Floats,
    centre: Floats,
    clusters: _Clusters,
    remaining: int,
    own: int,
    need: int,
    distance: Floats,
    row: Ints,
) -> None:
    """Heap of the records of other clusters closest to a centre, with the farthest on top.

    Rows come in ascending order, so a record that is as far as the top never replaces it.
    """
    held, labels, left = 0, clusters.labels, clusters.left
    for place in range(remaining):
        i = left[place]
        if labels[i] == own:
            continue
        limit = distance[0] if held == need else np.inf
        apart = 0.0
        for t in range(values.shape[1]):
            gap = values[i, t] - centre[t]
            apart += gap * gap
            if apart >= limit:
                break
        if apart >= limit:
            continue
        if held < need:
            _sift_up(distance, row, held, apart, i)
            held += 1
        else:
            _sift_down(distance, row, need, apart, i)


@inner
def _sift_up(distance: Floats, row: Ints, spot: int, apart: float, record: int) -> None:
    """Insert a record at the end of the heap and sift it up."""
    while spot > 0:
        above = (spot - 1) // 2
        if distance[above] > apart or (distance[above] == apart and row[above] > record):
            break
        distance[spot], row[spot] = distance[above], row[above]
        spot = above
    distance[spot], row[spot] = apart, record


@inner
def _sift_down(distance: Floats, row: Ints, held: int, apart: float, record: int) -> None:
    """Replace the top of the heap and sift it down."""
    spot = 0
    while 2 * spot + 1 < held:
        below = 2 * spot + 1
        other = below + 1
        if other < held and (
            distance[other] > distance[below] or (distance[other] == distance[below] and row[other] > row[below])
        ):
            below = other
        if distance[below] < apart or (distance[below] == apart and row[below] < record):
            break
        distance[spot], row[spot] = distance[below], row[below]
        spot = below
    distance[spot], row[spot] = apart, record
