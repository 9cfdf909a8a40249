"""Measures of utility, one file each, and the scores of predictions that they share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import wilson

__all__ = ["auc_parts", "balanced_accuracy_parts", "parts_interval"]


_Array = NDArray[np.float64]


def auc_parts(truth: _Array, scores: _Array) -> _Array:
    """Parts of the area under the ROC curve; of the two classes the one of the higher code is to score higher.

    Examples
    --------
    >>> truth, scores = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.1, 0.4, 0.4, 0.9])
    >>> float(auc_parts(truth, scores).mean())
    0.875
    """
    upper = truth == truth.max()
    above, below = _placements(scores[upper], scores[~upper]), 1.0 - _placements(scores[~upper], scores[upper])
    area, parts = float(above.mean()), np.empty(len(truth))
    parts[upper] = area + len(truth) / len(above) * (above - area)
    parts[~upper] = area + len(truth) / len(below) * (below - area)
    return parts


def _placements(these: _Array, those: _Array) -> _Array:
    """For each score, the share of the other side's scores below it, ties counting half."""
    ordered = np.sort(those)
    below, up_to = (np.searchsorted(ordered, these, side=side) for side in ("left", "right"))
    return np.asarray((below + up_to) / (2.0 * len(those)))


def balanced_accuracy_parts(truth: _Array, guess: _Array) -> _Array:
    """Parts of the mean recall of the classes that the test rows hold.

    Examples
    --------
    >>> truth, guess = np.array([0.0, 0.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0, 1.0])
    >>> round(float(balanced_accuracy_parts(truth, guess).mean()), 4)
    0.8333
    """
    _, codes, sizes = np.unique(truth, return_inverse=True, return_counts=True)
    right = (truth == guess).astype(np.float64)
    recalls = np.bincount(codes, right) / sizes
    scale = len(truth) / (len(sizes) * sizes)
    return np.asarray(recalls.mean() + scale[codes] * (right - recalls[codes]))


def parts_interval(parts: _Array) -> tuple[float, float]:
    """Wilson's interval, 95 %, of as many tries as have the variance of a score between 0 and 1.

    Examples
    --------
    >>> low, high = parts_interval(np.repeat([0.0, 1.0], 50))
    >>> round(low, 2), round(high, 2)
    (0.4, 0.6)
    """
    score, rows = float(np.clip(parts.mean(), 0.0, 1.0)), len(parts)
    variance = float(parts.var()) / rows
    count = float(rows) if variance == 0.0 else min(float(rows), max(1.0, score * (1.0 - score) / variance))
    low, high = wilson(score * count, count)
    return min(low, score), max(high, score)
