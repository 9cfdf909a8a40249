"""The codec: a table to one float matrix and back, by its schema.

Continuous, integer, ordinal and date columns become one standardized coordinate each; nominal and boolean ones a
one-hot block; a column with missing cells adds an indicator. Decoding gives back types, steps, bounds, categories and
missing cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import OptionError, SchemaError, TableError
from sfumato.progress import tell
from sfumato.records import CATEGORY_SCALE, Block, BlockKind, Layout, Records
from sfumato.tables.cells import (
    bound_to_number,
    codes_of_cells,
    decimals_of_step,
    is_text,
    numbers_of_cells,
    plain,
    write_codes,
    write_numbers,
)
from sfumato.tables.infer import category_limit
from sfumato.tables.schema import DateStep, Field, Kind, Schema

__all__ = ["MOST_CATEGORIES", "Codec", "Grid"]

MOST_CATEGORIES = 200
"""Most categories of a nominal column: each is a coordinate, and groups keep their products."""

_CATEGORICAL = (Kind.NOMINAL, Kind.BOOLEAN)


@dataclass(frozen=True, repr=False)
class Grid:
    """The numbers that a column may take: bounds, and places ``anchor + step * i`` written with some decimals.

    A bound that fewer than `crowd` records hold is somebody's own value: numbers beyond it are folded back inside, so
    that no release piles up exactly there. A shared or declared bound cuts.
    """

    low: float | None
    high: float | None
    anchor: float
    step: float | None
    decimals: int
    fold_low: bool
    fold_high: bool

    def to_places(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Count numbers in steps from the anchor; without a step they stay as they are."""
        if self.step is None:
            return numbers
        scale = 10.0**self.decimals
        whole = np.rint(numbers * scale) - np.rint(self.anchor * scale)
        return np.asarray(whole / np.rint(self.step * scale))

    def to_numbers(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the admissible number nearest to each drawn place."""
        low = None if self.low is None else float(self.to_places(np.array([self.low]))[0])
        high = None if self.high is None else float(self.to_places(np.array([self.high]))[0])
        inside = _fold(places, low, high, fold_low=self.fold_low, fold_high=self.fold_high)
        if self.step is None:
            return inside
        scale = 10.0**self.decimals
        whole = np.rint(self.anchor * scale) + np.rint(inside) * np.rint(self.step * scale)
        return np.asarray(whole / scale)


def _fold(
    values: NDArray[np.float64], low: float | None, high: float | None, *, fold_low: bool, fold_high: bool
) -> NDArray[np.float64]:
    inside = values.copy()
    if low is not None:
        below = inside < low
        inside[below] = 2.0 * low - inside[below] if fold_low else low
    if high is not None:
        above = inside > high
        inside[above] = 2.0 * high - inside[above] if fold_high else high
    return np.clip(inside, low, high) if low is not None or high is not None else inside


@dataclass(frozen=True, repr=False)
class _Column:
    """How one column is encoded."""

    field: Field
    kind: pa.DataType
    blocks: tuple[Block, ...]
    grid: Grid | None = None
    mean: float = 0.0
    scale: float = 1.0
    nan: bool = False


@dataclass(frozen=True, repr=False)
class Codec:
    """Encodes tables of one schema; fitted on the original table, it holds data and stays with the owner.

    Examples
    --------
    >>> table = pa.table({"age": [30, 40, 50], "sex": ["f", "m", "f"]})
    >>> schema = Schema.infer(table)
    >>> codec = Codec.fit(table, schema)
    >>> codec.decode(codec.encode(table).values).equals(table)
    True
    """

    schema: Schema
    columns: tuple[_Column, ...]

    @classmethod
    def fit(cls, table: pa.Table, schema: Schema, *, crowd: int = 2) -> Codec:
        """Learn means, scales and grids from a table.

        Parameters
        ----------
        table : pyarrow.Table
        schema : Schema
        crowd : int
            How many records must hold an observed extreme before it may cut the release.
        """
        check_columns(table, schema)
        if table.num_rows == 0:
            raise TableError("the table has no rows; bring at least as many as the highest privacy level")
        if not schema.encoded:
            raise SchemaError("no column is left to sanitize; give at least one the role confidential or target")
        category_limit(schema.encoded, MOST_CATEGORIES)
        columns, start = [], 0
        for done, field in enumerate(schema.encoded, 1):
            column = _fit_column(table.column(field.name), field, start, crowd)
            columns.append(column)
            start = column.blocks[-1].stop
            tell("reading columns", done / len(schema.encoded))
        return cls(schema, tuple(columns))

    @property
    def layout(self) -> Layout:
        """The blocks of all columns."""
        return tuple(block for column in self.columns for block in column.blocks)

    def encode(
        self,
        table: pa.Table,
        *,
        levels: NDArray[np.int64] | None = None,
        strata: NDArray[np.int64] | None = None,
    ) -> Records:
        """Turn a table into records; columns that are not encoded are left out."""
        check_columns(table.select([n for n in table.column_names if n in self.schema.names]), self.schema, partly=True)
        layout = self.layout
        values = np.zeros((table.num_rows, layout[-1].stop))
        for column in self.columns:
            _encode_column(table.column(column.field.name), column, values)
        nothing = np.zeros(table.num_rows, dtype=np.int64)
        return Records(
            values, layout, nothing if levels is None else levels, nothing.copy() if strata is None else strata
        )

    def decode(self, values: NDArray[np.float64], *, native: bool = False) -> pa.Table:
        """Turn coordinates back into a table of the encoded columns, in the order of the schema.

        Parameters
        ----------
        values : ndarray of shape (n, d)
        native : bool
            Write numbers, dates and booleans that came as text in types of their own.
        """
        arrays = []
        for done, column in enumerate(self.columns, 1):
            kind = _native_type(column) if native else column.kind
            arrays.append(_decode_column(values, column, kind))
            tell("writing columns", done / len(self.columns))
        return pa.table(arrays, names=[column.field.name for column in self.columns])

    def numbers(self, table: pa.Table, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Read one numeric, ordinal or date column in its own units, with its missing cells."""
        return numbers_of_cells(table.column(name), self.schema[name])


def check_columns(table: pa.Table, schema: Schema, *, partly: bool = False) -> None:
    """Refuse a table that lacks a column of the schema or has one that the schema does not know."""
    needed = [field.name for field in (schema.encoded if partly else schema.fields)]
    lacking = [name for name in needed if name not in table.column_names]
    if lacking:
        raise OptionError(
            f"the table lacks {len(lacking)} columns of the schema, the first is {lacking[0]!r}; use its own schema"
        )
    extra = [name for name in table.column_names if name not in schema.names]
    if extra:
        raise OptionError(
            f"the table has {len(extra)} columns that the schema does not know, the first is {extra[0]!r}; add them "
            "to the schema"
        )


def _fit_column(cells: pa.ChunkedArray, field: Field, start: int, crowd: int) -> _Column:
    if field.kind in _CATEGORICAL:
        codes, absent = codes_of_cells(cells, field)
        share = np.bincount(codes[~absent], minlength=len(field.domain.categories or ())) / max(1, (~absent).sum())
        stop = start + len(share)
        fill = tuple((share * CATEGORY_SCALE).tolist())
        value = Block(field.name, BlockKind.CATEGORY, start, stop, fill)
        grid, mean, scale = None, 0.0, 1.0
    else:
        numbers, absent = numbers_of_cells(cells, field)
        stop = start + 1
        value = Block(field.name, BlockKind.NUMBER, start, stop, (0.0,))
        grid = _fit_grid(numbers[~absent], field, crowd)
        places = grid.to_places(numbers[~absent])
        mean = float(places.mean()) if len(places) else 0.0
        spread = float(places.std()) if len(places) else 0.0
        scale = spread if spread > 1e-12 * max(1.0, abs(mean)) else 1.0
    if absent.all():
        raise SchemaError(
            f"column {field.name!r} has no value in any of its {len(absent)} rows; drop it from the table"
        )
    blocks: tuple[Block, ...] = (value,)
    if absent.any():
        blocks += (Block(field.name, BlockKind.MISSING, stop, stop + 1),)
    array = plain(cells)
    nan = pa.types.is_floating(array.type) and array.null_count < int(absent.sum())
    return _Column(field, cells.type, blocks, grid, mean, scale, nan)


def _fit_grid(numbers: NDArray[np.float64], field: Field, crowd: int) -> Grid:
    domain = field.domain
    if field.kind is Kind.ORDINAL:
        return Grid(0.0, len(domain.categories or ()) - 1.0, 0.0, 1.0, 0, fold_low=False, fold_high=False)
    low = numbers.min() if domain.low is None and not domain.declared else domain.low
    high = numbers.max() if domain.high is None and not domain.declared else domain.high
    low = None if low is None else bound_to_number(low, field)
    high = None if high is None else bound_to_number(high, field)
    outside = int((numbers < low).sum() if low is not None else 0) + int(
        (numbers > high).sum() if high is not None else 0
    )
    if outside:
        raise SchemaError(f"column {field.name!r} holds {outside} values outside its bounds; widen its domain")
    step = 1.0 if isinstance(domain.step, DateStep) or field.kind is Kind.DATE else domain.step
    if step is None and field.kind is Kind.INTEGER:
        step = 1.0
    anchor = low if low is not None else 0.0
    grid = Grid(
        low,
        high,
        anchor,
        step,
        _decimals_of_grid(anchor, step),
        fold_low=not domain.declared and int((numbers == low).sum()) < crowd,
        fold_high=not domain.declared and int((numbers == high).sum()) < crowd,
    )
    places = grid.to_places(numbers)
    off = int((np.abs(grid.to_numbers(np.rint(places)) - numbers) > 0).sum()) if step is not None else 0
    if off:
        raise SchemaError(f"column {field.name!r} holds {off} values off its step; choose a finer step")
    return grid


def _decimals_of_grid(anchor: float, step: float | None) -> int:
    return 0 if step is None else max(decimals_of_step(step), decimals_of_step(anchor))


def _encode_column(cells: pa.ChunkedArray, column: _Column, values: NDArray[np.float64]) -> None:
    block = column.blocks[0]
    if block.kind is BlockKind.CATEGORY:
        codes, absent = codes_of_cells(cells, column.field)
        rows = np.flatnonzero(~absent)
        values[rows, block.start + codes[rows]] = CATEGORY_SCALE
    else:
        numbers, absent = numbers_of_cells(cells, column.field)
        assert column.grid is not None
        values[:, block.start] = (column.grid.to_places(numbers) - column.mean) / column.scale
    if not absent.any():
        return
    if len(column.blocks) == 1:
        raise SchemaError(
            f"column {column.field.name!r} has {int(absent.sum())} missing cells here and none where the codec was made"
        )
    values[absent, block.where] = block.fill
    values[absent, column.blocks[1].start] = 1.0


def _decode_column(values: NDArray[np.float64], column: _Column, kind: pa.DataType) -> pa.Array:
    block = column.blocks[0]
    absent = np.zeros(len(values), dtype=np.bool_)
    if len(column.blocks) > 1:
        absent = values[:, column.blocks[1].start] > 0.5
    if block.kind is BlockKind.CATEGORY:
        return write_codes(np.argmax(values[:, block.where], axis=1), absent, column.field, kind)
    assert column.grid is not None
    numbers = column.grid.to_numbers(values[:, block.start] * column.scale + column.mean)
    return write_numbers(numbers, absent, column.field, kind, nan=column.nan)


def _native_type(column: _Column) -> pa.DataType:
    if not is_text(column.kind) or column.field.kind in (Kind.NOMINAL, Kind.ORDINAL, Kind.BOOLEAN):
        return column.kind
    if column.field.kind is Kind.DATE:
        return pa.date32() if column.field.domain.step is DateStep.DAY else pa.timestamp("us")
    return pa.int64() if column.field.kind is Kind.INTEGER else pa.float64()
