"""What `verify` counts in the rows of a released table, batch by batch, and compares with the facts."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.certificate.statements import counted
from sfumato.core.errors import BadInput, SfumatoError, TableError
from sfumato.core.facts import Aggregated, Alike, Blocked, Downgraded, Fact, Grouped, PersonsLinked, RareValues
from sfumato.publish.agreement import Check
from sfumato.publish.verify_columns import ColumnCells, gap_field
from sfumato.tables.cells import absent_cells, bound_to_number, codes_of_cells, is_text, numbers_of_cells, plain
from sfumato.tables.databases import SQLITE
from sfumato.tables.dates import microseconds_of_cells, moments_of_texts, month_starts, times_of_texts
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.files import read_file
from sfumato.tables.hierarchies import Hierarchy, parse_hierarchy
from sfumato.tables.infer import complete_field
from sfumato.tables.levels import Condition, meets_all, parse_conditions
from sfumato.tables.rules import Rule, broken_rows, cells_of_column, period_of, read_rules
from sfumato.tables.schema import Schema
from sfumato.tables.source import TableSource, open_source
from sfumato.tables.spreadsheet import FormulaCount, unquote_formulas, unquoted_names
from sfumato.tables.workbook import MOST_CELLS, WORKBOOKS

__all__ = ["MOST_BYTES", "ModifiedRows", "PersonRows", "ScannedTable", "look_at_table"]

_COUNT = "count of rows alike"  # a column that the counting adds
_OTHER = r"other(_\d+)?"  # what rare labels are counted to
_KINDS = ("nominal", "date", "integer")  # of columns that have hierarchies


class ModifiedRows:
    """Counts batch by batch what the facts of a modification state about the released rows."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.alike = next((fact for fact in facts if isinstance(fact, Alike)), None)
        self.wide = next((fact for fact in facts if isinstance(fact, Aggregated)), None)
        self.pooled = any(isinstance(fact, RareValues) and not fact.shown for fact in facts)
        self.gaps: dict[str, int] = {}
        for fact in facts:
            if isinstance(fact, Blocked | Downgraded):
                self.gaps |= dict(zip(fact.columns, fact.cells, strict=True))
            if isinstance(fact, Downgraded):
                self.gaps[fact.private] = fact.hidden
        self._found: dict[str, int] = dict.fromkeys(self.gaps, 0)
        self._labels: dict[str, set[str]] = {}
        self._odd = set[str]()  # columns whose cells are no texts, and so no labels
        self._classes: pa.Table | None = None
        self._strange = False

    def add(self, batch: pa.Table, schema: Schema) -> None:
        """Look at some more rows."""
        try:
            self._add(batch, schema)
        except (BadInput, pa.ArrowException):  # cells of a type that no released table has
            self._strange = True

    def _add(self, batch: pa.Table, schema: Schema) -> None:
        for name in self.gaps:
            if name in batch.column_names:
                self._found[name] += int(_absent(batch.column(name), schema, name).sum())
        if self.alike is not None and set(self.alike.columns) <= set(batch.column_names):
            self._count(batch, schema, self.alike.columns)
        for name in () if self.wide is None else self.wide.columns:
            if name in batch.column_names:
                self._read(_plain(batch.column(name)), _absent(batch.column(name), schema, name), name)

    def _count(self, batch: pa.Table, schema: Schema, columns: Sequence[str]) -> None:
        names, cells = [f"c{place}" for place in range(len(columns))], []
        for name in columns:
            gone = pa.array(_absent(batch.column(name), schema, name))
            array = _plain(batch.column(name))
            cells.append(pc.if_else(gone, pa.scalar(None, array.type), array))
        part = pa.table(cells, names=names).append_column(_COUNT, pa.array(np.ones(len(batch), dtype=np.int64)))
        both = part if self._classes is None else pa.concat_tables([self._classes, part])
        self._classes = both.group_by(names).aggregate([(_COUNT, "sum")]).rename_columns([*names, _COUNT])

    def _read(self, cells: pa.Array, gone: NDArray[np.bool_], name: str) -> None:
        there = cells.filter(pa.array(~gone))
        if not is_text(there.type):
            if len(there) and not pa.types.is_integer(there.type):
                self._odd.add(name)
                return
            there = there.cast(pa.string())  # a year is read as a number
        self._labels.setdefault(name, set()).update(pc.unique(there).to_pylist())

    def checks(self) -> list[Check]:
        """Compare the counts with the certified ones; no check if no fact states any."""
        if self._strange:
            return [Check("cell types", False, "cells that the facts cover have a type that cannot be counted")]
        found = []
        if self.alike is not None:
            sizes = [] if self._classes is None else self._classes.column(_COUNT).to_pylist()
            counts = (min(sizes, default=0), sum(size == 1 for size in sizes))
            same = counts == (self.alike.fewest, self.alike.alone)
            columns = counted(len(self.alike.columns), "column", "columns")
            detail = (
                f"the smallest has {counted(counts[0], 'row', 'rows')} that agree in {columns}; {counts[1]} are unique"
            )
            found.append(Check("equivalence classes", same, detail if same else f"{detail}, not as certified"))
        if self.gaps:
            short = [name for name, count in self.gaps.items() if self._found[name] < count]
            gaps = f"{counted(sum(self.gaps.values()), 'certified cell is', 'certified cells are')} missing"
            few = f"{counted(len(short), 'column shows', 'columns show')} cells that are certified to be missing"
            found.append(Check("suppressed cells", not short, few if short else gaps))
        return [*found, *self._wide_labels()]

    def _wide_labels(self) -> list[Check]:
        if self.wide is None:
            return []
        levels = zip(self.wide.columns, self.wide.hierarchies, self.wide.levels, strict=True)
        wrong, unread = [], 0
        for name, text, level in levels:
            hierarchy = _hierarchy(text)
            if hierarchy is None:
                unread += 1
            elif name in self._odd or not all(
                hierarchy.is_label(each, level) or (self.pooled and re.fullmatch(_OTHER, each))
                for each in self._labels.get(name, ())
            ):
                wrong.append(name)
        count = len(self.wide.columns)
        if wrong:
            columns = counted(len(wrong), "column contains", "columns contain")
            return [Check("generalized values", False, f"{columns} values that are no labels of the certified level")]
        labels = f"{counted(count - unread, 'column contains', 'columns contain')} only labels of the certified level"
        by_file = f"; {unread} used a hierarchy file of the owner and cannot be checked" if unread else ""
        return [Check("generalized values", True, labels + by_file, checked=unread < count)]


