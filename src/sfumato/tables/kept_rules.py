"""Enforce rules between columns exactly: hide dependent columns from a method, and rebuild them afterwards.

The later of two ordered columns is seen as its distance from the latest of those before it, so that no row is turned
away; a column that follows from others is not modelled, and is computed from what was drawn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import PrivacyRefusal, SchemaError, SfumatoError
from sfumato.tables.cells import absent_cells, declared_type, plain, write_numbers
from sfumato.tables.codec import Codec, EncodedColumn
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.grid import unbounded_grid
from sfumato.tables.rules import (
    Cells,
    Rule,
    broken_rows,
    cells_of_column,
    decimals_of_field,
    is_kept_by_months,
    pairs_below,
    period_of,
    rules_within,
    sum_of,
)
from sfumato.tables.schema import Schema

__all__ = ["DeclaredRules", "RuleEnforcement", "check_rules", "derivation_order", "enforce_rules"]

_NUMBERS = (Kind.INTEGER, Kind.CONTINUOUS)
_LABELS = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
_MOST_DECIMALS = 12


@dataclass(frozen=True, eq=False, repr=False)
class RuleEnforcement:
    """Rules of a table, the reduced table that a method sees, and how complete rows are rebuilt.

    ``rare_pairs`` tells whether pairs of a label and what it decides are kept below the minimum frequency.
    """

    rules: tuple[Rule, ...]
    codec: Codec  # of the whole table
    table: pa.Table  # what is seen
    schema: Schema  # of that
    rare_pairs: bool
    original: pa.Table
    cells: Mapping[str, Cells]
    anchors: Mapping[str, float] = field(default_factory=dict)

    @property
    def placed(self) -> set[str]:
        """Columns whose cells are not drawn: derived from others, or placed before or after them."""
        return {name for rule in self.rules for name in (rule.columns if rule.form == "<=" else (rule.follows,))}

    def whole(self, seen: pa.Table, *, native: pa.Table | None = None) -> pa.Table:
        """Complete rows from drawn ones; in native types if ``native`` holds the same rows in those.

        Raises
        ------
        SfumatoError
            If a row would break a rule, which is a defect.
        """
        maker = _RowBuilder(self, seen, {} if native is None else self.codec.native_types)
        maker.order()
        for rule in derivation_order([rule for rule in self.rules if rule.form != "<="]):
            maker.make(rule)
        if native is not None:
            maker.arrays |= {name: native.column(name) for name in native.column_names if name not in maker.written}
        table = pa.table({column.field.name: maker.arrays[column.field.name] for column in self.codec.columns})
        cells = {
            name: cells_of_column(table.column(name), self.codec.schema[name])
            for name in {name for rule in self.rules for name in rule.columns}
        }
        for rule in self.rules:
            if broken_rows(rule, cells, period_of(rule, self.cells)).any():
                raise SfumatoError(f"{len(self.rules)} rules could not be kept; leave them out with --no-rules")
        return table


def enforce_rules(
    table: pa.Table, codec: Codec, *, min_frequency: int, found: bool, persons: Ints | None = None
) -> RuleEnforcement | None:
    """Rules of a codec's schema, ready to be enforced in synthetic rows; None if there are none.

    Rules that were ``found`` and would show a pair of labels held by fewer than ``min_frequency`` persons are left
    out; one that the owner wrote down is kept. A row is a person unless ``persons`` tells otherwise.

    Raises
    ------
    SchemaError
        For rules that rows break, that contradict each other or do not fit the kinds of their columns.
    """
    rules = rules_within(codec.schema)
    names = {name for rule in rules for name in rule.columns}
    cells = {name: cells_of_column(table.column(name), codec.schema[name]) for name in names}
    if found:
        rules = tuple(rule for rule in rules if not pairs_below(rule, cells, min_frequency, persons))
    if not rules:
        return None
    check_rules(rules, codec.schema)
    for rule in rules:
        broken = int(broken_rows(rule, cells).sum())
        if broken:
            raise SchemaError(f"{broken} of {table.num_rows} rows break the rule '{rule}'; fix them, or remove it")
    rare = not found and any(rule.form == "->" for rule in rules)
    made = {rule.follows for rule in rules if rule.form != "<="}
    kept = RuleEnforcement(rules, codec, table, codec.schema, rare, table, cells)
    seen, fields, anchors = table, [], {}
    before = _predecessors(rules)
    for each in codec.schema:
        if each.name in made:
            seen = seen.drop_columns([each.name])
        elif each.name in before:
            column, known, anchors[each.name] = _distance(each, before[each.name], kept)
            seen = seen.set_column(seen.column_names.index(each.name), each.name, column)
            fields.append(known)
        elif each.name in seen.column_names:
            fields.append(each)
    return dataclasses.replace(kept, table=seen, schema=Schema(tuple(fields)), anchors=anchors)


def check_rules(rules: Sequence[Rule], schema: Schema) -> None:
    """Refuse rules on columns of the wrong kind, and rules that derive a column twice, from itself, or the target."""
    made: dict[str, Rule] = {}
    target = None if schema.target is None else schema.target.name
    for rule in rules:
        kinds = [schema[name].kind for name in rule.columns]
        numbers = all(kind in _NUMBERS for kind in kinds)
        dates = all(kind is Kind.DATE for kind in (kinds if rule.form in ("<=", "=") else kinds[1:]))
        fits = {
            "<=": numbers or dates,
            "=": numbers or (dates and len({schema[name].domain.step for name in rule.columns}) == 1),
            "+": numbers,
            "-": numbers or (dates and kinds[0] in _NUMBERS),
            "->": kinds[0] in _LABELS and kinds[1] in (*_LABELS, *_NUMBERS),
        }[rule.form]
        if not fits:
            raise SchemaError(f"the rule '{rule}' does not go with the kinds of its columns; change one of them")
        if not is_kept_by_months(rule, schema):
            raise SchemaError(
                f"the rule '{rule}' needs days, and one of its columns is given to the month; leave the rule out, or "
                'write step = "day" in the schema'
            )
        if rule.form == "<=":
            continue
        follows = schema[rule.follows]
        if follows.name in made:
            raise SchemaError(f"column {follows.name!r} follows from two rules; leave one of them out")
        if follows.name == target:
            raise SchemaError(f"the target {follows.name!r} follows from the rule '{rule}'; leave the rule out")
        if rule.form != "->" and follows.domain.declared and (follows.domain.low, follows.domain.high) != (None, None):
            raise SchemaError(
                f"column {follows.name!r} follows from a rule and has declared bounds; remove one of them"
            )
        made[follows.name] = rule
    for rule in rules:
        if rule.form == "<=" and (both := made.keys() & set(rule.columns)):
            raise SchemaError(
                f"column {sorted(both)[0]!r} follows from other columns and stands in the rule '{rule}'; state it of "
                "those"
            )
    derivation_order(list(made.values()))
    list(_topological_order(_predecessors(rules)))


def _predecessors(rules: Sequence[Rule]) -> dict[str, list[str]]:
    """Columns of orders, each with the columns that come before it."""
    before: dict[str, list[str]] = {}
    for rule in rules:
        if rule.form == "<=":
            before.setdefault(rule.columns[1], []).append(rule.columns[0])
    return before


def _topological_order(before: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Columns that come after others, in topological order."""
    left = dict(before)
    while left:
        ready = [name for name, those in left.items() if not left.keys() & set(those)]
        if not ready:
            raise SchemaError(f"{len(left)} columns each come before themselves by the rules; leave one rule out")
        for name in ready:
            yield name
            del left[name]


