"""The engine for a method whose every output but noisy counts is independent of the records.

It finds nothing in the table: no kinds, bounds, categories, rules, rare values or number of rows. What the ordinary
path would find must be declared, and an option that rests on the data is refused.
"""

from __future__ import annotations

import dataclasses
from time import perf_counter

import pyarrow as pa

from sfumato.core.errors import OptionError
from sfumato.core.facts import ColumnsDropped, DatesCoarsened, Drawn, Fact
from sfumato.core.records import RowRequest
from sfumato.engines.outcome import Comparison, Outcome
from sfumato.engines.plan import Plan
from sfumato.methods.private.model import Model
from sfumato.methods.private.stored import MODEL_FILE, StoredModel
from sfumato.tables.codec import Codec
from sfumato.tables.frames import to_arrow
from sfumato.tables.schema import Role, Schema

__all__ = ["refuse_observed", "run_private"]

_REFUSED = ("level", "strata", "rare", "tails", "where", "keep_persons", "memory")
_ROLES = (Role.PERSON, Role.WEIGHT, Role.LEVEL)


def refuse_observed(plan: Plan) -> None:
    """Refuse what would let something leave that was found in the data."""
    method, options, schema = plan.mechanism.method, plan.options, plan.schema
    for name in _REFUSED:
        if getattr(options, name) not in (None, False):
            raise OptionError(f"{method!r} does not support --{name.replace('_', '-')}; leave it out")
    for field in schema:
        if field.role in _ROLES:
            raise OptionError(f"{method!r} has no use for column {field.name!r} as {field.role.value}; drop the column")
        if field.coarsened or field.repair:
            raise OptionError(f"{method!r} neither coarsens nor repairs column {field.name!r}; do so before")
    if schema.rules and not options.no_rules:
        raise OptionError(f"{method!r} keeps no rules between columns; remove them from the schema, or add --no-rules")


def run_private(arrow: pa.Table, plan: Plan, *, native: bool = False, report: bool = True) -> Outcome:
    """Rows drawn from noisy counts of a table."""
    refuse_observed(plan)
    arrow = _with_plain_types(arrow)
    codec = Codec.declared(plan.schema, {name: arrow.schema.field(name).type for name in arrow.column_names})
    arrow, outside = _hold_out(arrow, plan)
    records = codec.encode(arrow.select(codec.schema.names), unseen="nearest")
    wanted = None if plan.options.rows is None else RowRequest(plan.options.rows)
    begin = perf_counter()
    made = plan.mechanism.sanitize(
        dataclasses.replace(records, wanted=wanted), rng=plan.randomness.generator("sanitize")
    )
    seconds = perf_counter() - begin
    released = codec.decode(made.records.coordinates, native=native)
    assert isinstance(made.model, Model)
    types = tuple(str(column.kind) for column in codec.columns)
    model = StoredModel(codec.schema.public_part(), types, made.model, plan.randomness.mode)
    names = [field.name for field in codec.schema.encoded]
    original = codec.decode(records.coordinates)  # the owner compares with what the domains let be seen
    return Outcome(
        recipe=plan.recipe(codec.schema),
        table=released,
        rows_in=None,
        rows_out=released.num_rows,
        schema=codec.schema,
        facts=(*_facts(codec.schema, plan), *made.facts),
        comparison=Comparison(
            original,
            codec.decode(made.records.coordinates) if native else released,
            codec,
            records,
            None
            if outside is None
            else codec.decode(codec.encode(outside.select(names), unseen="nearest").coordinates),
            _notes(codec.misfits(arrow)) if report else (),
        ),
        workings=made.workings,
        public_texts={MODEL_FILE: model.to_json()},
        seconds=seconds,
    )


def _with_plain_types(arrow: pa.Table) -> pa.Table:
    """The table in types that a name alone describes: a dictionary lists what the data hold."""
    return arrow.cast(pa.schema([field.with_type(_plain_type(field.type)) for field in arrow.schema]))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_decimal(kind):
        return pa.float64()
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind


def _hold_out(arrow: pa.Table, plan: Plan) -> tuple[pa.Table, pa.Table | None]:
    """Rows to measure and rows kept out: each is kept out by a coin of its own, so that no row decides on another."""
    holdout = plan.options.holdout
    if holdout is None:
        return arrow, None
    if not isinstance(holdout, float):
        return arrow, to_arrow(holdout)[0]
    if not 0.0 < holdout < 1.0:
        raise OptionError("the share of rows to hold out must lie between 0 and 1; try 0.2")
    out = plan.randomness.generator("holdout").random(arrow.num_rows) < holdout
    return arrow.filter(pa.array(~out)), arrow.filter(pa.array(out))


def _facts(schema: Schema, plan: Plan) -> tuple[Fact, ...]:
    randomness = plan.randomness
    dropped = tuple(field.name for field in schema if field.role is Role.IDENTIFIER)
    monthly = (DatesCoarsened(schema.monthly),) if schema.monthly else ()
    return (Drawn(randomness.mode.value, randomness.algorithm), ColumnsDropped(dropped, ()), *monthly)


def _notes(misfits: dict[str, int]) -> tuple[str, ...]:
    """How many cells lay outside their domains, for the owner alone."""
    if not misfits:
        return ()
    cells, columns = sum(misfits.values()), len(misfits)
    return (f"{cells} cells in {columns} columns lay outside the declared domains: clipped, or taken as missing.",)