def _plain(column: pa.ChunkedArray) -> pa.Array:
    cells = plain(column)
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells


def _absent(column: pa.ChunkedArray, schema: Schema, name: str) -> NDArray[np.bool_]:
    marks = schema[name].missing if name in schema.names else ()
    return absent_cells(_plain(column), (*marks, ""))


def _hierarchy(text: str) -> Hierarchy | None:
    """The hierarchy that a fact names; None where it is a file, or cannot be read."""
    for kind in _KINDS if text != "file" else ():
        try:
            found = parse_hierarchy(text, kind, "")
        except BadInput:
            continue
        return None if isinstance(found, Path) else found
    return None


_NAME = "released persons"


class PersonRows:
    """Counts batch by batch the persons, their rows, and the values that each has in columns that never change."""

    def __init__(self, fact: PersonsLinked, least: int) -> None:
        self.fact, self.least = fact, least
        self._rows: Counter[object] = Counter()
        self._values: set[tuple[str, object]] = set()  # columns and persons that were seen with two values
        self._first: dict[tuple[str, object], object] = {}
        self._lacking = False

    @classmethod
    def of(cls, facts: Sequence[Fact]) -> PersonRows | None:
        """Counter of what the facts say; None where they say nothing of it."""
        linked = [fact for fact in facts if isinstance(fact, PersonsLinked)]
        groups = [fact for fact in facts if isinstance(fact, Grouped)]
        return cls(linked[0], groups[0].smallest) if linked and groups else None

    def add(self, batch: pa.Table) -> None:
        """Look at some more rows."""
        columns = (self.fact.column, *self.fact.constant)
        if not set(columns) <= set(batch.column_names):
            self._lacking = True
            return
        persons = batch.column(self.fact.column).to_pylist()
        self._rows.update(persons)
        for name in self.fact.constant:
            for person, value in zip(persons, batch.column(name).to_pylist(), strict=True):
                if self._first.setdefault((name, person), value) != value:
                    self._values.add((name, person))

    def check(self) -> Check:
        """Whether the counts of persons and rows agree, and each category has as many persons as the smallest group."""
        times = Counter(self._rows.values())
        if self._lacking or None in self._rows:
            return Check(_NAME, False, "rows do not state the person that they belong to")
        most = counted(max(times, default=0), "row", "rows")
        if (len(self._rows), max(times, default=0)) != (self.fact.persons, self.fact.most):
            return Check(_NAME, False, f"{len(self._rows)} with up to {most} each, not as certified")
        few = sum(count < self.least for count in times.values())
        if few:
            return Check(
                _NAME,
                False,
                f"{counted(few, 'row count occurs', 'row counts occur')} for fewer persons than the smallest group has",
            )
        if self._values:
            changed = len({name for name, _ in self._values})
            return Check(
                _NAME,
                False,
                f"{counted(changed, 'column changes', 'columns change')} within a person, contrary to the certificate",
            )
        constant = counted(len(self.fact.constant), "column is", "columns are")
        return Check(_NAME, True, f"{self.fact.persons} with up to {most} each; {constant} constant")


