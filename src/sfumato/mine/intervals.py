"""Columns as intervals: of true values, of released ones, and the chances that lead from the first to the second.

Serves the miners on reconstructed distributions (AS00: R. Agrawal, R. Srikant: Privacy-Preserving Data Mining, SIGMOD
2000, sec. 3 and 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import OptionError, SchemaError
from sfumato.laws.domains import Labels, Universe
from sfumato.laws.operators import Additive, Membership
from sfumato.laws.spec import NoiseSpec
from sfumato.randomize.reconstruct.cells import Cells, cut_outputs
from sfumato.randomize.reconstruct.chances import summed
from sfumato.randomize.reconstruct.channel import Channel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Intervals", "Source", "choose_intervals", "count_missing", "divide", "places_in_order"]

Source = NoiseSpec | Universe
"""How a column came about: by a noise specification, or, given its domain alone, as it was."""

FEWEST, MOST, RECORDS = 10, 100, 100  # intervals, and records for each of them [AS00, sec. 5]


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """One column: m intervals of its domain, k cells of what was released, and P[cell | interval].

    Parameters
    ----------
    name : str
    source : NoiseSpec, Integers, Reals or Labels
    edges : ndarray of shape (m + 1,)
        First place of each interval, and the end of the last.
    cuts : ndarray of shape (k - 1,)
        First output of each cell but the first.
    matrix : ndarray of shape (m, k) or None
        None for a column that came as it was.
    """

    name: str
    source: Source
    edges: NDArray[np.int64]
    cuts: NDArray[np.int64]
    matrix: NDArray[np.float64] | None

    @property
    def size(self) -> int:
        """Number of intervals, m."""
        return len(self.edges) - 1

    @property
    def domain(self) -> Universe:
        """The domain of the true values."""
        return self.source.domain if isinstance(self.source, NoiseSpec) else self.source

    @cached_property
    def channel(self) -> Channel | None:
        """The matrix as reconstruction takes it."""
        return None if self.matrix is None else Channel.of(self.matrix)

    @property
    def ordered(self) -> bool:
        """Whether the domain has an order, so that an interval means something."""
        return not isinstance(self.domain, Labels)

    def of_truth(self, values: ArrayLike) -> NDArray[np.int64]:
        """Give the interval of each true value."""
        return self._inside(self._named(self.domain.encode, values))

    def outputs(self, values: ArrayLike) -> NDArray[np.int64]:
        """Give the output code of each released value."""
        encode = self.source.encode_output if isinstance(self.source, NoiseSpec) else self.source.encode
        return self._named(encode, values)

    def cells(self, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the cell of each output."""
        return np.searchsorted(self.cuts, outputs, side="right")

    def as_sent(self, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the interval that each output lies in, as if it were the truth; beyond the ends, the interval there."""
        operator = self.source.operator if isinstance(self.source, NoiseSpec) else None
        places = outputs
        if isinstance(operator, Membership):  # the middle of the class stands for it
            first, end = (np.searchsorted(operator.cells, operator.outputs, side=side) for side in ("left", "right"))
            places = ((first + end - 1) // 2)[outputs]
        return self._inside(np.clip(places, 0, self.domain.size - 1))

    def threshold(self, boundary: int) -> float:
        """Give the number half way between the values on either side of an interval's boundary."""
        assert not isinstance(self.domain, Labels)
        return float(self.domain.low + (float(self.edges[boundary]) - 0.5) * self.domain.step)

    def _inside(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self.edges[1:-1], places, side="right")

    def _named(self, encode: Any, values: ArrayLike) -> NDArray[np.int64]:
        array = np.asarray(values)
        gone = count_missing(array)
        if gone:
            raise SchemaError(f"column {self.name!r} has {gone} missing values; fill them or leave the rows out")
        try:
            return np.asarray(encode(array), dtype=np.int64)
        except SchemaError as error:
            raise SchemaError(f"column {self.name!r}: {error}") from None


def choose_intervals(records: int) -> int:
    """Give the number of intervals that AS00 takes: 100 records in each on average, but 10 to 100 of them.

    Examples
    --------
    >>> choose_intervals(500), choose_intervals(4000), choose_intervals(100_000)
    (10, 40, 100)
    """
    return min(MOST, max(FEWEST, records // RECORDS))


def divide(name: str, source: Source, intervals: int, values: ArrayLike) -> Intervals:
    """Divide a column into intervals of equally many values; labels, and domains with fewer values, into the values.

    Parameters
    ----------
    name : str
    source : NoiseSpec, Integers, Reals or Labels
    intervals : int
    values : array of shape (n,)
        What was released: cells reach as far as these do.

    Raises
    ------
    OptionError
        For something that is neither specification nor domain.
    SchemaError
        For missing values, and those that cannot have come from the law.
    """
    if not isinstance(source, NoiseSpec | Universe):
        raise OptionError(f"column {name!r} has no noise specification; give one, or its domain if it is as it was")
    domain = source.domain if isinstance(source, NoiseSpec) else source
    count = domain.size if isinstance(domain, Labels) else min(intervals, domain.size)
    edges = np.array([domain.size * at // count for at in range(count + 1)], dtype=np.int64)
    plain = Intervals(name, source, edges, edges[1:-1], None)
    if not isinstance(source, NoiseSpec):
        return plain
    operator = source.operator
    outer = cut_outputs(Cells(domain, edges, count == domain.size), operator, plain.outputs(values))
    chances = summed(operator, edges, outer)
    if outer is None:  # each output is a cell
        return replace(plain, cuts=np.arange(1, chances.shape[1]), matrix=chances)
    return replace(plain, cuts=outer if isinstance(operator, Additive) else outer[1:-1], matrix=chances)


def places_in_order(outputs: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Give the rank of each output among all; equal ones in an order that the rows have no part in."""
    rank = np.empty(len(outputs), dtype=np.int64)
    rank[np.lexsort((rng.permutation(len(outputs)), outputs))] = np.arange(len(outputs))
    return rank


def count_missing(values: NDArray[Any]) -> int:
    """Count what is not there: None and not-a-number."""
    if values.dtype.kind == "f":
        return int(np.isnan(values).sum())
    if values.dtype.kind != "O":
        return 0
    return sum(value is None or (isinstance(value, float) and math.isnan(value)) for value in values.ravel())
