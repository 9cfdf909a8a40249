"""Persons of a table: who each row is about, which column seems to say it, and how many people a row stands for."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import OptionError, SchemaError
from sfumato.core.facts import WeightsScaled
from sfumato.tables.cells import absent_cells, is_text, numbers_of_cells, plain, read_numbers, write_numbers
from sfumato.tables.codec import Codec
from sfumato.tables.contact import FREE_TEXT, is_named_id, is_named_like_id, private_text
from sfumato.tables.evidence import least_evidence
from sfumato.tables.field import Field
from sfumato.tables.rules import rules_within
from sfumato.tables.schema import Kind, Role, Schema
from sfumato.tables.tails import Tail

__all__ = [
    "Proposal",
    "check_weight_cells",
    "check_weights",
    "persons_of_table",
    "propose_person",
    "refuse_weight",
    "scale_weights",
    "scaled_to",
]

_LEAST = 20  # values that both a key of persons and what never changes with it have more of
_CHANCE = 1e-6  # that as many repeated rows agree although nobody is in them twice
_SERIAL = 200  # persons who were numbered one by one, and not years or weeks
_DENSE = 0.9  # of the numbers from the least to the greatest that persons have who were numbered one by one
_DOUBT = 10  # rows that agree, for each key within which a value changes
_FIRST = 2_000  # rows that tell most columns apart
_CALLED = re.compile(
    r"^((user|customer|client|patient|person|employee|member|subject|student|respondent|participant|household)(s|code)?"
    r"|idcode|(p|h|hh|case|pat|resp)id)$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Proposal:
    """A column that seems to say who each row is about."""

    column: str
    persons: int
    rows: int
    constant: tuple[str, ...]  # columns that never change within a value of it

    def __str__(self) -> str:
        never = "never changes" if len(self.constant) == 1 else f"and {len(self.constant) - 1} more never change"
        return f"{self.persons} values in {self.rows} rows, within which {self.constant[0]!r} {never}"


def propose_person(table: pa.Table, schema: Schema) -> Proposal | None:
    """The column that seems to say who each row is about; None where every row seems to be a person of its own.

    It holds more than 20 texts, or whole numbers that are named like an identifier or of which hardly one is left out
    from the least to the greatest, as persons are numbered. Some stand in several rows, and within each another column
    never changes, which chance would hardly do: one of more than 20 values, or any where the first is named or numbered
    so. Free text says nobody, and what follows from a number by its size, as a class of ages does, says nothing. Of
    several the one with most such columns.

    Examples
    --------
    >>> visits = pa.table({"who": [f"p{i % 40}" for i in range(120)], "born": [1950 + i % 40 for i in range(120)]})
    >>> print(propose_person(visits, Schema.infer(visits)))
    40 values in 120 rows, within which 'born' never changes
    """
    named = [field for field in schema if field.kind in (Kind.NOMINAL, Kind.INTEGER) and field.format is None]
    coded = {field.name: _codes(table.column(field.name), field.missing) for field in schema if named}
    coded = {name: codes for name, codes in coded.items() if codes.max(initial=0) > 0}
    found = []
    for field in named:  # durations are nobody
        codes = coded.get(field.name, np.empty(0, dtype=np.int64))
        if codes.max(initial=0) < _LEAST or codes.max() + 1 == (codes >= 0).sum():
            continue
        if _is_free_text(table.column(field.name), field, codes):
            continue
        constant = _constants(table, field, coded)
        if constant:
            found.append(Proposal(field.name, int(codes.max()) + 1, table.num_rows, constant))
    return max(found, key=lambda each: len(each.constant), default=None)


def _is_free_text(column: pa.ChunkedArray, field: Field, codes: Ints) -> bool:
    array = plain(column)
    if not is_text(array.type) or field.kind is not Kind.NOMINAL:
        return False
    return private_text(pc.unique(array).drop_null(), int((codes >= 0).sum()), field.name) == FREE_TEXT


def _constants(table: pa.Table, field: Field, coded: dict[str, Ints]) -> tuple[str, ...]:
    """Columns that never change within a value of this one, and say that it is a person."""
    spare = least_evidence(int(coded[field.name].max()) + 1) - 1
    codes, numbers, named = coded[field.name], None, is_named_id(field.name) or bool(_CALLED.search(field.name))
    if field.kind is Kind.INTEGER:
        numbers = _first_numbers(table.column(field.name), field, codes)
        named = named or _is_dense(numbers, spare) or is_named_like_id(field.name)
        if not named and field.role is not Role.IDENTIFIER:
            return ()
    return tuple(
        name
        for name, other in coded.items()
        if name != field.name
        and (named or other.max() >= _LEAST)
        and _fixes(codes, other, spare)
        and (numbers is None or not _follows(codes, numbers, other, spare))
    )


def _first_numbers(column: pa.ChunkedArray, field: Field, codes: Ints) -> Floats:
    """The whole number that each code of a column stands for; NaN for one that stands for none."""
    rows = pa.array(np.unique(codes, return_index=True)[1][int(codes.min() < 0) :])
    return read_numbers(column.take(rows), field)[0]


def _is_dense(numbers: Floats, spare: int) -> bool:
    """Whether hardly a number is left out from the least to the greatest, but for so many at the ends."""
    known = np.sort(numbers[~np.isnan(numbers)])
    if len(known) <= max(_SERIAL, spare):
        return False
    return bool(((len(known) - spare) / (known[len(known) - 1 - spare :] - known[: spare + 1] + 1)).max() >= _DENSE)


def _follows(keys: Ints, numbers: Floats, values: Ints, spare: int) -> bool:
    """Whether values stand together where numbers are in order, but for a few, as what is reckoned from one does."""
    held, first = np.unique(keys, return_index=True)
    along = values[first[int(held[0] < 0) :]][np.argsort(numbers)]
    runs, kinds = 1 + int((np.diff(along) != 0).sum()), len(np.unique(along))
    return 2 * runs <= kinds + len(along) or kinds >= len(along) - spare  # which tells nothing


def _codes(column: pa.ChunkedArray, missing: tuple[str, ...]) -> Ints:
    """Values of a column as numbers from 0; -1 where a cell is missing."""
    array = plain(column)
    codes = pc.dictionary_encode(array, null_encoding="mask").indices.fill_null(-1)
    numbers = np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64).copy()
    numbers[absent_cells(array, missing)] = -1
    return np.unique(numbers, return_inverse=True)[1] - int((numbers < 0).any())


def _fixes(keys: Ints, values: Ints, spare: int) -> bool:
    """Whether all rows of a key have one value, missing being one too, but for a few keys, and that is no chance."""
    there = keys >= 0
    for part in (slice(0, _FIRST), slice(None)):
        some, held = keys[part][there[part]], values[part][there[part]]
        pairs = np.unique(some * (int(values.max()) + 2) + held + 1)
        repeated = np.unique(some, return_counts=True)[1]
        changing = int((np.unique(pairs // (int(values.max()) + 2), return_counts=True)[1] > 1).sum())
        if changing > spare:
            return False
    if changing > int((repeated > 1).sum()) // 10:
        return False
    shares = np.bincount(held + 1) / len(held)
    alike = float(shares @ shares)
    agreeing = len(some) - len(pairs) - changing * _DOUBT
    return agreeing * math.log(alike) < math.log(_CHANCE)


def persons_of_table(table: pa.Table, schema: Schema) -> Ints | None:
    """Person of each row as a number from 0; None where the schema has no person column, or the table lacks it.

    Raises
    ------
    SchemaError
        Where a row does not say whom it is about.
    """
    field = next((field for field in schema if field.role is Role.PERSON), None)
    if field is None or field.name not in table.column_names:
        return None
    array = plain(table.column(field.name))
    absent = int(absent_cells(array, field.missing).sum())
    if absent:
        raise SchemaError(
            f"column {field.name!r} says who a row is about, and {absent} of its cells are missing; fill them in or "
            "leave those rows out"
        )
    return np.asarray(pc.dictionary_encode(array).indices.to_numpy(zero_copy_only=False), dtype=np.int64)


_ROUNDS = 50
_FINE = 1e-6  # of the mean weight: the step of weights that have none


def check_weights(table: pa.Table, schema: Schema) -> None:
    """Refuse weights that cannot be scaled: no numbers above 0, missing, coarsened, or in a rule.

    Raises
    ------
    SchemaError
        With the number of cells.
    """
    check_weight_cells(table, schema)
    field = schema.weight
    if field is None:
        return
    if field.coarsened:
        raise SchemaError(f"the weight {field.name!r} is coarsened, so that it cannot be scaled; leave one of them out")
    for rule in rules_within(schema):
        if field.name in rule.columns:
            raise SchemaError(
                f"the weight {field.name!r} is scaled and stands in the rule '{rule}'; leave the rule out"
            )


def check_weight_cells(table: pa.Table, schema: Schema) -> None:
    """Refuse weights that are no numbers above 0, or missing.

    Raises
    ------
    SchemaError
        With the number of cells.
    """
    field = schema.weight
    if field is None:
        return
    if field.kind not in (Kind.INTEGER, Kind.CONTINUOUS):
        raise SchemaError(
            f"the weight {field.name!r} is {field.kind.value}; a weight is a column of numbers, so name another, or "
            "none"
        )
    numbers, absent = numbers_of_cells(table.column(field.name), field)
    if absent.any():
        raise SchemaError(f"column {field.name!r} lacks {int(absent.sum())} weights; fill them, or drop these rows")
    strange = int((numbers <= 0).sum())
    if strange:
        raise SchemaError(f"column {field.name!r} holds {strange} weights that are not above 0; drop these rows")


def refuse_weight(schema: Schema, where: str) -> None:
    """Refuse a weight where it would not be scaled."""
    if schema.weight is not None:
        raise OptionError(
            f"the weight {schema.weight.name!r} is scaled once all rows are drawn, which {where} cannot; give it "
            "another role"
        )


def scaled_to(weights: Floats, total: float, step: float, low: float, high: float) -> Floats | None:
    """Weights between two bounds, multiplied by one number and rounded to a step, so that they add up to a total.

    Those that reach a bound stay there, and the others are multiplied by more; None where no such weights are found.

    Examples
    --------
    >>> scaled_to(np.array([1.0, 2.0, 3.0]), 12.0, 0.5, 0.5, 100.0).tolist()
    [2.0, 4.0, 6.0]
    """
    scaled = np.maximum(weights, step)
    for _ in range(_ROUNDS):
        free = (scaled > low) & (scaled < high)
        held = scaled[~free].sum()
        if not free.any() or total <= held:
            free, held = np.ones(len(scaled), dtype=np.bool_), 0.0
        before = scaled[free].sum()
        scaled = np.where(free, scaled * ((total - held) / before), scaled)
        scaled = np.clip(scaled, low, high)
        if abs(scaled.sum() - total) <= step:
            break
    places = np.floor(scaled / step + 1e-9)
    short = int(np.rint(total / step - places.sum()))
    if short < 0 or short > len(places):
        return None
    order = np.argsort(places - scaled / step, kind="stable")
    room = order[(places[order] + 1) * step <= high * (1 + 1e-12)]
    places[room[:short]] += 1
    rounded = np.maximum(places, np.ceil(low / step - 1e-9)) * step
    return rounded if abs(rounded.sum() - total) <= step * (1 + 1e-6) + 1e-9 * total else None


def scale_weights(
    released: pa.Table, original: pa.Table, codec: Codec, tail: Tail | None = None
) -> tuple[pa.Table, WeightsScaled]:
    """Released rows whose weights add up to those of the original, and the fact that says so.

    If the tails of the weights are coded, they add up to the coded ones, so that one large weight does not show.

    Raises
    ------
    OptionError
        Where declared bounds leave no room for that.
    """
    field = codec.schema.weight
    assert field is not None
    column = next(each for each in codec.columns if each.field.name == field.name)
    assert column.grid is not None
    numbers = codec.numbers(original, field.name)[0]
    if tail is not None:
        numbers = np.where(tail.changes(numbers), tail.replaced(numbers, np.full(len(numbers), 0.5)), numbers)
    total = float(numbers.sum())
    weights, absent = codec.numbers(released, field.name, unseen="mean")
    step = float(field.domain.step) if isinstance(field.domain.step, int | float) else column.grid.step
    step = step or float(f"{_FINE * total / len(weights):.0e}")
    declared = field.domain.declared
    low = max(step, column.grid.low) if declared else step
    high = column.grid.high if declared else np.inf
    if tail is not None:
        high = min(high, tail.bounds[1] * max(1.0, original.num_rows / released.num_rows))
    scaled = scaled_to(weights, total, step, low, high)
    if scaled is None:
        raise OptionError(
            f"the declared bounds of the weight {field.name!r} leave {len(weights)} rows no way to its total; "
            "widen them"
        )
    decimals = max(0, int(np.ceil(-np.log10(step) - 1e-9)) + 2)
    scaled = np.round(scaled, decimals)
    kind = released.schema.field(field.name).type
    kind = pa.int64() if pa.types.is_integer(kind) else kind
    cells = write_numbers(scaled, absent, field, kind)
    place = released.column_names.index(field.name)
    fact = WeightsScaled(field.name, float(np.round(scaled.sum(), 6)), step)
    return released.set_column(place, field.name, cells), fact