MOST_BYTES = 1 << 36
"""Bytes that a released table may have, and unpack to, unless its reader grants more."""

_FREE = 1 << 26  # bytes that any table may unpack to
_ENTRY = 1 << 5  # bytes of an item in a transaction, on average
_CELL = 1 << 10  # bytes of a cell, on average, beyond which a table is not what was certified
_BATCH_CELLS = 1 << 20
_WHOLE = 1 << 29  # bytes that a table may unpack to whose format is read whole
_FREE_CELLS = 1 << 16  # that any sheet may span
_PACKED, _PACKED_CELLS = 100, 4  # bytes and cells that a byte of a workbook stands for, where rows are of people
_FEWEST_ROWS = 1 << 10
_MEASURED = (Kind.DATE, Kind.INTEGER, Kind.CONTINUOUS)


@dataclass(frozen=True)
class ScannedTable:
    """What is in the file of a table; ``rows`` stops one batch after those that were certified.

    ``declared`` counts the columns of declared domain and ``outside`` names those of them that leave it; ``broken`` are
    the rules that a row does not obey, ``days`` the columns given to the month that hold another day than its first.
    ``violating`` counts rows that do not fulfil their condition, ``weights`` is the sum of the rows' weights.
    """

    names: tuple[str, ...]
    rows: int
    declared: int
    outside: tuple[str, ...]
    formulas: FormulaCount
    broken: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    violating: int = 0
    weights: float = 0.0


