"""Persons of a table: the person of each row, the column that seems to identify them, and survey weights."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import OptionError, SchemaError
from sfumato.tables.cells import absent_cells, is_text, numbers_of_cells, plain, read_numbers, write_numbers
from sfumato.tables.codec import Codec
from sfumato.tables.contact import (
    FREE_TEXT,
    NUMBER_WORDS,
    is_named_id,
    is_named_like_id,
    is_named_person,
    least_evidence,
    private_text,
)
from sfumato.tables.facts import WeightsScaled
from sfumato.tables.field import Field
from sfumato.tables.rules import rules_within
from sfumato.tables.schema import Kind, Role, Schema
from sfumato.tables.tails import Tail

__all__ = [
    "Proposal",
    "RowsByPerson",
    "check_weight_cells",
    "check_weights",
    "hold_out",
    "persons_of_table",
    "propose_person",
    "refuse_weight",
    "scale_to_total",
    "scale_weights",
]


def persons_of_table(table: pa.Table, schema: Schema) -> Ints | None:
    """Person of each row as a number from 0; None if the schema or the table has no person column.

    Raises
    ------
    SchemaError
        If a row does not say whom it is about.
    """
    field = next((field for field in schema if field.role is Role.PERSON), None)
    if field is None or field.name not in table.column_names:
        return None
    array = plain(table.column(field.name))
    absent = int(absent_cells(array, field.missing).sum())
    if absent:
        raise SchemaError(
            f"column {field.name!r} identifies persons, and {absent} of its cells are missing; fill them in or "
            "leave those rows out"
        )
    return np.asarray(pc.dictionary_encode(array).indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def hold_out(units: Ints, share: float, rng: np.random.Generator) -> Bools:
    """Rows of a random share of the units, which are persons or rows, numbered from 0; at least one is held out.

    Examples
    --------
    >>> hold_out(np.array([0, 0, 1, 1, 2]), 0.3, np.random.default_rng(1)).tolist()
    [True, True, False, False, False]
    """
    if not 0.0 < share < 1.0:
        raise OptionError("the share of the hold-out set must lie between 0 and 1; try 0.2")
    drawn = rng.permutation(int(units.max(initial=-1)) + 1)
    return np.asarray(np.isin(units, drawn[: max(1, round(share * len(drawn)))]))


@dataclass(frozen=True, eq=False, repr=False)
class RowsByPerson:
    """Rows of a table by person."""

    table: pa.Table
    units: Ints

    @classmethod
    def of(cls, table: pa.Table, schema: Schema) -> RowsByPerson:
        """Persons of the rows by the schema's person column; without one each row is a person."""
        persons = persons_of_table(table, schema)
        return cls(table, np.arange(table.num_rows) if persons is None else np.unique(persons, return_inverse=True)[1])

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.units.max(initial=-1)) + 1

    def some(self, most: int, rng: np.random.Generator) -> RowsByPerson:
        """A random sample of them of limited size, with all their rows."""
        if self.count <= most:
            return self
        return self._of(np.isin(self.units, rng.permutation(self.count)[:most]))

    def parted(self, share: float, rng: np.random.Generator) -> tuple[RowsByPerson, RowsByPerson]:
        """Those who stay, and a share who are held out."""
        out = hold_out(self.units, share, rng)
        return self._of(~out), self._of(out)

    def _of(self, kept: Bools) -> RowsByPerson:
        rows = self.table.take(pa.array(np.flatnonzero(kept)))
        return RowsByPerson(rows, np.unique(self.units[kept], return_inverse=True)[1])


_ROUNDS = 50
_FINE = 1e-6  # of the mean weight: the step of weights that have none


def check_weights(table: pa.Table, schema: Schema) -> None:
    """Refuse weights that cannot be scaled: not positive, missing, generalized, or part of a rule.

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
    """Refuse weights that are not positive, or missing.

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
    """Refuse a weight column for methods that would not scale it."""
    if schema.weight is not None:
        raise OptionError(
            f"the weight {schema.weight.name!r} is scaled once all rows are drawn, which {where} cannot; give it "
            "another role"
        )


def scale_to_total(weights: Floats, total: float, step: float, low: float, high: float) -> Floats | None:
    """Weights multiplied by one factor, rounded to a step and kept in bounds, so that they sum to a total.

    Those that reach a bound stay there, and the others are multiplied by more; None if no such weights are found.

    Examples
    --------
    >>> scale_to_total(np.array([1.0, 2.0, 3.0]), 12.0, 0.5, 0.5, 100.0).tolist()
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
    """Released rows whose weights sum to those of the original, and the fact that states it.

    If the tails of the weights are coded, they add up to the coded ones, so that one large weight does not show.

    Raises
    ------
    OptionError
        If declared bounds leave no room for that.
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
    scaled = scale_to_total(weights, total, step, low, high)
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


