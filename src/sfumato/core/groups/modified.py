"""Modified condensation: K-means, then records moved from larger clusters to smaller ones [KCG12, fig. 3; BCG10]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import compiled, fixed, inner, whole
from sfumato.core.groups.kmeans import k_means
from sfumato.core.progress import tell

__all__ = ["fill_clusters", "filled_groups", "modified_groups"]

_PAIRS_A_CALL = 50_000_000  # coordinates compared between two looks at Ctrl-C and the progress bar


def modified_groups(values: NDArray[np.float64], k: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Group records by K-means into floor(n/k) clusters, and fill those that are too small; see `filled_groups`.

    Implements step 1 of modified condensation [KCG12, fig. 3], lines 4 to 11 of [BCG10, alg. 2]. Step 2, synthetic
    data with the group's mean and the eigenvalues as variances along its axes, is `core.groups.generate`: the figure
    names no law, there it is uniform as in [AY05, eq. 2.1].
    """
    return filled_groups(values, max(1, len(values) // k), rng)


def filled_groups(values: NDArray[np.float64], g: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Group records by K-means into g clusters, and fill those that are too small.

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


def fill_clusters(
    values: NDArray[np.float64], labels: NDArray[np.int64], centres: NDArray[np.float64], size: int
) -> NDArray[np.int64]:
    """Move records from larger clusters to smaller ones until each has at least so many.

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
    left = np.arange(n)
    remaining, finished = n, False
    while not finished:
        batch = max(1, _PAIRS_A_CALL // (remaining * d + 1))
        remaining, finished = _fill(values, centres, size, labels, counts, final, left, remaining, batch)
        tell("grouping", 1.0 if finished else 1.0 - remaining / n)
    return labels


@compiled
def _fill(
    values: NDArray[np.float64],
    centres: NDArray[np.float64],
    size: int,
    labels: NDArray[np.int64],
    counts: NDArray[np.int64],
    final: NDArray[np.bool_],
    left: NDArray[np.int64],
    remaining: int,
    batch: int,
) -> tuple[int, bool]:
    """Fill up to ``batch`` clusters; gives how many records are outside final ones, and whether all have enough."""
    distance, row = np.empty(size), np.empty(size, dtype=np.int64)
    for _ in range(batch):
        smallest = whole(-1)
        for c in range(counts.shape[0]):
            if not final[c] and (smallest < 0 or counts[c] < counts[smallest]):
                smallest = c
        if smallest < 0 or counts[smallest] >= size:
            return remaining, True
        need = size - counts[smallest]
        _closest_others(values, centres[smallest], labels, left, remaining, smallest, need, distance, row)
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
    values: NDArray[np.float64],
    centre: NDArray[np.float64],
    labels: NDArray[np.int64],
    left: NDArray[np.int64],
    remaining: int,
    own: int,
    need: int,
    distance: NDArray[np.float64],
    row: NDArray[np.int64],
) -> None:
    """Find the records of other clusters that are closest to a centre; they make a heap with the farthest on top.

    Rows come in ascending order, so a record that is as far as the top never replaces it.
    """
    held = 0
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
            _rise(distance, row, held, apart, i)
            held += 1
        else:
            _sink(distance, row, need, apart, i)


@inner
def _rise(distance: NDArray[np.float64], row: NDArray[np.int64], spot: int, apart: float, record: int) -> None:
    """Put a record at the end of the heap and let it rise."""
    while spot > 0:
        above = (spot - 1) // 2
        if distance[above] > apart or (distance[above] == apart and row[above] > record):
            break
        distance[spot], row[spot] = distance[above], row[above]
        spot = above
    distance[spot], row[spot] = apart, record


@inner
def _sink(distance: NDArray[np.float64], row: NDArray[np.int64], held: int, apart: float, record: int) -> None:
    """Put a record in place of the top of the heap and let it sink."""
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
