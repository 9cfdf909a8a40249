"""Verdicts: every rule of a policy, at the ends of intervals."""

from __future__ import annotations

import dataclasses
import shlex

import numpy as np
import pytest

from sfumato.assess.findings import Direction, Family, Finding, Tries, difference_interval, exact_interval, not_run
from sfumato.assess.report import Report
from sfumato.core.facts import Fact, PassedThrough
from sfumato.core.groups.facts import Grouped
from sfumato.methods.randomize.facts import DomainsObserved
from sfumato.publish.judge import Ruling, Verdict, judge
from sfumato.publish.policy import BUILT_IN, Policy
from sfumato.stream.facts import EpochPublished, Maintained
from sfumato.tables.facts import TailsCoded
from tests.examples import sized
from tests.publish.cases import (
    AREAS,
    GROUPED,
    NOISED,
    RATES,
    TPR,
    TRIES,
    WITH_CATEGORIES,
    area,
    idle,
    limited,
    rate,
    report,
)

LIMIT_OF = dict.fromkeys(RATES[:5], "linkage-excess")
LIMIT_OF |= dict.fromkeys(RATES[5:8], "attribute-excess")
LIMIT_OF |= dict.fromkeys(RATES[8:], "singling-out-excess")
MEETS, DOES_NOT_MEET, INCONCLUSIVE = Ruling.MEETS, Ruling.DOES_NOT_MEET, Ruling.INCONCLUSIVE


def needed(verdict: Verdict) -> list[str]:
    return [each.limit for each in verdict.missing if each.needed]


def test_a_harmless_release_meets_research() -> None:
    verdict = judge(report(), BUILT_IN["research"], GROUPED)
    assert verdict == Verdict("research", MEETS)
    assert [each.limit for each in verdict.limits] == list(BUILT_IN["research"].limits)
    assert {each.outcome for each in verdict.limits} == {MEETS}
    assert verdict.why.startswith("All 5 measured limits are met: the upper end of each confidence interval")
    assert dataclasses.replace(verdict, limits=()).to_json() == {
        "policy": "research",
        "edited": False,
        "asked": True,
        "by": "measurement",
        "outcome": "meets",
        "exceeded": [],
        "missing": [],
        "limits": [],
        "try": [],
        "tried": None,
        "changes": [],
    }


@pytest.mark.parametrize("name", RATES)
def test_a_gain_that_is_surely_above_its_limit_does_not_meet_it(name: str) -> None:
    verdict = judge(report(rate(name, 0.3, 0.1)), BUILT_IN["research"], GROUPED)
    assert verdict.outcome is DOES_NOT_MEET
    (exceeded,) = verdict.exceeded
    assert (exceeded.limit, exceeded.finding, exceeded.allowed) == (LIMIT_OF[name], name, 0.05)
    if name.startswith("singling-out"):
        assert exceeded.value == pytest.approx(0.2)  # of one kind by itself
    assert exceeded.interval is not None
    assert 0.05 < exceeded.interval[0] < 0.2 < exceeded.interval[1]


@pytest.mark.parametrize("name", [name for name in RATES if not name.startswith("singling-out")])
def test_a_gain_whose_interval_holds_its_limit_cannot_be_told(name: str) -> None:
    verdict = judge(report(rate(name, 0.14, 0.1)), BUILT_IN["research"], GROUPED)
    assert verdict.outcome is INCONCLUSIVE
    assert verdict.exceeded == ()
    (missing,) = verdict.missing
    assert (missing.limit, missing.finding, missing.needed) == (LIMIT_OF[name], name, True)


@pytest.mark.parametrize("name", RATES[:8])
def test_the_limit_is_compared_with_the_ends_of_intervals_that_hold_together(name: str) -> None:
    limit, finding = LIMIT_OF[name], rate(name, 0.14, 0.1)
    count = sum(LIMIT_OF[each] == limit for each in RATES)
    assert finding.inside is not None
    assert finding.outside is not None
    low, high = difference_interval(finding.inside, finding.outside, 1 - 0.05 / count)
    for allowed, outcome in (
        (high + 1e-9, MEETS),
        (high - 1e-9, INCONCLUSIVE),
        (low + 1e-9, INCONCLUSIVE),
        (low - 1e-9, DOES_NOT_MEET),
    ):
        assert judge(report(finding), Policy("ours", {limit: allowed})).outcome is outcome