_LEAST = 20  # values that both a key of persons and what never changes with it have more of
_CHANCE = 1e-6  # that as many repeated rows agree although nobody is in them twice
_SERIAL = 200  # persons who were numbered one by one, and not years or weeks
_DENSE = 0.9  # of the numbers from the least to the greatest that persons have who were numbered one by one
_DOUBT = 10  # rows that agree, for each key within which a value changes
_FIRST = 2_000  # rows that tell most columns apart
_SMALL = 5  # rows of the group of a typical row, of a column that is neither named nor the only sign of a person
_LARGE = 100  # rows of such a group beyond which no column is a person's unless it is named so
_SHAPED = 0.9  # of the values that hold a digit, of a column that is not named and looks like an identifier
_THING = re.compile(
    r"(^|[_\s.-]|haupt|neben)(diagnos[ei]s?|diagnosen|icd(10)?|atc|ops|drg|drug|medikament|wirkstoff|procedure|product|produkt"
    r"|item|article|artikel|sku|goods|ware|store|shop|filiale|branch|ward|station|abteilung|department|dept|post|plz|zip"
    r"|postleitzahl|city|town|ort|gemeinde|municipality|county|kreis|country|land|state|region|district|school|schule"
    r"|hospital|klinik|clinic|practice|praxis|device|sensor|room|raum|course|kurs|class|klasse|job|occupation|beruf"
    r"|industry|nace|isco|supplier|vendor|manufacturer|category|kategorie|type|typ)s?"
    rf"({NUMBER_WORDS}|[_\s.-]?(name|group|gruppe))?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Proposal:
    """A column that seems to identify persons."""

    column: str
    persons: int
    rows: int
    constant: tuple[str, ...]  # columns that never change within a value of it

    def __str__(self) -> str:
        never = "never changes" if len(self.constant) == 1 else f"and {len(self.constant) - 1} more never change"
        return f"{self.persons} values in {self.rows} rows, within which {self.constant[0]!r} {never}"


def propose_person(table: pa.Table, schema: Schema) -> Proposal | None:
    """The column that seems to identify persons; None if every row seems to be a person of its own.

    It holds more than 20 values that are named as persons or identifiers are, or look like identifiers: texts with
    digits, or whole numbers of which hardly one is left out from the least to the greatest. Some stand in several rows,
    and within each another column never changes, which chance would hardly do. A column that is not named so stands in
    groups of few rows, or two such columns do not follow from each other, as sex and year of birth do not, but the
    chapter and the name of a diagnosis do. Free text, diagnoses, postcodes and what is named as a thing say nobody, and
    what follows from a number by its size, as a class of ages does, says nothing. Of several the one that is named as
    persons are, then the one with most such columns.

    Examples
    --------
    >>> visits = pa.table({"who": [f"p{i % 40}" for i in range(120)], "born": [1950 + i % 40 for i in range(120)]})
    >>> print(propose_person(visits, Schema.infer(visits)))
    40 values in 120 rows, within which 'born' never changes
    """
    fields = [field for field in schema if field.kind in (Kind.NOMINAL, Kind.INTEGER) and field.format is None]
    coded = {field.name: _codes(table.column(field.name), field.missing) for field in schema if fields}
    coded = {name: codes for name, codes in coded.items() if codes.max(initial=0) > 0}
    found = []
    for field in fields:  # durations are nobody
        codes = coded.get(field.name, np.empty(0, dtype=np.int64))
        if codes.max(initial=0) < _LEAST or codes.max() + 1 == (codes >= 0).sum():
            continue
        named = is_named_person(field.name)
        if not named and (field.hierarchy is not None or _THING.search(field.name)):
            continue
        if _is_free_text(table.column(field.name), field, codes):
            continue
        constant = _determined_columns(table, field, coded, named=named)
        if constant:
            found.append((named, Proposal(field.name, int(codes.max()) + 1, table.num_rows, constant)))
    return max(found, key=lambda each: (each[0], len(each[1].constant)), default=(False, None))[1]


def _is_free_text(column: pa.ChunkedArray, field: Field, codes: Ints) -> bool:
    array = plain(column)
    if not is_text(array.type) or field.kind is not Kind.NOMINAL:
        return False
    return FREE_TEXT in private_text(pc.unique(array).drop_null(), int((codes >= 0).sum()), field.name)


def _determined_columns(table: pa.Table, field: Field, coded: dict[str, Ints], *, named: bool) -> tuple[str, ...]:
    """Columns that never change within a value of this column, and suggest that it is a person."""
    spare = least_evidence(int(coded[field.name].max()) + 1) - 1
    codes, numbers, column = coded[field.name], None, table.column(field.name)
    named, dense = named or is_named_id(field.name), False
    if field.kind is Kind.INTEGER:
        numbers = _first_numbers(column, field, codes)
        dense, named = _is_dense(numbers, spare), named or is_named_like_id(field.name)
        looks = named or dense or field.role is Role.IDENTIFIER
    else:
        looks = named or field.role is Role.IDENTIFIER or _has_digits(column, spare)
    typical = _typical_group(codes)
    if not looks or (not named and typical > _LARGE):
        return ()
    constant = tuple(
        name
        for name, other in coded.items()
        if name != field.name
        and _determines(codes, other, spare)
        and (numbers is None or not _is_monotone_in(codes, numbers, other, spare))
    )
    if named or (dense and typical <= _SMALL) or not _are_nested(codes, [coded[name] for name in constant], spare):
        return constant
    return tuple(name for name in constant if coded[name].max() >= _LEAST) if typical <= _SMALL else ()


def _has_digits(column: pa.ChunkedArray, spare: int) -> bool:
    """Whether nearly all texts of a column contain a digit."""
    array = plain(column)
    if not is_text(array.type):
        return True
    distinct = pc.unique(array).drop_null()
    without = len(distinct) - int(pc.match_substring_regex(distinct, r"\d").true_count)
    return without <= max(spare, (1.0 - _SHAPED) * len(distinct))


def _typical_group(codes: Ints) -> float:
    """Group size below which half of the rows lie."""
    sizes = np.bincount(codes[codes >= 0])
    return float(np.median(np.repeat(sizes, sizes)))


def _are_nested(keys: Ints, columns: Sequence[Ints], spare: int) -> bool:
    """Whether the columns that a key determines form a chain of dependencies, except for a few keys."""
    held, first = np.unique(keys, return_index=True)
    of_keys = [column[first[int(held[0] < 0) :]] + 1 for column in columns]
    return all(
        _inconsistent_keys(one, two) <= spare or _inconsistent_keys(two, one) <= spare
        for place, one in enumerate(of_keys)
        for two in of_keys[:place]
    )


def _inconsistent_keys(keys: Ints, values: Ints) -> int:
    """Keys whose value differs from the most frequent value of equal ``keys``."""
    width = int(values.max(initial=0)) + 1
    pairs, counts = np.unique(keys * width + values, return_counts=True)
    most = np.zeros(int(keys.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(most, pairs // width, counts)
    return len(keys) - int(most.sum())


def _first_numbers(column: pa.ChunkedArray, field: Field, codes: Ints) -> Floats:
    """The integer that each code of a column stands for; NaN if it stands for none."""
    rows = pa.array(np.unique(codes, return_index=True)[1][int(codes.min() < 0) :])
    return read_numbers(column.take(rows), field)[0]


def _is_dense(numbers: Floats, spare: int) -> bool:
    """Whether the numbers have hardly a gap from the least to the greatest, ``spare`` ones at the ends ignored."""
    known = np.sort(numbers[~np.isnan(numbers)])
    if len(known) <= max(_SERIAL, spare):
        return False
    return bool(((len(known) - spare) / (known[len(known) - 1 - spare :] - known[: spare + 1] + 1)).max() >= _DENSE)


def _is_monotone_in(keys: Ints, numbers: Floats, values: Ints, spare: int) -> bool:
    """Whether equal values are adjacent when sorted by number, as in columns derived from one."""
    held, first = np.unique(keys, return_index=True)
    along = values[first[int(held[0] < 0) :]][np.argsort(numbers)]
    runs, kinds = 1 + int((np.diff(along) != 0).sum()), len(np.unique(along))
    return 2 * runs <= kinds + len(along) or kinds >= len(along) - spare  # no evidence either way


def _codes(column: pa.ChunkedArray, missing: tuple[str, ...]) -> Ints:
    """Values of a column as numbers from 0; -1 for missing cells."""
    array = plain(column)
    codes = pc.dictionary_encode(array, null_encoding="mask").indices.fill_null(-1)
    numbers = np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64).copy()
    numbers[absent_cells(array, missing)] = -1
    return np.unique(numbers, return_inverse=True)[1] - int((numbers < 0).any())


def _determines(keys: Ints, values: Ints, spare: int) -> bool:
    """Whether all rows of a key share one value, except for a few keys, and more often than by chance."""
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
