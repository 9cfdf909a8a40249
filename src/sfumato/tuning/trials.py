"""Trying candidates: parts of the table that all of them share, and what each gave on every part.

Utility of a release is the score of a model trained on it and tested on held-out people, next to the original's.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

import numpy as np
import pyarrow as pa

from sfumato.assess.algebra import NotRun
from sfumato.assess.findings import ColumnRisk, risk_by_column
from sfumato.assess.report import Verdict
from sfumato.assess.study import Matrix, Study, sample
from sfumato.assess.utility import auc_parts, balanced_accuracy_parts
from sfumato.assess.utility.comparison import compatibility
from sfumato.assess.utility.prediction import is_class, predict_with_scores, smallest_tested, task_of, tolerance_of
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.randomness import Randomness
from sfumato.core.threads import one_thread
from sfumato.engines.memory import run_in_memory
from sfumato.engines.plan import Plan
from sfumato.options import PublishOptions, RunOptions
from sfumato.publish.assessment import study_outcome
from sfumato.publish.policy import Policy
from sfumato.publish.suggest import ColumnChange
from sfumato.publish.trial import Outlook, ShadowTrial, try_on_shadows, try_plan
from sfumato.tables.persons import RowsByPerson
from sfumato.tables.schema import Schema
from sfumato.tuning.candidates import Candidate

__all__ = [
    "METRICS",
    "Part",
    "Reading",
    "Score",
    "TableOptions",
    "TrialRunner",
    "check_metric",
    "draw_part",
    "kind_of_target",
]

_LEAST = 10  # fewest held-out rows that utility is measured on
_ROUNDS = 50


@dataclass(frozen=True, eq=False, repr=False)
class Score:
    """Use of one table on one split, 1 at best; ``parts`` is what each test row adds, empty if it has no parts.

    ``smallest`` is the accuracy on the smallest class with enough test rows [KCG12, fig. 9]; None without classes.
    """

    value: float
    parts: Matrix
    smallest: float | None = None


@dataclass(frozen=True)
class Metric:
    """A measure of use, more is better; it looks at the released rows, or at the original's in their place."""

    name: str
    words: str  # how it is called, as in "its accuracy of boosting is 0.8"
    of: str  # "class", "response" or "table"
    run: Callable[..., Score]
    guess: str = ""  # what gets the score of chance, in words

    def released(self, study: Study) -> Score:
        """Use of the released rows."""
        return self.run(study, original=False)

    def original(self, study: Study) -> Score:
        """Use of the original's rows, which the release cannot beat but by chance."""
        return self.run(study, original=True)


def kind_of_target(study: Study) -> str:
    """Whether a class, a response or nothing is to be predicted, as the report has it, by the kind of column."""
    if study.target is None:
        return "table"
    return "class" if is_class(study.pair(study.target).field) else "response"


def choose_metric(study: Study, name: str | None) -> Metric:
    """The metric that was named, or of those for this kind of target the one whose model learns most of the original.

    Without a target it is how hard released rows are to tell from original ones.
    """
    kind = kind_of_target(study)
    if name is None:
        usual = [METRICS[each] for each in _USUAL[_classes(study) if kind == "class" else kind]]
        return max(usual, key=lambda metric: metric.original(study).value) if len(usual) > 1 else usual[0]
    check_metric(name)
    if name.startswith("auc-") and kind == "class" and _classes(study) == _SEVERAL:
        raise OptionError(
            f"the metric {name!r} is for two classes, and the target has more; choose "
            f"{name.replace('auc', 'balanced-accuracy')}"
        )
    if METRICS[name].of not in (kind, "table"):
        known = ", ".join(each.name for each in METRICS.values() if each.of in (kind, "table"))
        raise OptionError(
            f"the metric {name!r} is for a {METRICS[name].of}, and there is none here; choose one of {known}, or "
            "declare another kind of target in the schema"
        )
    return METRICS[name]


