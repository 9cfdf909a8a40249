"""Bands hold the truth as often as they say, where the noise permits an estimate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.core.distributions.domains import Integers, Labels, Universe
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.survey.reconstruct import reconstruct
from tests.examples import at_length

TRUTH = np.array([0.35, 0.25, 0.2, 0.15, 0.05])


def _coverage(domain: Universe, law: dict[str, Any], truth: Any, n: int, runs: int, **options: Any) -> float:
    rng = np.random.default_rng(12)
    spec = NoiseSpec(domain, law)
    inside = []
    for _ in range(runs):
        released = spec.randomize(domain.decode(rng.choice(len(truth), size=n, p=truth)), rng)
        found = reconstruct(released, spec, **options)
        inside.append(((found.lower <= truth) & (truth <= found.upper)).mean())
    return float(np.mean(inside))


@pytest.mark.parametrize(("runs", "least"), [(20, 0.84), *at_length((60, 0.88))])
def test_bands_of_randomized_answers_hold_the_truth(runs: int, least: float) -> None:
    """95 % bands of 5 answers in 20 or 60 surveys: a smaller share inside would be five deviations off."""
    law = {"name": "response", "epsilon": 1.5}
    assert _coverage(Labels(tuple("abcde")), law, TRUTH, 4_000, runs) > least


PLACES = np.arange(30)
SHAPES = {
    "normal": np.exp(-(((PLACES - 14) / 5) ** 2) / 2),
    "skewed": np.exp(-PLACES / 3.0),
    "zero-inflated": np.where(PLACES == 0, 4.0, np.exp(-(((PLACES - 12) / 4) ** 2) / 2)),
    "near-empty": np.where(PLACES % 7 == 3, 1.0, 1e-4),
}
NOISES = [
    {"name": "gaussian", "sd": 4},
    {"name": "laplace", "scale": 14},
    {"name": "uniform", "reach": 6},
    {"name": "keep-or-replace", "keep": 0.3},
    {"name": "shift-modulo", "reach": 3},
]


@pytest.mark.slow
@pytest.mark.parametrize("law", NOISES)
@pytest.mark.parametrize("shape", SHAPES)
def test_bands_hold_the_truth_of_any_shape(law: dict[str, Any], shape: str) -> None:
    """At least 88 % in every cell of laws and shapes, at two sizes; the whole table is a benchmark."""
    truth = SHAPES[shape] / SHAPES[shape].sum()
    for n, runs in ((1_000, 10), (20_000, 10)):
        assert _coverage(Integers(0, 29), law, truth, n, runs, least=0) >= 0.88


def test_more_records_make_narrower_bands() -> None:
    spec = NoiseSpec(Labels(tuple("abcde")), {"name": "response", "epsilon": 1.5})
    rng = np.random.default_rng(3)
    widths = []
    for n in (1_000, 100_000):
        released = spec.randomize(spec.domain.decode(rng.choice(5, size=n, p=TRUTH)), rng)
        found = reconstruct(released, spec)
        widths.append(float((found.upper - found.lower).mean()))
    assert widths[1] < widths[0] / 5  # ten times by the square root


def test_a_higher_level_makes_wider_bands() -> None:
    spec = NoiseSpec(Labels(tuple("abcde")), {"name": "response", "epsilon": 1.5})
    released = spec.randomize(spec.domain.decode(np.repeat(np.arange(5), 200)), np.random.default_rng(1))
    narrow, wide = (reconstruct(released, spec, bands=b) for b in (0.5, 0.99))
    assert (wide.upper - wide.lower > narrow.upper - narrow.lower).all()


def test_a_value_that_nobody_sent_may_still_be_there() -> None:
    spec = NoiseSpec(Integers(0, 4), {"name": "keep-or-replace", "keep": 1.0})
    found = reconstruct([1, 2] * 50, spec)
    assert found.lower[0] == 0.0
    assert 1 - 0.025 ** (1 / 100) <= found.upper[0] < 0.05  # the exact bound of a zero count, and not much more
