"""Operators on a finite domain: keep or replace, shift modulo, and a mixture with chance [JS07, sec. 3.3, example]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.laws.exact import check_codes, check_outputs, share, toss

__all__ = ["Amplified", "Extremes", "Finite", "KeepOrReplace", "Mixture", "Operator", "ShiftModulo"]

Extremes = tuple[tuple[Fraction, Fraction], ...]
"""Highest and lowest chance over all inputs, for each output; one pair where all outputs are alike."""


class Operator(Protocol):
    """A randomization with known chances, from places of a domain to outputs that are whole numbers."""

    @property
    def size(self) -> int:
        """Number of inputs, 0 to size - 1."""
        ...

    @property
    def outputs(self) -> range | None:
        """All outputs where there are finitely many; they may begin below 0. None where there is no end to them."""
        ...

    @property
    def gamma(self) -> float:
        """Amplification: the largest ratio of the chances that two inputs give to one output [EGS03]."""
        ...

    @property
    def epsilon(self) -> float:
        """Local differential privacy: the logarithm of gamma."""
        ...

    @property
    def wraps(self) -> bool:
        """Whether the domain is closed to a ring."""
        ...

    def randomize(self, codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw an output for each input, exactly: whole numbers of the generator are compared with whole numbers."""
        ...

    def probabilities(self, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
        """P[output | input], a row for each output and a column for each input."""
        ...


class Finite(Operator, Protocol):
    """An operator whose outputs are the places of its own domain."""

    @property
    def outputs(self) -> range:
        """All outputs."""
        ...

    @property
    def extremes(self) -> Extremes:
        """Highest and lowest chance of the outputs."""
        ...


class Amplified:
    """What the extremes tell: gamma and epsilon; outputs are the places of the domain unless told otherwise."""

    if TYPE_CHECKING:

        @property
        def size(self) -> int: ...  # noqa: D102

        @property
        def extremes(self) -> Extremes: ...  # noqa: D102

    @property
    def outputs(self) -> range:
        """All outputs."""
        return range(self.size)

    @cached_property
    def gamma(self) -> float:
        """Amplification: the largest ratio of the chances that two inputs give to one output [EGS03]."""
        if any(low == 0 < high for high, low in self.extremes):
            return math.inf
        return float(max(high / low for high, low in self.extremes if high))

    @property
    def epsilon(self) -> float:
        """Local differential privacy: the logarithm of gamma."""
        return math.log(self.gamma)


@dataclass(frozen=True)
class KeepOrReplace(Amplified):
    """R1: the value itself with chance ``keep``, else one of the *other* values, each as likely [JS07; errata JS07.2].

    Parameters
    ----------
    size : int
    keep : float
        Taken as a fraction, see `sfumato.core.laws.exact.share`.

    Examples
    --------
    >>> KeepOrReplace(1001, 0.2).gamma
    250.0
    """

    wraps: ClassVar[bool] = False  # no: the domain has no order

    size: int
    keep: float

    def __post_init__(self) -> None:
        _check_size(self.size)
        share("keep", self.keep)

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """Of the value itself, and of each other one."""
        keep = share("keep", self.keep)
        return keep, (1 - keep) / (self.size - 1)

    @property
    def extremes(self) -> Extremes:
        """Highest and lowest chance, the same for all outputs."""
        return ((max(self.chances), min(self.chances)),)

    def randomize(self, codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw an output for each input."""
        x = check_codes(codes, self.size)
        kept = toss(self.chances[0], x.size, rng).reshape(x.shape)
        other = rng.integers(0, self.size - 1, size=x.shape)
        return np.asarray(np.where(kept, x, other + (other >= x)), dtype=np.int64)

    def probabilities(self, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
        """P[output | input], a row for each output."""
        y = check_outputs(outputs, self.outputs)
        keep, other = map(float, self.chances)
        rows = np.full((len(y), self.size), other)
        rows[np.arange(len(y)), y] = keep
        return rows


@dataclass(frozen=True)
class ShiftModulo(Amplified):
    """R2: a shift of -reach to reach places, each as likely, modulo the size of the domain [JS07].

    Where the shifts do not go round the whole domain an output rules out inputs, and gamma is infinite.

    Examples
    --------
    >>> ShiftModulo(1001, 100).gamma, ShiftModulo(3, 2).gamma
    (inf, 2.0)
    """

    wraps: ClassVar[bool] = True  # yes: beyond the end it goes on at the beginning

    size: int
    reach: int

    def __post_init__(self) -> None:
        _check_size(self.size)
        if isinstance(self.reach, bool) or not isinstance(self.reach, int) or not 1 <= self.reach < 2**48:
            raise OptionError("the reach of a shift must be a whole number of places, 1 or more")

    @property
    def extremes(self) -> Extremes:
        """Highest and lowest chance, the same for all outputs."""
        shifts = 2 * self.reach + 1
        return ((Fraction(-(-shifts // self.size), shifts), Fraction(shifts // self.size, shifts)),)

    def randomize(self, codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw an output for each input."""
        x = check_codes(codes, self.size)
        shift = rng.integers(-self.reach, self.reach, size=x.shape, endpoint=True)
        return np.asarray((x + shift) % self.size, dtype=np.int64)

    def probabilities(self, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
        """P[output | input], a row for each output."""
        y = check_outputs(outputs, self.outputs)
        d = (y[:, None] - np.arange(self.size)) % self.size  # shifts d, d - size, d + size, ... lead from x to y
        ways = (self.reach - d) // self.size + (self.reach + d) // self.size + 1
        return np.asarray(ways / (2 * self.reach + 1), dtype=np.float64)


@dataclass(frozen=True)
class Mixture(Amplified):
    """R3: another operator with chance ``weight``, else any value of the domain, each as likely [JS07].

    Parameters
    ----------
    weight : float
        Taken as a fraction, see `sfumato.core.laws.exact.share`.
    of : operator
        Its outputs must be the places of the domain.
    size : int

    Examples
    --------
    >>> round(Mixture(0.5, ShiftModulo(1001, 100), 1001).gamma, 4)
    5.9801
    """

    weight: float
    of: Finite
    size: int

    def __post_init__(self) -> None:
        _check_size(self.size)
        share("weight", self.weight)
        if self.of.size != self.size or getattr(self.of, "outputs", None) != range(self.size):
            raise OptionError(
                "a mixture is with a law whose outputs are the values of the domain; take keep-or-replace, "
                "shift-modulo, response or another mixture"
            )

    @property
    def wraps(self) -> bool:
        """Whether the mixed operator does."""
        return self.of.wraps

    @property
    def extremes(self) -> Extremes:
        """Highest and lowest chance of the outputs."""
        weight = share("weight", self.weight)
        rest = (1 - weight) / self.size
        return tuple((weight * high + rest, weight * low + rest) for high, low in self.of.extremes)

    def randomize(self, codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw an output for each input."""
        x = check_codes(codes, self.size)
        taken = toss(share("weight", self.weight), x.size, rng).reshape(x.shape)
        anything = rng.integers(0, self.size, size=x.shape)
        return np.asarray(np.where(taken, self.of.randomize(x, rng), anything), dtype=np.int64)

    def probabilities(self, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
        """P[output | input], a row for each output."""
        weight = share("weight", self.weight)
        return float(weight) * self.of.probabilities(outputs) + float((1 - weight) / self.size)


def _check_size(size: int) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 2:
        raise OptionError("an operator needs a domain of at least two values")
