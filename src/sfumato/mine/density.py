"""Log-densities of many rows under many Gaussians, in blocks of bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["blocks", "log_gaussian", "whiteners"]

_NUMBERS = 4_000_000
"""Numbers that one block may hold: 32 MB."""


def whiteners(covariance: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give, for each covariance, A = L^-1 with L L^T = C, and log det C.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where a covariance is not positive definite.
    """
    lower = np.linalg.cholesky(covariance)
    log_det = 2.0 * np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(axis=-1)
    return np.linalg.solve(lower, np.broadcast_to(np.eye(covariance.shape[-1]), lower.shape)), log_det


def log_gaussian(
    rows: NDArray[np.float64],
    mean: NDArray[np.float64],
    whitener: NDArray[np.float64],
    log_det: NDArray[np.float64],
) -> NDArray[np.float64]:
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
    """Cut rows into slices whose arrays of that many numbers a row stay within bounds."""
    step = max(1, _NUMBERS // max(width, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
