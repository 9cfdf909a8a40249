"""Persons of a table: the person of each row, and survey weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import OptionError, SchemaError
from sfumato.tables.cells import absent_cells, numbers_of_cells, plain, write_numbers
from sfumato.tables.codec import Codec
from sfumato.tables.facts import WeightsScaled
from sfumato.tables.rules import rules_within
from sfumato.tables.schema import Kind, Role, Schema
from sfumato.tables.tails import Tail

__all__ = [
    "RowsByPerson",
    "check_weight_cells",
    "check_weights",
    "hold_out",
    "persons_of_table",
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
