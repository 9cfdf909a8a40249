"""Cells of the truth and of what was released, and the chances from the one to the other, for each law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.domains import Dates, Integers, Labels, Reals, Universe
from sfumato.core.distributions.noise import DiscreteGaussian, DiscreteUniform, Law, share
from sfumato.core.distributions.operators import (
    Additive,
    KeepOrReplace,
    Membership,
    Mixture,
    Operator,
    Response,
    ShiftModulo,
)
from sfumato.core.errors import OptionError, printable

__all__ = [
    "MOST_VALUES",
    "DomainCells",
    "NoiseSums",
    "at_midpoints",
    "coarsening",
    "cut_domain",
    "cut_outputs",
    "refine",
    "summed",
]

_INTERVALS = 50
"""Intervals of a domain that has too many values to tell one by one, if none were asked for."""

MOST_VALUES = 1024
"""Values of a domain of integers that are estimated one by one."""

_MOST_CELLS = 4096
_FINE = 240  # parts that intervals are cut into together while they are estimated
_AROUND = 2  # times as many output cells beyond each end of the domain as inside it, at most


@dataclass(frozen=True, eq=False)
class DomainCells:
    """A domain cut into cells of neighbouring places.

    Parameters
    ----------
    universe : Integers, Reals or Labels
    cuts : ndarray of int
        Cell i holds the places from cuts[i] to cuts[i + 1] - 1.
    single : bool
        Each value is a cell of its own.
    """

    universe: Universe
    cuts: Ints
    single: bool

    def __len__(self) -> int:
        return len(self.cuts) - 1

    @property
    def values(self) -> tuple[str | int | float, ...] | None:
        """The values, where each is a cell; dates as texts."""
        if self.single and isinstance(self.universe, Dates):
            return tuple(self.universe.written(self.cuts[:-1]))
        return tuple(self.universe.decode(self.cuts[:-1]).tolist()) if self.single else None

    @property
    def edges(self) -> Floats | None:
        """The bounds between intervals: half-way between two places, and the ends of a domain of reals."""
        if self.single or isinstance(self.universe, Labels):
            return None
        edges = self.universe.low + (self.cuts - 0.5) * self.universe.step
        if isinstance(self.universe, Reals):
            edges = np.clip(edges, self.universe.low, self.universe.high)
        return np.asarray(edges, dtype=np.float64)

    @property
    def told_edges(self) -> list[Any] | None:
        """The edges as they are written: of dates the first date of each interval, and the one after the last."""
        if isinstance(self.universe, Dates) and not self.single:
            return list(self.universe.written(self.cuts))
        edges = self.edges
        return None if edges is None else edges.tolist()

    def names(self, first: Ints | None = None) -> list[str]:
        """What each cell, or each of some runs of neighbouring cells, is called in a table or a chart.

        Parameters
        ----------
        first : ndarray of int, optional
            First cell of each run.
        """
        begins = np.arange(len(self)) if first is None else first
        ends = np.r_[begins[1:], len(self)]
        edges = self.edges
        if edges is not None and not isinstance(self.universe, Dates):
            return [f"{edges[a]:.6g} to {edges[b]:.6g}" for a, b in zip(begins, ends, strict=True)]
        if isinstance(self.universe, Dates):
            low, high = self.universe.written(self.cuts[begins]), self.universe.written(self.cuts[ends] - 1)
        else:
            values = [printable(str(value)) for value in self.values or ()]
            low, high = [values[a] for a in begins], [values[b - 1] for b in ends]
        return [a if a == b else f"{a} to {b}" for a, b in zip(low, high, strict=True)]

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The least and the largest value of each cell."""
        assert not isinstance(self.universe, Labels)
        low, step = self.universe.low, self.universe.step
        first, last = low + self.cuts[:-1] * step, low + (self.cuts[1:] - 1) * step
        return np.asarray(first, dtype=np.float64), np.asarray(last, dtype=np.float64)

    @property
    def centres(self) -> Floats:
        """The mean value of the places of each cell."""
        if isinstance(self.universe, Labels):
            raise OptionError("labels have no mean and no order; read their probabilities")
        middle = (self.cuts[:-1] + self.cuts[1:] - 1) / 2.0
        return np.asarray(self.universe.low + middle * self.universe.step, dtype=np.float64)