def check_metric(name: str | None) -> None:
    """Refuse a metric that there is not."""
    if name is not None and name not in METRICS:
        raise OptionError(f"there is no metric {name!r}; choose one of {', '.join(METRICS)}")


_TWO, _SEVERAL = "two classes", "several classes"


def _classes(study: Study) -> str:
    """Whether the target has two classes or more; a single one counts as two, and nothing is learned of it."""
    return _TWO if len(np.unique(study.pair(study.target or "").original.present)) <= 2 else _SEVERAL


def guess_of(study: Study, metric: Metric) -> float:
    """Score that needs no learning: always predicting the majority class, the mean, or the median."""
    if metric.name.startswith("response-accuracy-"):
        pair = study.pair(study.target or "")
        known = pair.original.present
        deviation = max(float(known.std()), 1e-12)
        return float(tolerance_of(study, pair).hits(np.median(known) / deviation, known / deviation).mean())
    if metric.of != "class":
        return 0.0
    sizes = np.unique(study.pair(study.target or "").original.present, return_counts=True)[1]
    if metric.name.startswith("accuracy-"):
        return float(sizes.max() / sizes.sum())
    return 0.5 if metric.name.startswith("auc-") else 1.0 / len(sizes)


def _predicted(study: Study, *, original: bool, miner: str, measure: str = "") -> Score:
    """AUC, balanced accuracy or accuracy of a miner, or the share of the response's variance that it explains.

    Of a response, "response-accuracy" is the share of predictions within the tolerance [AY05, sec. 4].
    """
    import sklearn.ensemble  # noqa: F401 - a pool of threads can be held once it is loaded

    if len(study.pairs) < 2:
        raise OptionError("the target is the only column, so that there is nothing to learn it from; name another")
    rng = study.generator("tune")
    try:
        task = task_of(study, study.sizes.training, study.sizes.testing, rng)
    except NotRun as reason:
        raise OptionError(f"nothing can be judged by this target: {reason}; name another") from None
    if len(task.test.labels) < _LEAST:
        raise OptionError(
            f"{len(task.test.labels)} rows held out have a known target, too few to judge by; hold more rows out"
        )
    smallest: float | None = None
    lesson, seed, truth = task.original if original else task.released, int(rng.integers(2**31)), task.test.labels
    with one_thread():
        predicted, scores = predict_with_scores(miner, lesson, task.test.rows, classes=len(task.classes), seed=seed)
    if measure == "auc" and len(np.unique(truth)) < 2:
        raise OptionError("the rows held out are all of one class, so that there is no AUC; hold more rows out")
    if task.classes:
        parts = auc_parts(truth, scores) if measure == "auc" else _MEASURES[measure](truth, predicted)
        code = smallest_tested(task)
        smallest = None if code is None else float((predicted == truth)[truth == code].mean())
    elif measure:
        assert task.tolerance is not None  # of a response
        parts = task.tolerance.hits(predicted, truth).astype(np.float64)
    else:
        parts = 1.0 - (predicted - truth) ** 2 / max(float(truth.var()), 1e-12)
    return Score(float(parts.mean()), parts, smallest)


