"""Tuning on shadow releases: nobody is held out, the choice is confirmed on others, and a proof is a candidate."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.assess.report import ExceededLimit, Ruling
from sfumato.core.errors import PrivacyRefusal
from sfumato.publish.policy import Policy
from sfumato.publish.trial import Outlook
from sfumato.tables.schema import Schema
from sfumato.tuning import Tuning
from sfumato.tuning.candidates import Candidate
from sfumato.tuning.halving import Clock, narrow
from sfumato.tuning.trials import Part, Reading, Score, TrialRunner

PROOF = {"epsilon": 5.0, "delta": 1e-5}
LAX = Policy(
    "lax", {"linkage-excess": 0.9, "membership-auc": 0.99}, {"control": True, "min_group_size": 20}, proof=PROOF
)
TOLD: dict[str, Any] = {"target": "state", "seed": 1, "time_limit": 300.0, "rows_are_people": True}


def people(rows: int = 900) -> pa.Table:
    rng = np.random.default_rng(3)
    ill = rng.random(rows) < 0.4
    age = rng.normal(40, 10, rows) + 15 * ill
    return pa.table(
        {
            "age": age.round(),
            "weight": (70 + 0.4 * age + rng.normal(0, 5, rows)).round(),
            "state": np.where(ill, "ill", "well").tolist(),
        }
    )


@pytest.fixture(scope="module")
def tuned() -> Tuning:
    return sf.tune(people(), policy=LAX, methods=["chain", "private"], schema=Schema.infer(people()), **TOLD)


def test_without_a_schema_a_proof_is_not_tried_and_the_reason_is_said() -> None:
    with pytest.raises(PrivacyRefusal, match="needs a schema"):
        sf.tune(people(), policy=LAX, methods=["private"], **TOLD)


def test_nobody_is_held_out_of_a_table_that_can_be_released_many_times(tuned: Tuning) -> None:
    assert tuned.best is not None
    assert {each.people for each in tuned.bench.readings} == {900}
    assert {each.part for each in tuned.bench.readings} == {"search", "confirmation"}
    assert "--holdout" not in tuned.command_of(tuned.best.reading)
    chain = next(each for each in tuned.bench.readings if each.candidate.method == "chain")
    assert {each.finding.startswith("shadow-") for each in chain.verdict.limits} == {True}
    assert (chain.verdict.shadows or 0) > 0


def test_candidates_are_compared_on_the_same_people_who_were_left_out(tuned: Tuning) -> None:
    chains, proved = (
        [each for each in tuned.bench.readings if (each.candidate.method, each.part) == (method, "search")]
        for method in ("chain", "private")
    )
    assert {each.original.value for each in (*chains, *proved)} == {chains[0].original.value}
    assert {len(each.use.parts) for each in (*chains, *proved)} == {len(chains[0].use.parts)}


def test_a_proof_with_the_budget_of_the_policy_is_among_the_candidates(tuned: Tuning) -> None:
    reading = next(each for each in tuned.bench.readings if each.candidate.method == "private")
    assert (reading.verdict.by, reading.verdict.outcome, reading.outlook.chance) == ("proof", Ruling.MEETS, 1.0)
    assert reading.candidate.options == (
        "--method", "private", "--epsilon", "5", "--delta", "1e-05", "--private-bounds",
    )  # fmt: skip


@pytest.mark.parametrize("least", [3, 40, 640, 5_000])
def test_sizes_are_halved_towards_the_smallest_that_may_hold(least: int) -> None:
    sizes = [3, 5, 10, 20, 40, 80, 160, 320, 640, 1_280]
    read: list[float] = []

    class Fake(TrialRunner):
        def read(self, candidate: Candidate, part: Part, change: object = None) -> Reading:
            read.append(candidate.size)
            leak = 0.5 if candidate.size >= least else 2.0
            worst = ExceededLimit("linkage-excess", None, leak, 1.0)
            verdict: Any = SimpleNamespace(outcome=Ruling.INCONCLUSIVE)
            score = Score(0.5, np.empty(0))
            return Reading(candidate, part.name, 1, score, score, verdict, Outlook(leak, worst, 0.5, {}), (), 0.0)

    table = pa.table({"x": [1]})
    part, clock = Part("search", table, None, 1, 1), Clock(0.0, 1e12)
    bench = Fake(None, None, None)  # type: ignore[arg-type]
    left = narrow(bench, [Candidate("chain", size) for size in sizes], part, clock, {})
    assert [each.size for each in left] == read
    assert len(read) <= 5
    if least <= 1_280:
        assert min(size for size in read if size >= least) == min(size for size in sizes if size >= least)
