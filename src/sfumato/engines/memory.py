"""The engine for a table that fits in memory: any mechanism, all rows at once."""

from __future__ import annotations

from time import perf_counter

import pyarrow as pa

from sfumato.core.errors import PrivacyRefusal
from sfumato.engines.outcome import Comparison, Outcome, bounds_kept
from sfumato.engines.plan import Plan, Prepared, prepare
from sfumato.mechanisms.protocol import Workings
from sfumato.tables.moved_columns import free_fields

__all__ = ["run_in_memory"]


def run_in_memory(arrow: pa.Table, plan: Plan, *, native: bool = False) -> Outcome:
    """Sanitize a table; ``native`` writes numbers and dates that came as text in types of their own."""
    job = prepare(arrow, plan)
    begin = perf_counter()
    sanitized = plan.mechanism.sanitize(job.records, rng=plan.randomness.generator("sanitize"))
    seconds = perf_counter() - begin
    records, schema = sanitized.records, job.codec.schema
    released = job.codec.decode(
        records.values, native=native, moved=records.moved, grids=records.grids, unbounded=records.unbounded
    )
    return Outcome(
        recipe=plan.recipe(schema),
        table=_beside(released, job, sanitized.workings),
        rows_in=job.original.num_rows,
        rows_out=released.num_rows,
        schema=free_fields(schema, records.moved, records.grids),
        facts=(*job.facts, *sanitized.facts, *bounds_kept(schema, records.unbounded)),
        workings=sanitized.workings,
        comparison=Comparison(job.original, released, job.codec, job.records, job.outside),
        seconds=seconds,
    )


def _beside(released: pa.Table, job: Prepared, workings: Workings | None) -> pa.Table:
    """Released rows with the public columns of each one's original, in the order of the schema."""
    if job.public is None:
        return released
    if workings is None or workings.origin is None:
        raise PrivacyRefusal("public columns have no rows to stand beside; drop or sanitize them")
    passed = job.public.take(pa.array(workings.origin))
    for name in passed.column_names:
        released = released.append_column(name, passed.column(name))
    return released.select([field.name for field in job.codec.schema.released])
