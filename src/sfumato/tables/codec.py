"""The codec turns a table into one float matrix and back, by its schema.

Continuous, integer, ordinal and date columns become one standardized coordinate each; nominal and boolean ones a
one-hot block, or one coordinate where categories are very many; a column with missing cells adds an indicator. Decoding
gives back types, steps, bounds, categories and missing cells.
"""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.documents import plain as plain_values
from sfumato.core.documents import typed
from sfumato.core.errors import BadInput, OptionError, PrivacyRefusal, SchemaError, TableError
from sfumato.core.progress import tell
from sfumato.core.records import (
    CATEGORY_SCALE,
    Block,
    BlockKind,
    CellsByColumn,
    Extent,
    Grids,
    Layout,
    Records,
    cells_of_block,
    smallest_codes,
    width,
)
from sfumato.tables.cells import (
    Gap,
    MissingForms,
    codes_of_cells,
    gap_of_cells,
    is_text,
    native_type,
    numbers_of_cells,
    plain,
    read_codes,
    read_numbers,
    write_codes,
    write_numbers,
    written_type,
)
from sfumato.tables.field import DateStep, Field, Kind
from sfumato.tables.grid import (
    SMALLEST,
    Grid,
    cut_grid,
    extent_of_labels,
    extent_of_numbers,
    fit_grid,
    fitting_moments,
    mean_and_scale,
    refuse_misfits,
    unbounded_grid,
    wide_moments,
)
from sfumato.tables.infer import complete_field
from sfumato.tables.moved_columns import own_units, write_moved
from sfumato.tables.schema import Schema, check_columns, check_extra, check_lacking

__all__ = [
    "MOST_CATEGORIES",
    "CellsRead",
    "Codec",
    "EncodedColumn",
    "Unseen",
    "codec_from_document",
    "codec_to_document",
    "rescale",
    "with_indicators",
]

_ROUNDING = 2.0**-46

MOST_CATEGORIES = 200
"""Most categories of a nominal column that are a coordinate each; of more the place among them is one coordinate."""

CellsRead = tuple[NDArray[Any], NDArray[np.bool_]]
"""The cells of a column as numbers or as places in its categories, and which of them are missing."""

Unseen = Literal["refuse", "mean", "nearest"]
"""What happens to a cell that does not fit: an error, the column's mean, or the nearest bound, else missing."""

_CATEGORICAL = (Kind.NOMINAL, Kind.BOOLEAN)


@dataclass(frozen=True, repr=False)
class EncodedColumn:
    """How one column is encoded.

    ``kind`` is its Arrow type, ``grid`` the numbers that it may take (None for categories), ``mean`` and ``scale``
    count in places of the grid, ``gap`` is how it writes a missing cell.
    """

    field: Field
    kind: pa.DataType
    blocks: tuple[Block, ...]
    grid: Grid | None = None
    mean: float = 0.0
    scale: float = 1.0
    gap: Gap | MissingForms = None