@pytest.mark.parametrize(("name", "limit"), [*((name, "membership-auc") for name in AREAS), (TPR, "membership-tpr")])
def test_membership_is_judged_by_its_score_and_not_by_a_gain(name: str, limit: str) -> None:
    finding = rate(TPR, 0.03, 0.03) if name == TPR else area(name, 0.55)
    assert finding.inside is not None
    count = 1 if name == TPR else len(AREAS)
    low, high = exact_interval(finding.inside.hits, TRIES, 1 - 0.05 / count)
    for allowed, outcome in (
        (high + 1e-9, MEETS),
        (high - 1e-9, INCONCLUSIVE),
        (low + 1e-9, INCONCLUSIVE),
        (low - 1e-9, DOES_NOT_MEET),
    ):
        verdict = judge(report(finding), Policy("ours", {limit: allowed}))
        assert verdict.outcome is outcome
        assert all(each.finding == name and each.value == pytest.approx(finding.value) for each in verdict.exceeded)


def test_of_several_attacks_that_exceed_a_limit_the_largest_is_named() -> None:
    verdict = judge(
        report(rate("linkage-rank", 0.5, 0.1), rate("linkability", 0.6, 0.1)), BUILT_IN["research"], GROUPED
    )
    (exceeded,) = verdict.exceeded
    assert exceeded.finding == "linkability"
    assert exceeded.value == pytest.approx(0.5)


def test_the_worst_is_named_first_by_how_many_times_what_is_allowed_it_is() -> None:
    found = [rate("linkage-rank", 0.3, 0.1), rate(RATES[5], 0.6, 0.1), area(AREAS[0], 0.8)]
    verdict = judge(report(*found), BUILT_IN["research"], GROUPED)
    assert [each.limit for each in verdict.exceeded] == ["attribute-excess", "linkage-excess", "membership-auc"]
    beside_a_coin = judge(report(*found), limited(linkage_excess=0.1, membership_auc=0.55), GROUPED)
    assert [each.limit for each in beside_a_coin.exceeded] == ["membership-auc", "linkage-excess"]


def test_what_is_needed_stands_before_what_was_left_out() -> None:
    verdict = judge(report(rate("linkability", 0.14, 0.1), held_out=999), BUILT_IN["research"], GROUPED)
    assert [each.limit for each in verdict.missing] == ["linkage-excess", "membership-tpr"]
    assert verdict.hint == "A larger hold-out set or more attacked records would narrow the interval."


def test_where_nobody_asked_nothing_is_refused_and_no_command_would_refuse() -> None:
    leaking = report(rate("linkability", 0.6, 0.1))
    verdict = judge(leaking, BUILT_IN["research"], GROUPED, asked=False)
    assert verdict.outcome is DOES_NOT_MEET
    assert not verdict.refuses
    assert verdict.to_try
    assert not any("--policy" in line for line in verdict.to_try)


def test_more_attacks_make_every_interval_wider() -> None:
    finding = rate("linkage-rank", 0.14, 0.1)
    assert finding.inside is not None
    assert finding.outside is not None
    few = difference_interval(finding.inside, finding.outside, 1 - 0.05 / 5)[1]
    assert judge(report(finding), limited(linkage_excess=few)).outcome is MEETS
    assert judge(report(finding), limited(linkage_excess=few, attribute_excess=1.0)).outcome is INCONCLUSIVE


# --------------------------------------------------------------------------------------------------- what did not run


