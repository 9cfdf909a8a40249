"""The paper's searches for a group size, run where they are asked for by name [KCG12, fig. 6]."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["GAP", "brute_force", "equal_steps", "rule_based_search"]

GAP = 0.05
"""Relative loss of utility that counts as a loss: t_a of the paper."""


@dataclass(frozen=True)
class Search:
    """What a search chose, and the sizes that it had measured in that order."""

    chosen: int
    tried: tuple[int, ...]


def rule_based_search(low: int, high: int, utility: Callable[[int], float], *, gap: float = GAP) -> Search:
    """Narrow the range of group sizes by comparing the utility at its ends.

    Implements figure 6 of KCG12. Where utility falls by more than the gap from g1 to g2, the left half is searched for
    utility, else the right half for privacy; halves meet at the geometric mean g3 of g1 and g2.

    ``low`` and ``high`` are the least group size, t, and the size of the smallest class; the ``utility`` at a size is
    asked once for each size; ``gap`` is the paper's t_a.

    Notes
    -----
    Figure 6 prints the absolute difference and means a fall: where the larger size is more useful, which is chance, the
    search goes on to the right. It departs from the paper where it would never end: rounding can give g3 = g1 or
    g3 = g2 (from 10 and 11, for example), and then the range can narrow no more (errata KCG12.1). The utility of each
    size is measured once, where the paper measures g1 and g2 anew. Of the last two neighbouring sizes the same rule
    takes one. A fall inside a half that was left is never seen: with 0.9 up to 50 and 0.5 above, the range from 32 to
    100 is given up.

    Examples
    --------
    >>> rule_based_search(10, 1000, lambda size: 0.9)
    Search(chosen=1000, tried=(10, 1000, 100, 316, 562, 750, 866, 931, 965, 982, 991, 995, 997, 998, 999))
    >>> rule_based_search(10, 1000, lambda size: 0.9 if size <= 50 else 0.5).chosen
    32
    """
    _check_range(low, high)
    known: dict[int, float] = {}

    def measured(size: int) -> float:
        if size not in known:
            known[size] = utility(size)
        return known[size]

    g1, g2 = low, high
    measured(g1)
    measured(g2)
    while g1 < g2:
        g3 = round(math.sqrt(g1 * g2))
        if g3 in (g1, g2):
            break
        measured(g3)
        if measured(g1) - measured(g2) > measured(g1) * gap:
            g2 = g3
        else:
            g1 = g3
    kept = g1 if measured(g1) - measured(g2) > measured(g1) * gap else g2
    return Search(kept, tuple(known))


def brute_force(sizes: Sequence[int], utility: Callable[[int], float], *, gap: float = GAP) -> Search:
    """The largest of all sizes whose utility is within the gap of the best.

    The paper picks the best trade-off by eye; this is the rule that it describes: as private as can be, that is as
    large as can be, while utility does not fall significantly.

    Examples
    --------
    >>> brute_force([10, 20, 40, 80], {10: 0.9, 20: 0.91, 40: 0.88, 80: 0.7}.__getitem__)
    Search(chosen=40, tried=(10, 20, 40, 80))
    """
    known = {size: utility(size) for size in sizes}
    best = max(known.values())
    return Search(max(size for size, value in known.items() if best - value <= gap * abs(best)), tuple(known))


def equal_steps(low: int, high: int, count: int) -> tuple[int, ...]:
    """A range of group sizes divided into steps of equal width, both ends included.

    Examples
    --------
    >>> equal_steps(10, 40, 4)
    (10, 20, 30, 40)
    """
    _check_range(low, high)
    steps = max(1, min(count - 1, high - low))
    return tuple(dict.fromkeys(round(low + (high - low) * step / steps) for step in range(steps + 1)))


def _check_range(low: int, high: int) -> None:
    if not 1 <= low <= high:
        raise ValueError(f"there are no group sizes from {low} to {high}")
