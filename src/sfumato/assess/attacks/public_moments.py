"""Public figures: someone who knows the mean and the deviation of each column undoes a shift or a change of scale."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.attacks.known_input import NOTHING, moved_columns, not_moved
from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import wilson
from sfumato.assess.study import Study
from sfumato.facts import Transformed

__all__ = ["PUBLIC_MOMENTS", "match_moments"]

_MEANING = (
    "The share of numbers that someone recovers to a tenth of a standard deviation who knows no row, only the mean and "
    "the standard deviation of each original column and which way it leans, beside what guessing the mean recovers "
    "(baseline)"
)


def match_moments(
    released: NDArray[np.float64], mean: NDArray[np.float64], deviation: NDArray[np.float64], lean: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bring each released column to a known mean and deviation, turned over where it leans the other way.

    Examples
    --------
    >>> ages = np.array([[20.0], [30.0], [70.0]])
    >>> match_moments(5 - 3 * ages, ages.mean(axis=0), ages.std(axis=0), np.ones(1)).round(9).tolist()
    [[20.0], [30.0], [70.0]]
    """
    centred = released - released.mean(axis=0)
    spread = centred.std(axis=0)
    standard = centred / np.where(spread > 0, spread, 1.0)
    side = np.where(lean * (standard**3).mean(axis=0) < 0, -1.0, 1.0)
    return np.asarray(mean + deviation * side * standard)


def _run(study: Study) -> Iterable[Finding]:
    rng, fact = study.generator(PUBLIC_MOMENTS.name), study.fact(Transformed)
    assert fact is not None
    moved = moved_columns(study, study.sizes.training, rng)
    if moved is None:
        return PUBLIC_MOMENTS.not_run(NOTHING)
    before, rows = moved.before, np.arange(len(moved.before))
    mean, spread = before.mean(axis=0), moved.spread
    lean = ((before - mean) ** 3).mean(axis=0) if "mult" in fact.operations else np.zeros(len(mean))
    value = moved.recovered(match_moments(moved.after, mean, spread, lean), rows)
    note = f"; counted on {len(rows)} rows drawn at random" if len(rows) < len(study.released) else ""
    return (
        Finding(
            "recovered-cells-public-moments",
            Family.ATTACK,
            value,
            Direction.LOWER,
            (0.0, 1.0),
            _MEANING + note + ".",
            interval=wilson(value * len(rows), len(rows)),
            baseline=moved.recovered(np.broadcast_to(mean, before.shape), rows),
            attempts=len(rows),
            unit="share",
        ),
    )


PUBLIC_MOMENTS = Measure(
    name="public-moments",
    family=Family.ATTACK,
    source="Oliveira & Zaiane 2003 undone by published figures",
    findings={"recovered-cells-public-moments": _MEANING + "."},
    run=_run,
    needs=(Need.ORIGIN,),
    applies=not_moved,
)