def test_without_people_held_out_the_requirement_is_not_met_and_no_gain_is_told() -> None:
    findings = [dataclasses.replace(rate(name, 0.1), baseline_interval=(0.05, 0.15)) for name in RATES]
    areas = [idle(name, "no rows were held out") for name in (*AREAS, TPR)]
    verdict = judge(report(*findings, *areas, held_out=0), BUILT_IN["research"], GROUPED)
    assert verdict.outcome is DOES_NOT_MEET
    (exceeded,) = verdict.exceeded
    assert (exceeded.limit, exceeded.finding, exceeded.value, exceeded.allowed) == ("control", None, False, True)
    assert needed(verdict) == [
        "linkage-excess",
        "attribute-excess",
        "singling-out-excess",
        "membership-auc",
    ]  # once each
    assert all(each.finding is None for each in verdict.missing)
    allowed = dataclasses.replace(BUILT_IN["research"], require={"control": False})
    assert judge(report(*findings, *areas, held_out=0), allowed, GROUPED).outcome is INCONCLUSIVE


def test_links_to_ones_own_row_are_judged_beside_guessing_also_without_people_held_out() -> None:
    own = [rate(f"own-row-linkage-{way}", 0.02, guess=0.001) for way in ("euclid", "mahalanobis", "rank")]
    others = [idle(name, "own rows are counted", applies=False) for name in RATES[:3]]
    policy = limited(linkage_excess=0.05)
    assert judge(report(*own, *others), policy, NOISED).outcome is MEETS
    verdict = judge(report(*own[:2], rate("own-row-linkage-rank", 0.9), *others), policy, NOISED)
    (exceeded,) = verdict.exceeded
    assert exceeded.finding == "own-row-linkage-rank"
    assert exceeded.value == pytest.approx(0.9 - 0.001)
    assert exceeded.interval is not None
    assert exceeded.interval[1] < 1.0


@pytest.mark.parametrize("name", [*RATES[:5], *RATES[8:], *AREAS, TPR])
def test_a_needed_attack_that_did_not_run_leaves_it_open(name: str) -> None:
    verdict = judge(report(idle(name)), BUILT_IN["research"], GROUPED)
    assert verdict.outcome is INCONCLUSIVE
    (missing,) = verdict.missing
    assert missing.finding == name
    assert missing.reason == "the attack was not run (it failed)"


def test_attribute_inference_that_did_not_run_has_no_columns_and_leaves_it_open() -> None:
    idle_ = [idle(f"attribute-inference-{profile}") for profile in ("few-columns", "half-columns", "all-columns")]
    verdict = judge(report(*idle_, without=RATES[5:8]), BUILT_IN["research"], GROUPED)
    assert verdict.outcome is INCONCLUSIVE
    assert set(needed(verdict)) == {"attribute-excess"}


def test_attribute_inference_of_all_columns_together_is_not_judged() -> None:
    assert (
        judge(report(rate("attribute-inference-half-columns", 0.9, 0.1)), BUILT_IN["research"], GROUPED).outcome
        is MEETS
    )


def test_an_attack_that_has_nothing_to_attack_is_not_needed_unless_no_other_is_left() -> None:
    nothing = [idle(name, "the table has no column of categories", applies=False) for name in RATES[8:]]
    assert judge(report(nothing[2]), BUILT_IN["research"], GROUPED).outcome is MEETS
    verdict = judge(report(*nothing), BUILT_IN["research"], GROUPED)
    assert verdict.outcome is INCONCLUSIVE
    assert needed(verdict) == ["singling-out-excess"]


def test_people_held_out_who_could_not_be_attacked_leave_it_open() -> None:
    verdict = judge(report(rate("outlier-inference", 0.1)), BUILT_IN["research"], GROUPED)
    assert verdict.outcome is INCONCLUSIVE
    assert verdict.missing[0].reason == "no held-out record could be attacked"


def test_a_finding_that_does_not_say_how_many_were_tried_leaves_it_open() -> None:
    old = dataclasses.replace(rate("linkability", 0.1, 0.1), inside=None)
    assert judge(report(old), BUILT_IN["research"], GROUPED).outcome is INCONCLUSIVE


# ------------------------------------------------------------------------------------------------ at 1 % false alarms


