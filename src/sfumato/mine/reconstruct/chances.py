"""Chances of output cells given input cells, for each law: summed over the places, or taken at the midpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.laws.exact import share
from sfumato.core.laws.noise import DiscreteGaussian, DiscreteLaplace, DiscreteUniform
from sfumato.core.laws.operators import Additive, KeepOrReplace, Membership, Mixture, Operator, Response, ShiftModulo

__all__ = ["NoiseSums", "at_midpoints", "summed"]

_LONGEST = 2**20  # entries of the table; a longer noise is taken on a coarser grid, less than a millionth of its span
_TAIL = 40.0  # e^-40 of the mass beyond the table

_Places = NDArray[np.int64]
_Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class NoiseSums:
    """Twice summed chances of a symmetric noise, H(k) = sum_{j <= k} F(j) with F its distribution function.

    Then sum_{x = a}^{b - 1} P[x + noise < c] = H(c - 1 - a) - H(c - 1 - b), and the chance of a cell is a difference of
    two of these. Where cell lies above cell, the mirror image is used, so that small chances are differences of small
    numbers.
    """

    table: NDArray[np.float64]
    first: int
    """Place of the first entry, counted in steps of the table."""
    step: int
    """Places of the domain between two entries."""

    @classmethod
    def over(cls, law: DiscreteLaplace | DiscreteGaussian | DiscreteUniform, span: int, width: int) -> Self:
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

    def between(self, inputs: _Places, outputs: _Places) -> _Matrix:
        """Sum of P[y | x] over the places x of each input cell and y of each output cell."""
        a, b = inputs[:-1, None], inputs[1:, None]
        c, d = outputs[None, :-1], outputs[None, 1:]
        mirrored = c + d > a + b
        a, b, c, d = (np.where(mirrored, *pair) for pair in ((c, a), (d, b), (a, c), (b, d)))
        return np.maximum(self._at(d - 1 - a) - self._at(d - 1 - b) - self._at(c - 1 - a) + self._at(c - 1 - b), 0.0)

    def below(self, inputs: _Places, place: int) -> NDArray[np.float64]:
        """Sum of P[y < place | x] over the places x of each input cell, all at or above the place."""
        return self._at(place - 1 - inputs[:-1]) - self._at(place - 1 - inputs[1:])

    def above(self, inputs: _Places, place: int) -> NDArray[np.float64]:
        """Sum of P[y >= place | x] over the places x of each input cell, all below the place."""
        return self._at(inputs[1:] - 1 - place) - self._at(inputs[:-1] - 1 - place)

    def _at(self, places: _Places) -> _Matrix:
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


def _reach(law: DiscreteLaplace | DiscreteGaussian | DiscreteUniform) -> float:
    """How far the table must go on below what is asked, for the mass beyond to be nothing."""
    if isinstance(law, DiscreteUniform):
        return float(law.steps)
    if isinstance(law, DiscreteGaussian):
        return law.sd * math.sqrt(2.0 * _TAIL)
    return law.scale * _TAIL


def summed(operator: Operator, inputs: _Places, outputs: _Places | None) -> _Matrix:
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


def at_midpoints(operator: Additive, inputs: _Places, outputs: _Places, exact: _Matrix) -> _Matrix:
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


def _response(operator: Response, inputs: _Places, outputs: _Places | None) -> _Matrix:
    single = operator.probabilities(np.arange(len(operator.outputs))).T
    rows = np.add.reduceat(single, inputs[:-1], axis=0) / np.diff(inputs)[:, None]
    return np.asarray(rows if outputs is None else np.add.reduceat(rows, outputs[:-1], axis=1))


def _additive(operator: Additive, inputs: _Places, outputs: _Places) -> _Matrix:
    width = int(max(np.diff(inputs).max(), np.diff(outputs).max()))
    sums = NoiseSums.over(operator.law, int(np.ptp(outputs)), width)
    inner = sums.between(inputs, outputs)
    low, high = sums.below(inputs, int(outputs[0])), sums.above(inputs, int(outputs[-1]))
    total = np.column_stack([low, inner, high]) / np.diff(inputs)[:, None]
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def _shift_modulo(operator: ShiftModulo, inputs: _Places, outputs: _Places) -> _Matrix:
    """Add up all the ways round the ring: whole turns lead everywhere alike, what is left is a shift within one."""
    turns, reach = divmod(operator.reach, operator.size)
    within = _kept(inputs, outputs)
    if reach:
        sums = NoiseSums.over(DiscreteUniform(float(reach)), 2 * operator.size, int(np.diff(inputs).max()))
        ways = [sums.between(inputs, outputs + turn * operator.size) for turn in (-1, 0, 1)]
        within = np.sum(ways, axis=0)
        within /= within.sum(axis=1, keepdims=True)
    return np.asarray((2 * turns * np.diff(outputs) + (2 * reach + 1) * within) / (2 * operator.reach + 1))


def _keep_or_replace(operator: KeepOrReplace, inputs: _Places, outputs: _Places) -> _Matrix:
    keep, same = float(share("keep", operator.keep)), _kept(inputs, outputs)
    other = (np.diff(outputs) - same) / (operator.size - 1)
    return np.asarray(keep * same + (1.0 - keep) * other)


def _kept(inputs: _Places, outputs: _Places) -> _Matrix:
    """Share of the places of each input cell that lie in each output cell."""
    first = np.maximum(inputs[:-1, None], outputs[None, :-1])
    last = np.minimum(inputs[1:, None], outputs[None, 1:])
    return np.asarray(np.maximum(last - first, 0) / np.diff(inputs)[:, None])


def _membership(operator: Membership, inputs: _Places) -> _Matrix:
    matrix = np.zeros((len(inputs) - 1, len(operator.outputs)))
    rows = np.repeat(np.arange(len(inputs) - 1), np.diff(inputs))
    np.add.at(matrix, (rows, np.array(operator.cells)), 1.0)
    return np.asarray(matrix / np.diff(inputs)[:, None])
