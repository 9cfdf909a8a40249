"""Estimates from noisy counts alone: projection, shrinkage, raking, rounding. Nothing here sees a record."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints

__all__ = ["nearest_correlation", "nearest_counts", "rake", "round_counts", "row_shares", "shares", "shrink", "spikes"]

_LEAST = 1e-12


def nearest_counts(noisy: Floats, total: float) -> Floats:
    """Nearest counts that are not negative and have this total."""
    total = max(total, 1e-9)
    order = np.sort(noisy)[::-1]
    cut = (np.cumsum(order) - total) / np.arange(1, len(noisy) + 1)
    return np.asarray(np.maximum(noisy - cut[np.flatnonzero(order > cut)[-1]], 0.0))


def shares(counts: Floats) -> Floats:
    """Shares of the counts; a negative count is none."""
    positive = np.maximum(counts, 0.0)
    whole = positive.sum()
    return np.asarray(positive / whole if whole > 0 else np.full(len(counts), 1 / len(counts)))


def row_shares(counts: Floats) -> Floats:
    """Shares of each row, all of them above 0."""
    positive = np.maximum(counts, 0.0) + _LEAST
    return np.asarray(positive / positive.sum(axis=1, keepdims=True))


def shrink(noisy: Floats, base: Floats, sd: float) -> Floats:
    """Noisy rows drawn towards those of a model, the more the better the noise explains the difference.

    The weight is that of James and Stein, no less than 0.
    """
    difference = noisy - base
    explained = (noisy.shape[1] - 1) * sd**2 / np.maximum((difference**2).sum(axis=1, keepdims=True), _LEAST)
    return np.asarray(np.maximum(base + np.clip(1 - explained, 0, 1) * difference, 0.0))


def rake(table: Floats, rows: Floats, columns: Floats, times: int = 15) -> Floats:
    """The table, scaled to these sums of rows and columns."""
    table = table + 1e-9
    for _ in range(times):
        table = table * (columns / np.maximum(table.sum(axis=0), _LEAST))
        table = table * (rows / np.maximum(table.sum(axis=1), _LEAST))[:, None]
    return np.asarray(table)


def round_counts(probabilities: Floats, total: int, rng: np.random.Generator) -> Ints:
    """Whole counts with this total, each at most one from its expectation."""
    expected = probabilities * total
    whole = np.floor(expected).astype(np.int64)
    rest = total - int(whole.sum())
    if rest > 0:
        cumulative = np.cumsum(expected - whole)
        points = (np.arange(rest) + rng.random()) * (cumulative[-1] / rest)
        whole += np.bincount(
            np.minimum(np.searchsorted(cumulative, points, side="right"), len(whole) - 1), minlength=len(whole)
        )
    return whole


def spikes(noise_included: Floats, edge: float) -> Floats:
    """Symmetric matrix without what eigenvalues of pure noise below ``edge`` explain."""
    values, vectors = np.linalg.eigh(noise_included)
    kept = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    return np.asarray((vectors * kept) @ vectors.T)


def nearest_correlation(matrix: Floats, floor: float = 0.02) -> Floats:
    """Correlation matrix near a symmetric one, with no eigenvalue close to 0."""
    values, vectors = np.linalg.eigh(matrix)
    positive = (vectors * np.maximum(values, floor)) @ vectors.T
    spread = np.sqrt(np.diag(positive))
    return np.asarray(positive / np.outer(spread, spread))
