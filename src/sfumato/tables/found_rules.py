"""Find rules between columns that the rows of a table obey: none due to chance, none due to one person."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from sfumato.core.arrays import Bools, Ints
from sfumato.core.errors import SchemaError
from sfumato.tables.contact import Evidence
from sfumato.tables.field import Field, Kind
from sfumato.tables.rules import (
    CLOSE,
    Cells,
    Rule,
    broken_rows,
    cells_of_column,
    decimals_of_field,
    is_kept_by_months,
    largest_of,
    pairs_of,
    period_of,
    read_rules,
    scale_of,
)
from sfumato.tables.schema import Schema

__all__ = ["find_decisions", "find_rules", "with_found_rules"]

_LABELS = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
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
    told = (parts != 0.0).all(axis=0) & ~broken[present]
    if not _is_countable(rule, cells, period):
        return False
    return int(told.sum()) >= _FEWEST and all(len(np.unique(part[told])) > 2 for part in parts)


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
    found = []
    for one in sorted(labels, key=lambda name: sizes[name]):
        for two in others:
            rule = Rule("->", (one, two))
            if one == two or not 2 <= sizes[two] <= sizes[one] <= _MOST_LABELS:
                continue
            first = {name: cells[name].take(slice(0, _SAMPLE)) for name in rule.columns}
            if not evidence.take(slice(0, _SAMPLE)).few(broken_rows(rule, first)):
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
    _, rows, pair = pairs_of(cells[rule.columns[0]], cells[rule.columns[1]])
    return np.asarray((rows < least)[pair], dtype=np.bool_)


def _chance_of_label(first: Cells, second: Cells) -> float:
    """Log probability that each label has one value under permutation of the values."""
    _, rows, _ = pairs_of(first, second)  # each label stands in one pair
    counts = np.unique(np.where(second.absent, np.inf, second.values), return_counts=True)[1]
    shares = np.log(counts / counts.sum())
    return float(sum(np.logaddexp.reduce(shares * count) for count in rows))
