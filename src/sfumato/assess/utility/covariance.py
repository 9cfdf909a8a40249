"""Covariance compatibility mu: how well the covariance matrix came through [AY05, sec. 4]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Direction, Family, Finding, not_run
from sfumato.assess.intervals import holding
from sfumato.assess.utility.association import covariance
from sfumato.assess.utility.moments import Moments, redraws

__all__ = ["compatibility", "covariance_findings"]

_Matrix = NDArray[np.float64]
_REDRAWS = 200
_TINY = 1e-12

_MEANING = (
    "How well the table of variances and covariances of the numeric columns agrees with the original's{units}: "
    "1 means in perfect step, 0 or less means no agreement."
)
_UNITS = {
    "covariance-compatibility": ", each column in its own units",
    "covariance-compatibility-standardized": ", each column counted in the original's standard deviations",
}


def compatibility(original: _Matrix, released: _Matrix) -> float | None:
    """Correlate the entries of two covariance matrices, each unordered pair once and the variances too.

    This is mu [AY05, sec. 4]. Equal matrices give 1 as the paper says. Where the released entries are all equal, which
    is so for a constant table, no correlation exists and mu is set to 0. Where only the original's are, or there is
    a single entry, there is nothing to compare with.

    Parameters
    ----------
    original, released : ndarray of shape (d, d)

    Returns
    -------
    float or None
        None where mu is undefined.

    Examples
    --------
    >>> o = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> compatibility(o, 5 * o), compatibility(o, np.zeros((2, 2))), compatibility(o[:1, :1], o[:1, :1])
    (1.0, 0.0, None)
    """
    mu = float(_compatibilities(original[None], released[None])[0])
    return None if np.isnan(mu) else mu


def _compatibilities(originals: _Matrix, releaseds: _Matrix) -> _Matrix:
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


def covariance_findings(original: Moments, released: Moments, rng: np.random.Generator) -> tuple[Finding, ...]:
    """Measure mu on the columns in their own units and in the original's standard deviations."""
    scale = original.plan.scale / original.plan.scale.max(initial=1.0)  # mu does not mind, and nothing overflows
    units = {"covariance-compatibility": np.outer(scale, scale), "covariance-compatibility-standardized": None}
    if len(scale) < 2:
        because = f"the table has {len(scale)} columns with an order and a covariance needs two"
        return tuple(_not_run(name, because) for name in units)
    before, after = original.of_ordered(), released.of_ordered()
    return tuple(_finding(name, unit, before, after, rng) for name, unit in units.items())


def _not_run(name: str, because: str) -> Finding:
    meaning = _MEANING.format(units=_UNITS[name])
    return not_run(name, Family.UTILITY, Direction.HIGHER, meaning, because)


def _finding(
    name: str, unit: _Matrix | None, original: Moments, released: Moments, rng: np.random.Generator
) -> Finding:
    def entries(sums: _Matrix) -> _Matrix:
        matrix = covariance(sums, original.plan)
        return matrix if unit is None else matrix * unit

    before, after = entries(original.total), entries(released.total)
    value = compatibility(before, after)
    if value is None:
        return _not_run(name, "the variances and covariances of the original are all the same number")
    sources = ((original, original.rows), (released, released.rows), (original, released.rows))
    again, chance = [], []
    for drawn in zip(*(redraws(source, rows, _REDRAWS, rng) for source, rows in sources), strict=True):
        first, second, fresh = (entries(sums) for sums in drawn)
        again.append(_compatibilities(first, second))
        chance.append(_compatibilities(before[None], fresh))
    known, redrawn = (every[~np.isnan(every)] for every in map(np.concatenate, (again, chance)))
    return Finding(
        name,
        Family.UTILITY,
        value,
        Direction.HIGHER,
        (-1.0, 1.0),
        _MEANING.format(units=_UNITS[name]),
        interval=holding(value, known if len(known) else np.array([value])),
        baseline=float(np.mean(redrawn)) if len(redrawn) else None,
    )
