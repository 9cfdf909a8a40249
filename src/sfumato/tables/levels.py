"""Privacy levels of records: from a column, one number for all, or rules over columns."""

from __future__ import annotations

import datetime
import operator
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Ints
from sfumato.core.errors import LevelError, OptionError
from sfumato.tables.cells import absent_cells, bound_to_number, numbers_of_cells, plain
from sfumato.tables.schema import Field, Kind, Role, Schema

__all__ = [
    "Condition",
    "LevelRule",
    "levels_of_table",
    "meets_all",
    "parse_conditions",
    "parse_epsilons",
    "parse_rules",
    "public_level",
]

_COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(
    r"^\s*(?:`(?P<quoted>[^`]+)`|(?P<plain>[^<>=!]+?))\s*(?P<op>==|!=|>=|<=|>|<)\s*(?P<value>.+?)\s*$"
)
_OUTSIDE_QUOTES = r"(?=(?:[^\"']*[\"'][^\"']*[\"'])*[^\"']*$)"


Condition = tuple[str, str, str]
"""Column, comparison and value, as in ``age > 60``."""


@dataclass(frozen=True)
class LevelRule:
    """Level of the records that meet all conditions."""

    conditions: tuple[Condition, ...]
    level: int


def parse_rules(text: str) -> tuple[LevelRule, ...]:
    """Read rules such as ``income > 100000: 12, sex == F and age < 30: 8, else: 5``.

    The first rule that a record meets gives its level; a missing cell meets none. Names with odd characters stand in
    backquotes, values with commas in quotes.

    Examples
    --------
    >>> parse_rules("income > 100000: 12, else: 5")[0]
    LevelRule(conditions=(('income', '>', '100000'),), level=12)
    """
    found = _parsed(text, r"\d{1,9}", "level")
    return tuple(LevelRule(conditions, int(level)) for conditions, level in found)


def parse_epsilons(text: str) -> tuple[tuple[tuple[Condition, ...], float], ...]:
    """Read rules such as ``age < 18: 0.5, else: 1``, by which people have different epsilons.

    Examples
    --------
    >>> parse_epsilons("age < 18: 0.5, else: 1")
    (((('age', '<', '18'),), 0.5), ((), 1.0))
    """
    found = _parsed(text, r"\d{1,4}(\.\d{1,6})?", "epsilon")
    return tuple((conditions, float(epsilon)) for conditions, epsilon in found)


