"""Randomization operators: from the code of a value to the code that is sent, with known probabilities [JS07, sec. 3].

Value-class membership: the interval, the rounded value or the parent is sent, not the value [JS07, sec. 3.2.2].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.domains import Dates, Integers, Labels, Reals
from sfumato.core.distributions.finite import KeepOrReplace, Mixture, Operator, Response, ShiftModulo
from sfumato.core.distributions.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteUniform,
    Law,
    check_codes,
    check_outputs,
    exact,
    rational,
)
from sfumato.core.errors import OptionError

__all__ = [
    "Additive",
    "KeepOrReplace",
    "Membership",
    "Mixture",
    "Operator",
    "Response",
    "ShiftModulo",
    "interval_classes",
    "likelihoods",
    "parent_classes",
    "rounding_classes",
    "transition",
]

_MOST = 5_000_000  # places, whose classes are listed one by one


def interval_classes(domain: Integers | Reals, edges: Sequence[Any]) -> tuple[tuple[int, ...], Labels]:
    """Interval of each code, and the intervals' names; an interval includes its lower edge only.

    The ends of the domain may be among the edges or left out.

    Examples
    --------
    >>> interval_classes(Integers(0, 5), [2, 4])
    ((0, 0, 1, 1, 2, 2), Labels(values=('0..1', '2..3', '4..5')))
    >>> interval_classes(Reals(0.0, 2.0, 0.5), [0, 1, 2])
    ((0, 0, 1, 1, 1), Labels(values=('[0, 1)', '[1, 2]')))
    >>> interval_classes(Dates("2020-01-01", "2020-01-03", "day"), ["2020-01-02"])
    ((0, 1, 1), Labels(values=('2020-01-01..2020-01-01', '2020-01-02..2020-01-03')))
    """
    _check_size(domain.size)
    low, high = exact(domain.low), exact(domain.high)
    cuts = [exact(edge) for edge in _counted(domain, edges)]
    if any(a >= b for a, b in pairwise(cuts)) or any(not low <= cut <= high for cut in cuts):
        raise OptionError("edges of intervals must rise and lie inside the domain; correct the list")
    cuts = [cut for cut in cuts if low < cut < high]
    if isinstance(domain, Integers) and any(cut.denominator != 1 for cut in cuts):
        raise OptionError("edges of intervals of whole numbers must be whole numbers")
    first = [int(-((low - cut) // exact(domain.step))) for cut in cuts]  # the first place at or above the cut
    starts = [0, *first]
    if any(a >= b for a, b in pairwise([*starts, domain.size])) or len(starts) < 2:
        raise OptionError("edges must cut the domain into two or more intervals, each with a place of the grid")
    cells = np.repeat(np.arange(len(starts)), np.diff([*starts, domain.size]))
    return tuple(cells.tolist()), Labels(tuple(_interval_names(domain, [low, *cuts, high])))


def rounding_classes(domain: Integers | Reals, to: float) -> tuple[tuple[int, ...], Integers | Reals]:
    """Class of each code when values are rounded half up to a multiple of ``to``, and the multiples.

    Examples
    --------
    >>> rounding_classes(Integers(0, 6), 5)
    ((0, 0, 0, 1, 1, 1, 1), Reals(low=0.0, high=5.0, grid=5.0))
    """
    _check_size(domain.size)
    low, step, unit = exact(domain.low), exact(domain.step), exact(to)
    if unit <= step:
        raise OptionError("rounding must be to more than one step of the domain, else it changes nothing")
    whole = low.denominator * step.denominator * unit.denominator  # all three are whole numbers of 1/whole
    a, s, u = (int(number * whole) for number in (low, step, unit))
    if max(abs(a), s * domain.size, u) >= 2**60:
        raise OptionError("the numbers of rounding are out of proportion; choose a coarser grid")
    multiples = (2 * (a + s * np.arange(domain.size, dtype=np.int64)) + u) // (2 * u)
    first, last = int(multiples[0]), int(multiples[-1])
    if first == last:
        raise OptionError("rounding makes all values of the domain one; round to less")
    if set(np.diff(multiples).tolist()) - {0, 1}:
        raise OptionError("some multiples would never be sent; round to a whole number of steps")
    released: Integers | Reals = Reals(float(first * unit), float(last * unit), float(unit))
    return tuple((multiples - first).tolist()), released


def parent_classes(domain: Labels, parents: Mapping[str, str]) -> tuple[tuple[int, ...], Labels]:
    """Parent of each label, and the parents in order of first occurrence.

    Examples
    --------
    >>> parent_classes(Labels(("flu", "cold", "burn")), {"flu": "illness", "cold": "illness", "burn": "injury"})
    ((0, 0, 1), Labels(values=('illness', 'injury')))
    """
    missing = sum(1 for label in domain.values if label not in parents)
    if missing or len(parents) != domain.size:
        count = missing or len(parents) - domain.size
        raise OptionError(f"{count} labels of taxonomy and domain do not match; name each label once")
    names = tuple(dict.fromkeys(parents[label] for label in domain.values))
    if len(names) < 2:
        raise OptionError("a taxonomy with one parent releases no information; give it two or more")
    place = {name: index for index, name in enumerate(names)}
    return tuple(place[parents[label]] for label in domain.values), Labels(names)


def _counted(domain: Integers | Reals, edges: Sequence[Any]) -> list[Any]:
    """Edges as numbers; those of dates are counts."""
    if isinstance(domain, Dates):
        if not all(isinstance(edge, str) for edge in edges):
            raise OptionError("edges of intervals of dates are dates such as 2020-01-31; write them so")
        return [domain.count(edge) for edge in edges]
    if any(isinstance(edge, str) for edge in edges):
        raise OptionError("edges of intervals of numbers must be numbers; correct the list")
    return list(edges)


def _interval_names(domain: Integers | Reals, edges: list[Fraction]) -> list[str]:
    if isinstance(domain, Integers):
        ends = [*(edge - 1 for edge in edges[1:-1]), edges[-1]]
        if isinstance(domain, Dates):
            first, last = (domain.written([int(edge) - domain.low for edge in each]) for each in (edges[:-1], ends))
            return [f"{start}..{end}" for start, end in zip(first, last, strict=True)]
        return [f"{start}..{end}" for start, end in zip(edges, ends, strict=False)]
    names = [f"[{float(start):g}, {float(end):g})" for start, end in pairwise(edges)]
    return [*names[:-1], names[-1][:-1] + "]"]


def _check_size(size: int) -> None:
    if size > _MOST:
        raise OptionError(f"classes are listed for at most {_MOST:,} values; choose a coarser grid")


@dataclass(frozen=True)
class Membership:
    """Each value is sent as its class; nothing is random.

    Parameters
    ----------
    size : int
    cells : tuple of int
        Class of each place, 0, 1, ..., each one in use.

    Examples
    --------
    >>> Membership(4, (0, 0, 1, 1)).probabilities([1])
    array([[0., 0., 1., 1.]])
    """

    wraps: ClassVar[bool] = False  # no: nothing moves

    size: int
    cells: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", tuple(self.cells))
        if len(self.cells) != self.size or self.size < 2:
            raise OptionError("membership needs the class of each value of the domain")
        if set(self.cells) != set(range(max(self.cells) + 1)):
            raise OptionError("the classes of a membership are counted 0, 1, 2, ... and each holds a value")

    @property
    def outputs(self) -> range:
        """All classes."""
        return range(max(self.cells) + 1)

    @property
    def gamma(self) -> float:
        """Infinite: a class excludes the values of all others."""
        return math.inf if len(self.outputs) > 1 else 1.0

    @property
    def epsilon(self) -> float:
        """The logarithm of gamma."""
        return math.log(self.gamma)

    @cached_property
    def _classes(self) -> Ints:
        return np.array(self.cells, dtype=np.int64)

    def randomize(self, codes: Ints, rng: np.random.Generator) -> Ints:  # noqa: ARG002
        """Class of each input; the generator is not used."""
        return np.asarray(self._classes[check_codes(codes, self.size)])

    def probabilities(self, outputs: Ints) -> Floats:
        """P[output | input], a row for each output."""
        y = check_outputs(outputs, self.outputs)
        return np.asarray(y[:, None] == self._classes, dtype=np.float64)


_LARGEST_EXPONENT = 709.0  # of e, in a double


@dataclass(frozen=True)
class Additive:
    """The code plus integer noise; outputs may lie beyond the ends of the domain.

    Laplace noise bounds what an output tells: gamma is e^(range / scale), with the range of the *declared* domain.
    Gaussian noise does not (far out one input is any number of times likelier than another), and bounded noise proves
    facts [errata JS07.4].

    Parameters
    ----------
    size : int
    law : DiscreteLaplace, DiscreteGaussian or DiscreteUniform
        With a step of 1 place.

    Examples
    --------
    >>> Additive(101, DiscreteLaplace(50.0)).epsilon
    2.0
    >>> Additive(101, DiscreteUniform(50.0)).outputs
    range(-50, 151)
    """

    wraps: ClassVar[bool] = False  # no: outputs go on beyond the ends

    size: int
    law: Law

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 2:
            raise OptionError("an operator needs a domain of at least two values")
        if self.law.step != 1:
            raise OptionError("noise on the places of a domain has a step of 1; give its size in places")

    @property
    def outputs(self) -> range | None:
        """All outputs; None if there are infinitely many."""
        if not isinstance(self.law, DiscreteUniform):
            return None
        return range(-self.law.steps, self.size + self.law.steps)

    @property
    def gamma(self) -> float:
        """Amplification: largest ratio of the probabilities of one output under two inputs."""
        return math.exp(self.epsilon) if self.epsilon <= _LARGEST_EXPONENT else math.inf

    @property
    def epsilon(self) -> float:
        """Local differential privacy: for Laplace noise range / scale, else infinite."""
        return (self.size - 1) * self._decay if isinstance(self.law, DiscreteLaplace) else math.inf

    @property
    def _decay(self) -> float:
        """Log ratio of neighbouring probabilities under Laplace noise, as an exact fraction."""
        return 1.0 / float(rational(self.law.scale)) if isinstance(self.law, DiscreteLaplace) else 0.0

    def randomize(self, codes: Ints, rng: np.random.Generator) -> Ints:
        """Draw an output for each input."""
        x = check_codes(codes, self.size)
        return np.asarray(x + self.law.draw(x.shape, rng), dtype=np.int64)

    def probabilities(self, outputs: Ints) -> Floats:
        """P[output | input], a row for each output."""
        return self.law.pmf(self._noise(outputs))

    def likelihoods(self, outputs: Ints) -> Floats:
        """Rows proportional to P[output | input], scaled to a maximum of 1 so that they do not underflow."""
        k = np.abs(self._noise(outputs)).astype(np.float64)
        nearest = k.min(axis=1, keepdims=True)
        if isinstance(self.law, DiscreteLaplace):
            return np.asarray(np.exp((nearest - k) * self._decay))
        if isinstance(self.law, DiscreteGaussian):
            return np.asarray(np.exp((nearest - k) * (nearest + k) / (2.0 * self.law.sd**2)))
        return np.where(k <= self.law.steps, 1.0, 0.0)

    def _noise(self, outputs: Ints) -> Ints:
        y = np.asarray(outputs, dtype=np.int64) if self.outputs is None else check_outputs(outputs, self.outputs)
        return np.asarray(y[:, None] - np.arange(self.size))


def transition(operator: Operator) -> Floats:
    """Matrix of all probabilities, a row for each input and a column for each output.

    Examples
    --------
    >>> transition(KeepOrReplace(3, 0.5))
    array([[0.5 , 0.25, 0.25],
           [0.25, 0.5 , 0.25],
           [0.25, 0.25, 0.5 ]])
    """
    if operator.outputs is None:
        raise OptionError("there is no end to the outputs of this noise, so it has no matrix; ask for single outputs")
    return np.ascontiguousarray(operator.probabilities(np.arange(operator.outputs.start, operator.outputs.stop)).T)


def likelihoods(operator: Operator, outputs: Ints) -> Floats:
    """Rows proportional to P[output | input], scaled to a maximum of 1 so that none underflows."""
    if isinstance(operator, Additive):
        return operator.likelihoods(outputs)
    rows = operator.probabilities(outputs)
    largest = rows.max(axis=1, keepdims=True)
    return np.asarray(rows / np.where(largest > 0, largest, 1.0))
