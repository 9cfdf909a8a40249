"""Numbers as they are written: 0.1 is one tenth, and not the double beside it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

__all__ = ["decimals", "exact", "short"]

_MOST = 15  # decimals to which doubles are rounded exactly
_WHOLE = 2.0**53  # whole numbers below it are doubles


def exact(number: float) -> Fraction:
    """Give the fraction that a number writes out.

    Examples
    --------
    >>> exact(0.1)
    Fraction(1, 10)
    """
    return Fraction(Decimal(repr(float(number))))


def short(number: float) -> int | float:
    """Give a whole number without its fraction.

    Examples
    --------
    >>> short(50.0), short(0.5)
    (50, 0.5)
    """
    return int(number) if abs(number) < _WHOLE and number == int(number) else float(number)


def decimals(*numbers: float) -> int | None:
    """Give the decimals that all the numbers need, or none where rounding to them would not be exact.

    Examples
    --------
    >>> decimals(0.25, 10.0), decimals(1e-20)
    (2, None)
    """
    needed = max(-min(0, int(Decimal(repr(number)).normalize().as_tuple().exponent)) for number in numbers)
    return needed if needed <= _MOST else None
