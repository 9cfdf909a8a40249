"""Check the inputs of a miner: groups, parameters and rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.errors import BadInput, OptionError
from sfumato.core.groups import Groups

__all__ = [
    "blocks",
    "check_fitted",
    "check_groups",
    "check_rows",
    "check_whole",
    "log_gaussian",
    "whiteners",
]


def check_groups(groups: Groups) -> None:
    """Refuse unusable groups: none at all, empty ones, or non-finite statistics."""
    if not len(groups):
        raise BadInput("there are 0 groups; provide at least one")
    empty = int((groups.count < 1).sum())
    if empty:
        raise BadInput(f"{empty} of {len(groups)} groups have no records; leave them out")
    flat = groups.scatter.reshape(len(groups), -1)
    odd = int((~np.isfinite(groups.mean).all(axis=1) | ~np.isfinite(flat).all(axis=1)).sum())
    if odd:
        raise BadInput(f"{odd} of {len(groups)} groups have statistics that are not finite; leave them out")


def check_rows(rows: Any, d: int) -> Floats:
    """Rows as a float matrix with the d coordinates of the fitted groups."""
    values = np.asarray(rows, dtype=np.float64)
    if values.ndim != 2:
        raise BadInput(f"rows have {values.ndim} dimensions; give a matrix, one row for each record")
    if values.shape[1] != d:
        raise BadInput(f"rows have {values.shape[1]} coordinates and the groups {d}; encode them as the groups were")
    odd = int((~np.isfinite(values)).any(axis=1).sum())
    if odd:
        raise BadInput(f"{odd} of {len(values)} rows have missing or infinite coordinates; fill them or leave them out")
    return values


def check_whole(name: str, number: int, low: int) -> None:
    """Refuse a parameter that is not an integer or too small."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < low:
        raise OptionError(f"{name} is {number!r}; give a whole number from {low}")


def check_fitted(miner: object, result: str) -> None:
    """Refuse to predict before `fit`."""
    if not hasattr(miner, result):
        raise BadInput(f"{type(miner).__name__} has learned nothing yet; call fit first")


_NUMBERS = 4_000_000
"""Numbers that one block may hold: 32 MB."""


def whiteners(covariance: Floats) -> tuple[Floats, Floats]:
    """For each covariance A = L^-1 with L L^T = C, and log det C.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a covariance is not positive definite.
    """
    lower = np.linalg.cholesky(covariance)
    log_det = 2.0 * np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(axis=-1)
    return np.linalg.solve(lower, np.broadcast_to(np.eye(covariance.shape[-1]), lower.shape)), log_det


def log_gaussian(rows: Floats, mean: Floats, whitener: Floats, log_det: Floats) -> Floats:
    """Compute log N(x; m_j, C_j) = -(d log 2 pi + log det C_j + |A_j (x - m_j)|^2) / 2 for each row and each j.

    Returns
    -------
    ndarray of shape (rows, gaussians)
    """
    g, d = mean.shape
    centre = np.einsum("gij,gj->gi", whitener, mean).reshape(g * d)
    far = (rows @ whitener.reshape(g * d, d).T - centre).reshape(len(rows), g, d)
    return np.asarray(-0.5 * (d * np.log(2.0 * np.pi) + log_det + np.einsum("qgd,qgd->qg", far, far)))


def blocks(rows: int, width: int) -> Iterator[slice]:
    """Slices of rows whose arrays of ``width`` numbers per row stay within a memory bound."""
    step = max(1, _NUMBERS // max(width, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
