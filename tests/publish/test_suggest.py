"""What to try next: nothing is tried without a chance to decide, and nothing is suggested that was not tried."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.assess.findings import ColumnRisk
from sfumato.assess.report import ExceededLimit, Report, Ruling, Verdict
from sfumato.engines.plan import Plan, make_plan
from sfumato.options import PublishOptions, RunOptions
from sfumato.publish import suggest as module
from sfumato.publish.judge import judge
from sfumato.publish.policy import Policy
from sfumato.publish.suggest import (
    ColumnChange,
    can_be_told,
    change_tried,
    suggesting,
    suggesting_another,
)
from sfumato.publish.trial import End, Outlook, TrialResult, judged_measures, outlook
from sfumato.tables.schema import Role
from tests.publish.cases import GROUPED, rate, report

OURS = Policy("ours", {"linkage-excess": 0.05}, {"min_group_size": 12})
WORDS = ("sfumato", "sanitize", "people.csv", "-o", "out", "--k", "5", "--effort", "fast", "--policy", "ours.toml")
RUN = PublishOptions(command=WORDS)


def people(rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table({"age": rng.integers(20, 80, rows), "pay": rng.integers(1, 99, rows)})


def failed(*, held_out: int = 3000) -> Report:
    made = report(rate("linkability", 0.6, 0.1), held_out=held_out)
    return dataclasses.replace(made, verdict=judge(made, OURS, GROUPED))


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[int, float]], list[int]]:
    """Trials that meet a limit by leaf with a chance, and the leaves that were tried."""

    def install(chances: Mapping[int, float]) -> list[int]:
        seen: list[int] = []

        def fake(_table: pa.Table, plan: Plan, _options: PublishOptions) -> TrialResult:
            assert isinstance(plan.mechanism, sf.Chain)
            leaf = plan.mechanism.leaf
            seen.append(leaf)
            chance = chances.get(leaf, 0.0)
            ends = {"linkage-excess": End(0.05 - 0.1 * (chance - 0.5), 0.0, 0.02)}
            outcome = Ruling.MEETS if chance else Ruling.INCONCLUSIVE
            found = report(rate("linkability", 0.1, 0.1))
            return TrialResult(Verdict("ours", outcome), Outlook(0.5, None, chance, ends), found, None, 0.0)  # type: ignore[arg-type]

        monkeypatch.setattr(module, "try_plan", fake)
        return seen

    return install


def test_the_first_setting_that_most_runs_meet_is_named_with_all_it_takes(
    trials: Callable[..., list[int]],
) -> None:
    table = people(4_000)
    seen = trials({100: 0.0, 400: 0.99})
    found = suggesting(table, make_plan(table, sf.Condensation(k=15, effort="fast")), RUN)(failed(), OURS)
    assert seen == [100, 400, 400]
    assert found.tried == 2
    assert [shlex.split(line) for line in found.to_try] == [
        ["sfumato", "sanitize", "people.csv", "-o", "out", "--policy", "ours.toml", "--method", "chain", "--k", "12",
         "--leaf", "400", "--holdout", "0.3", "--overwrite"]
    ]  # fmt: skip


def test_a_setting_that_meets_it_by_little_is_run_again_and_none_is_named_where_none_does(
    trials: Callable[..., list[int]],
) -> None:
    table = people(4_000)
    seen = trials({200: 0.6})
    found = suggesting(table, make_plan(table, sf.Chain(k=12, leaf=50)), RUN)(failed(), OURS)
    assert seen == [200, 200, 800]
    assert (found.to_try, found.tried) == ((), 2)
    assert (
        found.none_found
        == "2 other settings were tried; none meets the policy in 9 of 10 runs. 'sfumato tune' searches further."
    )


def test_nothing_is_tried_where_not_even_attacks_that_never_succeed_could_be_told(
    trials: Callable[..., list[int]],
) -> None:
    table = people(150)
    seen = trials({})
    found = suggesting(table, make_plan(table, sf.Chain(k=12, leaf=50)), RUN)(failed(held_out=0), OURS)
    assert (seen, found.to_try, found.tried) == ([], (), 0)


def test_what_can_be_told_hangs_on_how_often_attacks_succeed_on_anybody() -> None:
    assert can_be_told(report(rate("linkability", 0.02, 0.01)), OURS)
    tighter = dataclasses.replace(OURS, limits={"linkage-excess": 0.02})
    assert not can_be_told(report(rate("linkability", 0.5, 0.5)), tighter)


def test_the_outlook_tells_the_worst_and_is_hopeless_where_a_requirement_is_not_met() -> None:
    found = outlook(report(rate("linkability", 0.12, 0.1)), OURS, GROUPED)
    assert found.worst is not None
    assert found.worst.finding == "linkability"
    assert found.leak == pytest.approx(0.4)
    strict = dataclasses.replace(OURS, require={"min_group_size": 10_000})
    assert outlook(report(rate("linkability", 0.12, 0.1)), strict, GROUPED).chance == 0.0


def test_only_what_a_policy_judges_is_measured() -> None:
    names = {measure.name for measure in judged_measures(OURS)}
    assert {"linkage", "linkability"} <= names
    assert not names & {"membership", "attribute-inference", "prediction", "clustering"}


def ended(leak: float, value: float, error: float) -> Outlook:
    worst = ExceededLimit("linkage-excess", "linkability", value, 0.05)
    return Outlook(leak, worst, 0.0, {"linkage-excess": End(value + 2 * error, value, error)})


@pytest.mark.parametrize(("error", "clear"), [(0.01, True), (0.05, False)])
def test_a_change_helps_clearly_where_the_worst_falls_by_more_than_both_runs_vary(error: float, *, clear: bool) -> None:
    change = ColumnChange("pay")
    tried = change_tried(change, ended(4.0, 0.2, error), ended(2.0, 0.1, error), 900)
    assert tried.clear is clear
    assert (tried.how, tried.people) == ("--identifier pay", 900)
    verdict = Verdict("ours", Ruling.DOES_NOT_MEET, changes=(tried,))
    if clear:
        assert verdict.helpful == ("Without 'pay', the strongest attack falls from 4.0 to 2.0 times its limit.",)
        assert verdict.changes_said == "Tried on a sample of 900 members."
    else:
        assert verdict.helpful == ()
        assert 'changing only one of "pay" does not significantly lower' in verdict.changes_said


def test_what_falls_at_one_limit_and_rises_at_another_is_no_help() -> None:
    tried = change_tried(ColumnChange("pay"), ended(4.0, 0.2, 0.01), ended(5.0, 0.1, 0.01), 900)
    assert not tried.clear


def test_where_no_setting_does_the_column_that_helps_is_left_out_and_the_rest_of_the_command_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = people(4_000)

    def fake(_table: pa.Table, plan: Plan, _options: PublishOptions) -> TrialResult:
        without = plan.schema["pay"].role is Role.IDENTIFIER
        found = report(rate("linkability", 0.1, 0.1))
        chained = isinstance(plan.mechanism, sf.Chain)
        outcome = Ruling.MEETS if without and chained else Ruling.DOES_NOT_MEET
        looks = ended(0.5, 0.01, 0.005) if without else ended(4.0, 0.2, 0.01)
        outlook = dataclasses.replace(looks, chance=0.99 * without)
        return TrialResult(Verdict("ours", outcome), outlook, found, None, 0.0)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "try_plan", fake)
    risky = dataclasses.replace(failed(), columns=(ColumnRisk("pay", 0.3, True, 0.1, 0),))
    words = (*WORDS, "--identifier", "name")
    found = suggesting(table, make_plan(table, sf.Condensation(k=15, effort="fast")), PublishOptions(command=words))(
        risky, OURS
    )
    assert [each.change for each in found.changes if each.clear] == ["without 'pay'"]
    (line,) = found.to_try
    assert "--identifier name" in line
    assert "--identifier pay" in line
    assert "--method chain" in line


@pytest.mark.parametrize("told", ["public", "person"])
def test_of_a_table_that_no_chain_can_be_made_of_no_command_is_named(told: str) -> None:
    table = people(200)
    schema = make_plan(table, sf.Chain()).schema
    if told == "public":
        schema = schema.with_role(Role.PUBLIC, "pay")
    else:
        who = [f"p{row // 4}" for row in range(200)]
        table = table.append_column("who", pa.array(who)).append_column("home", pa.array([f"h{each}" for each in who]))
        schema = make_plan(table, sf.Chain(), RunOptions(rows_are_people=True)).schema
    own = PublishOptions(command=("sfumato", "evaluate", "mine.csv", "theirs.csv"))
    found = suggesting_another(table, schema, RunOptions(), own)(failed(), OURS)
    assert failed().verdict is not None
    assert failed().verdict.to_try  # type: ignore[union-attr]
    assert found.to_try == ()
