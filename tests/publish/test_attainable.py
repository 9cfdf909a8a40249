"""A run whose release cannot meet its policy is refused before a method runs, by the very rules of the judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import OptionError
from sfumato.engines import memory
from sfumato.methods.catalogue import make_mechanism
from sfumato.publish import sanitize as module
from sfumato.publish.attainable import PlannedRun, refuse_unattainable
from sfumato.publish.judge import LEAST_HELD_OUT
from sfumato.publish.policy import BUILT_IN, LIMITS
from sfumato.publish.shadows import FEWEST_PEOPLE
from sfumato.registry import method_names

pytestmark = pytest.mark.usefixtures("short_reports")  # requirements are judged by facts

_RNG = np.random.default_rng(7)
NUMBERS = pa.table({name: _RNG.normal(size=400).round(3) for name in ("age", "pay", "stay")})
PEOPLE = NUMBERS.append_column("sex", pa.array(_RNG.choice(["f", "m"], 400))).append_column(
    "ill", pa.array(_RNG.choice(["yes", "no"], 400))
)
DECLARED = sf.Schema(
    (
        *(
            sf.Field(name, sf.Kind.CONTINUOUS, domain=sf.Domain(declared=True, low=-9, high=9, step=0.001))
            for name in NUMBERS.column_names
        ),
        sf.Field("sex", sf.Kind.NOMINAL, domain=sf.Domain(declared=True, categories=("f", "m"))),
        sf.Field("ill", sf.Kind.NOMINAL, domain=sf.Domain(declared=True, categories=("yes", "no"))),
    )
)
TOLD: dict[str, dict[str, Any]] = {
    "private": {"epsilon": 1.0, "schema": DECLARED},
    "classwise": {"target": "ill"},
    "swap": {"pass_categories": True},
    "block": {"columns": ("sex",)},
    "aggregate": {"widths": {"age": 1.0}},
    "downgrade": {"private": "ill"},
    "sample": {"share": 0.5},
}
"""Arguments of methods that take a table with categories; all others get numbers alone."""

GROUPS = sf.Policy("groups", require={"min_group_size": 1})
CONTROL = sf.Policy("control", require={"control": True})


def run(method: str, policy: sf.Policy, **more: Any) -> sf.Release:
    """Release of a small table by a method with its usual parameters."""
    table = PEOPLE if method in TOLD or method in ("chain", "condense", "condense-paper") else NUMBERS
    if method in ("translate", "scale", "rotate", "hybrid"):
        mechanism = make_mechanism(method, {})
        return sf.sanitize(table, mechanism, policy=policy, time_limit=0.5, **more)
    randomized = {"epsilon": 2.0, "allow_observed": True} if method == "randomize" else {}
    told = {**TOLD.get(method, {}), **randomized, **more}
    return sf.sanitize(table, method=method, policy=policy, time_limit=0.5, **told)


def judged_late(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> bool:
    """Whether the judge finds the policy met if nothing is refused before."""
    with monkeypatch.context() as patched:
        patched.setattr(module, "refuse_unattainable", lambda *_args, **_more: None)
        try:
            call()
        except sf.PolicyNotMet:
            return False
        return True


def refused_early(call: Callable[[], Any]) -> bool:
    """Whether the run is refused before anything is measured."""
    try:
        call()
    except sf.PolicyNotMet as refused:
        return refused.report is None
    return False


@pytest.mark.parametrize("method", method_names())
def test_groups_that_a_method_does_not_make_are_missed_before_it_runs(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call() -> sf.Release:
        return run(method, GROUPS)

    assert refused_early(call) is not judged_late(monkeypatch, call)


@pytest.mark.parametrize("method", method_names())
def test_a_control_group_is_missed_before_a_method_runs(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def call() -> sf.Release:
        return run(method, CONTROL)

    assert refused_early(call) is not judged_late(monkeypatch, call)
    assert not refused_early(lambda: run(method, CONTROL, holdout=0.3)) or method in TOLD


@pytest.mark.parametrize("limit", LIMITS)
def test_without_a_control_group_few_people_can_meet_no_limit(limit: str) -> None:
    allowed = sf.Policy("loose", limits={limit: 1.0})
    with pytest.raises(
        sf.PolicyNotMet, match=r"no control group to compare attacks with; add holdout=0\.3, or"
    ) as found:
        sf.sanitize(PEOPLE.slice(0, FEWEST_PEOPLE - 1), policy=allowed)
    assert found.value.verdict.outcome.value == "inconclusive"
    assert found.value.report is None
    with pytest.raises(OptionError, match="nothing to save"):
        found.value.save_owner("out")


def test_nothing_is_read_or_run_for_a_policy_that_cannot_be_met(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_args: Any, **_more: Any) -> None:
        raise AssertionError("the table was read")

    monkeypatch.setattr(module, "to_arrow", never)
    monkeypatch.setattr(memory, "run_in_memory", never)
    for told in (
        {"rare": "keep"},
        {"holdout": 0.3, "rare": "keep"},
        {"holdout": 0.3, "tails": "keep"},
        {"holdout": 0.3, "k": 5, "method": "condense"},
        {"holdout": 0.3, "k": 5, "leaf": 9, "method": "chain"},
        {"holdout": 0.3, "level": 7, "method": "condense"},
        {"holdout": 0.3, "method": "noise"},
    ):
        with pytest.raises(sf.PolicyNotMet, match='this run cannot meet policy "research"'):
            sf.sanitize(PEOPLE, policy="research", **told)
    with pytest.raises(OptionError, match="policy= needs the report; drop report=False or policy="):
        sf.sanitize(PEOPLE, policy="research", report=False)
    with pytest.raises(OptionError, match="there is no policy 'reserch'"):
        sf.sanitize(PEOPLE, policy="reserch")


@pytest.mark.parametrize(
    "told",
    [
        {"k": 10, "method": "condense"},
        {"k": 5, "method": "chain"},  # its leaves hold 50 people
        {"k": 2, "level": 10, "method": "condense"},
        {"k": 2, "level": "age > 0: 12, else: 2", "method": "condense"},  # how small groups get is known later
        {"method": "classwise"},
    ],
)
def test_a_run_whose_groups_may_be_large_enough_goes_on(told: dict[str, Any]) -> None:
    method, level = told["method"], told.get("level")
    parameters = {name: told[name] for name in ("k",) if name in told}
    planned = PlannedRun(control=True, mechanism=make_mechanism(method, parameters), level=level)
    refuse_unattainable(BUILT_IN["research"], planned)


def test_despite_the_policy_a_run_goes_on() -> None:
    refuse_unattainable(BUILT_IN["research"], PlannedRun(control=False), despite=True)


def test_the_limit_at_few_false_alarms_needs_as_many_people_as_the_judge_asks() -> None:
    policy = sf.Policy("few", limits={"membership-tpr": 1.0})
    refuse_unattainable(policy, PlannedRun(control=True, control_rows=LEAST_HELD_OUT))
    with pytest.raises(sf.PolicyNotMet, match="needs a control group of 1,000 people and at most 400 can be held out"):
        sf.sanitize(PEOPLE, policy=policy, holdout=0.5)


def test_transactions_make_no_groups_and_show_every_item() -> None:
    shop = sf.transactions(pa.table({"items": ["bread;milk", "bread", "milk;beer"] * 20}))
    with pytest.raises(sf.PolicyNotMet, match=r"no groups.*every item shows"):
        shop.randomize(policy="research", holdout=0.3)


def test_tune_refuses_a_policy_that_its_options_contradict_before_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.tuning import run as tuning

    monkeypatch.setattr(tuning, "to_arrow", lambda *_: pytest.fail("the table was read"))
    with pytest.raises(sf.PolicyNotMet, match=r"drop rare='keep'$"):
        sf.tune(PEOPLE, policy="research", rare="keep")
    with pytest.raises(OptionError, match="there is no metric"):
        sf.tune(PEOPLE, metric="nosuch")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"K": 10}, "sanitize has no argument 'K'; did you mean 'k'?"),
        ({"K": 10, "method": "classwise"}, "the method 'classwise' has no parameter 'K'; did you mean 'k'?"),
        ({"epsilon": 3.0}, "'epsilon' is a parameter of private, randomize; name the method with method="),
        ({"leef": 10}, "sanitize has no argument 'leef'; did you mean 'leaf'?"),
        ({"siez": 0.1, "method": "noise"}, "the method 'noise' has no parameter 'siez'; did you mean 'size'?"),
        ({"Policy": "research"}, "sanitize has no argument 'Policy'; did you mean 'policy'?"),
        ({"leaf": 20, "method": "noise"}, "the method 'noise' has no parameter 'leaf'; its parameters are kind, law"),
        ({"k": 1}, "k is 1, which is no protection; use k=2 or more, or add allow_level_1=True"),
    ],
)
def test_an_argument_of_a_wrong_name_is_answered_for_the_method_that_runs(told: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        sf.sanitize(PEOPLE, **told)
    assert str(refused.value).startswith(words)


def test_other_verbs_name_the_argument_that_was_meant() -> None:
    with pytest.raises(OptionError, match=r"tune has no argument 'targt'; did you mean 'target'\?"):
        sf.tune(PEOPLE, targt="ill")  # type: ignore[call-arg]
    with pytest.raises(OptionError, match=r"evaluate has no argument 'xyz'; help\(sfumato.evaluate\) lists them"):
        sf.evaluate(PEOPLE, PEOPLE, xyz=1)  # type: ignore[call-arg]
