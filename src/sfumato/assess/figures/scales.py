"""Round numbers along an axis, and how they are written."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

__all__ = ["numbers", "percents", "round_step", "ticks"]


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[float]:
    """Multiples of a round number from one value to another, at most so many and one."""
    step = round_step((high - low) / most or 1.0, whole)
    return [step * place for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def percents(shares: Sequence[float]) -> list[str]:
    """Shares as they stand at an axis."""
    return [f"{100 * share:.3g} %" for share in shares]


def numbers(values: Sequence[float]) -> list[str]:
    """Numbers that differ by a round step, with as many digits as that takes."""
    step = min((after - before for before, after in itertools.pairwise(values)), default=1.0)
    largest = max(map(abs, values), default=0.0)
    if largest >= 1e7 or 0.0 < step < 1e-4:
        return [f"{value:.6g}".replace("-", "\u2212") for value in values]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    digits += digits > 0 and round(step * 10**digits, 6) % 1 > 0
    whole = round(step, 9) % 1 > 0 and not digits
    return [f"{value:.{digits + whole}f}".replace("-", "\u2212") for value in values]


def round_step(least: float, whole: bool = False) -> float:
    """Smallest round number that is no less: 1, 2, 2.5 or 5 times a power of ten.

    Examples
    --------
    >>> round_step(0.013), round_step(21.0), round_step(21.0, whole=True), round_step(0.2, whole=True)
    (0.02, 25.0, 50.0, 1.0)
    """
    least = max(least, 1.0) if whole else least
    power = math.floor(math.log10(least))
    ladder = (1.0, 2.0, 5.0, 10.0) if whole else (1.0, 2.0, 2.5, 5.0, 10.0)
    digit = next((digit for digit in ladder if digit * 10.0**power >= least * (1 - 1e-12)), 10.0)
    return float(f"{digit:g}e{power}")
