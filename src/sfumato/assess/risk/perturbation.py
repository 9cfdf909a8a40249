"""How far the release moved people, so that methods can be compared at equal perturbation [JS07, 2.6]."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure
from sfumato.assess.intervals import holding
from sfumato.assess.neighbours import nearest
from sfumato.assess.study import Study, sample

__all__ = ["PERTURBATION"]

_REDRAWS = 200

_MEANING = (
    "How far a person is from the released row most like them, or from the row that descends from theirs where that is "
    "known, in standard deviations a column; less keeps more detail, and two methods are fairly compared by the "
    "uncertainty that they leave only where this is equal"
)


def _run(study: Study) -> Iterable[Finding]:
    if len(study.original) < 2:
        return PERTURBATION.not_run("the original has a single row and so no neighbours")
    rng, most, scale = study.generator("perturbation"), study.sizes.attempts, np.sqrt(len(study.pairs))
    origin = None if study.workings is None else study.workings.origin
    if origin is not None:
        known = np.flatnonzero((origin >= 0) & (origin < len(study.original)))
        rows = known[sample(len(known), most, rng)]
        people = origin[rows]
        moved = np.sqrt(((study.original[people] - study.released[rows]) ** 2).sum(axis=1))
        control = None
    else:
        people = sample(len(study.original), most, rng)
        moved, control = _to_nearest(study, people, rng)
    if not len(people):
        return PERTURBATION.not_run("no released row descends from an original one")
    others = nearest(study.original, study.original[people], own=people)[1][:, 0]
    aside = None if control is None else control / scale
    return (_finding(moved / scale, float(others.mean() / scale), aside, len(study.original), rng),)


def _to_nearest(
    study: Study, people: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Measure how far people, and people held out, are from the released row most like them, in one search."""
    if study.holdout is None:
        return nearest(study.released, study.original[people])[1][:, 0], None
    outside = study.holdout[sample(len(study.holdout), study.sizes.attempts, rng)]
    apart = nearest(study.released, np.concatenate([study.original[people], outside]))[1][:, 0]
    return apart[: len(people)], apart[len(people) :]


def _finding(
    moved: NDArray[np.float64],
    baseline: float,
    control: NDArray[np.float64] | None,
    rows: int,
    rng: np.random.Generator,
) -> Finding:
    note = f"; counted on {len(moved)} rows drawn at random" if len(moved) < rows else ""
    return Finding(
        "perturbation",
        Family.UTILITY,
        float(moved.mean()),
        Direction.LOWER,
        (0.0, None),
        _MEANING + note + ".",
        interval=_interval(moved, rng),
        baseline=baseline,
        control=None if control is None else float(control.mean()),
        control_interval=None if control is None else _interval(control, rng),
        attempts=len(moved),
    )


def _interval(values: NDArray[np.float64], rng: np.random.Generator) -> tuple[float, float]:
    again = rng.integers(0, len(values), size=(_REDRAWS, len(values)))
    return holding(float(values.mean()), values[again].mean(axis=1))


PERTURBATION = Measure(
    name="perturbation",
    family=Family.UTILITY,
    source="Jain & Sharma 2007, 2.6",
    findings={"perturbation": _MEANING + "."},
    run=_run,
)
