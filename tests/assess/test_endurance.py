"""Endurance: whether the release serves miners that it was not made for."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.findings import Finding
from sfumato.assess.study import Sizes
from sfumato.assess.utility.prediction import ENDURANCE, predict, task_of
from tests.assess.cases import CASES, ROWS, draw_table, released_of
from tests.assess.mining import base, found, interval, is_complete, study, value
from tests.examples import at_length, sized

TARGETS = ("colour", "x")
FEW = sized(300, ROWS)


def endurance(
    original: pa.Table, released: pa.Table, target: str = "colour", *, holdout: pa.Table | None = None, seed: int = 5
) -> Finding:
    return found(ENDURANCE, study(original, released, target, holdout=holdout, seed=seed))["endurance"]


@cache
def endurance_of(case: str, target: str) -> Finding:
    return endurance(draw_table(1, FEW), released_of(case, FEW), target, holdout=draw_table(3, FEW))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_the_finding_is_complete(case: str, target: str) -> None:
    finding = endurance_of(case, target)
    assert is_complete(finding)
    assert finding.attempts == FEW
    assert "miners were tried" in finding.meaning


@pytest.mark.parametrize("target", TARGETS)
def test_a_copy_keeps_all_for_every_miner(target: str) -> None:
    finding = endurance_of("copy", target)
    assert finding.value == 1.0
    assert finding.interval == (1.0, 1.0)
    assert "and the" not in finding.meaning  # no miner is named as the one that loses most


@pytest.mark.parametrize("target", TARGETS)
def test_a_constant_table_keeps_nothing(target: str) -> None:
    finding = endurance_of("constant", target)
    assert finding.value == 0.0
    assert finding.interval == (0.0, 0.0)
    assert base(finding) > 0.5


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", [11, *at_length(12, 13)])
def test_a_redraw_keeps_about_what_other_original_rows_keep(target: str, seed: int) -> None:
    finding = endurance(draw_table(1), draw_table(seed), target, seed=seed)
    assert value(finding) > 0.8
    assert value(finding) == pytest.approx(base(finding), abs=0.15)  # the least of five ratios, each of 600 rows


def test_a_release_whose_classes_are_shuffled_keeps_little() -> None:
    table = draw_table(1)
    shuffled = np.random.default_rng(4).permutation(np.array(table.column("colour")))
    finding = endurance(table, table.set_column(3, "colour", pa.array(shuffled)))
    assert value(finding) < 0.3
    assert interval(finding)[1] < 0.6


def test_a_release_made_for_a_linear_miner_fails_others() -> None:
    """A response that is linear in one column and wavy in another: the release keeps the line and blurs the wave."""

    def draw(seed: int, *, blurred: bool) -> pa.Table:
        rng = np.random.default_rng(seed)
        line, wave = rng.normal(size=800), rng.uniform(-3, 3, size=800)
        response = line + 2.0 * np.cos(2.0 * wave) + 0.1 * rng.normal(size=800)
        return pa.table({"line": line, "wave": rng.permutation(wave) if blurred else wave, "response": response})

    subject = study(draw(1, blurred=False), draw(2, blurred=True), "response", holdout=draw(3, blurred=False))
    finding = found(ENDURANCE, subject)["endurance"]
    assert value(finding) < 0.75
    assert "the linear model loses most" not in finding.meaning
    assert base(finding) > 0.9


def test_the_value_is_the_least_ratio_of_average_recalls_above_guessing() -> None:
    subject = study(draw_table(1, FEW), draw_table(2, FEW), holdout=draw_table(3, FEW))
    rng = subject.generator("endurance")
    task = task_of(subject, subject.sizes.training // 2, subject.sizes.testing // 2, rng)
    assert not isinstance(task, str)
    rng.multinomial(FEW, np.full(FEW, 1 / FEW), 200)  # the redraws come first
    truth, ratios = task.test.labels, []
    for miner in ("1nn", "tree", "linear", "bayes", "boosting"):
        seed = int(rng.integers(2**31))
        gains = []
        for lesson in (task.released, task.original):
            guess = predict(miner, lesson, task.test.rows, classes=3, seed=seed)
            gains.append(np.mean([(guess[truth == code] == code).mean() for code in range(3)]) - 1 / 3)
        ratios.append(gains[0] / gains[1])
    assert value(found(ENDURANCE, subject)["endurance"]) == pytest.approx(min(1.0, *ratios), abs=1e-9)


def test_where_no_miner_learns_anything_it_is_not_run() -> None:
    held = draw_table(3)
    alike = held.filter(pa.array(np.array(held.column("colour")) == "blue"))  # guessing is always right there
    finding = endurance(draw_table(1), draw_table(2), holdout=alike)
    assert finding.reason == "no miner that was tried learns more than guessing from the original either"


def test_half_the_usual_rows_are_looked_at_and_told() -> None:
    subject = study(draw_table(1, FEW), draw_table(2, FEW), sizes=Sizes(training=200, testing=100))
    finding = found(ENDURANCE, subject)["endurance"]
    assert finding.attempts == 50
    assert "learned from 100 rows and counted on 50 held-out rows, drawn at random" in finding.meaning


@pytest.mark.parametrize(("rows", "held"), [(1, sized(150, ROWS)), (5, 1), *at_length((2, 2), (90, 2))])
@pytest.mark.parametrize("target", ["colour", "born"])
def test_tiny_tables_do_not_stop_it(rows: int, held: int, target: str) -> None:
    assert is_complete(endurance(draw_table(1, FEW // 2), draw_table(2, rows), target, holdout=draw_table(3, held)))


def test_without_target_or_holdout_it_is_not_run() -> None:
    subject = study(draw_table(1), draw_table(2))
    assert "--target" in (found(ENDURANCE, dataclasses.replace(subject, target=None))["endurance"].reason or "")
    alone = dataclasses.replace(subject, holdout=None, held=None)
    assert "--holdout" in (found(ENDURANCE, alone)["endurance"].reason or "")
