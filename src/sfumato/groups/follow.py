"""Letting the rest of a row follow when a coordinate is settled, so that settling does not wear out association.

A drawn coordinate that is moved to a category carries along what its group's covariance ties to it: the linear
regression of the other coordinates on it, held back so that no record is copied.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import compiled
from sfumato.groups.model import Groups
from sfumato.records import BlockKind, Layout

__all__ = ["caution", "follow"]

_TINY = 1e-12  # variance of a category or an indicator that is rounding alone


def caution(groups: Groups, layout: Layout) -> NDArray[np.float64]:
    """Give the ridge of each group's regression: the discrete columns that vary inside, divided by the count.

    A record's squared deviation in a discrete block is at most 1, so with this ridge its weight in its own fit (its
    leverage) is at most 1/2. Without a ridge a category that one record of the group holds would bring back that very
    record: its conditional mean *is* the record. The ridge fades as groups grow.
    """
    variance = np.diagonal(groups.scatter, axis1=1, axis2=2) / groups.count[:, None]
    varying = np.zeros(len(groups))
    for block in layout:
        if block.kind is not BlockKind.NUMBER:
            varying += variance[:, block.where].max(axis=1) > _TINY
    return np.asarray(varying / groups.count)


@compiled
def follow(
    values: NDArray[np.float64],
    settled: NDArray[np.float64],
    start: int,
    starts: NDArray[np.int64],
    covariance: NDArray[np.float64],
    ridge: NDArray[np.float64],
) -> None:
    """Put settled coordinates into rows drawn group after group and shift the others by their regression on the move.

    One coordinate at a time, which equals the joint ridge regression. The covariances become those of what is
    left to settle, given what is settled; the settled coordinates have none.
    """
    d = values.shape[1]
    live = np.empty(d, dtype=np.int64)
    column = np.empty(d)
    for group in range(len(ridge)):
        sigma = covariance[group]
        lives = 0
        for i in range(d):
            if sigma[i, i] > 0.0:
                live[lives] = i
                lives += 1
        for offset in range(settled.shape[1]):
            place = start + offset
            if sigma[place, place] <= _TINY:
                continue
            weight = 1.0 / (sigma[place, place] + ridge[group])
            for a in range(lives):
                column[a] = sigma[live[a], place]
            for row in range(starts[group], starts[group + 1]):
                moved = (settled[row, offset] - values[row, place]) * weight
                for a in range(lives):
                    values[row, live[a]] += column[a] * moved
            for a in range(lives):
                for b in range(lives):
                    sigma[live[a], live[b]] -= column[a] * weight * column[b]
        for offset in range(settled.shape[1]):
            sigma[start + offset, :] = 0.0
            sigma[:, start + offset] = 0.0
    for row in range(values.shape[0]):
        for offset in range(settled.shape[1]):
            values[row, start + offset] = settled[row, offset]
