"""How much released records tell: bands around a reconstruction, and what the records are worth in plain ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import TooFew
from sfumato.core.progress import tell
from sfumato.mine.reconstruct.admissible import Admissible, Plain
from sfumato.mine.reconstruct.channel import Channel, shares_let_through

__all__ = [
    "LEAST",
    "Bands",
    "cell_bands",
    "effective_records",
    "records_needed",
    "refuse_too_few",
    "refuse_worthless",
    "resolved_directions",
]

_MOST = 100  # inputs whose ranges are followed one by one
_MANY_ALIKE = 100  # inputs of a law that tells all of them alike, from which their own counts are enough
_ALIKE = 0.02  # least share of information over the largest, for a law to tell all alike
_OUTPUTS = 256
_FINEST = 400  # inputs that a fit is judged with

_Vector = NDArray[np.float64]
_Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bands:
    """Where the probability of each cell may lie; not-a-number where nothing can be said.

    Parameters
    ----------
    lower, upper : ndarray of shape (cells,)
    fit : float
        P-value of the counts under the distribution that fits them best.
    known : Admissible or Plain
        What is known of the probabilities of ``blocks``.
    blocks : ndarray of int
        First input of each block.
    """

    lower: _Vector
    upper: _Vector
    fit: float
    known: Admissible | Plain
    blocks: _Places


def cell_bands(counts: _Vector, channel: Channel, begins: _Places, level: float, *, most: int = _MOST) -> Bands:
    """Band of each cell, which holds its true probability at the level whatever the distribution is.

    Parameters
    ----------
    counts : ndarray of shape (outputs,)
    channel : Channel
    begins : ndarray of int
        First input of each cell.
    level : float
    most : int
        Inputs beyond which neighbours are taken together.

    Notes
    -----
    The range over all distributions that fit [`Admissible`]. Of more inputs than ``most`` neighbours are joined: no
    cell has more than its block. Where a law tells many inputs all alike (keep-or-replace) each is known from its own
    count, and the plain solution with its deviation is the band.
    """
    shares = channel.shares
    alike = bool(len(shares) and shares[-1] >= _ALIKE * shares[0])
    single = np.arange(channel.inputs)
    if alike and len(shares) >= _MANY_ALIKE:
        plain = Plain.of(counts, channel.chances, level)
        return _bands(plain.ranges(begins), plain.fit, plain, single)
    blocks = _blocks(begins, channel.inputs, most)
    chances, seen = _merge(channel.chances, counts, blocks)
    admissible = Admissible.of(seen, chances, level)
    found, fit = _ranges(admissible, begins, blocks, channel.inputs), admissible.fit
    if alike:
        return _bands(found, fit, Plain.of(counts, channel.chances, level), single)
    if len(blocks) < channel.inputs <= _FINEST:  # a law is not to be doubted for what is coarse here
        fit = Admissible.of(*_merge(channel.chances, counts, single)[::-1], level).fit
    return _bands(found, fit, admissible, blocks)


def _bands(found: tuple[_Vector, _Vector], fit: float, known: Admissible | Plain, blocks: _Places) -> Bands:
    lower, upper = (np.clip(each, 0.0, 1.0) for each in found)
    return Bands(lower, upper, fit, known, blocks)


def _blocks(begins: _Places, inputs: int, most: int) -> _Places:
    """First input of each block: single inputs, or as many neighbours together as are needed for so many blocks."""
    if inputs <= most:
        return np.arange(inputs)
    if len(begins) <= most and len(begins) < inputs:  # parts of cells are joined, and cells are not
        ends = np.r_[begins[1:], inputs]
        each = max(most // len(begins), 1)
        return np.concatenate(
            [
                np.unique(np.linspace(a, b, each, endpoint=False).astype(np.int64))
                for a, b in zip(begins, ends, strict=True)
            ]
        )
    return np.arange(0, inputs, -(-inputs // most))


def _merge(chances: NDArray[np.float64], counts: _Vector, blocks: _Places) -> tuple[NDArray[np.float64], _Vector]:
    """Chances and counts with inputs joined to blocks and neighbouring outputs joined where they are many."""
    inputs, outputs = chances.shape
    if len(blocks) < inputs:
        sizes = np.diff(np.r_[blocks, inputs])
        chances = np.add.reduceat(chances, blocks, axis=0) / sizes[:, None]
    if outputs > _OUTPUTS:
        first = np.arange(0, outputs, -(-outputs // _OUTPUTS))
        return np.add.reduceat(chances, first, axis=1), np.add.reduceat(counts, first)
    return chances, counts


def _ranges(admissible: Admissible, begins: _Places, blocks: _Places, inputs: int) -> tuple[_Vector, _Vector]:
    """Range of each cell; of a cell that shares its block with others, from nothing to the block's largest."""
    cells = len(begins)
    ends = np.r_[begins[1:], inputs]
    last = np.r_[blocks[1:], inputs]
    lower, upper = np.zeros(cells), np.full(cells, np.nan)
    known: dict[tuple[int, int], tuple[float, float] | None] = {}
    for cell, (start, end) in enumerate(zip(begins, ends, strict=True)):
        first, past = int(np.searchsorted(blocks, start, side="right")) - 1, int(np.searchsorted(blocks, end))
        if (first, past) not in known:
            weights = np.zeros(len(blocks))
            weights[first:past] = 1.0
            known[first, past] = admissible.range(weights)
        found = known[first, past]
        if found is None:
            lower[cell] = np.nan
            continue
        whole = blocks[first] == start and last[past - 1] == end
        lower[cell], upper[cell] = (found[0] if whole else 0.0), found[1]
        tell("bands", (cell + 1) / cells)
    return lower, upper


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


_WORTH = 2.0  # plain records, below which even the mean over all directions is guesswork


def refuse_worthless(worth: float, records: int, cells: int, least: float) -> None:
    """Refuse where the records are worth hardly any plain one at this number of cells.

    Raises
    ------
    TooFew
        With what they are worth.
    """
    if least and cells > 2 and worth < _WORTH:
        raise TooFew(
            f"{records} records are too few to tell {cells} cells under this noise: they are worth about {worth:.1g} "
            "without noise; ask for fewer intervals, collect more, or use a weaker noise"
        )