@dataclass(frozen=True, repr=False)
class Codec:
    """Encodes tables of one schema. It is fitted on the original table, holds data and stays with the owner.

    ``schema`` is the one it was fitted with, with the categories and date steps filled in that it left open.

    Examples
    --------
    >>> table = pa.table({"age": [30, 40, 50], "sex": ["f", "m", "f"]})
    >>> schema = Schema.infer(table)
    >>> codec = Codec.fit(table, schema)
    >>> codec.decode(codec.encode(table).values).equals(table)
    True
    """

    schema: Schema
    columns: tuple[EncodedColumn, ...]

    @classmethod
    def fit(
        cls,
        table: pa.Table,
        schema: Schema,
        *,
        min_frequency: int = 2,
        persons: NDArray[np.int64] | None = None,
        gaps: bool = False,
        codes: bool = False,
        within: Mapping[str, tuple[float, float]] | None = None,
    ) -> Codec:
        """Learn means, scales and grids from a table.

        An observed extreme may bound the release, and a missing mark appear in it, only if ``min_frequency`` persons
        have it; a row is a person unless ``persons`` gives the person of each. With ``gaps`` every column can hold
        missing cells, whether it does or not; with ``codes`` columns of very many categories are one coordinate, and
        else they are refused. ``within`` gives columns narrower bounds, which cut the release.
        """
        check_columns(table, schema)
        if table.num_rows == 0:
            raise TableError("the table has no rows; provide at least as many as the highest privacy level")
        encoded = schema.encoded
        if not encoded:
            raise SchemaError("no column is left to sanitize; give at least one the role confidential or target")
        columns: list[EncodedColumn] = []
        for field in encoded:
            start = columns[-1].blocks[-1].stop if columns else 0
            bounds = None if within is None else within.get(field.name)
            column = table.column(field.name)
            columns.append(_fit_column(column, field, start, min_frequency, persons, bounds, gaps=gaps, coded=codes))
            tell("reading columns", len(columns) / len(encoded))
        complete = {column.field.name: column.field for column in columns}
        fields = tuple(complete.get(field.name, field) for field in schema)
        return cls(dataclasses.replace(schema, fields=fields), tuple(columns))

    @classmethod
    def declared(cls, schema: Schema, types: Mapping[str, pa.DataType]) -> Codec:
        """Codec of declared domains and Arrow types alone, whatever a table holds; any cell may be missing.

        Raises
        ------
        PrivacyRefusal
            For a column whose bounds or categories are not declared.
        """
        columns: list[EncodedColumn] = []
        for field in schema.encoded:
            start = columns[-1].blocks[-1].stop if columns else 0
            columns.append(_declared_column(field, types[field.name], start))
        complete = {column.field.name: column.field for column in columns}
        fields = tuple(complete.get(field.name, field) for field in schema)
        return cls(dataclasses.replace(schema, fields=fields), tuple(columns))

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
        unseen: Unseen = "refuse",
    ) -> Records:
        """Turn a table into records; columns that are not encoded are ignored and may be missing.

        Parameters
        ----------
        table : pyarrow.Table
        levels, strata : ndarray of shape (n,), optional
        unseen : {"refuse", "mean", "nearest"}
            What to do with cells that do not fit what the codec was fitted on. "refuse" raises: the records can be
            decoded to the same table. "mean" is for comparing another table with that one: a category, a missing cell
            or a text never seen takes the column's mean, a number outside the bounds or off the step stands where it
            lies, and columns that the schema does not know are left out. "nearest" takes a number beyond a bound as
            the bound, and any other cell that does not fit as missing.
        """
        strict = unseen != "nearest" and _is_strict(unseen)
        check_lacking(table, [column.field.name for column in self.columns])
        if strict:
            check_extra(table, self.schema)
        layout = self.layout
        coordinates: NDArray[np.float64] | CellsByColumn
        if strict:
            cells = {each.field.name: _cells_of(table.column(each.field.name), each) for each in self.columns}
            coordinates = CellsByColumn(layout, cells)
        elif unseen == "nearest":
            nearest = {each.field.name: _nearest_cells(table.column(each.field.name), each)[0] for each in self.columns}
            coordinates = CellsByColumn(layout, nearest)
        else:
            coordinates = np.zeros((table.num_rows, width(layout)))
            for column in self.columns:
                own, field = table.column(column.field.name), column.field
                read = read_codes(own, field) if column.grid is None else read_numbers(own, field)
                _place_cells(read, column, coordinates)
        levels = np.zeros(table.num_rows, dtype=np.int64) if levels is None else levels
        strata = np.zeros(table.num_rows, dtype=np.int64) if strata is None else strata
        target = self.schema.target
        return Records(coordinates, layout, levels, strata, None if target is None else target.name)

    def misfits(self, table: pa.Table) -> dict[str, int]:
        """Number of cells that lie outside the domain of each column, if there are some; for the owner."""
        found = {each.field.name: _nearest_cells(table.column(each.field.name), each)[1] for each in self.columns}
        return {name: count for name, count in found.items() if count}

    def coordinates(self, cells: Mapping[str, CellsRead]) -> NDArray[np.float64]:
        """Coordinates of cells read by `read_numbers` and `read_codes`; all cells must fit the schema."""
        values = np.zeros((len(next(iter(cells.values()))[1]), width(self.layout)))
        for column in self.columns:
            _place_cells(cells[column.field.name], column, values)
        return values

    def decode(
        self,
        values: NDArray[np.float64] | CellsByColumn,
        *,
        native: bool = False,
        moved: frozenset[str] = frozenset(),
        grids: Grids = (),
        unbounded: frozenset[str] = frozenset(),
    ) -> pa.Table:
        """Turn coordinates back into a table of the encoded columns, in the order of the schema.

        Any finite coordinates give cells of the domain, columns that were moved aside.

        Parameters
        ----------
        values : ndarray of shape (n, d), or CellsByColumn
        native : bool
            Write numbers and dates that came as text in types of their own.
        moved : frozenset of str
            Columns whose numbers left their domain on purpose (`Records.moved`): neither bounds nor steps bring them
            back, but whole numbers are rounded.
        grids : tuple of (str, float, float)
            Those of them that lie on a grid (`Records.grids`): they are written exactly there.
        unbounded : frozenset of str
            Columns that observed bounds do not bring back (`Records.unbounded`); whole numbers that came in a narrow
            type are written in a wide one.
        """
        if len(values.shape) != 2 or values.shape[1] != width(self.layout):
            raise ValueError(f"coordinates of shape {values.shape} do not fit a layout of {width(self.layout)}")
        if isinstance(values, np.ndarray) and not np.isfinite(values).all():
            raise ValueError(f"{int((~np.isfinite(values)).sum())} coordinates are not finite")
        arrays = []
        steps = {name: (anchor, step) for name, anchor, step in grids}
        for column in self.columns:
            if column.field.name in unbounded:
                column = _without_observed_bounds(column)
            kind = native_type(column.field, column.kind) if native else column.kind
            grid, free = steps.get(column.field.name), column.field.name in moved
            arrays.append(_decode_column(values, column, kind, grid, moved=free))
            tell("writing columns", len(arrays) / len(self.columns))
        return pa.table(arrays, names=[column.field.name for column in self.columns])

    @property
    def native_types(self) -> dict[str, pa.DataType]:
        """Native Arrow types of the columns whose numbers and dates came as text."""
        return {column.field.name: native_type(column.field, column.kind) for column in self.columns}

    def retyped(self, released: pa.Table) -> frozenset[str]:
        """Columns of a decoded table whose Arrow type differs from the original's, as for transformed numbers."""
        return frozenset(
            column.field.name for column in self.columns if released.schema.field(column.field.name).type != column.kind
        )

    def numbers(
        self, table: pa.Table, name: str, *, unseen: Unseen = "refuse"
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Read one numeric, ordinal or date column in its own units, with its missing cells, which read as 0.

        With ``unseen="mean"`` cells that cannot be read count as missing.
        """
        if _is_strict(unseen):
            return numbers_of_cells(table.column(name), self.schema[name])
        values, _ = read_numbers(table.column(name), self.schema[name])
        absent = ~np.isfinite(values)
        values[absent] = 0.0
        return values, absent

    def codes(
        self, table: pa.Table, name: str, *, unseen: Unseen = "refuse"
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Read one nominal or boolean column as category codes, with its missing cells, which read as -1.

        With ``unseen="mean"`` cells outside the categories count as missing.
        """
        if _is_strict(unseen):
            return codes_of_cells(table.column(name), self.schema[name])
        codes, _ = read_codes(table.column(name), self.schema[name])
        return codes, codes < 0


def _is_strict(unseen: str) -> bool:
    if unseen not in ("refuse", "mean"):
        raise OptionError(f"there is no way {unseen!r} to take unseen cells; choose 'refuse' or 'mean'")
    return unseen == "refuse"


def _fit_column(
    cells: pa.ChunkedArray,
    field: Field,
    start: int,
    min_frequency: int,
    persons: NDArray[np.int64] | None,
    bounds: tuple[float, float] | None = None,
    *,
    gaps: bool = False,
    coded: bool = False,
) -> EncodedColumn:
    field = complete_field(field, cells)
    array = plain(cells)
    if field.kind in _CATEGORICAL:
        many = _check_category_count(field, coded=coded)
        codes, absent = codes_of_cells(cells, field)
        share = np.bincount(codes[~absent], minlength=len(field.domain.categories or ())) / max(1, (~absent).sum())
        fill = tuple((share * CATEGORY_SCALE).tolist())
        end, extent = start + len(share), extent_of_labels(field)
        blocks = [Block(field.name, BlockKind.CATEGORY, start, end, fill, extent=extent)]
        column = EncodedColumn(field, written_type(cells.type), ())
        if many:
            blocks = [_code_block(field.name, start, codes[~absent], extent)]
    else:
        numbers, absent = numbers_of_cells(cells, field)
        grid = fit_grid(
            numbers[~absent], field, cells.type, min_frequency, None if persons is None else persons[~absent]
        )
        grid = grid if bounds is None else cut_grid(grid, *bounds)
        mean, scale = mean_and_scale(numbers[~absent], grid, field)
        centre, unit = own_units(grid, mean, scale, field) or (None, None)
        within = extent_of_numbers(field, grid, mean, scale, cells.type)
        blocks = [Block(field.name, BlockKind.NUMBER, start, start + 1, (0.0,), centre, unit, within)]
        column = EncodedColumn(field, written_type(cells.type), (), grid, mean, scale)
    if gaps or absent.any():
        blocks.append(Block(field.name, BlockKind.MISSING, blocks[0].stop, blocks[0].stop + 1))
    return dataclasses.replace(column, blocks=tuple(blocks), gap=gap_of_cells(array, absent, min_frequency, persons))


_DECLARE = "declare {} in a schema ('sfumato inspect --declare' writes one to fill in)"


def _declared_column(field: Field, kind: pa.DataType, start: int) -> EncodedColumn:
    """How a column is encoded by its declared domain; a number counts from the lower bound to the upper one."""
    domain, listed = field.domain, field.kind in (*_CATEGORICAL, Kind.ORDINAL)
    if not domain.declared or (listed and not domain.categories):
        what = "its categories" if listed else "low and high"
        raise PrivacyRefusal(f"the domain of column {field.name!r} is not declared; {_DECLARE.format(what)}")
    gap = field.missing[0] if is_text(kind) and field.missing else None
    if field.kind in _CATEGORICAL:
        many = _check_category_count(field, coded=True)
        count, extent = len(domain.categories or ()), extent_of_labels(field)
        block = Block(field.name, BlockKind.CATEGORY, start, start + count, (CATEGORY_SCALE / count,) * count)
        block = dataclasses.replace(block, extent=extent)
        if many:
            block = _code_block(field.name, start, np.arange(count), extent)
        column = EncodedColumn(field, written_type(kind), (), gap=gap)
    else:
        if not listed and (domain.low is None or domain.high is None):
            raise PrivacyRefusal(f"column {field.name!r} has no declared bounds; {_DECLARE.format('low and high')}")
        if field.kind is Kind.DATE and domain.step is None:
            field = dataclasses.replace(field, domain=dataclasses.replace(domain, step=DateStep.DAY))
        grid = fit_grid(np.empty(0), field, kind, 0)
        low, high = grid.to_places(np.array([grid.low, grid.high])).tolist()
        scale = high - low or 1.0
        centre, unit = own_units(grid, low, scale, field) or (None, None)
        within = extent_of_numbers(field, grid, low, scale, kind)
        block = Block(field.name, BlockKind.NUMBER, start, start + 1, (0.0,), centre, unit, within)
        column = EncodedColumn(field, written_type(kind), (), grid, low, scale, gap)
    missing = Block(field.name, BlockKind.MISSING, block.stop, block.stop + 1)
    return dataclasses.replace(column, blocks=(block, missing))


def _check_category_count(field: Field, *, coded: bool) -> bool:
    """Whether there are too many categories for a one-hot block; refuse columns that cannot be coded instead."""
    count = len(field.domain.categories or ())
    if count > MOST_CATEGORIES and not coded:
        raise SchemaError(
            f"column {field.name!r} has {count} categories and at most {MOST_CATEGORIES} are handled here; declare it "
            "an identifier (dropped), pool its categories, or use --method condense or chain"
        )
    return count > MOST_CATEGORIES


def _code_block(name: str, start: int, codes: NDArray[np.int64], extent: Extent) -> Block:
    """One standardized coordinate for the codes of a long category list, sorted so that similar labels are near."""
    origin, unit = (float(codes.mean()), float(codes.std())) if len(codes) else (0.0, 1.0)
    extent = dataclasses.replace(extent, origin=origin, unit=unit or 1.0)
    return Block(name, BlockKind.CODE, start, start + 1, (0.0,), extent=extent)


def _cells_of(cells: pa.ChunkedArray, column: EncodedColumn) -> NDArray[Any]:
    """Coordinates of numbers or category codes, NaN or -1 if missing; refuse cells that do not fit."""
    field, coordinates = column.field, np.empty(0)
    if column.grid is None:
        codes, absent = codes_of_cells(cells, field)
    else:
        numbers, absent = numbers_of_cells(cells, field)
        refuse_misfits(numbers[~absent] if absent.any() else numbers, column.grid, field)
        coordinates = (column.grid.to_places(numbers) - column.mean) / column.scale
        coordinates[absent] = np.nan
    if len(column.blocks) == 1 and absent.any():
        raise SchemaError(
            f"column {field.name!r} has {int(absent.sum())} missing cells here and none where the codec was made; "
            "make the codec on a table that has some, or fill them"
        )
    return coordinates if column.grid is not None else smallest_codes(codes, column.blocks[0])


def _nearest_cells(cells: pa.ChunkedArray, column: EncodedColumn) -> tuple[NDArray[Any], int]:
    """Coordinates or places as `_cells_of` gives them, of the nearest number within bounds; and how many did not fit.

    Other cells that do not fit count as missing.
    """
    if column.grid is None:
        codes, absent = read_codes(cells, column.field)
        return smallest_codes(codes, column.blocks[0]), int((codes[~absent] < 0).sum())
    numbers, absent = read_numbers(cells, column.field)
    inside = np.clip(numbers, column.grid.low, column.grid.high)
    coordinates = (column.grid.to_places(inside) - column.mean) / column.scale
    return coordinates, int((inside != numbers)[~absent].sum())


def _place_cells(read: CellsRead, column: EncodedColumn, values: NDArray[np.float64]) -> None:
    """Write the coordinates of a numeric column, or of a column of category codes."""
    (cells, absent), block = read, column.blocks[0]
    if column.grid is None:
        known = cells >= 0
        rows = np.flatnonzero(known)
        if block.kind is BlockKind.CODE:
            values[rows, block.start] = block.coordinates(cells[rows])
        else:
            values[rows, block.start + cells[rows]] = CATEGORY_SCALE
    else:
        known = np.isfinite(cells) & ~absent
        here = slice(None) if known.all() else known  # a mask costs more than the arithmetic
        values[here, block.start] = (column.grid.to_places(cells[here]) - column.mean) / column.scale
    if not known.all():
        values[~known, block.where] = block.fill
    if len(column.blocks) > 1:
        values[absent, column.blocks[1].start] = 1.0


def _decode_column(
    values: NDArray[np.float64] | CellsByColumn,
    column: EncodedColumn,
    kind: pa.DataType,
    grid: tuple[float, float] | None,
    *,
    moved: bool,
) -> pa.Array:
    block = column.blocks[0]
    missing = column.blocks[1] if len(column.blocks) > 1 else None
    cells = cells_of_block(values, block, missing) if isinstance(values, np.ndarray) else values.column(block, missing)
    absent = np.isnan(cells)
    if absent.any():  # what is not drawn of a column that knows no missing cell is its mean, or its first category
        cells = np.where(absent, 0.0, cells)
        absent &= missing is not None
    if column.grid is None:
        return write_codes(cells.astype(np.int64), absent, column.field, kind, column.gap)
    if moved and block.centre is not None and block.scale is not None:
        return write_moved(cells * block.scale + block.centre, absent, column.field, kind, grid, column.gap)
    if moved and block.extent is not None and block.extent.dates:
        dates = cells * block.extent.unit + block.extent.origin
        return write_numbers(dates, absent, column.field, wide_moments(kind), column.gap)
    with np.errstate(over="ignore"):  # what overflows lies beyond every bound, and is brought inside
        places = cells * column.scale + column.mean
    if column.grid.step is None and column.scale > SMALLEST:  # a heap at nought stays there
        places[np.abs(places) <= _ROUNDING * (abs(column.scale) + abs(column.mean))] = 0.0
    return write_numbers(column.grid.to_numbers(places), absent, column.field, kind, column.gap)


def _without_observed_bounds(column: EncodedColumn) -> EncodedColumn:
    """Remove bounds that were only observed, and widen a type that cannot hold values beyond them."""
    if column.grid is None or column.field.domain.declared:
        return column
    kind = column.kind
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        kind = pa.int64()
    elif pa.types.is_decimal(kind):
        kind = pa.decimal128(38, kind.scale)
    return dataclasses.replace(column, kind=kind, grid=unbounded_grid(column.grid, column.field, kind))


@dataclass(frozen=True)
class _StoredMissingForms:
    ways: tuple[dict[str, bool] | Gap, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class _StoredColumn:
    """A column of a codec beside its field and type; NaN is stored as a word, because JSON has none."""

    blocks: tuple[Block, ...]
    grid: Grid | None
    mean: float
    scale: float
    gap: dict[str, bool] | _StoredMissingForms | Gap


@dataclass(frozen=True)
class _StoredCodec:
    schema: str
    kinds: str
    columns: tuple[_StoredColumn, ...]


def codec_to_document(codec: Codec) -> dict[str, Any]:
    """Codec as plain values that JSON holds without loss.

    Examples
    --------
    >>> table = pa.table({"age": [30, 40, 50], "sex": ["f", None, "f"]})
    >>> codec = Codec.fit(table, Schema.infer(table))
    >>> again = codec_from_document(codec_to_document(codec))
    >>> bool((again.encode(table).values == codec.encode(table).values).all())
    True
    """
    kinds = pa.schema([(column.field.name, column.kind) for column in codec.columns])
    return {
        "schema": codec.schema.to_toml(),
        "kinds": base64.b64encode(kinds.serialize().to_pybytes()).decode("ascii"),
        "columns": [
            plain_values(
                _StoredColumn(column.blocks, column.grid, column.mean, column.scale, _store_missing_form(column.gap))
            )
            for column in codec.columns
        ],
    }


def codec_from_document(document: Mapping[str, object]) -> Codec:
    """Codec from stored values; it encodes and decodes exactly as the original.

    Raises
    ------
    BadInput
        If the document is not one of a codec.
    """
    try:
        stored = typed(_StoredCodec, document)
        schema = Schema.from_toml(stored.schema)
        kinds = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored.kinds, validate=True)))
        columns = tuple(
            EncodedColumn(
                schema[name],
                kinds.field(name).type,
                column.blocks,
                column.grid,
                float(column.mean),
                float(column.scale),
                _restore_missing_form(column.gap),
            )
            for name, column in zip(kinds.names, stored.columns, strict=True)
        )
        return Codec(schema, columns)
    except (KeyError, TypeError, ValueError, OSError, pa.ArrowException) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput("the stored codec cannot be read; it was written by another version or altered") from None