def _likeness(study: Study, *, original: bool) -> Score:
    """Twice what the AUC of boosted trees, which tell released rows from original ones, lacks to 1; 1 is a coin."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    rng = study.generator("likeness")
    others = study.holdout if original else study.released
    assert others is not None
    count = min(len(study.original), len(others), study.sizes.training)
    rows = np.vstack([side[sample(len(side), count, rng)] for side in (study.original, others)])
    made, order = np.repeat([0, 1], count), rng.permutation(2 * count)
    half = len(order) // 2
    with one_thread():
        model = HistGradientBoostingClassifier(max_iter=_ROUNDS, max_leaf_nodes=15, random_state=0)
        model.fit(rows[order[:half]], made[order[:half]])
        area = roc_auc_score(made[order[half:]], model.predict_proba(rows[order[half:]])[:, 1])
    return Score(float(2.0 * (1.0 - max(0.5, area))), np.empty(0))


def _covariance(study: Study, *, original: bool) -> Score:
    """Mu of the standardized numbers [AY05, sec. 4]; of categories their indicator coordinates."""
    if study.original.shape[1] < 2:
        raise OptionError("a table of one column has no covariances to keep; use --metric likeness")
    other = study.original if original else study.released
    value = compatibility(np.cov(study.original, rowvar=False), np.cov(other, rowvar=False))
    return Score(0.0 if value is None else value, np.empty(0))


def _accuracy(truth: Matrix, predicted: Matrix) -> Matrix:
    return np.asarray(truth == predicted, dtype=np.float64)


_MEASURES = {"accuracy": _accuracy, "balanced-accuracy": balanced_accuracy_parts}
_OF_CLASSES = {"auc": "AUC", "balanced-accuracy": "balanced accuracy", "accuracy": "accuracy"}
_MODELS = {
    "boosting": ("boosting", "boosted trees"),
    "logistic": ("linear", "logistic regression"),
    "1nn": ("1nn", "the nearest neighbour"),
}
_MINED = partial(partial, _predicted)
_RESPONSE_MODELS = {
    "boosting": _MODELS["boosting"],
    "ridge": ("linear", "ridge regression"),
    "1nn": _MODELS["1nn"],
}
METRICS = {
    metric.name: metric
    for metric in (
        *(
            Metric(
                f"{measure}-{name}",
                f"{words} of {model}",
                "class",
                _MINED(miner=miner, measure=measure),
                "majority class",
            )
            for measure, words in _OF_CLASSES.items()
            for name, (miner, model) in _MODELS.items()
        ),
        *(
            Metric(f"r2-{name}", f"R\u00b2 of {model}", "response", _MINED(miner=miner), "mean")
            for name, (miner, model) in _RESPONSE_MODELS.items()
        ),
        *(
            Metric(
                f"response-accuracy-{name}",
                f"accuracy of {model} within the tolerance",
                "response",
                _MINED(miner=miner, measure="response-accuracy"),
                "median",
            )
            for name, (miner, model) in _RESPONSE_MODELS.items()
        ),
        Metric("likeness", "likeness of rows", "table", _likeness),
        Metric("covariance", "covariance compatibility mu", "table", _covariance),
    )
}
_USUAL = {
    _TWO: ("auc-boosting", "auc-logistic"),
    _SEVERAL: ("balanced-accuracy-boosting", "balanced-accuracy-logistic"),
    "response": ("r2-boosting", "r2-ridge"),
    "table": ("likeness",),
}
"""Metrics of which one is taken if none was named, by what is to be predicted."""


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Rows to sanitize and rows of other people; what is drawn on it is the same for every candidate.

    Without rows of other people candidates are judged by shadow releases, of which each leaves out other people.
    """

    name: str
    inside: pa.Table
    outside: pa.Table | None
    people: int  # inside
    seed: int
    shadows: ShadowTrial | None = None


def draw_part(people: RowsByPerson, name: str, share: float, rng: np.random.Generator) -> Part:
    """A part of the people, with a share of them held out."""
    stay, out = people.parted(share, rng)
    return Part(name, stay.table, out.table, stay.count, int(rng.integers(2**31)))


@dataclass(frozen=True, eq=False, repr=False)
class TableOptions:
    """Options of the table, which hold for every candidate."""

    schema: Schema
    publishing: PublishOptions  # with the policy that is to be met
    found: bool  # whether the schema was proposed, and its rules found
    options: RunOptions = field(default_factory=RunOptions)
    k: int | None = None

    @property
    def policy(self) -> Policy:
        """Policy that a release is to meet."""
        policy = self.publishing.policy
        assert isinstance(policy, Policy)
        return policy

    def plan(self, candidate: Candidate, part: Part, change: ColumnChange | None = None) -> Plan:
        """Plan of a run of a candidate on a part; one column may be changed."""
        schema = self.schema if change is None else change.applied(self.schema)
        options = dataclasses.replace(self.options, holdout=part.outside)
        mechanism = candidate.mechanism(self.k)
        if self.found and mechanism.traits.declared:
            raise PrivacyRefusal(f"{candidate.method!r} needs a schema with declared domains; give one with --schema")
        return Plan(mechanism, schema, options, Randomness(part.seed), self.found)


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """What one candidate gave on one part."""

    candidate: Candidate
    part: str
    people: int
    use: Score
    original: Score
    verdict: Verdict
    outlook: Outlook
    columns: tuple[ColumnRisk, ...]
    seconds: float
    change: ColumnChange | None = None

    @property
    def loss(self) -> float:
        """Use that is lost beside the original; below 0 by chance alone."""
        return self.original.value - self.use.value


