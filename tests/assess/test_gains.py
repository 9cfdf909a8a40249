"""Which attacks are called a success: limits of both sides, as many comparisons as there are attacks, what leads."""

from __future__ import annotations

import dataclasses
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from sfumato.assess.findings import FALSE_ALARMS, Direction, Family, Finding, column_gains, gains, is_rate, not_run
from sfumato.assess.plain import risk_aside, risk_sentence
from sfumato.assess.report import Report
from tests.assess.made_up import attack


def is_certain(*findings: Finding) -> bool:
    return gains(findings)[0].certain


def limits(finding: Finding) -> tuple[float, float]:
    """How far value and control may be off towards each other."""
    assert finding.value is not None
    assert finding.interval is not None
    assert finding.control is not None
    assert finding.control_interval is not None
    return finding.value - finding.interval[0], finding.control_interval[1] - finding.control


def beside_nobody(finding: Finding) -> Finding:
    """Compare the same, with an independent release instead of the control group."""
    baseline, interval = finding.control, finding.control_interval
    return dataclasses.replace(
        finding, baseline=baseline, baseline_interval=interval, control=None, control_interval=None
    )


@pytest.mark.parametrize("side", [0, 1], ids=["value", "control"])
def test_chance_on_either_side_may_explain_a_gain(side: int) -> None:
    """An excess beyond the wider limits of one side alone, and not beyond those of both, is no success."""
    beside = attack("linkage-rank", 240, 200, 0.001)
    width = NormalDist().inv_cdf(1 - FALSE_ALARMS) / NormalDist().inv_cdf(0.975)
    alone, both = width * limits(beside)[side], width * float(np.hypot(*limits(beside)))
    assert beside.value is not None
    between = (alone + both) / 2
    assert alone < between < both
    shifted = dataclasses.replace(beside, control=beside.value - between)
    reach = limits(beside)[1]
    shifted = dataclasses.replace(shifted, control_interval=(0.0, beside.value - between + reach))
    assert not is_certain(shifted)
    kept = {"control_interval": None} if side == 0 else {"interval": None}
    assert is_certain(dataclasses.replace(shifted, **kept))  # type: ignore[arg-type]
    assert gains([shifted])[0].excess == pytest.approx(between)


def test_chance_in_a_baseline_that_was_measured_counts_twice_for_other_rows_were_drawn() -> None:
    """What both sides may be off is taken with half its square among the control group, who meet the same rows."""
    width = NormalDist().inv_cdf(1 - FALSE_ALARMS) / NormalDist().inv_cdf(0.975)
    held = attack("linkage-rank", 300, 200, 0.001)
    reach = width * float(np.hypot(*limits(held)))
    assert held.value is not None
    cases = ((0.99, False, False), (1.01, True, False), (1.41, True, False), (1.42, True, True))
    for excess, controlled, measured in cases:
        control = held.value - excess * reach
        near = dataclasses.replace(held, control=control, control_interval=(0.0, control + limits(held)[1]))
        assert is_certain(near) is controlled
        assert is_certain(beside_nobody(near)) is measured
    guessed = dataclasses.replace(held, baseline=0.1, control=None, control_interval=None)
    assert is_certain(guessed)


def test_the_more_attacks_are_tried_the_more_one_must_gain() -> None:
    one = attack("linkage-rank", 276, 200, 0.001)
    assert is_certain(one)
    others = [attack(f"linkage-{place}", 100, 100, 0.001) for place in range(30)]
    assert not is_certain(one, *others)


@pytest.mark.parametrize("controlled", [True, False], ids=["control", "baseline"])
@pytest.mark.parametrize("attempts", [50, 400, 2000])
def test_a_table_that_knows_nobody_is_accused_in_one_report_of_a_thousand_at_most(
    attempts: int, controlled: bool
) -> None:
    """Sixteen attacks with the same chance on either side, 400 reports: beyond 8 alarms with chance below 1e-6."""
    rng = np.random.default_rng(attempts)
    alarms = 0
    for _ in range(400):
        chance = rng.uniform(0.02, 0.98, size=16)
        hits, held = rng.binomial(attempts, chance), rng.binomial(attempts, chance)
        findings = [attack(f"a{place}", int(hits[place]), int(held[place]), 0.0, attempts) for place in range(16)]
        findings = findings if controlled else [beside_nobody(one) for one in findings]
        alarms += any(gain.certain for gain in gains(findings))
    assert alarms <= 8


@pytest.mark.parametrize("name", ["group-linkage-likelihood", "expected-reidentification", "membership-original-trees"])
def test_finding_the_group_or_having_the_trees_does_not_lead(name: str) -> None:
    findings = (attack(name, 1994, None, 0.01), attack("linkage-rank", 400, 200, 0.001))
    said = (
        "1 attack (of 1) succeeds significantly more often on members than on the control group. Largest excess: record"
    )
    assert risk_sentence(findings).startswith(said)
    assert risk_sentence(findings).endswith(": 20\u00a0% on members, 10\u00a0% on the control group.")
    assert [gain.finding.name for gain in gains(findings)] == ["linkage-rank", name]
    assert said in Report(findings, (), 5, 5).summary()


