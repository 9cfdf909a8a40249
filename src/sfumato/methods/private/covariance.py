"""Noisy sums of products of clipped normal scores, and the correlations that follow from them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.methods.private.estimate import nearest_correlation, spikes
from sfumato.methods.private.ledger import Covariance
from sfumato.methods.private.people import Counter, People

__all__ = ["clip_scores", "correlations", "finest_grid", "measure_products"]

_STEPS = (8, 4, 2, 1)  # grids of normal scores, in steps of one
_TAIL = 0.002
_LARGEST_VARIANCE = 2**52  # that the sampler of noise can serve


def finest_grid(length: float, rho: float, unit: int) -> int:
    """Steps of a normal score, as many as the sampler of noise can serve."""
    fits = (scale for scale in _STEPS if (unit * length * scale**2) ** 2 / (2 * rho) < _LARGEST_VARIANCE)
    return next(fits, 1)


def clip_scores(uniform: Floats, scale: int, bound: int) -> Ints:
    """Normal scores of cumulative shares on a grid, whose squared length is at most the bound."""
    from scipy.special import ndtri

    scores = ndtri(uniform.clip(_TAIL, 1 - _TAIL)) * scale
    length = np.sqrt((scores**2).sum(axis=1))
    shorter = np.minimum(1.0, np.sqrt(bound) / np.maximum(length, 1e-12))
    whole = np.rint(scores * shorter[:, None]).astype(np.int64)
    long = (whole**2).sum(axis=1) > bound
    whole[long] = np.trunc(scores[long] * shorter[long, None] * (1 - 1e-9)).astype(np.int64)
    return np.asarray(whole)


def measure_products(
    counter: Counter,
    scores_of: Callable[[People], tuple[Ints, Ints]],
    many: int,
    groups: int,
    bound: int,
    rho: float,
) -> tuple[Floats, float]:
    """Noisy matrix of sums of products of each group, and the standard deviation of its diagonal.

    ``scores_of`` gives rows their scores and their group. Matrices of disjoint groups and levels cost as much as one
    together.
    """
    people, upper = counter.people, np.triu_indices(many, 1)
    levels = len(people.weights) if people.levelled else 1

    def products(part: People) -> Ints:
        scores, cell = scores_of(part)
        cell = cell if part.levels is None else part.levels * groups + cell
        diagonals, others = [], []
        for each in range(levels * groups):
            rows = np.flatnonzero(cell == each)
            here = scores[rows].astype(np.float64)
            weighted = here if part.parts is None else here * part.parts[rows][:, None]
            product = np.rint(here.T @ weighted).astype(np.int64)  # whole numbers below 2^53: exact in doubles
            diagonals.append(np.diag(product))
            others.append(product[upper])
        return np.concatenate([*diagonals, *others])

    measurement = Covariance(people.total(products), people.unit, bound, many * levels * groups)
    noisy = counter.ledger.release(measurement, rho)
    sd = float(bound / np.sqrt(2 * rho))
    diagonal = noisy[: many * levels * groups].reshape(levels, groups, many)
    above = noisy[many * levels * groups :].reshape(levels, groups, -1)
    both = np.concatenate([diagonal, np.sqrt(2) * above], axis=2)  # twice in a matrix, with half of the variance
    whole, sd = counter.pool(both, sd) if people.levelled else (both[0], sd)
    matrices = np.zeros((groups, many, many))
    matrices[:, upper[0], upper[1]] = whole[:, many:] / np.sqrt(2)
    matrices += matrices.transpose(0, 2, 1)
    matrices[:, range(many), range(many)] = whole[:, :many]
    return matrices, sd


def correlations(matrices: Floats, class_shares: Floats, total: float, sd: float) -> Floats:
    """A correlation matrix for each class: the pooled one, and what a class has of its own beyond noise."""
    many, groups = matrices.shape[1], len(matrices)

    def standardized(matrix: Floats, people: float) -> tuple[Floats, float]:
        spread = np.sqrt(np.maximum(np.diag(matrix) / people, 0.2))
        unit = matrix / people / np.outer(spread, spread)
        np.fill_diagonal(unit, 1.0)
        return unit, float(np.sqrt(2 * many) * sd / people / np.mean(spread**2))

    whole, edge = standardized(matrices.sum(axis=0), total)
    identity = np.eye(many)
    pooled = nearest_correlation(identity + spikes(whole - identity, edge * np.sqrt(groups)))
    if groups == 1:
        return np.repeat(pooled[None], len(class_shares), axis=0)
    found = []
    for matrix, share in zip(matrices, class_shares, strict=True):
        own, edge = standardized(matrix, max(share * total, 1.0))
        found.append(nearest_correlation(pooled + spikes(own - pooled, edge)))
    return np.array(found)
