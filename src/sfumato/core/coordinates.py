"""Coordinates of records that are held as one cell a column, until somebody asks for the whole matrix.

A column of categories is one small number a record here and a float for each category there: of a million mixed rows
the matrix is several times as large as the cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout, width

__all__ = ["CellsByColumn", "absent_of", "cells_of_block", "columns_of", "smallest_places", "write_cells"]


def columns_of(layout: Layout) -> Iterator[tuple[Block, Block | None]]:
    """Block of each column, with that of its missing cells where it has one."""
    missing = {block.column: block for block in layout if block.kind is BlockKind.MISSING}
    for block in layout:
        if block.kind is not BlockKind.MISSING:
            yield block, missing.get(block.column)


def absent_of(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Which cells are missing: NaN among floats, below 0 among places of categories."""
    return np.asarray(np.isnan(cells) if cells.dtype.kind == "f" else cells < 0)


def smallest_places(places: NDArray[Any], block: Block) -> NDArray[Any]:
    """Places of categories in the smallest type that holds them."""
    return places.astype(np.min_scalar_type(-max(1, block.categories)))


def write_cells(cells: NDArray[Any], block: Block, missing: Block | None, values: NDArray[np.float64]) -> None:
    """Put the cells of a column into its coordinates, which are all 0 before."""
    absent = absent_of(cells)
    rows = np.flatnonzero(~absent)
    if block.kind is BlockKind.NUMBER:
        values[rows, block.start] = cells[rows]
    elif block.kind is BlockKind.CODE:
        values[rows, block.start] = block.coordinates(cells[rows].astype(np.int64))
    else:
        values[rows, block.start + cells[rows].astype(np.int64)] = CATEGORY_SCALE
    if missing is not None:
        values[absent, block.where] = block.fill
        values[absent, missing.start] = 1.0


def cells_of_block(values: NDArray[np.float64], block: Block, missing: Block | None) -> NDArray[np.float64]:
    """Cells of a column from coordinates: the number, or the place of the category; NaN where one is missing."""
    if block.kind is BlockKind.NUMBER:
        cells = np.array(values[:, block.start])
    elif block.kind is BlockKind.CODE:
        cells = block.places(values).astype(np.float64)
    else:
        cells = np.argmax(values[:, block.where], axis=1).astype(np.float64)
    return cells if missing is None else np.where(values[:, missing.start] > 0.5, np.nan, cells)


class CellsByColumn:
    """The cells of records by column; once their coordinates were asked for, these in their place.

    Parameters
    ----------
    layout : tuple of Block
    columns : mapping of str to ndarray of shape (n,)
        The coordinate of a number, NaN where it is missing, or the place of a category, -1 where it is missing.
    """

    def __init__(self, layout: Layout, columns: Mapping[str, NDArray[Any]]) -> None:
        self._layout = layout
        self._columns = dict(columns)
        self._rows = len(next(iter(self._columns.values())))
        self._values: NDArray[np.float64] | None = None
        for cells in self._columns.values():
            cells.setflags(write=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Records and coordinates."""
        return self._rows, width(self._layout)

    @property
    def values(self) -> NDArray[np.float64]:
        """The coordinates of all records, made once; the cells are then read off them."""
        if self._values is None:
            values = np.zeros(self.shape)
            for block, missing in columns_of(self._layout):
                write_cells(self._columns[block.column], block, missing, values)
            values.setflags(write=False)
            self._values, self._columns = values, {}
        return self._values

    def column(self, block: Block, missing: Block | None) -> NDArray[np.float64]:
        """Cells of one column as `cells_of_block` reads them; a column of numbers without a copy."""
        if self._values is not None:
            return cells_of_block(self._values, block, missing)
        cells = self._columns[block.column]
        return cells if cells.dtype == np.float64 else np.where(cells < 0, np.nan, cells)

    def coordinate(self, place: int) -> NDArray[np.float64]:
        """One coordinate of all records."""
        if self._values is not None:
            return self._values[:, place]
        block, missing = next(
            each for each in columns_of(self._layout) if each[0].start <= place < (each[1] or each[0]).stop
        )
        cells = self._columns[block.column]
        absent = absent_of(cells)
        if place >= block.stop:
            return absent.astype(np.float64)
        if block.kind is BlockKind.NUMBER:
            found = np.array(cells, dtype=np.float64)
        elif block.kind is BlockKind.CODE:
            found = block.coordinates(cells.astype(np.int64))
        else:
            found = np.where(cells == place - block.start, CATEGORY_SCALE, 0.0)
        found[absent] = 0.0 if missing is None else block.fill[place - block.start]
        return found

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float64] | CellsByColumn:
        """Those of some records."""
        if self._values is not None:
            return self._values[rows]
        return CellsByColumn(self._layout, {name: cells[rows] for name, cells in self._columns.items()})

    def __repr__(self) -> str:
        return f"CellsByColumn(n={self._rows})"