def derivation_order(rules: Sequence[Rule]) -> list[Rule]:
    """Rules that derive columns, each after those that derive its parts."""
    by_name = {rule.follows: rule for rule in rules}
    return [by_name[name] for name in _topological_order({rule.follows: rule.givens for rule in rules})]


def _distance(each: Field, before: Sequence[str], kept: RuleEnforcement) -> tuple[pa.Array, Field, float]:
    """Distance of a column from the latest one before it, its field, and the replacement if these are missing."""
    scale = _scale_of(each, [kept.codec.schema[name] for name in before])
    own = kept.cells[each.name]
    latest, known = _latest(each, before, kept, kept.cells, scale)
    anchor = float(np.ceil(latest[known].mean())) if known.any() else 0.0
    distance = _scaled(own.values, scale) - np.where(known, latest, anchor)
    whole = each.kind is Kind.DATE or scale == 1.0
    step = None if scale is None else 1.0 / scale
    values = distance if scale is None else np.rint(distance) / scale
    array = pa.array(values.astype(np.int64) if whole else values, mask=own.absent)
    kind = Kind.INTEGER if whole else Kind.CONTINUOUS
    return array, Field(each.name, kind, each.role, Domain(step=1 if whole else step)), anchor


def _scale_of(each: Field, before: Sequence[Field]) -> float | None:
    """Units of the finest decimals in 1, over all columns of an order; None if they have no grid."""
    decimals = [decimals_of_field(other) for other in (each, *before)]
    most = max((-1 if count is None else count) for count in decimals)
    return None if None in decimals or most > _MOST_DECIMALS else 10.0**most