@pytest.mark.parametrize(("held_out", "outcome"), [(999, MEETS), (1_000, DOES_NOT_MEET)])
def test_accusations_at_one_percent_are_judged_from_a_thousand_people_held_out(held_out: int, outcome: Ruling) -> None:
    verdict = judge(report(rate(TPR, 0.2, 0.01), held_out=held_out), BUILT_IN["research"], GROUPED)
    assert verdict.outcome is outcome
    if held_out < 1_000:
        (missing,) = verdict.missing
        assert (missing.limit, missing.needed) == ("membership-tpr", False)
        assert "1,000" in missing.reason
        assert "999" in missing.reason


def test_a_policy_of_nothing_else_cannot_be_told_with_fewer() -> None:
    assert judge(report(held_out=999), limited(membership_tpr=0.5)).outcome is INCONCLUSIVE
    assert judge(report(held_out=1_000), limited(membership_tpr=0.5)).outcome is MEETS


# ------------------------------------------------------------------------------------------------------- singling out


def test_few_descriptions_of_one_kind_are_judged_with_those_of_the_other() -> None:
    few = rate("singling-out-univariate", 0.0, 0.0, tries=12)
    assert judge(report(few), BUILT_IN["research"], GROUPED).outcome is MEETS
    verdict = judge(report(few, idle(RATES[9], "none", applies=False)), BUILT_IN["research"], GROUPED)
    assert verdict.outcome is INCONCLUSIVE


def test_few_descriptions_that_all_succeed_exceed_the_limit_alone() -> None:
    verdict = judge(report(rate("singling-out-univariate", 1.0, 0.0, tries=12)), BUILT_IN["research"], GROUPED)
    (exceeded,) = verdict.exceeded
    assert (exceeded.finding, exceeded.value) == ("singling-out-univariate", 1.0)


def test_descriptions_of_both_kinds_together_may_leave_it_open_and_the_larger_is_named() -> None:
    kinds = [rate(RATES[8], 0.15, 0.1), rate(RATES[9], 0.13, 0.1)]
    verdict = judge(report(*kinds), limited(singling_out_excess=0.04))
    assert verdict.outcome is INCONCLUSIVE
    assert verdict.missing[0].finding == RATES[8]


def test_a_control_on_a_part_of_the_seats_is_counted_up() -> None:
    part = [
        dataclasses.replace(rate(name, 0.1, 0.05), outside=Tries(0.05 * TRIES, TRIES, times=2.0))
        for name in RATES[8:10]
    ]
    assert judge(report(*part), BUILT_IN["research"], GROUPED).outcome is MEETS
    assert judge(report(*(rate(name, 0.3, 0.05) for name in RATES[8:10])), limited(singling_out_excess=0.1)).exceeded


# ----------------------------------------------------------------------------------------------------- extreme values


def test_an_extreme_person_who_shows_exceeds_the_limit_of_singling_out() -> None:
    extreme = rate("extreme-values-disclosed", 1.0, 0.0, tries=24)
    verdict = judge(report(extreme), BUILT_IN["research"], GROUPED)
    (exceeded,) = verdict.exceeded
    assert (exceeded.limit, exceeded.finding, exceeded.value) == (
        "singling-out-excess",
        "extreme-values-disclosed",
        1.0,
    )
    assert "Excess singling out by extreme values 100\u00a0% (95\u00a0% CI" in verdict.reasons[0]
    assert verdict.reasons[0].endswith("; limit 5\u00a0%")


@pytest.mark.parametrize(
    "finding",
    [
        rate("extreme-values-disclosed", 0.0, 0.0, tries=24),
        rate("extreme-values-disclosed", 0.25, 0.0, tries=24),
        idle("extreme-values-disclosed", "the method cannot be run again on this table"),
    ],
    ids=["nothing", "too few to tell", "not run"],
)
def test_extreme_values_never_leave_a_verdict_open(finding: Finding) -> None:
    assert judge(report(finding), BUILT_IN["research"], GROUPED).outcome is MEETS


def test_extreme_values_alone_do_not_meet_the_limit_of_singling_out() -> None:
    nothing = [idle(name, "the table has nothing to single out", applies=False) for name in RATES[8:]]
    verdict = judge(
        report(*nothing, rate("extreme-values-disclosed", 0.0, 0.0, tries=24)), BUILT_IN["research"], GROUPED
    )
    assert verdict.outcome is INCONCLUSIVE
    assert needed(verdict) == ["singling-out-excess"]