def cut_domain(universe: Universe, operator: Operator, intervals: int | Sequence[float] | None) -> DomainCells:
    """Cut a domain into cells: values one by one, a number of equal intervals, or intervals between given edges.

    By default labels and up to 1,024 integers are estimated one by one, other domains in 50 intervals, and domains of
    which only an interval is sent in these.

    Raises
    ------
    OptionError
        For intervals of labels, more intervals than places, edges that do not rise within the domain, or thousands of
        labels.
    """
    if isinstance(universe, Labels):
        if intervals is not None:
            raise OptionError("labels have no order to cut into intervals; leave the intervals out")
        if universe.size > _MOST_CELLS:
            raise OptionError(
                f"the domain has {universe.size:,} labels and at most {_MOST_CELLS:,} can be distinguished; randomize "
                "coarser ones"
            )
    if intervals is None:
        return _natural(universe, operator)
    assert not isinstance(universe, Labels)
    if isinstance(intervals, int):
        if isinstance(intervals, bool) or not 1 <= intervals <= min(universe.size, _MOST_CELLS):
            most = min(universe.size, _MOST_CELLS)
            raise OptionError(f"the number of intervals must be from 1 to {most} for this domain")
        return DomainCells(universe, _equal(universe.size, intervals), False)
    return DomainCells(universe, _between(universe, intervals), False)


def _natural(universe: Universe, operator: Operator) -> DomainCells:
    if isinstance(operator, Membership) and not isinstance(universe, Labels):
        classes = np.array(operator.cells)
        starts = np.flatnonzero(np.diff(classes)) + 1
        if len(starts) < MOST_VALUES:
            return DomainCells(universe, np.r_[0, starts, universe.size].astype(np.int64), False)
    if isinstance(universe, Labels) or (isinstance(universe, Integers) and universe.size <= MOST_VALUES):
        return DomainCells(universe, np.arange(universe.size + 1, dtype=np.int64), True)
    return DomainCells(universe, _equal(universe.size, min(_INTERVALS, universe.size)), False)


