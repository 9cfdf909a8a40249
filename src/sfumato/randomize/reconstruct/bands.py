"""Bands around a reconstruction: what other samples of the same size would have given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.progress import tell

__all__ = ["RESAMPLES", "bootstrap_bands"]

RESAMPLES = 200
"""Count vectors that are drawn."""

_NUMBERS_A_CALL = 4_000_000

_Vector = NDArray[np.float64]


def bootstrap_bands(
    counts: _Vector,
    probability: _Vector,
    mixed: _Vector,
    solve: Callable[[_Vector], tuple[_Vector, _Vector]],
    *,
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[_Vector, _Vector]:
    """Give the lower and upper band of each cell.

    Count vectors are drawn from the multinomial of the observed ones and solved as those were, and once more with less
    smoothing; the band holds the quantiles of both. A solution is smoother than the truth: by how much shows when the
    counts that the estimate itself would give, without any sampling noise, are solved. The band is widened by the
    difference, to the side on which the truth then lies. Cells in which nobody was found may still have somebody: no
    upper band lies below the exact bound of a zero count.

    Parameters
    ----------
    counts : ndarray of shape (outputs,)
    probability : ndarray of shape (inputs,)
        The estimate.
    mixed : ndarray of shape (outputs,)
        Chances of the outputs under the estimate.
    solve : callable
        From count vectors, a row each, to probabilities with the smoothing of the estimate, and with less.
    level : float
        Share of samples inside the band of a cell.
    resamples : int
    rng : Generator
    """
    n = counts.sum()
    drawn = np.empty((2, resamples, len(probability)))
    at_once = max(1, _NUMBERS_A_CALL // max(len(counts), len(probability)))
    for first in range(0, resamples, at_once):
        many = min(at_once, resamples - first)
        drawn[:, first : first + many] = solve(rng.multinomial(int(n), counts / n, size=many).astype(np.float64))
        tell("bands", (first + many) / resamples)
    smoothing = solve(n * mixed[None, :] / mixed.sum())[0][0] - probability
    outside = (1.0 - level) / 2.0
    lower, upper = np.quantile(drawn, [outside, 1.0 - outside], axis=1)
    lower = np.minimum(lower.min(axis=0), probability) - np.maximum(smoothing, 0.0)
    upper = np.maximum(upper.max(axis=0), probability) - np.minimum(smoothing, 0.0)
    zero = 1.0 - outside ** (1.0 / n)
    return np.clip(lower, 0.0, 1.0), np.clip(np.maximum(upper, zero), 0.0, 1.0)
