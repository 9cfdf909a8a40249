"""The engine for a table that fits in memory: any mechanism, all rows at once."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import ColumnRulesKept, Fact
from sfumato.core.records import Records, Wanted
from sfumato.engines.columns import with_persons, with_persons_field
from sfumato.engines.measured import measured_part
from sfumato.engines.outcome import Comparison, Outcome, bounds_kept
from sfumato.engines.plan import Plan, Prepared, prepare
from sfumato.mechanisms.protocol import Workings
from sfumato.tables.codec import Codec
from sfumato.tables.kept_rules import KeptRules, keep_rules
from sfumato.tables.levels import meets_all, parse_conditions
from sfumato.tables.moved_columns import answered_fields, free_fields, write_answers
from sfumato.tables.persons import scale_weights
from sfumato.tables.schema import Role, Schema

__all__ = ["Made", "crowd_of", "make_rows", "run_in_memory"]


@dataclass(frozen=True, eq=False, repr=False)
class Made:
    """Rows that were made of a prepared table, as they leave and as they are compared, and how.

    ``job`` is what they were made from, without rows that no group could take; ``seen`` are the records in the
    coordinates that the mechanism had.
    """

    job: Prepared
    seen: Records
    table: pa.Table
    released: pa.Table
    records: Records
    schema: Schema
    facts: tuple[Fact, ...]
    workings: Workings | None
    rows_in: int
    seconds: float

    @property
    def leaving_schema(self) -> Schema:
        """Schema of the rows as they leave."""
        records = self.records
        return answered_fields(free_fields(self.schema, records.moved, records.grids), records.answers)

    def __repr__(self) -> str:
        return f"Made({self.released.num_rows} rows)"


def run_in_memory(arrow: pa.Table, plan: Plan, *, native: bool = False, report: bool = True) -> Outcome:
    """Sanitize a table; ``native`` writes numbers and dates that came as text in types of their own.

    Where it is to be measured, some neighbourhoods of a large table are kept to be compared with what they became.
    """
    made = make_rows(prepare(arrow, plan), plan, plan.randomness.generator("sanitize"), native=native)
    table, linked = with_persons(made.table, made.records, made.job.original, made.job.records.persons)
    compared = Comparison(
        made.job.original,
        made.released,
        made.job.codec,
        made.job.records,
        made.job.outside,
        _notes(made.workings, made.job, made.rows_in),
        linked=made.records.persons,
    )
    if report:
        compared = measured_part(compared, made.workings, plan.randomness.generator("measured"))
    return Outcome(
        recipe=plan.recipe(dataclasses.replace(made.job.told, rules=made.schema.rules)),
        table=table,
        rows_in=made.rows_in,
        rows_out=made.released.num_rows,
        schema=with_persons_field(made.schema) if linked else made.leaving_schema,
        facts=(*made.job.facts, *made.facts, *linked),
        workings=made.workings,
        texts={} if made.workings is None else made.workings.texts,
        comparison=compared,
        seconds=made.seconds,
    )


def make_rows(job: Prepared, plan: Plan, rng: np.random.Generator, *, native: bool = False) -> Made:
    """Rows that can be mined in place of those of a prepared table."""
    kept = _rules(job, plan)
    codec, seen = (job.codec, job.records) if kept is None else _seen(kept, job, plan)
    seen = _with_wanted(seen, job, plan, codec, kept)
    begin = perf_counter()
    sanitized = plan.mechanism.sanitize(seen, rng=rng)
    seconds = perf_counter() - begin
    if kept is not None and sanitized.workings is not None:  # people are compared in other coordinates
        sanitized = dataclasses.replace(
            sanitized, workings=dataclasses.replace(sanitized.workings, likelihood=None, regrown=None)
        )
    records, schema = sanitized.records, _with_rules(job, plan, kept)
    if kept is None:
        released = codec.decode(
            records.coordinates, native=native, moved=records.moved, grids=records.grids, unbounded=records.unbounded
        )
    else:
        drawn = codec.decode(records.coordinates)
        released = kept.whole(drawn, native=codec.decode(records.coordinates, native=True) if native else None)
    if seen.wanted is not None and seen.wanted.where:
        _check_where(released, job, plan)
    rows_in, job = _made_from(job, sanitized.workings)
    released, scaled = _scaled(released, job)
    return Made(
        job,
        seen,
        _beside(write_answers(released, records, job.codec.schema), job, sanitized.workings),
        released,
        records,
        schema,
        (*sanitized.facts, *bounds_kept(schema, records.unbounded), *_rules_kept(kept), *scaled),
        sanitized.workings,
        rows_in,
        seconds,
    )


def _with_wanted(seen: Records, job: Prepared, plan: Plan, codec: Codec, kept: KeptRules | None) -> Records:
    """Records with the rows that are wanted of them.

    Raises
    ------
    PrivacyRefusal
        Where fewer persons fulfil the rule than a cell must come from.
    """
    if plan.rows is None and plan.where is None:
        return seen
    rows = len(seen) if plan.rows is None else plan.rows
    if plan.where is None:
        return dataclasses.replace(seen, wanted=Wanted(rows))
    conditions = parse_conditions(plan.where)
    columns = tuple(dict.fromkeys(job.codec.schema[name].name for name, _, _ in conditions))
    gone = [name for name in columns if name not in job.original.column_names]
    if gone:
        raise OptionError(f"column {gone[0]!r} is not released, so no row can be chosen by it; leave it out of --where")
    met = meets_all(conditions, job.original, job.codec.schema)
    people = int(met.sum()) if seen.persons is None else len(np.unique(seen.persons[met]))
    least = max(crowd_of(job, plan), plan.mechanism.traits.floor or 2)
    if people < least:
        raise PrivacyRefusal(
            f"{people} persons fulfil the rule of --where and at least {least} must; take a wider rule"
        )
    drawn = {block.column for block in seen.layout} - (set() if kept is None else kept.placed)
    if not set(columns) <= drawn:
        made = next(name for name in columns if name not in drawn)
        raise OptionError(
            f"column {made!r} is made by a rule between columns; leave it out of --where or add --no-rules"
        )

    def meets(values: NDArray[np.float64]) -> NDArray[np.bool_]:
        return meets_all(conditions, codec.decode(values), job.codec.schema)

    return dataclasses.replace(seen, wanted=Wanted(rows, plan.where, columns, meets))


def _check_where(released: pa.Table, job: Prepared, plan: Plan) -> None:
    """Fail closed if a row does not fulfil the rule."""
    wrong = int((~meets_all(parse_conditions(plan.where or ""), released, job.codec.schema)).sum())
    if wrong:
        raise PrivacyRefusal(f"{wrong} rows do not fulfil the rule of --where; nothing is released. Please report this")


def _scaled(released: pa.Table, job: Prepared) -> tuple[pa.Table, tuple[Fact, ...]]:
    """Released rows whose weights, where there are some, add up to those of the rows they were made from."""
    if job.codec.schema.weight is None:
        return released, ()
    released, fact = scale_weights(released, job.original, job.codec)
    return released, (fact,)


def crowd_of(job: Prepared, plan: Plan) -> int:
    """Persons who must share whatever is shown of a prepared table."""
    return max(int(job.records.levels.max(initial=0)), job.records.highest, plan.holders or 2)


def _rules(job: Prepared, plan: Plan) -> KeptRules | None:
    """Rules that rows made anew are to obey; rows that descend from others obey what their numbers let them."""
    if not plan.mechanism.traits.synthetic or not job.codec.schema.rules:
        return None
    return keep_rules(
        job.original,
        job.codec,
        crowd=crowd_of(job, plan),
        found=plan.found_rules,
        persons=job.records.persons,
    )


def _seen(kept: KeptRules, job: Prepared, plan: Plan) -> tuple[Codec, Records]:
    """What a mechanism sees of rows that obey rules, and how that is read."""
    codes = plan.mechanism.traits.codes
    codec = Codec.fit(kept.table, kept.schema, crowd=crowd_of(job, plan), persons=job.records.persons, codes=codes)
    records = codec.encode(kept.table, levels=job.records.levels, strata=job.records.strata)
    own = job.records
    return codec, dataclasses.replace(
        records, persons=own.persons, linked=own.linked, among=own.among, highest=own.highest
    )


def _with_rules(job: Prepared, plan: Plan, kept: KeptRules | None) -> Schema:
    """Schema with the rules that were kept; of methods that keep none, with those that it had."""
    if not plan.mechanism.traits.synthetic:
        return job.codec.schema
    return dataclasses.replace(job.codec.schema, rules=() if kept is None else tuple(map(str, kept.rules)))


def _rules_kept(kept: KeptRules | None) -> tuple[Fact, ...]:
    return () if kept is None else (ColumnRulesKept(tuple(map(str, kept.rules)), kept.rare_pairs),)


def _made_from(job: Prepared, workings: Workings | None) -> tuple[int, Prepared]:
    """How many rows came in, and what the release was made from.

    Rows that no group could take are left out; those that were not drawn into a sample are people outside, unless
    others were held out.
    """
    if workings is None or (workings.kept is None and workings.sample is None):
        return job.original.num_rows, job
    rows = workings.kept if workings.sample is None else workings.sample
    assert rows is not None
    original, records = job.original.take(pa.array(rows)), job.records.take(rows)
    made = dataclasses.replace(job, original=original, records=records)
    if workings.sample is None:
        return original.num_rows, made
    public = None if job.public is None else job.public.take(pa.array(rows))
    outside = _left_out(job, rows) if job.outside is None else job.outside
    return job.original.num_rows, dataclasses.replace(made, public=public, outside=outside)


def _left_out(job: Prepared, drawn: NDArray[np.int64]) -> pa.Table:
    """Rows that were not drawn, with whom they are about where a column says so."""
    rest = np.setdiff1d(np.arange(job.original.num_rows), drawn)
    table = job.original.take(pa.array(rest))
    person = next((field.name for field in job.codec.schema if field.role is Role.PERSON), None)
    if person is None or job.records.persons is None:
        return table
    return table.append_column(person, pa.array(job.records.persons[rest].astype(str)))


def _notes(workings: Workings | None, job: Prepared, rows_in: int) -> tuple[str, ...]:
    """What a reader of the report must know of a sample, and of values that were widened."""
    notes = []
    if workings is not None and workings.sample is not None:
        notes.append(
            f"The release is a sample: it is compared with the {len(workings.sample)} rows that were drawn of "
            f"{rows_in}, so that what the sample itself loses is not counted; people not drawn are the control."
        )
    wide = sum(bool(field.coarsened) for field in job.told.encoded)
    if wide:
        columns = "1 column" if wide == 1 else f"{wide} columns"
        notes.append(f"The values of {columns} were widened before rows were compared; what that loses is not counted.")
    return tuple(notes)


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
