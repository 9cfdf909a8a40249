"""Predicates on rows, and counting whom they fit: conjunctions of conditions on single columns.

A table keeps its rows sorted by each column, so that a predicate is tried only on the rows that meet its narrowest
condition, and no longer than until it fits two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import Cells
from sfumato.compiled import compiled, fixed, inner, whole

__all__ = ["AT_LEAST", "AT_MOST", "EQUAL", "MISSING", "Predicates", "Rows", "find_fits"]

EQUAL, AT_MOST, AT_LEAST, MISSING = 0, 1, 2, 3


@dataclass(frozen=True, eq=False, repr=False)
class Predicates:
    """Conjunctions of at most w conditions; a condition on column -1 is none.

    Parameters
    ----------
    columns, ways : ndarray of shape (p, w)
        On which column each condition is and what it asks: ``EQUAL``, ``AT_MOST``, ``AT_LEAST`` or ``MISSING``.
    values : ndarray of shape (p, w)
        What the cell is compared with.
    """

    columns: NDArray[np.int64]
    ways: NDArray[np.int64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.columns)

    def take(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Predicates:
        """Select predicates."""
        return Predicates(self.columns[which], self.ways[which], self.values[which])

    def join(self, other: Predicates) -> Predicates:
        """Put two lists of the same width one after the other."""
        return Predicates(
            np.concatenate([self.columns, other.columns]),
            np.concatenate([self.ways, other.ways]),
            np.concatenate([self.values, other.values]),
        )

    def distinct(self) -> Predicates:
        """Drop those that say the same as an earlier one; columns must be in rising order."""
        none = self.columns < 0
        parts = [self.columns, np.where(none, 0, self.ways), np.where(none, 0.0, self.values)]
        order = np.argsort(none, axis=1, kind="stable")
        keys = np.concatenate([np.take_along_axis(part, order, axis=1) for part in parts], axis=1)
        first = np.unique(keys, axis=0, return_index=True)[1]
        return self.take(np.sort(first))


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """A table that predicates are tried on.

    Parameters
    ----------
    cells : ndarray of shape (columns, n)
        Missing cells are NaN.
    order : ndarray of shape (columns, n)
        The rows by rising value of each column, those with missing cells last.
    present : ndarray of shape (columns,)
        How many cells are not missing.
    """

    cells: NDArray[np.float64]
    order: NDArray[np.int32]
    present: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.cells.shape[1])

    @classmethod
    def of(cls, columns: Sequence[Cells]) -> Rows:
        """Stack and sort columns."""
        return cls.of_matrix(np.array([np.where(column.absent, np.nan, column.values) for column in columns]))

    @classmethod
    def of_matrix(cls, cells: NDArray[np.float64]) -> Rows:
        """Sort the rows of a matrix, each of which is a column with NaN for missing cells."""
        order = np.empty(cells.shape, dtype=np.int32)
        for place, column in enumerate(cells):
            order[place] = np.argsort(column)
        return cls(cells, order, (~np.isnan(cells)).sum(axis=1))

    def known(self, column: int) -> NDArray[np.float64]:
        """Give the values of a column in rising order, without missing cells."""
        return np.asarray(self.cells[column][self.order[column, : self.present[column]]])


def find_fits(
    predicates: Predicates, rows: Rows, skip: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the rows that each predicate fits, up to 2, and give the place of the last one counted, else -1.

    Parameters
    ----------
    predicates : Predicates
    rows : Rows
    skip : ndarray of shape (n,), optional
        Rows that are taken to be absent.

    Examples
    --------
    >>> rows = Rows.of_matrix(np.array([[1.0, 2.0, 3.0], [5.0, np.nan, 5.0]]))
    >>> columns, ways = np.array([[0, -1], [0, 1]]), np.array([[AT_MOST, 0], [AT_LEAST, EQUAL]])
    >>> counts, places = find_fits(Predicates(columns, ways, np.array([[2.0, 0.0], [2.0, 5.0]])), rows)
    >>> counts.tolist(), places.tolist()
    ([2, 1], [1, 2])
    """
    counts, places = (np.full(len(predicates), start, dtype=np.int64) for start in (0, -1))
    _find(
        fixed(predicates.columns, np.int64),
        fixed(predicates.ways, np.int64),
        fixed(predicates.values, np.float64),
        fixed(rows.cells, np.float64),
        fixed(rows.order, np.int32),
        fixed(rows.present, np.int64),
        fixed(np.zeros(len(rows), dtype=np.bool_) if skip is None else skip, np.bool_),
        counts,
        places,
    )
    return counts, places


@inner
def _fits(cell: float, way: int, value: float) -> bool:
    if way == 0:
        return cell == value
    if way == 1:
        return cell <= value
    if way == 2:
        return cell >= value
    return cell != cell


@inner
def _first(cells: NDArray[np.float64], order: NDArray[np.int32], present: int, value: float, after: bool) -> int:
    """Give how many of the sorted cells are less than the value, or with ``after`` not greater."""
    low, high = whole(0), present
    while low < high:
        middle = (low + high) // 2
        cell = cells[order[middle]]
        if cell < value or (after and cell == value):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _find(
    columns: NDArray[np.int64],
    ways: NDArray[np.int64],
    values: NDArray[np.float64],
    cells: NDArray[np.float64],
    order: NDArray[np.int32],
    present: NDArray[np.int64],
    skip: NDArray[np.bool_],
    counts: NDArray[np.int64],
    places: NDArray[np.int64],
) -> None:
    """Try each predicate on the rows that meet its narrowest condition and stop at the second that it fits."""
    n = cells.shape[1]
    for p in range(columns.shape[0]):
        lead, start, stop = whole(-1), whole(0), whole(n)
        for condition in range(columns.shape[1]):
            column, way, value = columns[p, condition], ways[p, condition], values[p, condition]
            if column < 0:
                continue
            low, high = whole(0), present[column]
            if way == 3:
                low, high = present[column], whole(n)
            if way == 0 or way == 2:
                low = _first(cells[column], order[column], present[column], value, False)
            if way == 0 or way == 1:
                high = _first(cells[column], order[column], present[column], value, True)
            if lead < 0 or high - low < stop - start:
                lead, start, stop = column, low, high
        for place in range(start, stop):
            row = order[lead, place] if lead >= 0 else place
            fits = not skip[row]
            for condition in range(columns.shape[1]):
                if fits and columns[p, condition] >= 0:
                    fits = _fits(cells[columns[p, condition], row], ways[p, condition], values[p, condition])
            if fits:
                counts[p] += 1
                places[p] = row
                if counts[p] == 2:
                    break
