"""Cells of the truth and of what was released, the chances from the one to the other, and what they let through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self, cast

import numpy as np
from numpy.typing import ArrayLike

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

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "MOST_VALUES",
    "Channel",
    "DomainCells",
    "NoiseSums",
    "Ridge",
    "at_midpoints",
    "coarsening",
    "cut_domain",
    "cut_outputs",
    "onto_simplex",
    "output_cells",
    "refine",
    "shares_let_through",
    "summed",
]

_SUM = 1e-6
"""How far a row of chances may be from 1; the chances of a response are written as decimals."""

_SMALL = 10_000  # entries of a matrix that is quickly multiplied as it is
_FEW = 0.03  # share of entries up to which a sparse product is faster than a dense one


@dataclass(frozen=True, eq=False, repr=False)
class Channel:
    """Chances of every output cell given every input cell.

    Parameters
    ----------
    matrix : ndarray of shape (inputs, outputs)
        Row x holds P[output | input x]; what the iteration works with. Use `Channel.of` to have the rows checked.
    exact : ndarray of shape (inputs, outputs), optional
        The chances themselves, where the matrix only stands for them (noise at midpoints).

    Examples
    --------
    >>> Channel.of([[0.75, 0.25], [0.25, 0.75]])
    Channel(inputs=2, outputs=2)
    """

    matrix: Floats
    exact: Floats | None = None

    @classmethod
    def of(cls, matrix: ArrayLike) -> Self:
        """Check a matrix and take it.

        Raises
        ------
        OptionError
            For a matrix whose rows are not chances that add up to 1.
        """
        try:
            chances = np.array(matrix, dtype=np.float64)
        except (TypeError, ValueError):
            raise OptionError("a transition matrix must be rows of numbers, all of one length") from None
        if chances.ndim != 2 or 0 in chances.shape:
            raise OptionError("a transition matrix needs a row for each input and a column for each output")
        good = (chances >= 0).all(axis=1) & (np.abs(chances.sum(axis=1) - 1.0) <= _SUM)
        if not good.all():
            wrong = int((~good).sum())
            raise OptionError(f"{wrong} rows of the transition matrix are not chances that add up to 1; correct them")
        chances.flags.writeable = False
        return cls(chances)

    def __repr__(self) -> str:
        return f"Channel(inputs={self.inputs}, outputs={self.outputs})"

    @property
    def inputs(self) -> int:
        """Number of cells of the truth, m."""
        return int(self.matrix.shape[0])

    @property
    def outputs(self) -> int:
        """Number of cells of what is released."""
        return int(self.matrix.shape[1])

    @property
    def chances(self) -> Floats:
        """The chances themselves, rows add up to 1."""
        return self.matrix if self.exact is None else self.exact

    def mix(self, probability: Floats) -> Floats:
        """Chances of the outputs, a row for each row of probabilities."""
        if self._sparse is None:
            return np.asarray(probability @ self.matrix)
        floor, rest, _ = self._sparse
        return np.asarray(probability @ rest + floor * probability.sum(axis=1, keepdims=True))

    def unmix(self, weights: Floats) -> Floats:
        """Multiply weights of the outputs, a row each, with the transposed matrix."""
        if self._sparse is None:
            return np.asarray(weights @ self.matrix.T)
        floor, _, turned = self._sparse
        return np.asarray(weights @ turned + floor * weights.sum(axis=1, keepdims=True))

    @cached_property
    def _sparse(self) -> tuple[float, csr_array, csr_array] | None:
        """The lowest chance and what is above it, where that is little: laws that replace by anything or reach near."""
        floor = float(self.matrix.min())
        above = self.matrix > floor
        if self.matrix.size < _SMALL or above.mean() > _FEW:
            return None
        from scipy.sparse import csr_array

        rest = np.where(above, self.matrix - floor, 0.0)
        return floor, csr_array(rest), csr_array(rest.T)

    @cached_property
    def shares(self) -> Floats:
        """Share of the information that each direction keeps at the uniform distribution, largest first (m - 1,)."""
        return shares_let_through(self.chances, np.full(self.inputs, 1.0 / self.inputs))


def shares_let_through(matrix: Floats, probability: Floats) -> Floats:
    """Share of Fisher information that the noise lets through, for each direction in which p can change.

    The information of n released records about p is n A diag(1/q) A', with q = pA; of n plain records it is
    n diag(1/p). The shares are the eigenvalues of the first against the second, less the one of the total mass, which
    is always known. A share of 0.04 says: in this direction 100 released records tell what 4 plain ones would. They are
    also the rates at which EM closes the gap to the maximum of the likelihood.

    Notes
    -----
    Cost O(m^2 k) for k outputs, and O(m^3).
    """
    q = probability @ matrix
    reached = q > 0.0
    scaled = np.sqrt(probability)[:, None] * matrix[:, reached] / np.sqrt(q[reached])
    inputs, outputs = scaled.shape
    product = scaled @ scaled.T if inputs <= outputs else scaled.T @ scaled
    found = np.clip(np.linalg.eigvalsh(product)[::-1], 0.0, 1.0)
    shares = np.zeros(inputs)
    shares[: min(inputs, outputs)] = found[:inputs]
    return shares[1:]


_PENALTIES = np.logspace(-8.0, 6.0, 113)  # relative to the largest eigenvalue; eight to a decade
_LEVEL = 1e-6  # of the roughness: a little of the plain square, so that the penalty is definite


@dataclass(frozen=True, eq=False, repr=False)
class Ridge:
    """Least squares with a penalty on roughness [Tikhonov], brought back to probabilities.

    Minimises sum_s (q_s - N_s/n)^2 + alpha |D (p - u)|^2 with q = pA, u uniform and D the differences of neighbours (of
    all cells from u, where they have no order). Alpha has the least expected error as Mallows' C_p tells it: the sum of
    squares plus 2 trace(H S), H the hat matrix and S the variances of the relative counts, which are known. What comes
    out is projected onto the probabilities.

    Parameters
    ----------
    right : ndarray of shape (outputs, inputs)
        Takes relative counts, less those of the uniform distribution, to their coordinates.
    basis : ndarray of shape (inputs, inputs)
    size : ndarray of shape (inputs,)
        Precision of each coordinate.
    uniform : ndarray of shape (outputs,)
        Chances of the outputs under u.
    """

    right: Floats
    basis: Floats
    size: Floats
    uniform: Floats

    @classmethod
    def of(cls, channel: Channel, *, ordered: bool) -> Self:
        """What depends on the matrix alone; cost O(m^3 + m^2 k)."""
        from scipy.linalg import eigh

        matrix = channel.matrix
        size, basis = eigh(matrix @ matrix.T, _roughness(channel.inputs, ordered=ordered))
        return cls(matrix.T @ basis, basis, np.maximum(size, 0.0), matrix.mean(axis=0))

    def solve(self, counts: Floats) -> Floats:
        """Probabilities for one count vector, with the penalty that it asks for."""
        n = counts.sum()
        along = (counts / n - self.uniform) @ self.right
        spread = (counts / n**2) @ self.right**2  # of the coordinates, from the variances of the counts
        penalties = _PENALTIES * self.size.max()
        left = self.size + penalties[:, None]  # a row for each penalty
        misfit = ((along / left) ** 2 * self.size - 2.0 * along**2 / left).sum(axis=1)  # less a constant
        best = int(np.argmin(misfit + 2.0 * (spread / left).sum(axis=1)))
        return onto_simplex(along / left[best] @ self.basis.T + 1.0 / len(self.size))


def _roughness(inputs: int, *, ordered: bool) -> Floats:
    level = np.eye(inputs)
    if not ordered:
        return level
    steps = np.diff(level, axis=0)
    return np.asarray(steps.T @ steps + _LEVEL * level)


def onto_simplex(points: Floats) -> Floats:
    """Nearest probabilities to each row [Held, Wolfe, Crowder 1974].

    Examples
    --------
    >>> onto_simplex(np.array([0.8, 0.5, -0.1]))
    array([0.65, 0.35, 0.  ])
    """
    rows = np.atleast_2d(points)
    falling = -np.sort(-rows, axis=1)
    above = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = (falling > above).sum(axis=1) - 1
    near = np.maximum(rows - above[np.arange(len(rows)), last][:, None], 0.0)
    return np.asarray((near / near.sum(axis=1, keepdims=True)).reshape(np.shape(points)))


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
    def written_edges(self) -> list[str] | list[float] | None:
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
        chosen = np.array(edges, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError("intervals must be a number of them or a list of edges") from None
    if chosen.ndim != 1 or len(chosen) < 2 or not np.isfinite(chosen).all():
        raise OptionError("intervals must be a number of them or a list of two or more edges")
    cuts = np.ceil((chosen - universe.low) / universe.step - 1e-9).astype(np.int64)
    cuts[-1] += int(chosen[-1] == universe.high)  # the last interval is closed
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


def output_cells(codes: Ints, outputs: Ints | None, operator: Operator) -> Ints:
    """Cell of each released value, by the cuts of `cut_outputs`; additive noise has a cell more below the first."""
    if outputs is None:
        return codes
    return np.searchsorted(outputs, codes, side="right") - (0 if isinstance(operator, Additive) else 1)


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
