"""The algebra of `Groups`: side by side, and the paper's split of statistics [AY05, sec. 3]."""

from __future__ import annotations

import numpy as np

from sfumato.groups.model import Groups

__all__ = ["concat", "split_groups"]


def concat(*parts: Groups) -> Groups:
    """Lay groups side by side."""
    return Groups(
        np.concatenate([part.count for part in parts]),
        np.concatenate([part.mean for part in parts]),
        np.concatenate([part.scatter for part in parts]),
        np.concatenate([part.level_sum for part in parts]),
        np.concatenate([part.level_max for part in parts]),
    )


def split_groups(groups: Groups) -> tuple[Groups, Groups]:
    """Cut every group in two along its longest axis, without seeing a record.

    Implements the split of group statistics [AY05, sec. 3, fig. 7]. A group is taken as uniform along its
    leading eigenvector e1, hence of range a = sqrt(12 * lambda1) (errata AY05.1).

    Notes
    -----
    Departs from the paper for odd counts (errata AY05.3): the range is cut at f = n1/n, the pieces'
    centroids lie at -(1-f)*a/2 and +f*a/2 and their variances along e1 are (f*a)^2/12 and ((1-f)*a)^2/12. At
    f = 1/2 that is the paper's formula, and merging the pieces gives back the parent exactly.
    Ps divides in proportion; both halves inherit the highest level. The largest component of e1 is taken as positive,
    so that each piece has its side. Cost O(g * d^3).
    """
    if (groups.count < 2).any():
        raise ValueError(f"{int((groups.count < 2).sum())} groups have a single record; only larger ones split")
    eigenvalues, eigenvectors = np.linalg.eigh(groups.covariance)
    lambda1, e1 = np.maximum(eigenvalues[:, -1], 0.0), _oriented(eigenvectors[:, :, -1])
    reach = np.sqrt(12.0 * lambda1)
    left_count = groups.count // 2
    fraction = left_count / groups.count
    along = e1[:, :, None] * e1[:, None, :]

    def piece(share: np.ndarray, count: np.ndarray, shift: np.ndarray) -> Groups:
        shrunk = (lambda1 * (share**2 - 1.0))[:, None, None] * along  # lambda1 -> share^2 * lambda1
        return Groups(
            count,
            groups.mean + shift[:, None] * e1,
            count[:, None, None] * (groups.covariance + shrunk),
            groups.level_sum * share,
            groups.level_max.copy(),
        )

    left = piece(fraction, left_count, -(1.0 - fraction) * reach / 2.0)
    right = piece(1.0 - fraction, groups.count - left_count, fraction * reach / 2.0)
    return left, right


def _oriented(e1: np.ndarray) -> np.ndarray:
    """Turn each axis so that its largest component, the first of equals, is positive; LAPACK leaves that open."""
    largest = np.abs(e1).argmax(axis=1)[:, None]
    return e1 * np.where(np.take_along_axis(e1, largest, axis=1) < 0.0, -1.0, 1.0)