def test_finding_the_group_alone_is_no_success_of_an_attack() -> None:
    findings = (attack("group-linkage-likelihood", 1994, None, 0.01), attack("linkage-rank", 200, 200, 0.001))
    assert risk_sentence(findings).startswith("No attack (of 1) succeeds significantly more often on members")
    assert risk_sentence(findings[:1]) == "No attack on single people was run."


def test_what_a_gain_stands_against_is_said() -> None:
    held = attack("linkage-rank", 400, 200, 0.001)
    assert risk_sentence([held]).endswith(", 10\u00a0% on the control group.")
    alone = dataclasses.replace(held, control=None, control_interval=None)
    assert risk_sentence([alone]).endswith(", 0.1\u00a0% by guessing.")
    nobody = dataclasses.replace(alone, baseline=0.1, baseline_interval=(0.09, 0.11))
    assert risk_sentence([nobody]).endswith(", 10\u00a0% on unrelated data.")


def test_an_attack_on_a_scale_from_0_to_1_is_a_rate() -> None:
    rate = attack("linkage-rank", 400, 200, 0.001)
    assert is_rate(rate)
    assert is_rate(dataclasses.replace(rate, range=(0.5, 1.0)))


@pytest.mark.parametrize(
    "other",
    [
        {"range": (-0.5, 1.0)},
        {"range": (0.0, 1.5)},
        {"range": (None, 1.0)},
        {"range": (0.0, None)},
        {"value": None},
        {"family": Family.UTILITY},
        {"direction": Direction.HIGHER},
    ],
    ids=str,
)
def test_a_finding_on_another_scale_or_not_run_is_no_rate_and_gains_nothing(other: dict[str, Any]) -> None:
    finding = dataclasses.replace(attack("linkage-rank", 400, 200, 0.001), **other)
    assert not is_rate(finding)
    assert gains([finding]) == ()


def test_findings_of_single_columns_are_no_attacks_of_their_own() -> None:
    one = attack("linkage-rank", 276, 200, 0.001)
    columns = [attack(f"linkage-rank/{place}", 900, 100, 0.001) for place in range(30)]
    assert [gain.finding for gain in gains([*columns, one])] == [one]
    assert is_certain(*columns, one)


def test_the_attack_leads_that_gains_most_on_people_held_out_or_else_on_a_guess() -> None:
    findings = [
        attack("unlucky", 0, 400, 0.0),  # the worse on people of the table
        attack("easy", 1800, 1700, 0.0),
        attack("guessed", 1000, None, 0.25),
        attack("rare", 600, 0, 0.2),
    ]
    ranked = gains(findings)
    assert [gain.finding.name for gain in ranked] == ["rare", "guessed", "easy", "unlucky"]
    assert [gain.excess for gain in ranked] == pytest.approx([0.3, 0.25, 0.05, -0.2])


def test_an_attack_with_nothing_to_stand_against_has_no_gain() -> None:
    alone = dataclasses.replace(attack("linkage-rank", 400, None, 0.001), baseline=None)
    assert gains([alone]) == ()


def test_an_exact_count_that_equals_its_control_is_no_success() -> None:
    equal = dataclasses.replace(attack("linkage-rank", 200, 200, 0.001), interval=None, control_interval=None)
    assert not is_certain(equal)


def test_only_attacks_on_single_columns_are_ranked_by_column() -> None:
    whole, column = attack("linkage-rank", 300, 200, 0.001), attack("attribute-inference/pay", 250, 200, 0.001)
    width = dataclasses.replace(column, name="interval-width/pay", range=(0.0, None))
    assert [gain.finding for gain in column_gains([whole, column, width])] == [column]


def test_what_could_not_be_measured_may_be_shown_and_applies_unless_told() -> None:
    told = not_run("linkage-rank", Family.ATTACK, Direction.LOWER, "Meaning.", "no rows were held out")
    assert (told.value, told.public, told.applies, told.status) == (None, True, True, "not-run")
    hidden = not_run("linkage-rank", Family.ATTACK, Direction.LOWER, "Meaning.", "none", public=False, applies=False)
    assert (hidden.public, hidden.applies) == (False, False)


def test_a_finding_is_written_with_its_status_and_numbers_that_are_not_finite_as_null() -> None:
    finding = dataclasses.replace(attack("linkage-rank", 300, 200, 0.001), interval=(float("nan"), 0.5))
    document = finding.to_json()
    assert document["value"] == finding.value
    assert document["interval"] == [None, 0.5]
    assert document["status"] == "measured"
    assert dataclasses.replace(finding, value=float("inf")).to_json()["value"] is None


def test_attacks_on_shadow_releases_stand_before_those_without_a_control_group() -> None:
    audited, alone = attack("shadow-auc-distance", 200, 200, 0.001), attack("linkage-rank", 1200, 400, 0.001)
    findings = [beside_nobody(alone), audited]
    said = risk_sentence(findings)
    assert said.startswith(
        "No attack (of 1 on shadow releases) succeeds significantly more often on members than on the"
    )
    assert said.endswith(
        "Without a control group 1 attack exceeds its baseline: record linkage, 40\u00a0% (95\u00a0% CI "
        "37\u201343\u00a0%): 60\u00a0% on members, 20\u00a0% on unrelated data."
    )
    assert risk_aside(findings).startswith("Membership inference")
