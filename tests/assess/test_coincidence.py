"""What an independent redraw shows by coincidence, from how often values recur, against populations that are known."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.assess.attacks.rare_combinations import MOST_PERSONS, REPLICATES, RecurrenceRates, as_tries
from tests.examples import at_length


def people(rates: list[float], values: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Frequency of each person's value, and the rate of that value."""
    rng = np.random.default_rng(seed)
    rate = np.repeat(rates, values)
    frequencies = rng.poisson(rate)
    return np.repeat(frequencies, frequencies), np.repeat(rate, frequencies)


POPULATIONS = [[0.5], [2.0], [0.05, 3.0], [0.2, 1.0, 8.0]]


@pytest.mark.parametrize("rates", POPULATIONS)
@pytest.mark.parametrize("ratio", [0.3, 1.0, *at_length(2.0)])
def test_chances_are_those_of_the_population(rates: list[float], ratio: float) -> None:
    """Of 40,000 values of each rate, whose estimates are off by less than 0.01 with ratios up to 1."""
    frequencies, _ = people(rates, 40_000, 1)
    found = RecurrenceRates.fit(frequencies, np.random.default_rng(2))
    rate = np.array(rates)
    alone, both = rate * np.exp(-rate), rate * np.exp(-ratio * rate)
    near = 0.03 if ratio <= 1.0 else 0.06
    shown = float(alone @ (1 - np.exp(-ratio * rate)) / alone.sum())
    assert found.unique_shown(ratio)[0] == pytest.approx(shown, abs=near)
    assert found.unique_in_both(ratio)[0] == pytest.approx(float(both @ alone / both.sum()), abs=near)
    assert found.person_shown(ratio)[0] == pytest.approx(
        float(rate @ (1 - np.exp(-ratio * rate)) / rate.sum()), abs=near
    )


def test_values_of_which_none_recurs_are_not_shown_by_coincidence() -> None:
    found = RecurrenceRates.fit(np.ones(3_000, dtype=np.int64), np.random.default_rng(1))
    assert found.unique_shown(1.0).max() < 1e-6
    assert found.unique_in_both(1.0).max() < 1e-6
    assert found.person_shown(3.0).max() < 1e-6


def test_nobody_has_no_chance() -> None:
    for frequencies in (np.empty(0, dtype=np.int64), np.full(50, -1), np.zeros(5, dtype=np.int64), np.full(900, 30)):
        found = RecurrenceRates.fit(frequencies, np.random.default_rng(1))
        assert found.unique_shown(1.0).tolist() == [0.0] * (1 + REPLICATES)


def test_values_that_many_hold_are_left_out() -> None:
    frequencies, _ = people([0.8], 5_000, 3)
    more = np.concatenate([frequencies, np.full(5_000, MOST_PERSONS + 1)])
    first, second = (RecurrenceRates.fit(each, np.random.default_rng(4)) for each in (frequencies, more))
    np.testing.assert_array_equal(first.weights, second.weights)


@pytest.mark.parametrize("rates", POPULATIONS[:3])
def test_replicates_spread_as_estimates_do(rates: list[float]) -> None:
    """Over 60 samples: their deviation is known to a tenth, and the replicates' to a fourth."""
    found = [
        RecurrenceRates.fit(people(rates, 600, seed)[0], np.random.default_rng(seed)).unique_shown(1.0)
        for seed in range(60)
    ]
    among = float(np.std([each[0] for each in found]))
    inside = float(np.mean([each[1:].std(ddof=1) for each in found]))
    assert 0.6 * among < inside < 1.8 * among


def test_an_estimate_counts_as_so_many_tries_as_have_its_variance() -> None:
    tries = as_tries(0.2, 400, 0.0)
    assert tries.share == pytest.approx(0.2)
    assert tries.of == pytest.approx(400)
    tries = as_tries(0.2, 400, 0.0012)
    assert tries.share * (1 - tries.share) / tries.of == pytest.approx(0.2 * 0.8 / 400 + 0.0012)
    assert as_tries(0.0, 400, 0.0).of == as_tries(1.0, 400, 0.0).of == 400
    assert as_tries(0.5, 400, 9.0).of == 1.0
