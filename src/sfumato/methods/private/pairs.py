"""Weights of drawn rows, with which they agree with noisy counts of pairs; post-processing, it sees no record.

The chain tells few pairs apart. Rows are drawn from it in excess and chosen with weights that are a product of one
factor for each cell of each pair, as in raking and in maximum entropy models of marginals [McKenna et al. 2019].
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.methods.private.model import Model, PairTable

__all__ = ["choose_rows", "fit_factors", "row_weights"]

_PASSES = 8
_FARTHEST = 0.5  # that the logarithm of a factor moves in a pass
_RARE = 1e-3  # share of a cell below which it counts as that rare
_ALIKE = 1e-4  # least variance of factors


def fit_factors(model: Model, own: Ints, leaves: Mapping[int, Ints]) -> list[Floats]:
    """Logarithms of the factors of each pair's cells, from rows that were drawn of the chain.

    Factors are drawn towards 1. Their variance is estimated for each pair, from how far its counts are from those of
    the rows beyond what noise explains.
    """
    weights = np.full(len(own), 1 / len(own))
    cells = [_cells(pair, own, leaves) for pair in model.pairs]
    wanted = [pair.table / model.people for pair in model.pairs]
    noise = [(pair.sd / model.people) ** 2 for pair in model.pairs]
    factors, spread = [np.zeros(len(each)) for each in wanted], list[float]()
    for step in range(_PASSES):
        for at, (cell, whole) in enumerate(zip(cells, wanted, strict=True)):
            have = np.bincount(cell, weights, len(whole))
            if step == 0:
                beyond = float(((whole - have) ** 2).mean()) - noise[at]
                spread.append(max(beyond / float((have**2).mean()), _ALIKE))
            ridge = noise[at] / (np.maximum(have, _RARE) * spread[at])
            move = (whole - have - ridge * factors[at]) / (have + ridge)
            move = move.clip(-_FARTHEST, _FARTHEST)
            factors[at] += move
            weights *= np.exp(move)[cell]
            weights /= weights.sum()
    return factors


def row_weights(model: Model, factors: list[Floats], own: Ints, leaves: Mapping[int, Ints]) -> Floats:
    """Weight of each row that was drawn of the chain; they add up to 1."""
    logarithms = np.zeros(len(own))
    for pair, factor in zip(model.pairs, factors, strict=True):
        logarithms += factor[_cells(pair, own, leaves)]
    weights = np.exp(logarithms - logarithms.max())
    return np.asarray(weights / weights.sum())


def choose_rows(weights: Floats, rows: int, rng: np.random.Generator) -> Ints:
    """Indices of as many rows, each as often as its weight says but for less than one time; in random order."""
    order = rng.permutation(len(weights))
    bounds = np.cumsum(weights[order])
    points = (np.arange(rows) + rng.random()) * (bounds[-1] / rows)
    chosen = order[np.searchsorted(bounds, points, side="right").clip(0, len(order) - 1)]
    return np.asarray(rng.permutation(chosen))


def _cells(pair: PairTable, own: Ints, leaves: Mapping[int, Ints]) -> Ints:
    first, second = (bins[leaves[column]] for column, bins in zip(pair.columns, pair.bins, strict=True))
    return (own * pair.sizes[0] + first) * pair.sizes[1] + second
