"""How well classes and responses are predicted by models that learned from the released table, tested on real rows.

The nearest neighbour is the papers' classifier [AY05, sec. 4; KCG12]; boosting and logistic regression stand beside it.
Endurance: whether the table also serves miners that it was not made for [JS07, sec. 2.7].
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SCORE, SHARE, Measure, Need, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family
from sfumato.assess.intervals import CONFIDENCE, redraw_interval, wilson
from sfumato.assess.study import Matrix, Study
from sfumato.assess.utility.learning import (
    FEW,
    Lesson,
    Task,
    correlations,
    is_class,
    predict,
    r_squares,
    redraw_weights,
    task_of,
)
from sfumato.assess.words import MODELS

__all__ = ["ENDURANCE", "PREDICTION", "RESPONSES"]

_Hits = NDArray[np.bool_]
_REDRAWS = 200
_ENOUGH = 10  # held-out rows of a class, for its recall to say something and nothing about one person
_ALIKE = "the response is the same in all test rows"
_BESIDE = "beside the same model that learned from as many original rows (baseline)"
_CLASSIFIERS = {
    "1nn": ("1nn", "a nearest-neighbour rule"),
    "boosting": ("boosting", "a boosted-trees model"),
    "logistic": ("linear", "a logistic regression"),
}
_REGRESSORS = {
    "1nn": ("1nn", "a nearest-neighbour rule"),
    "boosting": ("boosting", "a model of boosted trees"),
    "ridge": ("linear", "a ridge regression"),
}
"""By the last word of a finding's name: the miner, and how it is called."""
_MINERS = {
    "1nn": "the nearest-neighbour rule",
    "tree": "the decision tree",
    "linear": "the linear model",
    "bayes": "naive Bayes",
    "boosting": "boosting",
}


def _run(study: Study) -> Iterator[Stated]:
    if study.target is not None and not is_class(study.pair(study.target)):
        raise NotRun("the column to predict holds numbers or dates, not classes; see the findings on its response")
    rng = study.generator("prediction")
    task = task_of(study, study.sizes.training, study.sizes.testing, rng)
    guesses = {name: _guesses(task, miner, int(rng.integers(2**31))) for name, (miner, _) in _CLASSIFIERS.items()}
    truth, sizes = task.test.labels, task.sizes
    hits = {name: (released == truth, original == truth) for name, (released, original) in guesses.items()}
    guess = float((truth == np.argmax(sizes)).mean())
    always = f"; always naming the commonest class is right for {guess:.1%}"
    for name, sides in hits.items():
        yield f"accuracy-{name}", _share(*sides, always + task.note)
    enough = np.flatnonzero(np.bincount(truth.astype(np.int64)) >= _ENOUGH)
    smallest = truth == enough[np.argmin(sizes[enough])] if len(enough) else None
    for name, (released, original) in hits.items():
        place = f"accuracy-smallest-class-{name}"
        if smallest is None:
            yield place, NotRun("no class has ten held-out rows")
        else:
            yield place, _share(released[smallest], original[smallest], task.note)
    for name, (released, original) in hits.items():
        for code, label in enumerate(task.classes if len(task.classes) <= FEW else ()):
            rows = truth == code
            if rows.any():
                yield f"recall-{name}/{label}", _share(released[rows], original[rows], task.note)


def _guesses(task: Task, miner: str, seed: int) -> tuple[Matrix, Matrix]:
    """What is predicted for the test rows after learning from the released table, and from the original."""
    first, second = (
        predict(miner, lesson, task.test.rows, classes=len(task.classes), seed=seed)
        for lesson in (task.released, task.original)
    )
    return first, second


def _share(released: _Hits, original: _Hits, note: str) -> Values:
    limits = wilson(int(released.sum()), len(released))
    return Values(float(released.mean()), limits, float(original.mean()), attempts=len(released), note=note)


def _accuracy(
    start: str, spoken: str, meaning: str, end: str = "", scale: Scale = SHARE.more, figure: str = "models/accuracy"
) -> tuple[Number, ...]:
    """A number for each classifier."""
    return tuple(
        Number(f"{start}-{name}{end}", f"{spoken}, {MODELS[name]}", scale, figure=figure).means(
            f"How often {model} that learned from the released table {meaning}, {_BESIDE}; higher is better"
        )
        for name, (_, model) in _CLASSIFIERS.items()
    )


PREDICTION = Measure(
    "prediction",
    Family.UTILITY,
    "Aggarwal and Yu 2005, section 4; Kim, Chen and Gangopadhyay 2012",
    _run,
    needs=(Need.TARGET, Need.HOLDOUT, Need.COLUMNS),
).finds(
    *_accuracy("accuracy", "Accuracy", "names the class of people whom it never saw"),
    *_accuracy(
        "accuracy-smallest-class",
        "Accuracy on the smallest class",
        "recognises people of the smallest class of which ten or more were held out",
    ),
    *_accuracy("recall", "Recall", "recognises people of the class {column}", "/", SHARE.more.owners, "models/recall"),
)


