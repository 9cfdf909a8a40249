"""Anonymized data from group statistics: uniform along each eigenvector [AY05, sec. 2, eq. 2.1]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.groups.model import Groups
from sfumato.groups.settle import settle
from sfumato.records import Layout
from sfumato.threads import one_blas_thread

__all__ = ["axes_of", "draw_along_eigenvectors", "generate"]


def generate(groups: Groups, layout: Layout, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw as many rows as each group has records, group after group.

    The coordinates come from the group's eigen-axes; then each discrete block is settled inside its group, so
    that category counts and missing cells are exactly the group's.

    Parameters
    ----------
    groups : Groups
    layout : tuple of Block
        What the coordinates mean; the discrete blocks are the ones that are settled.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (sum of counts, d)
    """
    values = draw_along_eigenvectors(groups, rng)
    return settle(values, groups, layout)


def draw_along_eigenvectors(groups: Groups, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw rows independently and uniformly along the eigenvectors of each group.

    Implements C(G) = P(G) D(G) P(G)^T [AY05, eq. 2.1]: along eigenvector j the law is uniform with variance
    lambda_j, hence of range sqrt(12 * lambda_j) (errata AY05.1).

    Notes
    -----
    A group of k <= d records has rank k - 1: its rows stay in the flat that its records span.
    """
    with one_blas_thread():  # many small matrices: threads only cost
        axes = axes_of(groups.covariance)
        values = np.empty((int(groups.count.sum()), groups.mean.shape[1]))
        starts = np.concatenate([[0], np.cumsum(groups.count)[:-1]])
        uniform = rng.random(values.shape)
        uniform -= 0.5
        for size in np.unique(groups.count):
            same = np.flatnonzero(groups.count == size)
            rows = starts[same, None] + np.arange(size)
            values[rows] = uniform[rows] @ axes[same] + groups.mean[same, None, :]
    return values


def axes_of(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the axes (g, d, d) of groups: row j is the range sqrt(12 * lambda_j) times eigenvector j.

    An eigenvalue that is rounding alone counts as 0: its root would be visible.
    """
    eigenvalues, eigenvectors = np.linalg.eigh(covariance)
    rounding = eigenvalues[:, -1:] * (covariance.shape[-1] * np.finfo(np.float64).eps)
    reach = np.sqrt(12.0 * np.where(eigenvalues > rounding, eigenvalues, 0.0))
    return np.asarray(reach[:, :, None] * eigenvectors.transpose(0, 2, 1))
