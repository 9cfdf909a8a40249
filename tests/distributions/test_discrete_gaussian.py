"""The exact sampler of the discrete Gaussian distribution against its probabilities."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.core.distributions.noise import draw_exact_gaussian, representable_variance
from sfumato.core.errors import OptionError
from sfumato.core.randomness import Randomness

DRAWS = 200_000


def probabilities(variance: float, reach: int) -> np.ndarray:
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * variance))
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("asked", [0.05, Fraction(1, 3), 1, 6.3, 50, 12_345.6, 10.0**9])
def test_noise_has_the_probabilities_of_the_draw_exact_gaussian(asked: float | Fraction) -> None:
    variance = representable_variance(asked)
    drawn = draw_exact_gaussian(variance, DRAWS, np.random.default_rng(5))
    reach = int(np.ceil(12 * float(variance) ** 0.5)) + 1
    expected = probabilities(float(variance), reach) * DRAWS
    seen = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=2 * reach + 1).astype(float)
    edges = np.flatnonzero(np.diff(np.floor(np.cumsum(expected) / 20)))  # merge values until 20 are expected
    merged = [np.add.reduceat(each, np.r_[0, edges + 1]) for each in (seen, expected)]
    assert merged[0].sum() == DRAWS
    statistic = ((merged[0] - merged[1]) ** 2 / np.maximum(merged[1], 1e-300)).sum()
    assert stats.chi2.sf(statistic, max(1, len(merged[0]) - 1)) > 1e-7  # false alarm 1e-7


@pytest.mark.parametrize("asked", [Fraction(1, 10**4), 0.1, 7, 1e3, 2.0**24, 2.0**24 + 1, 10**12 + 1, 2.0**52])
def test_a_variance_is_never_rounded_down(asked: float | Fraction) -> None:
    found = representable_variance(asked)
    assert Fraction(asked) <= found <= Fraction(asked) * (1 + Fraction(1, 1 << 7)) + Fraction(1, 1 << 17)
    assert draw_exact_gaussian(found, 10, np.random.default_rng(1)).shape == (10,)


def test_noise_that_would_hide_every_count_is_refused() -> None:
    with pytest.raises(OptionError, match="larger epsilon"):
        representable_variance(2.0**52 + 1)


def test_release_noise_comes_from_the_cryptographic_generator_and_differs_each_time() -> None:
    variance = representable_variance(100)
    first, second = (draw_exact_gaussian(variance, 50, Randomness().generator("noise")) for _ in range(2))
    assert (first != second).any()


def test_products_stay_exact_at_the_ends_of_the_grid() -> None:
    """The square of the largest numerator that a proposal can reach fits 63 bits."""
    for variance in (Fraction(1 << 24), Fraction(1 << 24, 1 << 17), Fraction((1 << 18) - 1, 1 << 17), Fraction(1, 7)):
        s, q = variance.numerator, variance.denominator
        t = int((s // q) ** 0.5) + 1
        assert max(32 * t * q * t - s, s) ** 2 < 2**63
        assert 2 * s * q * t * t * 2**10 < 2**63
    largest = 2**26  # standard deviation, of a variance that is its square
    assert (31 * largest) ** 2 < 2**63
    assert 2 * largest**2 * 2**9 < 2**63
