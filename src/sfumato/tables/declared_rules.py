"""Rules between columns that rows are made to obey by what is declared alone, without a look at any record."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.core.arrays import Floats
from sfumato.core.errors import PrivacyRefusal, SchemaError, SfumatoError
from sfumato.tables.cells import declared_type, write_numbers
from sfumato.tables.codec import Codec, EncodedColumn
from sfumato.tables.field import Kind
from sfumato.tables.kept_rules import check_rules, derivation_order
from sfumato.tables.rules import Cells, Rule, broken_rows, cells_of_column, decimals_of_field, rules_within, sum_of
from sfumato.tables.schema import Schema

__all__ = ["DeclaredRules"]

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
            cells[rule.follows] = made = _derive(rule, cells, self.schema)
            field = self.schema[rule.follows]
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


def _derive(rule: Rule, cells: dict[str, Cells], schema: Schema) -> Cells:
    """Cells of the column that follows from others."""
    if rule.form == "=":
        return cells[rule.givens[0]]
    first, second = (cells[name] for name in rule.givens)
    absent = first.absent | second.absent
    period = None if first.unit is None or second.unit is None else min(first.unit, second.unit)
    values = sum_of(rule, first, second, period)
    decimals = decimals_of_field(schema[rule.follows])
    values = values if decimals is None else np.round(values, decimals)
    return Cells(np.where(absent, 0.0, values) + 0.0, absent)
