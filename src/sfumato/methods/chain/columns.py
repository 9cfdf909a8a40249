"""Columns as the chain draws them: one cell per record, bins for trees, and value frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import count_persons
from sfumato.core.records import Block, BlockKind, CellsByColumn, Records, cells_of_block, columns_of, write_cells
from sfumato.methods.chain.trees import MOST_BINS

__all__ = ["FEW_CLASSES", "LARGEST_SHARE", "ChainColumn", "Ranking", "read_columns"]

FEW_CLASSES = 6
"""Classes of the first column that have slopes of their own; so few numbers count as classes, too."""

LARGEST_SHARE = 0.05
"""Share of the people from which on a number that they hold is a heap; a smooth column has none."""

_SCATTERED = 0.1  # share of the people with rare numbers from which on all numbers of a smooth column are rare
_SCORES = 4095  # largest score of a number: its place among all, in whole numbers
_MANY = 30  # values of a smooth column at least
_MOST_APART = 20  # classes of a target that have leaves of their own
_TAIL = 0.02  # share on either side beyond which the square of a number grows no more
_MOST_CLASSES = 32  # classes that leaves are separated by; the commonest, the rest is one
_QUANTILES = 15  # classes of a column of numbers that has missing cells too


@dataclass(frozen=True, eq=False)
class Ranking:
    """Cells of a column, sorted once.

    ``order`` are their places in increasing order, missing cells last; ``values`` the distinct numbers, ``counts`` how
    many cells hold each, and ``ranks`` which of them each cell holds, the number of values where it is missing.
    """

    order: NDArray[np.int64]
    values: NDArray[np.float64]
    counts: NDArray[np.int64]
    ranks: NDArray[np.int32]

    @classmethod
    def of(cls, cells: NDArray[np.float64]) -> Ranking:
        """Sort cells."""
        order, known = np.argsort(cells), len(cells) - int(np.isnan(cells).sum())
        ordered = cells[order]
        new = np.append(True, ordered[1:] != ordered[:-1])[: len(cells)]
        new[known + 1 :] = False
        starts, ranks = np.flatnonzero(new[:known]), np.empty(len(cells), dtype=np.int32)
        ranks[order] = np.cumsum(new, dtype=np.int32) - 1
        return cls(order, ordered[starts], np.diff(np.append(starts, known)), ranks)


@dataclass(frozen=True, eq=False)
class ChainColumn:
    """One column of the table.

    Parameters
    ----------
    block : Block
        Its coordinates.
    missing : Block, optional
        Its indicator of missing cells.
    cells : ndarray of shape (n,)
        The coordinate of a number, the place of a category; NaN where the cell is missing.
    rare : ndarray of shape (n,)
        Numbers that too few hold to be copied; all of a smooth column where many are, since it is chance which of them
        held by more people.
    edges : ndarray
        Upper ends of the bins of numbers.
    bins : int
    commonest : ndarray
        Categories that have a bin of their own, in order; empty for numbers.
    is_smooth : bool
        Whether the column has many distinct numbers, none missing and none frequent.
    order : ndarray, optional
        Of very many categories the rank of each, by the mean of what they go with most; None if they are few.
    """

    block: Block
    missing: Block | None
    cells: NDArray[np.float64]
    rare: NDArray[np.bool_]
    edges: NDArray[np.float64]
    bins: int
    commonest: NDArray[np.int64]
    is_smooth: bool = False
    order: NDArray[np.float64] | None = None

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.block.column

    @property
    def is_number(self) -> bool:
        """Whether cells are ordered."""
        return self.block.kind is BlockKind.NUMBER

    @property
    def is_classes(self) -> bool:
        """Whether the column is categorical, or has so few numbers that they may be class labels."""
        return not self.is_number or self.bins <= FEW_CLASSES

    @property
    def is_graded(self) -> bool:
        """Whether the column is numeric and neither classes nor codes of an order."""
        return not self.is_classes and not (self.block.extent is not None and self.block.extent.labels)

    @property
    def is_told_apart(self) -> bool:
        """Whether leaves avoid mixing the column's classes if it is the target."""
        return self.is_classes and self.bins <= _MOST_APART

    @property
    def step(self) -> float:
        """Distance of neighbouring numbers; 0 without a grid."""
        extent, scale = self.block.extent, self.block.scale
        if extent is None or extent.labels:
            return 0.0
        if extent.dates:
            return 1.0 / extent.unit
        return extent.step / scale if extent.step is not None and scale else 0.0

    @cached_property
    def bend(self) -> tuple[float, float, float]:
        """Start, zero and end of the squared regressor: near the ends and in the middle of the numbers."""
        known = self.cells[~np.isnan(self.cells)]
        if not len(known):
            return 0.0, 0.0, 0.0
        low, middle, high = np.quantile(known, [_TAIL, 0.5, 1 - _TAIL])
        return float(low), float(middle), float(high)

    def codes(self, cells: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Bin of each cell, original or drawn; missing cells have a bin of their own."""
        absent, shift = np.isnan(cells), int(self.missing is not None)
        if self.is_number:
            found = np.searchsorted(self.edges, cells, side="right")
        elif self.order is not None:
            found = np.searchsorted(self.edges, self.order[np.where(absent, 0, cells).astype(np.int64)], side="right")
        else:
            found = np.full(self.block.categories + 1, len(self.commonest))
            found[self.commonest] = np.arange(len(self.commonest))
            found = found[np.where(absent, 0, cells).astype(np.int64)]
        return np.where(absent, 0, found + shift).astype(np.uint8)

    def score(self, ranking: Ranking | None = None) -> tuple[NDArray[np.int64], int]:
        """What records of a leaf should agree in, and its number of classes; 0 for a number.

        The ``ranking`` of the cells is made if it is not there yet.
        """
        cells, absent = self.cells, np.isnan(self.cells)
        if self.order is not None:
            cells = np.where(absent, np.nan, self.order[np.where(absent, 0, cells).astype(np.int64)])
        elif not self.is_number:
            own = self.codes(self.cells).astype(np.int64)
            classes, places, sizes = np.unique(own, return_inverse=True, return_counts=True)
            if len(classes) <= _MOST_CLASSES:
                return places.astype(np.int64), len(classes)
            rank = np.empty(len(sizes), dtype=np.int64)
            rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
            return np.minimum(rank, _MOST_CLASSES - 1)[places], _MOST_CLASSES
        if absent.any():
            edges = _bin_edges(cells[~absent], np.unique(cells[~absent]), _QUANTILES)
            own = np.where(absent, 0, np.searchsorted(edges, cells, side="right") + 1)
            return own.astype(np.int64), len(edges) + 2
        if ranking is None or cells is not self.cells:
            ranking = Ranking.of(cells)
        middle = (2 * np.cumsum(ranking.counts) - ranking.counts) * _SCORES // (2 * len(cells))
        return middle[ranking.ranks], 0

    def write(self, cells: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        """Write cells into their coordinates."""
        write_cells(cells, self.block, self.missing, values)


def read_columns(records: Records, k: int) -> list[ChainColumn]:
    """Columns of records; numbers held by fewer than ``k`` persons are marked as rare."""
    return [_read(records, block, missing, k) for block, missing in columns_of(records.layout)]


def _read(records: Records, block: Block, missing: Block | None, k: int) -> ChainColumn:
    persons, held = records.persons, records.coordinates
    cells = held.column(block, missing) if isinstance(held, CellsByColumn) else cells_of_block(held, block, missing)
    rare, smooth, known = np.zeros(len(cells), dtype=np.bool_), False, ~np.isnan(cells)
    edges, commonest = np.empty(0), np.empty(0, dtype=np.int64)
    order, room = None, MOST_BINS - int(missing is not None)
    if block.kind is BlockKind.NUMBER:
        ranking = Ranking.of(cells)
        if not (block.extent is not None and block.extent.labels):
            many = ranking.counts
            if persons is not None:
                many = count_persons(np.where(known, ranking.ranks, -1), persons, len(many))
            rare = np.append(many < k, False)[ranking.ranks]
        smooth = bool(
            known.all() and len(ranking.values) >= _MANY and ranking.counts.max() <= LARGEST_SHARE * len(cells)
        )
        if smooth and rare.sum() > _SCATTERED * len(rare):
            rare[:] = True
        edges = _bin_edges(cells[known], ranking.values, room)
        bins = len(edges) + 1
    elif block.kind is BlockKind.CODE:
        order = _rank_categories(records, block, cells)
        ranks = order[cells[known].astype(np.int64)]
        edges = _bin_edges(ranks, np.unique(ranks), room)
        bins = len(edges) + 1
    else:
        sizes = np.bincount(cells[known].astype(np.int64), minlength=block.categories)
        commonest = np.sort(np.argsort(-sizes, kind="stable")[: room - 1])
        bins = len(commonest) + 1
    return ChainColumn(block, missing, cells, rare, edges, bins + int(missing is not None), commonest, smooth, order)


def _rank_categories(records: Records, block: Block, cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank of each category of a long list by the mean of the target, or of the most related coordinate."""
    known = ~np.isnan(cells)
    codes = cells[known].astype(np.int64)
    sizes = np.maximum(np.bincount(codes, minlength=block.categories), 1)
    best, means = -1.0, np.zeros(block.categories)
    others = [each for each in records.layout if each.column != block.column]
    aimed = [each for each in others if each.column == records.target and each.kind is not BlockKind.MISSING]
    for each in aimed or others:
        for place in range(each.start, each.stop):
            whole = records.coordinates
            numbers = (whole.coordinate(place) if isinstance(whole, CellsByColumn) else whole[:, place])[known]
            spread = float(numbers.var())
            if spread <= 0.0:
                continue
            mean = np.bincount(codes, numbers - numbers.mean(), block.categories) / sizes
            explained_share = float(sizes @ mean**2) / (len(numbers) * spread)
            if explained_share > best:
                best, means = explained_share, mean
    ranks = np.empty(len(means))
    ranks[np.argsort(means, kind="stable")] = np.arange(len(means))
    return ranks


def _bin_edges(numbers: NDArray[np.float64], distinct: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Edges of at most ``most`` bins: between distinct numbers, or at quantiles if there are more."""
    if len(distinct) <= most:
        return np.asarray((distinct[1:] + distinct[:-1]) / 2)
    return np.unique(np.quantile(numbers, np.arange(1, most) / most, method="inverted_cdf"))
