"""How far each column's distribution moved: Kolmogorov-Smirnov distance, or total variation for categories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import ColumnPair
from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.intervals import around

__all__ = ["Distance", "marginal_distance", "marginal_findings"]

_Norm = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_REDRAWS = 200
_CELLS = 256  # values are pooled into so many cells for the redraws; the distance itself is exact

_AVERAGE = (
    "How much the columns changed on average, each taken alone: 0 means every column has the same distribution as in "
    "the original, 1 means none has anything in common with it."
)
_LARGEST = "How much the column changed that changed most: {column}."
_ORDERED = (
    "Take any value of {column}: the share of rows at or below it differs by at most this much between the original "
    "and the released table."
)
_CATEGORIES = "The share of rows that would have to change category for {column} to have its original frequencies."
_MISSING = "How far apart the shares of missing cells in {column} are in the original and in the released table."


@dataclass(frozen=True)
class Distance:
    """A distance between two distributions, its interval, and what an independent redraw would give."""

    value: float
    interval: tuple[float, float] | None
    baseline: float


def marginal_findings(pairs: Sequence[ColumnPair], rng: np.random.Generator) -> tuple[Finding, ...]:
    """Compare the distribution of each column in the two tables."""
    distances = [marginal_distance(pair, rng) for pair in pairs]
    single = []
    for pair, distance in zip(pairs, distances, strict=True):
        meaning = (_ORDERED if pair.is_number else _CATEGORIES).format(column=pair.name)
        single.append(_finding(f"marginal-distance/{pair.name}", distance, meaning))
        if pair.has_missing:
            missing = _missing_distance(pair, rng)
            single.append(_finding(f"missing-rate/{pair.name}", missing, _MISSING.format(column=pair.name), "share"))
    largest = int(np.argmax([distance.value for distance in distances]))
    return (
        _finding("marginal-distance", _mean(distances), _AVERAGE),
        _finding("marginal-distance-largest", distances[largest], _LARGEST.format(column=pairs[largest].name)),
        *single,
    )


def marginal_distance(pair: ColumnPair, rng: np.random.Generator) -> Distance:
    """Measure how far the present values of one column moved; 1 where no value is left."""
    first, second = pair.original.present, pair.released.present
    if not len(first) or not len(second):
        return Distance(1.0, None, 0.0)
    values = np.unique(np.concatenate([first, second]))
    counts, others = (_counts_of(values, side) for side in (first, second))
    norm = _kolmogorov if pair.is_number else _variation
    value = float(norm(counts / len(first) - others / len(second)))
    if pair.is_number:
        counts, others = _pool(counts, others)
    return _with_redraws(value, counts, others, norm, rng)


def _counts_of(values: NDArray[np.float64], cells: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count how often each value, in rising order, stands in the cells: sorting both is cheaper than ranking them."""
    return np.diff(np.searchsorted(np.sort(cells), values, side="right"), prepend=0)


def _with_redraws(
    value: float, counts: NDArray[np.int64], others: NDArray[np.int64], norm: _Norm, rng: np.random.Generator
) -> Distance:
    n, m = int(counts.sum()), int(others.sum())
    p, q = counts / n, others / m
    strays = (rng.multinomial(n, p, _REDRAWS) / n - p) - (rng.multinomial(m, q, _REDRAWS) / m - q)
    redraws = rng.multinomial(m, p, _REDRAWS) / m - p
    return Distance(value, around(value, norm(strays), 0.0, 1.0), float(norm(redraws).mean()))


def _kolmogorov(difference: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.abs(np.cumsum(difference, axis=-1)).max(axis=-1))


def _variation(difference: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.abs(difference).sum(axis=-1) / 2)


def _pool(counts: NDArray[np.int64], others: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pool neighbouring values into at most `_CELLS` cells of about equal weight."""
    if len(counts) <= _CELLS:
        return counts, others
    both = np.cumsum(counts + others)
    cells = (both - 1) * _CELLS // both[-1]
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    return np.add.reduceat(counts, starts), np.add.reduceat(others, starts)


def _missing_distance(pair: ColumnPair, rng: np.random.Generator) -> Distance:
    sides = (pair.original.absent, pair.released.absent)
    counts, others = (np.array([int((~absent).sum()), int(absent.sum())]) for absent in sides)
    value = abs(float(sides[0].mean() - sides[1].mean()))
    return _with_redraws(value, counts, others, _variation, rng)


def _mean(distances: Sequence[Distance]) -> Distance:
    ends = [distance.interval or (distance.value, distance.value) for distance in distances]
    low, high = np.mean(ends, axis=0)
    value = float(np.mean([distance.value for distance in distances]))
    return Distance(value, (float(low), float(high)), float(np.mean([distance.baseline for distance in distances])))


def _finding(name: str, distance: Distance, meaning: str, unit: str = "") -> Finding:
    return Finding(
        name,
        Family.UTILITY,
        distance.value,
        Direction.LOWER,
        (0.0, 1.0),
        meaning,
        interval=distance.interval,
        baseline=distance.baseline,
        unit=unit,
    )
