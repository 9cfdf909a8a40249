"""What `verify` counts in each column of a released table: cells of its kind, missing cells and different values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import BadInput
from sfumato.core.facts import Check, Context, ReleasedColumns, counted
from sfumato.tables.cells import absent_cells, numbers_of_cells, plain
from sfumato.tables.dates import microseconds_of_cells
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.row_checks import gap_field
from sfumato.tables.schema import Schema

__all__ = ["ColumnCells"]

_CATEGORIES = (Kind.NOMINAL, Kind.BOOLEAN)
_MOST_VALUES = 1 << 16


class ColumnCells:
    """Counts the cells of every column, batch by batch."""

    def __init__(self, context: Context, schema: Schema) -> None:
        self._context, self._schema = context, schema
        self._counted = {name: most for fact in context for name, most in fact.most_values().items()}
        self._values: dict[str, set[object]] = {}
        self.gaps = set[str]()  # columns with a missing cell
        self.strange = set[str]()  # columns with a cell that is not of their kind

    def add(self, batch: pa.Table) -> None:
        """Read some more rows."""
        for field in self._schema:
            if field.name not in batch.column_names:
                continue
            cells = batch.column(field.name)
            field = gap_field(cells, field)
            try:
                gone = absent_cells(plain(cells), field.missing)
                if gone.any():
                    self.gaps.add(field.name)
                if field.name not in self.strange and not self._is_of_kind(cells, field):
                    self.strange.add(field.name)
            except (BadInput, pa.ArrowException):  # cells of a type that no released table has
                self.strange.add(field.name)

    def _is_of_kind(self, cells: pa.ChunkedArray, field: Field) -> bool:
        """Tell whether all cells are numbers, dates or one of two values where the schema says so."""
        if field.kind in (Kind.NOMINAL, Kind.ORDINAL, Kind.BOOLEAN):
            usual = 2 if field.kind is Kind.BOOLEAN and not field.domain.declared else None
            most = self._counted.get(field.name, usual)
            return most is None or self._count(cells, field, most)
        bare = dataclasses.replace(field, domain=Domain())
        if field.kind is Kind.DATE:
            gone = absent_cells(plain(cells), field.missing)
            return bool(gone.all()) or not microseconds_of_cells(plain(cells), gone, bare)[1].any()
        numbers, gone = numbers_of_cells(cells, bare)
        return field.kind is not Kind.INTEGER or bool((numbers[~gone] % 1 == 0).all())

    def _count(self, cells: pa.ChunkedArray, field: Field, most: int) -> bool:
        """Tell whether no more different values were seen so far; those of a class count its missing cells as one."""
        array = plain(cells)
        gone = pa.array(absent_cells(array, field.missing))
        seen = self._values.setdefault(field.name, set())
        seen.update(pc.unique(array.filter(pc.invert(gone))).slice(0, _MOST_VALUES).to_pylist())
        lacking = int(field.name in self._counted and field.name in self.gaps)
        return len(seen) + lacking <= most

    def checks(self) -> list[Check]:
        """Check the cells against the kinds of columns, and the counts of columns against the facts."""
        of_kind = f"{counted(len(self._schema.names), 'column contains', 'columns contain')} only cells of their kind"
        if self.strange:
            of_kind = f"{counted(len(self.strange), 'column contains', 'columns contain')} cells of another kind"
        wrong = sorted(set(self._wrong_counts()))
        counts = "the facts count no more columns than the table has, and no fewer with missing cells"
        if wrong:
            counts = f"the certificate states another number of {', '.join(wrong)}"
        return [Check("column kinds", not self.strange, of_kind), Check("column counts", not wrong, counts)]

    def _wrong_counts(self) -> Iterator[str]:
        names = self._schema.names
        derived = {name for fact in self._context for name in fact.derived_columns(names)}
        released = ReleasedColumns(
            names,
            categories=sum(field.kind in (*_CATEGORIES, Kind.ORDINAL) for field in self._schema),
            numbers=sum(field.kind not in _CATEGORIES for field in self._schema),
            missing=frozenset(self.gaps - derived),
        )
        for fact in self._context:
            yield from fact.wrong_columns(released, self._context)
