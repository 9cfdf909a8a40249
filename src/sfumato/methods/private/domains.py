"""Bounds and categories that nobody declared, bought for a part of the budget.

Bounds come from noisy counts on a grid that does not depend on the data. Categories are those whose noisy counts exceed
a threshold that a category of one person alone exceeds with a probability of at most a part of delta [Korolova et al.
2009].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.noise import representable_variance
from sfumato.methods.private.ledger import BoundCounts, CategoryCounts
from sfumato.methods.private.people import Counter, People

__all__ = ["LOG_GRID", "buy_bounds", "buy_categories", "category_threshold"]

_POWERS = 2.0 ** np.arange(-20, 51)
LOG_GRID = np.concatenate([-_POWERS[::-1], [0.0], _POWERS])
"""Edges of the intervals in which numbers are counted: 0, and powers of 2 on both sides."""

_SURE_SD = 4.5  # of the noise: an empty interval has more with a probability below 4e-6


def buy_bounds(counter: Counter, numbers: Floats, grid: Floats, rho: float) -> tuple[float, float] | None:
    """Ends of the intervals of a grid that hold people beyond doubt; None if none does.

    Numbers beyond the grid count in its outermost intervals, cells without a number in none.
    """
    known = np.flatnonzero(np.isfinite(numbers))
    cells = (np.searchsorted(grid, numbers[known], side="right") - 1).clip(0, len(grid) - 2)
    people = counter.people
    assert isinstance(people, People)  # all rows at once
    counts = people.counts(cells, len(grid) - 1, known, apart=True)
    noisy, sd = counter.noisy(BoundCounts, counts, rho)
    held = np.flatnonzero(noisy > _SURE_SD * sd)
    return (float(grid[held[0]]), float(grid[held[-1] + 1])) if len(held) else None


def buy_categories(counter: Counter, codes: Ints, labels: Sequence[Any], rho: float, delta: float) -> tuple[Any, ...]:
    """Labels, in their alphabetical order, whose noisy count exceeds the threshold; cells without one are -1.

    People of all levels are counted together, each by their weight, so that a label of one person counts at most one.
    """
    people, known = counter.people, np.flatnonzero(codes >= 0)
    assert isinstance(people, People)  # all rows at once
    counts = people.counts(codes[known], len(labels), known)
    present = np.flatnonzero(counts)
    noisy = counter.ledger.release(CategoryCounts(counts[present], people.unit), rho)
    threshold = category_threshold(people.most_rows, rho, delta, people.unit)
    return tuple(sorted((labels[each] for each in present[noisy > threshold].tolist()), key=str))


def category_threshold(most: int, rho: float, delta: float, unit: int) -> float:
    """Count that none of the labels of one person, up to a number of them, exceeds, but for a probability of delta.

    One of the person's labels counts at most one person. The noise is whole numbers of ``unit``-ths of a person, whose
    tail at m is at most that of the normal distribution at m - 1 [Canonne, Kamath and Steinke 2020, proposition 25].
    """
    from scipy.special import ndtri

    variance = representable_variance(Fraction(unit**2) / (2 * Fraction(rho)))  # as the ledger draws it
    return (unit + 2 + math.ceil(math.sqrt(variance) * -float(ndtri(delta / most)))) / unit
