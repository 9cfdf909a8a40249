"""Means of numbers that arrive in parts, without intermediate rounding."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["ExactMean"]

_BITS, _LOW = 53, 26  # of a double's whole part, and of the lower piece that it is added up in
_UNIT = 1126  # every double is a whole number of times 2 to minus this


@dataclass
class ExactMean:
    """Mean of all added numbers, rounded once.

    ``total`` is their sum as a whole number of the smallest units.

    Examples
    --------
    >>> one, two = ExactMean(), ExactMean()
    >>> one.add(np.array([1e16, 1.0]))
    >>> two.add(np.array([-1e16, 2.0]))
    >>> one.merge(two)
    >>> one.mean
    0.75
    """

    total: int = 0
    count: int = 0

    def add(self, numbers: NDArray[np.float64]) -> None:
        """Add numbers; non-finite ones are ignored."""
        numbers = numbers[np.isfinite(numbers)]
        part, exponent = np.frexp(numbers)
        whole = np.ldexp(part, _BITS).astype(np.int64)
        for each in np.unique(exponent).tolist():
            some = whole[exponent == each]
            sums = (int((some >> _LOW).sum()) << _LOW) + int((some & ((1 << _LOW) - 1)).sum())
            self.total += sums << (each - _BITS + _UNIT)
        self.count += len(numbers)

    def merge(self, other: ExactMean) -> None:
        """Add the numbers of another mean."""
        self.total, self.count = self.total + other.total, self.count + other.count

    @property
    def mean(self) -> float:
        """The mean."""
        return float(Fraction(self.total, self.count << _UNIT))
