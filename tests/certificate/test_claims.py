from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

import pytest

from sfumato.certificate import CertifiedRun, certify
from sfumato.core.errors import BadInput, PrivacyRefusal
from sfumato.core.facts import (
    Claim,
    ColumnsDropped,
    Context,
    DespitePolicy,
    Enhanced,
    Fact,
    HeldOut,
    NoMeasurement,
    PassedThrough,
    RandomnessSource,
    Shuffled,
    ShuffledWithin,
    Statements,
    Stratified,
    UnknownFact,
    UnlabelledRows,
    draw_claims,
    fact_from_json,
    fact_to_json,
)
from sfumato.core.groups.facts import CountsKept, Grouped
from sfumato.methods.condense.facts import ClassPure, GroupSynthesis
from sfumato.methods.perturb.facts import Noised

DRAWN = RandomnessSource("release", "ChaCha20")
GROUPED = Grouped("AY05 ConstructGroups", 100, 9, 10, 0, 0, 0, 0)
SYNTHESIZED = GroupSynthesis("mean and covariance", "uniform along eigenvectors", 100)
FACTS: tuple[Fact, ...] = (
    DRAWN,
    ColumnsDropped(("name",), ("lvl",)),
    HeldOut(7),
    Stratified("class", 2, True),
    ClassPure("class", 2),
    UnlabelledRows("class", 8, 5),
    GROUPED,
    SYNTHESIZED,
    CountsKept(2, 1),
    Shuffled(100),
    Noised("gaussian", "additive", 0.5, 3, False, 2.0**-17),
    Enhanced(0.05, 5),
    PassedThrough(1, 2),
    DespitePolicy("research", "inconclusive"),
)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.fact)
def test_a_fact_comes_back_from_json(fact: Fact) -> None:
    assert fact_from_json(json.loads(json.dumps(fact_to_json(fact)))) == fact


@pytest.mark.parametrize(
    "document",
    [{"fact": "shuffled"}, {"fact": "shuffled", "rows": "3"}, {"rows": 3}, {"fact": ["shuffled"]}],
)
def test_an_altered_fact_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        fact_from_json(document)


@pytest.mark.parametrize(
    "document", [{"fact": "blessed"}, {"fact": "unknown-fact", "document": {"fact": "randomness-source"}}]
)
def test_an_unknown_fact_is_kept_as_it_is_and_never_certified(document: dict[str, object]) -> None:
    unknown = fact_from_json(document)
    assert isinstance(unknown, UnknownFact)
    assert fact_to_json(unknown) == document
    with pytest.raises(PrivacyRefusal, match="is not known, so nothing can be certified"):
        certify((DRAWN, unknown), CertifiedRun("0.2.0", "release", "blessing", {}, 1, 1, "0" * 64))


def test_a_fact_of_another_package_bears_its_own_claims_and_is_unknown_when_it_is_read() -> None:
    @dataclass(frozen=True)
    class Rounded(Fact):
        step: float

        def claims(self, context: Context) -> Statements:
            yield Claim(f"All numbers are multiples of {self.step:g}.", "They were rounded.", "nothing")

    claims, _ = draw_claims((DRAWN, Rounded(0.5)))
    assert [claim.claim for claim in claims] == ["All numbers are multiples of 0.5."]
    assert isinstance(fact_from_json(fact_to_json(Rounded(0.5))), UnknownFact)


def test_every_claim_has_a_basis_and_none_says_anonymous() -> None:
    claims, refused = draw_claims((DRAWN, GROUPED, SYNTHESIZED, CountsKept(2, 1), Shuffled(100)))
    assert claims
    assert all(claim.basis and claim.assumes for claim in claims)
    assert not any("anonym" in claim.claim.lower() for claim in claims)
    assert any("anonymous" in claim.claim for claim in refused)


