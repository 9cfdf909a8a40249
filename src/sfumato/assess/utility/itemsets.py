"""Frequent sets of at most three items in two tables, counted for blocks of rows so that redraws cost no pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import Cells, ColumnPair

__all__ = ["CONFIDENCE", "MOST", "SUPPORT", "Counts", "Rules", "mine"]

_Matrix = NDArray[np.float64]
_Rows = NDArray[np.int64]

SUPPORT = 0.05
"""Share of the rows that have all items of a rule, at least."""
CONFIDENCE = 0.6
"""Share of the rows with the items on the left of a rule that have the one on its right, at least."""
MOST = 80
"""Items that are looked at: the most frequent ones."""

_NEAR = 0.8  # of the support: what is below in both tables is no rule in a redraw either
_BLOCKS = 32
_CHUNK = 4_000_000  # numbers of products of items held at once


@dataclass(frozen=True, eq=False, repr=False)
class Rules:
    """Every rule that may hold, as places in a row of counts: all items of it, and those on its left."""

    whole: _Rows
    left: _Rows

    def support(self, counts: _Matrix, rows: float) -> _Matrix:
        """Give the share of rows that have all items of each rule."""
        return np.asarray(counts[self.whole] / rows)

    def confidence(self, counts: _Matrix) -> _Matrix:
        """Give how often each rule is right; 0 where no row has the items on its left."""
        return np.asarray(counts[self.whole] / np.maximum(counts[self.left], 1.0))

    def hold(self, counts: _Matrix, rows: float) -> NDArray[np.bool_]:
        """Say which rules hold; a hair's breadth of rounding is forgiven."""
        hair = 1e-12
        frequent = self.support(counts, rows) >= SUPPORT - hair
        return np.asarray(frequent & (self.confidence(counts) >= CONFIDENCE - hair))


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """How many rows of each block have the items of each set; the last one is the empty set, which all rows have."""

    blocks: _Matrix

    @property
    def total(self) -> _Matrix:
        """The counts over all rows."""
        return np.asarray(self.blocks.sum(axis=0))

    def redraws(self, rows: float, times: int, rng: np.random.Generator) -> Iterator[_Matrix]:
        """Draw blocks with replacement, as many as make about so many rows, and count; so many times over."""
        count = len(self.blocks)
        size = max(2, round(count * rows / float(self.total[-1]))) if count > 1 else 1
        for weights in rng.multinomial(size, np.full(count, 1 / count), times):
            yield np.asarray(weights @ self.blocks)


def mine(
    pairs: Sequence[ColumnPair], here: _Rows, there: _Rows, rng: np.random.Generator
) -> tuple[Rules, Counts, Counts]:
    """Count what rules are made of, in blocks of the rows ``here`` of the original and ``there`` of the released table.

    Items are a column's categories, and the quarters of an ordered one. Sets of three are looked at only where all
    their pairs are frequent in one of the tables, or nearly.
    """
    codes, others, columns = _items(pairs, here, there)
    if not columns:
        none, alone = np.empty(0, dtype=np.int64), (Counts(np.array([[float(len(rows))]])) for rows in (here, there))
        return Rules(none, none), next(alone), next(alone)
    sides = [_Side.of(table, columns, rng) for table in (codes, others)]
    ones = [side.total() for side in sides]
    near = np.maximum(*(each / side.rows for each, side in zip(ones, sides, strict=True))) >= _NEAR * SUPPORT
    np.fill_diagonal(near, False)
    first, second = np.nonzero(np.triu(near))
    triples = [
        (pair, third)
        for pair, (i, j) in enumerate(zip(first, second, strict=True))
        for third in np.flatnonzero(near[i] & near[j])
        if third > j
    ]
    pair, third = np.array(triples, dtype=np.int64).reshape(-1, 2).T
    counts = [side.count(first, second, pair, third) for side in sides]
    return _rules(len(columns), first, second, pair, third), Counts(counts[0]), Counts(counts[1])


