"""How far apart the numbers of a column lie, told at once or part by part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.methods.geometry.transformations import Spacing


def spacing(*parts: list[float]) -> Spacing:
    found = Spacing()
    for part in parts:
        found.add(np.array(part))
    return found


@pytest.mark.parametrize(
    ("numbers", "apart"),
    [
        ([31_000.0, 52_000.0, 33_000.0], 1000.0),
        ([0.25, 0.5, 1.75], 0.25),
        ([70.1, 70.3, 68.9], 0.2),
        ([5.0, 5.0], 0.0),
        ([], 0.0),
        ([0.25, 0.5, 0.501], 0.001),
        ([0.125, 0.25, 0.251], 0.001),
        ([(fahrenheit - 32) / 9 * 5 for fahrenheit in (71.0, 60.0, 99.0)], 5 / 9),
        ([10.0, 31 / 3, 44 / 3, 11.0], 1 / 3),
    ],
)
def test_the_spacing_of_some_numbers(numbers: list[float], apart: float) -> None:
    found = spacing(numbers)
    assert found.apart == pytest.approx(apart)
    assert not found.lost


def test_numbers_of_any_decimals_have_none_and_none_is_looked_for_again() -> None:
    found = spacing([0.1, 0.2], [np.pi, np.e], [1.0, 2.0])
    assert (found.apart, found.lost) == (0.0, True)


@given(st.lists(st.lists(st.integers(-10_000, 10_000), max_size=6), max_size=6), st.integers(0, 4), st.integers(1, 60))
def test_parts_give_what_the_whole_gives(parts: list[list[int]], decimals: int, stretch: int) -> None:
    numbers = [[stretch * number / 10**decimals for number in part] for part in parts]
    whole = [number for part in numbers for number in part]
    expected = np.gcd.reduce([round((number - whole[0]) * 10**decimals) for number in whole] or [0])
    assert spacing(*numbers).apart == pytest.approx(expected / 10**decimals)
    assert spacing(whole).apart == pytest.approx(expected / 10**decimals)


@given(st.lists(st.lists(st.integers(-10_000, 10_000), max_size=6), max_size=6), st.integers(0, 4), st.integers(1, 60))
def test_spacings_of_parts_merge_into_that_of_the_whole(parts: list[list[int]], decimals: int, stretch: int) -> None:
    numbers = [[stretch * number / 10**decimals for number in part] for part in parts]
    merged, whole = Spacing(), spacing([number for part in numbers for number in part])
    for part in numbers:
        merged.merge(spacing(part))
    assert (merged.apart, merged.lost) == (whole.apart, whole.lost)


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_numbers_too_large_for_their_decimals_have_none_however_they_are_cut(cut: int) -> None:
    numbers = [1e11, 2e11, 0.125, 0.25]
    merged = spacing(numbers[:cut])
    merged.merge(spacing(numbers[cut:]))
    assert (merged.lost, spacing(numbers[:cut], numbers[cut:]).lost, spacing(numbers).lost) == (True, True, True)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9, 1e11])
@pytest.mark.parametrize("decimals", [0, 1, 2, 3])
def test_numbers_that_went_through_coordinates_have_the_spacing_of_the_numbers(offset: float, decimals: int) -> None:
    rng = np.random.default_rng(decimals)
    for _ in range(20):
        numbers = offset + np.round(rng.integers(1, 60) * rng.integers(-9_999, 9_999, 8) / 10**decimals, decimals)
        centre, scale = numbers.mean(), numbers.std()
        there_and_back = (numbers - centre) / scale * scale + centre
        found, expected = spacing(list(there_and_back)), spacing(list(numbers))
        assert (found.apart, found.lost) == (expected.apart, expected.lost)


def test_parts_of_few_decimals_merge_into_the_spacing_of_the_whole() -> None:
    merged = spacing([0.0])
    merged.merge(spacing([-0.041, 43.46]))
    assert merged.apart == spacing([0.0, -0.041, 43.46]).apart == 0.041


@pytest.mark.parametrize("stretch", [1e-9, 1.0, 3e8])
def test_numbers_without_a_spacing_have_about_a_thousandth_of_their_quartiles_distance_however_cut(
    stretch: float,
) -> None:
    numbers = list(stretch * np.random.default_rng(5).normal(50.0, 1.0, 1_500))  # quartiles 1.35 apart
    merged = spacing(numbers[:700])
    merged.merge(spacing(numbers[700:]))
    for found in (spacing(numbers), spacing(numbers[:3], numbers[3:1_200], numbers[1_200:]), merged):
        assert found.lost
        assert found.known
        assert found.finest(None) == pytest.approx(10.0 ** np.floor(np.log10(1.35e-3 * stretch)))
        assert found.finest(1.0) == 0.0  # a step that is named counts alone


def test_numbers_far_from_nought_that_lie_on_no_places_have_none() -> None:
    found = spacing(list(1e6 + np.random.default_rng(2).normal(size=50)))
    assert found.lost
    assert found.finest(None) == pytest.approx(0.001)