@pytest.mark.parametrize(
    "facts",
    [
        (DespitePolicy("research", "meets"),),
        (DespitePolicy("research", "inconclusive"), DespitePolicy("public", "inconclusive")),
        (DespitePolicy("research", "inconclusive"), NoMeasurement()),
    ],
)
def test_a_policy_that_was_met_judged_twice_or_judged_unmeasured_is_no_fact(facts: tuple[Fact, ...]) -> None:
    with pytest.raises(PrivacyRefusal, match="nothing can be certified"):
        draw_claims((DRAWN, *facts))


def test_a_violation_is_never_certified() -> None:
    with pytest.raises(PrivacyRefusal, match="3 records"):
        draw_claims((dataclasses.replace(GROUPED, violations=3),))


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (RandomnessSource("dry-run", "PCG64"), "seed"),
        (dataclasses.replace(GROUPED, smallest=3, tiny=2), "2 groups have three records or fewer"),
        (
            dataclasses.replace(GROUPED, alone=5, tiny=6, smallest=1, alike=5),
            "5 records of level 1 form groups of one and are published unchanged",
        ),
        (
            dataclasses.replace(GROUPED, alone=1, tiny=1, smallest=1, alike=1),
            "1 record of level 1 forms a group of one and is published unchanged",
        ),
        (Stratified("class", 2, True), "l = 1"),
        (ClassPure("class", 3), "l = 1"),
        (CountsKept(1, 0), "exact counts"),
        (Noised("laplace", "additive", 1.0, 3, False, 2.0**-16), "The report measures the remaining error"),
        (Noised("gaussian", "additive", 1.0, 3, True, 2.0**-16), "half the noise variance"),
        (Noised("uniform", "additive", 1.0, 3, False, 2.0**-16), "the amplification is infinite"),
        (Noised("gaussian", "multiplicative", 0.1, 3, False, 2.0**-20), "Zero times any factor is zero"),
        (DespitePolicy("research", "does-not-meet"), "measured this and found that it does not"),
        (DespitePolicy("research", "inconclusive"), "measured this and found the result inconclusive"),
        (Enhanced(0.05, 5), "Only a share of 0.05"),
        (PassedThrough(2, 0), "categories of 2 columns"),
        (PassedThrough(0, 1), "missing cells in 1 column are"),
    ],
)
def test_a_claim_that_the_facts_do_not_support_is_refused_with_a_reason(fact: Fact, words: str) -> None:
    _, refused = draw_claims((fact,))
    assert any(words in claim.reason for claim in refused)


def test_pure_classes_are_claimed_with_their_number_and_that_they_are_certain_is_said() -> None:
    claims, refused = draw_claims((ClassPure("outcome", 3),))
    (claim,) = claims
    assert claim.kind == "proved"
    assert "no group mixes the 3 classes" in claim.claim
    assert "KCG12, fig. 5" in claim.basis
    assert any("cannot be certain of the class 'outcome'" in one.claim for one in refused)


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (Noised("laplace", "additive", 0.5, 3, False, 2.0**-17), "0.5 times the column's own, drawn independently"),
        (Noised("gaussian", "additive", 0.5, 3, True, 2.0**-17), "with the correlations of the data"),
        (Noised("uniform", "multiplicative", 0.1, 3, False, 2.0**-20), "multiplied by a uniform factor of mean 1"),
    ],
)
def test_the_law_and_the_size_of_noise_are_proved_and_nothing_is_said_of_what_they_hide(fact: Fact, words: str) -> None:
    (claim,), refused = draw_claims((DRAWN, fact))
    assert claim.kind == "proved"
    assert words in claim.claim
    assert "3 columns" in claim.claim
    assert any("differentially private" in one.claim for one in refused)
    bounded = any("proves anything" in one.claim for one in refused)
    assert bounded == ("uniform" in claim.claim)


@pytest.mark.parametrize(("rows", "claims"), [(1, 0), (300, 1)])
def test_an_order_that_was_mixed_in_runs_is_claimed_for_the_runs_alone(rows: int, claims: int) -> None:
    said, refused = draw_claims((DRAWN, ShuffledWithin(rows)))
    assert len(said) == claims
    assert any("order of the rows reveals nothing" in each.claim for each in refused)
