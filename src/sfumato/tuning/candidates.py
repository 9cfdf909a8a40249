"""What is tried: methods that have a size, and a geometric grid of sizes from small ones up.

The paper's searches for a group size, run where they are asked for by name [KCG12, fig. 6].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sfumato.core.errors import OptionError, closest_name, shown
from sfumato.methods.catalogue import make_mechanism, parameters_of_method
from sfumato.methods.protocol import Mechanism

__all__ = [
    "GAP",
    "TUNED",
    "USUAL",
    "Candidate",
    "brute_force",
    "check_methods",
    "equal_steps",
    "first_tried",
    "grid",
    "rule_based_search",
]

TUNED = {"chain": "leaf", "condense": "k", "classwise": "k", "condense-paper": "k", "private": "epsilon"}
"""Methods that are tried, the simplest first, and the parameter that is their size; epsilon is that of the policy."""

USUAL = ("chain", "private", "condense", "classwise")
"""Methods that are tried if none is named, as far as they apply to the table."""

_SMALL = (3, 5)
_EFFORT = "fast"  # of grouping: a tenth of the time, so that ten times as much can be tried
_MIDDLE = {"chain": 80, "condense": 160, "classwise": 160, "condense-paper": 160}
"""Sizes that the measurements of benchmarks/results/frontier.md make the likeliest; they are tried first."""


@dataclass(frozen=True, order=True)
class Candidate:
    """A method and its size: the leaf of a chain, or k."""

    method: str
    size: float  # a whole number, but for epsilon
    delta: float | None = None  # of a proof
    private_bounds: bool = False  # whether a proof buys domains that are not declared

    @property
    def parameter(self) -> str:
        """Name of the size in `sanitize`."""
        return TUNED[self.method]

    @property
    def words(self) -> str:
        """How it is called."""
        return f"{self.method}, {self.parameter} {self.size:g}"

    @property
    def rank(self) -> tuple[int, float]:
        """Order in which candidates stand: by method, then by size."""
        return list(TUNED).index(self.method), self.size

    @property
    def options(self) -> tuple[str, ...]:
        """Words of the command line."""
        quick = ("--effort", _EFFORT) if self._takes_effort else ()
        proof = () if self.delta is None else ("--delta", f"{self.delta:g}")
        bought = ("--private-bounds",) if self.private_bounds else ()
        return "--method", self.method, f"--{self.parameter}", f"{self.size:g}", *proof, *bought, *quick

    def mechanism(self, k: int | None) -> Mechanism:
        """Mechanism that it is; ``k`` is the floor of a chain."""
        parameters: dict[str, float | str] = {self.parameter: self.size}
        if self.delta is not None:
            parameters |= {"delta": self.delta, "private_bounds": self.private_bounds}
        if self._takes_effort:
            parameters["effort"] = _EFFORT
        if self.method == "chain" and k is not None:
            parameters["k"] = k
        return make_mechanism(self.method, parameters)

    @property
    def _takes_effort(self) -> bool:
        return "effort" in parameters_of_method(self.method)

    @property
    def promise(self) -> tuple[bool, float]:
        """Whether it takes groups, which are slower, and how far it is from what did best; the least is tried first."""
        middle = _MIDDLE.get(self.method, self.size)
        return self.method not in ("chain", "private"), max(self.size, middle) / min(self.size, middle)


def check_methods(methods: Iterable[str] | str | None) -> tuple[str, ...] | None:
    """Methods that were named, each of which has a size; None if none was."""
    if methods is None:
        return None
    named = [each.strip() for each in (methods.split(",") if isinstance(methods, str) else methods)]
    for each in named:
        if each not in TUNED:
            meant = closest_name(each, TUNED)
            hint = f"did you mean {meant!r}?" if meant is not None else f"choose from {', '.join(TUNED)}"
            raise OptionError(f"no size is tuned of {shown(each)}; {hint}")
    if not named:
        raise OptionError(f"no method is named; choose from {', '.join(TUNED)}")
    return tuple(dict.fromkeys(named))


def grid(low: int, high: int) -> tuple[int, ...]:
    """Sizes 3, 5, 10, 20, 40 and so on from the least to the largest that is allowed, the least among them.

    Examples
    --------
    >>> grid(3, 100), grid(12, 50), grid(60, 50)
    ((3, 5, 10, 20, 40, 80), (12, 20, 40), ())
    """
    sizes = list(_SMALL)
    while (size := 10 * 2 ** (len(sizes) - len(_SMALL))) <= high:
        sizes.append(size)
    return tuple(sorted({low, *(size for size in sizes if low <= size <= high)})) if low <= high else ()


def first_tried(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates in the order in which they are tried, so that a search that is stopped has seen the likeliest."""
    return sorted(candidates, key=lambda each: each.promise)


GAP = 0.05
"""Relative loss of utility that counts as a loss: t_a of the paper."""


@dataclass(frozen=True)
class Search:
    """What a search chose, and the sizes that it had measured in that order."""

    chosen: int
    tried: tuple[int, ...]


def rule_based_search(low: int, high: int, utility: Callable[[int], float], *, gap: float = GAP) -> Search:
    """Narrow the range of group sizes by comparing the utility at its ends.

    Implements figure 6 of KCG12. If utility falls from g1 to g2 by more than the gap, a share of its absolute value at
    g1, the left half is searched for utility, else the right half for privacy; halves meet at the geometric mean g3.

    ``low`` and ``high`` are the least group size, t, and the size of the smallest class; the ``utility`` at a size is
    asked once for each size; ``gap`` is the paper's t_a.

    Notes
    -----
    Figure 6 prints the absolute difference and means a fall: where the larger size is more useful, which is chance, the
    search goes on to the right. The paper's utility is an accuracy. Where it can be negative, as variance explained
    can, the gap is a share of its absolute value; else every size would count as a fall. The search departs from the
    paper where that would never end: rounding can give g3 = g1 or g3 = g2 (from 10 and 11, for example), and then the
    range can narrow no more (errata KCG12.1). The utility of each size is measured once, where the paper measures g1
    and g2 anew. Of the last two neighbouring sizes the same rule takes one. A fall inside a half that was left is never
    seen: with 0.9 up to 50 and 0.5 above, the range from 32 to 100 is given up.

    Examples
    --------
    >>> rule_based_search(10, 1000, lambda size: 0.9)
    Search(chosen=1000, tried=(10, 1000, 100, 316, 562, 750, 866, 931, 965, 982, 991, 995, 997, 998, 999))
    >>> rule_based_search(10, 1000, lambda size: 0.9 if size <= 50 else 0.5).chosen
    32
    >>> rule_based_search(10, 1000, lambda size: -0.5).chosen
    1000
    """
    _check_range(low, high)
    known: dict[int, float] = {}

    def measured(size: int) -> float:
        if size not in known:
            known[size] = utility(size)
        return known[size]

    def falls(smaller: int, larger: int) -> bool:
        return measured(smaller) - measured(larger) > abs(measured(smaller)) * gap

    g1, g2 = low, high
    measured(g1)
    measured(g2)
    while g1 < g2:
        g3 = round(math.sqrt(g1 * g2))
        if g3 in (g1, g2):
            break
        measured(g3)
        if falls(g1, g2):
            g2 = g3
        else:
            g1 = g3
    kept = g1 if falls(g1, g2) else g2
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