def look_at_table(
    file: Path,
    schema: Schema,
    rows: int,
    most_bytes: int | None = None,
    *,
    quoted: bool = False,
    rules: tuple[str, ...] = (),
    monthly: tuple[str, ...] = (),
    where: str = "",
    weight: str | None = None,
    modified: ModifiedRows | None = None,
    entries: int = 0,
    persons: PersonRows | None = None,
    columns: ColumnCells | None = None,
) -> ScannedTable:
    """Read a released table once and compare it with the declared domains of its schema.

    Reading stops beyond the certified rows. Where ``quoted``, an apostrophe before a formula is not part of the value.
    What facts of a ``modified`` table say is counted in it. A row of transactions takes as much as it has ``entries``.

    Raises
    ------
    TableError
        Where it cannot be read, or unpacks to more than ``most_bytes``, by default to more than as many rows need.
    """
    source = _opened(file, rows, len(schema.names), most_bytes)
    written = source.schema.names
    names = unquoted_names(written) if quoted else tuple(written)
    usual = min(MOST_BYTES, _FREE + rows * len(names) * _CELL + entries * _ENTRY)
    allowed = usual if most_bytes is None else most_bytes
    declared = [field for field in schema if field.domain.declared and field.name in names]
    outside: dict[str, None] = {}
    formulas = FormulaCount(names)
    ruled = [_RuleCheck(rule, schema) for rule in read_rules(rules, names)]
    months, days = {name for name in monthly if name in names and name in schema.names}, set[str]()
    conditions = parse_conditions(where) if where else ()
    seen = size = violating = 0
    weights = 0.0
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
        for check in ruled:
            check.add(batch)
        if modified is not None:
            modified.add(batch, schema)
        if persons is not None:
            persons.add(batch)
        if columns is not None:
            columns.add(batch, schema)
        weights += _sum_of(batch, schema, weight)
        days.update(name for name in months - days if _has_days(batch.column(name), schema[name]))
        violating += _violating(conditions, batch, schema)
        for field in declared:
            if field.name not in outside and _leaves(batch.column(field.name), field):
                outside[field.name] = None
    broken, told = tuple(str(check.rule) for check in ruled if not check.holds), tuple(sorted(days))
    return ScannedTable(names, seen, len(declared), tuple(outside), formulas, broken, told, violating, weights)


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


def _violating(conditions: tuple[Condition, ...], batch: pa.Table, schema: Schema) -> int:
    """Count the rows that do not meet the conditions; all of them where the cells cannot be compared."""
    try:
        fields = {name: gap_field(batch.column(name), schema[name]) for name, _, _ in conditions}
        parts = Schema(tuple(fields.values()))
        fulfilled = int(meets_all(conditions, batch, parts).sum()) if conditions else len(batch)
    except (SfumatoError, KeyError, pa.ArrowException):
        fulfilled = 0
    return len(batch) - fulfilled


class _RuleCheck:
    """Looks batch by batch whether rows obey a rule; of labels the pairs seen so far are kept."""

    def __init__(self, rule: Rule, schema: Schema) -> None:
        self.rule = rule
        self.fields = {name: schema[name] for name in rule.columns}
        self.holds = True
        self._pairs: pa.Table | None = None
        self._period: int | None = None

    def add(self, batch: pa.Table) -> None:
        """Look at some more rows."""
        if not self.holds:
            return
        part = batch.select(list(self.rule.columns))
        try:
            if self.rule.form == "->":
                both = part if self._pairs is None else pa.concat_tables([self._pairs, part])
                part = self._pairs = both.group_by(both.column_names).aggregate([])
            cells = {}
            for name, field in self.fields.items():
                field = gap_field(part.column(name), field)
                missing = absent_cells(plain(part.column(name)), field.missing).all()
                if not missing and field.kind is Kind.DATE:
                    field = complete_field(field, part.column(name))
                cells[name] = cells_of_column(part.column(name), field)
        except (BadInput, pa.ArrowException):  # cells of a type that no rule speaks of
            self.holds = False
            return
        if self._period is None:
            self._period = period_of(self.rule, cells)
        self.holds = not broken_rows(self.rule, cells, self._period).any()


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


def _sum_of(batch: pa.Table, schema: Schema, name: str | None) -> float:
    """Sum of the weights of some rows; NaN where they cannot be read."""
    if name is None:
        return 0.0
    try:
        numbers, absent = numbers_of_cells(batch.column(name), gap_field(batch.column(name), schema[name]))
    except (BadInput, KeyError):
        return float("nan")
    return float("nan") if absent.any() else float(numbers.sum())


def _has_days(cells: pa.ChunkedArray, field: Field) -> bool:
    """Tell whether a date is not the first moment of its month, or cannot be read."""
    array = plain(cells)
    absent = absent_cells(array, gap_field(cells, field).missing)
    try:
        moments, strange = microseconds_of_cells(array, absent, dataclasses.replace(field, domain=Domain()))
    except BadInput:
        return not absent.all()
    return bool(strange.any() or (month_starts(moments) != moments)[~absent].any())


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
