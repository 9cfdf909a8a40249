"""What is claimed of randomized columns, and what is not."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from sfumato.certificate import CertifiedRun, certify
from sfumato.core.distributions.domains import Integers, Labels
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import Claim, Fact, PassedThrough, RandomnessSource, draw_claims, fact_from_json, fact_to_json
from sfumato.methods.randomize.facts import DomainsObserved, Randomized, specs_of
from sfumato.survey.verbs import read_spec

AGE = NoiseSpec(Integers(0, 1000), {"name": "mixture", "weight": 0.5, "of": {"name": "shift-modulo", "reach": 100}})
TOWN = NoiseSpec(Labels(("n", "s")), {"name": "response", "matrix": [[0.75, 0.25], [0.25, 0.75]]})
UNBOUNDED = {
    "some answers make facts about the true value certain": NoiseSpec(
        Integers(0, 100), {"name": "uniform", "reach": 50}
    ),
    "far out": NoiseSpec(Integers(0, 100), {"name": "gaussian", "sd": 50}),
    "what is sent is true": NoiseSpec(Integers(0, 100), {"name": "interval", "edges": [50]}),
    "make facts about the true value certain": NoiseSpec(Integers(0, 100), {"name": "shift-modulo", "reach": 5}),
    "a factor of e^1000": NoiseSpec(Integers(0, 100), {"name": "laplace", "scale": 0.1}),
}


def fact(column: str, spec: NoiseSpec) -> Randomized:
    gamma, epsilon = (number if math.isfinite(number) else None for number in (spec.gamma, spec.epsilon))
    return Randomized(column, spec.canonical, spec.digest, gamma, epsilon)


def claims_of(*facts: Fact) -> tuple[list[Claim], dict[str, str]]:
    claims, refused = draw_claims((RandomnessSource("release", "ChaCha20"), *facts))
    return list(claims), {each.claim: each.reason for each in refused}


@pytest.mark.parametrize("one", [fact("age", AGE), fact("x", UNBOUNDED["far out"]), DomainsObserved(("a", "b"))])
def test_a_fact_comes_back_from_json(one: Fact) -> None:
    assert fact_from_json(json.loads(json.dumps(fact_to_json(one), allow_nan=False))) == one


def test_a_column_has_its_proved_amplification_and_the_thesis_bound_in_words() -> None:
    (column, row), _ = claims_of(fact("age", AGE))
    assert column.kind == row.kind == "proved"
    assert "factor of 5.98" in column.claim
    assert "prior probability 1 % has at most 5.7 % after release" in column.basis  # 5.98 / (99 + 5.98)
    assert "Evfimievski, Gehrke, Srikant 2003" in column.basis
    assert all("a report is measured on true values and reveals more" in claim.basis for claim in (column, row))


def test_the_factors_of_a_row_multiply_and_its_epsilons_add_up() -> None:
    claims, _ = claims_of(fact("age", AGE), fact("town", TOWN), fact("other", TOWN))
    total = AGE.epsilon + 2 * TOWN.epsilon
    assert "row of 3 columns" in claims[-1].claim
    assert math.exp(total) == pytest.approx(53.82, abs=1e-3)
    assert "at most a factor of 53.83" in claims[-1].claim, "a bound is rounded up"
    assert total == pytest.approx(3.9857, abs=1e-4)
    assert "epsilon 3.986)" in claims[-1].claim


@pytest.mark.parametrize("words", UNBOUNDED)
def test_an_infinite_amplification_is_refused_in_words_for_the_column_and_the_row(words: str) -> None:
    claims, refused = claims_of(fact("town", TOWN), fact("x", UNBOUNDED[words]))
    assert ["'town'" in claim.claim for claim in claims] == [True]
    (column,) = (because for claim, because in refused.items() if "value of 'x'" in claim)
    assert column.startswith(("The amplification is infinite: ", "The odds can change by"))
    assert words in column
    (row,) = (because for claim, because in refused.items() if "whole released row" in claim)
    assert "1 of 2 columns has no bound, the first is 'x'" in row


def test_factors_beyond_all_numbers_are_no_bound() -> None:
    strong = NoiseSpec(Integers(0, 100), {"name": "laplace", "scale": 0.2})
    claims, refused = claims_of(*(fact(f"x{place}", strong) for place in range(2)))
    assert len(claims) == 2
    assert any("add up to 1000, which allows more than any useful factor" in because for because in refused.values())


def test_an_observed_domain_makes_a_claim_assumed_and_is_refused() -> None:
    claims, refused = claims_of(fact("age", AGE), fact("town", TOWN), DomainsObserved(("town",)))
    assert [claim.kind for claim in claims] == ["proved", "assumed", "assumed"]
    assert any("('town') were read from the data" in because for because in refused.values())


def test_missing_cells_that_pass_stand_beside_the_bound_of_the_row() -> None:
    claims, _ = claims_of(fact("age", AGE), PassedThrough(0, 1))
    assert claims[-1].claim.startswith("Apart from missing cells, a row of 1 column")


@pytest.mark.parametrize(
    "change",
    [{"gamma": 2.0}, {"gamma": None}, {"epsilon": 0.1}, {"digest": "0" * 64}, {"spec": "{}"}, {"spec": "no JSON"}],
)
def test_a_fact_that_contradicts_its_law_is_not_certified(change: dict[str, object]) -> None:
    altered = dataclasses.replace(fact("age", AGE), **change)  # type: ignore[arg-type]
    with pytest.raises(PrivacyRefusal, match="'age'"):
        draw_claims((altered,))


def test_the_specification_of_a_column_is_read_from_a_certificate_or_a_file(tmp_path: Path) -> None:
    facts = (fact("age", AGE), PassedThrough(0, 1), fact("town", TOWN))
    assert specs_of(facts) == {"age": AGE, "town": TOWN}
    certificate = tmp_path / "certificate.json"
    run = CertifiedRun("0.2.0", "release", "randomize", {"epsilon": 1.0}, 9, 9, "0" * 64)
    certificate.write_text(certify(facts, run).to_json(), encoding="utf-8")
    assert read_spec(certificate, "town") == TOWN
    with pytest.raises(OptionError, match="no specification of column 'pay'; it has 'age', 'town'"):
        read_spec(certificate, "pay")
    for name, text in (("a.toml", AGE.to_toml()), ("a.json", json.dumps(AGE.to_document()))):
        (tmp_path / name).write_text(text)
        assert read_spec(tmp_path / name, "age") == AGE
    with pytest.raises(OptionError, match="there is no noise specification"):
        read_spec(tmp_path / "none.json", "age")
