"""JS07, section 3.3: the example of three operators and its table 1, all eight cells to the printed digit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.core.distributions.domains import Integers
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.survey.breach import answer_breach, posterior

DOMAIN = Integers(0, 1000)
LAWS = {
    "R1": {"name": "keep-or-replace", "keep": 0.2},
    "R2": {"name": "shift-modulo", "reach": 100},
    "R3": {"name": "mixture", "weight": 0.5, "of": {"name": "shift-modulo", "reach": 100}},
}
PRIOR = np.array([0.01] + [0.00099] * 1000)
ZERO, OUTSIDE = "x == 0", "x not in 200..800"


def literal(operator: str, x: int) -> Fraction:
    """Give P[R(x) = 0] as the thesis and its errata say it, in fractions."""
    if operator == "R1":  # x with 20 %, some other number with 80 %
        return Fraction(1, 5) if x == 0 else Fraction(4, 5) / 1000
    shifts = sum(1 for shift in range(-100, 101) if (x + shift) % 1001 == 0)
    shifted = Fraction(shifts, 201)
    return shifted if operator == "R2" else shifted / 2 + Fraction(1, 1001) / 2


def literal_posterior(operator: str) -> list[Fraction]:
    """Give P[X = x | R(X) = 0] by Bayes' rule, in fractions."""
    before = [Fraction(1, 100)] + [Fraction(99, 100_000)] * 1000
    joint = [p * literal(operator, x) for x, p in enumerate(before)]
    whole = sum(joint)
    return [part / whole for part in joint]


@pytest.mark.parametrize(
    ("operator", "about", "printed"),
    [
        (None, ZERO, "1.0"),
        (None, OUTSIDE, "40.5"),
        ("R1", ZERO, "71.6"),
        ("R1", OUTSIDE, "83.0"),
        ("R2", ZERO, "4.8"),
        ("R2", OUTSIDE, "100.0"),
        ("R3", ZERO, "2.9"),
        ("R3", OUTSIDE, "70.8"),
    ],
)
def test_every_cell_of_table_1_has_the_printed_digits(operator: str | None, about: str, printed: str) -> None:
    found = answer_breach(NoiseSpec(DOMAIN, LAWS[operator or "R1"]), PRIOR, about, 0)
    assert f"{100 * (found.prior if operator is None else found.posterior):.1f}" == printed


def test_what_lies_outside_200_to_800_is_certain_after_r2_and_not_just_nearly() -> None:
    assert answer_breach(NoiseSpec(DOMAIN, LAWS["R2"]), PRIOR, OUTSIDE, 0).posterior == 1.0


@pytest.mark.parametrize("operator", LAWS)
def test_the_posterior_of_every_value_is_that_of_fractions(operator: str) -> None:
    after = posterior(NoiseSpec(DOMAIN, LAWS[operator]).operator, PRIOR, 0)
    np.testing.assert_allclose(after, [float(p) for p in literal_posterior(operator)], rtol=1e-12)


@pytest.mark.parametrize(("operator", "gamma"), [("R1", 250.0), ("R2", np.inf), ("R3", 1202 / 201)])
def test_the_amplification_of_the_three_operators(operator: str, gamma: float) -> None:
    """250, infinite and 6.0 to one digit (5.98); see the field's measure of the thesis's example."""
    assert NoiseSpec(DOMAIN, LAWS[operator]).gamma == gamma


def test_zero_is_the_worst_answer_about_zero_under_r1() -> None:
    found = answer_breach(NoiseSpec(DOMAIN, LAWS["R1"]), PRIOR, ZERO)
    assert (found.output, found.raising) == (0, 0)
    assert found.upper == pytest.approx(found.posterior, rel=1e-12)  # here the bound is reached


def test_an_age_of_120_under_noise_of_50_proves_that_it_is_70_or_more() -> None:
    """The thesis's own words before the example; errata JS07.4."""
    spec = NoiseSpec(Integers(0, 120), {"name": "uniform", "reach": 50})
    found = answer_breach(spec, np.full(121, 1 / 121), "x >= 70", 120)
    assert (found.posterior, found.certain, found.gamma) == (1.0, True, np.inf)
    assert answer_breach(spec, np.full(121, 1 / 121), "x >= 71", 120).posterior < 1.0
