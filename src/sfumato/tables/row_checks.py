"""Comparison of the rows of a released table with what facts about columns state, batch by batch."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import BadInput, SfumatoError
from sfumato.core.facts import Check, counted
from sfumato.tables.cells import absent_cells, is_text, numbers_of_cells, plain
from sfumato.tables.dates import microseconds_of_cells, month_starts
from sfumato.tables.facts import Aggregated, WeightsScaled
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.hierarchies import Hierarchy, parse_hierarchy
from sfumato.tables.infer import complete_field
from sfumato.tables.levels import meets_all, parse_conditions
from sfumato.tables.rules import Rule, broken_rows, cells_of_column, period_of, read_rules
from sfumato.tables.schema import Schema

__all__ = [
    "ClassCheck",
    "ConditionCheck",
    "LabelCheck",
    "MissingCheck",
    "MonthCheck",
    "RuleCheck",
    "WeightCheck",
    "gap_field",
]

_COUNT = "count of equal rows"  # a column that the counting adds
_OTHER = r"other(_\d+)?"  # what rare labels are pooled to
_KINDS = ("nominal", "date", "integer")  # of columns that have hierarchies


def gap_field(cells: pa.ChunkedArray, field: Field) -> Field:
    """Field of a column that CSV wrote, with nothing for a missing cell."""
    if is_text(cells.type) and "" not in (*field.missing, *(field.domain.categories or ())):
        return dataclasses.replace(field, missing=(*field.missing, ""))
    return field


class RuleCheck:
    """Checks whether every row obeys rules between columns; of labels, the pairs seen so far are kept."""

    def __init__(self, rules: Sequence[str], schema: Schema) -> None:
        self._rules = [_RuleRows(rule, schema) for rule in read_rules(tuple(rules), schema.names)]

    def add(self, batch: pa.Table) -> None:
        """Read some more rows."""
        for each in self._rules:
            each.add(batch)

    def checks(self) -> Iterator[Check]:
        """Number of rules that hold, or that do not."""
        broken = sum(not each.holds for each in self._rules)
        detail = f"{counted(len(self._rules), 'rule holds', 'rules hold')} in every row"
        if broken:
            detail = f"{counted(broken, 'rule does', 'rules do')} not hold in every row"
        yield Check("rules", not broken, detail)


class _RuleRows:
    """Checks one rule."""

    def __init__(self, rule: Rule, schema: Schema) -> None:
        self.rule = rule
        self.fields = {name: schema[name] for name in rule.columns}
        self.holds = True
        self._pairs: pa.Table | None = None
        self._period: int | None = None

    def add(self, batch: pa.Table) -> None:
        self.holds = self.holds and set(self.fields) <= set(batch.column_names)
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
        except (BadInput, pa.ArrowException):  # cells of a type that no rule covers
            self.holds = False
            return
        if self._period is None:
            self._period = period_of(self.rule, cells)
        self.holds = not broken_rows(self.rule, cells, self._period).any()


class MonthCheck:
    """Checks whether every date is the first moment of a month."""

    def __init__(self, columns: Sequence[str], schema: Schema) -> None:
        self._fields = {name: schema[name] for name in columns if name in schema.names}
        self._count, self._days = len(columns), set[str]()

    def add(self, batch: pa.Table) -> None:
        """Read some more rows."""
        for name, field in self._fields.items():
            if name not in self._days and name in batch.column_names and _has_days(batch.column(name), field):
                self._days.add(name)

    def checks(self) -> Iterator[Check]:
        """Number of columns with dates by month, or of those that show days."""
        detail = f"{counted(self._count, 'column has', 'columns have')} dates by month only"
        if self._days:
            detail = f"{counted(len(self._days), 'column shows', 'columns show')} days"
        yield Check("dates by month", not self._days, detail)


def _has_days(cells: pa.ChunkedArray, field: Field) -> bool:
    """Tell whether a date is not the first moment of its month, or cannot be read."""
    array = plain(cells)
    absent = absent_cells(array, gap_field(cells, field).missing)
    try:
        moments, strange = microseconds_of_cells(array, absent, dataclasses.replace(field, domain=Domain()))
    except BadInput:
        return not absent.all()
    return bool(strange.any() or (month_starts(moments) != moments)[~absent].any())


class ConditionCheck:
    """Counts the rows that do not satisfy a condition; all of them if the cells cannot be compared."""

    def __init__(self, where: str, schema: Schema) -> None:
        self._conditions, self._schema, self._wrong = parse_conditions(where), schema, 0

    def add(self, batch: pa.Table) -> None:
        """Read some more rows."""
        try:
            fields = {name: gap_field(batch.column(name), self._schema[name]) for name, _, _ in self._conditions}
            satisfied = int(meets_all(self._conditions, batch, Schema(tuple(fields.values()))).sum())
        except (SfumatoError, KeyError, pa.ArrowException):
            satisfied = 0
        self._wrong += len(batch) - satisfied

    def checks(self) -> Iterator[Check]:
        """Whether every row satisfies it."""
        wrong = f"{counted(self._wrong, 'row does', 'rows do')} not satisfy the condition"
        yield Check("row condition", not self._wrong, wrong if self._wrong else "every row satisfies the condition")


class WeightCheck:
    """Adds up the weights; NaN if they cannot be read."""

    def __init__(self, fact: WeightsScaled, schema: Schema) -> None:
        self._fact, self._schema, self._sum = fact, schema, 0.0

    def add(self, batch: pa.Table) -> None:
        """Read some more rows."""
        try:
            cells = batch.column(self._fact.column)
            numbers, absent = numbers_of_cells(cells, gap_field(cells, self._schema[self._fact.column]))
        except (BadInput, KeyError):
            self._sum = float("nan")
            return
        self._sum += float("nan") if absent.any() else float(numbers.sum())

    def checks(self) -> Iterator[Check]:
        """Whether the sum is the certified one, within the step of the weights."""
        holds = abs(self._sum - self._fact.total) <= self._fact.step + 1e-6 * self._fact.total
        yield Check("weights", holds, f"their sum is {'' if holds else 'not '}the certified one")


class MissingCheck:
    """Counts missing cells, of which certain numbers are certified to be suppressed."""

    def __init__(self, certified: Mapping[str, int], schema: Schema) -> None:
        self._certified, self._schema = certified, schema
        self._found = dict.fromkeys(certified, 0)

    def add(self, batch: pa.Table) -> None:
        """Read some more rows."""
        for name in set(self._found) & set(batch.column_names):
            self._found[name] += int(_absent(batch.column(name), self._schema, name).sum())

    def checks(self) -> Iterator[Check]:
        """Whether at least as many cells are missing as certified."""
        short = sum(self._found[name] < count for name, count in self._certified.items())
        detail = f"{counted(sum(self._certified.values()), 'certified cell is', 'certified cells are')} missing"
        if short:
            detail = f"{counted(short, 'column shows', 'columns show')} cells that are certified to be missing"
        yield Check("suppressed cells", not short, detail)


class ClassCheck:
    """Counts equivalence classes, with a missing cell as a value of its own."""

    def __init__(self, columns: Sequence[str], counts: tuple[int, int], schema: Schema) -> None:
        self._columns, self._counts, self._schema = columns, counts, schema
        self._classes: pa.Table | None = None

    def add(self, batch: pa.Table) -> None:
        """Read some more rows."""
        if not set(self._columns) <= set(batch.column_names):
            return
        names, cells = [f"c{place}" for place in range(len(self._columns))], []
        for name in self._columns:
            gone = pa.array(_absent(batch.column(name), self._schema, name))
            array = _plain(batch.column(name))
            cells.append(pc.if_else(gone, pa.scalar(None, array.type), array))
        part = pa.table(cells, names=names).append_column(_COUNT, pa.array(np.ones(len(batch), dtype=np.int64)))
        both = part if self._classes is None else pa.concat_tables([self._classes, part])
        self._classes = both.group_by(names).aggregate([(_COUNT, "sum")]).rename_columns([*names, _COUNT])

    def checks(self) -> Iterator[Check]:
        """Whether the smallest class and the number of unique rows are the certified ones."""
        sizes = [] if self._classes is None else self._classes.column(_COUNT).to_pylist()
        found = (min(sizes, default=0), sum(size == 1 for size in sizes))
        columns = counted(len(self._columns), "column", "columns")
        detail = f"the smallest has {counted(found[0], 'row', 'rows')} that agree in {columns}; {found[1]} are unique"
        same = found == self._counts
        yield Check("equivalence classes", same, detail if same else f"{detail}, not as certified")


class LabelCheck:
    """Checks whether cells are labels of the certified level of a hierarchy."""

    def __init__(self, fact: Aggregated, schema: Schema, *, pooled: bool) -> None:
        self._fact, self._schema, self._pooled = fact, schema, pooled
        self._labels: dict[str, set[str]] = {}
        self._odd = set[str]()  # columns whose cells are no texts, and so no labels

    def add(self, batch: pa.Table) -> None:
        """Read some more rows."""
        for name in set(self._fact.columns) & set(batch.column_names):
            cells = _plain(batch.column(name)).filter(pa.array(~_absent(batch.column(name), self._schema, name)))
            if not is_text(cells.type):
                if len(cells) and not pa.types.is_integer(cells.type):
                    self._odd.add(name)
                    continue
                cells = cells.cast(pa.string())  # a year is read as a number
            self._labels.setdefault(name, set()).update(pc.unique(cells).to_pylist())

    def checks(self) -> Iterator[Check]:
        """Number of columns with labels of their level; a hierarchy file of the owner cannot be checked."""
        levels = zip(self._fact.columns, self._fact.hierarchies, self._fact.levels, strict=True)
        wrong = unread = 0
        for name, text, level in levels:
            hierarchy = _hierarchy(text)
            unread += hierarchy is None
            wrong += hierarchy is not None and not self._are_labels(name, hierarchy, level)
        count = len(self._fact.columns)
        if wrong:
            columns = counted(wrong, "column contains", "columns contain")
            yield Check("generalized values", False, f"{columns} values that are no labels of the certified level")
            return
        labels = f"{counted(count - unread, 'column contains', 'columns contain')} only labels of the certified level"
        by_file = f"; {unread} used a hierarchy file of the owner and cannot be checked" if unread else ""
        yield Check("generalized values", True, labels + by_file, checked=unread < count)

    def _are_labels(self, name: str, hierarchy: Hierarchy, level: int) -> bool:
        return name not in self._odd and all(
            hierarchy.is_label(each, level) or (self._pooled and re.fullmatch(_OTHER, each) is not None)
            for each in self._labels.get(name, ())
        )


def _plain(column: pa.ChunkedArray) -> pa.Array:
    cells = plain(column)
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells


def _absent(column: pa.ChunkedArray, schema: Schema, name: str) -> NDArray[np.bool_]:
    marks = schema[name].missing if name in schema.names else ()
    return absent_cells(_plain(column), (*marks, ""))


def _hierarchy(text: str) -> Hierarchy | None:
    """The hierarchy that a fact names; None if it is a file, or cannot be read."""
    for kind in _KINDS if text != "file" else ():
        try:
            found = parse_hierarchy(text, kind, "")
        except BadInput:
            continue
        return None if isinstance(found, Path) else found
    return None