def _scaled(values: Floats, scale: float | None) -> Floats:
    return values if scale is None else np.rint(values * scale)


def _latest(
    each: Field, before: Sequence[str], kept: RuleEnforcement, cells: Mapping[str, Cells], scale: float | None
) -> tuple[Floats, Bools]:
    """Latest of several columns in the later one's count, never before any of them, and where there is one."""
    unit = kept.cells[each.name].unit
    latest = np.full(len(cells[before[0]].values), -np.inf)
    for name in before:
        other = cells[name]
        values = _scaled(other.values, scale)
        if unit is not None and other.unit is not None and unit != other.unit:
            values = np.ceil(values * (other.unit / unit))
        latest = np.where(other.absent, latest, np.maximum(latest, values))
    return latest, np.isfinite(latest)


class _RowBuilder:
    """Derives the columns of complete rows one by one."""

    def __init__(self, kept: RuleEnforcement, seen: pa.Table, kinds: Mapping[str, pa.DataType]) -> None:
        self.kept = kept
        self.kinds = kinds
        self.columns = {column.field.name: column for column in kept.codec.columns}
        self.before = _predecessors(kept.rules)
        self.written: set[str] = set()
        self.arrays: dict[str, pa.ChunkedArray | pa.Array] = {name: seen.column(name) for name in seen.column_names}
        names = {name for rule in kept.rules for name in rule.columns if name in self.arrays}
        self.cells = {name: cells_of_column(seen.column(name), kept.schema[name]) for name in names}

    def order(self) -> None:
        """Put later columns after earlier ones; if a bound cuts one off, the earlier ones are reduced."""
        turn = list(_topological_order(self.before))
        for name in turn:
            self.cells[name] = self._later(name)
        changed = set(turn)
        for name in reversed(turn):
            for other in self.before[name]:
                if self._reduce_to_next(other, name):
                    changed.add(other)
        for name in changed:
            self._write(name, self.cells[name].values, self.cells[name].absent)

    def _later(self, name: str) -> Cells:
        column, drawn, own = self.columns[name], self.cells[name], self.kept.cells[name]
        before = self.before[name]
        scale = _scale_of(column.field, [self.kept.codec.schema[other] for other in before])
        latest, known = _latest(column.field, before, self.kept, self.cells, scale)
        distance = _scaled(drawn.values, scale)
        values = np.where(known, latest + np.maximum(distance, 0.0), self.kept.anchors[name] + distance)
        values = values if scale is None else values / scale
        decimals = decimals_of_field(column.field)
        if decimals is not None:
            rounded = np.ceil(np.round(values * 10.0**decimals, 6)) / 10.0**decimals
            values = np.where(rounded < values, rounded + 10.0**-decimals, rounded)
        low, high = _bounds(column)
        return Cells(np.where(drawn.absent, 0.0, np.clip(values, low, high)), drawn.absent, own.unit)

    def _reduce_to_next(self, other: str, name: str) -> bool:
        """Reduce a column to the next one if that was cut off; return whether any cell changed."""
        broken = broken_rows(Rule("<=", (other, name)), self.cells)
        if not broken.any():
            return False
        first, second = self.cells[other], self.cells[name]
        limit = second.values * ((second.unit or 1) / (first.unit or 1))
        decimals = decimals_of_field(self.columns[other].field)
        if decimals is not None:
            limit = np.floor(np.round(limit * 10.0**decimals, 6)) / 10.0**decimals
        self.cells[other] = Cells(np.where(broken, limit, first.values), first.absent, first.unit)
        return True

    def make(self, rule: Rule) -> None:
        """Derive the column that follows from a rule."""
        if rule.form == "->":
            self._look_up(rule)
            return
        field, period = self.columns[rule.follows].field, period_of(rule, self.kept.cells)
        self.cells[rule.follows] = made = _derive(rule, self.cells, field, period)
        self._write(rule.follows, made.values, made.absent)

    def _look_up(self, rule: Rule) -> None:
        """Take what a label decides from an original row with that label; otherwise from the most frequent."""
        label, follows = rule.columns
        marks = self.columns[label].field.missing
        given = plain(self.kept.original.column(label))
        absent = absent_cells(given, marks)
        rows = np.flatnonzero(~absent)
        values, first = _first_rows(given, rows)
        drawn = plain(self.arrays[label]).cast(given.type)
        gone = absent_cells(drawn, marks)
        places = pc.fill_null(pc.index_in(drawn, value_set=values), 0).to_numpy(zero_copy_only=False)
        origin = first[places] if len(first) else np.zeros(len(drawn), dtype=np.int64)
        if absent.any():
            origin = np.where(gone, np.flatnonzero(absent)[0], origin)
        self.cells[follows] = self.kept.cells[follows].take(origin)
        if self.columns[follows].grid is not None and self.columns[follows].field.kind is not Kind.ORDINAL:
            self._write(follows, self.cells[follows].values, self.cells[follows].absent)
        else:
            self.arrays[follows] = self.kept.original.column(follows).take(pa.array(origin))

    def _write(self, name: str, values: Floats, absent: Bools) -> None:
        self.written.add(name)
        column = self.columns[name]
        kind = self.kinds.get(name, column.kind)
        if pa.types.is_integer(kind):
            limits = np.iinfo(kind.to_pandas_dtype())
            if values.size and (values.min() < limits.min or values.max() > limits.max):
                kind = pa.int64()
        self.arrays[name] = write_numbers(values, absent, column.field, kind, column.gap)


