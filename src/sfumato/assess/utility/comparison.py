"""What is read off the columns: how far each one's distribution, their links and their covariances moved.

A column is compared by the Kolmogorov-Smirnov distance, or total variation for categories; covariances by their
compatibility mu [AY05, sec. 4].
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sfumato.assess.algebra import SHARE, Measure, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family
from sfumato.assess.intervals import distance_interval, redraw_interval
from sfumato.assess.study import Column, ColumnPair, Matrix, Places, Study, once
from sfumato.assess.utility.association import (
    AssociationMatrices,
    Coordinates,
    Moments,
    association,
    association_alone,
    association_difference,
    covariance,
    gather,
    redraws,
)
from sfumato.tables.schema import Role

__all__ = ["COLUMNS", "associations_of", "compatibility", "marginal_distances"]

_Norm = Callable[[Matrix], Matrix]
_Counts = Places | Matrix
_REDRAWS = 200
_CELLS = 256  # values are pooled into so many cells for the redraws; the distance itself is exact
_TINY = 1e-12
_CATEGORIES = "The share of rows that would have to change category for {column} to have its original frequencies"


@once
def _compared(study: Study) -> tuple[tuple[Stated, ...], AssociationMatrices]:
    pairs, rng = study.pairs, study.generator("columns")
    marginals = marginal_distances(pairs, rng)
    coordinates = Coordinates.of(pairs)
    before, after = (
        gather(coordinates, [getattr(pair, side) for pair in pairs], rng) for side in ("original", "released")
    )
    mean, largest = association_difference([pair.name for pair in pairs], before, after, rng)
    links: tuple[Stated, ...] = (("association-difference", mean), ("association-difference-largest", largest))
    covariances = tuple(covariance_compatibility(before, after, rng))
    first, second = (association(sums.total, coordinates) for sums in (before, after))
    matrices = AssociationMatrices(first, second, association_alone(pairs))
    return (*marginals[:2], *links, *covariances, *marginals[2:]), matrices


def associations_of(study: Study) -> AssociationMatrices:
    """Association matrices of both tables of a study."""
    return _compared(study)[1]


def marginal_distances(pairs: Sequence[ColumnPair], rng: np.random.Generator) -> list[Stated]:
    """How far the distribution of each column moved: on average, at most, then column by column."""
    weight = next((pair for pair in pairs if pair.field.role is Role.WEIGHT), None)
    distances = [marginal_distance(pair, rng, None if pair is weight else weight) for pair in pairs]
    single: list[Stated] = []
    for pair, distance in zip(pairs, distances, strict=True):
        meaning = None if pair.is_number else _CATEGORIES.format(column=pair.name)
        single.append((f"marginal-distance/{pair.name}", dataclasses.replace(distance, meaning=meaning)))
        if pair.has_missing:
            single.append((f"missing-rate/{pair.name}", _missing_distance(pair, rng)))
    largest = int(np.argmax([distance.value for distance in distances]))
    worst = dataclasses.replace(distances[largest], note=f": {pairs[largest].name}")
    mean = _mean(distances)
    if weight is not None:
        mean = dataclasses.replace(mean, note=f"; every row counts by its weight, {weight.name}")
    return [("marginal-distance", mean), ("marginal-distance-largest", worst), *single]


def marginal_distance(pair: ColumnPair, rng: np.random.Generator, weight: ColumnPair | None = None) -> Values:
    """How far the present values of one column moved; 1 where no value is left. Rows count by a weight, if any."""
    first, second = pair.original.present, pair.released.present
    if not len(first) or not len(second):
        return Values(1.0, None, 0.0)
    values = np.unique(np.concatenate([first, second]))
    counts: _Counts
    others: _Counts
    if weight is None:
        counts, others = (_counts_of(values, side) for side in (first, second))
    else:
        sides = ((pair.original, weight.original), (pair.released, weight.released))
        counts, others = (_weighed_counts(values, side, by.values[~side.absent]) for side, by in sides)
    norm = _kolmogorov if pair.is_number else _variation
    value = float(norm(counts / counts.sum() - others / others.sum()))
    if pair.is_number:
        counts, others = _pool(counts, others)
    return _with_redraws(value, counts, others, norm, rng)


def _counts_of(values: Matrix, cells: Matrix) -> Places:
    """How often each value, in rising order, stands in the cells: sorting both is cheaper than ranking them."""
    return np.diff(np.searchsorted(np.sort(cells), values, side="right"), prepend=0)


def _weighed_counts(values: Matrix, cells: Column, weights: Matrix) -> Matrix:
    """Weight of each value, in rising order; in all as many rows of one weight as tell as much [Kish 1965, 11.7]."""
    sums = np.bincount(np.searchsorted(values, cells.present), weights=weights, minlength=len(values))
    return np.asarray(sums * (weights.sum() / (weights * weights).sum()))


def _with_redraws(value: float, counts: _Counts, others: _Counts, norm: _Norm, rng: np.random.Generator) -> Values:
    n, m = (max(1, round(float(side.sum()))) for side in (counts, others))
    p, q = counts / counts.sum(), others / others.sum()
    strays = (rng.multinomial(n, p, _REDRAWS) / n - p) - (rng.multinomial(m, q, _REDRAWS) / m - q)
    redraws = rng.multinomial(m, p, _REDRAWS) / m - p
    return Values(value, distance_interval(value, norm(strays), 0.0, 1.0), float(norm(redraws).mean()))


def _kolmogorov(difference: Matrix) -> Matrix:
    return np.asarray(np.abs(np.cumsum(difference, axis=-1)).max(axis=-1))


def _variation(difference: Matrix) -> Matrix:
    return np.asarray(np.abs(difference).sum(axis=-1) / 2)


def _pool(counts: _Counts, others: _Counts) -> tuple[_Counts, _Counts]:
    """Neighbouring values pooled into at most `_CELLS` cells of about equal weight."""
    if len(counts) <= _CELLS:
        return counts, others
    both = np.cumsum(counts + others)
    cells = np.maximum(both - 1, 0) * _CELLS // both[-1]
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    return np.add.reduceat(counts, starts), np.add.reduceat(others, starts)


def _missing_distance(pair: ColumnPair, rng: np.random.Generator) -> Values:
    sides = (pair.original.absent, pair.released.absent)
    counts, others = (np.array([int((~absent).sum()), int(absent.sum())]) for absent in sides)
    value = abs(float(sides[0].mean() - sides[1].mean()))
    return _with_redraws(value, counts, others, _variation, rng)


def _mean(distances: Sequence[Values]) -> Values:
    ends = [distance.interval or (distance.value, distance.value) for distance in distances]
    low, high = np.mean(ends, axis=0)
    value = float(np.mean([distance.value for distance in distances]))
    return Values(value, (float(low), float(high)), float(np.mean([distance.baseline for distance in distances])))


def compatibility(original: Matrix, released: Matrix) -> float | None:
    """Correlation of the entries of two covariance matrices, each unordered pair once and the variances too.

    This is mu [AY05, sec. 4]. Equal matrices give 1 as the paper says. Where the released entries are all equal, which
    is so for a constant table, no correlation exists and mu is set to 0. Where only the original's are, or there is
    a single entry, there is nothing to compare with.

    Examples
    --------
    >>> o = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> compatibility(o, 5 * o), compatibility(o, np.zeros((2, 2))), compatibility(o[:1, :1], o[:1, :1])
    (1.0, 0.0, None)
    """
    mu = float(_compatibilities(original[None], released[None])[0])
    return None if np.isnan(mu) else mu


def _compatibilities(originals: Matrix, releaseds: Matrix) -> Matrix:
    """Mu of each two matrices of two stacks, nan where it is undefined."""
    pairs = np.triu_indices(originals.shape[-1])
    first, second = np.broadcast_arrays(originals[:, *pairs], releaseds[:, *pairs])
    if first.shape[1] < 2:
        return np.full(len(first), np.nan)
    size, reach = (np.abs(side).max(axis=1) for side in (first, second))
    equal = (np.abs(first - second) <= _TINY * size[:, None] + 1e-9 * np.abs(second)).all(axis=1) & (size > 0)
    sides = np.ascontiguousarray(np.stack([first, second], axis=1))
    sides = sides - sides.mean(axis=2, keepdims=True)
    squares = sides @ sides.swapaxes(1, 2) * (1 / (first.shape[1] - 1))
    spread = np.sqrt(squares[:, [0, 1], [0, 1]])
    flat = spread <= _TINY * np.stack([size, reach], axis=1)
    spread[flat] = np.nan
    mu = np.round(np.clip(squares[:, 0, 1] / spread[:, 0] / spread[:, 1], -1.0, 1.0), 15)
    return np.asarray(np.where(equal, 1.0, np.where(flat[:, 1] & ~flat[:, 0], 0.0, mu)))


def covariance_compatibility(original: Moments, released: Moments, rng: np.random.Generator) -> Iterator[Stated]:
    """Mu of the columns in their own units and in the original's standard deviations."""
    scale = original.coordinates.scale / original.coordinates.scale.max(initial=1.0)  # mu does not mind, no overflow
    units = {"covariance-compatibility": np.outer(scale, scale), "covariance-compatibility-standardized": None}
    lacking = NotRun(f"the table has {len(scale)} columns with an order and a covariance needs two")
    before, after = original.of_ordered(), released.of_ordered()
    for name, unit in units.items():
        yield name, lacking if len(scale) < 2 else _mu(unit, before, after, rng)


