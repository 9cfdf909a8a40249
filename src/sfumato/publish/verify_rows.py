"""Read the rows of a released table once, batch by batch, for all checks of `verify`; count its cells by column."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import BadInput, TableError
from sfumato.core.facts import Check, Context, ReleasedColumns, RowCheck, counted
from sfumato.tables.cells import absent_cells, bound_to_number, codes_of_cells, is_text, numbers_of_cells, plain
from sfumato.tables.dates import microseconds_of_cells, moments_of_texts, times_of_texts
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.files import read_file
from sfumato.tables.row_checks import gap_field
from sfumato.tables.schema import Schema
from sfumato.tables.source import TableSource, open_source
from sfumato.tables.spreadsheet import FormulaCount, unquote_formulas, unquoted_names
from sfumato.tables.workbook import MOST_CELLS, SQLITE, WORKBOOKS

__all__ = ["MOST_BYTES", "ColumnCells", "read_released"]

MOST_BYTES = 1 << 36
"""Bytes that a released table may have, and unpack to, unless its reader grants more."""

_FREE = 1 << 26  # bytes that any table may unpack to
_CELL = 1 << 10  # bytes of a cell, on average, beyond which a table is not what was certified
_BATCH_CELLS = 1 << 20
_WHOLE = 1 << 29  # bytes that a table may unpack to whose format is read whole
_FREE_CELLS = 1 << 16  # that any sheet may span
_PACKED, _PACKED_CELLS = 100, 4  # bytes and cells that a byte of a workbook stands for, where rows are of people
_FEWEST_ROWS = 1 << 10
_MEASURED = (Kind.DATE, Kind.INTEGER, Kind.CONTINUOUS)


@dataclass(frozen=True)
class ReleasedRows:
    """Contents of the file of a table; ``rows`` stops one batch after those that were certified.

    ``declared`` counts the columns of declared domain and ``outside`` names those of them with other values.
    ``checks`` are the results of row checks.
    """

    names: tuple[str, ...]
    rows: int
    declared: int
    outside: tuple[str, ...]
    formulas: FormulaCount
    checks: tuple[Check, ...]


def read_released(
    file: Path,
    schema: Schema,
    rows: int,
    checks: Sequence[RowCheck] = (),
    *,
    most_bytes: int | None = None,
    more_bytes: int = 0,
    quoted: bool = False,
) -> ReleasedRows:
    """Read a released table once, compare it with the declared domains of its schema, and make row checks.

    Reading stops beyond the certified rows. If ``quoted``, an apostrophe before a formula is not part of the value.

    Raises
    ------
    TableError
        If it cannot be read, or unpacks to more than ``most_bytes``, by default to more than as many rows need and
        ``more_bytes``.
    """
    source = _opened(file, rows, len(schema.names), most_bytes)
    written = source.schema.names
    names = unquoted_names(written) if quoted else tuple(written)
    usual = min(MOST_BYTES, _FREE + rows * len(names) * _CELL + more_bytes)
    allowed = usual if most_bytes is None else most_bytes
    declared = [field for field in schema if field.domain.declared and field.name in names]
    outside: dict[str, None] = {}
    formulas = FormulaCount(names)
    readable = [_GuardedCheck(check) for check in checks]
    seen = size = 0
    for part in source.batches(written, max(_FEWEST_ROWS, _BATCH_CELLS // len(names)), threads=False):
        seen += len(part)
        size += part.nbytes
        if size > allowed:
            raise TableError(
                f"the table unpacks to more than {allowed >> 20} MiB, too much for {rows} rows of {len(names)} columns"
            )
        if seen > rows:
            break
        batch = pa.Table.from_batches([part])
        batch = unquote_formulas(batch) if quoted else batch
        formulas.add(batch)
        batch = _with_moments(batch, schema)
        for check in readable:
            check.add(batch)
        for field in declared:
            if field.name not in outside and _leaves(batch.column(field.name), field):
                outside[field.name] = None
    results = tuple(dict.fromkeys(result for check in readable for result in check.checks()))
    return ReleasedRows(names, seen, len(declared), tuple(outside), formulas, results)


class _GuardedCheck:
    """A row check that fails if it meets cells of a type that no released table has."""

    def __init__(self, check: RowCheck) -> None:
        self._check, self._strange = check, False

    def add(self, batch: pa.Table) -> None:
        try:
            self._check.add(batch)
        except (BadInput, pa.ArrowException):
            self._strange = True

    def checks(self) -> Sequence[Check]:
        if self._strange:
            return (Check("cell types", False, "cells that the facts cover have a type that cannot be counted"),)
        return tuple(self._check.checks())


def _opened(file: Path, rows: int, columns: int, most_bytes: int | None) -> TableSource:
    """A released table to be read in batches; a workbook and an SQLite file are read whole, within bounds.

    They may unpack to what the certified rows and columns need, and span not many more cells; and where these are
    many, to as much as a file of that size holds of people.
    """
    if not file.name.lower().endswith((*WORKBOOKS, *SQLITE)):
        return open_source(file, encoding="utf-8", header_row=1)
    cells, size = (rows + 1) * columns, file.stat().st_size if file.is_file() else 0
    usual = min(_WHOLE, _FREE + min(cells * _CELL, size * _PACKED))
    most_cells = min(MOST_CELLS, _FREE_CELLS + min(2 * cells, size * _PACKED_CELLS))
    table, form = read_file(file, header_row=1, most_bytes=most_bytes or usual, most_cells=most_cells)
    return TableSource(file, form, table.schema, table.num_rows, table=table)


def _with_moments(batch: pa.Table, schema: Schema) -> pa.Table:
    """Rows whose moments and times of day, which CSV writes as texts, are read where all of a column can be."""
    for field in schema:
        if field.kind not in _MEASURED or field.name not in batch.column_names:
            continue
        cells = plain(batch.column(field.name))
        if not is_text(cells.type):
            continue
        moments = moments_of_texts(cells) if field.kind is Kind.DATE else times_of_texts(cells)
        absent = absent_cells(cells, gap_field(batch.column(field.name), field).missing)
        if not absent.all() and not moments.filter(pa.array(~absent)).null_count:
            batch = batch.set_column(batch.column_names.index(field.name), field.name, moments)
    return batch


def _leaves(cells: pa.ChunkedArray, field: Field) -> bool:
    """Tell whether a cell lies outside the declared domain of its column; CSV writes a missing one as nothing."""
    field = gap_field(cells, field)
    try:
        if field.kind in (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL):
            codes_of_cells(cells, field)
            return False
        numbers, absent = numbers_of_cells(cells, field)
    except BadInput:
        return True
    low, high = (
        None if edge is None else bound_to_number(edge, field) for edge in (field.domain.low, field.domain.high)
    )
    present = numbers[~absent]
    return bool((low is not None and (present < low).any()) or (high is not None and (present > high).any()))


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
