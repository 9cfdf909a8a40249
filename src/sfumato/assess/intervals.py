"""Where a number may lie: intervals and baselines by redrawing.

A distance between two tables is the norm of a difference D. Its redraws D* lie around D by chance alone, and by the
triangle inequality the true distance is within the 95 % quantile of norm(D* - D) of the measured one. Such an interval
holds the measured value and reaches 0 for a verbatim copy, where the redraws of the distance itself would not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["CONFIDENCE", "around", "crowd", "crowded", "holding", "median_interval", "wilson"]

CONFIDENCE = 0.95
_Z = 1.959963984540054


def around(value: float, deviations: NDArray[np.float64], low: float, high: float) -> tuple[float, float]:
    """Give the interval around a distance from the norms of its redraws' deviations.

    Examples
    --------
    >>> around(0.01, np.array([0.02, 0.02]), 0.0, 1.0)
    (0.0, 0.03)
    """
    reach = float(np.quantile(deviations, CONFIDENCE))
    return max(low, value - reach), min(high, value + reach)


def holding(value: float, redraws: NDArray[np.float64]) -> tuple[float, float]:
    """Give the middle 95 % of redraws, widened to hold the value itself.

    Examples
    --------
    >>> holding(1.0, np.array([0.5, 0.5]))
    (0.5, 1.0)
    """
    low, high = np.quantile(redraws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return min(float(low), value), max(float(high), value)


def wilson(hits: float, tries: int) -> tuple[float, float]:
    """Give Wilson's interval for a share.

    Examples
    --------
    >>> low, high = wilson(0, 100)
    >>> low, round(high, 3)
    (0.0, 0.037)
    """
    share, square = hits / tries, _Z * _Z
    middle = (share + square / (2 * tries)) / (1 + square / tries)
    reach = _Z / (1 + square / tries) * np.sqrt(share * (1 - share) / tries + square / (4 * tries * tries))
    low = float(middle - reach) if hits else 0.0
    return low, float(middle + reach) if hits < tries else 1.0


def crowd(places: NDArray[np.int64]) -> float:
    """Count how many tries hang on the same thing: the mean over tries of how many have the same place.

    Examples
    --------
    >>> crowd(np.array([7, 7, 7])), crowd(np.array([1, 2, 3]))
    (3.0, 1.0)
    """
    counts = np.unique(places, return_counts=True)[1] if len(places) else np.ones(1, dtype=np.int64)
    return float((counts**2).sum() / counts.sum())


def crowded(share: float, tries: int, crowd: float) -> tuple[float, float]:
    """Give Wilson's interval of a share, as if there were one try for all those that hang on the same thing.

    Examples
    --------
    >>> low, high = crowded(1.0, 1300, 1300.0)
    >>> round(low, 2), high
    (0.21, 1.0)
    """
    worth = max(1, round(tries / crowd))
    low, high = wilson(share * worth, worth)
    return min(low, share), max(high, share)


def median_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Give the two order statistics between which the median lies.

    Examples
    --------
    >>> median_interval(np.arange(101.0))
    (40.0, 60.0)
    """
    ordered, n = np.sort(values), len(values)
    reach = _Z * np.sqrt(n) / 2
    low = int(np.clip(np.floor(n / 2 - reach), 0, n - 1))
    high = int(np.clip(np.ceil(n / 2 + reach) - 1, 0, n - 1))
    return float(ordered[low]), float(ordered[high])
