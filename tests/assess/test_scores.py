"""Scores above chance: areas and balanced accuracies as sums of rows, and their intervals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from sfumato.assess.utility import auc_parts, balanced_accuracy_parts, parts_interval
from sfumato.assess.utility.prediction import PREDICTION, RESPONSES
from tests.assess.cases import study
from tests.assess.privacy_studies import found


@pytest.mark.parametrize("seed", range(4))
def test_parts_add_up_to_the_scores_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.append(rng.integers(0, 2, 200), [0, 2]).astype(float)[: 200 + 2 * (seed % 2)]
    guess = rng.permutation(truth)
    assert balanced_accuracy_parts(truth, guess).mean() == pytest.approx(balanced_accuracy_score(truth, guess))
    two = (truth > 0).astype(float)
    scores = np.round(rng.normal(size=len(two)) + two, 1)  # with ties
    assert auc_parts(two, scores).mean() == pytest.approx(roc_auc_score(two, scores))
    assert auc_parts(3.0 * two, scores).mean() == pytest.approx(roc_auc_score(two, scores))


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.1)])
def test_the_variance_of_the_parts_is_that_of_the_score(shares: tuple[float, float]) -> None:
    """Over 600 redraws; a standard deviation is then off by 3 % and by 15 % less often than once in 1e6 times."""
    rng = np.random.default_rng(3)
    scores, spreads = [], []
    for _ in range(600):
        truth = (rng.random(300) < shares[1]).astype(float)
        parts = auc_parts(truth, rng.normal(size=300) + truth)
        scores.append(parts.mean())
        spreads.append((parts.var() / 300) ** 0.5)
    assert np.mean(spreads) == pytest.approx(np.std(scores), rel=0.15)


def test_an_interval_holds_its_score_and_is_never_empty() -> None:
    for parts in (np.ones(50), np.zeros(50), np.full(50, 0.5), np.array([1.0]), np.linspace(-1.0, 2.0, 50)):
        low, high = parts_interval(parts)
        assert 0.0 <= low <= np.clip(parts.mean(), 0.0, 1.0) <= high <= 1.0
        assert low < high
    wide, narrow = (parts_interval(np.tile([0.0, 1.0], half)) for half in (10, 1_000))
    assert narrow[1] - narrow[0] < 0.2 * (wide[1] - wide[0])


def patients(seed: int, rows: int = 600, *, classes: int = 2, blind: bool = False) -> pa.Table:
    """A rare class that one column tells of, which is shuffled where the release is blind."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    ill = (x + rng.normal(size=rows) > 1.6).astype(int) + (x < -1.5) * (classes - 2)
    return pa.table(
        {"x": rng.permutation(x) if blind else x, "y": rng.normal(size=rows), "ill": [f"c{k}" for k in ill]}
    )


def test_a_blind_release_keeps_the_accuracy_and_loses_the_area() -> None:
    findings = found(PREDICTION, study(patients(1), patients(2, blind=True), target="ill", holdout=patients(3)))
    area, accuracy = findings["auc-boosting"], findings["accuracy-boosting"]
    assert area.value is not None
    assert area.interval is not None
    assert area.baseline is not None
    assert area.chance == 0.5
    assert area.value < 0.65 < 0.8 < area.baseline  # trees that learned noise order at random
    assert area.interval[0] <= area.value <= area.interval[1] < area.baseline
    assert accuracy.value is not None
    assert accuracy.baseline is not None
    assert accuracy.baseline - accuracy.value < 0.06
    assert findings["balanced-accuracy-boosting"].chance == 0.5


def test_a_release_of_one_class_scores_what_chance_does() -> None:
    table = patients(1)
    constant = table.take(pa.array(np.zeros(600, dtype=np.int64)))
    findings = found(PREDICTION, study(table, constant, target="ill", holdout=patients(3)))
    for model in ("1nn", "boosting", "logistic"):
        for name in ("auc", "balanced-accuracy"):
            finding = findings[f"{name}-{model}"]
            assert finding.value == finding.chance == 0.5


def test_several_classes_have_a_balanced_accuracy_and_no_area() -> None:
    tables = [patients(seed, classes=4) for seed in (1, 2, 3)]
    findings = found(PREDICTION, study(*tables[:2], target="ill", holdout=tables[2]))
    assert findings["auc-boosting"].reason == "the column to predict has 3 classes; see balanced accuracy"
    assert not findings["auc-boosting"].applies
    balanced = findings["balanced-accuracy-boosting"]
    assert balanced.chance == pytest.approx(1 / 3)
    recalls = [finding.value for name, finding in findings.items() if name.startswith("recall-boosting/")]
    assert balanced.value == pytest.approx(np.mean([each for each in recalls if each is not None]))


def test_held_out_rows_of_one_class_have_no_area() -> None:
    held = patients(3).filter(pa.compute.equal(patients(3).column("ill"), "c0"))
    finding = found(PREDICTION, study(patients(1), patients(2), target="ill", holdout=held))["auc-1nn"]
    assert finding.reason == "the rows held out are all of one class"


def test_the_chance_of_a_response_is_that_of_the_mean() -> None:
    findings = found(RESPONSES, study(patients(1), patients(2), target="y", holdout=patients(3)))
    chances = {name: finding.chance for name, finding in findings.items() if finding.value is not None}
    assert {chance for name, chance in chances.items() if "accuracy" not in name} == {0.0}
    (median,) = {chance for name, chance in chances.items() if "accuracy" in name}
    assert median is not None
    assert 0.0 < median < 0.5  # always predicting the median
