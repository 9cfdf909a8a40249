"""Rules between columns that every row obeys: how they are written, which rows break them, and how they are found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats, Ints
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
    "find_rules",
    "is_kept_by_months",
    "pairs_below",
    "pairs_of",
    "period_of",
    "read_rules",
    "rules_within",
    "sum_of",
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
        """The column that is made from the others."""
        return self.columns[1] if self.form in ("<=", "->") else self.columns[0]

    @property
    def givens(self) -> tuple[str, ...]:
        """The others."""
        return tuple(name for name in self.columns if name != self.follows)


def read_rules(texts: Iterable[str], names: Sequence[str]) -> tuple[Rule, ...]:
    """Rules of texts over columns of these names.

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
    """All ways to take a text apart, for names may hold the signs too."""
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
    """The cells of a column as numbers, or as a number for each label; ``unit`` is a date's step in microseconds."""

    values: Floats
    absent: Bools
    unit: int | None = None

    def take(self, rows: Ints | slice) -> Cells:
        """Some of its cells."""
        return Cells(self.values[rows], self.absent[rows], self.unit)


def cells_of_column(column: pa.ChunkedArray, field: Field) -> Cells:
    """Cells of a column whose dates have their step filled in."""
    if field.kind in _LABELS:
        array = plain(column)
        absent = absent_cells(array, field.missing)
        codes = pc.fill_null(pc.dictionary_encode(array).indices, 0).to_numpy(zero_copy_only=False)
        return Cells(np.where(absent, -1.0, codes), absent)
    values, absent = numbers_of_cells(column, field)
    return Cells(values, absent, unit_of(field) if field.kind is Kind.DATE else None)


def rules_within(schema: Schema) -> tuple[Rule, ...]:
    """Rules between columns that a mechanism transforms; those of columns that do not leave bind nothing."""
    encoded = {field.name for field in schema.encoded}
    return tuple(rule for rule in read_rules(schema.rules, schema.names) if encoded.issuperset(rule.columns))


def is_kept_by_months(rule: Rule, schema: Schema) -> bool:
    """Tell whether a rule can be kept although days of its columns are taken away; earlier is always possible."""
    monthly = [name in schema.monthly for name in rule.columns]
    if rule.form == "=":
        return len(set(monthly)) == 1
    return monthly != [False, True] if rule.form == "<=" else not any(monthly)


def broken_rows(rule: Rule, cells: Mapping[str, Cells], period: int | None = None) -> Bools:
    """Rows that do not obey a rule; an order says nothing of missing cells, and what is made lacks where a part lacks.

    Where a label decides another column, rows broken are those that differ from most with their label. ``period`` is
    what a number counts that is a difference of dates; by default the one that most rows obey.
    """
    if rule.form == "<=":
        first, second = (cells[name] for name in rule.columns)
        scale = _scale_of(first, second)
        return np.asarray(
            (first.values * scale[0] > second.values * scale[1]) & ~first.absent & ~second.absent, dtype=np.bool_
        )
    if rule.form == "->":
        return _undecided(cells[rule.columns[0]], cells[rule.columns[1]])
    if rule.form == "=":
        first, second = (cells[name] for name in rule.columns)
        scale = _scale_of(first, second)
        apart = first.values * scale[0] != second.values * scale[1]
        return np.asarray((first.absent != second.absent) | (apart & ~first.absent), dtype=np.bool_)
    total = cells[rule.columns[0]]
    first, second = (cells[name] for name in rule.columns[1:])
    gone = first.absent | second.absent
    periods = (None,) if first.unit is None else _PERIODS if period is None else (period,)
    tried = []
    for each in periods:
        right = sum_of(rule, first, second, each)
        near = CLOSE * max(1.0, *(float(np.abs(part).max(initial=0.0)) for part in (right, total.values)))
        tried.append((total.absent != gone) | (~gone & (np.abs(total.values - right) > near)))
    return min(tried, key=lambda broken: int(broken.sum()))


def sum_of(rule: Rule, first: Cells, second: Cells, period: int | None) -> Floats:
    """Sum or difference of two columns; of dates counted in a period."""
    if first.unit is None or second.unit is None or period is None:
        return first.values + second.values if rule.form == "+" else first.values - second.values
    scale = _scale_of(first, second)
    return np.asarray((first.values * scale[0] - second.values * scale[1]) * (min(first.unit, second.unit) / period))


