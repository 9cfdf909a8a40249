"""The group size that divides every class: the approximate greatest common divisor [KCG12, fig. 5, step 1]."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.errors import LevelError, OptionError

__all__ = ["approximate_gcd", "units_of"]


def approximate_gcd(counts: Sequence[int], tolerance: int) -> int:
    """Give the largest multiple of t into which every class divides, but for less than t records of each group.

    Implements g* = t * GCD(floor(|C_1|/t), ..., floor(|C_m|/t)) [KCG12, fig. 5, theorem 1]: class i makes
    ``units_of(counts, t)[i] * t / g*`` groups, each of at least g* records.

    Parameters
    ----------
    counts : sequence of int
        Records of each class.
    tolerance : int
        The paper's t: the smallest group size, and the unit in which classes are counted. It sets t to 5 to 20 % of
        the smallest class.

    Raises
    ------
    LevelError
        Where a class is smaller than t: it has no unit, so that the divisor would ignore it (errata KCG12.2).

    Notes
    -----
    Where the numbers of units have no common divisor the result is t itself, and it jumps as counts or t change by one
    (50 and 25 units give 25 t, 50 and 24 give 2 t, 50 and 23 give t). Of one class it is all its units: one group, or
    nearly so. It is never below t and never above the smallest class.

    Examples
    --------
    >>> approximate_gcd([15, 10], 5), approximate_gcd([1001, 501], 20)
    (5, 500)
    """
    return tolerance * math.gcd(*units_of(counts, tolerance))


def units_of(counts: Sequence[int], tolerance: int) -> tuple[int, ...]:
    """Give how many units of t records each class has, floor(|C_i|/t) [KCG12, fig. 5, step 1-2].

    Examples
    --------
    >>> units_of([1001, 501], 20)
    (50, 25)
    """
    if tolerance < 1:
        raise OptionError("the tolerance t must be a whole number of records, at least 1; try a tenth of a class")
    if not len(counts):
        raise LevelError("there are 0 classes; bring records of at least one")
    smallest = min(range(len(counts)), key=lambda place: counts[place])
    if counts[smallest] < tolerance:
        raise LevelError(
            f"class {smallest + 1} of {len(counts)} has {counts[smallest]} records, fewer than the smallest group of "
            f"{tolerance}; lower the level or the tolerance, or pool classes"
        )
    return tuple(int(count) // tolerance for count in counts)
