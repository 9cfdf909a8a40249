"""What a certificate says of a table that several owners made together, and what it must not say."""

from __future__ import annotations

import dataclasses

import pytest

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import Claim, Fact, RandomnessSource, Refused, Shuffled, draw_claims, fact_from_json
from sfumato.core.facts import fact_to_json as to_json
from sfumato.core.groups.facts import CountsKept, Grouped
from sfumato.methods.perturb.facts import ComponentNoise
from sfumato.parties.facts import Joint, Opened

THREE, TWO = ("bank", "clinic", "shop"), ("bank", "shop")
CLUSTERS = Opened("clusters", "the cluster of each row", "opened", THREE, 300, 3)
SUMS = Opened("group sums", "sums of groups", "sum", THREE, 40, 1)
NOISED: tuple[Fact, ...] = (
    RandomnessSource("release", "ChaCha20"),
    Grouped("K-means", 100, 4, 25, 0, 0, 0, 0),
    ComponentNoise("laplace", 0.2, 3, "component", 0.001, 2.0**-20),
    CountsKept(1, 0),
    Shuffled(100),
)
VERTICAL = Joint("vertical", THREE, ("bank", "shop"), "cheetah", "", "split", 3)
HORIZONTAL = Joint("horizontal", THREE, ("bank", "shop"), "cheetah", "last", "", 3)


def said(joint: Joint, *lines: Opened) -> tuple[str, str, tuple[Claim, ...], tuple[Refused, ...]]:
    """Give the claims and the refused claims of a joint run, as text and as they are."""
    told = [dataclasses.replace(line, to=joint.parties) for line in lines or (CLUSTERS,)]
    claims, refused = draw_claims((*NOISED, joint, *told))
    shown = "\n".join(f"{claim.kind}: {claim.claim} | {claim.basis} | {claim.assumes}" for claim in claims)
    return shown, "\n".join(f"{each.claim} | {each.reason}" for each in refused), claims, refused


def with_two(joint: Joint) -> Joint:
    """Make it a run of two owners."""
    return dataclasses.replace(joint, parties=TWO, computing=TWO)


@pytest.mark.parametrize("joint", [VERTICAL, HORIZONTAL])
def test_the_claims_of_noise_and_groups_stay_what_they_are(joint: Joint) -> None:
    alone = draw_claims(NOISED)
    _, _, claims, refused = said(joint)
    order, count = alone[0][-1], len(alone[0])
    assert claims[: count - 1] == alone[0][:-1]
    assert claims[count - 1].claim == order.claim.replace("The", "To readers other than the data owners, the", 1)
    told = refused[: len(alone[1])]
    assert [each.claim for each in told] == [each.claim for each in alone[1]]
    changed = [each for each, before in zip(told, alone[1], strict=True) if each != before]
    assert [each.claim for each in changed] == ["Rare categories are hidden."]
    assert "frequencies over all data owners were not counted" in changed[0].reason
    assert "declare only frequent or wider categories" in changed[0].reason


@pytest.mark.parametrize("joint", [VERTICAL, HORIZONTAL])
def test_what_is_proved_rests_on_the_ledger_and_what_is_assumed_on_trust(joint: Joint) -> None:
    shown, _, claims, _ = said(joint, CLUSTERS, SUMS)
    proved = next(claim for claim in claims if "made the table together" in claim.claim)
    assert (proved.kind, "apart from 2 ledger lines" in proved.claim) == ("proved", True)
    assert "semi-honest" in proved.assumes
    trusted = next(claim for claim in claims if "A share reveals nothing" in claim.claim)
    assert trusted.kind == "assumed"
    assert "'bank' and 'shop' do not collude" in trusted.assumes
    assert "not audited for sfumato" in trusted.basis
    assert "'bank', 'clinic' and 'shop'" in shown


def test_with_three_computing_parties_no_two_of_them_may_collude() -> None:
    shown, _, _, _ = said(dataclasses.replace(VERTICAL, computing=THREE, engine="aby3"))
    assert "no two of 'bank', 'clinic' and 'shop' collude" in shown
    assert "ABY3" in shown


def test_a_run_in_one_process_claims_nothing_of_the_owners() -> None:
    shown, not_said, _, _ = said(dataclasses.replace(VERTICAL, engine="plain"), CLUSTERS, SUMS)
    assert "The data owners hid their cells from each other. | All of them ran in one process" in not_said
    assert "made the table together" not in shown
    assert "A share reveals nothing" not in shown
    assert "Sums over all data owners" not in shown


def test_sums_hide_single_owners_from_three_on_and_never_between_two() -> None:
    shown, not_said, _, _ = said(HORIZONTAL, SUMS)
    assert "Sums over all data owners show no owner's part to another, except in a group" in shown
    assert "Sums: group sums." in shown
    assert "in which only one other owner has rows" in shown
    assert "no 2 owners collude" in shown
    assert "BCG10.6" not in not_said
    shown, not_said, _, _ = said(with_two(HORIZONTAL), SUMS)
    assert "Sums over all data owners" not in shown
    assert (
        "The secure sums hide the two owners from each other. | By subtracting their own part from a sum, 'bank'"
        in not_said
    )
    assert "BCG10.6" in not_said


def test_two_owners_of_columns_see_each_other_behind_the_opened_sum() -> None:
    _, not_said, _, _ = said(with_two(VERTICAL))
    assert "The opened sum hides the two owners from each other." in not_said
    assert "BCG10.6" in not_said
    assert "BCG10.6" not in said(VERTICAL)[1]


