"""K-means over records: the clusters from which modified condensation starts [KCG12, fig. 3, step 1-1]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import compiled, fixed
from sfumato.progress import tell

__all__ = ["k_means"]

_STEPS = 2_000_000_000  # coordinates that all rounds together may compare
_FEWEST, _MOST = 4, 100  # rounds, whatever that costs
_STEPS_A_CALL = 100_000_000  # coordinates compared between two looks at Ctrl-C and the progress bar


def k_means(
    values: NDArray[np.float64], count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Cluster records by Lloyd's K-means, from records drawn at random as first centres.

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


def _means(values: NDArray[np.float64], labels: NDArray[np.int64], centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the mean of each cluster, and of an empty one the centre that it had."""
    sizes = np.bincount(labels, minlength=len(centres))
    sums = np.column_stack([np.bincount(labels, weights=column, minlength=len(centres)) for column in values.T])
    return np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)


@compiled
def _assign(
    values: NDArray[np.float64],
    centres: NDArray[np.float64],
    moved: NDArray[np.int64],
    labels: NDArray[np.int64],
    near: NDArray[np.float64],
    first: int,
    last: int,
) -> tuple[int, int]:
    """Label records first to last with their nearest centre; give how many change, and how many centres were looked at.

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
