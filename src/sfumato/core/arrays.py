"""Arrays by what they hold, the number of persons in them, and means that are rounded once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "ExactMean", "Floats", "Ints", "count_persons", "number_of_persons"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def count_persons(codes: Ints, persons: Ints | None, size: int = 0) -> Ints:
    """Number of persons with each of ``size`` codes, or more if the codes go further.

    Negative codes are ignored. Without ``persons`` each row is one.

    Examples
    --------
    >>> count_persons(np.array([0, 0, 1, -1]), None, 3).tolist()
    [2, 1, 0]
    >>> count_persons(np.array([0, 0, 1, -1]), np.array([7, 7, 7, 8]), 3).tolist()
    [1, 1, 0]
    """
    there = codes >= 0
    held = codes[there]
    if persons is not None and len(held):
        whose, width = persons[there], max(size, int(held.max()) + 1)
        if int(whose.min()) < 0 or int(whose.max()) >= 2**31:  # hashes
            whose = np.unique(whose, return_inverse=True)[1]
        if width == 1:
            return np.array([np.count_nonzero(np.bincount(whose))])
        pairs = np.sort(whose * width + held)
        held = pairs[np.append(True, pairs[1:] != pairs[:-1])] % width
    return np.bincount(held, minlength=size).astype(np.int64)


def number_of_persons(persons: Ints | None, rows: Bools | Ints) -> int:
    """Number of persons in some rows, given by a mask or by their indices. Without ``persons`` each row is one."""
    if persons is None:
        return int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
    return len(np.unique(persons[rows]))


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