def with_indicators(codec: Codec) -> Codec:
    """Codec with a missing indicator for every column whose schema lists missing marks.

    A table that a codec is fitted on may have no missing cell where a later one has some: the marks of the schema say
    that they are to be expected.
    """
    columns: list[EncodedColumn] = []
    for column in codec.columns:
        start = columns[-1].blocks[-1].stop if columns else 0
        shift = start - column.blocks[0].start
        blocks = [
            dataclasses.replace(block, start=block.start + shift, stop=block.stop + shift) for block in column.blocks
        ]
        if len(blocks) == 1 and column.field.missing:
            blocks.append(Block(column.field.name, BlockKind.MISSING, blocks[0].stop, blocks[0].stop + 1))
            column = dataclasses.replace(column, gap=column.field.missing[0])
        columns.append(dataclasses.replace(column, blocks=tuple(blocks)))
    return Codec(codec.schema, tuple(columns))


def _store_missing_form(gap: Gap | MissingForms) -> dict[str, bool] | _StoredMissingForms | Gap:
    if isinstance(gap, MissingForms):
        return _StoredMissingForms(tuple(_store_form(way) for way in gap.ways), gap.shares)
    return _store_form(gap)


def _store_form(way: Gap) -> dict[str, bool] | Gap:
    return {"nan": True} if isinstance(way, float) and math.isnan(way) else way


