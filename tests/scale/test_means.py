"""Means that do not hang on how numbers are cut, nor on their order."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.arrays import ExactMean

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.integers(0, 20))
def test_the_mean_is_the_exact_one_rounded_once(numbers: list[float], cut: int) -> None:
    one, two = ExactMean(), ExactMean()
    one.add(np.array(numbers[:cut]))
    two.add(np.array(numbers[cut:]))
    two.merge(one)
    assert two.mean == float(sum(map(Fraction, numbers)) / len(numbers))
