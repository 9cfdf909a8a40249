"""How columns hang together: one association matrix for mixed kinds, and how far the released one is from it.

Pearson's correlation between two ordered columns, the correlation ratio eta between categories and an ordered column,
and bias-corrected Cramer's V [Bergsma 2013] between two columns of categories; 0 where a column does not vary. All come
from sums of products of coordinates, which are kept for blocks of rows so that redraws cost no pass over the rows. Four
kinds of coordinates stand side by side: each ordered column x with 0 where a cell is missing, its mask of present
cells, its square, and one coordinate a category.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.assess.algebra import NotRun, Values
from sfumato.assess.findings import distance_interval
from sfumato.assess.study import Column, ColumnPair, Matrix, Places

__all__ = [
    "AssociationMatrices",
    "Coordinates",
    "TableSums",
    "association",
    "association_alone",
    "association_difference",
    "covariance",
    "gather",
    "redraws",
]

_TINY = 1e-10  # of a mean square: what rounding leaves of a variance of zero
_BLOCKS = (8, 32)  # fewest and most blocks of rows
_NUMBERS = 10_000_000  # numbers of sums held at once, for each table
_CATEGORIES = 50  # most categories kept apart in one column
_ALL_CATEGORIES = 1500  # and in all columns together
_CHUNK = 4_000_000  # numbers of coordinates held at once
_AT_ONCE = 2_000_000  # numbers of redrawn sums held at once
_RANGE = (0.0, 2.0)


@dataclass(frozen=True, eq=False, repr=False)
class AssociationMatrices:
    """Association matrices of both tables, counted alike, and the released one's as it alone determines it."""

    original: Matrix
    released: Matrix
    alone: Matrix


@dataclass(frozen=True, eq=False, repr=False)
class Coordinates:
    """Which coordinate means what, learnt from the original.

    ``order`` puts the columns, ordered ones first and then those of categories, back into the table's order.
    """

    ordered: tuple[int, ...]
    nominal: tuple[int, ...]
    mean: Matrix
    scale: Matrix
    pools: tuple[Places, ...]
    starts: Places
    width: int

    @property
    def order(self) -> Places:
        """Where each column of the table stands among the ordered and then the nominal ones."""
        return np.argsort(np.array([*self.ordered, *self.nominal], dtype=np.int64))

    @classmethod
    def of(cls, pairs: Sequence[ColumnPair]) -> Coordinates:
        """Coordinates with centres, scales and frequent categories of the original."""
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

    def of_rows(self, cells: Sequence[Column], rows: Places) -> Matrix:
        """Some rows of a table in these coordinates."""
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


def _deviation(values: Matrix) -> float:
    size = float(np.abs(values).max(initial=0.0))
    return float((values / size).std() * size) if size > 0 else 0.0  # so that no square overflows