def period_of(rule: Rule, cells: Mapping[str, Cells]) -> int | None:
    """What a difference of dates counts: the longest period that fewest rows break; None for numbers."""
    if rule.form != "-" or cells[rule.columns[1]].unit is None:
        return None
    return min(_PERIODS, key=lambda period: int(broken_rows(rule, cells, period).sum()))


def _scale_of(first: Cells, second: Cells) -> tuple[int, int]:
    """How often the finer of two steps goes into each."""
    one, two = first.unit or 1, second.unit or 1
    return one // min(one, two), two // min(one, two)


def pairs_of(first: Cells, second: Cells) -> tuple[Ints, Ints, Ints]:
    """Different pairs of cells as label and rows, and the pair of each row; a missing cell is a label too."""
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
    """Pairs of a label and what it decides that fewer than ``least`` persons hold; 0 for other rules.

    A row is a person unless ``persons`` tells whom each is about.
    """
    if rule.form != "->":
        return 0
    _, rows, pair = pairs_of(cells[rule.columns[0]], cells[rule.columns[1]])
    if persons is not None:
        rows = np.bincount(np.unique(persons * len(rows) + pair) % len(rows), minlength=len(rows))
    return int((rows < least).sum())


def decimals_of_field(field: Field) -> int | None:
    """Decimals that a column of numbers is written with; None where any may be."""
    if field.kind in (Kind.INTEGER, Kind.DATE):
        return 0
    if field.format:
        return len(field.format.partition(".")[2])
    step = field.domain.step
    if not isinstance(step, int | float):
        return None
    low = field.domain.low if isinstance(field.domain.low, int | float) else 0.0
    return max(decimals_of_step(step), decimals_of_step(low) if low else 0)


_FEWEST = 30  # rows before a rule is found
_PAIR = 10  # rows that hold each pair of a label and what it decides, before that is found
_CHANCE = math.log(1e-9)  # of a rule that unrelated columns would obey, over all that are looked at
_APART = 0.9  # share of pairs of cells of different rows that obey an order anyway, above which it says nothing
_MOST_COLUMNS = 60  # numbers among which sums are looked for
_MOST_LABELS = 1_000
_SAMPLE = 200
_GLANCE = 10  # rows of the sample that are looked at first
_NUMBERS = (Kind.INTEGER, Kind.CONTINUOUS)


def find_rules(table: pa.Table, schema: Schema) -> tuple[str, ...]:
    """Rules that every row of a table obeys, and that unrelated columns would not obey by chance.

    An order between two dates or two numbers: at least 30 rows have both, and would the cells be dealt out anew, at
    most 9 of 10 rows would obey, so that all rows do by chance with a probability below 1e-9 over all pairs. A sum of
    numbers, and a number that counts the days, hours, minutes or seconds between two dates: at least 30 rows in which
    no part is zero or constant. Two columns of numbers or dates that are the same: 30 rows, more than two values, and
    chance is below 1e-9; the later is made from the earlier. A label that decides another column: at least 10 rows hold
    each pair, and chance is below 1e-9 again. The target is never made from other columns; a column is made once.
    """
    weight = schema.weight
    fields = [field for field in schema.encoded if field is not weight and table.num_rows >= _FEWEST]
    cells = {field.name: cells_of_column(table.column(field.name), field) for field in fields}
    target = None if schema.target is None else schema.target.name
    copies = _copies(fields, cells, target)
    copied = {rule.follows for rule in copies}
    fields = [field for field in fields if field.name not in copied]
    sums = _free(_sums(fields, cells), target)
    decided = _free((*copies, *sums, *_decided(fields, cells)), target)
    made = {rule.follows for rule in decided}
    orders = [rule for rule in _orders(fields, cells) if not made & set(rule.columns) and rule.follows != target]
    found = (*_least_orders(orders), *decided)
    return tuple(str(rule) for rule in found if _is_readable(rule, schema.names) and is_kept_by_months(rule, schema))


def _is_readable(rule: Rule, names: Sequence[str]) -> bool:
    try:
        return read_rules([str(rule)], names) == (rule,)
    except SchemaError:
        return False


