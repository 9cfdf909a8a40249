"""The columns of one owner of rows, read by domains that all owners declare alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.tables.cells import absent_cells, codes_of_cells, numbers_of_cells, plain
from sfumato.tables.codec import MOST_CATEGORIES
from sfumato.tables.field import Field, Kind
from sfumato.tables.fits import check_columns
from sfumato.tables.grid import Grid, fit_grid
from sfumato.tables.infer import complete_field
from sfumato.tables.schema import Schema

__all__ = ["ReadColumn", "read_columns"]

_LARGEST = 1e300  # beyond it, differences overflow
_CATEGORICAL = (Kind.NOMINAL, Kind.BOOLEAN)
_LISTED = (*_CATEGORICAL, Kind.ORDINAL)


@dataclass(frozen=True, repr=False)
class ReadColumn:
    """One column as its owner has read it: shares of the declared range, or places in the categories."""

    field: Field
    kind: pa.DataType
    grid: Grid | None
    cells: NDArray[np.float64] | NDArray[np.int64]
    missing: int

    @property
    def width(self) -> int:
        """How many sums it takes beside its missing cells."""
        return len(self.field.domain.categories or ()) if self.grid is None else 1

    @property
    def low(self) -> float:
        """The lower bound, in places of the grid."""
        return 0.0 if self.grid is None else float(self.grid.to_places(np.array([self.grid.low]))[0])

    @property
    def size(self) -> float:
        """The declared range, in places of the grid; 1 where it is a point."""
        if self.grid is None:
            return 1.0
        return float(self.grid.to_places(np.array([self.grid.high]))[0]) - self.low or 1.0


def read_columns(table: pa.Table, schema: Schema) -> list[ReadColumn]:
    """Read the columns that are sanitized; an owner may have no value in one that another has values in.

    Raises
    ------
    SchemaError
        Where a domain is not declared or cells do not fit it.
    """
    _check_declared(schema)
    check_columns(table, schema)
    return [_read(table.column(field.name), field) for field in schema.encoded]


def _check_declared(schema: Schema) -> None:
    if not schema.encoded:
        raise SchemaError("no column is left to sanitize; give at least one the role confidential or target")
    for field in schema.encoded:
        domain = field.domain
        if field.kind in _LISTED:
            lacking = "" if domain.declared and domain.categories else "categories"
        else:
            lacking = "" if domain.declared and domain.low is not None and domain.high is not None else "bounds"
        if not lacking and field.kind is Kind.DATE and domain.step is None:
            lacking = "step"
        if lacking:
            raise SchemaError(
                f"the {lacking} of column {field.name!r} are not declared; declare them in the schema, which all "
                "owners share"
            )
        count = len(domain.categories or ())
        if field.kind in _CATEGORICAL and count > MOST_CATEGORIES:
            raise SchemaError(
                f"column {field.name!r} has {count} categories and at most {MOST_CATEGORIES} are handled; declare it "
                "an identifier (dropped), or pool its categories"
            )


def _read(cells: pa.ChunkedArray, field: Field) -> ReadColumn:
    """Read this owner's cells of a column; an owner may have none that is not missing."""
    if not absent_cells(plain(cells), field.missing).all():
        complete_field(field, cells)  # refuses types that do not go with the kind
    kind = pa.large_string() if pa.types.is_string_view(cells.type) else cells.type
    if field.kind in _CATEGORICAL:
        codes, absent = codes_of_cells(cells, field)
        return ReadColumn(field, kind, None, codes[~absent], int(absent.sum()))
    numbers, absent = numbers_of_cells(cells, field)
    grid = fit_grid(numbers[~absent], field, cells.type, 2)
    low, high = grid.to_places(np.array([grid.low, grid.high])).tolist()
    if max(abs(low), abs(high)) > _LARGEST:
        raise SchemaError(f"the bounds of column {field.name!r} lie beyond 1e300; rescale it")
    shares = (grid.to_places(numbers[~absent]) - low) / (high - low or 1.0)  # from 0 to 1
    return ReadColumn(field, kind, grid, shares, int(absent.sum()))
