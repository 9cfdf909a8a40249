"""Confidence intervals of numbers that are reported only because their estimate passed a threshold.

An interval that holds the truth in 95 % of all draws holds it less often among the estimates that passed: those that
passed by chance are too high (the winner's curse).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.core.arrays import Bools, Floats

__all__ = ["LEVEL", "SELECTED_LEVEL", "bisect", "edges", "selected_ends", "simultaneous_deviations", "wilson_ends"]

LEVEL = 0.95
"""Confidence of every interval of an estimated support or rule."""

_EVERYWHERE = 0.005  # error rate of the simultaneous bound below which no lower end goes
SELECTED_LEVEL = LEVEL + _EVERYWHERE
"""Confidence given the selection; with the simultaneous bound's error rate it leaves `LEVEL`."""

_HALVINGS = 50


def edges(above: Floats, level: float) -> tuple[Floats, Floats]:
    """Shortest region that holds a normal estimate so often, given that it passed a threshold.

    ``above`` is how many standard deviations the mean lies above the threshold; the region is in standard deviations
    from the mean. Far above it is the usual symmetric one; near and below it begins at the threshold.

    Examples
    --------
    >>> [round(float(edge), 2) for edge in edges(np.array(9.0), 0.95)]
    [-1.96, 1.96]
    >>> [round(float(edge), 2) for edge in edges(np.array(0.0), 0.95)]
    [-0.0, 1.96]
    """
    from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

    half = ndtri((1.0 + level * ndtr(above)) / 2.0)
    cut = half > above
    upper = np.where(cut, -ndtri_exp(log_ndtr(above) + np.log1p(-level)), half)
    return np.asarray(np.where(cut, -above, -half)), np.asarray(upper)


def selected_ends(
    estimates: Floats, threshold: float, slope: float, rest: Floats, *, most: float, candidates: float
) -> tuple[Floats, Floats]:
    """Ends of the 95 % interval of each estimate that passed a threshold, given that it did.

    Where T is the truth, the estimate is normal with mean T and variance ``slope`` * T + ``rest``. The interval holds
    every T, from 0 to ``most``, for which the estimate lies in the shortest region of the normal distribution cut off
    at the threshold: the conditional interval of Weinstein, Fithian, Benjamini (Journal of the American Statistical
    Association, 2013; for genome scans Zhong, Prentice, Biostatistics, 2008). It holds the truth in 95 % of the cases
    in which the number is shown, whatever the truth and however many candidates there were, and becomes the usual
    interval where the estimate is well above the threshold. Intervals adjusted for the false coverage rate (Benjamini,
    Yekutieli, same journal, 2005) would hold on average over the shown ones only, and would widen all of them, also
    those far from the threshold, by the number of candidates. A conditional interval can be very long just above the
    threshold. Its lower end therefore stops at a simultaneous bound over all ``candidates``, to which 0.5 of the 5 %
    are given: the hybrid of Andrews, Kitagawa, McCloskey (Quarterly Journal of Economics, 2024).
    """
    deviations = simultaneous_deviations(candidates)

    def region(truth: Floats) -> tuple[Floats, Floats, Floats]:
        spread = np.sqrt(np.maximum(slope * truth + rest, 1e-300))
        lower, upper = edges((truth - threshold) / spread, SELECTED_LEVEL)
        return (estimates - truth) / spread, lower, upper

    def too_low(truth: Floats) -> Bools:
        where, _, upper = region(truth)
        return np.asarray(where > upper)

    def still_in(truth: Floats) -> Bools:
        where, lower, _ = region(truth)
        return np.asarray(where >= lower)

    middle = np.clip(estimates, 0.0, most)
    low = bisect(too_low, np.zeros_like(middle), middle)
    high = bisect(still_in, middle, np.full_like(middle, most))
    return np.maximum(low, wilson_ends(estimates, slope, rest, deviations)[0]), high


def simultaneous_deviations(candidates: float) -> float:
    """Deviations that no estimate exceeds its true value by, with probability 99.5 % over all of them."""
    from scipy.special import ndtri_exp

    return float(-ndtri_exp(np.log(_EVERYWHERE) - np.log(max(candidates, 1.0))))


def wilson_ends(estimates: Floats, slope: float, rest: Floats, deviations: float) -> tuple[Floats, Floats]:
    """Bounds of T whose estimate, of variance ``slope`` * T + ``rest``, lies within the deviations (as Wilson's)."""
    shift = deviations**2 * slope / 2.0
    half = deviations * np.sqrt(np.maximum(slope * estimates + rest + (shift / deviations) ** 2, 0.0))
    return estimates + shift - half, estimates + shift + half


def bisect(holds: Callable[[Floats], Bools], start: Floats, end: Floats) -> Floats:
    """Where a condition that holds from ``start`` on ceases to hold; ``start`` or ``end`` where it never does."""
    low, high = start.copy(), end.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        inside = holds(middle)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.asarray((low + high) / 2.0)