def _pool(pair: ColumnPair, most: int) -> Places:
    """Coordinate of each category: missing cells the first, rare categories one together."""
    size = 1 + int(max(pair.original.values.max(initial=0), pair.released.values.max(initial=0)))
    counts = np.bincount(pair.original.present.astype(np.int64), minlength=size)
    rank = np.empty(size, dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(size)
    return np.concatenate([[0], 1 + np.minimum(rank, most - 1)])


@dataclass(frozen=True, eq=False, repr=False)
class TableSums:
    """The sums of one table: for all its rows, and for blocks of them."""

    coordinates: Coordinates
    blocks: Matrix
    rows: int

    @property
    def total(self) -> Matrix:
        """The sums over all rows."""
        return np.asarray(self.blocks.sum(axis=0))

    def of_ordered(self) -> TableSums:
        """Keep the sums of the ordered columns alone."""
        width = 3 * len(self.coordinates.ordered)
        return TableSums(self.coordinates, np.ascontiguousarray(self.blocks[:, :width, :width]), self.rows)


def _add(sums: Matrix, plan: Coordinates, cells: Sequence[Column], rows: Places) -> None:
    step = max(1, _CHUNK // plan.width)
    for first in range(0, len(rows), step):
        values = plan.of_rows(cells, rows[first : first + step])
        sums += values.T @ values


def gather(plan: Coordinates, cells: Sequence[Column], rng: np.random.Generator) -> TableSums:
    """Products of coordinates summed over blocks of rows drawn at random."""
    rows = len(cells[0].values)
    count = int(np.clip(_NUMBERS // plan.width**2, *_BLOCKS))
    blocks = np.zeros((min(count, rows), plan.width, plan.width))
    for block, members in zip(blocks, np.array_split(rng.permutation(rows), len(blocks)), strict=True):
        _add(block, plan, cells, members)
    return TableSums(plan, blocks, rows)


def redraws(sums: TableSums, rows: int, count: int, rng: np.random.Generator) -> Iterator[Matrix]:
    """Bootstrap sums of blocks drawn with replacement, about as many rows in each as in the table.

    Some sums come at once, stacked along the first axis; of tables in the same coordinates equally many.
    """
    blocks, width = len(sums.blocks), sums.blocks.shape[1]
    size = max(2, round(blocks * rows / sums.rows)) if blocks > 1 else 1
    weights = rng.multinomial(size, np.full(blocks, 1 / blocks), count).astype(np.float64)
    flat = sums.blocks.reshape(blocks, -1)
    step = max(1, _AT_ONCE // width**2)
    for first in range(0, count, step):
        yield (weights[first : first + step] @ flat).reshape(-1, width, width)


def association_difference(
    names: Sequence[str], original: TableSums, released: TableSums, rng: np.random.Generator
) -> tuple[Values | NotRun, Values | NotRun]:
    """Mean and largest absolute difference of the association matrices of the two tables."""
    if len(names) < 2:
        lacking = NotRun("the table has a single column; a link needs two")
        return lacking, lacking
    pairs = np.triu_indices(len(names), 1)
    plan, before, after = original.coordinates, original.total, released.total
    here, there = association(before, plan)[pairs], association(after, plan)[pairs]
    gap = np.round(np.abs(here - there), 12)  # sums in another order round otherwise
    count = int(np.clip(100_000_000 // plan.width**2, 50, 200))
    sources = ((original, original.rows), (released, released.rows), (original, released.rows))
    gaps, moves = [], []
    for drawn in zip(*(redraws(source, rows, count, rng) for source, rows in sources), strict=True):
        first, second, fresh = (np.ascontiguousarray(association(sums, plan)[:, *pairs]) for sums in drawn)
        gaps.append(np.abs((first - here) - (second - there)))
        moves.append(np.abs(fresh - here))
    strays, chance = np.concatenate(gaps), np.concatenate(moves)
    worst = int(np.argmax(gap))
    between = f", which is between {names[pairs[0][worst]]} and {names[pairs[1][worst]]}"
    mean, largest = (
        Values(
            value, distance_interval(value, how(strays, axis=1), *_RANGE), float(how(chance, axis=1).mean()), note=note
        )
        for how, value, note in ((np.mean, float(gap.mean()), ""), (np.max, float(gap.max()), between))
    )
    return mean, largest


def association(sums: Matrix, plan: Coordinates) -> Matrix:
    """The association matrix of a table from its sums, columns in the table's order; of a stack of sums a stack."""
    ordered, columns = len(plan.ordered), len(plan.ordered) + len(plan.nominal)
    matrix = np.zeros((*sums.shape[:-2], columns, columns))
    matrix[..., :ordered, :ordered] = _pearson(sums, plan)
    if plan.nominal:
        matrix[..., ordered:, ordered:] = _cramer(sums, plan)
    if plan.nominal and ordered:
        ratio = _correlation_ratio(sums, plan)
        matrix[..., ordered:, :ordered], matrix[..., :ordered, ordered:] = ratio, ratio.swapaxes(-1, -2)
    matrix[..., np.arange(columns), np.arange(columns)] = 1.0
    return matrix[..., plan.order[:, None], plan.order]


def association_alone(pairs: Sequence[ColumnPair]) -> Matrix:
    """Association matrix of the released table as the released table alone determines it, with no chance in it."""
    plan = Coordinates.of([dataclasses.replace(pair, original=pair.released) for pair in pairs])
    sums, cells = np.zeros((plan.width, plan.width)), [pair.released for pair in pairs]
    _add(sums, plan, cells, np.arange(len(cells[0].values)))
    return association(sums, plan)


def covariance(sums: Matrix, plan: Coordinates) -> Matrix:
    """The covariance matrix of the ordered columns, in units of the original's standard deviations.

    Each entry is over the rows where both cells are present. Of a stack of sums it is a stack.
    """
    q = len(plan.ordered)
    count = np.maximum(sums[..., q : 2 * q, q : 2 * q], 1.0)
    centre = sums[..., :q, q : 2 * q] / count
    entries = sums[..., :q, :q] / count - centre * centre.swapaxes(-1, -2)
    spread = _variance(sums, q)
    entries[(spread == 0) | (spread.swapaxes(-1, -2) == 0)] = 0.0
    return np.asarray(entries)


def _variance(sums: Matrix, q: int) -> Matrix:
    """Variance of column i over the rows where column j is present too."""
    count = np.maximum(sums[..., q : 2 * q, q : 2 * q], 1.0)
    square = sums[..., 2 * q : 3 * q, q : 2 * q] / count
    spread = square - (sums[..., :q, q : 2 * q] / count) ** 2
    return np.where(spread > _TINY * np.maximum(1.0, square), spread, 0.0)


def _pearson(sums: Matrix, plan: Coordinates) -> Matrix:
    spread = _variance(sums, len(plan.ordered))
    both = np.sqrt(spread * spread.swapaxes(-1, -2))
    return np.clip(np.divide(covariance(sums, plan), both, out=np.zeros_like(both), where=both > 0), -1.0, 1.0)


def _correlation_ratio(sums: Matrix, plan: Coordinates) -> Matrix:
    """Eta: the square root of the share of variance that lies between the categories."""
    q, first = len(plan.ordered), 3 * len(plan.ordered)
    starts = plan.starts - first
    total, count, square = (sums[..., first:, place * q : (place + 1) * q] for place in range(3))
    between = np.add.reduceat(np.divide(total**2, count, out=np.zeros_like(total), where=count > 0), starts, axis=-2)
    count, total, square = (np.add.reduceat(part, starts, axis=-2) for part in (count, total, square))
    middle = np.divide(total**2, count, out=np.zeros_like(total), where=count > 0)
    whole = np.where(square - middle > _TINY * np.maximum(count, square), square - middle, 0.0)
    ratio = np.divide(between - middle, whole, out=np.zeros_like(whole), where=whole > 0)
    return np.asarray(np.sqrt(np.clip(ratio, 0.0, 1.0)))


def _cramer(sums: Matrix, plan: Coordinates) -> Matrix:
    first = 3 * len(plan.ordered)
    starts = plan.starts - first
    tables = sums[..., first:, first:]
    counts = np.diagonal(tables, axis1=-2, axis2=-1)
    rows = counts[..., : starts[1] if len(starts) > 1 else None].sum(axis=-1)[..., None, None]
    filled = np.add.reduceat((counts > 0).astype(np.float64), starts, axis=-1)
    inverse = np.divide(1.0, counts, out=np.zeros_like(counts), where=counts > 0)
    squares = tables**2 * inverse[..., :, None] * inverse[..., None, :]
    contingency = np.add.reduceat(np.add.reduceat(squares, starts, axis=-2), starts, axis=-1) - 1.0  # phi squared
    free = (filled - 1.0)[..., :, None]
    others = np.where(rows < 2, np.inf, rows - 1.0)  # a single row has no links
    corrected = np.maximum(0.0, contingency - free * free.swapaxes(-1, -2) / others)
    sides = np.where(rows < 2, 0.0, free - free**2 / others)
    smaller = np.minimum(sides, sides.swapaxes(-1, -2))
    ratio = np.divide(corrected, smaller, out=np.zeros_like(corrected), where=smaller > 1e-12)
    return np.asarray(np.sqrt(np.clip(ratio, 0.0, 1.0)))