def _free(rules: Iterable[Rule], target: str | None) -> tuple[Rule, ...]:
    """Rules that each make another column, none the target and none from itself, the first of them first."""
    made: dict[str, tuple[str, ...]] = {}
    kept = []
    for rule in rules:
        if rule.follows not in made and rule.follows != target and not _leads(rule.givens, rule.follows, made):
            made[rule.follows] = rule.givens
            kept.append(rule)
    return tuple(kept)


def _leads(names: Iterable[str], goal: str, made: Mapping[str, tuple[str, ...]]) -> bool:
    return any(name == goal or _leads(made.get(name, ()), goal, made) for name in names)


def _orders(fields: Sequence[Field], cells: Mapping[str, Cells]) -> Iterator[Rule]:
    for kinds in ((Kind.DATE,), _NUMBERS):
        names = [field.name for field in fields if field.kind in kinds]
        limit = _CHANCE - math.log(max(1, len(names) * (len(names) - 1)))
        for one, two in _not_broken_at_first([cells[name] for name in names]):
            rule = Rule("<=", (names[one], names[two]))
            if broken_rows(rule, cells).any():
                continue
            if _chance_of_order(cells[names[one]], cells[names[two]], kinds) < limit:
                yield rule


def _not_broken_at_first(columns: Sequence[Cells]) -> Iterator[tuple[int, int]]:
    """Pairs of columns whose first rows obey an order: each column at once against all, for wide tables have many."""
    if not columns:
        return
    finest = min(column.unit or 1 for column in columns)
    steps = [(column.unit or 1) // finest for column in columns]
    parts = zip(columns, steps, strict=True)
    rows = [np.where(column.absent, np.nan, column.values)[:_SAMPLE] * step for column, step in parts]
    first = np.array(rows)
    few = first[:, :_GLANCE]
    for one in range(len(columns)):
        left = np.flatnonzero(~(few[one] > few).any(axis=1))
        left = left[~(first[one] > first[left]).any(axis=1)]
        yield from ((one, int(two)) for two in left if two != one)


def _chance_of_order(first: Cells, second: Cells, kinds: tuple[Kind, ...]) -> float:
    """Logarithm of the chance that all rows obey an order if cells were dealt out anew; 0 where it says nothing."""
    both = ~first.absent & ~second.absent
    scale = _scale_of(first, second)
    low, high = np.sort(first.values[both]) * scale[0], second.values[both] * scale[1]
    rows = len(low)
    if rows < _FEWEST or (low == np.sort(high)).all():
        return 0.0
    share = float(np.searchsorted(low, high, side="right").sum()) / rows**2
    return rows * math.log(share) if share <= _APART or (Kind.DATE in kinds and share < 1.0) else 0.0


def _least_orders(rules: Sequence[Rule]) -> list[Rule]:
    """Orders that do not follow from two others; of columns that are equal everywhere none."""
    pairs = {rule.columns for rule in rules}
    pairs -= {(one, two) for one, two in pairs if (two, one) in pairs}
    after: dict[str, set[str]] = {}
    for one, two in pairs:
        after.setdefault(one, set()).add(two)
    return [
        rule
        for rule in rules
        if rule.columns in pairs
        and not any(rule.columns[1] in after.get(between, ()) for between in after[rule.columns[0]])
    ]


def _copies(fields: Sequence[Field], cells: Mapping[str, Cells], target: str | None) -> list[Rule]:
    """Columns that are the same as one before them, or as the target, in every row."""
    measured = [field for field in fields if field.kind in (*_NUMBERS, Kind.DATE)]
    limit = _CHANCE - math.log(max(1, len(measured) ** 2))
    first: dict[tuple[object, ...], str] = {}
    found = []
    for field in sorted(measured, key=lambda field: field.name != target):
        own = cells[field.name]
        values = np.where(own.absent, np.nan, own.values + 0.0)
        known = first.setdefault((field.kind is Kind.DATE, field.domain.step, values.tobytes()), field.name)
        if known == field.name:
            continue
        counts = np.unique(values[~own.absent], return_counts=True)[1]
        rows = int(counts.sum())
        if len(counts) > 2 and rows >= _FEWEST and rows * math.log(float((counts / rows) @ (counts / rows))) < limit:
            found.append(Rule("=", (field.name, known)))
    return found


def _sums(fields: Sequence[Field], cells: Mapping[str, Cells]) -> Iterator[Rule]:
    dates = [field.name for field in fields if field.kind is Kind.DATE]
    numbers = [field.name for field in fields if field.kind in _NUMBERS][:_MOST_COLUMNS]
    for start in dates:
        for end in dates:
            rules = [Rule("-", (number, end, start)) for number in numbers if start != end]
            yield from (rule for rule in rules if _is_sum(rule, cells))
    place = {name: number for number, name in enumerate(numbers)}
    sample = np.array([np.where(cells[name].absent, np.nan, cells[name].values)[:_SAMPLE] for name in numbers])
    decimals = {field.name: decimals_of_field(field) for field in fields if field.kind in _NUMBERS}
    for one in numbers:
        for two in numbers[place[one] + 1 :]:
            right = sample[place[one]] + sample[place[two]]
            near = CLOSE * max(1.0, float(np.nanmax(np.abs(right), initial=0.0)))
            same = (np.abs(sample - right) <= near) | (np.isnan(sample) & np.isnan(right))
            for total in (numbers[row] for row in np.flatnonzero(same.all(axis=1))):
                rule = _last_made(total, one, two, place)
                if total not in (one, two) and _is_whole(rule, decimals) and _is_sum(rule, cells):
                    yield rule


def _last_made(total: str, one: str, two: str, place: Mapping[str, int]) -> Rule:
    """Sum as the rule that makes the last of its three columns."""
    last = max((total, one, two), key=lambda name: place[name])
    if last == total:
        return Rule("+", (total, one, two))
    return Rule("-", (last, total, two if last == one else one))


def _is_whole(rule: Rule, decimals: Mapping[str, int | None]) -> bool:
    """Tell whether what is made of the parts can always be written as the column writes numbers."""
    made, parts = decimals[rule.follows], [decimals[name] for name in rule.givens]
    return made is None or all(part is not None and part <= made for part in parts)


def _is_sum(rule: Rule, cells: Mapping[str, Cells]) -> bool:
    first = {name: cells[name].take(slice(0, _SAMPLE)) for name in rule.columns}
    period = period_of(rule, cells) if not broken_rows(rule, first).any() else None
    if broken_rows(rule, first, period).any() or broken_rows(rule, cells, period).any():
        return False
    present = ~cells[rule.follows].absent
    parts = np.array([cells[name].values[present] for name in rule.columns])
    told = (parts != 0.0).all(axis=0)
    if not _is_countable(rule, cells, period):
        return False
    return int(told.sum()) >= _FEWEST and all(len(np.unique(part[told])) > 2 for part in parts)


def _is_countable(rule: Rule, cells: Mapping[str, Cells], period: int | None) -> bool:
    """Tell whether any two dates differ by a whole number of periods, or the number need not be whole."""
    if period is None:
        return True
    units = [cells[name].unit or 1 for name in rule.givens]
    whole = bool((cells[rule.follows].values == np.rint(cells[rule.follows].values)).all())
    return not whole or all(unit % period == 0 for unit in units)


def _decided(fields: Sequence[Field], cells: Mapping[str, Cells]) -> list[Rule]:
    """Labels that decide another column, those of fewest labels first, so that a chain is found link by link."""
    labels = [field.name for field in fields if field.kind in _LABELS]
    others = [field.name for field in fields if field.kind in (*_LABELS, Kind.INTEGER)]
    sizes = {name: len(np.unique(cells[name].values[~cells[name].absent])) for name in others}
    limit = _CHANCE - math.log(max(1, len(labels) * len(others)))
    found = []
    for one in sorted(labels, key=lambda name: sizes[name]):
        for two in others:
            rule = Rule("->", (one, two))
            if one == two or not 2 <= sizes[two] <= sizes[one] <= _MOST_LABELS:
                continue
            first = {name: cells[name].take(slice(0, _SAMPLE)) for name in rule.columns}
            if broken_rows(rule, first).any() or broken_rows(rule, cells).any():
                continue
            if not pairs_below(rule, cells, _PAIR) and _chance_of_label(cells[one], cells[two]) < limit:
                found.append(rule)
    return found


def _chance_of_label(first: Cells, second: Cells) -> float:
    """Logarithm of the chance that each label has one value if the values were dealt out anew."""
    _, rows, _ = pairs_of(first, second)  # each label stands in one pair
    counts = np.unique(np.where(second.absent, np.inf, second.values), return_counts=True)[1]
    shares = np.log(counts / counts.sum())
    return float(sum(np.logaddexp.reduce(shares * count) for count in rows))
