"""How many rows the measures look at, chosen from the table's size and the seconds that were granted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from sfumato.core.threads import one_thread

__all__ = ["Sizes", "choose_sizes"]

_SCALES = tuple(2.0 ** (step / 2) for step in range(-10, 7))  # 1/32 to 8 in steps of the square root of 2
_FEWEST = 100
_TIMES_JUDGED = 5
_QUICK = 2e9  # coordinates of pairs that an attack compares within a second or two
_EASY = 2e7  # numbers in a table up to which every attack is tried the usual number of times
_FIXED, _COLUMN, _PAIRS, _TRAINING, _CELLS = 7.5, 0.1, 0.13, 9.5, 9.0
"""Seconds of a whole report on the machine of `_TRIAL`: in any case, for each column, for a million pairs of a person
and a row compared, twice that at 100 coordinates, for 100,000 cells that a model learns from, and for a million cells
read. Fitted to reports of eleven tables; benchmarks/speed/evaluation.py prints estimate and actual."""
_MOST_PAIRS = 6e8  # in larger tables attacks try fewer people
_TRIAL = 0.0125  # seconds that the trial of `_slowness` took there


@dataclass(frozen=True)
class Sizes:
    """How much is looked at. What a table has fewer of is looked at whole."""

    attempts: int = 2_000  # people attacked in each attack, and held-out people in its control
    training: int = 10_000  # rows that a model learns from
    testing: int = 5_000  # rows that a model is tested on
    queries: int = 1_000  # counting queries that are asked
    estimate: float | None = None  # seconds that all of it was expected to take, where a budget was given
    budget: float | None = None  # seconds that were granted
    judged: bool = False  # whether a policy is judged by it, which takes more people to be attacked


def choose_sizes(
    rows: int, coordinates: int, columns: int, budget: float | None = None, *, judged: bool = False
) -> Sizes:
    """Choose sizes for a table of so many rows.

    Without a budget the usual ones, with fewer attempts where the table is so large that each costs much. With a
    budget the largest whose expected time, from a short trial on this machine, fits; the smallest where none does.
    Where a policy is judged by the findings, five times as many people are attacked; else so many as far as that is
    quick, for the usual policy is judged by them, too.

    Examples
    --------
    >>> choose_sizes(1000, 10, 10).attempts
    2000
    """
    usual = _scaled(1.0, rows, coordinates, judged)
    if budget is None:
        return usual
    slowness = _slowness()
    chosen = None
    for scale in _SCALES:
        sizes = _scaled(scale, rows, coordinates, judged)
        seconds = slowness * _seconds(sizes, rows, coordinates, columns)
        if chosen is None or seconds <= budget:
            chosen = replace(sizes, estimate=round(seconds, 1), budget=budget)
    assert chosen is not None
    return chosen


def _scaled(scale: float, rows: int, coordinates: int, judged: bool) -> Sizes:
    usual = Sizes()
    easy = min(1.0, _EASY / (rows * coordinates))
    quick = 1.0
    if rows > usual.attempts:
        quick = min(_TIMES_JUDGED, max(1.0, _QUICK / (usual.attempts * rows * coordinates)))
    attempts = max(_FEWEST, int(usual.attempts * scale * easy * (_TIMES_JUDGED if judged else quick)))
    return Sizes(
        attempts,
        max(10 * _FEWEST, int(usual.training * scale)),
        max(5 * _FEWEST, int(usual.testing * scale)),
        max(_FEWEST, int(usual.queries * scale)),
        judged=judged,
    )


def _seconds(sizes: Sizes, rows: int, coordinates: int, columns: int) -> float:
    """Expect so many seconds for a whole report on the machine of `_TRIAL`."""
    pairs = min(min(sizes.attempts, rows) * rows, _MOST_PAIRS) / 1e6 * (1 + coordinates / 100)
    learned = min(sizes.training, rows) * columns / 1e5
    read = rows * columns / 1e6
    return _FIXED + _COLUMN * columns + _PAIRS * pairs + _TRAINING * learned + _CELLS * read


def _slowness() -> float:
    """Time products of the kind that models and attacks make, against what they took on the machine of `_TRIAL`."""
    points = np.random.default_rng(0).normal(size=(8_000, 20))  # made-up points for a stop-watch: never released
    taken = []
    with one_thread():  # threads wait for one another where there is other work
        for _ in range(5):
            begin = perf_counter()
            for start in range(0, 1_000, 250):
                (points[start : start + 250] @ points.T).argmin(axis=1)
            taken.append(perf_counter() - begin)
    return float(np.clip(min(taken) / _TRIAL, 0.2, 20.0))
