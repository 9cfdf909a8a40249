"""How much released records tell: bands around a reconstruction, and what the records are worth in plain ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import TooFew
from sfumato.core.progress import tell
from sfumato.mine.reconstruct.channel import Channel, shares_let_through

__all__ = [
    "LEAST",
    "RESAMPLES",
    "bootstrap_bands",
    "effective_records",
    "records_needed",
    "refuse_too_few",
    "resolved_directions",
]

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
    """Lower and upper band of each cell.

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


LEAST = 30.0
"""Plain records that the coarsest feature must be known as well as from."""


def effective_records(channel: Channel, probability: NDArray[np.float64], records: int) -> float:
    """Number of plain records that would tell the distribution as precisely.

    In direction j the n released records tell what n l_j plain ones would (`shares_let_through`); the number is the
    mean over the directions, so the Fisher information is that of so many plain records altogether. Where the noise
    treats all directions alike (randomized response among equally likely answers) it is exact in each of them. Else
    coarse features are known better than it says, fine ones worse; `resolved_directions` counts those known at all.

    The distribution is the estimate with one record added to every cell. Without noise it is n.
    """
    cells = channel.inputs
    if cells == 1 or not records:
        return float(records)
    smoothed = (records * probability + 1.0) / (records + cells)
    shares = shares_let_through(channel.chances, smoothed)
    return float(records * shares.mean())


def resolved_directions(channel: Channel, records: int) -> int:
    """Count the directions in which the records tell as much as one plain record or more."""
    return int((channel.shares * records >= 1.0).sum())


def records_needed(channel: Channel, least: float = LEAST) -> float:
    """How many records must be released for the coarsest feature to be known as from ``least`` plain ones.

    Infinite where the noise lets nothing through.
    """
    best = float(channel.shares[0]) if channel.inputs > 1 else 1.0
    return math.inf if best <= 1e-12 else float(math.ceil(least / best - 1e-9))


def refuse_too_few(channel: Channel, records: int, least: float) -> None:
    """Refuse where even the coarsest feature would be guesswork.

    The coarsest feature is the direction that the noise lets through best, in practice: are people in the lower or
    the upper part of the domain. Known as from 30 plain records, a half is known to 9 points (one standard
    deviation).

    Raises
    ------
    TooFew
        With the number that would be needed.
    """
    if not records:
        raise TooFew("0 records are too few: there is nothing to reconstruct from; collect some")
    needed = records_needed(channel, least)
    if records >= needed:
        return
    if math.isinf(needed):
        raise TooFew("this noise lets nothing through, so no number of records tells anything; use a weaker noise")
    raise TooFew(
        f"{records} records are too few for this noise: at least {needed:.0f} are needed to tell the coarsest feature "
        f"of the distribution as well as {least:g} plain records would; collect more, or use a weaker noise"
    )