def _mu(unit: Matrix | None, original: Moments, released: Moments, rng: np.random.Generator) -> Values | NotRun:
    def entries(sums: Matrix) -> Matrix:
        matrix = covariance(sums, original.coordinates)
        return matrix if unit is None else matrix * unit

    before, after = entries(original.total), entries(released.total)
    value = compatibility(before, after)
    if value is None:
        return NotRun("the variances and covariances of the original are all the same number")
    sources = ((original, original.rows), (released, released.rows), (original, released.rows))
    again, chance = [], []
    for drawn in zip(*(redraws(source, rows, _REDRAWS, rng) for source, rows in sources), strict=True):
        first, second, fresh = (entries(sums) for sums in drawn)
        again.append(_compatibilities(first, second))
        chance.append(_compatibilities(before[None], fresh))
    known, redrawn = (every[~np.isnan(every)] for every in map(np.concatenate, (again, chance)))
    interval = redraw_interval(value, known if len(known) else np.array([value]))
    return Values(value, interval, float(np.mean(redrawn)) if len(redrawn) else None)


def _mu_number(name: str, spoken: str, units: str) -> Number:
    meaning = (
        f"How well the table of variances and covariances of the numeric columns agrees with the original's, {units}: "
        "1 means in perfect step, 0 or less means no agreement"
    )
    return Number(name, spoken, Scale((-1.0, 1.0)).more).means(meaning)


