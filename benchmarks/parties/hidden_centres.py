"""One owner of a joint run against hidden centres: it guesses them from the clusters of its own rows [BCG10, line 4].

Where the centres of K-means stay hidden, an owner still sees where its own rows went in each round. The mean of its own
rows of a cluster is near the centre, and its rows' next clusters say on which side of a border they lie.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.parties.rounds import nearest_centre

__all__ = ["guess_centres", "own_means"]

Whole = NDArray[np.int64]
_Matrix = NDArray[np.float64]

_PASSES, _STEP = 30, 0.3  # over own rows that lie on the wrong side, and how far toward the border each pulls


def guess_centres(own: _Matrix, labels: Whole, groups: Whole, means: _Matrix, weights: _Matrix) -> _Matrix:
    """Estimate the means of clusters that stayed hidden.

    Parameters
    ----------
    own : ndarray of shape (n, d)
        Rows of the attacker.
    labels : ndarray of shape (t, n)
        Their clusters in each round.
    groups : ndarray of shape (n,)
        Their groups in the end.
    means : ndarray of shape (g, d)
        Of the groups of all owners, which are opened.
    weights : ndarray of shape (d,)
        Of the coordinates in the distance.

    Returns
    -------
    ndarray of shape (t, g, d)
        Means of the clusters over all owners, round by round.

    Notes
    -----
    The own mean of a group is off by a known amount, and that of a cluster by about as much, the more the more own rows
    both have in common. Then centres are moved, as little as needed, until own rows are nearest to those that they went
    to in the next round.
    """
    offset = means - own_means(own, groups, means)
    guesses = [
        own_means(own, label, means) + _in_common(label, groups, len(means))[:, None] * offset for label in labels
    ]
    explained = [_explain(guess, own, after, weights) for guess, after in zip(guesses[:-1], labels[1:], strict=True)]
    return np.stack([*explained, guesses[-1]])


def own_means(own: _Matrix, label: Whole, otherwise: _Matrix) -> _Matrix:
    """Give the mean of the own rows of each cluster, or another where there are none."""
    size = np.bincount(label, minlength=len(otherwise))
    total = np.zeros(otherwise.shape)
    np.add.at(total, label, own)
    return np.where(size[:, None] > 0, total / np.maximum(size, 1)[:, None], otherwise)


def _in_common(label: Whole, groups: Whole, g: int) -> _Matrix:
    """Give how much the own rows of a cluster and of its group are the same, from 0 to 1."""
    both = np.bincount(label[label == groups], minlength=g)
    either = np.bincount(label, minlength=g) * np.bincount(groups, minlength=g)
    return np.asarray(both / np.sqrt(np.maximum(either, 1)))


def _explain(centres: _Matrix, own: _Matrix, label: Whole, weights: _Matrix) -> _Matrix:
    """Move centres until own rows are nearest to theirs; those that leave the fewest on the wrong side are taken."""
    centres = best = centres.copy()
    fewest = len(own) + 1
    for _ in range(_PASSES):
        near = nearest_centre(own, centres, weights)
        wrong = np.flatnonzero(near != label)
        if len(wrong) < fewest:
            fewest, best = len(wrong), centres.copy()
        if not len(wrong):
            break
        for row in wrong.tolist():
            right, taken = label[row], near[row]
            here, there = own[row] - centres[right], own[row] - centres[taken]
            far, close = float(here**2 @ weights), float(there**2 @ weights)
            pull = _STEP * (far - close) / (2.0 * (far + close))
            centres[right] += pull * here
            centres[taken] -= pull * there
    return best
