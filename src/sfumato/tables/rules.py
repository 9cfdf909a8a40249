"""Rules between columns that every row obeys: syntax, rows that break them, and rules that a table shows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats, Ints, count_persons
from sfumato.core.errors import SchemaError, shown
from sfumato.tables.cells import absent_cells, decimals_of_step, numbers_of_cells, plain
from sfumato.tables.contact import Evidence
from sfumato.tables.dates import unit_of
from sfumato.tables.field import Field, Kind
from sfumato.tables.schema import Schema

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
    "find_decisions",
    "find_rules",
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
    "with_found_rules",
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
        return _undecided(*(_labels_of(cells[name]) for name in rule.columns))
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


def _labels_of(cells: Cells) -> Ints:
    """Labels of cells, counted from 0; missing counts as a label."""
    return np.unique(np.where(cells.absent, np.inf, cells.values), return_inverse=True)[1].astype(np.int64)


def pairs_of(labels: Ints, others: Ints) -> tuple[Ints, Ints, Ints]:
    """Distinct pairs of labels, as the first label and rows, and the pair of each row."""
    width = int(others.max(initial=0)) + 1
    keys, pair, rows = np.unique(labels * width + others, return_inverse=True, return_counts=True)
    return keys // width, rows.astype(np.int64), pair.astype(np.int64)


def _undecided(first: Ints, second: Ints) -> Bools:
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
    _, rows, pair = pairs_of(*(_labels_of(cells[name]) for name in rule.columns))
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


_FEWEST = 30  # rows before a rule is found
_PAIR = 10  # rows that hold each pair of a label and what it decides, before that is found
_CHANCE = math.log(1e-9)  # of a rule that unrelated columns would obey, over all that are looked at
_APART = 0.9  # share of pairs of cells of different rows that obey an order anyway, above which it says nothing
_MOST_COLUMNS = 60  # numbers among which sums are looked for
_MOST_LABELS = 1_000
_SAMPLE = 200
_GLANCE = 40  # rows of the sample that are looked at first
_NUMBERS = (Kind.INTEGER, Kind.CONTINUOUS)


def find_rules(table: pa.Table, schema: Schema, persons: Ints | None = None, *, pair: int = _PAIR) -> tuple[str, ...]:
    """Rules that the rows of a table obey and unrelated columns would not obey by chance.

    Rows of fewer than `MIN_EVIDENCE` persons may break a rule, so that nobody alone decides whether there is one; a row
    is a person unless ``persons`` tells whom each is about.

    An order between two dates or two numbers: at least 30 rows have both, and would the cells be dealt out anew, at
    most 9 of 10 rows would obey, so that all rows do by chance with a probability below 1e-9 over all pairs. A sum of
    numbers, and a number that counts the days, hours, minutes or seconds between two dates: at least 30 rows in which
    no part is zero or constant. Two columns of numbers or dates that are the same: 30 rows, more than two values, and
    chance is below 1e-9; the later is made from the earlier. A label that decides another column: at least 10 rows hold
    each pair (``pair``), and chance is below 1e-9 again. The target is never made from other columns; a column is made
    once.
    """
    weight = schema.weight
    fields = [field for field in schema.encoded if field is not weight and table.num_rows >= _FEWEST]
    cells = {field.name: cells_of_column(table.column(field.name), field) for field in fields}
    evidence = Evidence.of(table.num_rows, persons)
    target = None if schema.target is None else schema.target.name
    copies = _find_copies(fields, cells, target, evidence)
    copied = {rule.follows for rule in copies}
    fields = [field for field in fields if field.name not in copied]
    sums = _acyclic_rules(_find_sums(fields, cells, evidence), target)
    decided = _acyclic_rules((*copies, *sums, *_find_decisions(fields, cells, evidence, pair)), target)
    made = {rule.follows for rule in decided}
    orders = [rule for rule in _find_orders(fields, cells, evidence) if not made & set(rule.columns)]
    found = (*_irreducible_orders([rule for rule in orders if rule.follows != target]), *decided)
    return tuple(str(rule) for rule in found if _is_readable(rule, schema.names) and is_kept_by_months(rule, schema))


def find_decisions(table: pa.Table, schema: Schema, persons: Ints | None = None) -> tuple[Rule, ...]:
    """Rules by which a label decides another column, judged on rows with frequent labels.

    Such a rule holds in a release if rare labels become labels that decide the column too.
    """
    fields = [field for field in schema.encoded if field is not schema.weight and table.num_rows >= _FEWEST]
    cells = {field.name: cells_of_column(table.column(field.name), field) for field in fields}
    found = _find_decisions(fields, cells, Evidence.of(table.num_rows, persons), _PAIR, frequent=True)
    free = _acyclic_rules(found, None if schema.target is None else schema.target.name)
    return tuple(rule for rule in free if _is_readable(rule, schema.names))


def with_found_rules(table: pa.Table, schema: Schema, persons: Ints | None = None) -> Schema:
    """Schema with the rules found in a table; if few rows break a rule, its dependent column may be repaired."""
    texts = find_rules(table, schema, persons)
    broken = set()
    for rule in read_rules(texts, schema.names):
        if broken_rows(rule, {name: cells_of_column(table.column(name), schema[name]) for name in rule.columns}).any():
            broken.add(rule.follows)
    fields = tuple(dataclasses.replace(each, repair=each.repair or each.name in broken) for each in schema)
    return dataclasses.replace(schema, fields=fields, rules=texts)


def _is_readable(rule: Rule, names: Sequence[str]) -> bool:
    try:
        return read_rules([str(rule)], names) == (rule,)
    except SchemaError:
        return False


def _acyclic_rules(rules: Iterable[Rule], target: str | None) -> tuple[Rule, ...]:
    """Rules that each make another column, never the target or a column from itself; earlier rules come first."""
    made: dict[str, tuple[str, ...]] = {}
    kept = []
    for rule in rules:
        if rule.follows not in made and rule.follows != target and not _leads_to(rule.givens, rule.follows, made):
            made[rule.follows] = rule.givens
            kept.append(rule)
    return tuple(kept)


def _leads_to(names: Iterable[str], goal: str, made: Mapping[str, tuple[str, ...]]) -> bool:
    return any(name == goal or _leads_to(made.get(name, ()), goal, made) for name in names)


def _find_orders(fields: Sequence[Field], cells: Mapping[str, Cells], evidence: Evidence) -> Iterator[Rule]:
    for kinds in ((Kind.DATE,), _NUMBERS):
        names = [field.name for field in fields if field.kind in kinds]
        limit = _CHANCE - math.log(max(1, len(names) * (len(names) - 1)))
        for one, two in _not_broken_at_first([cells[name] for name in names], evidence):
            rule = Rule("<=", (names[one], names[two]))
            if not evidence.few(broken_rows(rule, cells)):
                continue
            if _chance_of_order(cells[names[one]], cells[names[two]], kinds) < limit:
                yield rule


def _not_broken_at_first(columns: Sequence[Cells], evidence: Evidence) -> Iterator[tuple[int, int]]:
    """Pairs of columns whose first rows obey an order; one vectorized comparison per column."""
    if not columns:
        return
    finest = min(column.unit or 1 for column in columns)
    steps = [(column.unit or 1) // finest for column in columns]
    parts = zip(columns, steps, strict=True)
    rows = [np.where(column.absent, np.nan, column.values)[:_SAMPLE] * step for column, step in parts]
    first = np.array(rows)
    few, most = first[:, :_GLANCE], _most_broken(evidence)
    for one in range(len(columns)):
        left = np.flatnonzero((few[one] > few).sum(axis=1) <= most)
        left = left[(first[one] > first[left]).sum(axis=1) <= most]
        yield from ((one, int(two)) for two in left if two != one)


def _most_broken(evidence: Evidence) -> int:
    """Number of first rows that may break a rule which few persons break."""
    return evidence.spare if evidence.persons is None else _SAMPLE // 2


def _chance_of_order(first: Cells, second: Cells, kinds: tuple[Kind, ...]) -> float:
    """Log probability that all rows obey an order under permutation; 0 if the order is uninformative."""
    both = ~first.absent & ~second.absent
    scale = scale_of(first, second)
    low, high = np.sort(first.values[both]) * scale[0], second.values[both] * scale[1]
    rows = len(low)
    if rows < _FEWEST or (low == np.sort(high)).all():
        return 0.0
    share = float(np.searchsorted(low, high, side="right").sum()) / rows**2
    return rows * math.log(share) if share <= _APART or (Kind.DATE in kinds and share < 1.0) else 0.0


def _irreducible_orders(rules: Sequence[Rule]) -> list[Rule]:
    """Orders that do not follow from two others; none between columns that are equal everywhere."""
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


def _find_copies(
    fields: Sequence[Field], cells: Mapping[str, Cells], target: str | None, evidence: Evidence
) -> list[Rule]:
    """Columns that equal an earlier one, or the target, in every row."""
    measured = sorted(
        (field for field in fields if field.kind in (*_NUMBERS, Kind.DATE)), key=lambda f: f.name != target
    )
    limit = _CHANCE - math.log(max(1, len(measured) ** 2))
    keys = [(field.kind is Kind.DATE, field.domain.step) for field in measured]
    first = [np.where(cells[field.name].absent, np.inf, cells[field.name].values)[:_SAMPLE] for field in measured]
    sample, most = np.array(first), _most_broken(evidence)
    found: list[Rule] = []
    copied: set[int] = set()
    for place, field in enumerate(measured):
        alike = np.flatnonzero((sample[:place] != sample[place]).sum(axis=1) <= most)
        for one in (one for one in alike.tolist() if one not in copied and keys[one] == keys[place]):
            rule = Rule("=", (field.name, measured[one].name))
            if not evidence.few(broken_rows(rule, cells)):
                continue
            own = cells[field.name]
            counts = np.unique(own.values[~own.absent], return_counts=True)[1]
            rows = int(counts.sum())
            chance = rows * math.log(float((counts / rows) @ (counts / rows))) if rows else 0.0
            if len(counts) > 2 and rows >= _FEWEST and chance < limit:
                copied.add(place)
                found.append(rule)
            break
    return found


def _find_sums(fields: Sequence[Field], cells: Mapping[str, Cells], evidence: Evidence) -> Iterator[Rule]:
    dates = [field.name for field in fields if field.kind is Kind.DATE]
    numbers = [field.name for field in fields if field.kind in _NUMBERS][:_MOST_COLUMNS]
    for start in dates:
        for end in dates:
            rules = [Rule("-", (number, end, start)) for number in numbers if start != end]
            yield from (rule for rule in rules if _is_sum(rule, cells, evidence))
    place = {name: number for number, name in enumerate(numbers)}
    sample = np.array([np.where(cells[name].absent, np.nan, cells[name].values)[:_SAMPLE] for name in numbers])
    decimals = {field.name: decimals_of_field(field) for field in fields if field.kind in _NUMBERS}
    for one in numbers:
        for two in numbers[place[one] + 1 :]:
            right = sample[place[one]] + sample[place[two]]
            near = CLOSE * largest_of(right, np.broadcast_to(sample[place[one]], right.shape))
            same = (np.abs(sample - right) <= near) | (np.isnan(sample) & np.isnan(right))
            for total in (numbers[row] for row in np.flatnonzero((~same).sum(axis=1) <= _most_broken(evidence))):
                rule = _with_last_as_result(total, one, two, place)
                if total not in (one, two) and _is_whole(rule, decimals) and _is_sum(rule, cells, evidence):
                    yield rule


def _with_last_as_result(total: str, one: str, two: str, place: Mapping[str, int]) -> Rule:
    """The sum rule that makes the last of its three columns."""
    last = max((total, one, two), key=lambda name: place[name])
    if last == total:
        return Rule("+", (total, one, two))
    return Rule("-", (last, total, two if last == one else one))


def _is_whole(rule: Rule, decimals: Mapping[str, int | None]) -> bool:
    """Whether the result of a rule always has the decimals of its column."""
    made, parts = decimals[rule.follows], [decimals[name] for name in rule.givens]
    return made is None or all(part is not None and part <= made for part in parts)


def _is_sum(rule: Rule, cells: Mapping[str, Cells], evidence: Evidence) -> bool:
    first = {name: cells[name].take(slice(0, _SAMPLE)) for name in rule.columns}
    head = evidence.take(slice(0, _SAMPLE))
    if not head.few(broken_rows(rule, first)):
        return False
    period = period_of(rule, cells)
    broken = broken_rows(rule, cells, period)
    if not evidence.few(broken):
        return False
    present = ~cells[rule.follows].absent
    parts = np.array([cells[name].values[present] for name in rule.columns])
    informative = (parts != 0.0).all(axis=0) & ~broken[present]
    if not _is_countable(rule, cells, period):
        return False
    return int(informative.sum()) >= _FEWEST and all(len(np.unique(part[informative])) > 2 for part in parts)


def _is_countable(rule: Rule, cells: Mapping[str, Cells], period: int | None) -> bool:
    """Whether two dates always differ by whole periods, or the number need not be whole."""
    if period is None:
        return True
    units = [cells[name].unit or 1 for name in rule.givens]
    whole = bool((cells[rule.follows].values == np.rint(cells[rule.follows].values)).all())
    return not whole or all(unit % period == 0 for unit in units)


def _find_decisions(
    fields: Sequence[Field], cells: Mapping[str, Cells], evidence: Evidence, least: int, *, frequent: bool = False
) -> list[Rule]:
    """Rules by which a label decides another column, fewest labels first, so that chains are found in order.

    A minimum number of rows hold each pair. If only ``frequent`` labels count, rows of others are ignored.
    """
    labels = [field.name for field in fields if field.kind in _LABELS]
    others = [field.name for field in fields if field.kind in (*_LABELS, Kind.INTEGER)]
    sizes = {name: _count_labels(cells[name], evidence) for name in others}
    limit = _CHANCE - math.log(max(1, len(labels) * len(others)))
    head = evidence.take(slice(0, _SAMPLE))
    first = {name: _labels_of(cells[name].take(slice(0, _SAMPLE))) for name in others}
    found = []
    for one in sorted(labels, key=lambda name: sizes[name]):
        for two in others:
            rule = Rule("->", (one, two))
            if one == two or not 2 <= sizes[two] <= sizes[one] <= _MOST_LABELS:
                continue
            if not head.few(_undecided(first[one], first[two])):
                continue
            count = len(cells[one].values)
            rows = _frequent_rows(cells[one], least) if frequent else np.ones(count, dtype=np.bool_)
            whole = {name: cells[name].take(rows) for name in rule.columns}
            if (
                2 * int(rows.sum()) > count
                and evidence.take(rows).few(broken_rows(rule, whole) | _in_small_pairs(rule, whole, least))
                and _chance_of_label(whole[one], whole[two]) < limit
            ):
                found.append(rule)
    return found


def _frequent_rows(cells: Cells, least: int) -> Bools:
    """Rows whose label occurs in at least ``least`` rows."""
    _, label, rows = np.unique(cells.values, return_inverse=True, return_counts=True)
    return np.asarray((rows >= least)[label], dtype=np.bool_)


def _count_labels(cells: Cells, evidence: Evidence) -> int:
    """Number of labels frequent enough to decide something."""
    counts = np.unique(cells.values[~cells.absent], return_counts=True)[1]
    return int((counts >= evidence.least).sum())


def _in_small_pairs(rule: Rule, cells: Mapping[str, Cells], least: int) -> Bools:
    """Rows whose pair of label and value is too rare to be part of a rule."""
    _, rows, pair = pairs_of(*(_labels_of(cells[name]) for name in rule.columns))
    return np.asarray((rows < least)[pair], dtype=np.bool_)


def _chance_of_label(first: Cells, second: Cells) -> float:
    """Log probability that each label has one value under permutation of the values."""
    _, rows, _ = pairs_of(_labels_of(first), _labels_of(second))  # each label stands in one pair
    counts = np.unique(np.where(second.absent, np.inf, second.values), return_counts=True)[1]
    shares = np.log(counts / counts.sum())
    return float(sum(np.logaddexp.reduce(shares * count) for count in rows))
