"""Bins whose edges are round numbers: neither an extreme nor anybody's cell decides where one ends."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.dates import unit_of
from sfumato.tables.schema import Field, Kind

__all__ = ["bin_edges", "round_step"]

_MOST = 40
_SECOND, _DAY = 1_000_000, 86_400_000_000  # microseconds
_CLOCK = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200)  # seconds


def bin_edges(values: NDArray[np.float64], field: Field) -> NDArray[np.float64]:
    """Lay some forty bins at most between the 0.5 % and the 99.5 % quantile, at multiples of a round step.

    Whole numbers stand in the middle of their bins, so edges lie one half below a multiple.

    Parameters
    ----------
    values : ndarray
        At least one number, all finite.
    field : Field
        The column: its kind, and of dates the unit that the values are counted in.
    """
    low, high = (float(edge) for edge in np.quantile(values, [0.005, 0.995]))
    wide = high - low if high > low else abs(low) / 2 or 1.0
    wide = max(wide, 1e-9 * max(abs(low), abs(high)))  # finer steps would be lost in rounding
    whole = field.kind is not Kind.CONTINUOUS
    step = _date_step(wide / _MOST, unit_of(field)) if field.kind is Kind.DATE else round_step(wide / _MOST, whole)
    half = 0.5 if whole else 0.0
    first, last = math.floor((low + half) / step), math.floor((high + half) / step) + 1
    return np.asarray(step * (first + np.arange(last - first + 1)) - half)


def round_step(least: float, whole: bool = False) -> float:
    """Give the smallest round number that is no less: 1, 2, 2.5 or 5 times a power of ten.

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


def _date_step(least: float, unit: int) -> float:
    """Choose a step that a calendar or a clock has, in the unit that dates are counted in."""
    if unit >= _DAY or least * unit > _CLOCK[-1] * _SECOND:
        day = _DAY / unit
        return max(1.0, round_step(least / day, whole=True) * day)
    if unit >= _SECOND or least * unit > _SECOND:
        return next(seconds for seconds in _CLOCK if seconds * _SECOND >= least * unit) * _SECOND / unit
    return round_step(least, whole=True)
