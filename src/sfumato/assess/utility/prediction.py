"""How well classes and responses are predicted by models that learned from the released table, tested on real rows.

The nearest neighbour is the papers' classifier [AY05, sec. 4; KCG12]; boosting and logistic regression stand beside it.
Endurance: whether the table also serves miners that it was not made for [JS07, sec. 2.7]. The measures by mining share
rows with labels to learn from and to be tested on, miners, and scores.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SCORE, SHARE, Measure, Need, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import CONFIDENCE, Family, redraw_interval, wilson
from sfumato.assess.glossary import MODELS
from sfumato.assess.study import Column, ColumnPair, Matrix, Places, Study, sample
from sfumato.assess.utility import auc_parts, balanced_accuracy_parts, parts_interval
from sfumato.core.neighbours import nearest
from sfumato.tables.schema import Field, Kind, Role

__all__ = [
    "ENDURANCE",
    "FEW",
    "PREDICTION",
    "RESPONSES",
    "Task",
    "Tolerance",
    "TrainingSet",
    "correlations",
    "is_class",
    "predict",
    "predict_with_scores",
    "r_squares",
    "redraw_weights",
    "smallest_tested",
    "task_of",
    "tolerance_of",
    "within",
]

FEW = 20
"""Categories up to which an ordinal column is taken as a class, and up to which classes set the number of clusters."""


_LABELS = 200_000  # rows times classes that a miner learns from: some fit one model a class
_FEWEST = 1_000
_FAR = 1e6
_ROUNDING = 1e-9  # standard deviations
_TENTH = 0.1  # of a standard deviation, the usual tolerance of a response without steps
_ROUNDS, _TREES = 50, 500  # rounds of boosting, and trees in all where every class takes one a round


def within(values: Matrix) -> Matrix:
    """Values with what lies a million standard deviations out pulled in, so that squares do not overflow."""
    return np.clip(values, -_FAR, _FAR)


@dataclass(frozen=True, eq=False, repr=False)
class TrainingSet:
    """Rows in coordinates, with the target of each: a place in the classes, or a response in standard deviations."""

    rows: Matrix
    labels: Matrix
    weights: Matrix | None = None  # how much each row counts, where that is known


@dataclass(frozen=True)
class Tolerance:
    """Largest error at which a predicted response counts as right: in standard deviations, and in words."""

    deviations: float
    words: str

    def hits(self, guess: Matrix | np.floating[Any], truth: Matrix) -> NDArray[np.bool_]:
        """Which predictions are right."""
        return np.asarray(np.abs(guess - truth) <= self.deviations + _ROUNDING)


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """What is to be predicted, and from what."""

    classes: tuple[str, ...]  # names of the classes; empty for a response
    # original, released: as many rows of each table. Where both tables have as many rows they are the same places in
    # both
    original: TrainingSet
    released: TrainingSet
    again: TrainingSet  # as many original rows once more: others where there are enough, else a redraw with replacement
    test: TrainingSet  # rows held out
    sizes: Places  # how many original rows each class has; empty for a response
    note: str  # how many rows were looked at and left out, as the end of a sentence
    tolerance: Tolerance | None = None  # of a response


def is_class(field: Field) -> bool:
    """Whether a column is a class, or else a response: by its kind, never by its values.

    Nominal and boolean columns are, and ordinal ones of at most `FEW` categories.
    """
    if field.kind is Kind.ORDINAL:
        return len(field.domain.categories or ()) <= FEW
    return field.kind in (Kind.NOMINAL, Kind.BOOLEAN)


def smallest_tested(task: Task) -> int | None:
    """Class with the fewest original rows of those with enough held-out rows; None if none has enough."""
    enough = np.flatnonzero(np.bincount(task.test.labels.astype(np.int64)) >= _ENOUGH)
    return int(enough[np.argmin(task.sizes[enough])]) if len(enough) else None


def task_of(study: Study, training: int, testing: int, rng: np.random.Generator) -> Task:
    """Rows to learn from and to be tested on, of a study with a target and with rows held out.

    Rows whose target is missing, or of a class that the original does not have, are left out. `NotRun` where there is
    nothing to learn.
    """
    pair, held = _target(study)
    sides = (pair.original, pair.released, held)
    _refuse_nothing_to_learn(sides)
    known = [np.flatnonzero(~cells.absent) for cells in sides]
    classes = tuple(str(name) for name in pair.field.domain.categories or ()) if is_class(pair.field) else ()
    most = min(training, max(_FEWEST, _LABELS // len(classes))) if classes else training
    count = min(len(known[0]), len(known[1]), most)
    chosen = sample(len(known[0]), count, rng)
    mirrored = chosen if len(known[1]) == len(known[0]) else sample(len(known[1]), count, rng)
    others = _others(len(known[0]), chosen, rng)
    tested = sample(len(known[2]), testing, rng)
    weight = next((place for place, each in enumerate(study.pairs) if each.field.role is Role.WEIGHT), None)
    named = [each.name for place, each in enumerate(study.pairs) if each.name != pair.name and place != weight]
    features = study.coordinates(named)
    centre, scale = (0.0, 1.0) if classes else (pair.original.present.mean(), pair.original.present.std())

    def lesson(side: int, places: Places) -> TrainingSet:
        rows = (study.original, study.released, study.holdout)[side]
        assert rows is not None
        at = known[side][places]
        labels = within((sides[side].values[at] - centre) / scale)
        weights = None if weight is None or side == 2 else _weights(study.pairs[weight], side)[at]
        return TrainingSet(within(rows[np.ix_(at, features)]), labels, weights)

    return Task(
        classes,
        lesson(0, chosen),
        lesson(1, mirrored),
        lesson(0, others),
        lesson(2, tested),
        np.bincount(pair.original.present.astype(np.int64), minlength=len(classes)) if classes else np.empty(0, int),
        _note([len(rows) for rows in known], count, len(tested), len(held.values)),
        None if classes else tolerance_of(study, pair),
    )


def tolerance_of(study: Study, pair: ColumnPair) -> Tolerance:
    """Tolerance of a response: the owner's, or its step or a tenth of its standard deviation, whichever is larger.

    AY05 counts an age that is off by less than one year as predicted; ages are whole years [AY05, sec. 4].
    """
    within, deviation = study.options.accurate_within, float(pair.original.present.std())
    if within is not None:
        return Tolerance(within / deviation, f"{within:g}")
    step = pair.field.domain.step
    width = float(step) if isinstance(step, int | float) else 0.0
    if pair.field.kind in (Kind.DATE, Kind.ORDINAL):  # their values count in steps
        width = 1.0
    if width >= _TENTH * deviation:
        return Tolerance(width / deviation, f"{width:g}, its step")
    return Tolerance(_TENTH, "a tenth of its standard deviation")


def _weights(pair: ColumnPair, side: int) -> Matrix:
    """How much each row counts, one on average; what is not known counts as the average does."""
    cells = (pair.original, pair.released)[side]
    known = cells.present[cells.present > 0]
    mean = known.mean() if len(known) else 1.0
    return np.where(cells.absent | (cells.values <= 0), 1.0, cells.values / mean)


def _target(study: Study) -> tuple[ColumnPair, Column]:
    """Find the column to predict in both tables and in the rows held out."""
    place = next((place for place, pair in enumerate(study.pairs) if pair.name == study.target), None)
    if place is None or study.held is None:
        raise ValueError("a task needs a column to predict and rows held out")
    return study.pairs[place], study.held[place]


def _refuse_nothing_to_learn(sides: tuple[Column, Column, Column]) -> None:
    original, released, held = (cells.present for cells in sides)
    if not len(original) or original.min() == original.max():
        raise NotRun("the column to predict has a single value in the original, so that there is nothing to learn")
    if not len(released):
        lacking = "no known value left in the released table, so that nothing can be learned"
        raise NotRun(f"the column to predict has {lacking}")
    if not len(held):
        raise NotRun("the column to predict has no known value in the rows held out")


def _others(rows: int, chosen: Places, rng: np.random.Generator) -> Places:
    """As many rows as were chosen, none of them where that can be."""
    rest = np.setdiff1d(np.arange(rows), chosen)
    if len(rest) >= len(chosen):
        return rest[sample(len(rest), len(chosen), rng)]
    return rng.integers(0, rows, len(chosen))


def _note(known: list[int], count: int, tested: int, held: int) -> str:
    drawn = ", drawn at random" if count < max(known[0], known[1]) or tested < known[2] else ""
    lost = held - known[2]
    without = f" ({lost} more are left out, for their true value is not known)" if lost else ""
    return f"; learned from {count} rows and counted on {tested} held-out rows{drawn}{without}"


def predict(miner: str, lesson: TrainingSet, queries: Matrix, *, classes: int, seed: int) -> Matrix:
    """What a miner predicts that has learned.

    Of the miners 1nn, boosting, linear, tree and bayes "linear" is logistic regression for classes and ridge regression
    for a response, where ``classes`` is 0; "bayes" knows only classes. Where all labels are the same it predicts that
    one. Two miners with the same seed that learn from the same rows predict the same.
    """
    return predict_with_scores(miner, lesson, queries, classes=classes, seed=seed)[0]


def predict_with_scores(
    miner: str, lesson: TrainingSet, queries: Matrix, *, classes: int, seed: int
) -> tuple[Matrix, Matrix]:
    """What a miner predicts, and how sure it is of the class of the highest code; of a response both are the same.

    The nearest neighbour is sure of its class, and a miner that learned from a single class of nothing.
    """
    labels = lesson.labels
    if (labels == labels[0]).all():
        return np.full(len(queries), labels[0]), np.zeros(len(queries))
    if miner == "1nn":
        predicted = labels[nearest(lesson.rows, queries)[0][:, 0]]
        return predicted, predicted
    model = _fit(miner, lesson, classes, seed)
    predicted = np.asarray(model.predict(queries), dtype=np.float64)
    return predicted, np.asarray(model.predict_proba(queries)[:, -1], dtype=np.float64) if classes else predicted


def _fit(miner: str, lesson: TrainingSet, classes: int, seed: int) -> Any:
    from scipy.linalg import LinAlgWarning
    from sklearn.exceptions import ConvergenceWarning

    labels = lesson.labels
    model = _classifier(miner, len(labels), classes, seed) if classes else _regressor(miner, len(labels), seed)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        # a fit that was stopped early, of columns alike or of many classes, is what that miner predicts all the same
        warnings.simplefilter("ignore", LinAlgWarning)
        warnings.filterwarnings("ignore", "The number of unique classes|Singular matrix", UserWarning)
        weighed = {} if lesson.weights is None else {"sample_weight": lesson.weights}
        return model.fit(lesson.rows, labels.astype(np.int64) if classes else labels, **weighed)


def _classifier(miner: str, rows: int, classes: int, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    if miner == "boosting":
        rounds = _ROUNDS if classes == 2 else max(3, min(_ROUNDS, _TREES // classes))
        return HistGradientBoostingClassifier(max_iter=rounds, random_state=seed, **_boosting(rows))
    if miner == "linear":
        return LogisticRegression(max_iter=100)
    if miner == "tree":
        return DecisionTreeClassifier(min_samples_leaf=_leaf(rows), random_state=seed)
    return GaussianNB(var_smoothing=1e-3)


def _regressor(miner: str, rows: int, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import Ridge
    from sklearn.tree import DecisionTreeRegressor

    if miner == "boosting":
        return HistGradientBoostingRegressor(max_iter=_ROUNDS, random_state=seed, **_boosting(rows))
    if miner == "linear":
        return Ridge()
    return DecisionTreeRegressor(min_samples_leaf=_leaf(rows), random_state=seed)


def _boosting(rows: int) -> dict[str, object]:
    return {
        "max_leaf_nodes": 15,
        "max_bins": 63,
        "min_samples_leaf": _leaf(rows),
        "l2_regularization": 1.0,  # without it classes of a handful of rows outshout the others
        "early_stopping": False,
    }


def _leaf(rows: int) -> int:
    """Fewer rows in a leaf where there are few in all, so that a tree can split at all."""
    return max(1, min(20, rows // 20))


def redraw_weights(rows: int, redraws: int, rng: np.random.Generator) -> Matrix:
    """How often each row is taken, redraw by redraw, when as many are drawn with replacement."""
    return rng.multinomial(rows, np.full(rows, 1 / rows), redraws).astype(np.float64)


def correlations(weights: Matrix, truth: Matrix, guess: Matrix) -> Matrix:
    """Correlation of predicted with true responses, once for each row of weights; 0 where one of them does not vary.

    Examples
    --------
    >>> correlations(np.ones((1, 3)), np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])).round(9).tolist()
    [1.0]
    """
    first, second = truth - truth.mean(), guess - guess.mean()
    total = weights.sum(axis=1)
    means = weights @ first / total, weights @ second / total
    shared = weights @ (first * second) / total - means[0] * means[1]
    spreads = [weights @ (each * each) / total - mean**2 for each, mean in zip((first, second), means, strict=True)]
    floors = [1e-12 * float((side * side).mean()) for side in (truth, guess)]  # what rounding leaves of no variance
    varies = (spreads[0] > floors[0]) & (spreads[1] > floors[1])
    root = np.sqrt(np.where(varies, spreads[0] * spreads[1], 1.0))
    return np.asarray(np.where(varies, np.clip(shared / root, -1.0, 1.0), 0.0))


def r_squares(weights: Matrix, truth: Matrix, guess: Matrix) -> Matrix:
    """Share of the response's variance that is explained, once for each row of weights.

    Redraws in which the response does not vary are left out.

    Examples
    --------
    >>> r_squares(np.ones((1, 3)), np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0])).tolist()
    [0.0]
    """
    centred = truth - truth.mean()
    total = weights.sum(axis=1)
    variance = weights @ (centred * centred) / total - (weights @ centred / total) ** 2
    varies = variance > 1e-12 * float((truth * truth).mean())
    missed = weights @ (truth - guess) ** 2 / total
    return np.asarray(1.0 - missed[varies] / variance[varies])


_Hits = NDArray[np.bool_]
_REDRAWS = 200
_ENOUGH = 10  # held-out rows of a class, for its recall to say something and nothing about one person
_ALIKE = "the response is the same in all test rows"
_BASELINE = "Baseline: the same model trained on as many original rows"
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
    if study.target is not None and not is_class(study.pair(study.target).field):
        raise NotRun("the column to predict holds numbers or dates, not classes; see the findings on its response")
    rng = study.generator("prediction")
    task = task_of(study, study.sizes.training, study.sizes.testing, rng)
    guesses = {name: _guesses(task, miner, int(rng.integers(2**31))) for name, (miner, _) in _CLASSIFIERS.items()}
    truth, sizes = task.test.labels, task.sizes
    yield from _areas(task, {name: (released[1], original[1]) for name, (released, original) in guesses.items()})
    held = len(np.unique(truth))
    for name, both in guesses.items():
        released, original = (balanced_accuracy_parts(truth, predicted) for predicted, _ in both)
        yield f"balanced-accuracy-{name}", _score(released, original, 1.0 / held, task.note)
    hits = {name: (released[0] == truth, original[0] == truth) for name, (released, original) in guesses.items()}
    guess = float((truth == np.argmax(sizes)).mean())
    always = f"; always naming the commonest class is right for {guess:.1%}"
    for name, sides in hits.items():
        yield f"accuracy-{name}", _share(*sides, always + task.note)
    code = smallest_tested(task)
    smallest = None if code is None else truth == code
    for name, (released, original) in hits.items():
        place = f"accuracy-smallest-class-{name}"
        if smallest is None:
            yield place, NotRun("no class has ten held-out rows")
        else:
            yield place, _share(released[smallest], original[smallest], task.note)
    for name, (released, original) in hits.items():
        for code, label in enumerate(task.classes):
            rows = truth == code
            if rows.any():
                yield f"recall-{name}/{label}", _share(released[rows], original[rows], task.note)


def _areas(task: Task, scores: dict[str, tuple[Matrix, Matrix]]) -> Iterator[Stated]:
    """Area under the ROC curve of each model, if the original has two classes and both were held out."""
    truth, classes = task.test.labels, int((task.sizes > 0).sum())
    several = f"the column to predict has {classes} classes; see balanced accuracy"
    lacking = NotRun(several, applies=False) if classes != 2 else None
    if lacking is None and len(np.unique(truth)) < 2:
        lacking = NotRun("the rows held out are all of one class")
    for name, (released, original) in scores.items():
        if lacking is not None:
            yield f"auc-{name}", lacking
        else:
            yield f"auc-{name}", _score(auc_parts(truth, released), auc_parts(truth, original), 0.5, task.note)


def _score(released: Matrix, original: Matrix, chance: float, note: str) -> Values:
    value, baseline = (float(np.clip(parts.mean(), 0.0, 1.0)) for parts in (released, original))
    return Values(value, parts_interval(released), baseline, attempts=len(released), chance=chance, note=note)


_Guess = tuple[Matrix, Matrix]


def _guesses(task: Task, miner: str, seed: int) -> tuple[_Guess, _Guess]:
    """Predictions and scores for the test rows after learning from the released table, and from the original."""
    first, second = (
        predict_with_scores(miner, lesson, task.test.rows, classes=len(task.classes), seed=seed)
        for lesson in (task.released, task.original)
    )
    return first, second


def _share(released: _Hits, original: _Hits, note: str) -> Values:
    limits = wilson(int(released.sum()), len(released))
    return Values(float(released.mean()), limits, float(original.mean()), attempts=len(released), note=note)


def _accuracy(start: str, spoken: str, meaning: str, end: str = "") -> tuple[Number, ...]:
    """A number for each classifier; of classes, where the name has an end, for the owner and in a figure of theirs."""
    scale = SHARE.more.owners if end else SHARE.more
    return tuple(
        Number(
            f"{start}-{name}{end}", f"{spoken}, {MODELS[name]}", scale, f"models/{start}-{name}" if end else None
        ).means(f"{meaning.replace('{model}', f'{model} trained on the release')}. {_BASELINE}")
        for name, (_, model) in _CLASSIFIERS.items()
    )


def _above_chance(start: str, spoken: str, meaning: str) -> tuple[Number, ...]:
    """A number for each classifier, of a score that naming the commonest class does not raise."""
    return tuple(
        Number(f"{start}-{name}", f"{spoken}, {MODELS[name]}", SCORE.more, f"models/{start}").means(
            f"{meaning.replace('{model}', f'{model} trained on the release')}. {_BASELINE}"
        )
        for name, (_, model) in _CLASSIFIERS.items()
    )


PREDICTION = Measure(
    "prediction",
    Family.UTILITY,
    "Aggarwal and Yu 2005, section 4; Kim, Chen and Gangopadhyay 2012",
    _run,
    needs=(Need.TARGET, Need.UNSEEN, Need.COLUMNS),
    figure="models/accuracy",
).finds(
    *_above_chance(
        "auc",
        "AUC",
        "AUC of {model} on unseen people: 1 is best, 0.5 is the majority class",
    ),
    *_above_chance(
        "balanced-accuracy",
        "Balanced accuracy",
        "Mean recall over the classes of {model} on unseen people: 1 is best, the majority class gets one over the "
        "number of classes",
    ),
    *_accuracy("accuracy", "Accuracy", "Share of unseen people whose class is predicted correctly by {model}"),
    *_accuracy(
        "accuracy-smallest-class",
        "Accuracy on the smallest class",
        "Recall of {model} for the smallest class with ten or more held-out people",
    ),
    *_accuracy("recall", "Recall", "Recall of {model} for the class {column} on unseen people", "/"),
)


def _run_responses(study: Study) -> Iterator[Stated]:
    if study.target is not None and is_class(study.pair(study.target).field):
        raise NotRun("the column to predict holds classes, not numbers; see the findings on accuracy")
    rng = study.generator("responses")
    task = task_of(study, study.sizes.training, study.sizes.testing, rng)
    truth = task.test.labels
    if truth.min() == truth.max():
        raise NotRun(_ALIKE)
    both = {name: _guesses(task, miner, int(rng.integers(2**31))) for name, (miner, _) in _REGRESSORS.items()}
    guesses = {name: (released[0], original[0]) for name, (released, original) in both.items()}
    weights, once = redraw_weights(len(truth), _REDRAWS, rng), np.ones((1, len(truth)))
    for kind, score in (("correlation", correlations), ("r2", r_squares)):
        for name, (released, original) in guesses.items():
            value, baseline = (float(score(once, truth, guess)[0]) for guess in (released, original))
            redraws = np.append(score(weights, truth, released), value)
            interval = redraw_interval(value, redraws if kind == "r2" else redraws[:-1])
            found = Values(value, interval, baseline, attempts=len(truth), note=task.note)
            yield f"response-{kind}-{name}", dataclasses.replace(found, chance=0.0)
    tolerance = task.tolerance
    assert tolerance is not None  # of a response
    median = float(tolerance.hits(np.median(task.original.labels), truth).mean())
    note = f"; an error of at most {tolerance.words} counts as right, always predicting the median is right for "
    note += f"{median:.1%}{task.note}"
    for name, (released, original) in guesses.items():
        hits = tolerance.hits(released, truth), tolerance.hits(original, truth)
        yield f"response-accuracy-{name}", dataclasses.replace(_share(*hits, note), chance=median)


def _response(kind: str, spoken: str, meaning: str, low: float | None) -> tuple[Number, ...]:
    """A number for each regression."""
    return tuple(
        Number(
            f"response-{kind}-{name}",
            f"{spoken}, {MODELS[name]}",
            Scale((low, 1.0)).more,
            figure=f"models/response-{kind}",
        ).means(f"{meaning.replace('{model}', f'{model} trained on the release')}. {_BASELINE}")
        for name, (_, model) in _REGRESSORS.items()
    )


RESPONSES = Measure(
    "responses",
    Family.UTILITY,
    "Aggarwal and Yu 2005, section 4",
    _run_responses,
    needs=(Need.TARGET, Need.UNSEEN, Need.COLUMNS),
).finds(
    *_response(
        "correlation",
        "Correlation of prediction and truth",
        "Correlation of the predictions of {model} with the truth on unseen people: 1 is best, 0 is guessing",
        -1.0,
    ),
    *_response(
        "r2",
        "Variance explained (R\u00b2)",
        "Share of the variance of the response on unseen people that {model} explains: 1 is best, 0 is the mean, below "
        "0 is worse than the mean",
        None,
    ),
    *(
        Number(
            f"response-accuracy-{name}",
            f"Accuracy within the tolerance, {MODELS[name]}",
            SHARE.more,
            figure="models/response-accuracy",
        ).means(
            f"Share of responses on unseen people that {model} predicts within the tolerance, trained on the release. "
            f"{_BASELINE}"
        )
        for name, (_, model) in _REGRESSORS.items()
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


def _gain(task: Task, lesson: TrainingSet, miner: str, seed: int, weights: Matrix) -> Matrix:
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
    needs=(Need.TARGET, Need.UNSEEN, Need.COLUMNS),
).finds(
    Number("endurance", scale=SCORE.more).means(
        "The share of what a miner learns from the original above chance that it also learns from the release, for "
        "the miner that loses most: 1 means that no miner loses anything"
    )
)
