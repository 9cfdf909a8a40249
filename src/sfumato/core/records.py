"""What a method sees of a table: one float matrix and the layout of its coordinates.

Coordinates of records that are held as one cell a column, until someone asks for the whole matrix.

A column of categories is one small number a record here and a float for each category there: of a million mixed rows
the matrix is several times as large as the cells.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Bools, Floats, Ints

__all__ = [
    "CATEGORY_SCALE",
    "Answers",
    "Block",
    "BlockKind",
    "CellsByColumn",
    "Extent",
    "Grids",
    "Layout",
    "Records",
    "RowRequest",
    "cells_of_block",
    "columns_of",
    "smallest_codes",
    "width",
    "write_cells",
]

CATEGORY_SCALE = 0.5**0.5
"""Value of the one non-zero coordinate of a category: two different categories lie at distance 1."""


class BlockKind(StrEnum):
    """Meaning of a block's coordinates."""

    NUMBER = "number"
    """One standardized coordinate."""
    CATEGORY = "category"
    """One coordinate a category, `CATEGORY_SCALE` at the record's own and 0 elsewhere."""
    CODE = "code"
    """One standardized coordinate, the place of the record's category among very many."""
    MISSING = "missing"
    """One coordinate: 1 where the cell is missing, else 0. Follows the block of its column."""


_WHOLE = re.compile(r"-?\d{1,30}")
_LARGEST_WHOLE = 2**53  # up to which doubles tell whole numbers apart


@dataclass(frozen=True, repr=False)
class Extent:
    """Values that a column may take, in its own units.

    ``declared`` ones are public knowledge; others were read off the data. Plain numbers have ``low``, ``high`` and
    ``step``, each None if it is open; categories and places in an order have ``labels``, as their cells are written.
    For places in an order, and of one category among very many, the coordinate times ``unit`` plus ``origin`` is the
    place. ``dates`` is the step of a column of dates, which count in it since 1970 (those by months in days), by
    ``unit`` and ``origin`` too; ``first`` and ``last`` are the dates that the column can hold at all.
    """

    declared: bool
    low: float | None = None
    high: float | None = None
    step: float | None = None
    labels: tuple[str, ...] = ()
    origin: float = 0.0
    unit: float = 1.0
    dates: str = ""
    first: float = 0.0
    last: float = 0.0

    def __repr__(self) -> str:
        return f"Extent({'declared' if self.declared else 'observed'})"


@dataclass(frozen=True)
class Block:
    """Coordinates ``start`` to ``stop`` of one column.

    ``fill`` is what a missing cell takes in these coordinates: the column's mean, so that it pulls
    no distance either way. Of a column of plain numbers the coordinate times ``scale`` plus ``centre`` is the number in
    the column's own units; None for categories, places in an order and dates.
    """

    column: str
    kind: BlockKind
    start: int
    stop: int
    fill: tuple[float, ...] = ()
    centre: float | None = field(default=None, repr=False)
    scale: float | None = field(default=None, repr=False)
    extent: Extent | None = field(default=None, repr=False)

    @property
    def where(self) -> slice:
        """The block's coordinates."""
        return slice(self.start, self.stop)

    @property
    def categories(self) -> int:
        """Number of categories; 1 for numeric blocks."""
        if self.kind is BlockKind.CODE and self.extent is not None:
            return len(self.extent.labels)
        return self.stop - self.start

    @property
    def named(self) -> str:
        """Name of a categorical column for errors, with the reason if it holds integers.

        Examples
        --------
        >>> Block("code", BlockKind.CATEGORY, 0, 2, extent=Extent(False, labels=("1", "9223372036854775809"))).named
        "'code' (whole numbers beyond 2^53, which cannot be computed with, count as categories)"
        """
        labels = () if self.extent is None else self.extent.labels
        whole = all(_WHOLE.fullmatch(label) for label in labels)
        beyond = whole and any(abs(int(label)) > _LARGEST_WHOLE for label in labels)
        hint = " (whole numbers beyond 2^53, which cannot be computed with, count as categories)"
        return f"{self.column!r}{hint if beyond else ''}"

    def places(self, values: Floats) -> Ints:
        """Category codes for coordinates of a `BlockKind.CODE` block: the nearest category."""
        assert self.extent is not None
        found = np.rint(values[:, self.start] * self.extent.unit + self.extent.origin)
        return np.clip(found, 0, len(self.extent.labels) - 1).astype(np.int64)

    def coordinates(self, places: Ints) -> Floats:
        """Coordinates of category codes of a `BlockKind.CODE` block."""
        assert self.extent is not None
        return np.asarray((places - self.extent.origin) / self.extent.unit, dtype=np.float64)


Layout = tuple[Block, ...]
Grids = tuple[tuple[str, float, float], ...]
"""Columns, a place of the grid of each, and its step."""


