"""Sums of a noise law over pairs of cells, without a loop over their places."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.laws.noise import DiscreteGaussian, DiscreteLaplace, DiscreteUniform

if TYPE_CHECKING:
    from typing import Self

__all__ = ["NoiseSums"]

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
        """Give the sum of P[y | x] over the places x of each input cell and y of each output cell."""
        a, b = inputs[:-1, None], inputs[1:, None]
        c, d = outputs[None, :-1], outputs[None, 1:]
        mirrored = c + d > a + b
        a, b, c, d = (np.where(mirrored, *pair) for pair in ((c, a), (d, b), (a, c), (b, d)))
        return np.maximum(self._at(d - 1 - a) - self._at(d - 1 - b) - self._at(c - 1 - a) + self._at(c - 1 - b), 0.0)

    def below(self, inputs: _Places, place: int) -> NDArray[np.float64]:
        """Give the sum of P[y < place | x] over the places x of each input cell, all at or above the place."""
        return self._at(place - 1 - inputs[:-1]) - self._at(place - 1 - inputs[1:])

    def above(self, inputs: _Places, place: int) -> NDArray[np.float64]:
        """Give the sum of P[y >= place | x] over the places x of each input cell, all below the place."""
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
    """Give how far the table must go on below what is asked, for the mass beyond to be nothing."""
    if isinstance(law, DiscreteUniform):
        return float(law.steps)
    if isinstance(law, DiscreteGaussian):
        return law.sd * math.sqrt(2.0 * _TAIL)
    return law.scale * _TAIL
