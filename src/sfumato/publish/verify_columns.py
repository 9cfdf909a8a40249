"""What `verify` counts in each column of a released table: cells of its kind, missing cells and different values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.certificate.statements import counted
from sfumato.core.errors import BadInput
from sfumato.core.facts import (
    ClassPure,
    ColumnRulesKept,
    CountsKept,
    Fact,
    Grouped,
    Maintained,
    Noised,
    Scored,
    Stratified,
    Transformed,
    Untouched,
)
from sfumato.publish.agreement import Check
from sfumato.tables.cells import absent_cells, is_text, numbers_of_cells, plain
from sfumato.tables.dates import microseconds_of_cells
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.rules import read_rules
from sfumato.tables.schema import Schema

__all__ = ["ColumnCells", "gap_field"]

_CATEGORIES = (Kind.NOMINAL, Kind.BOOLEAN)
_MOST_VALUES = 1 << 16


class ColumnCells:
    """Counts the cells of every column, batch by batch."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._facts = facts
        self._counted = {fact.column: _most_values(fact) for fact in facts if isinstance(fact, ClassPure | Stratified)}
        self._values: dict[str, set[object]] = {}
        self.gaps = set[str]()  # columns with a missing cell
        self.strange = set[str]()  # columns with a cell that is not of their kind

    def add(self, batch: pa.Table, schema: Schema) -> None:
        """Look at some more rows."""
        for field in schema:
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

    def checks(self, schema: Schema) -> list[Check]:
        """Check the cells against the kinds of columns, and the counts of columns against the facts."""
        of_kind = f"{counted(len(schema.names), 'column contains', 'columns contain')} only cells of their kind"
        if self.strange:
            of_kind = f"{counted(len(self.strange), 'column contains', 'columns contain')} cells of another kind"
        wrong = sorted(set(self._wrong_counts(schema)))
        counts = "the facts count no more columns than the table has, and no fewer with missing cells"
        if wrong:
            counts = f"the certificate states another number of {', '.join(wrong)}"
        return [Check("column kinds", not self.strange, of_kind), Check("column counts", not wrong, counts)]

    def _wrong_counts(self, schema: Schema) -> Iterator[str]:
        categories = sum(field.kind in (*_CATEGORIES, Kind.ORDINAL) for field in schema)
        numbers = sum(field.kind not in _CATEGORIES for field in schema)
        gaps = len(self.gaps - set(_made_by_rules(self._facts, schema)))
        moved = {name for fact in self._facts if isinstance(fact, Transformed) for name in fact.columns}
        stated = [fact for fact in self._facts if isinstance(fact, CountsKept | Maintained | Untouched)]
        for fact in stated:
            if fact.category_columns > (categories if not moved else len(schema.names) - len(moved)):
                yield "categorical columns"
            if fact.missing_columns < gaps:
                yield "columns with missing cells"
        if gaps and not stated and any(isinstance(fact, Grouped) for fact in self._facts):
            yield "columns with missing cells"
        for each in self._facts:
            if isinstance(each, Noised | Scored) and each.columns > numbers:
                yield "numeric columns"


def _most_values(fact: ClassPure | Stratified) -> int:
    return fact.classes if isinstance(fact, ClassPure) else fact.strata


def _made_by_rules(facts: Iterable[Fact], schema: Schema) -> Iterator[str]:
    """Columns that rules between columns speak of, some of which the rule makes and nothing else counts."""
    for fact in facts:
        if isinstance(fact, ColumnRulesKept):
            for rule in read_rules(fact.rules, schema.names):
                yield from rule.columns


def gap_field(cells: pa.ChunkedArray, field: Field) -> Field:
    """Field of a column that CSV wrote, with nothing for a missing cell."""
    if is_text(cells.type) and "" not in (*field.missing, *(field.domain.categories or ())):
        return dataclasses.replace(field, missing=(*field.missing, ""))
    return field