def width(layout: Layout) -> int:
    """Number of coordinates in a layout."""
    return layout[-1].stop if layout else 0


@dataclass(frozen=True, eq=False, repr=False)
class RowRequest:
    """Which synthetic rows a method is asked to draw.

    ``rows`` is how many. Where a rule ``where`` is to be fulfilled, ``columns`` are those that it speaks of, and
    ``meets`` tells it of rows of coordinates, whatever their other columns hold.
    """

    rows: int
    where: str = ""
    columns: tuple[str, ...] = ()
    meets: Callable[[Floats], Bools] | None = None

    def __repr__(self) -> str:
        return f"Wanted(rows={self.rows})"


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """Randomized answers of a column: index into ``labels`` for each cell, -1 if missing.

    Without labels they are whole numbers from 0 to ``most``. ``ordered`` says that the labels have an order.
    """

    column: str
    codes: Ints
    labels: tuple[str, ...] = ()
    most: int = 0
    ordered: bool = False

    def take(self, rows: Ints) -> Answers:
        """A subset of the cells."""
        return dataclasses.replace(self, codes=self.codes[rows])

    def __repr__(self) -> str:
        return f"Answers({self.column!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """The records of a table as a method sees them.

    Parameters
    ----------
    coordinates : ndarray of shape (n, d), or CellsByColumn
        Coordinates, made read-only; or the cells that they are made of when someone asks for ``values``.
    layout : tuple of Block
        Which coordinates belong to which column.
    levels : ndarray of shape (n,)
        Privacy level that each record asks for; 0 if it asks for none of its own.
    strata : ndarray of shape (n,)
        Groups never cross a stratum; all zero if there is one.
    target : str, optional
        The column that will be mined: a class or a response.
    moved : frozenset of str
        Columns whose numbers were moved out of their domain on purpose: they are neither brought inside old bounds nor
        onto an old step; whole numbers are rounded.
    grids : tuple of (str, float, float)
        Moved columns whose numbers lie on a grid, with a place of it and its step: they are written exactly there.
    unbounded : frozenset of str
        Columns of numbers, orders or dates that got noise: bounds that were only observed do not bring them back, for
        that would move their mean. Type, step and declared bounds stay.
    persons : ndarray of shape (n,), optional
        Whom each record is about; None if each is about a person of its own.
    answers : tuple of Answers
        Columns that leave as values of another kind; their coordinates hold a value that fits each answer best, to
        compare them by.
    wanted : Wanted, optional
        Rows that are to be made of them; None where as many as there are records.
    linked : bool
        Rows drawn for a person stay together: released ones name their person, too.
    among : int
        How many records the table has that these are a cell of; 0 if they are all of them.
    highest : int
        Highest level that a record of that table asks for; 0 if they are all of them.
    public_level : int
        Level that may be stated of the whole table; 0 if it is not known.
    """

    coordinates: Floats | CellsByColumn
    layout: Layout
    levels: Ints
    strata: Ints
    target: str | None = None
    moved: frozenset[str] = frozenset()
    grids: Grids = ()
    unbounded: frozenset[str] = frozenset()
    persons: Ints | None = None
    wanted: RowRequest | None = None
    linked: bool = False
    answers: tuple[Answers, ...] = ()
    among: int = 0
    highest: int = 0
    public_level: int = 0

    def made(
        self,
        values: Floats,
        *,
        moved: frozenset[str] = frozenset(),
        grids: Grids = (),
        unbounded: frozenset[str] = frozenset(),
        answers: tuple[Answers, ...] = (),
    ) -> Records:
        """Rows made of these records, without levels and strata."""
        levels, strata = (np.zeros(len(values), dtype=np.int64) for _ in range(2))
        return Records(values, self.layout, levels, strata, self.target, moved, grids, unbounded, answers=answers)

    def __post_init__(self) -> None:
        n, d = self.coordinates.shape
        if d != width(self.layout) or self.levels.shape != (n,) or self.strata.shape != (n,):
            raise ValueError(f"records of shape ({n}, {d}) do not fit their layout, levels or strata")
        if self.target is not None and all(block.column != self.target for block in self.layout):
            raise ValueError(f"the target {self.target!r} is not a column of the layout")
        numbers = {block.column for block in self.layout if block.scale is not None or _is_date(block)}
        if not self.moved <= numbers:
            raise ValueError(f"{len(self.moved - numbers)} columns were moved that are no plain numbers of the layout")
        if not {column for column, _, _ in self.grids} <= self.moved:
            raise ValueError("a grid is given for a column that was not moved")
        if not self.unbounded <= {block.column for block in self.layout if block.kind is BlockKind.NUMBER}:
            raise ValueError("a column without numbers has no bounds to be freed from")
        if self.persons is not None and self.persons.shape != (n,):
            raise ValueError(f"there are {n} records and {len(self.persons)} of them identify their persons")
        if any(each.codes.shape != (n,) for each in self.answers):
            raise ValueError(f"there are {n} records and another number of answers")
        if isinstance(self.coordinates, np.ndarray):
            self.coordinates.setflags(write=False)
        for array in (self.levels, self.strata, *(() if self.persons is None else (self.persons,))):
            array.setflags(write=False)

    @property
    def values(self) -> Floats:
        """Coordinates of all records."""
        return self.coordinates if isinstance(self.coordinates, np.ndarray) else self.coordinates.values

    def __len__(self) -> int:
        return len(self.levels)

    def take(self, rows: Ints) -> Records:
        """A subset of the records."""
        return dataclasses.replace(
            self,
            coordinates=self.coordinates[rows]
            if isinstance(self.coordinates, np.ndarray)
            else self.coordinates.take(rows),
            levels=self.levels[rows],
            strata=self.strata[rows],
            persons=None if self.persons is None else self.persons[rows],
            answers=tuple(each.take(rows) for each in self.answers),
        )

    def __repr__(self) -> str:
        return f"Records(n={len(self)}, d={self.coordinates.shape[1]}, blocks={len(self.layout)})"


def _is_date(block: Block) -> bool:
    return block.extent is not None and bool(block.extent.dates)


def columns_of(layout: Layout) -> Iterator[tuple[Block, Block | None]]:
    """Block of each column, with the block of its missing indicator, if any."""
    missing = {block.column: block for block in layout if block.kind is BlockKind.MISSING}
    for block in layout:
        if block.kind is not BlockKind.MISSING:
            yield block, missing.get(block.column)


def _missing_of(cells: NDArray[Any]) -> Bools:
    """Missing cells: NaN among floats, negative category codes."""
    return np.asarray(np.isnan(cells) if cells.dtype.kind == "f" else cells < 0)


def smallest_codes(places: NDArray[Any], block: Block) -> NDArray[Any]:
    """Category codes in the smallest sufficient integer type."""
    return places.astype(np.min_scalar_type(-max(1, block.categories)))


def write_cells(cells: NDArray[Any], block: Block, missing: Block | None, values: Floats) -> None:
    """Write the cells of a column into its coordinates, which must be 0 before."""
    absent = _missing_of(cells)
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


def cells_of_block(values: Floats, block: Block, missing: Block | None) -> Floats:
    """Cells of a column from coordinates: numbers or category codes, NaN if missing."""
    if block.kind is BlockKind.NUMBER:
        cells = np.array(values[:, block.start])
    elif block.kind is BlockKind.CODE:
        cells = block.places(values).astype(np.float64)
    else:
        cells = np.argmax(values[:, block.where], axis=1).astype(np.float64)
    return cells if missing is None else np.where(values[:, missing.start] > 0.5, np.nan, cells)


class CellsByColumn:
    """Cells of records by column; replaced by coordinates once these are requested.

    Parameters
    ----------
    layout : tuple of Block
    columns : mapping of str to ndarray of shape (n,)
        The coordinate of a number, NaN if it is missing, or the place of a category, -1 if it is missing.
    """

    def __init__(self, layout: Layout, columns: Mapping[str, NDArray[Any]]) -> None:
        self._layout = layout
        self._columns = dict(columns)
        self._rows = len(next(iter(self._columns.values())))
        self._values: Floats | None = None
        for cells in self._columns.values():
            cells.setflags(write=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of records and of coordinates."""
        return self._rows, width(self._layout)

    @property
    def values(self) -> Floats:
        """Coordinates of all records, computed once."""
        if self._values is None:
            values = np.zeros(self.shape)
            for block, missing in columns_of(self._layout):
                write_cells(self._columns[block.column], block, missing, values)
            values.setflags(write=False)
            self._values, self._columns = values, {}
        return self._values

    def column(self, block: Block, missing: Block | None) -> Floats:
        """Cells of one column as `cells_of_block` gives them; numeric columns without a copy."""
        if self._values is not None:
            return cells_of_block(self._values, block, missing)
        cells = self._columns[block.column]
        return cells if cells.dtype == np.float64 else np.where(cells < 0, np.nan, cells)

    def coordinate(self, place: int) -> Floats:
        """One coordinate of all records."""
        if self._values is not None:
            return self._values[:, place]
        block, missing = next(
            each for each in columns_of(self._layout) if each[0].start <= place < (each[1] or each[0]).stop
        )
        cells = self._columns[block.column]
        absent = _missing_of(cells)
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

    def take(self, rows: Ints) -> Floats | CellsByColumn:
        """Cells of a subset of the records."""
        if self._values is not None:
            return self._values[rows]
        return CellsByColumn(self._layout, {name: cells[rows] for name, cells in self._columns.items()})

    def __repr__(self) -> str:
        return f"CellsByColumn(n={self._rows})"
