"""How many rows the measures look at, chosen from the table's size and the seconds that were granted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np

__all__ = ["Sizes", "choose_sizes"]

_SCALES = tuple(2.0 ** (step / 2) for step in range(-10, 7))  # 1/32 to 8 in steps of the square root of 2
_FEWEST = 100
_EASY = 2e7  # numbers in a table up to which every attack is tried the usual number of times
_WORK = {"pairs": 26.0, "models": 34.0, "rows": 9.0}
"""Work of a whole report: neighbour searches of ``attempts`` over all rows, models trained on ``training`` rows and
passes over all cells, each in units that `_speed` times. Fitted to reports of six tables; benchmarks/speed/report.py
prints estimate beside actual."""


@dataclass(frozen=True)
class Sizes:
    """How much is looked at. What a table has fewer of is looked at whole.

    Parameters
    ----------
    attempts : int
        People attacked in each attack, and held-out people in its control.
    training : int
        Rows that a model learns from.
    testing : int
        Rows that a model is tested on.
    queries : int
        Counting queries that are asked.
    estimate : float or None
        Seconds that all of it was expected to take, where a budget was given.
    budget : float or None
        Seconds that were granted.
    """

    attempts: int = 2_000
    training: int = 10_000
    testing: int = 5_000
    queries: int = 1_000
    estimate: float | None = None
    budget: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Write the sizes as plain values."""
        return asdict(self)


def choose_sizes(rows: int, coordinates: int, columns: int, budget: float | None = None) -> Sizes:
    """Choose sizes for a table of so many rows.

    Without a budget the usual ones, with fewer attempts where the table is so large that each costs much. With a
    budget the largest whose expected time, from a short trial on this machine, fits; the smallest where none does.

    Examples
    --------
    >>> choose_sizes(1000, 10, 10).attempts
    2000
    """
    usual = _scaled(1.0, rows, coordinates)
    if budget is None:
        return usual
    speed = _speed(coordinates)
    best = None
    for scale in _SCALES:
        sizes = _scaled(scale, rows, coordinates)
        seconds = _seconds(sizes, rows, coordinates, columns, speed)
        if best is None or seconds <= budget:
            best = Sizes(sizes.attempts, sizes.training, sizes.testing, sizes.queries, round(seconds, 1), budget)
    assert best is not None
    return best


def _scaled(scale: float, rows: int, coordinates: int) -> Sizes:
    usual = Sizes()
    easy = min(1.0, _EASY / (rows * coordinates))
    attempts = max(_FEWEST, int(usual.attempts * scale * easy))
    return Sizes(
        attempts,
        max(10 * _FEWEST, int(usual.training * scale)),
        max(5 * _FEWEST, int(usual.testing * scale)),
        max(_FEWEST, int(usual.queries * scale)),
    )


def _seconds(sizes: Sizes, rows: int, coordinates: int, columns: int, speed: float) -> float:
    """Expect so many seconds for a whole report; ``speed`` is seconds for a million coordinate differences."""
    pairs = min(sizes.attempts, rows) * rows * coordinates / 1e6
    models = min(sizes.training, rows) * columns / 1e2
    passes = rows * columns / 1e3
    return speed * (_WORK["pairs"] * pairs + _WORK["models"] * models + _WORK["rows"] * passes)


def _speed(coordinates: int) -> float:
    """Time a small search of the kind that the attacks make."""
    from sfumato.assess.neighbours import nearest

    rng = np.random.default_rng(0)  # made-up points for a stop-watch: nothing of it is released
    width = max(coordinates, 13)
    points = rng.normal(size=(8_000, width))
    nearest(points[:500], points[:100])
    begin = perf_counter()
    nearest(points, points[:1_000])
    return (perf_counter() - begin) / (8.0 * width)