# ------------------------------------------------------------------------------------------------------- requirements


@pytest.mark.parametrize(("asked", "outcome"), [(10, MEETS), (11, DOES_NOT_MEET)])
def test_the_smallest_group_has_as_many_as_is_asked(asked: int, outcome: Ruling) -> None:
    verdict = judge(report(), Policy("ours", require={"min_group_size": asked}), GROUPED)
    assert verdict.outcome is outcome
    if outcome is DOES_NOT_MEET:
        assert (verdict.exceeded[0].limit, verdict.exceeded[0].value, verdict.exceeded[0].allowed) == (
            "min_group_size",
            10,
            11,
        )


def test_groups_that_a_stream_kept_up_count_too() -> None:
    kept: tuple[Fact, ...] = (
        Maintained("AY05 dynamic maintenance, started by MDAV", "strict", 5, 9, 3, 7, 0, 0, 0, 1, 6),
        EpochPublished(1, 9, 0, 90, 5),
    )
    assert judge(report(), Policy("ours", require={"min_group_size": 7}), kept).outcome is MEETS
    assert judge(report(), Policy("ours", require={"min_group_size": 8}), kept).outcome is DOES_NOT_MEET


def test_noise_has_no_groups_and_does_not_meet_a_size_of_groups() -> None:
    verdict = judge(report(), Policy("ours", require={"min_group_size": 1}), NOISED)
    assert verdict.outcome is DOES_NOT_MEET
    assert (verdict.exceeded[0].limit, verdict.exceeded[0].value) == ("min_group_size", None)


@pytest.mark.parametrize(
    ("facts", "hidden"),
    [
        (GROUPED, True),
        (WITH_CATEGORIES, False),
        (NOISED, True),
        ((*NOISED, PassedThrough(1, 0)), False),
        ((*NOISED, PassedThrough(0, 1)), True),
        ((*NOISED, DomainsObserved(("town",))), False),
    ],
)
def test_rare_categories_are_hidden_where_no_category_leaves_as_it_is(facts: tuple[Fact, ...], hidden: bool) -> None:
    verdict = judge(report(), Policy("ours", require={"rare": "hidden"}), facts)
    assert verdict.outcome is (MEETS if hidden else DOES_NOT_MEET)
    if not hidden:
        assert (verdict.exceeded[0].value, verdict.exceeded[0].allowed) == ("shown", "hidden")


EXTREMES = "extreme-values-disclosed"


@pytest.mark.parametrize(
    ("facts", "hidden"),
    [
        ((*GROUPED, TailsCoded("code", 10, 2)), True),
        ((*GROUPED, TailsCoded("smooth", 10, 2)), True),
        ((*GROUPED, TailsCoded("code", 9, 2)), False),
        ((*GROUPED, TailsCoded("keep", 10, 2)), False),
        (GROUPED, True),  # there is neither a number nor a date
        (NOISED, False),
    ],
)
def test_tails_are_hidden_if_they_were_coded_to_cut_offs_of_enough_people(
    facts: tuple[Fact, ...], hidden: bool
) -> None:
    verdict = judge(report(), Policy("ours", require={"tails": "hidden"}), facts)
    assert verdict.outcome is (MEETS if hidden else DOES_NOT_MEET)
    if not hidden:
        assert (verdict.exceeded[0].value, verdict.exceeded[0].allowed) == ("shown", "hidden")


def test_a_table_without_numbers_has_no_tails() -> None:
    name, family, way = EXTREMES, Family.ATTACK, Direction.LOWER
    idle = not_run(name, family, way, "How often.", "there are no numbers", applies=False)
    assert judge(report(idle), Policy("ours", require={"tails": "hidden"}), NOISED).outcome is MEETS


def test_cut_offs_of_as_many_people_as_a_group_must_have_are_enough() -> None:
    policy = Policy("ours", require={"tails": "hidden", "min_group_size": 5})
    verdict = judge(report(), policy, (*GROUPED, TailsCoded("code", 5, 2)))
    assert "tails" not in {each.limit for each in verdict.exceeded}


