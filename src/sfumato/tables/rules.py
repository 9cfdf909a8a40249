"""Rules between columns that every row obeys: syntax, and the rows that break them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats, Ints, count_persons
from sfumato.core.errors import SchemaError, shown
from sfumato.tables.cells import absent_cells, decimals_of_step, numbers_of_cells, plain
from sfumato.tables.dates import unit_of
from sfumato.tables.field import Field, Kind

if TYPE_CHECKING:
    from sfumato.tables.schema import Schema

__all__ = [
    "CLOSE",
    "Cells",
    "Rule",
    "broken_rows",
    "cells_of_column",
    "decimals_of_field",
    "enforce_by_copying",
    "is_kept_by_months",
    "largest_of",
    "pairs_below",
    "pairs_of",
    "period_of",
    "read_rules",
    "rules_within",
    "scale_of",
    "sum_of",
    "tied_columns",
]

_MOST_RULES = 1_000
_LONGEST = 1_000  # characters of a rule
CLOSE = 1e-9  # of the largest number of a sum: what rounding leaves
_PERIODS = (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000)  # days, hours, minutes, seconds
_LABELS = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)


Form = Literal["<=", "+", "-", "=", "->"]


@dataclass(frozen=True)
class Rule:
    """One rule; ``columns`` in the order in which they are written.

    Examples
    --------
    >>> str(Rule("-", ("stay", "discharge", "admission")))
    'stay = discharge - admission'
    """

    form: Form
    columns: tuple[str, ...]

    def __str__(self) -> str:
        if self.form in ("+", "-"):
            return f"{self.columns[0]} = {self.columns[1]} {self.form} {self.columns[2]}"
        return f" {self.form} ".join(self.columns)

    @property
    def follows(self) -> str:
        """The dependent column."""
        return self.columns[1] if self.form in ("<=", "->") else self.columns[0]

    @property
    def givens(self) -> tuple[str, ...]:
        """The columns that it depends on."""
        return tuple(name for name in self.columns if name != self.follows)


def read_rules(texts: Iterable[str], names: Sequence[str]) -> tuple[Rule, ...]:
    """Parse rules over columns of the given names.

    Raises
    ------
    SchemaError
        For a text that is none, names an unknown column or one column twice.

    Examples
    --------
    >>> read_rules(["a <= b"], ("a", "b"))
    (Rule(form='<=', columns=('a', 'b')),)
    """
    texts = tuple(texts)
    if len(texts) > _MOST_RULES:
        raise SchemaError(f"the schema has {len(texts)} rules, at most {_MOST_RULES} are read; leave some out")
    known = set(names)
    return tuple(_read_rule(text, known) for text in dict.fromkeys(texts))


def _read_rule(text: str, names: set[str]) -> Rule:
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise SchemaError(f"a rule of the schema is no text of at most {_LONGEST} characters; write it as 'a <= b'")
    readings = {
        Rule(form, columns)
        for form, columns in _readings(text)
        if names.issuperset(columns) and len(set(columns)) == len(columns)
    }
    if len(readings) != 1:
        raise SchemaError(
            f"the rule {shown(text)} is not one between columns of the table; write it as 'a <= b', 'c = a + b', "
            "'c = a - b', 'b = a' or 'a -> b', with spaces around the signs"
        )
    return readings.pop()


def _readings(text: str) -> Iterator[tuple[Form, tuple[str, ...]]]:
    """All ways to parse a text, because names may contain operator signs."""
    pairs: tuple[Form, ...] = ("<=", "=", "->")
    for form in pairs:
        for left, right in _cuts(text, form):
            yield form, (left, right)
    sums: tuple[Form, ...] = ("+", "-")
    for left, rest in _cuts(text, "="):
        for sign in sums:
            for first, second in _cuts(rest, sign):
                yield sign, (left, first, second)


def _cuts(text: str, sign: str) -> Iterator[tuple[str, str]]:
    parts = text.split(f" {sign} ")
    for place in range(1, min(len(parts), 20)):
        yield f" {sign} ".join(parts[:place]).strip(), f" {sign} ".join(parts[place:]).strip()


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Cells of a column as numbers, or as one number for each label; ``unit`` is a date's step in microseconds."""

    values: Floats
    absent: Bools
    unit: int | None = None

    def take(self, rows: Ints | Bools | slice) -> Cells:
        """A subset of the cells."""
        return Cells(self.values[rows], self.absent[rows], self.unit)