def _run_responses(study: Study) -> Iterator[Stated]:
    if study.target is not None and is_class(study.pair(study.target)):
        raise NotRun("the column to predict holds classes, not numbers; see the findings on accuracy")
    rng = study.generator("responses")
    task = task_of(study, study.sizes.training, study.sizes.testing, rng)
    truth = task.test.labels
    if truth.min() == truth.max():
        raise NotRun(_ALIKE)
    guesses = {name: _guesses(task, miner, int(rng.integers(2**31))) for name, (miner, _) in _REGRESSORS.items()}
    weights, once = redraw_weights(len(truth), _REDRAWS, rng), np.ones((1, len(truth)))
    for kind, score in (("correlation", correlations), ("r2", r_squares)):
        for name, (released, original) in guesses.items():
            value, baseline = (float(score(once, truth, guess)[0]) for guess in (released, original))
            redraws = np.append(score(weights, truth, released), value)
            interval = redraw_interval(value, redraws if kind == "r2" else redraws[:-1])
            yield f"response-{kind}-{name}", Values(value, interval, baseline, attempts=len(truth), note=task.note)


def _response(kind: str, spoken: str, meaning: str, low: float | None) -> tuple[Number, ...]:
    """A number for each regression."""
    return tuple(
        Number(
            f"response-{kind}-{name}",
            f"{spoken}, {MODELS[name]}",
            Scale((low, 1.0)).more,
            figure=f"models/response-{kind}",
        ).means(meaning.format(model=f"{model} that learned from the released table", beside=_BESIDE))
        for name, (_, model) in _REGRESSORS.items()
    )


RESPONSES = Measure(
    "responses",
    Family.UTILITY,
    "Aggarwal and Yu 2005, section 4",
    _run_responses,
    needs=(Need.TARGET, Need.HOLDOUT, Need.COLUMNS),
).finds(
    *_response(
        "correlation",
        "Correlation of answer and truth",
        "How closely what {model} predicts for people whom it never saw goes along with the truth, {beside}; 1 is "
        "best, 0 is no better than guessing",
        -1.0,
    ),
    *_response(
        "r2",
        "Variance explained (R\u00b2)",
        "The share of the response's variance among people never seen that {model} explains, {beside}; 1 is best, "
        "0 is what always guessing the average gets and below 0 is worse than that",
        None,
    ),
)


def _run_endurance(study: Study) -> Iterator[Stated]:
    rng = study.generator("endurance")
    task = task_of(study, study.sizes.training // 2, study.sizes.testing // 2, rng)
    kept = _all_kept(task, rng)
    if not kept:
        raise NotRun("no miner that was tried learns more than guessing from the original either")
    released, again = (np.array([shares[side] for shares in kept.values()]) for side in (0, 1))
    value = float(released[:, 0].min())
    weakest = _MINERS[list(kept)[int(np.argmin(released[:, 0]))]]
    tried = f"; {len(kept)} kinds of miners were tried that learn something from the original"
    note = tried + (f", and {weakest} loses most" if value < 1.0 else "") + task.note
    interval, baseline = redraw_interval(value, released[:, 1:].min(axis=0)), float(again[:, 0].min())
    yield "endurance", Values(value, interval, baseline, attempts=len(task.test.labels), note=note)


def _all_kept(task: Task, rng: np.random.Generator) -> dict[str, tuple[Matrix, Matrix]]:
    """What each miner keeps, first on the test rows and then on their redraws.

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


def _gain(task: Task, lesson: Lesson, miner: str, seed: int, weights: Matrix) -> Matrix:
    """Score of a miner above guessing, on the test rows and on their redraws.

    A class is scored by the recall of every class alike, above what naming one class always gets; a response by the
    correlation of predicted and true values.
    """
    truth = task.test.labels
    guess = predict(miner, lesson, task.test.rows, classes=len(task.classes), seed=seed)
    return _recall_gain(weights, truth, guess) if task.classes else correlations(weights, truth, guess)


def _recall_gain(weights: Matrix, truth: Matrix, guess: Matrix) -> Matrix:
    """Mean recall of the classes that each redraw holds, less what naming one of them always gets."""
    member = (truth[:, None] == np.unique(truth)).astype(np.float64)
    count = weights @ member
    right = weights @ (member * (truth == guess)[:, None])
    held = (count > 0).sum(axis=1)
    return np.asarray((right / np.maximum(count, 1.0)).sum(axis=1) / held - 1.0 / held)


def _kept(before: Matrix, after: Matrix) -> Matrix:
    return np.clip(after / np.maximum(before, 1e-9), 0.0, 1.0)


ENDURANCE = Measure(
    "endurance",
    Family.UTILITY,
    "Jain and Sharma 2007, section 2.7",
    _run_endurance,
    needs=(Need.TARGET, Need.HOLDOUT, Need.COLUMNS),
).finds(
    Number("endurance", scale=SCORE.more).means(
        "Of what a miner learns from the original beyond guessing, the share that it also learns from the released "
        "table, for the miner that loses most: 1 means that the table serves every miner that was tried, 0 that at "
        "least one learns nothing from it"
    )
)
