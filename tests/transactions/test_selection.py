"""Intervals of supports that are shown because they passed a threshold hold the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core.distributions.operators import TransactionOperator
from sfumato.core.itemsets.mining import frequent_itemsets
from sfumato.transactions.estimate import edges, estimate_itemsets, selected_ends, simultaneous_deviations
from tests.transactions.slow_miner import draw_transactions

DRAWS = 40_000
FAR = 5.0 * np.sqrt(0.05 * 0.95 / DRAWS)  # deviations of a share of DRAWS draws; exceeded by chance once in 3e6


@pytest.mark.parametrize("above", [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize(("slope", "rest"), [(0.0, 100.0), (0.5, 50.0)])
def test_of_the_estimates_that_passed_the_threshold_95_percent_have_the_truth_inside(
    above: float, slope: float, rest: float
) -> None:
    threshold = 100.0
    truth = threshold + 10.0 * above
    rng = np.random.default_rng(7)
    passed = np.empty(0)
    while len(passed) < DRAWS:
        drawn = truth + rng.standard_normal(400_000) * np.sqrt(slope * truth + rest)
        passed = np.append(passed, drawn[drawn >= threshold])
    estimates = passed[:DRAWS]
    ends = selected_ends(estimates, threshold, slope, np.full(DRAWS, rest), most=1e4, candidates=1000.0)
    inside = np.mean((ends[0] <= truth) & (truth <= ends[1]))
    # the simultaneous bound takes up to half a percent of all draws, at truths that pass seldom a larger share of these
    assert 0.95 - FAR - (0.01 if above < -1.5 else 0.0) <= inside <= 0.955 + FAR
    assert (ends[0] <= estimates).all()
    assert (estimates <= ends[1]).all()


def test_far_above_the_threshold_it_is_the_interval_of_a_normal_estimate() -> None:
    low, high = selected_ends(np.array([1000.0]), 100.0, 0.0, np.array([100.0]), most=1e4, candidates=10.0)
    assert low[0] == pytest.approx(1000 - 10 * 2.0047, abs=0.01)  # 95.5 %, for 0.5 % go to the bound at the lower end
    assert high[0] == pytest.approx(1000 + 10 * 2.0047, abs=0.01)


def test_just_above_the_threshold_the_lower_end_stops_at_the_simultaneous_bound() -> None:
    low, _ = selected_ends(np.array([100.001]), 100.0, 0.0, np.array([1.0]), most=1e4, candidates=1e6)
    assert low[0] == pytest.approx(100.0 - simultaneous_deviations(1e6), abs=0.01)
    lower, upper = edges(np.array([-40.0, -3.0, 0.0, 9.0]), 0.95)
    assert lower[:3].tolist() == [40.0, 3.0, 0.0]  # the region begins at the threshold
    assert (upper > lower).all()
    assert lower[3] == pytest.approx(-upper[3])


def test_sets_that_noise_lifted_over_the_threshold_have_their_support_inside() -> None:
    law, threshold = TransactionOperator("flip", 12, keep=0.7, insert=0.2), 0.09
    transactions = draw_transactions(3, 3000)
    supports = frequent_itemsets(transactions, 1, longest=2)
    true = dict(zip(supports.as_tuples(), supports.counts / 3000, strict=True))
    inside = []
    for seed in range(60):
        found = estimate_itemsets(
            law, law.randomize(transactions, np.random.default_rng(seed)), None, threshold, longest=2
        )
        for place, some in enumerate(found.sets):
            if true[some] < threshold - found.deviation[place]:
                inside.append(found.low[place] <= true[some] <= found.high[place])
    assert len(inside) > 40
    assert np.mean(inside) > 0.85  # the usual intervals hold 52 % of these