def _parsed(text: str, number: str, what: str) -> list[tuple[tuple[Condition, ...], str]]:
    rules: list[tuple[tuple[Condition, ...], str]] = []
    parts = re.split("," + _OUTSIDE_QUOTES, text)
    for place, part in enumerate(parts, 1):
        condition, colon, value = part.rpartition(":")
        if not colon or not re.fullmatch(rf"\s*{number}\s*", value):
            raise LevelError(
                f"{what} rule number {place} is not of the form 'column > value: {what}' or 'else: {what}'"
            )
        if condition.strip().lower() == "else":
            if place != len(parts):
                raise LevelError(f"the {what} rule 'else' must be the last one")
            rules.append(((), value.strip()))
            continue
        conditions = parse_conditions(condition)
        if not conditions:
            raise LevelError(f"{what} rule number {place} has no comparison; write 'column > value: {what}'")
        rules.append((conditions, value.strip()))
    return rules


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Read conditions such as ``sex == F and age < 30``; none if a part is not a comparison.

    Examples
    --------
    >>> parse_conditions("sex == F and age < 30")
    (('sex', '==', 'F'), ('age', '<', '30'))
    """
    matches = [_CONDITION.match(piece) for piece in re.split(r"\s+and\s+" + _OUTSIDE_QUOTES, text)]
    found = [
        (match["quoted"] or match["plain"], match["op"], match["value"].strip("\"'")) for match in matches if match
    ]
    return tuple(found) if len(found) == len(matches) else ()


def meets_all(conditions: tuple[Condition, ...], table: pa.Table, schema: Schema) -> Bools:
    """Rows that meet every condition; a missing cell meets none."""
    met = np.ones(table.num_rows, dtype=np.bool_)
    for name, comparison, value in conditions:
        met &= _meets(table.column(schema[name].name), schema[name], comparison, value)
    return met


PUBLIC_LEVELS = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
"""Levels that may be stated in a certificate."""

_ASKING = 10  # persons who ask for a level or a higher one before it is stated


def public_level(asked: Ints, persons: Ints | None, floor: int) -> int:
    """Highest of `PUBLIC_LEVELS` that ten persons request, or the floor; no single level shows in it.

    Examples
    --------
    >>> public_level(np.array([37] + [12] * 20), None, 5)
    10
    >>> public_level(np.array([37] + [0] * 20), None, 5)
    5
    """
    if persons is None:
        highest = asked
    else:
        highest = np.zeros(int(persons.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(highest, persons, asked)
    if len(highest) < _ASKING:
        return floor
    shared = int(np.partition(highest, len(highest) - _ASKING)[len(highest) - _ASKING])
    return max(floor, *(level for level in (0, *PUBLIC_LEVELS) if level <= shared))


def levels_of_table(
    spec: str | int | None, table: pa.Table, schema: Schema, *, allow_level_1: bool = False, among: int | None = None
) -> tuple[Ints, Schema]:
    """Level that each record requests, 0 if none, and the schema with the level column marked.

    ``spec`` is a column, a number for all, or rules; None takes the schema's level column, if it has one. Level 1,
    which is no protection, is asked for only if it is allowed. No level is higher than the number of records: those
    of the table, or one part in ``among`` of it.
    """
    if isinstance(spec, str) and spec not in schema.names:
        spec = int(spec.strip()) if re.fullmatch(r"[+-]?\d{1,9}", spec.strip()) else spec
    marked = next((field.name for field in schema if field.role is Role.LEVEL), None)
    column = spec if isinstance(spec, str) and spec in schema.names else marked if spec is None else None
    if column is not None:
        schema = schema.with_role(Role.LEVEL, column)
        levels = _levels_of_column(table.column(column), schema[column])
        source = f"column {column!r}: "
    elif spec is None:
        return np.zeros(table.num_rows, dtype=np.int64), schema
    elif isinstance(spec, int):
        levels, source = np.full(table.num_rows, spec, dtype=np.int64), ""
    elif ":" in spec:
        levels, source = _levels_of_rules(parse_rules(spec), table, schema), "level rules: "
    else:
        schema[spec]  # names the columns there are
    explicit, records = not isinstance(spec, str) or ":" not in spec, len(levels) if among is None else among
    _check_levels(levels, source, records, allow_level_1=allow_level_1, explicit=explicit)
    return levels, schema


def _check_levels(levels: Ints, source: str, records: int, *, allow_level_1: bool, explicit: bool) -> None:
    """Refuse levels below 2; of rules, only those that applied (0 means that none did)."""
    asked = levels if explicit else levels[levels != 0]
    below = int((asked < 1).sum())
    if below:
        raise LevelError(f"{source}{below} privacy levels are zero or negative; levels are whole numbers from 2")
    ones = int((asked == 1).sum())
    if ones and not allow_level_1:
        raise LevelError(
            f"{source}{ones} records have privacy level 1, which is no protection; raise them to at least 2, or, "
            "if the method allows it, add --allow-level-1"
        )
    huge = int((asked > records).sum())
    if huge:
        raise LevelError(
            f"{source}{huge} privacy levels are higher than the number of records, {records}; lower them or add "
            "more records"
        )


def _levels_of_column(cells: pa.ChunkedArray, field: Field) -> Ints:
    array = plain(cells)
    absent = absent_cells(array, field.missing)
    if absent.any():
        raise LevelError(f"column {field.name!r}: {int(absent.sum())} privacy levels are missing; fill them in")
    try:
        numbers = np.asarray(pc.cast(array, pa.float64()).to_numpy(zero_copy_only=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise LevelError(
            f"column {field.name!r}: some privacy levels are not numbers; levels are whole numbers"
        ) from None
    odd = int((~np.isfinite(numbers) | (numbers != np.rint(numbers))).sum())
    if odd:
        raise LevelError(f"column {field.name!r}: {odd} privacy levels are not whole numbers; round them up")
    return np.asarray(np.clip(numbers, -(2**31), 2**31), dtype=np.int64)


def _levels_of_rules(rules: tuple[LevelRule, ...], table: pa.Table, schema: Schema) -> Ints:
    levels = np.zeros(table.num_rows, dtype=np.int64)
    open_ = np.ones(table.num_rows, dtype=np.bool_)
    for rule in rules:
        met = open_ & meets_all(rule.conditions, table, schema)
        levels[met] = rule.level
        open_ &= ~met
    return levels


def _meets(cells: pa.ChunkedArray, field: Field, comparison: str, value: str) -> Bools:
    """Compare the cells of a column with a rule's value; a missing cell meets no condition."""
    compare = _COMPARE[comparison]
    if field.kind in (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL):
        if comparison not in ("==", "!="):
            raise LevelError(f"column {field.name!r} is {field.kind.value}: a rule can only use == and != on it")
        array = plain(cells)
        absent = absent_cells(array, field.missing)
        texts = np.array([str(cell) for cell in array.to_pylist()], dtype=object)
        return np.asarray(compare(texts, value), dtype=np.bool_) & ~absent
    numbers, absent = numbers_of_cells(cells, field)
    return np.asarray(compare(numbers, _rule_number(value, field)), dtype=np.bool_) & ~absent


def _rule_number(value: str, field: Field) -> float:
    bound: Any
    try:
        bound = datetime.datetime.fromisoformat(value) if field.kind is Kind.DATE else float(value)
        if field.kind is Kind.DATE and bound.tzinfo is not None:
            bound = bound.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):  # or a moment that no calendar has
        wanted = "a date such as 2020-01-31" if field.kind is Kind.DATE else "a number"
        raise OptionError(f"the rule on column {field.name!r} does not compare with {wanted}") from None
    return bound_to_number(bound, field)