def _restore_missing_form(stored: dict[str, bool] | _StoredMissingForms | Gap) -> Gap | MissingForms:
    if isinstance(stored, _StoredMissingForms):
        return MissingForms(tuple(math.nan if isinstance(way, dict) else way for way in stored.ways), stored.shares)
    return math.nan if isinstance(stored, dict) else stored


def rescale(codec: Codec, moments: Mapping[str, tuple[float, float]]) -> Codec:
    """Codec with other means and deviations of some columns, given in its own coordinates.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.tables.schema import Schema
    >>> table = pa.table({"pay": [0.5, 1.25, 7.0]})
    >>> codec = Codec.fit(table, Schema.infer(table))
    >>> twice = rescale(codec, {"pay": (0.0, 2.0)})
    >>> bool((twice.encode(table).values * 2.0 == codec.encode(table).values).all())
    True
    """
    found_moments = [(column, moments.get(column.field.name)) for column in codec.columns]
    return Codec(
        codec.schema,
        tuple(column if found is None else _rescale_column(column, *found) for column, found in found_moments),
    )


def _rescale_column(column: EncodedColumn, mean: float, deviation: float) -> EncodedColumn:
    grid = column.grid
    if grid is None or deviation <= 0.0:
        return column
    mean, scale = fitting_moments(column.mean + column.scale * mean, column.scale * deviation, grid)
    centre, unit = own_units(grid, mean, scale, column.field) or (None, None)
    within = extent_of_numbers(column.field, grid, mean, scale, column.kind)
    number = dataclasses.replace(column.blocks[0], centre=centre, scale=unit, extent=within)
    return dataclasses.replace(column, blocks=(number, *column.blocks[1:]), mean=mean, scale=scale)