def cells_of_column(column: pa.ChunkedArray, field: Field) -> Cells:
    """Cells of a column; dates get a step."""
    if field.kind in _LABELS:
        array = plain(column)
        absent = absent_cells(array, field.missing)
        codes = pc.fill_null(pc.dictionary_encode(array).indices, 0).to_numpy(zero_copy_only=False)
        return Cells(np.where(absent, -1.0, codes), absent)
    values, absent = numbers_of_cells(column, field)
    return Cells(values, absent, unit_of(field) if field.kind is Kind.DATE else None)


def rules_within(schema: Schema) -> tuple[Rule, ...]:
    """Rules between columns that a method transforms; rules on columns that are not released do not bind."""
    encoded = {field.name for field in schema.encoded}
    return tuple(rule for rule in read_rules(schema.rules, schema.names) if encoded.issuperset(rule.columns))


def is_kept_by_months(rule: Rule, schema: Schema) -> bool:
    """Whether a rule holds when days are dropped from its dates; moving a date earlier is allowed."""
    monthly = [name in schema.monthly for name in rule.columns]
    if rule.form == "=":
        return len(set(monthly)) == 1
    return monthly != [False, True] if rule.form == "<=" else not any(monthly)


def broken_rows(rule: Rule, cells: Mapping[str, Cells], period: int | None = None) -> Bools:
    """Rows that break a rule; an order ignores missing cells, a derived cell is missing if a part is.

    Where a label decides another column, rows broken are those that differ from most with their label. ``period`` is
    what a number counts that is a difference of dates; by default the one that most rows obey.
    """
    if rule.form == "<=":
        first, second = (cells[name] for name in rule.columns)
        scale = scale_of(first, second)
        return np.asarray(
            (first.values * scale[0] > second.values * scale[1]) & ~first.absent & ~second.absent, dtype=np.bool_
        )
    if rule.form == "->":
        return _undecided(cells[rule.columns[0]], cells[rule.columns[1]])
    if rule.form == "=":
        first, second = (cells[name] for name in rule.columns)
        scale = scale_of(first, second)
        apart = first.values * scale[0] != second.values * scale[1]
        return np.asarray((first.absent != second.absent) | (apart & ~first.absent), dtype=np.bool_)
    total = cells[rule.columns[0]]
    first, second = (cells[name] for name in rule.columns[1:])
    gone = first.absent | second.absent
    periods = (None,) if first.unit is None else _PERIODS if period is None else (period,)
    tried = []
    for each in periods:
        right = sum_of(rule, first, second, each)
        near = CLOSE * largest_of(right, total.values, first.values)
        tried.append((total.absent != gone) | (~gone & (np.abs(total.values - right) > near)))
    return min(tried, key=lambda broken: int(broken.sum()))


def largest_of(*parts: Floats) -> Floats:
    """Largest absolute number of each row, at least 1, as the scale of rounding errors."""
    return np.asarray(np.maximum.reduce([np.ones(parts[0].shape), *map(np.abs, parts)]))


def sum_of(rule: Rule, first: Cells, second: Cells, period: int | None) -> Floats:
    """Sum or difference of two columns; of dates, counted in periods."""
    if first.unit is None or second.unit is None or period is None:
        return first.values + second.values if rule.form == "+" else first.values - second.values
    scale = scale_of(first, second)
    return np.asarray((first.values * scale[0] - second.values * scale[1]) * (min(first.unit, second.unit) / period))


