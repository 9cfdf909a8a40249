"""Entropy as a mean of each cell's surprise: numbers from spacings, categories from counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["step_of", "surprisal", "surprisal_given"]

_Values = NDArray[np.float64]
_Places = NDArray[np.int64]


def step_of(values: _Values) -> float:
    """Find the step at which numbers are told apart: the median gap between neighbouring values.

    Examples
    --------
    >>> step_of(np.array([1.0, 2.0, 2.0, 3.0, 90.0]))
    1.0
    """
    return float(np.median(np.diff(np.unique(values))))


def surprisal(values: _Values, step: float, rng: np.random.Generator) -> _Values:
    """Estimate how many bits each number takes, told at a step; the mean is the entropy.

    Spacings of m neighbours to either side [Vasicek 1976], with the digamma function for the logarithm's bias. Numbers
    are spread over their step first, so that ties are no points of infinite density.
    """
    from scipy.special import digamma

    n = len(values)
    spread = (values - np.median(values)) / step + rng.random(n) - 0.5
    order = np.argsort(spread)
    reach = max(1, round(np.sqrt(n)))
    low, high = np.maximum(np.arange(n) - reach, 0), np.minimum(np.arange(n) + reach, n - 1)
    gap = np.maximum(spread[order[high]] - spread[order[low]], np.finfo(np.float64).tiny)
    bits = np.empty(n)
    bits[order] = np.log2(gap) + (digamma(n + 1) - digamma(high - low)) / np.log(2)
    return bits


def surprisal_given(codes: _Places, given: _Places) -> tuple[_Values, float]:
    """Estimate how many bits each category takes where another is known, and Miller's correction of the mean."""
    both = np.unique(np.stack([given, codes]), axis=1, return_inverse=True, return_counts=True)
    alone = np.unique(given, return_inverse=True, return_counts=True)
    bits = np.log2(alone[2][alone[1].ravel()] / both[2][both[1].ravel()])
    return bits, (len(both[2]) - len(alone[2])) / (2 * len(codes) * np.log(2))