COLUMNS = Measure(
    "columns",
    Family.UTILITY,
    "Aggarwal & Yu 2005, section 4; Bergsma 2013",
    lambda study: _compared(study)[0],
    uncompared={
        "marginal-distance": "How much the columns changed on average.",
        "association-difference": "How much the links between columns changed.",
        "covariance-compatibility": "How well variances and covariances agree.",
    },
).finds(
    Number("marginal-distance").means(
        "How much the columns changed on average, each taken alone: 0 means every column has the same distribution "
        "as in the original, 1 means none has anything in common with it"
    ),
    Number("marginal-distance-largest", "Marginal distance, largest").means(
        "How much the column changed that changed most"
    ),
    Number("association-difference", "Difference of links", Scale((0.0, 2.0)), figure="association/difference").means(
        "How much the strength of the link between two columns changed, on average over all pairs; links run from "
        "0 (none) to 1 (one column tells the other), with a minus sign where one falls as the other rises"
    ),
    Number(
        "association-difference-largest",
        "Difference of links, largest",
        Scale((0.0, 2.0)),
        figure="association/difference",
    ).means("How much the link between two columns changed at most"),
    _mu_number("covariance-compatibility", "Covariance compatibility \u03bc", "each column in its own units"),
    _mu_number(
        "covariance-compatibility-standardized",
        "Covariance compatibility \u03bc, standardized",
        "each column counted in the original's standard deviations",
    ),
    Number("marginal-distance/", figure="marginals/COLUMN").means(
        "Take any value of {column}: the share of rows at or below it differs by at most this much between the "
        "original and the released table"
    ),
    Number("missing-rate/", scale=SHARE, figure="marginals/COLUMN").means(
        "How far apart the shares of missing cells in {column} are in the original and in the released table"
    ),
)
