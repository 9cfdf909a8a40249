"""How well a numeric response is predicted by a model that learned from the released table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import holding
from sfumato.assess.study import Study
from sfumato.assess.utility.learning import (
    Task,
    correlations,
    is_class,
    predict,
    r_squares,
    redraw_weights,
    task_of,
)

__all__ = ["RESPONSES"]

_Matrix = NDArray[np.float64]

_REDRAWS = 200
_MODELS = {"1nn": "a nearest-neighbour rule", "boosting": "a model of boosted trees", "ridge": "a ridge regression"}
_MINERS = {"1nn": "1nn", "boosting": "boosting", "ridge": "linear"}
_CORRELATION = (
    "How closely what {model} that learned from the released table predicts for people whom it never saw goes along "
    "with the truth, beside the same model that learned from as many original rows (baseline); 1 is best, 0 is no "
    "better than guessing"
)
_R2 = (
    "The share of the response's variance among people never seen that {model} that learned from the released table "
    "explains, beside the same model that learned from as many original rows (baseline); 1 is best, 0 is what always "
    "guessing the average gets and below 0 is worse than that"
)
_NO_NUMBER = "the column to predict holds classes, not numbers; see the findings on accuracy"
_ALIKE = "the response is the same in all test rows"


def _run(study: Study) -> tuple[Finding, ...]:
    if study.target is not None and is_class(study.pair(study.target)):
        return RESPONSES.not_run(_NO_NUMBER)
    rng = study.generator(RESPONSES.name)
    task = task_of(study, study.sizes.training, study.sizes.testing, rng)
    if isinstance(task, str):
        return RESPONSES.not_run(task)
    truth = task.test.labels
    if truth.min() == truth.max():
        return RESPONSES.not_run(_ALIKE)
    guesses = {name: _guesses(task, miner, int(rng.integers(2**31))) for name, miner in _MINERS.items()}
    weights = redraw_weights(len(truth), _REDRAWS, rng)
    return (*_correlations(task, guesses, weights), *_r_squares(task, guesses, weights))


def _guesses(task: Task, miner: str, seed: int) -> tuple[_Matrix, _Matrix]:
    """Predict the test rows after learning from the released table, and from the original."""
    first, second = (
        predict(miner, lesson, task.test.rows, classes=0, seed=seed) for lesson in (task.released, task.original)
    )
    return first, second


def _correlations(task: Task, guesses: dict[str, tuple[_Matrix, _Matrix]], weights: _Matrix) -> Iterator[Finding]:
    truth, once = task.test.labels, np.ones((1, len(task.test.labels)))
    for name, (released, original) in guesses.items():
        value, baseline = (float(correlations(once, truth, guess)[0]) for guess in (released, original))
        redraws = correlations(weights, truth, released)
        meaning = _CORRELATION.format(model=_MODELS[name]) + task.note + "."
        yield _finding(f"response-correlation-{name}", value, (-1.0, 1.0), meaning, redraws, baseline, len(truth))


def _r_squares(task: Task, guesses: dict[str, tuple[_Matrix, _Matrix]], weights: _Matrix) -> Iterator[Finding]:
    truth, once = task.test.labels, np.ones((1, len(task.test.labels)))
    for name, (released, original) in guesses.items():
        value, baseline = (float(r_squares(once, truth, guess)[0]) for guess in (released, original))
        redraws = np.append(r_squares(weights, truth, released), value)
        meaning = _R2.format(model=_MODELS[name]) + task.note + "."
        yield _finding(f"response-r2-{name}", value, (None, 1.0), meaning, redraws, baseline, len(truth))


def _finding(
    name: str,
    value: float,
    bounds: tuple[float | None, float],
    meaning: str,
    redraws: _Matrix,
    baseline: float,
    attempts: int,
) -> Finding:
    return Finding(
        name,
        Family.UTILITY,
        value,
        Direction.HIGHER,
        bounds,
        meaning,
        interval=holding(value, redraws),
        baseline=baseline,
        attempts=attempts,
    )


_FINDINGS = {
    **{f"response-correlation-{name}": _CORRELATION.format(model=model) + "." for name, model in _MODELS.items()},
    **{f"response-r2-{name}": _R2.format(model=model) + "." for name, model in _MODELS.items()},
}

RESPONSES = Measure(
    name="responses",
    family=Family.UTILITY,
    source="Aggarwal and Yu 2005, section 4",
    findings=_FINDINGS,
    run=_run,
    higher=frozenset(_FINDINGS),
    needs=(Need.TARGET, Need.HOLDOUT, Need.COLUMNS),
)
