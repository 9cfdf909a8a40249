"""Where a number may lie: intervals and baselines by redrawing.

A distance between two tables is the norm of a difference D. Its redraws D* lie around D by chance alone, and by the
triangle inequality the true distance is within the 95 % quantile of norm(D* - D) of the measured one. Such an interval
holds the measured value and reaches 0 for a verbatim copy, where the redraws of the distance itself would not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CONFIDENCE",
    "Tries",
    "clustered_interval",
    "difference_interval",
    "distance_interval",
    "effective_tries",
    "exact_interval",
    "mean_cluster",
    "median_interval",
    "redraw_interval",
    "wilson",
]

CONFIDENCE = 0.95
_Z = 1.959963984540054
_FEW = 30  # tries below which the limits of a difference are those of its two ends


@dataclass(frozen=True)
class Tries:
    """Successes out of tries that are independent of one another, from which limits of any confidence follow."""

    hits: float
    of: float  # fewer than were made where several hang on the same thing. What an attack gave up on was tried
    times: float = 1.0  # how many times as often it would be, were all of the table attacked and not a part

    @property
    def share(self) -> float:
        """Successes a try."""
        return self.hits / self.of

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the share, 95 %."""
        return wilson(self.hits, self.of)

    def __add__(self, other: Tries) -> Tries:
        return Tries(self.hits + other.hits, self.of + other.of, max(self.times, other.times))


def distance_interval(value: float, deviations: NDArray[np.float64], low: float, high: float) -> tuple[float, float]:
    """Interval around a distance from the norms of its redraws' deviations.

    Examples
    --------
    >>> distance_interval(0.01, np.array([0.02, 0.02]), 0.0, 1.0)
    (0.0, 0.03)
    """
    reach = float(np.quantile(deviations, CONFIDENCE))
    return max(low, value - reach), min(high, value + reach)


def redraw_interval(value: float, redraws: NDArray[np.float64]) -> tuple[float, float]:
    """Middle 95 % of redraws, widened to hold the value itself.

    Examples
    --------
    >>> redraw_interval(1.0, np.array([0.5, 0.5]))
    (0.5, 1.0)
    """
    low, high = np.quantile(redraws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return min(float(low), value), max(float(high), value)


def wilson(hits: float, tries: float) -> tuple[float, float]:
    """Wilson's interval for a share.

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


def mean_cluster(places: NDArray[np.int64]) -> float:
    """Count how many tries hang on the same thing: the mean over tries of how many have the same place.

    Examples
    --------
    >>> mean_cluster(np.array([7, 7, 7])), mean_cluster(np.array([1, 2, 3]))
    (3.0, 1.0)
    """
    counts = np.unique(places, return_counts=True)[1] if len(places) else np.ones(1, dtype=np.int64)
    return float((counts**2).sum() / counts.sum())


def clustered_interval(share: float, tries: int, cluster: float) -> tuple[float, float]:
    """Wilson's interval of a share, as if there were one try for all those that hang on the same thing.

    Examples
    --------
    >>> low, high = clustered_interval(1.0, 1300, 1300.0)
    >>> round(low, 2), high
    (0.21, 1.0)
    """
    count = effective_tries(tries, cluster)
    low, high = wilson(share * count, count)
    return min(low, share), max(high, share)


def effective_tries(tries: int, cluster: float) -> int:
    """How many tries are left where so many hang on the same thing."""
    return max(1, round(tries / cluster))


def exact_interval(hits: float, tries: float, confidence: float) -> tuple[float, float]:
    """Limits of a share that hold it with at least this confidence, by Clopper and Pearson.

    Examples
    --------
    >>> low, high = exact_interval(0, 100, 0.95)
    >>> low, round(high, 4)
    (0.0, 0.0362)
    """
    from scipy.special import betaincinv

    tail = (1.0 - confidence) / 2
    low = float(betaincinv(hits, tries - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, tries - hits, 1.0 - tail)) if hits < tries else 1.0
    return low, high


def difference_interval(inside: Tries, outside: Tries, confidence: float) -> tuple[float, float]:
    """Limits of the difference of two shares that hold it with at least this confidence.

    With 30 tries or more on both sides the difference is off by at most the root of the sum of squares of what each
    share is off, for which the farther of its exact limits is taken. The usual way, the nearer limit on the side that
    matters (Newcombe 1998, method 10), errs many times as often as it says where shares are near 0 or 1 and confidence
    is high. With fewer tries the ends are those of both shares, each exact at half the error, which always holds.
    Both were checked by adding up the probabilities of all outcomes.

    Examples
    --------
    >>> low, high = difference_interval(Tries(30, 100), Tries(2, 100), 0.95)
    >>> round(low, 3), round(high, 3)
    (0.168, 0.392)
    """
    few = min(inside.of, outside.of) < _FEW
    sure = (1.0 + confidence) / 2 if few else confidence
    ends = [exact_interval(min(side.hits, side.of), side.of, sure) for side in (inside, outside)]
    (in_low, in_high), (out_low, out_high) = (
        (min(1.0, low * side.times), min(1.0, high * side.times))
        for side, (low, high) in zip((inside, outside), ends, strict=True)
    )
    if few:
        return in_low - out_high, in_high - out_low
    first, second = (min(1.0, side.times * side.hits / side.of) for side in (inside, outside))
    reach = float(np.hypot(max(first - in_low, in_high - first), max(second - out_low, out_high - second)))
    return first - second - reach, first - second + reach


def median_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The two order statistics between which the median lies.

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