def period_of(rule: Rule, cells: Mapping[str, Cells]) -> int | None:
    """Unit of a difference of dates: the longest period that the fewest rows break; None for numbers."""
    if rule.form != "-" or cells[rule.columns[1]].unit is None:
        return None
    return min(_PERIODS, key=lambda period: int(broken_rows(rule, cells, period).sum()))


def scale_of(first: Cells, second: Cells) -> tuple[int, int]:
    """How often the finer of two steps fits into 1."""
    one, two = first.unit or 1, second.unit or 1
    return one // min(one, two), two // min(one, two)


def pairs_of(first: Cells, second: Cells) -> tuple[Ints, Ints, Ints]:
    """Distinct pairs of cells, as label and rows, and the pair of each row; missing counts as a label."""
    labels, others = (
        np.unique(np.where(cells.absent, np.inf, cells.values), return_inverse=True)[1].astype(np.int64)
        for cells in (first, second)
    )
    width = int(others.max(initial=0)) + 1
    keys, pair, rows = np.unique(labels * width + others, return_inverse=True, return_counts=True)
    return keys // width, rows.astype(np.int64), pair.astype(np.int64)


def _undecided(first: Cells, second: Cells) -> Bools:
    labels, rows, pair = pairs_of(first, second)
    order = np.lexsort((rows, labels))
    last = np.append(labels[order][1:] != labels[order][:-1], True) if len(order) else np.empty(0, dtype=np.bool_)
    most = np.zeros(len(labels), dtype=np.bool_)
    most[order[last]] = True
    return np.asarray(~most[pair], dtype=np.bool_)


def pairs_below(rule: Rule, cells: Mapping[str, Cells], least: int, persons: Ints | None = None) -> int:
    """Pairs of a label and its value held by fewer than ``least`` persons; 0 for other rules.

    A row is a person unless ``persons`` tells whom each is about.
    """
    if rule.form != "->":
        return 0
    _, rows, pair = pairs_of(cells[rule.columns[0]], cells[rule.columns[1]])
    if persons is not None:
        rows = count_persons(pair, persons, len(rows))
    return int((rows < least).sum())


def decimals_of_field(field: Field) -> int | None:
    """Number of decimals of a numeric column; None if unrestricted."""
    if field.kind in (Kind.INTEGER, Kind.DATE):
        return 0
    if field.format:
        return len(field.format.partition(".")[2])
    step = field.domain.step
    if not isinstance(step, int | float):
        return None
    low = field.domain.low if isinstance(field.domain.low, int | float) else 0.0
    return max(decimals_of_step(step), decimals_of_step(low) if low else 0)


def enforce_by_copying(table: pa.Table, schema: Schema, rules: Sequence[Rule]) -> pa.Table:
    """A table whose rows obey rules; cells of a row that breaks some are copied from a row that obeys them.

    All columns that rules tie together come from the same row, so that each rule goes on to hold.
    """
    for names in tied_columns(rules, [name for rule in rules for name in rule.columns]):
        cells = {name: cells_of_column(table.column(name), schema[name]) for name in names}
        broken = np.zeros(table.num_rows, dtype=np.bool_)
        for rule in rules:
            if names.issuperset(rule.columns):
                broken |= broken_rows(rule, cells)
        origin, whole = np.arange(len(broken)), np.flatnonzero(~broken)
        if len(whole) in (0, len(broken)):
            continue
        origin[broken] = whole[np.searchsorted(whole, origin[broken]) % len(whole)]
        for name in names:
            place = table.column_names.index(name)
            table = table.set_column(place, table.schema.field(place), table.column(name).take(pa.array(origin)))
    return table


def tied_columns(rules: Iterable[Rule], names: Iterable[str]) -> list[set[str]]:
    """Sets of columns connected by rules, restricted to the sets that contain one of the names."""
    names = list(dict.fromkeys(names))
    sets: list[set[str]] = [{name} for name in names]
    for rule in rules:
        joined = set(rule.columns).union(*(some for some in sets if some & set(rule.columns)))
        sets = [*(some for some in sets if not some & joined), joined]
    return [some for some in sets if some & set(names)]
