"""The low-bit attack [Mironov 2012] on released reals: what is released must not depend on what lies below the grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.distributions.domains import Reals
from sfumato.core.distributions.spec import NoiseSpec
from tests.distributions.test_noise import fresh

GRIDS = [Reals(0.0, 1.0, 0.125), Reals(-1.0, 2.0, 0.1), Reals(0.0, 1.0, 0.001)]
LAWS: list[dict[str, Any]] = [
    {"name": "laplace", "scale": 1.0},
    {"name": "gaussian", "sd": 1.0},
    {"name": "uniform", "reach": 1.0},
    {"name": "shift-modulo", "reach": 0.5},
    {"name": "keep-or-replace", "keep": 0.3},
    {"name": "mixture", "weight": 0.5, "of": {"name": "shift-modulo", "reach": 0.5}},
]
DRAWS = 50_000


def telling_share(released: NDArray[np.float64], domain: Reals) -> float:
    """Give the share of released doubles that are no place of the grid, to the last bit: those tell of the value."""
    steps = np.rint((released - domain.low) / domain.grid).astype(np.int64)
    return float(np.mean(released != domain.decode(steps)))


@pytest.mark.parametrize("domain", GRIDS, ids=repr)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: str(law["name"]))
def test_released_doubles_are_places_of_the_grid_to_the_last_bit(domain: Reals, law: dict[str, Any]) -> None:
    values = fresh().random(DRAWS) * (domain.high - domain.low) + domain.low
    assert telling_share(NoiseSpec(domain, law).randomize(values, fresh()), domain) == 0.0


@pytest.mark.parametrize("domain", GRIDS, ids=repr)
def test_textbook_laplace_noise_fails_the_same_check(domain: Reals) -> None:
    values = domain.decode(fresh().integers(0, domain.size, DRAWS))  # even from places of the grid
    assert telling_share(values + fresh().laplace(size=DRAWS), domain) > 0.99


@pytest.mark.parametrize("domain", GRIDS, ids=repr)
def test_even_rounded_noise_on_a_value_off_the_grid_fails_it(domain: Reals) -> None:
    noise = np.rint(fresh().laplace(size=DRAWS) / domain.grid) * domain.grid
    assert telling_share(domain.low + 0.3 * domain.grid + noise, domain) > 0.99


@pytest.mark.parametrize(
    "law", [law for law in LAWS if law["name"] != "shift-modulo"], ids=lambda law: str(law["name"])
)
def test_two_values_release_the_same_doubles_where_both_can(law: dict[str, Any]) -> None:
    """The window is where either law gives each place with a chance above 1 in 500: all 50,000 draws miss none."""
    domain = GRIDS[0]
    spec = NoiseSpec(domain, law)
    one, other = (set(spec.randomize(np.full(DRAWS, x), fresh()).tolist()) for x in (0.0, 0.4321))
    window = spec.decode_output(np.arange(domain.size)).tolist()
    assert (spec.operator.probabilities(np.arange(domain.size)) > 1 / 500).all()
    assert set(window) <= one
    assert set(window) <= other


@given(x=st.floats(-1.0, 2.0), nudge=st.floats(0.0, 1e-9), seed=st.integers(0, 2**32 - 1), law=st.sampled_from(LAWS))
def test_bits_below_the_grid_change_no_bit_of_the_answer(
    x: float, nudge: float, seed: int, law: dict[str, Any]
) -> None:
    spec = NoiseSpec(GRIDS[1], law)
    place = spec.domain.decode(spec.domain.encode([x]))[0]
    near = min(2.0, place + nudge)
    answers = [spec.randomize(np.full(20, value), np.random.default_rng(seed)) for value in (place, near)]
    assert answers[0].tobytes() == answers[1].tobytes()