def test_owners_of_columns_know_whose_row_is_whose_and_every_cluster() -> None:
    _, not_said, _, _ = said(VERTICAL)
    assert "Each owner knows which released row belongs to which of its keys" in not_said
    assert "the cluster of every row in each of 3 rounds" in not_said
    assert "which released rows are another's" not in not_said


def test_noise_in_halves_is_no_bound_against_those_who_drew_them() -> None:
    shown, not_said, _, _ = said(VERTICAL)
    assert "The bounds hold against 'bank' and 'shop'. |" in not_said
    assert "obtains D - R2, which a component D never falls below" in not_said
    assert "Likelihood ratios of one-sided noise have no bound" in not_said
    assert "The bounds hold against" not in shown


def test_whole_noise_of_each_computing_party_bounds_what_the_other_learns() -> None:
    shown, not_said, _, _ = said(dataclasses.replace(VERTICAL, noise="each"))
    assert "proved: Against 'bank' and 'shop' too, the odds" in shown
    assert "change by at most a factor of e^(3/0.2)" in shown
    assert "twice the variance" in shown
    assert "D - R2" not in not_said


def test_components_speak_of_each_other_to_an_owner_that_knows_its_own_columns() -> None:
    assert "The bound for one component holds against another owner. |" in said(VERTICAL)[1]
    assert "has 3 components" in said(VERTICAL)[1]
    assert "holds against another owner" not in said(HORIZONTAL)[1]


def test_owners_of_rows_know_whose_rows_are_whose_and_the_rest_of_a_group() -> None:
    _, not_said, _, _ = said(HORIZONTAL)
    assert "Every owner knows which released rows are another's" in not_said
    assert "no single owner had all rows of a group but one or two" in not_said
    _, bare, _, _ = said(dataclasses.replace(HORIZONTAL, bare=3))
    assert "In 3 cases, an owner had all rows of a group but one or two" in bare
    assert "belongs to which of its keys" not in not_said


def test_a_record_that_alone_has_a_category_is_said_to_be_seen() -> None:
    mark = "A record that alone"
    _, columns, _, _ = said(dataclasses.replace(VERTICAL, bare=7))
    assert f"{mark} has a category, or a missing cell, in its group stays hidden" in columns
    assert "In 7 cases, all owners saw its cells in all columns without noise" in columns
    assert mark not in said(VERTICAL)[1]
    assert (
        f"{mark} among all other owners' rows of a group has a category, or a missing cell, stays"
        in said(HORIZONTAL)[1]
    )
    numbers = tuple(fact for fact in NOISED if not isinstance(fact, CountsKept))
    _, refused = draw_claims((*numbers, HORIZONTAL, CLUSTERS))
    assert not any(mark in each.claim for each in refused)


def test_centres_that_are_opened_each_round_give_rows_away_by_differences() -> None:
    assert "differences of its sums reveal them" in said(dataclasses.replace(HORIZONTAL, centres="each"))[1]
    assert "differences of its sums" not in said(HORIZONTAL)[1]


@pytest.mark.parametrize("joint", [VERTICAL, HORIZONTAL])
def test_bounds_are_relative_to_statistics_that_all_owners_saw_exactly(joint: Joint) -> None:
    assert "Every owner saw the exact means, covariances and ranges of all groups" in said(joint)[1]


@pytest.mark.parametrize(
    "facts",
    [
        (VERTICAL,),
        (VERTICAL, dataclasses.replace(CLUSTERS, to=())),
        (VERTICAL, dataclasses.replace(CLUSTERS, to=("stranger",))),
        (dataclasses.replace(VERTICAL, parties=("bank",), computing=("bank",)), CLUSTERS),
        (dataclasses.replace(VERTICAL, computing=("stranger", "shop")), CLUSTERS),
        (dataclasses.replace(VERTICAL, engine="semi2k"), CLUSTERS),
        (dataclasses.replace(VERTICAL, partition="diagonal"), CLUSTERS),
        (CLUSTERS,),
    ],
    ids=["no ledger", "to nobody", "to a stranger", "alone", "strange computing", "engine", "partition", "no run"],
)
def test_facts_that_do_not_fit_each_other_bear_no_certificate(facts: tuple[Fact, ...]) -> None:
    with pytest.raises(PrivacyRefusal):
        draw_claims((*NOISED, *facts))


@pytest.mark.parametrize("fact", [VERTICAL, HORIZONTAL, CLUSTERS, SUMS])
def test_facts_of_a_joint_run_come_back_from_their_document(fact: Fact) -> None:
    assert fact_from_json(to_json(fact)) == fact


def test_a_trial_in_one_process_claims_nothing_against_the_owners() -> None:
    each = dataclasses.replace(VERTICAL, noise="each")
    assert "Against 'bank' and 'shop' too" in said(each)[0]
    shown, refused, _, _ = said(dataclasses.replace(each, engine="plain"))
    assert "Against 'bank'" not in shown
    assert "in one process that had every table in the clear" in refused


@pytest.mark.parametrize(
    "joint",
    [dataclasses.replace(VERTICAL, centres="last"), dataclasses.replace(HORIZONTAL, noise="each")],
)
def test_a_choice_that_the_partition_does_not_know_is_refused(joint: Joint) -> None:
    with pytest.raises(PrivacyRefusal, match="not known"):
        said(joint)
