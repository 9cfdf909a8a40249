"""How columns hang together: one association matrix for mixed kinds, and how far the released one is from it.

Pearson's correlation between two ordered columns, the correlation ratio eta between categories and an ordered column,
and bias-corrected Cramer's V [Bergsma 2013] between two columns of categories; 0 where a column does not vary.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import ColumnPair
from sfumato.assess.findings import Direction, Family, Finding, not_run
from sfumato.assess.intervals import around
from sfumato.assess.utility.moments import Moments, Plan, redraws, tally

__all__ = ["association", "association_alone", "association_findings", "covariance"]

_Matrix = NDArray[np.float64]
_TINY = 1e-10  # of a mean square: what rounding leaves of a variance of zero

_MEAN = (
    "How much the strength of the link between two columns changed, on average over all pairs; links run from 0 "
    "(none) to 1 (one column tells the other), with a minus sign where one falls as the other rises."
)
_LARGEST = "How much the link between two columns changed at most, which is between {first} and {second}."
_RANGE = (0.0, 2.0)


def association_findings(
    names: Sequence[str], original: Moments, released: Moments, rng: np.random.Generator
) -> tuple[Finding, ...]:
    """Compare the association matrices of the two tables: mean and largest absolute difference."""
    keys = ("association-difference", "association-difference-largest")
    if len(names) < 2:
        because = "the table has a single column; a link needs two"
        meanings = (_MEAN, "How much the link between two columns changed at most.")
        return tuple(
            not_run(key, Family.UTILITY, Direction.LOWER, meaning, because)
            for key, meaning in zip(keys, meanings, strict=True)
        )
    pairs = np.triu_indices(len(names), 1)
    plan, before, after = original.plan, original.total, released.total
    here, there = association(before, plan)[pairs], association(after, plan)[pairs]
    gap = np.round(np.abs(here - there), 12)  # sums in another order round otherwise
    count = int(np.clip(100_000_000 // plan.width**2, 50, 200))
    sources = ((original, original.rows), (released, released.rows), (original, released.rows))
    gaps, moves = [], []
    for drawn in zip(*(redraws(source, rows, count, rng) for source, rows in sources), strict=True):
        first, second, fresh = (np.ascontiguousarray(association(sums, plan)[:, *pairs]) for sums in drawn)
        gaps.append(np.abs((first - here) - (second - there)))
        moves.append(np.abs(fresh - here))
    strays, chance = np.concatenate(gaps), np.concatenate(moves)
    worst = int(np.argmax(gap))
    largest = _LARGEST.format(first=names[pairs[0][worst]], second=names[pairs[1][worst]])
    return (
        _finding(keys[0], float(gap.mean()), np.mean(strays, axis=1), np.mean(chance, axis=1), _MEAN),
        _finding(keys[1], float(gap.max()), np.max(strays, axis=1), np.max(chance, axis=1), largest),
    )


def _finding(name: str, value: float, strays: _Matrix, chance: _Matrix, meaning: str) -> Finding:
    return Finding(
        name,
        Family.UTILITY,
        value,
        Direction.LOWER,
        _RANGE,
        meaning,
        interval=around(value, strays, *_RANGE),
        baseline=float(chance.mean()),
    )


def association(sums: _Matrix, plan: Plan) -> _Matrix:
    """The association matrix of a table from its sums, columns in the table's order; of a stack of sums a stack."""
    ordered, columns = len(plan.ordered), len(plan.ordered) + len(plan.nominal)
    matrix = np.zeros((*sums.shape[:-2], columns, columns))
    matrix[..., :ordered, :ordered] = _pearson(sums, ordered)
    if plan.nominal:
        matrix[..., ordered:, ordered:] = _cramer(sums, plan)
    if plan.nominal and ordered:
        ratio = _correlation_ratio(sums, plan)
        matrix[..., ordered:, :ordered], matrix[..., :ordered, ordered:] = ratio, ratio.swapaxes(-1, -2)
    matrix[..., np.arange(columns), np.arange(columns)] = 1.0
    return matrix[..., plan.order[:, None], plan.order]


