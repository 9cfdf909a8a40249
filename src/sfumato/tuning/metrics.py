"""What a group size is judged by: utility on real rows held out, and how far an intruder gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from sfumato.assess.algebra import NotRun
from sfumato.assess.study import Matrix, Study, sample
from sfumato.assess.utility.comparison import compatibility
from sfumato.assess.utility.learning import Task, correlations, is_class, predict, task_of
from sfumato.core.errors import OptionError
from sfumato.core.threads import one_thread

__all__ = ["METRICS", "Metric", "Score", "choose_metric", "has_classes"]

_LEAST = 10  # rows held out of which a utility can be told


@dataclass(frozen=True)
class Score:
    """Utility at one group size on one split; of classes also that on the smallest one, and of each (NaN untested).

    ``guess`` is what needs no learning: always naming the commonest class.
    """

    value: float
    smallest: float | None = None
    classes: tuple[float, ...] = ()
    guess: float = 0.0


@dataclass(frozen=True)
class Metric:
    """A measure of utility, more is better."""

    name: str
    words: str
    of: str  # "class", "response" or "table"
    run: Callable[[Study], Score]


def has_classes(study: Study) -> bool:
    """Whether the target is a class, not a response; false without a target."""
    return study.target is not None and is_class(study.pair(study.target))


def choose_metric(study: Study, name: str | None) -> Metric:
    """The metric that was named, or the usual one for this kind of target.

    1-NN accuracy for a class [KCG12], correlation for a response [BCG10], covariance compatibility without a target.
    """
    kind = "table" if study.target is None else "class" if has_classes(study) else "response"
    if name is None:
        return next(metric for metric in METRICS.values() if metric.of == kind)
    if name not in METRICS:
        raise OptionError(f"there is no metric {name!r}; choose one of {', '.join(METRICS)}")
    metric = METRICS[name]
    if metric.of not in (kind, "table"):
        suited = ", ".join(each.name for each in METRICS.values() if each.of in (kind, "table"))
        raise OptionError(f"the metric {name!r} is for a {metric.of}, and there is none here; choose one of {suited}")
    return metric


def _predicted(study: Study, miner: str) -> tuple[Task, Matrix]:
    """What a miner that learned from the released rows predicts of real rows held out."""
    import sklearn.ensemble  # noqa: F401 - a pool of threads can be held once it is loaded

    if len(study.pairs) < 2:
        raise OptionError("the target is the only column, so that there is nothing to learn it from; name another")
    rng = study.generator("tune")
    rows = len(study.released) if miner == "1nn" else study.sizes.training
    try:
        task = task_of(study, rows, study.sizes.testing, rng)
    except NotRun as reason:
        raise OptionError(f"no group size can be judged: {reason}; name another target") from None
    if len(task.test.labels) < _LEAST:
        raise OptionError(
            f"{len(task.test.labels)} rows held out have a known target, too few to judge by; hold more rows out"
        )
    seed = int(rng.integers(2**31))
    with one_thread():
        return task, predict(miner, task.released, task.test.rows, classes=len(task.classes), seed=seed)


def _accuracy(study: Study, miner: str) -> Score:
    task, told = _predicted(study, miner)
    truth = task.test.labels.astype(np.int64)
    hits = np.bincount(truth, weights=told == truth, minlength=len(task.classes))
    counts = np.bincount(truth, minlength=len(task.classes))
    recalls = np.divide(hits, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    smallest = min(np.flatnonzero(task.sizes), key=lambda place: int(task.sizes[place]))
    seen = float(recalls[smallest]) if counts[smallest] else None  # by chance no record of it may be held out
    return Score(float((told == truth).mean()), seen, tuple(recalls.tolist()), float(counts.max() / counts.sum()))


def _correlation(study: Study, miner: str) -> Score:
    task, told = _predicted(study, miner)
    return Score(float(correlations(np.ones((1, len(told))), task.test.labels, told)[0]))


def _covariance(study: Study) -> Score:
    """Mu of the standardized numbers [AY05, sec. 4]; of categories their indicator coordinates."""
    if study.original.shape[1] < 2:
        raise OptionError("a table of one column has no covariances to keep; take --metric propensity")
    value = compatibility(np.cov(study.original, rowvar=False), np.cov(study.released, rowvar=False))
    return Score(0.0 if value is None else value)


def _propensity(study: Study) -> Score:
    """1 - 4 pMSE: 1 where a logistic model cannot tell released from original rows, 0 where it always can."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    rng = study.generator("propensity")
    count = min(len(study.original), len(study.released), study.sizes.training)
    rows = np.vstack([side[sample(len(side), count, rng)] for side in (study.original, study.released)])
    made = np.repeat([0, 1], count)
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        shares = LogisticRegression(C=1e3, max_iter=300).fit(rows, made).predict_proba(rows)[:, 1]
    return Score(float(1.0 - 4.0 * ((shares - 0.5) ** 2).mean()))


_CLASS, _RESPONSE = partial(partial, _accuracy), partial(partial, _correlation)
METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "1-NN accuracy", "class", _CLASS(miner="1nn")),
        Metric("accuracy-boosting", "accuracy of gradient boosting", "class", _CLASS(miner="boosting")),
        Metric("accuracy-logistic", "accuracy of logistic regression", "class", _CLASS(miner="linear")),
        Metric("correlation", "1-NN correlation with the response", "response", _RESPONSE(miner="1nn")),
        Metric("correlation-boosting", "correlation of gradient boosting", "response", _RESPONSE(miner="boosting")),
        Metric("correlation-ridge", "correlation of ridge regression", "response", _RESPONSE(miner="linear")),
        Metric("covariance", "covariance compatibility mu", "table", _covariance),
        Metric("propensity", "1 - 4 pMSE", "table", _propensity),
    )
}
