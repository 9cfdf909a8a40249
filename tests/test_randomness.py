from __future__ import annotations

import numpy as np
import pytest

from sfumato.core.randomness import Mode, Randomness


def test_without_a_seed_two_sources_and_two_purposes_differ() -> None:
    draws = [Randomness().generator(purpose).random(4).tolist() for purpose in ("a", "a", "b")]
    assert len({tuple(draw) for draw in draws}) == 3
    assert Randomness().mode is Mode.RELEASE


def test_release_randomness_is_a_cryptographic_generator() -> None:
    generator = Randomness().generator("x")
    assert isinstance(generator, np.random.Generator)
    assert type(generator.bit_generator).__name__ == "ChaCha"


def test_a_seed_repeats_each_purpose_and_keeps_them_apart() -> None:
    first, again, other = (Randomness(5).generator(purpose).random(4) for purpose in ("a", "a", "b"))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


@pytest.mark.parametrize("seed", [None, 12345])
def test_the_repr_never_shows_the_seed(seed: int | None) -> None:
    assert "12345" not in repr(Randomness(seed))


def test_uniform_draws_pass_a_chi_square_test() -> None:
    counts = np.histogram(Randomness().generator("x").random(200_000), bins=100, range=(0, 1))[0]
    statistic = ((counts - 2000.0) ** 2 / 2000.0).sum()
    assert statistic < 200.0  # 99 degrees of freedom: beyond 10^-8