def association_alone(pairs: Sequence[ColumnPair]) -> _Matrix:
    """Give the association matrix of the released table as the released table alone determines it."""
    alone = [dataclasses.replace(pair, original=pair.released) for pair in pairs]
    plan = Plan.of(alone)
    return association(tally(plan, [pair.released for pair in alone]), plan)


def covariance(sums: _Matrix, plan: Plan) -> _Matrix:
    """The covariance matrix of the ordered columns, in units of the original's standard deviations.

    Each entry is over the rows where both cells are present. Of a stack of sums it is a stack.
    """
    q = len(plan.ordered)
    count = np.maximum(sums[..., q : 2 * q, q : 2 * q], 1.0)
    centre = sums[..., :q, q : 2 * q] / count
    entries = sums[..., :q, :q] / count - centre * centre.swapaxes(-1, -2)
    spread = _variance(sums, q)
    entries[(spread == 0) | (spread.swapaxes(-1, -2) == 0)] = 0.0
    return np.asarray(entries)


def _variance(sums: _Matrix, q: int) -> _Matrix:
    """The variance of column i over the rows where column j is present too."""
    count = np.maximum(sums[..., q : 2 * q, q : 2 * q], 1.0)
    square = sums[..., 2 * q : 3 * q, q : 2 * q] / count
    spread = square - (sums[..., :q, q : 2 * q] / count) ** 2
    return np.where(spread > _TINY * np.maximum(1.0, square), spread, 0.0)


def _pearson(sums: _Matrix, q: int) -> _Matrix:
    count = np.maximum(sums[..., q : 2 * q, q : 2 * q], 1.0)
    centre = sums[..., :q, q : 2 * q] / count
    spread = _variance(sums, q)
    both = np.sqrt(spread * spread.swapaxes(-1, -2))
    entries = sums[..., :q, :q] / count - centre * centre.swapaxes(-1, -2)
    return np.clip(np.divide(entries, both, out=np.zeros_like(both), where=both > 0), -1.0, 1.0)


def _correlation_ratio(sums: _Matrix, plan: Plan) -> _Matrix:
    """Eta: the square root of the share of variance that lies between the categories."""
    q, first = len(plan.ordered), 3 * len(plan.ordered)
    starts = plan.starts - first
    total, count, square = (sums[..., first:, place * q : (place + 1) * q] for place in range(3))
    between = np.add.reduceat(np.divide(total**2, count, out=np.zeros_like(total), where=count > 0), starts, axis=-2)
    count, total, square = (np.add.reduceat(part, starts, axis=-2) for part in (count, total, square))
    middle = np.divide(total**2, count, out=np.zeros_like(total), where=count > 0)
    whole = np.where(square - middle > _TINY * np.maximum(count, square), square - middle, 0.0)
    ratio = np.divide(between - middle, whole, out=np.zeros_like(whole), where=whole > 0)
    return np.asarray(np.sqrt(np.clip(ratio, 0.0, 1.0)))


def _cramer(sums: _Matrix, plan: Plan) -> _Matrix:
    first = 3 * len(plan.ordered)
    starts = plan.starts - first
    tables = sums[..., first:, first:]
    counts = np.diagonal(tables, axis1=-2, axis2=-1)
    rows = counts[..., : starts[1] if len(starts) > 1 else None].sum(axis=-1)[..., None, None]
    filled = np.add.reduceat((counts > 0).astype(np.float64), starts, axis=-1)
    inverse = np.divide(1.0, counts, out=np.zeros_like(counts), where=counts > 0)
    squares = tables**2 * inverse[..., :, None] * inverse[..., None, :]
    contingency = np.add.reduceat(np.add.reduceat(squares, starts, axis=-2), starts, axis=-1) - 1.0  # phi squared
    free = (filled - 1.0)[..., :, None]
    others = np.where(rows < 2, np.inf, rows - 1.0)  # a single row has no links
    corrected = np.maximum(0.0, contingency - free * free.swapaxes(-1, -2) / others)
    sides = np.where(rows < 2, 0.0, free - free**2 / others)
    smaller = np.minimum(sides, sides.swapaxes(-1, -2))
    ratio = np.divide(corrected, smaller, out=np.zeros_like(corrected), where=smaller > 1e-12)
    return np.asarray(np.sqrt(np.clip(ratio, 0.0, 1.0)))
