"""The parameter that meets a wish: it does, and a little less noise would not."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.core.distributions.amplification import downward_bound
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import OptionError
from sfumato.survey.calculator import solve
from tests.distributions.test_spec import AGES, HOURS, SPECS, TOWNS

SOLVABLE = [
    (NoiseSpec(AGES, {"name": "keep-or-replace", "keep": 0.2}), "keep", 1.0001),
    (
        NoiseSpec(AGES, {"name": "mixture", "weight": 0.5, "of": {"name": "shift-modulo", "reach": 10}}),
        "weight",
        1.0001,
    ),
    (NoiseSpec(TOWNS, {"name": "mixture", "weight": 0.5, "of": {"name": "response", "epsilon": 9}}), "weight", 1.0001),
    (NoiseSpec(AGES, {"name": "laplace", "scale": 30.5}), "scale", 0.9999),
    (NoiseSpec(HOURS, {"name": "laplace", "scale": 5}), "scale", 0.9999),
    (NoiseSpec(TOWNS, {"name": "response", "epsilon": 1.5}), "epsilon", 1.0001),
]
NONE = [
    spec
    for spec in SPECS
    if dict(spec.law)["name"] not in ("keep-or-replace", "mixture", "laplace") and "epsilon" not in dict(spec.law)
]


@pytest.mark.parametrize(("spec", "parameter", "less_noise"), SOLVABLE, ids=lambda each: str(each)[:60])
@given(rho1=st.floats(0.001, 0.9), rho2=st.floats(0.002, 0.99))
def test_the_value_found_meets_the_wish_and_less_noise_does_not(
    spec: NoiseSpec, parameter: str, less_noise: float, rho1: float, rho2: float
) -> None:
    assume(abs(rho1 - rho2) > 0.001)
    found = solve(spec, rho1, rho2)
    assert found.parameter == parameter
    assert found.spec is not None
    assert found.value is not None
    upward = rho2 > rho1
    if upward:
        assert found.spec.bound(rho1) <= rho2 * (1 + 1e-12)
    else:
        assert downward_bound(found.spec.gamma, rho1) >= rho2 * (1 - 1e-12)
    assert found.spec.gamma <= found.gamma * (1 + 1e-9)
    law = spec.to_document()["law"]
    if parameter in ("keep", "weight") and found.value * less_noise > 1:
        return  # there is no less noise
    looser = NoiseSpec(spec.domain, {**law, parameter: found.value * less_noise})
    assert looser.gamma > found.gamma


@pytest.mark.parametrize("spec", NONE, ids=lambda spec: spec.canonical)
def test_where_no_value_meets_it_words_say_why(spec: NoiseSpec) -> None:
    found = solve(spec, 0.01, 0.1)
    assert (found.parameter, found.value, found.spec) == (None, None, None)
    assert found.words.endswith(".")
    if dict(spec.law)["name"] == "uniform":
        assert "no reach meets any bound" in found.words
    if dict(spec.law)["name"] == "shift-modulo":
        assert "unless it goes round the whole domain" in found.words


@pytest.mark.parametrize("spec", [each[0] for each in SOLVABLE], ids=lambda spec: spec.canonical)
@pytest.mark.parametrize(
    ("rho1", "rho2"),
    [(0.5, 0.5 + 1e-7), (0.5, 0.5 - 1e-7), (0.5, 0.5 + 1e-10), (1e-9, 1 - 1e-9), (1 - 1e-12, 1e-7), (0.01, 0.999999)],
)
def test_a_wish_for_very_much_or_very_little_is_met_too(spec: NoiseSpec, rho1: float, rho2: float) -> None:
    found = solve(spec, rho1, rho2)
    assert found.spec is not None
    assert found.spec.gamma <= found.gamma * (1 + 1e-12)


@pytest.mark.parametrize(("rho1", "rho2"), [(0.5, 0.5), (0.0, 0.5), (0.5, 1.0), (0.5, 0.0)])
def test_a_wish_that_is_none_is_refused(rho1: float, rho2: float) -> None:
    with pytest.raises(OptionError):
        solve(SOLVABLE[0][0], rho1, rho2)