def _equal(size: int, intervals: int) -> Ints:
    """Cuts at equal distances, as far as whole places allow."""
    return np.array([size * each // intervals for each in range(intervals + 1)], dtype=np.int64)


def _between(universe: Integers | Reals, edges: Sequence[float]) -> Ints:
    try:
        given = np.array(edges, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError("intervals must be a number of them or a list of edges") from None
    if given.ndim != 1 or len(given) < 2 or not np.isfinite(given).all():
        raise OptionError("intervals must be a number of them or a list of two or more edges")
    cuts = np.ceil((given - universe.low) / universe.step - 1e-9).astype(np.int64)
    cuts[-1] += int(given[-1] == universe.high)  # the last interval is closed
    if len(cuts) - 1 > _MOST_CELLS or not (np.diff(cuts) > 0).all() or cuts[0] != 0 or cuts[-1] != universe.size:
        raise OptionError("the edges of intervals must rise from the low to the high end, a place or more in between")
    return cuts


def refine(cells: DomainCells, operator: Operator, most: int = _FINE) -> tuple[DomainCells, Ints]:
    """Cut intervals into parts to estimate with, and give which part each interval begins with.

    Chances summed over an interval take its places as equally likely. Where the truth changes within an interval that
    is wrong, and no number of records mends it; over small parts it is nearly right (`coarsening` bounds what is left).
    Classes stay as they are, and intervals that are kept or replaced as one: for these it is no matter.
    """
    widths = np.diff(cells.cuts)
    parts = max(most // len(cells), 1)
    if parts == 1 or isinstance(operator, Membership | KeepOrReplace) or widths.max() == 1:
        return cells, np.arange(len(cells))
    many = np.minimum(widths, parts)
    cuts = [
        low + width * np.arange(part) // part for low, width, part in zip(cells.cuts[:-1], widths, many, strict=True)
    ]
    fine = np.concatenate([*cuts, cells.cuts[-1:]]).astype(np.int64)
    return DomainCells(cells.universe, fine, False), np.cumsum(many) - many


def coarsening(parts: DomainCells, operator: Operator) -> float:
    """Most by which any chance is off for taking the places of a part as equally likely; 0 if each is one place.

    Noise that is moved by d places moves no chance by more than d times its largest one. A place lies on average at
    most half a part from the others.
    """
    widest = int(np.diff(parts.cuts).max())
    if widest == 1 or not isinstance(operator, Additive):
        return 0.0
    return min(1.0, (widest - 1) / 2.0 * float(operator.law.pmf(0)))


def cut_outputs(cells: DomainCells, operator: Operator, codes: Ints) -> Ints | None:
    """Cuts between cells of what was released; None if each output is a cell of its own.

    Inside the domain they are those of the truth. Additive noise goes beyond its ends: as far as records lie, in cells
    as wide as the inner ones, or wider where these would be many; the first and the last cell have no outer bound.
    """
    if isinstance(operator, Response | Membership):
        return None
    if not isinstance(operator, Additive):
        return cells.cuts
    width = max(-(-operator.size // len(cells)), 1)
    below = _outside(int(-codes.min(initial=0)), width, len(cells))
    above = _outside(int(codes.max(initial=0)) - operator.size + 1, width, len(cells))
    return np.concatenate([-below[::-1], cells.cuts, operator.size + above])


def _outside(reach: int, width: int, inside: int) -> Ints:
    """Cuts beyond an end of the domain until a number of places is covered."""
    if reach <= 0:
        return np.zeros(0, dtype=np.int64)
    step = max(width, -(-reach // (_AROUND * inside)))
    return step * np.arange(1, -(-reach // step) + 1, dtype=np.int64)


_LONGEST = 2**20  # entries of the table; a longer noise is taken on a coarser grid, less than a millionth of its span
_TAIL = 40.0  # e^-40 of the mass beyond the table


@dataclass(frozen=True, eq=False, repr=False)
class NoiseSums:
    """Twice summed chances of a symmetric noise, H(k) = sum_{j <= k} F(j) with F its distribution function.

    Then sum_{x = a}^{b - 1} P[x + noise < c] = H(c - 1 - a) - H(c - 1 - b), and the chance of a cell is a difference of
    two of these. Where cell lies above cell, the mirror image is used, so that small chances are differences of small
    numbers.
    """

    table: Floats
    first: int
    """Place of the first entry, counted in steps of the table."""
    step: int
    """Places of the domain between two entries."""

    @classmethod
    def over(cls, law: Law, span: int, width: int) -> Self:
        """Sum a law over as many places as two cells lie apart, and as many above 0 as a cell is wide.

        Parameters
        ----------
        law : noise law of step 1
        span : int
        width : int
        """
        down = span + math.ceil(_reach(law)) + 2
        up = 2 * width + 2
        step = -(-(down + up) // _LONGEST)
        coarse = law if step == 1 else replace(law, step=float(step))
        first = -(down // step) - 3
        places = np.arange(first, up // step + 4)
        return cls(np.cumsum(np.cumsum(coarse.pmf(places))), first, step)

    def between(self, inputs: Ints, outputs: Ints) -> Floats:
        """Sum of P[y | x] over the places x of each input cell and y of each output cell."""
        a, b = inputs[:-1, None], inputs[1:, None]
        c, d = outputs[None, :-1], outputs[None, 1:]
        mirrored = c + d > a + b
        a, b, c, d = (np.where(mirrored, *pair) for pair in ((c, a), (d, b), (a, c), (b, d)))
        return np.maximum(self._at(d - 1 - a) - self._at(d - 1 - b) - self._at(c - 1 - a) + self._at(c - 1 - b), 0.0)

    def below(self, inputs: Ints, place: int) -> Floats:
        """Sum of P[y < place | x] over the places x of each input cell, all at or above the place."""
        return self._at(place - 1 - inputs[:-1]) - self._at(place - 1 - inputs[1:])

    def above(self, inputs: Ints, place: int) -> Floats:
        """Sum of P[y >= place | x] over the places x of each input cell, all below the place."""
        return self._at(inputs[1:] - 1 - place) - self._at(inputs[:-1] - 1 - place)

    def _at(self, places: Ints) -> Floats:
        """Look H up, in places of the domain; in a coarse table by the cubic through the four nearest entries."""
        if self.step == 1:
            return np.asarray(self.table[places - self.first])
        where = (places + 1) / self.step - 1.0 - self.first
        left = np.floor(where).astype(np.int64)
        u = where - left
        t = self.table
        return self.step * (
            -t[left - 1] * u * (u - 1.0) * (u - 2.0) / 6.0
            + t[left] * (u + 1.0) * (u - 1.0) * (u - 2.0) / 2.0
            - t[left + 1] * (u + 1.0) * u * (u - 2.0) / 2.0
            + t[left + 2] * (u + 1.0) * u * (u - 1.0) / 6.0
        )


def _reach(law: Law) -> float:
    """How far the table must go on below what is asked, for the mass beyond to be nothing."""
    if isinstance(law, DiscreteUniform):
        return float(law.steps)
    if isinstance(law, DiscreteGaussian):
        return law.sd * math.sqrt(2.0 * _TAIL)
    return law.scale * _TAIL


def summed(operator: Operator, inputs: Ints, outputs: Ints | None) -> Floats:
    """P[output in cell s | input uniform on the places of cell p], a row for each p.

    Parameters
    ----------
    operator : Operator
    inputs : ndarray of int
        Cuts between the cells of the truth.
    outputs : ndarray of int or None
        Cuts between the cells of what is released, as `cut_outputs` gives them; additive noise has a cell more at
        either end.

    Notes
    -----
    Cost O(m k) for laws in closed form, plus a table of the noise of at most about a million places.
    """
    if isinstance(operator, Additive):
        assert outputs is not None
        return _additive(operator, inputs, outputs)
    if isinstance(operator, Response):
        return _response(operator, inputs, outputs)
    if isinstance(operator, Membership):
        return _membership(operator, inputs)
    assert outputs is not None
    if isinstance(operator, Mixture):
        weight, inner = float(share("weight", operator.weight)), cast("Operator", operator.of)
        return weight * summed(inner, inputs, outputs) + (1.0 - weight) * (np.diff(outputs) / operator.size)
    if isinstance(operator, KeepOrReplace):
        return _keep_or_replace(operator, inputs, outputs)
    if isinstance(operator, ShiftModulo):
        return _shift_modulo(operator, inputs, outputs)
    raise OptionError(f"there is no reconstruction for the law {type(operator).__name__}; give its matrix instead")


def at_midpoints(operator: Additive, inputs: Ints, outputs: Ints, exact: Floats) -> Floats:
    """f_Y(m(I_s) - m(I_p)) L_s, the noise at the distance of two midpoints [JS07, ch. 4].

    Cells without an outer bound have no midpoint, and bounded noise reaches some cells but not their midpoint: these
    columns are those of ``exact``, which `summed` gives.
    """
    from_middle = (inputs[:-1] + inputs[1:] - 1) / 2.0
    to_middle = (outputs[:-1] + outputs[1:] - 1) / 2.0
    inner = operator.law.pmf(to_middle[None, :] - from_middle[:, None]) * np.diff(outputs)
    matrix = exact.copy()
    met = np.r_[False, inner.any(axis=0), False]
    matrix[:, met] = inner[:, met[1:-1]]
    return matrix


def _response(operator: Response, inputs: Ints, outputs: Ints | None) -> Floats:
    single = operator.probabilities(np.arange(len(operator.outputs))).T
    rows = np.add.reduceat(single, inputs[:-1], axis=0) / np.diff(inputs)[:, None]
    return np.asarray(rows if outputs is None else np.add.reduceat(rows, outputs[:-1], axis=1))


def _additive(operator: Additive, inputs: Ints, outputs: Ints) -> Floats:
    width = int(max(np.diff(inputs).max(), np.diff(outputs).max()))
    sums = NoiseSums.over(operator.law, int(np.ptp(outputs)), width)
    inner = sums.between(inputs, outputs)
    low, high = sums.below(inputs, int(outputs[0])), sums.above(inputs, int(outputs[-1]))
    total = np.column_stack([low, inner, high]) / np.diff(inputs)[:, None]
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def _shift_modulo(operator: ShiftModulo, inputs: Ints, outputs: Ints) -> Floats:
    """Add up all the ways round the ring: whole turns lead everywhere alike, what is left is a shift within one."""
    turns, reach = divmod(operator.reach, operator.size)
    within = _kept(inputs, outputs)
    if reach:
        sums = NoiseSums.over(DiscreteUniform(float(reach)), 2 * operator.size, int(np.diff(inputs).max()))
        ways = [sums.between(inputs, outputs + turn * operator.size) for turn in (-1, 0, 1)]
        within = np.sum(ways, axis=0)
        within /= within.sum(axis=1, keepdims=True)
    return np.asarray((2 * turns * np.diff(outputs) + (2 * reach + 1) * within) / (2 * operator.reach + 1))


def _keep_or_replace(operator: KeepOrReplace, inputs: Ints, outputs: Ints) -> Floats:
    keep, same = float(share("keep", operator.keep)), _kept(inputs, outputs)
    other = (np.diff(outputs) - same) / (operator.size - 1)
    return np.asarray(keep * same + (1.0 - keep) * other)


def _kept(inputs: Ints, outputs: Ints) -> Floats:
    """Share of the places of each input cell that lie in each output cell."""
    first = np.maximum(inputs[:-1, None], outputs[None, :-1])
    last = np.minimum(inputs[1:, None], outputs[None, 1:])
    return np.asarray(np.maximum(last - first, 0) / np.diff(inputs)[:, None])


def _membership(operator: Membership, inputs: Ints) -> Floats:
    matrix = np.zeros((len(inputs) - 1, len(operator.outputs)))
    rows = np.repeat(np.arange(len(inputs) - 1), np.diff(inputs))
    np.add.at(matrix, (rows, np.array(operator.cells)), 1.0)
    return np.asarray(matrix / np.diff(inputs)[:, None])