def rarest(fewest: float | None, *, applies: bool = True) -> Finding:
    name, family, way = "rarest-category", Family.PRIVACY, Direction.HIGHER
    if fewest is None:
        return not_run(name, family, way, "How many.", "there are no categories", applies=applies)
    return Finding(name, family, fewest, way, (1.0, None), "How many.")


@pytest.mark.parametrize("facts", [WITH_CATEGORIES, ()], ids=["certified", "of unknown make"])
@pytest.mark.parametrize(
    ("finding", "asked", "outcome"),
    [
        (rarest(10), None, MEETS),
        (rarest(9), None, DOES_NOT_MEET),
        (rarest(9), 9, MEETS),
        (rarest(20), 21, DOES_NOT_MEET),
        (rarest(None, applies=False), None, MEETS),
    ],
)
def test_categories_are_not_rare_that_as_many_hold_as_a_group_must_have(
    finding: Finding, asked: int | None, outcome: Ruling, facts: tuple[Fact, ...]
) -> None:
    sized = {} if asked is None else {"min_group_size": asked}
    made = (*(fact for fact in facts if not isinstance(fact, Grouped)), Grouped("M", 99, 1, 99, 0, 0, 0, 0))
    verdict = judge(report(finding), Policy("ours", require={"rare": "hidden", **sized}), made if facts else ())
    if facts or asked is None:
        assert verdict.outcome is outcome
    else:
        assert needed(verdict) == ["min_group_size"]
    if outcome is DOES_NOT_MEET:
        assert verdict.exceeded[0].finding == "rarest-category"


def test_categories_drawn_by_chance_from_declared_ones_are_hidden_whatever_was_counted() -> None:
    assert judge(report(rarest(1)), Policy("ours", require={"rare": "hidden"}), NOISED).outcome is MEETS


def test_categories_that_could_not_be_counted_are_told_by_what_was_done() -> None:
    failed = rarest(None)
    assert judge(report(failed), Policy("ours", require={"rare": "hidden"}), WITH_CATEGORIES).exceeded
    assert judge(report(failed), Policy("ours", require={"rare": "hidden"})).outcome is INCONCLUSIVE


def test_of_a_table_of_unknown_make_groups_and_rare_categories_cannot_be_told() -> None:
    verdict = judge(report(), BUILT_IN["research"])
    assert verdict.outcome is INCONCLUSIVE
    assert needed(verdict) == ["min_group_size", "rare", "tails"]


# -------------------------------------------------------------------------------------------------------- what to try


UNCOMPARED = tuple(rate(name, 0.1) for name in RATES)
RUN = ("sfumato", "sanitize", "my people.csv", "-o", "out", "--k", "5", "--policy", "research")


def test_people_are_held_out_first() -> None:
    (line,) = judge(report(held_out=0), BUILT_IN["research"], GROUPED, command=RUN).to_try
    assert shlex.split(line) == [*RUN, "--holdout", "0.3", "--overwrite"]


def test_larger_groups_are_tried_where_attacks_gain() -> None:
    leaking = report(rate("linkability", 0.6, 0.1))
    lines = judge(leaking, BUILT_IN["research"], GROUPED, command=(*RUN, "--overwrite")).to_try
    assert [shlex.split(line)[-2:] for line in lines] == [["--leaf", "100"], ["--k", "40"], ["--k", "100"]]
    assert all(line.count("--overwrite") == 1 and "--k 5" not in line for line in lines)
    assert (
        judge(dataclasses.replace(leaking, rows_original=60), BUILT_IN["research"], GROUPED, command=RUN).to_try == ()
    )


def test_groups_as_large_as_is_asked_are_tried() -> None:
    lines = judge(report(), Policy("ours", require={"min_group_size": 20}), GROUPED, command=RUN).to_try
    assert [shlex.split(line) for line in lines] == [[*RUN[:5], *RUN[7:], "--k", "20", "--overwrite"]]


