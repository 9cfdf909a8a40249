"""The breach calculator against Bayes' rule in fractions, for every kind of law."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.distributions.domains import Integers, Labels, Reals
from sfumato.core.distributions.operators import Response, transition
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import BadInput, OptionError, SchemaError
from sfumato.survey.breach import answer_breach, percent, posterior, posterior_of, verdict, worst_outputs
from sfumato.survey.channel import blocks, observed_prior, prior_of, read_prior, uniform_prior
from tests.distributions.test_operators import ALL, FINITE
from tests.distributions.test_spec import SPECS

AGES = Integers(0, 120)


def literal_worst(
    matrix: np.ndarray[Any, Any], prior: np.ndarray[Any, Any], mask: list[bool]
) -> tuple[Fraction, Fraction]:
    """Give the highest and lowest posterior over all outputs by Bayes' rule, in fractions."""
    found = []
    for column in matrix.T:
        joint = [Fraction(p) * Fraction(c) for p, c in zip(prior.tolist(), column.tolist(), strict=True)]
        if sum(joint):
            yes = sum((part for part, has in zip(joint, mask, strict=True) if has), Fraction(0))
            found.append(yes / sum(joint))
    return max(found), min(found)


@given(st.integers(0, 2**32 - 1), st.sampled_from(FINITE))
def test_the_worst_outputs_are_those_of_fractions(seed: int, operator: Any) -> None:
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(operator.size, 0.5))
    mask = rng.permutation(np.arange(operator.size) < rng.integers(1, operator.size))
    worst = worst_outputs(operator, prior, mask)
    highest, lowest = literal_worst(transition(operator), prior, mask.tolist())
    assert worst.highest == pytest.approx(float(highest), rel=1e-9, abs=1e-300)
    assert worst.lowest == pytest.approx(float(lowest), rel=1e-9, abs=1e-300)
    assert posterior_of(operator, prior, mask, worst.raising) == pytest.approx(worst.highest, rel=1e-9)
    assert posterior_of(operator, prior, mask, worst.lowering) == pytest.approx(worst.lowest, rel=1e-9)


@pytest.mark.parametrize("operator", ALL, ids=repr)
def test_the_telling_outputs_have_all_the_chance(operator: Any) -> None:
    total = sum((likely * chances).sum(axis=0) for _, likely, chances in blocks(operator))
    np.testing.assert_allclose(total, 1.0, rtol=1e-9)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.canonical)
def test_a_breach_stays_within_its_bounds_for_every_law(spec: NoiseSpec) -> None:
    about = "x in {north, south}" if isinstance(spec.domain, Labels) else "x >= 7"
    found = answer_breach(spec, uniform_prior(spec.domain), about)
    assert found.posterior == pytest.approx(found.worst.highest, rel=1e-9)
    assert (
        found.lower * (1 - 1e-9) <= found.worst.lowest <= found.prior <= found.worst.highest <= found.upper * (1 + 1e-9)
    )
    assert (found.gamma, found.epsilon) == (spec.gamma, spec.epsilon)
    assert verdict(spec, found.prior).startswith("no guarantee" if math.isinf(spec.gamma) else "guaranteed")
    np.testing.assert_array_equal(
        spec.encode_output([found.raising, found.lowering]), [found.worst.raising, found.worst.lowering]
    )


def test_laplace_noise_far_out_tells_what_the_end_of_the_domain_tells() -> None:
    spec = NoiseSpec(AGES, {"name": "laplace", "scale": 40})
    prior = uniform_prior(AGES)
    near, far = (answer_breach(spec, prior, "x == 0", output).posterior for output in (0, -1_000_000))
    assert near == pytest.approx(far, rel=1e-12)
    assert answer_breach(spec, prior, "x == 0").raising == 0


def test_gaussian_noise_far_out_makes_the_end_all_but_certain_and_yet_proves_nothing() -> None:
    spec = NoiseSpec(AGES, {"name": "gaussian", "sd": 10})
    found = answer_breach(spec, uniform_prior(AGES), "x == 0", -2000)
    assert found.posterior > 0.99
    assert not found.certain
    assert verdict(spec, 0.01).startswith("no guarantee")


def test_bounded_noise_proves_facts_at_both_ends() -> None:
    spec = NoiseSpec(AGES, {"name": "uniform", "reach": 50})
    found = answer_breach(spec, uniform_prior(AGES), "x >= 70")
    assert (found.raising, found.worst.highest, found.lowering, found.worst.lowest) == (120, 1.0, -50, 0.0)
    assert found.certain


def test_a_property_that_was_certain_before_is_no_breach() -> None:
    spec = NoiseSpec(AGES, {"name": "uniform", "reach": 50})
    prior = prior_of(AGES, [80, 90], [0.5, 0.5])
    found = answer_breach(spec, prior, "x >= 70")
    assert (found.prior, found.posterior, found.certain) == (1.0, 1.0, False)


