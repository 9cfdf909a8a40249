"""A policy without a hold-out set is decided on shadow releases; the release is made from all people."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.assess.audit.intervals import Estimate
from sfumato.assess.verdict import Ruling, UndecidedLimit, Verdict
from sfumato.core.errors import OptionError
from sfumato.publish.judge import limit_checks
from sfumato.publish.policy import BUILT_IN
from sfumato.publish.shadows import out_of_reach, shadows_needed

LOOSE = sf.Policy("loose", limits={"linkage-excess": 0.3, "membership-auc": 0.8}, require={"control": True})


def people(rows: int) -> pa.Table:
    rng = np.random.default_rng(3)
    level = rng.normal(size=rows)
    return pa.table(
        {
            "age": (50 + 9 * level + 5 * rng.normal(size=rows)).round().astype(int),
            "pay": np.exp(7 + level + rng.normal(size=rows)).round(),
            "ill": np.where(level + rng.normal(size=rows) > 1, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def release() -> sf.Release:
    return sf.sanitize(people(600), sf.Chain(k=10, leaf=50), policy=LOOSE, seed=1, rows_are_people=True)


def test_a_policy_without_a_hold_out_set_is_met_on_shadow_releases(release: sf.Release) -> None:
    assert release.report is not None
    verdict = release.report.verdict
    assert verdict is not None
    assert verdict.outcome is Ruling.MEETS
    assert {each.limit for each in verdict.limits} == set(LOOSE.limits)
    assert all(each.finding.startswith("shadow-") for each in verdict.limits)
    assert verdict.shadows == 9  # from which the likelihood ratio has learned
    assert "without a random 13\u00a0% of the people" in verdict.basis
    assert verdict.basis in release.report.summary()


def test_the_release_is_made_from_all_people(release: sf.Release) -> None:
    assert release.certificate.rows_in == 600
    assert release.report is not None
    assert release.report.rows_held_out == 0


def test_intervals_of_an_audit_and_of_other_attacks_share_the_error(release: sf.Release) -> None:
    assert release.report is not None
    checks, missing = limit_checks(release.report, LOOSE)
    assert missing == []
    assert {check.finding.startswith("shadow-") for check in checks} == {True}
    ends = {check.finding: check.interval(0.0) for check in checks}
    for each in release.report.verdict.limits:  # type: ignore[union-attr]
        assert each.interval == ends[each.finding]


def test_a_copy_of_most_people_is_refused_by_its_shadow_releases() -> None:
    with pytest.raises(sf.PolicyNotMet, match="does not meet") as found:
        sf.sanitize(
            people(400), sf.Condensation(k=2), policy=dataclasses.replace(BUILT_IN["public"], require={}), seed=1
        )
    assert found.value.verdict.outcome is Ruling.DOES_NOT_MEET
    assert found.value.verdict.exceeded[0].finding is not None


def test_an_open_limit_says_how_many_shadow_releases_would_decide_it() -> None:
    policy = sf.Policy("near", limits={"membership-auc": 0.6})
    open_one = Estimate(0.55, 0.55, (0.45, 0.65), (0.4, 0.7), 10, 1_000, 0.1)
    needed = shadows_needed({"shadow-auc-distance": open_one}, policy, 10)
    assert needed == 40  # half of the length of the interval four times the squared distance
    assert shadows_needed({"shadow-auc-distance": dataclasses.replace(open_one, table=(0.5, 0.6))}, policy, 10) is None
    undecided = UndecidedLimit("membership-auc", "shadow-auc-distance", "", interval=open_one.table)
    verdict = Verdict("near", Ruling.INCONCLUSIVE, missing=(undecided,), shadows=10, shadows_needed=needed)
    assert verdict.hint == "About 40 shadow releases would decide it; raise the time limit."
    many = dataclasses.replace(verdict, people_needed=1_200)
    assert many.hint == "About 40 shadow releases, or 1,200 people, would decide it; raise the time limit."


def test_an_audit_stops_if_its_time_cannot_decide_a_limit_even_with_luck() -> None:
    policy = sf.Policy("near", limits={"attribute-excess": 0.02, "membership-auc": 0.6})
    inferred = Estimate(0.3, 0.01, (-0.10, 0.12), (-0.2, 0.2), 9, 300, 0.06)  # nine times 0.11 squared by 0.05 squared
    estimates = {"shadow-attribute-inference/age": inferred}
    assert out_of_reach(estimates, policy, 40)
    assert not out_of_reach(estimates, policy, 50)
    exceeding = Estimate(0.7, 0.7, (0.55, 0.85), (0.5, 0.9), 9, 300, 0.06)
    assert not out_of_reach({**estimates, "shadow-auc-distance": exceeding}, policy, 40)


def test_with_a_hold_out_set_there_are_no_shadow_releases() -> None:
    release = sf.sanitize(
        people(600), sf.Chain(k=10, leaf=50), policy=LOOSE, despite_policy=True, holdout=0.3, seed=1, time_limit=0.5
    )
    assert release.report is not None
    assert release.report.sizes["shadow_releases"] is None
    assert not any(finding.name.startswith("shadow-") for finding in release.report.findings)


@pytest.mark.parametrize("holdout", [None, 0.3])
def test_models_are_tested_on_people_whom_their_training_table_leaves_out(holdout: float | None) -> None:
    chain = sf.Chain(k=10, leaf=50)
    release = sf.sanitize(people(900), chain, target="ill", seed=1, rows_are_people=True, holdout=holdout)
    report = release.report
    assert report is not None
    auc = next(each for each in report.findings if each.name == "auc-boosting")
    assert auc.value is not None
    assert auc.baseline is not None
    assert 0.6 < auc.value < 0.85  # a model that had seen its test people would reach more
    assert 0.6 < auc.baseline < 0.85
    assert 'Predicting "ill": AUC' in report.summary()
    assert any("Nobody was held out" in note for note in report.notes) == (holdout is None)
    assert release.certificate.rows_in == (900 if holdout is None else 630)


def test_a_method_that_cannot_do_without_some_people_measures_no_model() -> None:
    few = sf.sanitize(people(150), sf.Chain(k=10, leaf=50), target="ill", seed=1, rows_are_people=True)
    assert few.report is not None
    assert [each.reason for each in few.report.findings if each.name == "auc-boosting"] == [
        "no rows were held out to test a model on (name some with --holdout)"
    ]


def test_as_many_shadow_releases_are_attacked_as_were_requested() -> None:
    table, options = people(400), {"seed": 1, "rows_are_people": True}
    some = sf.sanitize(table, sf.Chain(k=10, leaf=50), shadows=3, **options)  # type: ignore[arg-type]
    assert some.report is not None
    assert some.report.sizes["shadow_releases"] == 3
    assert some.report.verdict is not None
    assert not some.report.verdict.asked
    assert "There is no control group" not in some.report.verdict.sentence()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shadows": 1}, "shadows must be 0 for none, or 2 to 10000; try 20"),
        ({"shadows": 5, "report": False}, "drop one"),
        ({"shadows": 5, "holdout": 0.3}, "is for methods that can be run again in memory"),
        ({"shadows": 5, "memory": "2G"}, "is for methods that can be run again in memory"),
    ],
)
def test_shadow_releases_that_cannot_be_made_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        sf.sanitize(people(400), rows_are_people=True, **options)  # type: ignore[arg-type]


def test_a_policy_with_limits_cannot_do_without_shadow_releases_and_a_control_group() -> None:
    with pytest.raises(sf.PolicyNotMet, match="cannot meet policy"):
        sf.sanitize(people(400), policy="research", shadows=0, rows_are_people=True)
