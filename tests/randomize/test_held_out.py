"""The iteration goes on where records that it has not seen become likelier, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from sfumato.core.distributions.domains import Integers
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.survey.reconstruct import reconstruct

PLACES = np.arange(100)
SPIKES = np.isin(PLACES, [10, 20, 40, 60]) * 1.0
SMOOTH = {
    "Gaussian": stats.norm(50, 14).pdf(PLACES),
    "two hills": stats.norm(30, 6).pdf(PLACES) + stats.norm(70, 9).pdf(PLACES),
    "falling": np.exp(-PLACES / 15),
    "even": (PLACES >= 20) * (PLACES < 70) * 1.0,
}
NOISES = [{"name": "laplace", "scale": 9}, {"name": "uniform", "reach": 20}, {"name": "laplace", "scale": 3}]


def _released(truth: NDArray[Any], law: dict[str, Any], records: int) -> tuple[NoiseSpec, Any]:
    spec, rng = NoiseSpec(Integers(0, 99), law), np.random.default_rng(5)
    codes = rng.choice(100, records, p=truth / truth.sum())
    return spec, spec.decode_output(spec.operator.randomize(codes, rng))


@pytest.mark.parametrize("law", NOISES, ids=["wide", "uniform", "narrow"])
def test_values_on_few_places_are_told_more_sharply_than_where_the_likelihood_stop_ends(law: dict[str, Any]) -> None:
    spec, released = _released(SPIKES, law, 20_000)
    early, later = reconstruct(released, spec, method="em", stop="likelihood"), reconstruct(released, spec)
    errors = [float(np.abs(found.probability - SPIKES / 4).sum()) for found in (early, later)]
    assert (early.stopped_by, later.stopped_by) == ("likelihood", "held-out")
    assert later.iterations > early.iterations
    assert errors[1] < 0.85 * errors[0]


@pytest.mark.parametrize("law", NOISES, ids=["wide", "uniform", "narrow"])
@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_distributions_stop_where_the_likelihood_stop_does(name: str, law: dict[str, Any]) -> None:
    spec, released = _released(SMOOTH[name], law, 5_000)
    early = reconstruct(released, spec, method="em", stop="likelihood")
    later = reconstruct(released, spec, method="em", stop="held-out")
    assert later.iterations == early.iterations
    assert later.stopped_by == "likelihood"
    np.testing.assert_array_equal(later.probability, early.probability)


def test_fewer_records_than_parts_end_at_the_likelihood_stop() -> None:
    spec, released = _released(SPIKES, NOISES[0], 4)
    assert reconstruct(released, spec, method="em", intervals=2, least=0).stopped_by == "likelihood"
