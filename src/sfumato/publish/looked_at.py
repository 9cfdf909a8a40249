"""One look at a released table, piece by piece: what `verify` counts in it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sfumato.core.errors import BadInput, SfumatoError, TableError
from sfumato.engines.chunks.source import Source, open_source
from sfumato.publish.verify_rows import ModifiedRows, PersonRows
from sfumato.tables.cells import absent_cells, bound_to_number, codes_of_cells, is_text, numbers_of_cells, plain
from sfumato.tables.databases import SQLITE
from sfumato.tables.dates import microseconds_of_cells, moments_of_texts, month_starts, times_of_texts
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.files import read_file
from sfumato.tables.infer import complete_field
from sfumato.tables.levels import Condition, meets_all, parse_conditions
from sfumato.tables.rules import Rule, broken_rows, cells_of_column, period_of, read_rules
from sfumato.tables.schema import Schema
from sfumato.tables.spreadsheet import WORKBOOKS, FormulaCount, unquote_formulas, unquoted_names

__all__ = ["MOST_BYTES", "LookedAt", "look_at_table"]

MOST_BYTES = 1 << 36
"""Bytes that a released table may have, and unpack to, unless its reader grants more."""

_FREE = 1 << 26  # bytes that any table may unpack to
_ENTRY = 1 << 5  # bytes of an item in a basket, on average
_CELL = 1 << 10  # bytes of a cell, on average, beyond which a table is not what was certified
_BATCH_CELLS = 1 << 20
_WHOLE = 1 << 29  # bytes that a table may unpack to whose format is read whole
_FEWEST_ROWS = 1 << 10
_MEASURED = (Kind.DATE, Kind.INTEGER, Kind.CONTINUOUS)


@dataclass(frozen=True)
class LookedAt:
    """What is in the file of a table; ``rows`` stops one batch after those that were certified.

    ``declared`` counts the columns of declared domain and ``outside`` names those of them that leave it; ``broken`` are
    the rules that a row does not obey, ``days`` the columns given to the month that hold another day than its first.
    ``astray`` counts the rows that do not fulfil what they were chosen by, ``weights`` is what those of the rows add up
    to.
    """

    names: tuple[str, ...]
    rows: int
    declared: int
    outside: tuple[str, ...]
    formulas: FormulaCount
    broken: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    astray: int = 0
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
) -> LookedAt:
    """Read a released table once and compare it with the declared domains of its schema.

    Reading stops beyond the certified rows. Where ``quoted``, an apostrophe before a formula is not part of the value.
    What facts of a ``modified`` table say is counted in it. A row of baskets takes as much as it has ``entries``.

    Raises
    ------
    TableError
        Where it cannot be read, or unpacks to more than ``most_bytes``, by default to more than as many rows need.
    """
    source = _opened(file, most_bytes)
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
    seen = size = astray = 0
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
        weights += _sum_of(batch, schema, weight)
        days.update(name for name in months - days if _has_days(batch.column(name), schema[name]))
        astray += _astray(conditions, batch, schema)
        for field in declared:
            if field.name not in outside and _leaves(batch.column(field.name), field):
                outside[field.name] = None
    broken = tuple(str(check.rule) for check in ruled if not check.holds)
    told = tuple(sorted(days)), astray, weights
    return LookedAt(names, seen, len(declared), tuple(outside), formulas, broken, *told)


def _opened(file: Path, most_bytes: int | None) -> Source:
    """A released table to be read in batches; a workbook and an SQLite file are read whole, within bounds."""
    if not file.name.lower().endswith((*WORKBOOKS, *SQLITE)):
        return open_source(file)
    table, form = read_file(file, most_bytes=most_bytes or _WHOLE)
    return Source(file, form, table.schema, table.num_rows, table=table)


def _astray(conditions: tuple[Condition, ...], batch: pa.Table, schema: Schema) -> int:
    """Count the rows that do not meet the conditions; all of them where the cells cannot be compared."""
    try:
        fields = {name: _with_gap(batch.column(name), schema[name]) for name, _, _ in conditions}
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
                field = _with_gap(part.column(name), field)
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
        absent = absent_cells(cells, _with_gap(batch.column(field.name), field).missing)
        if not absent.all() and not moments.filter(pa.array(~absent)).null_count:
            batch = batch.set_column(batch.column_names.index(field.name), field.name, moments)
    return batch


def _with_gap(cells: pa.ChunkedArray, field: Field) -> Field:
    """Field of a column that CSV wrote, with nothing for a missing cell."""
    if is_text(cells.type) and "" not in (*field.missing, *(field.domain.categories or ())):
        return dataclasses.replace(field, missing=(*field.missing, ""))
    return field


def _sum_of(batch: pa.Table, schema: Schema, name: str | None) -> float:
    """Sum of the weights of some rows; NaN where they cannot be read."""
    if name is None:
        return 0.0
    try:
        numbers, absent = numbers_of_cells(batch.column(name), _with_gap(batch.column(name), schema[name]))
    except (BadInput, KeyError):
        return float("nan")
    return float("nan") if absent.any() else float(numbers.sum())


def _has_days(cells: pa.ChunkedArray, field: Field) -> bool:
    """Tell whether a date is not the first moment of its month, or cannot be read."""
    array = plain(cells)
    absent = absent_cells(array, _with_gap(cells, field).missing)
    try:
        moments, strange = microseconds_of_cells(array, absent, dataclasses.replace(field, domain=Domain()))
    except BadInput:
        return not absent.all()
    return bool(strange.any() or (month_starts(moments) != moments)[~absent].any())


def _leaves(cells: pa.ChunkedArray, field: Field) -> bool:
    """Tell whether a cell lies outside the declared domain of its column; CSV writes a missing one as nothing."""
    field = _with_gap(cells, field)
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