def _pooled(scores: Sequence[Score]) -> Score:
    """Mean use over several releases, with what each test row of each adds."""
    known = [each.smallest for each in scores if each.smallest is not None]
    return Score(
        float(np.mean([each.value for each in scores])),
        np.concatenate([each.parts for each in scores]),
        float(np.mean(known)) if known else None,
    )


@dataclass(eq=False, repr=False)
class TrialRunner:
    """Tries candidates on parts; the original is scored once on each."""

    table: TableOptions
    metric_name: str | None
    randomness: Randomness
    metric: Metric | None = None
    guess: float = 0.0
    readings: list[Reading] = field(default_factory=list)
    uses: dict[Candidate, dict[str, Score]] = field(default_factory=dict)
    originals: dict[str, Score] = field(default_factory=dict)
    watch: Callable[[Reading], None] | None = None  # is given every reading that is kept

    def reading_of(self, candidate: Candidate, part: str) -> Reading | None:
        """What a candidate gave on a part, if it was tried there."""
        return next((each for each in self.readings if (each.candidate, each.part) == (candidate, part)), None)

    def read(self, candidate: Candidate, part: Part, change: ColumnChange | None = None) -> Reading:
        """Sanitize, attack, judge and score; of a run with a column changed nothing is kept here."""
        begin = perf_counter()
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # the run itself says what it drops
            plan, publishing = self.table.plan(candidate, part, change), self.table.publishing
            if part.shadows is not None:
                tried = try_on_shadows(part.inside, plan, publishing, part.shadows)
            else:
                tried = try_plan(part.inside, plan, publishing)
        if self.metric is None:
            self.metric = choose_metric(tried.study, self.metric_name)
            self.guess = guess_of(tried.study, self.metric)
        studies = (tried.study, *tried.others)
        if part.name not in self.originals:
            self.originals[part.name] = _pooled([self.metric.original(each) for each in studies])
        reading = Reading(
            candidate,
            part.name,
            part.people,
            _pooled([self.metric.released(each) for each in studies]),
            self.originals[part.name],
            tried.verdict,
            tried.outlook,
            risk_by_column(tried.study, tried.report.findings),
            perf_counter() - begin,
            change,
        )
        if change is None:
            self.readings.append(reading)
            self.uses.setdefault(candidate, {})[part.name] = reading.use
            if self.watch is not None:
                self.watch(reading)
        return reading

    def score(self, candidate: Candidate, part: Part) -> None:
        """Use of a candidate on one more part, without any attack."""
        assert self.metric is not None
        assert part.outside is not None
        plan = self.table.plan(candidate, part)
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            outcome = run_in_memory(part.inside, plan)
        study = study_outcome(outcome, self.table.publishing, plan.randomness.generator("assess"))
        if part.name not in self.originals:
            self.originals[part.name] = self.metric.original(study)
        self.uses.setdefault(candidate, {})[part.name] = self.metric.released(study)

    def latest(self) -> dict[Candidate, Reading]:
        """Of every candidate the reading on the largest part that it was tried on."""
        best: dict[Candidate, Reading] = {}
        for reading in self.readings:
            known = best.get(reading.candidate)
            if known is None or reading.people >= known.people:
                best[reading.candidate] = reading
        return best