def _rules(items: int, first: _Rows, second: _Rows, pair: _Rows, third: _Rows) -> Rules:
    """Make all rules with one item on their right; counts stand in the order items, pairs, triples, all rows."""
    place = np.zeros((items, items), dtype=np.int64)
    place[first, second] = place[second, first] = items + np.arange(len(first))
    two, three = items + np.arange(len(first)), items + len(first) + np.arange(len(pair))
    i, j = first[pair], second[pair]
    whole = [two, two, three, three, three]
    left = [first, second, place[i, j], place[i, third], place[j, third]]
    return Rules(np.concatenate(whole), np.concatenate(left))


@dataclass(frozen=True, eq=False, repr=False)
class _Side:
    """The items of one table as a matrix of 0 and 1, and which rows make a block."""

    items: NDArray[np.float32]
    blocks: list[_Rows]

    @property
    def rows(self) -> int:
        return len(self.items)

    @classmethod
    def of(cls, codes: _Rows, columns: Sequence[tuple[int, int]], rng: np.random.Generator) -> _Side:
        items = np.column_stack([codes[:, column] == code for column, code in columns]).astype(np.float32)
        return cls(items, np.array_split(rng.permutation(len(items)), min(_BLOCKS, len(items))))

    def total(self) -> _Matrix:
        """Count the rows that have each pair of items; on the diagonal, each item."""
        return sum(
            ((part.T @ part).astype(np.float64) for part in np.array_split(self.items, 1 + len(self.items) // 100_000)),
            np.zeros((self.items.shape[1],) * 2),
        )

    def count(self, first: _Rows, second: _Rows, pair: _Rows, third: _Rows) -> _Matrix:
        """Count the rows of each block that have each item, each pair, each triple, and all rows."""
        width = self.items.shape[1]
        counts = np.zeros((len(self.blocks), width + len(first) + len(pair) + 1))
        step = max(1, _CHUNK // max(1, len(first)))
        for block, members in zip(counts, self.blocks, strict=True):
            for start in range(0, len(members), step):
                rows = self.items[members[start : start + step]]
                both = rows[:, first] * rows[:, second]
                block[:width] += rows.sum(axis=0)
                block[width : width + len(first)] += both.sum(axis=0)
                block[width + len(first) : -1] += (both.T @ rows)[pair, third]
            block[-1] = len(members)
        return counts


def _items(pairs: Sequence[ColumnPair], here: _Rows, there: _Rows) -> tuple[_Rows, _Rows, list[tuple[int, int]]]:
    """Give both tables as codes, -1 where missing, and the most frequent items as column and code.

    A column with a single item in the original is left out: it would stand in rules that say nothing.
    """
    kept = [(pair, cuts) for pair in pairs if _varies(pair, cuts := _cuts(pair), here)]
    codes, others = (
        np.column_stack([_codes(side(pair), cuts, rows) for pair, cuts in kept] or [np.full(len(rows), -1)])
        for side, rows in ((_original, here), (_released, there))
    )
    shares: list[tuple[float, int, int]] = []
    for column in range(codes.shape[1]):
        size = 1 + int(max(codes[:, column].max(initial=-1), others[:, column].max(initial=-1)))
        both = [np.bincount(table[:, column] + 1, minlength=size + 1)[1:] / len(table) for table in (codes, others)]
        often = np.flatnonzero(np.maximum(*both) >= _NEAR * SUPPORT)
        shares.extend((float(both[0][code] + both[1][code]), column, int(code)) for code in often)
    frequent = sorted(shares, key=lambda item: (-item[0], item[1:]))[:MOST]
    return codes, others, [(column, code) for _, column, code in frequent]


def _original(pair: ColumnPair) -> Cells:
    return pair.original


def _released(pair: ColumnPair) -> Cells:
    return pair.released


def _cuts(pair: ColumnPair) -> _Matrix | None:
    if not pair.is_number:
        return None
    present = pair.original.present
    return np.unique(np.quantile(present, [0.25, 0.5, 0.75])) if len(present) else np.empty(0)


def _codes(cells: Cells, cuts: _Matrix | None, rows: _Rows) -> _Rows:
    values, absent = cells.values[rows], cells.absent[rows]
    codes = values.astype(np.int64) if cuts is None else np.searchsorted(cuts, values, side="left")
    return np.where(absent, -1, codes)


def _varies(pair: ColumnPair, cuts: _Matrix | None, rows: _Rows) -> bool:
    return len(np.unique(_codes(pair.original, cuts, rows)[~pair.original.absent[rows]])) > 1
