"""How much released records tell: what they are worth in plain ones, and whether that is enough."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import TooFew
from sfumato.randomize.reconstruct.channel import Channel, shares_let_through

__all__ = ["LEAST", "effective_records", "records_needed", "refuse_too_few", "resolved_directions"]

LEAST = 30.0
"""Plain records that the coarsest feature must be known as well as from."""


def effective_records(channel: Channel, probability: NDArray[np.float64], records: int) -> float:
    """Give the number of plain records that would tell the distribution as precisely.

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
    """Give how many records must be released for the coarsest feature to be known as from ``least`` plain ones.

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
