"""Noise on principal components taken off again by whoever knows a record's group and its statistics.

The bounds of such noise are relative to what a group tells, and each owner of a joint release knows the groups. So this
attacker draws every noised row towards the mean of its group, as far as the group's covariance and the law of the noise
make likely: the Bayes estimate of Huang, Du, Chen 2005, group by group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.attacks.spectral import redraw_rows
from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import holding
from sfumato.assess.study import Study, sample
from sfumato.facts import ComponentNoise, Fact
from sfumato.records import BlockKind

__all__ = ["GROUP_FILTER", "estimate_in_group"]

_Matrix = NDArray[np.float64]
_Places = NDArray[np.int64]

_ROWS = 20_000  # rows whose error is counted
_NEAR = 0.1  # part of a column's range
_WAYS = ("the released value", "the Bayes estimate within the group")
_ERROR = (
    "How far, in standard deviations, an attacker who knows a record's group, its statistics and the law of the noise "
    "stays from the true numbers, beside guessing the mean of the group; more is better, and no less than the baseline "
    "means that the row adds nothing to what its group told"
)
_CLOSE = (
    "The share of numbers that an attacker who knows a record's group, its statistics and the law of the noise gives "
    "to within a tenth of their column's range, beside guessing the mean of the group; less is better"
)


def estimate_in_group(members: _Matrix, noised: _Matrix, scale: float) -> _Matrix:
    """Give what is most likely behind noised rows of a group whose statistics are known, if both are Gaussian.

    Parameters
    ----------
    members : ndarray of shape (n, d)
        The group's records: mean, covariance and ranges of the components are taken from them.
    noised : ndarray of shape (m, d)
    scale : float
        Scale of the Laplace noise, in ranges of each component: its variance is twice its square.

    Notes
    -----
    In components the estimate is the mean plus lambda / (lambda + 2 (scale range)^2) of the deviation from it.
    """
    mean = members.mean(axis=0)
    centred = members - mean
    eigenvalues, axes = np.linalg.eigh(centred.T @ centred / len(members))
    variance = 2.0 * (scale * np.ptp(centred @ axes, axis=0)) ** 2
    told = np.maximum(eigenvalues, 0.0)
    share = np.divide(told, told + variance, out=np.zeros_like(told), where=told + variance > 0)
    return np.asarray(mean + (noised - mean) @ axes * share @ axes.T)


def _applies(facts: Sequence[Fact]) -> str | None:
    if any(isinstance(fact, ComponentNoise) for fact in facts):
        return None
    return "no noise was put on the principal components of groups, so there is none to filter off"


def _run(study: Study) -> Iterable[Finding]:
    workings, fact = study.workings, study.fact(ComponentNoise)
    assert workings is not None
    assert workings.origin is not None
    assert fact is not None
    rng, origin = study.generator(GROUP_FILTER.name), workings.origin
    known = np.flatnonzero((origin >= 0) & (origin < len(study.original)))
    places, there = _columns(study, known, origin[known])
    if not places:
        return GROUP_FILTER.not_run("no column is a number that differs between people and is released")
    guessed, means = study.released[known].copy(), np.empty((len(known), study.released.shape[1]))
    for members, rows in _groups(study, known):
        guessed[rows] = estimate_in_group(study.original[members], study.released[known[rows]], fact.scale)
        means[rows] = study.original[members].mean(axis=0)
    rows = sample(len(known), _ROWS, rng)
    true, there = study.original[origin[known[rows]]][:, places], there[rows]
    guesses = (study.released[known[rows]][:, places], guessed[rows][:, places])
    errors = np.stack([np.where(there, guess - true, 0.0) for guess in guesses])
    idle = np.where(there, means[rows][:, places] - true, 0.0)
    best = int(np.argmin((errors**2).sum(axis=(1, 2))))
    note = f"; here the best is {_WAYS[best]}"
    note += f"; counted on {len(rows)} rows drawn at random" if len(rows) < len(study.released) else ""
    reach = _NEAR * np.ptp(study.original[:, places], axis=0)
    return _findings(errors[best], idle, reach, there, note, rng)


def _groups(study: Study, known: _Places) -> Iterator[tuple[_Places, _Places]]:
    """Give the records of each group, and the places among the known rows of those that descend from it."""
    assert study.workings is not None
    assert study.workings.labels is not None
    assert study.workings.drawn_from is not None
    labels, drawn_from = study.workings.labels, study.workings.drawn_from[known]
    members, rows = np.argsort(labels, kind="stable"), np.argsort(drawn_from, kind="stable")
    for group in np.unique(drawn_from):
        first, last = np.searchsorted(labels[members], [group, group + 1])
        begin, end = np.searchsorted(drawn_from[rows], [group, group + 1])
        if last > first:
            yield members[first:last], rows[begin:end]


def _columns(study: Study, released: _Places, original: _Places) -> tuple[list[int], NDArray[np.bool_]]:
    """Find the coordinates of numbers that differ between people, and which cells both tables have."""
    places, there = [], []
    for block in study.layout:
        if block.kind is not BlockKind.NUMBER:
            continue
        pair = study.pair(block.column)
        both = ~pair.released.absent[released] & ~pair.original.absent[original]
        if both.sum() >= 2 and np.ptp(study.original[original[both], block.start]) > 0:
            places.append(block.start)
            there.append(both)
    return places, np.column_stack(there) if there else np.zeros((len(released), 0), dtype=np.bool_)


def _findings(
    errors: _Matrix, idle: _Matrix, reach: _Matrix, there: NDArray[np.bool_], note: str, rng: np.random.Generator
) -> tuple[Finding, Finding]:
    cells = there.sum(axis=1)
    total = float(cells.sum())
    squares = (errors**2).sum(axis=1)
    hits = ((np.abs(errors) <= reach) & there).sum(axis=1).astype(np.float64)
    error, near = float(np.sqrt(squares.sum() / total)), float(hits.sum() / total)
    return (
        Finding(
            "group-filtered-error",
            Family.ATTACK,
            error,
            Direction.HIGHER,
            (0.0, None),
            f"{_ERROR}{note}.",
            interval=holding(error, np.sqrt(redraw_rows(squares, cells, rng))),
            baseline=float(np.sqrt((idle**2).sum() / total)),
            attempts=int(total),
        ),
        Finding(
            "group-filtered-cells-near",
            Family.ATTACK,
            near,
            Direction.LOWER,
            (0.0, 1.0),
            f"{_CLOSE}{note}.",
            interval=holding(near, redraw_rows(hits, cells, rng)),
            baseline=float(((np.abs(idle) <= reach) & there).sum() / total),
            attempts=int(total),
            unit="share",
        ),
    )


GROUP_FILTER = Measure(
    name="group-filter",
    family=Family.ATTACK,
    source="Huang, Du & Chen 2005; Banerjee, Chen & Gangopadhyay 2010",
    findings={"group-filtered-error": _ERROR + ".", "group-filtered-cells-near": _CLOSE + "."},
    run=_run,
    higher=frozenset({"group-filtered-error"}),
    needs=(Need.GROUPS, Need.ORIGIN),
    applies=_applies,
)
