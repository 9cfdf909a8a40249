"""What is tried: methods that have a size, and a geometric grid of sizes from small ones up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato.core.errors import OptionError, closest_name, shown
from sfumato.mechanisms.methods import make_mechanism, parameters_of_method
from sfumato.mechanisms.protocol import Mechanism

__all__ = ["TUNED", "USUAL", "Candidate", "check_methods", "first_tried", "grid"]

TUNED = {"chain": "leaf", "condense": "k", "classwise": "k", "condense-paper": "k"}
"""Methods whose size can be tuned, the simplest first, and the parameter that is the size."""

USUAL = ("chain", "condense", "classwise")
"""Methods that are tried where none is named, as far as they apply to the table."""

_SMALL = (3, 5)
_EFFORT = "fast"  # of grouping: a tenth of the time, so that ten times as much can be tried
_MIDDLE = {"chain": 80, "condense": 160, "classwise": 160, "condense-paper": 160}
"""Sizes that the measurements of benchmarks/results/frontier.md make the likeliest; they are tried first."""


@dataclass(frozen=True, order=True)
class Candidate:
    """A method and its size: the leaf of a chain, or k."""

    method: str
    size: int

    @property
    def parameter(self) -> str:
        """Name of the size in `sanitize`."""
        return TUNED[self.method]

    @property
    def words(self) -> str:
        """How it is called."""
        return f"{self.method}, {self.parameter} {self.size}"

    @property
    def rank(self) -> tuple[int, int]:
        """Order in which candidates stand: by method, then by size."""
        return list(TUNED).index(self.method), self.size

    @property
    def options(self) -> tuple[str, ...]:
        """Words of the command line."""
        quick = ("--effort", _EFFORT) if self._takes_effort else ()
        return "--method", self.method, f"--{self.parameter}", str(self.size), *quick

    def mechanism(self, k: int | None) -> Mechanism:
        """Mechanism that it is; ``k`` is the floor of a chain."""
        parameters: dict[str, int | str] = {self.parameter: self.size}
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
        larger, smaller = max(self.size, _MIDDLE[self.method]), min(self.size, _MIDDLE[self.method])
        return self.method != "chain", larger / smaller


def check_methods(methods: Iterable[str] | str | None) -> tuple[str, ...] | None:
    """Methods that were named, each of which has a size; None where none was."""
    if methods is None:
        return None
    named = [each.strip() for each in (methods.split(",") if isinstance(methods, str) else methods)]
    for each in named:
        if each not in TUNED:
            meant = closest_name(each, TUNED)
            told = f"did you mean {meant!r}?" if meant is not None else f"choose from {', '.join(TUNED)}"
            raise OptionError(f"no size is tuned of {shown(each)}; {told}")
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