def test_a_method_with_groups_is_tried_in_place_of_noise_without_its_options() -> None:
    run = (*RUN[:5], "--method", "noise", "--size", "0.5", "--correlated", "--policy", "research", "--target", "sex")
    (line,) = judge(report(), BUILT_IN["research"], NOISED, command=run).to_try
    assert line == (
        "sfumato sanitize 'my people.csv' -o out --policy research --target sex "
        "--method chain --k 10 --leaf 100 --overwrite"
    )


def test_more_people_are_held_out_where_nothing_can_be_told() -> None:
    unsure = report(rate("linkability", 0.14, 0.1))
    run = (*RUN, "--holdout", "0.1", "--time-limit", "10")
    lines = judge(unsure, BUILT_IN["research"], GROUPED, command=run).to_try
    assert [shlex.split(line) for line in lines] == [
        [*RUN, "--time-limit", "10", "--holdout", "0.5", "--overwrite"],
        [*RUN, "--holdout", "0.1", "--overwrite"],
        [*RUN[:5], *RUN[7:], "--holdout", "0.1", "--time-limit", "10", "--k", "40", "--overwrite"],
    ]


def test_a_table_that_was_only_measured_is_made_anew() -> None:
    run = ("sfumato", "evaluate", "people.csv", "released.csv", "--policy", "research")
    (line,) = judge(report(*UNCOMPARED, held_out=0), limited(linkage_excess=0.1), command=run).to_try
    assert line == "sfumato evaluate people.csv released.csv --policy research --holdout FILE"
    lines = judge(report(rate("linkability", 0.6, 0.1)), BUILT_IN["research"], GROUPED, command=run).to_try
    assert lines[0] == (
        "sfumato sanitize people.csv -o FOLDER --policy research --holdout 0.3 "
        "--method chain --k 10 --leaf 100 --overwrite"
    )


def test_without_a_command_the_words_stand_for_what_is_not_known() -> None:
    assert (
        judge(report(held_out=0), BUILT_IN["public"], GROUPED)
        .to_try[0]
        .startswith("sfumato sanitize INPUT -o FOLDER --policy public")
    )
    assert "--policy FILE" in judge(report(*UNCOMPARED, held_out=0), limited(linkage_excess=0.1), GROUPED).to_try[0]


# --------------------------------------------------------------------------------------------- how often it is wrong


@pytest.mark.parametrize("tries", [40, 400, 4_000])
def test_all_intervals_of_a_verdict_hold_together_95_times_in_a_hundred(tries: int) -> None:
    """Simulated binomials: 5 % may be wrong; of 500 verdicts 52, of 2,000 150 would be by chance once in 10^6."""
    rng = np.random.default_rng(tries)
    turns, most = sized((500, 52), (2_000, 150))
    wrong = 0
    outside = rng.choice([0.002, 0.05, 0.3, 0.7], size=len(RATES))
    gain = rng.uniform(0.0, 0.25, size=len(RATES))
    confidence = 1 - 0.05 / len(RATES)
    hits = rng.binomial(tries, outside + gain, size=(turns, len(RATES)))
    controls = rng.binomial(tries, outside, size=(turns, len(RATES)))
    for turn in range(turns):
        missed = False
        for place, true in enumerate(gain):
            ends = (Tries(hits[turn, place], tries), Tries(controls[turn, place], tries))
            low, high = difference_interval(*ends, confidence)
            missed |= not low <= true <= high
        wrong += missed
    assert wrong <= most


def test_a_gain_at_its_limit_is_rarely_called_met_or_not() -> None:
    """The true gain is the limit: either word is wrong. Of 400 verdicts 20 may be, and 45 once in 10^6 by chance."""
    rng = np.random.default_rng(11)
    wrong = 0
    for _ in range(400):
        findings = [
            rate(name, rng.binomial(TRIES, 0.35) / TRIES, rng.binomial(TRIES, 0.3) / TRIES) for name in RATES[:5]
        ]
        made = Report(tuple(findings), (), 10_000, 10_000, rows_held_out=TRIES)
        wrong += judge(made, limited(linkage_excess=0.05)).outcome is not INCONCLUSIVE
    assert wrong <= 45
