"""Sums of products of both tables' columns, kept for blocks of rows so that redraws cost no pass over the rows.

Four kinds of coordinates stand side by side: each ordered column x with 0 where a cell is missing, its mask of present
cells, its square, and one coordinate a category. Their products hold all that correlations over the rows where both
cells are present, correlation ratios and contingency tables need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import Cells, ColumnPair

__all__ = ["Moments", "Plan", "gather", "redraws", "tally"]

_BLOCKS = (8, 32)  # fewest and most blocks of rows
_NUMBERS = 10_000_000  # numbers of sums held at once, for each table
_CATEGORIES = 50  # most categories kept apart in one column
_ALL_CATEGORIES = 1500  # and in all columns together
_CHUNK = 4_000_000  # numbers of coordinates held at once
_AT_ONCE = 2_000_000  # numbers of redrawn sums held at once


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Which coordinate means what, learnt from the original.

    ``order`` puts the columns, ordered ones first and then those of categories, back into the table's order.
    """

    ordered: tuple[int, ...]
    nominal: tuple[int, ...]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    pools: tuple[NDArray[np.int64], ...]
    starts: NDArray[np.int64]
    width: int

    @property
    def order(self) -> NDArray[np.int64]:
        """Where each column of the table stands among the ordered and then the nominal ones."""
        return np.argsort(np.array([*self.ordered, *self.nominal], dtype=np.int64))

    @classmethod
    def of(cls, pairs: Sequence[ColumnPair]) -> Plan:
        """Learn centres, scales and the frequent categories from the original."""
        ordered = tuple(place for place, pair in enumerate(pairs) if pair.is_number)
        nominal = tuple(place for place, pair in enumerate(pairs) if not pair.is_number)
        present = [pairs[place].original.present for place in ordered]
        mean = np.array([values.mean() if len(values) else 0.0 for values in present])
        spread = np.array([_deviation(values) for values in present])
        scale = np.where(spread > 1e-12 * np.abs(mean), spread, 1.0)
        most = max(5, min(_CATEGORIES, _ALL_CATEGORIES // max(1, len(nominal))))
        pools = tuple(_pool(pairs[place], most) for place in nominal)
        starts = 3 * len(ordered) + np.concatenate([[0], np.cumsum([pool.max() + 1 for pool in pools])]).astype(int)
        return cls(ordered, nominal, mean, scale, pools, starts[:-1], int(starts[-1]))

    def coordinates(self, cells: Sequence[Cells], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Write some rows of a table in these coordinates."""
        q = len(self.ordered)
        values = np.zeros((len(rows), self.width))
        for column, place in enumerate(self.ordered):
            here = ~cells[place].absent[rows]
            values[here, column] = (cells[place].values[rows[here]] - self.mean[column]) / self.scale[column]
            values[here, q + column] = 1.0
        values[:, 2 * q : 3 * q] = values[:, :q] ** 2
        for start, pool, place in zip(self.starts, self.pools, self.nominal, strict=True):
            codes = np.where(cells[place].absent[rows], -1, cells[place].values[rows]).astype(np.int64)
            values[np.arange(len(rows)), start + pool[codes + 1]] = 1.0
        return values


def _deviation(values: NDArray[np.float64]) -> float:
    size = float(np.abs(values).max(initial=0.0))
    return float((values / size).std() * size) if size > 0 else 0.0  # so that no square overflows


def _pool(pair: ColumnPair, most: int) -> NDArray[np.int64]:
    """Give each category its coordinate: missing cells the first, rare categories one together."""
    size = 1 + int(max(pair.original.values.max(initial=0), pair.released.values.max(initial=0)))
    counts = np.bincount(pair.original.present.astype(np.int64), minlength=size)
    rank = np.empty(size, dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(size)
    return np.concatenate([[0], 1 + np.minimum(rank, most - 1)])


@dataclass(frozen=True, eq=False, repr=False)
class Moments:
    """The sums of one table: for all its rows, and for blocks of them."""

    plan: Plan
    blocks: NDArray[np.float64]
    rows: int

    @property
    def total(self) -> NDArray[np.float64]:
        """The sums over all rows."""
        return np.asarray(self.blocks.sum(axis=0))

    def of_ordered(self) -> Moments:
        """Keep the sums of the ordered columns alone."""
        width = 3 * len(self.plan.ordered)
        return Moments(self.plan, np.ascontiguousarray(self.blocks[:, :width, :width]), self.rows)


def tally(plan: Plan, cells: Sequence[Cells]) -> NDArray[np.float64]:
    """Sum the products of coordinates over all rows, in their order and with no chance in it."""
    sums = np.zeros((plan.width, plan.width))
    _add(sums, plan, cells, np.arange(len(cells[0].values)))
    return sums


def _add(sums: NDArray[np.float64], plan: Plan, cells: Sequence[Cells], rows: NDArray[np.int64]) -> None:
    step = max(1, _CHUNK // plan.width)
    for first in range(0, len(rows), step):
        values = plan.coordinates(cells, rows[first : first + step])
        sums += values.T @ values


def gather(plan: Plan, cells: Sequence[Cells], rng: np.random.Generator) -> Moments:
    """Sum the products of coordinates over blocks of rows drawn at random."""
    rows = len(cells[0].values)
    count = int(np.clip(_NUMBERS // plan.width**2, *_BLOCKS))
    blocks = np.zeros((min(count, rows), plan.width, plan.width))
    for block, members in zip(blocks, np.array_split(rng.permutation(rows), len(blocks)), strict=True):
        _add(block, plan, cells, members)
    return Moments(plan, blocks, rows)


def redraws(moments: Moments, rows: int, count: int, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Sums of blocks drawn with replacement, as many as make about so many rows; so many times over.

    Some sums come at once, stacked along the first axis; of tables in the same coordinates equally many.
    """
    blocks, width = len(moments.blocks), moments.blocks.shape[1]
    size = max(2, round(blocks * rows / moments.rows)) if blocks > 1 else 1
    weights = rng.multinomial(size, np.full(blocks, 1 / blocks), count).astype(np.float64)
    flat = moments.blocks.reshape(blocks, -1)
    step = max(1, _AT_ONCE // width**2)
    for first in range(0, count, step):
        yield (weights[first : first + step] @ flat).reshape(-1, width, width)
