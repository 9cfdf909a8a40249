"""The engine for a table that fits in memory: any mechanism, all rows at once."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, number_of_persons
from sfumato.core.errors import OptionError, PrivacyRefusal, SfumatoError
from sfumato.core.facts import Fact
from sfumato.core.randomness import Randomness
from sfumato.core.records import Records, RowRequest
from sfumato.engines.columns import with_persons, with_persons_field
from sfumato.engines.measured import measured_part
from sfumato.engines.outcome import Comparison, Outcome, bounds_kept
from sfumato.engines.plan import Plan, PreparedRun, fit_with_tails, prepare
from sfumato.methods.chain.facts import ChainSynthesis
from sfumato.methods.condense import Condensation
from sfumato.methods.condense.classwise import ClasswiseCondensation
from sfumato.methods.protocol import Mechanism, OwnerDetails
from sfumato.options import RunOptions
from sfumato.tables.cells import plain, write_numbers
from sfumato.tables.codec import Codec, Unseen
from sfumato.tables.facts import ColumnRulesKept
from sfumato.tables.field import Kind
from sfumato.tables.grid import unbounded_grid
from sfumato.tables.kept_rules import RuleEnforcement, enforce_rules
from sfumato.tables.levels import meets_all, parse_conditions
from sfumato.tables.moved_columns import answered_fields, free_fields, write_answers
from sfumato.tables.persons import scale_weights
from sfumato.tables.schema import Role, Schema
from sfumato.tables.tails import NUMERIC, Tails

__all__ = [
    "MadeRows",
    "ResolvedRun",
    "make_rows",
    "min_frequency_of",
    "resolve_run",
    "run_in_memory",
]


@dataclass(frozen=True, eq=False, repr=False)
class MadeRows:
    """Rows that were made of a prepared table, as they leave and as they are compared, and how.

    ``job`` is what they were made from, without rows that no group could take; ``resolved`` what the mechanism had.
    """

    job: PreparedRun
    resolved: ResolvedRun
    table: pa.Table
    released: pa.Table
    records: Records
    schema: Schema
    facts: tuple[Fact, ...]
    workings: OwnerDetails
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
    if plan.mechanism.traits.declared:
        from sfumato.engines.private import run_private

        return run_private(arrow, plan, native=native, report=report)
    made = make_rows(prepare(arrow, plan), plan, plan.randomness.generator("sanitize"), native=native)
    if report and plan.mechanism.traits.synthetic:
        made = dataclasses.replace(made, workings=dataclasses.replace(made.workings, redraw=_redraw(made.job, plan)))
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
        if made.job.tails.columns:  # people are compared as they are, not as their tails were coded
            own, whole = compared.records, compared.codec.encode(compared.original, unseen="mean")
            assert own is not None
            compared = dataclasses.replace(compared, records=dataclasses.replace(own, coordinates=whole.coordinates))
    return Outcome(
        recipe=plan.recipe(dataclasses.replace(made.job.input_schema, rules=made.schema.rules)),
        table=table,
        rows_in=made.rows_in,
        rows_out=made.released.num_rows,
        schema=with_persons_field(made.schema) if linked else made.leaving_schema,
        facts=(*made.job.facts, *made.facts, *linked),
        workings=made.workings,
        texts=made.workings.texts,
        comparison=compared,
        seconds=made.seconds,
        resolved=made.resolved,
    )


def _redraw(
    job: PreparedRun, plan: Plan
) -> Callable[[NDArray[np.int64], Mapping[str, float], np.random.Generator], Mapping[str, Floats] | None]:
    """How the method is run again on some rows of a prepared table, each a person, without levels and rules."""
    opened = (
        field
        if field.domain.declared
        else dataclasses.replace(field, domain=dataclasses.replace(field.domain, low=None, high=None))
        for field in job.codec.schema.encoded  # neither identifiers nor persons
    )
    schema = Schema(tuple(opened))  # what was observed binds nobody
    mechanism = plan.mechanism
    if isinstance(mechanism, Condensation | ClasswiseCondensation):  # groups need not be the best ones here
        mechanism = dataclasses.replace(mechanism, effort="fast")
    kept = RunOptions(rare="keep", no_rules=True, tails=plan.options.tails, tails_k=plan.options.tails_k)
    again = dataclasses.replace(plan, mechanism=mechanism, schema=schema, options=kept, found_rules=False)

    def redraw(
        rows: NDArray[np.int64], cells: Mapping[str, float], rng: np.random.Generator
    ) -> Mapping[str, Floats] | None:
        table = job.original.take(pa.array(rows))
        for name, value in cells.items():
            column, field = plain(table.column(name)), job.codec.schema[name]
            grid = next(each.grid for each in job.codec.columns if each.field.name == name)
            assert grid is not None  # asked of numbers and dates only
            free = unbounded_grid(grid, schema[name], column.type)
            number = free.to_numbers(free.to_places(np.array([value])))
            first = write_numbers(number, np.zeros(1, dtype=np.bool_), field, column.type)
            cell = pa.concat_arrays([first.cast(column.type), column.slice(1)])
            table = table.set_column(table.column_names.index(name), name, cell)
        drawn = dataclasses.replace(again, randomness=Randomness(int(rng.integers(2**31))))
        try:
            with warnings.catch_warnings(action="ignore"):
                prepared = prepare(table, drawn)
                made = make_rows(prepared, drawn, drawn.randomness.generator("sanitize"))
        except SfumatoError:
            return None
        names = [field.name for field in schema.encoded if field.kind in (Kind.CONTINUOUS, Kind.INTEGER, Kind.DATE)]
        found = {name: prepared.codec.numbers(made.released, name, unseen="mean") for name in names}
        return {name: numbers[~absent] for name, (numbers, absent) in found.items()}

    return redraw


@dataclass(frozen=True, eq=False, repr=False)
class ResolvedRun:
    """A prepared table as the mechanism sees it: what every release of the same plan has in common."""

    job: PreparedRun
    mechanism: Mechanism
    kept: RuleEnforcement | None
    tails: Tails
    codec: Codec
    seen: Records

    def __repr__(self) -> str:
        return f"ResolvedRun({self.mechanism.method}, {len(self.seen)} rows)"

    def shadow(self, rows: NDArray[np.int64], rng: np.random.Generator) -> pa.Table:
        """Release of some of the rows by the same plan: same codec, tails, pooled categories and parameters.

        Where a number of rows is requested, it is in proportion.
        """
        seen = self.seen.take(rows)
        if seen.wanted is not None:
            wanted = max(1, round(seen.wanted.rows * len(rows) / len(self.seen)))
            seen = dataclasses.replace(seen, wanted=dataclasses.replace(seen.wanted, rows=wanted))
        return self.written(self.mechanism.sanitize(seen, rng=rng).records, rng)

    def written(self, records: Records, rng: np.random.Generator, *, native: bool = False) -> pa.Table:
        """Released rows of coordinates that the mechanism made, with tails coded and rules kept."""
        tails, codec = self.tails, self.codec
        uniform = rng.random(len(records)) if tails.columns else np.empty(0)
        if self.kept is None:
            released = codec.decode(
                records.coordinates,
                native=native,
                moved=records.moved,
                grids=records.grids,
                unbounded=records.unbounded,
            )
            return tails.code(released, uniform)
        drawn = tails.code(codec.decode(records.coordinates), uniform)
        typed = tails.code(codec.decode(records.coordinates, native=True), uniform) if native else None
        return self.kept.whole(drawn, native=typed)


def resolve_run(job: PreparedRun, plan: Plan, rng: np.random.Generator) -> ResolvedRun:
    """What a mechanism sees of a prepared table, and how its rows are written."""
    kept = _rules(job, plan)
    tails, codec, seen = (job.tails, job.codec, job.records) if kept is None else _seen(kept, job, plan, rng)
    return ResolvedRun(job, plan.mechanism, kept, tails, codec, _with_wanted(seen, job, plan, codec, kept))


def make_rows(job: PreparedRun, plan: Plan, rng: np.random.Generator, *, native: bool = False) -> MadeRows:
    """Rows that can be mined in place of those of a prepared table."""
    resolved = resolve_run(job, plan, rng)
    kept, seen = resolved.kept, resolved.seen
    begin = perf_counter()
    sanitized = plan.mechanism.sanitize(seen, rng=rng)
    seconds = perf_counter() - begin
    records, schema = sanitized.records, _with_rules(job, plan, kept)
    released = resolved.written(records, rng, native=native)
    if seen.wanted is not None and seen.wanted.where:
        _check_where(released, job, plan)
    rows_in, job = _made_from(job, sanitized.workings)
    released, scaled = _scaled(released, job)
    if kept is not None:  # people are compared in other coordinates
        regrown = grown_again(job.codec, released, sanitized.facts)
        workings = dataclasses.replace(sanitized.workings, likelihood=None, regrown=regrown)
        sanitized = dataclasses.replace(sanitized, workings=workings)
    ruled = () if kept is None else (ColumnRulesKept(tuple(map(str, kept.rules)), kept.rare_pairs),)
    return MadeRows(
        job,
        resolved,
        _beside(write_answers(released, records, job.codec.schema), job, sanitized.workings),
        released,
        records,
        schema,
        (*sanitized.facts, *bounds_kept(schema, records.unbounded), *ruled, *scaled),
        sanitized.workings,
        rows_in,
        seconds,
    )


def grown_again(codec: Codec, released: pa.Table, facts: Iterable[Fact]) -> Callable[[Floats], Floats] | None:
    """How an attacker scores people who grows the trees of a chain on released rows; None if no chain drew them."""
    from sfumato.methods.chain.rows import MOST_GROWN, RegrownTrees

    stated, some = (
        next((fact for fact in facts if isinstance(fact, ChainSynthesis)), None),
        released.slice(0, MOST_GROWN),
    )
    return None if stated is None else lambda people: RegrownTrees.on(codec.encode(some, unseen="mean"), stated)(people)


def _with_wanted(seen: Records, job: PreparedRun, plan: Plan, codec: Codec, kept: RuleEnforcement | None) -> Records:
    """Records with the rows that are wanted of them.

    Raises
    ------
    PrivacyRefusal
        If fewer persons fulfil the rule than a cell must come from.
    """
    if plan.options.rows is None and plan.options.where is None:
        return seen
    rows = len(seen) if plan.options.rows is None else plan.options.rows
    if plan.options.where is None:
        return dataclasses.replace(seen, wanted=RowRequest(rows))
    conditions = parse_conditions(plan.options.where)
    columns = tuple(dict.fromkeys(job.codec.schema[name].name for name, _, _ in conditions))
    gone = [name for name in columns if name not in job.original.column_names]
    if gone:
        raise OptionError(f"column {gone[0]!r} is not released, so no row can be chosen by it; leave it out of --where")
    met = meets_all(conditions, job.original, job.codec.schema)
    people = number_of_persons(seen.persons, met)
    least = max(min_frequency_of(job, plan), plan.mechanism.traits.floor or 2)
    if people < least:
        raise PrivacyRefusal(f"{people} persons fulfil the rule of --where and at least {least} must; use a wider rule")
    drawn = {block.column for block in seen.layout} - (set() if kept is None else kept.placed)
    if not set(columns) <= drawn:
        made = next(name for name in columns if name not in drawn)
        raise OptionError(
            f"column {made!r} is made by a rule between columns; leave it out of --where or add --no-rules"
        )

    def meets(values: NDArray[np.float64]) -> NDArray[np.bool_]:
        return meets_all(conditions, codec.decode(values), job.codec.schema)

    return dataclasses.replace(seen, wanted=RowRequest(rows, plan.options.where, columns, meets))


def _check_where(released: pa.Table, job: PreparedRun, plan: Plan) -> None:
    """Fail closed if a row does not fulfil the rule."""
    wrong = int((~meets_all(parse_conditions(plan.options.where or ""), released, job.codec.schema)).sum())
    if wrong:
        raise PrivacyRefusal(f"{wrong} rows do not fulfil the rule of --where; nothing is released. Please report this")


def _scaled(released: pa.Table, job: PreparedRun) -> tuple[pa.Table, tuple[Fact, ...]]:
    """Released rows whose weights, if there are some, add up to those of the rows they were made from."""
    if job.codec.schema.weight is None:
        return released, ()
    tail = job.tails.columns.get(job.codec.schema.weight.name)
    released, fact = scale_weights(released, job.original, job.codec, tail)
    return released, (fact,)


def min_frequency_of(job: PreparedRun, plan: Plan) -> int:
    """Persons who must share whatever is shown of a prepared table."""
    return max(int(job.records.levels.max(initial=0)), job.records.highest, plan.min_frequency or 2)


def _rules(job: PreparedRun, plan: Plan) -> RuleEnforcement | None:
    """Rules that synthetic rows must satisfy; perturbed rows satisfy what their numbers allow."""
    if not plan.mechanism.traits.synthetic or not job.codec.schema.rules:
        return None
    return enforce_rules(
        job.original,
        job.codec,
        min_frequency=min_frequency_of(job, plan),
        found=plan.found_rules,
        persons=job.records.persons,
    )


def _seen(
    kept: RuleEnforcement, job: PreparedRun, plan: Plan, rng: np.random.Generator
) -> tuple[Tails, Codec, Records]:
    """What a mechanism sees of rows that obey rules, and how that is read.

    Tails are coded here anew: those of a distance between two columns are not the tails of either column.
    """
    own = job.records
    asked = max(int(own.levels.max(initial=0)), own.highest)
    filled = {} if job.shared is None else job.shared.copied
    copied = np.zeros(kept.table.num_rows, dtype=np.bool_)
    for name, cells in filled.items():
        copied |= cells if job.codec.schema[name].kind in NUMERIC else False
    tails, codec, coded = fit_with_tails(
        kept.table,
        kept.schema,
        plan,
        asked,
        own.persons,
        own.public_level,
        rng,
        dict.fromkeys(kept.table.column_names, copied),
    )
    unseen: Unseen = "mean" if plan.mechanism.traits.paper_law else "refuse"
    records = codec.encode(coded, levels=own.levels, strata=own.strata, unseen=unseen)
    return tails, codec, dataclasses.replace(own, coordinates=records.coordinates, layout=records.layout)


def _with_rules(job: PreparedRun, plan: Plan, kept: RuleEnforcement | None) -> Schema:
    """Schema with the rules that were kept; of methods that keep none, with those that it had."""
    if not plan.mechanism.traits.synthetic:
        return job.codec.schema
    return dataclasses.replace(job.codec.schema, rules=() if kept is None else tuple(map(str, kept.rules)))


def _made_from(job: PreparedRun, workings: OwnerDetails) -> tuple[int, PreparedRun]:
    """How many rows came in, and what the release was made from.

    Rows that no group could take are left out; those that were not drawn into a sample are the control group, unless
    others were held out.
    """
    if workings.kept is None and workings.sample is None:
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


def _left_out(job: PreparedRun, drawn: NDArray[np.int64]) -> pa.Table:
    """Rows that were not drawn, with their persons if a column identifies them."""
    rest = np.setdiff1d(np.arange(job.original.num_rows), drawn)
    table = job.original.take(pa.array(rest))
    person = next((field.name for field in job.codec.schema if field.role is Role.PERSON), None)
    if person is None or job.records.persons is None:
        return table
    return table.append_column(person, pa.array(job.records.persons[rest].astype(str)))


def _notes(workings: OwnerDetails, job: PreparedRun, rows_in: int) -> tuple[str, ...]:
    """What a reader of the report must know of a sample, and of values that were widened."""
    notes = []
    if workings.sample is not None:
        notes.append(
            f"The release is a sample. It is compared with the {len(workings.sample):,} rows that were drawn, of "
            f"{rows_in:,}; utility lost by sampling is not counted. People who were not drawn are the control group."
        )
    wide = sum(bool(field.coarsened) for field in job.input_schema.encoded)
    if wide:
        columns = "1 column" if wide == 1 else f"{wide} columns"
        notes.append(f"The values of {columns} were widened before rows were compared; what that loses is not counted.")
    return tuple(notes)


def _beside(released: pa.Table, job: PreparedRun, workings: OwnerDetails) -> pa.Table:
    """Released rows with the public columns of each one's original, in the order of the schema."""
    if job.public is None:
        return released
    if workings.origin is None:
        raise PrivacyRefusal("synthetic rows cannot carry public columns; drop or sanitize them")
    passed = job.public.take(pa.array(workings.origin))
    for name in passed.column_names:
        released = released.append_column(name, passed.column(name))
    return released.select([field.name for field in job.codec.schema.released])
