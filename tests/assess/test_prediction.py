"""Train on released, test on real: classes and responses."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.algebra import Measure
from sfumato.assess.findings import Finding
from sfumato.assess.study import MeasureOptions, Sizes
from sfumato.assess.utility.clustering import CLUSTERING
from sfumato.assess.utility.prediction import (
    ENDURANCE,
    PREDICTION,
    RESPONSES,
    TrainingSet,
    correlations,
    predict,
    r_squares,
    redraw_weights,
    task_of,
)
from sfumato.core.errors import OptionError
from sfumato.tables.schema import Domain, Field, Kind, Schema
from tests.assess.cases import CASES, ROWS, constant_table, draw_table, released_of
from tests.assess.mining import base, found, interval, is_complete, study, value
from tests.examples import at_length, sized

MODELS = ("1nn", "boosting", "logistic")
RESPONSE_MODELS = ("1nn", "boosting", "ridge")
CLASSES = ("amber", "blue", "crimson")
FEW = sized(300, ROWS)


@cache
def classes_of(case: str, held: int = FEW) -> dict[str, Finding]:
    return found(PREDICTION, study(draw_table(1, FEW), released_of(case, FEW), holdout=draw_table(3, held)))


@cache
def responses_of(case: str, target: str = "x") -> dict[str, Finding]:
    return found(RESPONSES, study(draw_table(1, FEW), released_of(case, FEW), target, holdout=draw_table(3, FEW)))


@pytest.mark.parametrize("case", CASES)
def test_every_finding_is_complete_and_higher_is_better(case: str) -> None:
    findings = {**classes_of(case), **responses_of(case)}
    assert set(PREDICTION.names) | set(RESPONSES.names) <= set(findings)
    for finding in findings.values():
        assert is_complete(finding), finding
        assert finding.direction.value == "higher-is-better"


def test_a_model_that_learned_from_a_copy_does_as_well_as_one_that_learned_from_the_original() -> None:
    for finding in (*classes_of("copy").values(), *responses_of("copy").values()):
        assert finding.value == finding.baseline
    few = Sizes(training=100, testing=50)  # also where only a sample is looked at
    for name, finding in found(PREDICTION, study(draw_table(1), draw_table(1), sizes=few)).items():
        assert finding.value == finding.baseline, name


@pytest.mark.parametrize("seed", [11, *at_length(12, 13)])
def test_a_redraw_serves_about_as_well_as_the_original(seed: int) -> None:
    findings = found(PREDICTION, study(draw_table(1), draw_table(seed), seed=seed))
    responses = found(RESPONSES, study(draw_table(1), draw_table(seed), "x", seed=seed))
    for model in MODELS:
        finding = findings[f"accuracy-{model}"]
        assert value(finding) == pytest.approx(base(finding), abs=0.08)  # 600 rows: more than four standard errors
    for model in RESPONSE_MODELS:
        finding = responses[f"response-correlation-{model}"]
        assert value(finding) == pytest.approx(base(finding), abs=0.06)


def test_a_constant_table_teaches_no_more_than_always_naming_its_class() -> None:
    findings = classes_of("constant")
    held = draw_table(3, FEW).column("colour").to_pylist()
    only = constant_table(1).column("colour")[0].as_py()
    for model in MODELS:
        assert value(findings[f"accuracy-{model}"]) == pytest.approx(held.count(only) / len(held))
        assert value(findings[f"accuracy-{model}"]) < base(findings[f"accuracy-{model}"]) - 0.1
        recalls = [value(findings[f"recall-{model}/{name}"]) for name in CLASSES]
        assert sorted(recalls) == [0.0, 0.0, 1.0]


def test_a_constant_table_teaches_nothing_of_a_response() -> None:
    findings = responses_of("constant")
    for model in RESPONSE_MODELS:
        assert value(findings[f"response-correlation-{model}"]) == 0.0
        assert value(findings[f"response-r2-{model}"]) <= 0.0
        assert base(findings[f"response-correlation-{model}"]) > 0.8


def test_the_accuracy_of_a_response_is_the_share_of_predictions_within_the_tolerance() -> None:
    rng = np.random.default_rng(1)
    years = rng.integers(1, 30, 300)
    original = pa.table({"length": years + rng.normal(0, 1, 300), "years": years})
    released, held = original.take(pa.array(rng.permutation(300)[:200])), original.slice(0, 100)
    for told, within, words in (
        (None, 1.0, "at most 1, its step"),
        (2.5, 2.5, "at most 2.5 "),
        (0.0, 0.0, "at most 0 "),
    ):
        options = MeasureOptions(accurate_within=told)
        findings = found(RESPONSES, study(original, released, "years", holdout=held, options=options))
        near = np.abs(np.subtract.outer(np.array(held["length"]), np.array(released["length"]))).argmin(axis=1)
        errors = np.abs(np.array(held["years"]) - np.array(released["years"])[near])
        assert value(findings["response-accuracy-1nn"]) == pytest.approx((errors <= within).mean(), abs=1e-12)
        median = np.abs(np.array(held["years"]) - np.median(years)) <= within
        assert words in findings["response-accuracy-1nn"].meaning
        assert f"the median is right for {median.mean():.1%}" in findings["response-accuracy-1nn"].meaning
    rough = found(RESPONSES, study(draw_table(1, FEW), draw_table(2, FEW), "x", holdout=draw_table(3, FEW)))
    assert "a tenth of its standard deviation" in rough["response-accuracy-ridge"].meaning
    with pytest.raises(OptionError, match="accurate_within= must be"):
        MeasureOptions(accurate_within=-1.0)
    for target in (None, "colour"):
        with pytest.raises(OptionError, match="accurate_within= is for a target of numbers"):
            study(draw_table(1, FEW), draw_table(2, FEW), target, options=MeasureOptions(accurate_within=1.0))


def test_the_nearest_neighbour_answers_as_a_slow_loop_does() -> None:
    subject = study(draw_table(1), draw_table(2, sized(200, ROWS)), holdout=draw_table(3, sized(150, ROWS)))
    features = subject.coordinates(["x", "y", "count", "shape", "born"])
    released, held = subject.released[:, features], subject.holdout
    assert held is not None
    assert subject.held is not None
    truth, labels = subject.held[3].values, subject.pair("colour").released.values
    right = []
    for row, label in zip(held[:, features], truth, strict=True):
        distances = [float(np.sum((row - other) ** 2)) for other in released]
        right.append(labels[int(np.argmin(distances))] == label)
    finding = found(PREDICTION, subject)["accuracy-1nn"]
    assert value(finding) == pytest.approx(np.mean(right), abs=1e-12)
    assert finding.attempts == sized(150, ROWS)


def test_the_recalls_of_the_classes_weigh_up_to_the_accuracy_and_stay_with_the_owner() -> None:
    findings = classes_of("redraw")
    for model in MODELS:
        parts = [findings[f"recall-{model}/{name}"] for name in CLASSES]
        rows = [part.attempts or 0 for part in parts]
        assert np.average([value(part) for part in parts], weights=rows) == pytest.approx(
            value(findings[f"accuracy-{model}"])
        )
        assert not any(part.public for part in parts)
    for name, finding in findings.items():
        if finding.public:
            assert not any(label in name + finding.meaning for label in CLASSES)


def test_the_smallest_class_is_that_with_the_fewest_original_rows() -> None:
    table = draw_table(1, FEW)
    names = table.column("colour").to_pylist()
    few = min(CLASSES, key=names.count)
    findings = classes_of("redraw")
    for model in MODELS:
        small, same = findings[f"accuracy-smallest-class-{model}"], findings[f"recall-{model}/{few}"]
        assert (small.value, small.baseline, small.attempts) == (same.value, same.baseline, same.attempts)


def test_a_class_with_fewer_than_ten_held_out_rows_is_not_shown_to_the_public() -> None:
    findings = classes_of("redraw", held=5)
    for model in MODELS:
        assert findings[f"accuracy-smallest-class-{model}"].reason == "no class has ten held-out rows"
        assert findings[f"accuracy-{model}"].attempts == 5


def test_guessing_the_commonest_class_is_told() -> None:
    held = draw_table(3, FEW).column("colour").to_pylist()
    names = draw_table(1, FEW).column("colour").to_pylist()
    share = held.count(max(CLASSES, key=names.count)) / len(held)
    assert f"always naming the commonest class is right for {share:.1%}" in classes_of("redraw")["accuracy-1nn"].meaning


def test_a_class_that_the_release_has_lost_is_never_recognised() -> None:
    released = draw_table(2)
    kept = np.flatnonzero(np.array(released.column("colour")) != "crimson")
    findings = found(PREDICTION, study(draw_table(1), released.take(pa.array(kept))))
    for model in MODELS:
        assert value(findings[f"recall-{model}/crimson"]) == 0.0
        assert base(findings[f"recall-{model}/crimson"]) > 0.2


def test_rows_without_a_known_class_are_left_out_and_counted() -> None:
    held = draw_table(3, 100)
    colours: list[str | None] = held.column("colour").to_pylist()
    colours[:7] = [None] * 4 + ["mauve"] * 3
    held = held.set_column(3, "colour", pa.array(colours))
    finding = found(PREDICTION, study(draw_table(1), draw_table(2), holdout=held))["accuracy-1nn"]
    assert finding.attempts == 93
    assert "(7 more are left out, for their true value is not known)" in finding.meaning
    assert "mauve" not in finding.meaning


def test_the_sample_is_told() -> None:
    small = found(PREDICTION, study(draw_table(1), draw_table(2), sizes=Sizes(training=100, testing=50)))
    assert small["accuracy-1nn"].attempts == 50
    assert "learned from 100 rows and counted on 50 held-out rows, drawn at random" in small["accuracy-1nn"].meaning
    assert "drawn at random" not in classes_of("redraw")["accuracy-1nn"].meaning


def test_the_kind_of_the_column_decides_between_class_and_response() -> None:
    grades = np.random.default_rng(1).integers(0, 3, size=200)
    table = pa.table({"x": grades + np.random.default_rng(2).normal(size=200), "grade": grades})
    number = Field("x", Kind.CONTINUOUS)
    ordinal = Field("grade", Kind.ORDINAL, domain=Domain(categories=(0, 1, 2)))
    for field, is_response in ((Field("grade", Kind.INTEGER), True), (ordinal, False)):
        subject = study(table, table, "grade", holdout=table, schema=Schema((number, field)))
        assert (found(PREDICTION, subject)["accuracy-1nn"].value is None) is is_response
        assert (found(RESPONSES, subject)["response-r2-1nn"].value is not None) is is_response
    assert value(found(PREDICTION, subject)["accuracy-1nn"]) == 1.0


def test_dates_and_columns_with_missing_cells_are_predicted_as_responses() -> None:
    for target in ("born", "y"):
        findings = responses_of("redraw", target)
        assert value(findings["response-correlation-boosting"]) > 0.8
    absent = draw_table(3, FEW).column("y").null_count
    assert f"({absent} more are left out" in findings["response-r2-1nn"].meaning


def test_without_target_or_holdout_nothing_is_run() -> None:
    subject = study(draw_table(1), draw_table(2), None)
    assert "--target" in (found(PREDICTION, subject)["accuracy-1nn"].reason or "")
    alone = dataclasses.replace(study(draw_table(1), draw_table(2)), holdout=None, held=None)
    for measure in (PREDICTION, RESPONSES):
        for finding in found(measure, alone).values():
            assert "--holdout" in (finding.reason or "")


def test_a_release_without_any_known_class_teaches_nothing() -> None:
    released = draw_table(2).set_column(3, "colour", pa.array(["mauve"] * ROWS))
    for finding in found(PREDICTION, study(draw_table(1), released)).values():
        assert "no known value left in the released table" in (finding.reason or "")


@pytest.mark.parametrize(("rows", "held"), [(1, sized(150, ROWS)), (5, 1), *at_length((2, 2), (90, 2))])
@pytest.mark.parametrize("target", ["colour", "x", "born"])
def test_tiny_tables_stop_no_measure(rows: int, held: int, target: str) -> None:
    subject = study(draw_table(1, sized(150, ROWS)), draw_table(2, rows), target, holdout=draw_table(3, held))
    for measure in (PREDICTION, RESPONSES):
        for finding in found(measure, subject).values():
            assert is_complete(finding), finding


@pytest.mark.parametrize("measure", [PREDICTION, RESPONSES, ENDURANCE, CLUSTERING])
@pytest.mark.parametrize("target", ["colour", "x"])
def test_cells_far_outside_or_never_seen_stop_no_measure(measure: Measure, target: str) -> None:
    rows = sized(150, ROWS)
    original, released, held = (draw_table(seed, rows) for seed in (1, 2, 3))
    strange = released.set_column(0, "x", pa.array([1e200] * rows))
    strange = strange.set_column(2, "count", pa.nulls(rows, pa.int64()))
    strange = strange.set_column(3, "colour", pa.array(["mauve"] * (rows - 1) + ["blue"]))
    for studied in (study(original, strange, target, holdout=held), study(original, released, target, holdout=strange)):
        for finding in found(measure, studied).values():
            assert is_complete(finding), finding


def test_an_original_of_one_row_has_nothing_to_learn() -> None:
    subject = study(constant_table(1), constant_table(1))
    assert "single value in the original" in (found(PREDICTION, subject)["accuracy-1nn"].reason or "")


def test_each_of_many_classes_has_its_recall() -> None:
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 40, size=900)
    table = pa.table({"x": codes + 0.1 * rng.normal(size=900), "name": [f"c{code}" for code in codes]})
    findings = found(PREDICTION, study(table.slice(0, 600), table.slice(0, 600), "name", holdout=table.slice(600)))
    assert value(findings["accuracy-1nn"]) > 0.9
    held = set(table.slice(600).column("name").to_pylist())
    assert len(held) > 30
    assert {name for name in findings if name.startswith("recall-1nn/")} == {f"recall-1nn/{name}" for name in held}
    assert not any(findings[f"recall-1nn/{name}"].public for name in held)


def test_the_same_seed_gives_the_same_findings() -> None:
    for measure, target, first in (
        (PREDICTION, "colour", classes_of("redraw")),
        (RESPONSES, "x", responses_of("redraw")),
    ):
        subject = study(draw_table(1, FEW), draw_table(2, FEW), target, holdout=draw_table(3, FEW))
        assert found(measure, subject) == first


def test_the_second_draw_of_the_original_takes_other_rows_where_there_are_enough() -> None:
    subject = study(draw_table(1), draw_table(2))
    task = task_of(subject, 250, 50, np.random.default_rng(1))
    assert not isinstance(task, str)
    both = np.vstack([task.original.rows, task.again.rows])
    assert len(np.unique(both, axis=0)) == 500
    assert len(task.test.rows) == 50


@pytest.mark.parametrize("rows", [3, 40])
def test_scores_on_redraws_are_those_of_the_rows_written_out(rows: int) -> None:
    noise = np.random.default_rng(rows).normal(size=(2, rows))
    truth, guess = 50.0 + noise[0], 35.0 + 0.7 * noise[0] + noise[1]
    weights = redraw_weights(rows, 6, np.random.default_rng(2))
    fit = iter(r_squares(weights, truth, guess))
    for weight, correlation in zip(weights, correlations(weights, truth, guess), strict=True):
        a, b = (np.repeat(side, weight.astype(int)) for side in (truth, guess))
        if np.ptp(a) == 0.0:
            assert correlation == 0.0
            continue
        assert correlation == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-9)
        assert next(fit) == pytest.approx(1 - np.sum((a - b) ** 2) / np.sum((a - a.mean()) ** 2), rel=1e-9)


def test_the_interval_of_a_correlation_holds_the_truth_as_often_as_it_says() -> None:
    """Fisher: of normal pairs with correlation 0.6 the middle 95 % of redraws hold it in about 95 of 100 tables."""
    held = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=300)
        y = 0.6 * x + 0.8 * rng.normal(size=300)
        low, high = np.quantile(correlations(redraw_weights(300, 200, rng), x, y), [0.025, 0.975])
        held += int(low <= 0.6 <= high)
    assert held >= 85


def test_an_interval_narrows_with_more_test_rows() -> None:
    widths = []
    for rows in (50, FEW):
        low, high = interval(classes_of("redraw", held=rows)["accuracy-1nn"])
        widths.append(high - low)
    assert widths[1] < 0.5 * widths[0]


@pytest.mark.parametrize("miner", ["1nn", "boosting", "linear", "tree", "bayes"])
def test_every_miner_finds_classes_that_lie_apart(miner: str) -> None:
    rng = np.random.default_rng(3)
    labels = np.repeat([0.0, 2.0], 100)
    lesson = TrainingSet(labels[:, None] * 10 + rng.normal(size=(200, 2)), labels)
    guess = predict(miner, lesson, np.array([[0.0, 0.0], [20.0, 20.0]]), classes=3, seed=1)
    assert guess.tolist() == [0.0, 2.0]


@pytest.mark.parametrize(("miner", "classes"), [("linear", 0), ("linear", 60), ("tree", 60), ("bayes", 60)])
def test_a_fit_of_columns_alike_far_out_or_of_many_classes_says_nothing(miner: str, classes: int) -> None:
    rng = np.random.default_rng(3)
    rows = np.repeat(1e6 * rng.choice([-1.0, 1.0], size=(2000 if not classes else 80, 1)), 50, axis=1)
    labels = rng.permutation(np.arange(len(rows)) % (classes or len(rows))).astype(np.float64)
    guess = predict(miner, TrainingSet(rows, labels), rows[:3], classes=classes, seed=1)  # a warning is an error here
    assert np.isfinite(guess).all()
