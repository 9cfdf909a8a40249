"""How well classes are predicted by a model that learned from the released table: train on released, test on real.

The nearest neighbour is the papers' classifier [AY05, sec. 4; KCG12]; boosting and logistic regression stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Direction, Family, Finding, not_run
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import wilson
from sfumato.assess.study import Study
from sfumato.assess.utility.learning import FEW, Task, is_class, predict, task_of

__all__ = ["PREDICTION"]

_Hits = NDArray[np.bool_]

_MODELS = {
    "1nn": "a nearest-neighbour rule",
    "boosting": "a boosted-trees model",
    "logistic": "a logistic regression",
}
_ENOUGH = 10  # held-out rows of a class, for its recall to say something and nothing about one person
_MINERS = {"1nn": "1nn", "boosting": "boosting", "logistic": "linear"}
_ALL = (
    "How often {model} that learned from the released table names the class of people whom it never saw, beside the "
    "same model that learned from as many original rows (baseline); higher is better"
)
_SMALLEST = (
    "How often {model} that learned from the released table recognises people of the smallest class of which ten "
    "or more were held out, beside the same model that learned from as many original rows (baseline); higher is better"
)
_ONE = (
    "How often {model} that learned from the released table recognises people of the class {name}, beside the same "
    "model that learned from as many original rows (baseline); higher is better"
)
_TOO_FEW = "no class has ten held-out rows"
_NO_CLASS = "the column to predict holds numbers or dates, not classes; see the findings on its response"


def _run(study: Study) -> tuple[Finding, ...]:
    if study.target is not None and not is_class(study.pair(study.target)):
        return PREDICTION.not_run(_NO_CLASS)
    rng = study.generator(PREDICTION.name)
    task = task_of(study, study.sizes.training, study.sizes.testing, rng)
    if isinstance(task, str):
        return PREDICTION.not_run(task)
    hits = {name: _hits(task, miner, int(rng.integers(2**31))) for name, miner in _MINERS.items()}
    return (*_overall(task, hits), *_smallest(task, hits), *_by_class(task, hits))


def _hits(task: Task, miner: str, seed: int) -> tuple[_Hits, _Hits]:
    """Tell which test rows a model gets right that learned from the released table, and from the original."""
    first, second = (
        predict(miner, lesson, task.test.rows, classes=len(task.classes), seed=seed) == task.test.labels
        for lesson in (task.released, task.original)
    )
    return first, second


def _overall(task: Task, hits: dict[str, tuple[_Hits, _Hits]]) -> Iterator[Finding]:
    guess = float((task.test.labels == np.argmax(task.sizes)).mean())
    always = f"; always naming the commonest class is right for {guess:.1%}"
    for name, (released, original) in hits.items():
        meaning = _ALL.format(model=_MODELS[name]) + always + task.note + "."
        yield _share(f"accuracy-{name}", meaning, released, original)


def _smallest(task: Task, hits: dict[str, tuple[_Hits, _Hits]]) -> Iterator[Finding]:
    """Show the class with the fewest original rows, of those with enough test rows."""
    held = np.flatnonzero(np.bincount(task.test.labels.astype(np.int64)) >= _ENOUGH)
    smallest = task.test.labels == held[np.argmin(task.sizes[held])] if len(held) else None
    for name, (released, original) in hits.items():
        place, meaning = f"accuracy-smallest-class-{name}", _SMALLEST.format(model=_MODELS[name])
        if smallest is None:
            yield not_run(place, Family.UTILITY, Direction.HIGHER, meaning + ".", _TOO_FEW)
        else:
            yield _share(place, meaning + task.note + ".", released[smallest], original[smallest])


def _by_class(task: Task, hits: dict[str, tuple[_Hits, _Hits]]) -> Iterator[Finding]:
    if len(task.classes) > FEW:
        return
    for name, (released, original) in hits.items():
        for code, label in enumerate(task.classes):
            rows = task.test.labels == code
            if rows.any():
                meaning = _ONE.format(model=_MODELS[name], name=label) + task.note + "."
                yield _share(f"recall-{name}/{label}", meaning, released[rows], original[rows], public=False)


def _share(name: str, meaning: str, released: _Hits, original: _Hits, *, public: bool = True) -> Finding:
    return Finding(
        name,
        Family.UTILITY,
        float(released.mean()),
        Direction.HIGHER,
        (0.0, 1.0),
        meaning,
        interval=wilson(int(released.sum()), len(released)),
        baseline=float(original.mean()),
        attempts=len(released),
        public=public,
        unit="share",
    )


_FINDINGS = {
    **{f"accuracy-{name}": _ALL.format(model=model) + "." for name, model in _MODELS.items()},
    **{f"accuracy-smallest-class-{name}": _SMALLEST.format(model=model) + "." for name, model in _MODELS.items()},
}

PREDICTION = Measure(
    name="prediction",
    family=Family.UTILITY,
    source="Aggarwal and Yu 2005, section 4; Kim, Chen and Gangopadhyay 2012",
    findings=_FINDINGS,
    run=_run,
    higher=frozenset(_FINDINGS),
    needs=(Need.TARGET, Need.HOLDOUT, Need.COLUMNS),
)
