"""How compact the groups are: the sum of squares inside them and the share of all variation that it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Direction, Family, Finding, not_run
from sfumato.mechanism import Workings

__all__ = ["condensation_findings", "squares_inside"]

_SSQ = (
    "The squared distances of all records to the middle of their group, added up; the smaller, the more alike the "
    "records that were condensed together."
)
_LOSS = (
    "The percentage of all variation in the original that lies inside the groups, which is where detail is replaced "
    "by chance: 0 loses nothing, 100 means a single group or one no better."
)


def condensation_findings(values: NDArray[np.float64], workings: Workings | None) -> tuple[Finding, ...]:
    """Measure SSQ and information loss, 100 * SSE / SST, of the encoded original under its groups.

    The baseline is the expectation for groups of the same number filled at random: SST * (n - g) / (n - 1).
    """
    if workings is None or workings.labels is None:
        because = "no groups came with the table; they are known only to the run that made it"
        return (_not_run("ssq", _SSQ, because), _not_run("information-loss", _LOSS, because))
    inside = squares_inside(values, workings.labels)
    whole = float(((values - values.mean(axis=0)) ** 2).sum())
    n, g = len(values), len(np.unique(workings.labels))
    chance = (n - g) / (n - 1) if n > 1 else 0.0
    ssq = _finding("ssq", inside, (0.0, whole), whole * chance, _SSQ)
    if whole == 0.0:
        return ssq, _not_run("information-loss", _LOSS, "no column of the original varies")
    loss = min(100.0, 100.0 * inside / whole)
    return ssq, _finding("information-loss", loss, (0.0, 100.0), 100.0 * chance, _LOSS, unit="percent")


def squares_inside(values: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Sum the squared distances of records to the mean of their group.

    Examples
    --------
    >>> squares_inside(np.array([[0.0], [2.0], [7.0]]), np.array([0, 0, 1]))
    2.0
    """
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=labels.min(initial=0) - 1))
    sizes = np.diff(starts, append=len(labels))
    total = 0.0
    for column in values.T:
        cells = column[order]
        mean = np.add.reduceat(cells, starts) / sizes
        total += float(((cells - np.repeat(mean, sizes)) ** 2).sum())
    return total


def _finding(
    name: str, value: float, bounds: tuple[float, float], baseline: float, meaning: str, unit: str = ""
) -> Finding:
    return Finding(
        name, Family.UTILITY, value, Direction.LOWER, bounds, meaning, baseline=baseline, public=False, unit=unit
    )


def _not_run(name: str, meaning: str, because: str) -> Finding:
    return not_run(name, Family.UTILITY, Direction.LOWER, meaning, because, public=False)
