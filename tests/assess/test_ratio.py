"""The nearest-neighbour distance ratio: the three fixed cases and a slow loop."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.assess.risk.closest import NEIGHBOUR_RATIO, distance_ratio
from tests.assess.cases import study
from tests.assess.privacy_studies import case, found, numbers, overlap, redraw, value
from tests.examples import at_length

NAME = "neighbour-distance-ratio"


def test_a_copy_reaches_the_worst_value_also_where_rows_have_twins() -> None:
    assert value(NEIGHBOUR_RATIO, case("copy"), NAME) == 0.0
    twins = numbers(np.repeat(np.random.default_rng(1).normal(size=(30, 2)), 2, axis=0))
    assert value(NEIGHBOUR_RATIO, study(twins, twins), NAME) == 0.0


@pytest.mark.parametrize("seed", [0, 1, *at_length(2, 3)])
def test_a_redraw_is_like_the_original_and_like_people_held_out(seed: int) -> None:
    finding = found(NEIGHBOUR_RATIO, redraw(seed))[NAME]
    assert overlap(finding)
    assert finding.value == pytest.approx(finding.baseline, abs=0.1)


def test_a_noisy_copy_is_nearer_to_its_own_person_than_to_any_other() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(500, 5))
    finding = found(NEIGHBOUR_RATIO, study(numbers(rows), numbers(rows + rng.normal(scale=0.01, size=rows.shape))))[
        NAME
    ]
    assert finding.value is not None
    assert finding.baseline is not None
    assert finding.value < 0.1 < finding.baseline


def test_ratios_agree_with_a_slow_loop() -> None:
    rows, queries = np.random.default_rng(3).normal(size=(50, 3)), np.random.default_rng(4).normal(size=(20, 3))
    apart = np.sort(np.linalg.norm(rows[None] - queries[:, None], axis=2), axis=1)
    np.testing.assert_allclose(distance_ratio(rows, queries), apart[:, 0] / apart[:, 1], rtol=1e-12)


def test_it_warns_that_passing_proves_nothing() -> None:
    assert "proves nothing" in found(NEIGHBOUR_RATIO, case("redraw"))[NAME].meaning
