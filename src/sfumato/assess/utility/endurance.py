"""Whether the released table also serves miners that it was not made for [JS07, sec. 2.7]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import CONFIDENCE, holding
from sfumato.assess.study import Study
from sfumato.assess.utility.learning import Lesson, Task, correlations, predict, redraw_weights, task_of

__all__ = ["ENDURANCE"]

_Matrix = NDArray[np.float64]

_REDRAWS = 200
_MINERS = {
    "1nn": "the nearest-neighbour rule",
    "tree": "the decision tree",
    "linear": "the linear model",
    "bayes": "naive Bayes",
    "boosting": "boosting",
}
_MEANING = (
    "Of what a miner learns from the original beyond guessing, the share that it also learns from the released table, "
    "for the miner that loses most: 1 means that the table serves every miner that was tried, 0 that at least one "
    "learns nothing from it"
)
_HOPELESS = "no miner that was tried learns more than guessing from the original either"


def _run(study: Study) -> tuple[Finding, ...]:
    rng = study.generator(ENDURANCE.name)
    task = task_of(study, study.sizes.training // 2, study.sizes.testing // 2, rng)
    if isinstance(task, str):
        return ENDURANCE.not_run(task)
    kept = _all_kept(task, rng)
    return (_weakest(task, kept),) if kept else ENDURANCE.not_run(_HOPELESS)


def _all_kept(task: Task, rng: np.random.Generator) -> dict[str, tuple[_Matrix, _Matrix]]:
    """Give what each miner keeps, first on the test rows and then on their redraws.

    Of the two the first is what it keeps after learning from the released table, the second from other original rows.
    Miners that learn nothing from the original have nothing to lose and are left out.
    """
    count = len(task.test.labels)
    weights = np.vstack([np.ones((1, count)), redraw_weights(count, _REDRAWS, rng)])
    kept = {}
    for miner in _MINERS if task.classes else [name for name in _MINERS if name != "bayes"]:
        seed = int(rng.integers(2**31))
        before = _gain(task, task.original, miner, seed, weights)
        if min(before[0], np.quantile(before, (1 - CONFIDENCE) / 2)) > 0.0:
            released, again = (_gain(task, lesson, miner, seed, weights) for lesson in (task.released, task.again))
            kept[miner] = _kept(before, released), _kept(before, again)
    return kept


def _gain(task: Task, lesson: Lesson, miner: str, seed: int, weights: _Matrix) -> _Matrix:
    """Score a miner above guessing, on the test rows and on their redraws.

    A class is scored by the recall of every class alike, above what naming one class always gets; a response by the
    correlation of predicted and true values.
    """
    truth = task.test.labels
    guess = predict(miner, lesson, task.test.rows, classes=len(task.classes), seed=seed)
    return _recall_gain(weights, truth, guess) if task.classes else correlations(weights, truth, guess)


def _recall_gain(weights: _Matrix, truth: _Matrix, guess: _Matrix) -> _Matrix:
    """Average the recalls of the classes that each redraw holds, less what naming one of them always gets."""
    member = (truth[:, None] == np.unique(truth)).astype(np.float64)
    count = weights @ member
    right = weights @ (member * (truth == guess)[:, None])
    held = (count > 0).sum(axis=1)
    return np.asarray((right / np.maximum(count, 1.0)).sum(axis=1) / held - 1.0 / held)


def _kept(before: _Matrix, after: _Matrix) -> _Matrix:
    return np.clip(after / np.maximum(before, 1e-9), 0.0, 1.0)


def _weakest(task: Task, kept: dict[str, tuple[_Matrix, _Matrix]]) -> Finding:
    released, again = (np.array([shares[side] for shares in kept.values()]) for side in (0, 1))
    value = float(released[:, 0].min())
    weakest = _MINERS[list(kept)[int(np.argmin(released[:, 0]))]]
    tried = f"; {len(kept)} kinds of miners were tried that learn something from the original"
    least = f", and {weakest} loses most" if value < 1.0 else ""
    return Finding(
        "endurance",
        Family.UTILITY,
        value,
        Direction.HIGHER,
        (0.0, 1.0),
        _MEANING + tried + least + task.note + ".",
        interval=holding(value, released[:, 1:].min(axis=0)),
        baseline=float(again[:, 0].min()),
        attempts=len(task.test.labels),
    )


ENDURANCE = Measure(
    name="endurance",
    family=Family.UTILITY,
    source="Jain and Sharma 2007, section 2.7",
    findings={"endurance": _MEANING + "."},
    run=_run,
    higher=frozenset({"endurance"}),
    needs=(Need.TARGET, Need.HOLDOUT, Need.COLUMNS),
)
