"""Exact numbers: 0.1 is one tenth and not the double beside it, and a coin compares whole numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, SchemaError

__all__ = ["FINEST", "check_codes", "check_outputs", "decimals", "exact", "share", "short", "toss"]

_MOST = 15  # decimals to which doubles are rounded exactly
_WHOLE = 2.0**53  # whole numbers below it are doubles


def exact(number: float) -> Fraction:
    """Fraction that a number writes out.

    Examples
    --------
    >>> exact(0.1)
    Fraction(1, 10)
    """
    return Fraction(Decimal(repr(float(number))))


def short(number: float) -> int | float:
    """A whole number without its fraction.

    Examples
    --------
    >>> short(50.0), short(0.5)
    (50, 0.5)
    """
    return int(number) if abs(number) < _WHOLE and number == int(number) else float(number)


def decimals(*numbers: float) -> int | None:
    """Decimals that all the numbers need, or none where rounding to them would not be exact.

    Examples
    --------
    >>> decimals(0.25, 10.0), decimals(1e-20)
    (2, None)
    """
    needed = max(-min(0, int(Decimal(repr(number)).normalize().as_tuple().exponent)) for number in numbers)
    return needed if needed <= _MOST else None


FINEST = 2**53
"""Chances are multiples of 1/FINEST, or simpler fractions: every one of them is a double, and is what is drawn."""

_SIMPLE = 2**20


def share(name: str, probability: float) -> Fraction:
    """Fraction that a probability is taken as: the simple one that it writes out, else a multiple of 2^-53.

    Examples
    --------
    >>> share("keep", 0.2)
    Fraction(1, 5)
    >>> share("keep", 2.0**-60)
    Fraction(0, 1)
    """
    if isinstance(probability, bool) or not isinstance(probability, int | float) or not 0 <= probability <= 1:
        raise OptionError(f"{name} must be a probability from 0 to 1")
    simple = Fraction(probability).limit_denominator(_SIMPLE)
    return simple if float(simple) == probability else Fraction(round(Fraction(probability) * FINEST), FINEST)


def toss(chance: Fraction, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Say yes with exactly this chance, ``count`` times."""
    drawn = rng.integers(0, chance.denominator, size=count)
    return np.asarray(drawn < chance.numerator, dtype=np.bool_)


def check_codes(codes: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Codes as an array, if all of them are places of the domain."""
    return _inside(codes, 0, size, "values lie outside the domain of the noise")


def check_outputs(outputs: NDArray[np.int64], possible: range) -> NDArray[np.int64]:
    """Outputs as an array, if the law can have made all of them."""
    return _inside(outputs, possible.start, possible.stop, "outputs cannot have come out of this noise law")


def _inside(codes: NDArray[np.int64], low: int, stop: int, words: str) -> NDArray[np.int64]:
    array = np.asarray(codes)
    if array.dtype.kind not in "iu" and array.size:
        raise SchemaError(f"{array.size} codes are not whole numbers; encode them with the domain first")
    array = array.astype(np.int64)
    outside = int(((array < low) | (array >= stop)).sum())
    if outside:
        raise SchemaError(f"{outside} {words}; check that data and specification belong together")
    return array
