"""The approximate greatest common divisor: the paper's examples, its theorem, and where it degenerates [KCG12]."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import LevelError, OptionError
from sfumato.methods.condense.classwise import approximate_gcd, units_of


@pytest.mark.parametrize(
    ("counts", "t", "size", "units"),
    [
        ([15, 10], 5, 5, (3, 2)),  # figure 1
        ([1001, 501], 20, 500, (50, 25)),  # sec. "class-wise condensation method"
        ([20388, 6757], 1120, 6720, (18, 6)),  # Adult without '?', 10 % held out: 18 and 6 units (errata KCG12.3)
        ([45, 45, 45], 10, 40, (4, 4, 4)),  # Iris in Table 2
    ],
)
def test_the_examples_of_the_paper(counts: list[int], t: int, size: int, units: tuple[int, ...]) -> None:
    assert approximate_gcd(counts, t) == size
    assert units_of(counts, t) == units


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=8), st.integers(1, 10_000))
def test_every_class_divides_into_whole_groups_of_at_least_that_size(counts: list[int], t: int) -> None:
    t = min(t, *counts)
    size = approximate_gcd(counts, t)
    assert t <= size <= min(counts)
    for count, units in zip(counts, units_of(counts, t), strict=True):
        groups, rest = divmod(units * t, size)
        assert rest == 0
        assert groups >= 1
        assert groups * size <= count  # theorem 1
        assert count - groups * size < t


def test_without_a_common_divisor_it_is_the_tolerance() -> None:
    assert approximate_gcd([50 * 20, 23 * 20], 20) == 20


def test_one_class_is_one_group() -> None:
    assert approximate_gcd([107], 10) == 100


def test_a_class_smaller_than_the_tolerance_is_named_by_its_place_and_size() -> None:
    with pytest.raises(LevelError, match=r"class 2 of 3 has 4 records, fewer than the smallest group of 5; lower"):
        approximate_gcd([15, 4, 10], 5)


def test_a_tolerance_below_one_and_no_classes_are_refused() -> None:
    with pytest.raises(OptionError, match="at least 1"):
        approximate_gcd([5, 5], 0)
    with pytest.raises(LevelError, match="0 classes"):
        approximate_gcd([], 5)
