"""The engine for a table that fits in memory: any mechanism, all rows at once."""

from __future__ import annotations

import dataclasses
from time import perf_counter

import pyarrow as pa

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import ColumnRulesKept, Fact
from sfumato.core.records import Records
from sfumato.engines.outcome import Comparison, Outcome, bounds_kept
from sfumato.engines.plan import Plan, Prepared, prepare
from sfumato.mechanisms.protocol import Workings
from sfumato.tables.codec import Codec
from sfumato.tables.kept_rules import KeptRules, keep_rules
from sfumato.tables.moved_columns import free_fields
from sfumato.tables.schema import Schema

__all__ = ["run_in_memory"]


def run_in_memory(arrow: pa.Table, plan: Plan, *, native: bool = False) -> Outcome:
    """Sanitize a table; ``native`` writes numbers and dates that came as text in types of their own."""
    job = prepare(arrow, plan)
    kept = _rules(job, plan)
    codec, seen = (job.codec, job.records) if kept is None else _seen(kept, job, plan)
    begin = perf_counter()
    sanitized = plan.mechanism.sanitize(seen, rng=plan.randomness.generator("sanitize"))
    seconds = perf_counter() - begin
    records, schema = sanitized.records, _with_rules(job, plan, kept)
    if kept is None:
        released = codec.decode(
            records.values, native=native, moved=records.moved, grids=records.grids, unbounded=records.unbounded
        )
    else:
        drawn = codec.decode(records.values)
        released = kept.whole(drawn, native=codec.decode(records.values, native=True) if native else None)
    job = _in_groups(job, sanitized.workings)
    return Outcome(
        recipe=plan.recipe(dataclasses.replace(job.told, rules=schema.rules)),
        table=_beside(released, job, sanitized.workings),
        rows_in=job.original.num_rows,
        rows_out=released.num_rows,
        schema=free_fields(schema, records.moved, records.grids),
        facts=(*job.facts, *sanitized.facts, *bounds_kept(schema, records.unbounded), *_rules_kept(kept)),
        workings=sanitized.workings,
        comparison=Comparison(job.original, released, job.codec, job.records, job.outside),
        seconds=seconds,
    )


def _crowd(job: Prepared, plan: Plan) -> int:
    return max(int(job.records.levels.max(initial=0)), plan.mechanism.traits.floor or 2)


def _rules(job: Prepared, plan: Plan) -> KeptRules | None:
    """Rules that rows made anew are to obey; rows that descend from others obey what their numbers let them."""
    if not plan.mechanism.traits.synthetic or not job.codec.schema.rules:
        return None
    return keep_rules(
        job.original,
        job.codec,
        crowd=_crowd(job, plan),
        found=plan.found_rules,
        persons=job.records.persons,
    )


def _seen(kept: KeptRules, job: Prepared, plan: Plan) -> tuple[Codec, Records]:
    """What a mechanism sees of rows that obey rules, and how that is read."""
    codec = Codec.fit(kept.table, kept.schema, crowd=_crowd(job, plan), persons=job.records.persons)
    records = codec.encode(kept.table, levels=job.records.levels, strata=job.records.strata)
    return codec, dataclasses.replace(records, persons=job.records.persons)


def _with_rules(job: Prepared, plan: Plan, kept: KeptRules | None) -> Schema:
    """Schema with the rules that were kept; of methods that keep none, with those that it had."""
    if not plan.mechanism.traits.synthetic:
        return job.codec.schema
    return dataclasses.replace(job.codec.schema, rules=() if kept is None else tuple(map(str, kept.rules)))


def _rules_kept(kept: KeptRules | None) -> tuple[Fact, ...]:
    return () if kept is None else (ColumnRulesKept(tuple(map(str, kept.rules)), kept.rare_pairs),)


def _in_groups(job: Prepared, workings: Workings | None) -> Prepared:
    """What the release was made from, without the rows that no group could take."""
    if workings is None or workings.kept is None:
        return job
    original, records = job.original.take(pa.array(workings.kept)), job.records.take(workings.kept)
    return dataclasses.replace(job, original=original, records=records)


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