def _first_rows(given: pa.Array, rows: Ints) -> tuple[pa.Array, Ints]:
    """Distinct cells among some rows, and the first row of each."""
    encoded = pc.dictionary_encode(given.take(pa.array(rows)))
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return encoded.dictionary, rows[np.unique(codes, return_index=True)[1]]


def _bounds(column: EncodedColumn) -> tuple[float, float]:
    """Bounds of a column: declared ones, those held by enough persons, and those of its type."""
    assert column.grid is not None
    free = unbounded_grid(column.grid, column.field, column.kind)
    low = free.low if column.grid.fold_low else column.grid.low
    high = free.high if column.grid.fold_high else column.grid.high
    return low, high


_ROUNDS = 20  # of exchanges, more than any chain of orders needs


@dataclass(frozen=True)
class DeclaredRules:
    """Rules of a schema whose other columns have declared domains.

    Columns that follow from others are made after the others are drawn. Numbers in the wrong order are exchanged.

    Raises
    ------
    PrivacyRefusal
        For a rule by which a label decides something: its pairs would have to be read off the data.
    SchemaError
        For rules that contradict each other, the kinds or the domains of their columns.
    """

    schema: Schema

    def __post_init__(self) -> None:
        deciding = next((rule for rule in self.rules if rule.form == "->"), None)
        if deciding is not None:
            raise PrivacyRefusal(
                f"the pairs of the rule '{deciding}' would have to be read off the data; drop {deciding.follows!r} or "
                "the rule"
            )
        check_rules(self.rules, self.schema)
        for rule in self.rules:
            first, last = (self.schema[name] for name in (rule.columns[0], rule.columns[-1]))
            dates = [self.schema[name] for name in rule.columns if self.schema[name].kind is Kind.DATE]
            if len({field.domain.step for field in dates}) > 1:
                raise SchemaError(f"the dates of the rule '{rule}' have different steps; declare the same one")
            low, high = first.domain.low, last.domain.high
            if rule.form == "<=" and low is not None and high is not None and low > high:  # type: ignore[operator]
                raise SchemaError(f"no declared values obey the rule '{rule}'; correct the bounds, or remove the rule")

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that bind released columns."""
        return rules_within(self.schema)

    @property
    def drawn(self) -> Schema:
        """The schema of the columns that are drawn."""
        derived = {rule.follows for rule in self.rules if rule.form != "<="}
        fields = tuple(field for field in self.schema if field.name not in derived)
        return dataclasses.replace(self.schema, fields=fields, rules=())

    def settled(self, drawn: Schema) -> Schema:
        """The whole schema, with what was settled of the columns that are drawn."""
        known = {field.name: field for field in drawn}
        fields = tuple(known.get(field.name, field) for field in self.schema)
        return dataclasses.replace(self.schema, fields=fields)

    def complete(self, table: pa.Table, codec: Codec) -> pa.Table:
        """Rows of all columns that obey the rules, from drawn ones.

        Raises
        ------
        SfumatoError
            If a row breaks a rule, which is a defect.
        """
        if not self.rules:
            return table
        bound = {name for rule in self.rules for name in rule.columns}
        columns = {column.field.name: column for column in codec.columns if column.field.name in bound}
        cells = {name: cells_of_column(table.column(name), column.field) for name, column in columns.items()}
        orders = [rule for rule in self.rules if rule.form == "<="]
        for _ in range(_ROUNDS):
            changed = [_exchange(rule, columns, cells) for rule in orders]
            if not any(changed):
                break
        arrays = {name: table.column(name) for name in table.column_names}
        for name in {name for rule in orders for name in rule.columns}:
            column = columns[name]
            arrays[name] = write_numbers(
                cells[name].values, cells[name].absent, column.field, table.schema.field(name).type, column.gap
            )
        for rule in derivation_order([rule for rule in self.rules if rule.form != "<="]):
            field = self.schema[rule.follows]
            period = min((unit for name in rule.givens if (unit := cells[name].unit)), default=None)
            cells[rule.follows] = made = _derive(rule, cells, field, period)
            arrays[rule.follows] = write_numbers(made.values, made.absent, field, declared_type(field))
        for rule in self.rules:
            if broken_rows(rule, cells).any():
                raise SfumatoError(f"{len(self.rules)} rules could not be kept; leave them out with --no-rules")
        return pa.table({field.name: arrays[field.name] for field in self.schema.encoded})


def _exchange(rule: Rule, columns: dict[str, EncodedColumn], cells: dict[str, Cells]) -> bool:
    """Exchange two numbers where they are in the wrong order, to the nearest declared values; whether any were."""
    broken = broken_rows(rule, cells)
    if not broken.any():
        return False
    first, second = (cells[name] for name in rule.columns)
    least, most = np.minimum(first.values, second.values), np.maximum(first.values, second.values)
    for name, values, own, rounded in (
        (rule.columns[0], least, first, np.floor),
        (rule.columns[1], most, second, np.ceil),
    ):
        grid = columns[name].grid
        assert grid is not None
        places = grid.to_places(values)
        nearest: Floats = grid.to_numbers(places if grid.step is None else rounded(np.round(places, 6)))
        cells[name] = Cells(np.where(broken, nearest, own.values), own.absent, own.unit)
    return True


def _derive(rule: Rule, cells: Mapping[str, Cells], field: Field, period: int | None) -> Cells:
    """Cells of the column that follows from others."""
    if rule.form == "=":
        return cells[rule.givens[0]]
    first, second = (cells[name] for name in rule.givens)
    absent = first.absent | second.absent
    values = sum_of(rule, first, second, period)
    decimals = decimals_of_field(field)
    values = values if decimals is None or decimals > _MOST_DECIMALS else np.round(values, decimals)
    return Cells(np.where(absent, 0.0, values) + 0.0, absent)