def test_an_output_that_cannot_occur_is_refused() -> None:
    spec = NoiseSpec(AGES, {"name": "uniform", "reach": 5})
    prior = prior_of(AGES, [0], [1.0])
    with pytest.raises(SchemaError, match="cannot occur"):
        posterior(spec.operator, prior, 100)
    with pytest.raises(SchemaError, match=r"^1 values cannot"):
        answer_breach(spec, prior, "x == 0", 200)
    assert answer_breach(spec, prior, "x == 0").posterior == 1.0


@pytest.mark.parametrize("prior", [np.full(3, 1 / 3), np.zeros(121), np.full(121, 1.0), -np.full(121, 1 / 121)])
def test_a_prior_that_is_none_is_refused(prior: Any) -> None:
    with pytest.raises(OptionError, match="121 probabilities"):
        answer_breach(NoiseSpec(AGES, {"name": "uniform", "reach": 5}), prior, "x == 0")


def test_too_many_outputs_are_refused_and_not_tried() -> None:
    spec = NoiseSpec(Integers(0, 200_000), {"name": "gaussian", "sd": 100})
    with pytest.raises(OptionError, match="too many"):
        answer_breach(spec, uniform_prior(spec.domain), "x > 5")


def test_a_percentage_is_never_certain_by_rounding() -> None:
    assert percent(1.0 - 1e-12) == "more than 99.9 %"
    assert percent(1e-12) == "less than 0.0000001 %"
    assert (percent(0.0), percent(1.0), percent(0.405)) == ("0 %", "100 %", "40.5 %")


class TestPriors:
    def write(self, folder: Path, text: str) -> Path:
        (folder / "prior.csv").write_text(text, encoding="utf-8")
        return folder / "prior.csv"

    @pytest.mark.parametrize("heading", ["", "age,probability\n"])
    def test_values_and_probabilities_are_read(self, heading: str, tmp_path: Path) -> None:
        prior = read_prior(self.write(tmp_path, f"{heading}3,0.25\n1,0.5\n3,0.25\n"), Integers(0, 4))
        assert prior.tolist() == [0.0, 0.5, 0.0, 0.5, 0.0]

    @pytest.mark.parametrize("heading", ["", "town\n"])
    def test_observed_values_are_counted(self, heading: str, tmp_path: Path) -> None:
        prior = read_prior(self.write(tmp_path, f"{heading}a\nb\na\na\n"), Labels(("b", "a")))
        assert prior.tolist() == [0.25, 0.75]

    def test_reals_are_brought_to_their_places(self, tmp_path: Path) -> None:
        prior = read_prior(self.write(tmp_path, "0.12\n0.9\n"), Reals(0, 1, 0.5))
        assert prior.tolist() == [0.5, 0.0, 0.5]

    def test_rounded_probabilities_are_made_to_add_up(self) -> None:
        assert prior_of(Integers(0, 2), [0, 1, 2], [0.333, 0.333, 0.334]).sum() == pytest.approx(1.0, abs=1e-15)
        assert observed_prior(Integers(0, 2), [1]).tolist() == [0, 1, 0]

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "value,probability\n",
            "1,0.5\n2\n",
            "1,0.5,3\n",
            "1,0.5\n2,0.1\n",
            "1,0.5\n2,-0.5\n3,1\n",
            "1,0.5\n2,half\n3,0.5\n",
            "1,0.5\n77,0.5\n",
            "1\nsecret\n",
            "1\n2.5\n",
            "1,inf\n",
        ],
    )
    def test_files_that_are_no_prior_are_refused_without_a_value(self, text: str, tmp_path: Path) -> None:
        with pytest.raises(BadInput) as told:
            read_prior(self.write(tmp_path, text), Integers(0, 4))
        assert "77" not in str(told.value)
        assert "secret" not in str(told.value)

    def test_a_file_that_is_not_there_and_one_that_is_no_text_are_one_sentence(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="cannot be read"):
            read_prior(tmp_path / "none.csv", AGES)
        (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x80")
        with pytest.raises(BadInput, match="cannot be read"):
            read_prior(tmp_path / "binary.csv", AGES)

    def test_a_domain_too_large_to_write_out_is_refused(self) -> None:
        with pytest.raises(OptionError, match="at most"):
            uniform_prior(Integers(0, 10**9))


def test_posteriors_of_a_response_are_those_of_its_matrix() -> None:
    operator = Response(((0.9, 0.1), (0.2, 0.8)))
    after = posterior(operator, np.array([0.5, 0.5]), 0)
    np.testing.assert_allclose(after, [0.45 / 0.55, 0.1 / 0.55], rtol=1e-12)
