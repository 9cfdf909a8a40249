"""The plan of a run, and what comes before a mechanism: roles, levels, strata, rows held out, and the encoding."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.arrays import count_persons, number_of_persons
from sfumato.core.errors import LevelError, Notice, OptionError, PrivacyRefusal, SchemaError, shown
from sfumato.core.facts import ColumnsDropped, Fact, HeldOut, RandomnessSource, Stratified, UnlabelledRows
from sfumato.core.randomness import Randomness
from sfumato.core.records import Records
from sfumato.engines.columns import (
    check_links,
    check_parts,
    check_people,
    coarse_columns,
    drop_empty,
    empty_columns,
    schema_of,
)
from sfumato.engines.outcome import Recipe
from sfumato.methods.catalogue import default_k
from sfumato.methods.chain import Chain
from sfumato.methods.protocol import Mechanism, parameters_of
from sfumato.options import RunOptions
from sfumato.tables.cells import absent_cells, plain
from sfumato.tables.codec import MOST_CATEGORIES, Codec
from sfumato.tables.facts import DatesCoarsened
from sfumato.tables.frames import to_arrow
from sfumato.tables.grid import repair_table
from sfumato.tables.levels import levels_of_table, parse_conditions, public_level
from sfumato.tables.persons import check_weights, hold_out, persons_of_table, refuse_weight
from sfumato.tables.recoding import coarsen, coarser, fact_of_aggregation
from sfumato.tables.rules import (
    Rule,
    broken_rows,
    cells_of_column,
    enforce_by_copying,
    find_decisions,
    find_rules,
    rules_within,
)
from sfumato.tables.schema import Field, Kind, Role, Schema
from sfumato.tables.tails import PooledCategories, Tails, check_rare_treatment, check_tails, fit_tails, pool_rare_values
from sfumato.version import __version__

__all__ = [
    "Plan",
    "PreparedRun",
    "coarsened_facts",
    "fit_with_tails",
    "make_plan",
    "prepare",
    "rules_to_repair",
    "smallest_class",
    "with_default_k",
]


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The options of a run, settled against the columns of the table.

    Parameters
    ----------
    mechanism : Mechanism
    schema : Schema
    options : RunOptions
    randomness : Randomness
    found_rules : bool
        The rules were found in the table, and not written by its owner.
    """

    mechanism: Mechanism
    schema: Schema
    options: RunOptions = dataclasses.field(default_factory=RunOptions)
    randomness: Randomness = dataclasses.field(default_factory=Randomness)
    found_rules: bool = False

    def __post_init__(self) -> None:
        options, traits = self.options, self.mechanism.traits
        _check_wanted(self.mechanism, options.rows, options.where)
        check_rare_treatment(options.rare)
        check_tails(options.tails)
        if options.budget_file is not None and not traits.declared:
            raise OptionError(f"{self.mechanism.method!r} has no privacy budget; leave out --budget-file")
        if options.keep_persons:
            check_links(self.mechanism, self.schema, options.rows)
        if options.tails is not None and not traits.synthetic:
            raise OptionError(f"{self.mechanism.method!r} makes no synthetic rows and codes no tails; drop --tails")
        if options.rare in ("pool", "lift") and self.min_frequency is None:
            raise OptionError(
                f"{self.mechanism.method!r} has no level that rare values could be counted by; drop --rare"
            )

    @property
    def min_frequency(self) -> int | None:
        """Fewest persons who hold a value that may leave, whatever levels ask for; None if nothing says it."""
        traits = self.mechanism.traits
        return traits.floor if traits.min_frequency is None else traits.min_frequency

    def __repr__(self) -> str:
        return f"Plan({self.mechanism.method}, {len(self.schema)} columns)"

    def with_options(self, **changes: Any) -> Plan:
        """The plan with some options changed."""
        return dataclasses.replace(self, options=dataclasses.replace(self.options, **changes))

    def recipe(self, schema: Schema) -> Recipe:
        """What repeats the run, with a schema whose categories and steps are filled in."""
        options = dataclasses.replace(self.options.repeatable, seed=self.randomness.seed)
        return Recipe(self.mechanism.method, parameters_of(self.mechanism), schema, options, __version__)


@dataclass(frozen=True, eq=False, repr=False)
class PreparedRun:
    """What a mechanism and the measuring after it work on.

    ``input_schema`` is the schema of the table as it came, before rare values became others, as ``shared`` says. The
    records are those of the original with their tails coded.
    """

    original: pa.Table
    outside: pa.Table | None
    codec: Codec
    records: Records
    facts: tuple[Fact, ...]
    input_schema: Schema
    public: pa.Table | None = None
    shared: PooledCategories | None = None
    tails: Tails = dataclasses.field(default_factory=Tails)


def make_plan(arrow: pa.Table, mechanism: Mechanism, options: RunOptions | None = None) -> Plan:
    """Settle the options of a run against this table, and refuse those that its columns or its method rule out."""
    options = RunOptions() if options is None else options
    found, declared = options.schema is None, mechanism.traits.declared
    if found and declared:
        raise PrivacyRefusal(
            f"{mechanism.method!r} needs a schema with declared domains, because what is found in the data would be "
            "released; write one to fill in with 'sfumato inspect INPUT --declare -o schema.toml'"
        )
    schema = schema_of(arrow, options, coarsens=True, keep_empty=declared)
    if found:
        check_people(arrow, schema, person=options.person, rows_are_people=options.rows_are_people)
    schema = _widened(schema, mechanism)
    schema = schema.without_rules() if options.no_rules else schema
    if not mechanism.traits.synthetic:
        refuse_weight(schema, f"the method {mechanism.method!r}")
    if options.where is not None:
        refuse_weight(schema, "--where")
    if not declared:
        check_weights(repair_table(arrow, schema), schema)
    passed = [field.name for field in schema if field.role is Role.PUBLIC]
    if passed and mechanism.traits.synthetic:
        raise PrivacyRefusal(
            f"column {passed[0]!r} is public, but {mechanism.method!r} makes synthetic rows: values of "
            "real people beside them would be wrong or identify someone; drop it or sanitize it"
        )
    return Plan(mechanism, schema, options, Randomness(options.seed), found)


def _widened(schema: Schema, mechanism: Mechanism) -> Schema:
    """Schema with the columns at wider levels that a method asks for, which must be some."""
    coarsened = mechanism.traits.coarsened
    if coarsened is None:
        return schema
    schema = coarser(schema, ((each.column, each.hierarchy, each.level) for each in coarsened))
    if not coarse_columns(schema):
        raise OptionError(
            f"{mechanism.method!r} has no column to coarsen; name some with --widths or --coarsened, or in the "
            "schema (coarsened = 1)"
        )
    return schema


def with_default_k(plan: Plan, arrow: pa.Table) -> Plan:
    """Plan of a chain without a given k, with the default for the number of people in the release.

    Cut-offs of tails stay where they are: of few people a tenth would be a large part of a column. The plan stays as it
    is if a class of the target would be rare then, or a leaf be larger than requested.
    """
    chain, share = plan.mechanism, 1.0 - plan.options.holdout if isinstance(plan.options.holdout, float) else 1.0
    assert isinstance(chain, Chain)
    persons = persons_of_table(arrow, plan.schema)
    people = arrow.num_rows if persons is None else int(persons.max(initial=-1)) + 1
    k = max(chain.k, min(default_k(int(share * people)), chain.leaf))
    if k == chain.k:
        return plan
    target = plan.schema.target
    if target is not None and target.kind not in (Kind.CONTINUOUS, Kind.INTEGER, Kind.DATE):
        smallest = smallest_class(arrow, target, persons)
        if share * smallest - 3 * math.sqrt(share * (1.0 - share) * smallest) < k:
            return plan
    return dataclasses.replace(plan.with_options(tails_k=chain.k), mechanism=dataclasses.replace(chain, k=k))


def smallest_class(arrow: pa.Table, target: Field, persons: NDArray[np.int64] | None) -> int:
    """Persons of the smallest class of the target."""
    cells = plain(arrow.column(target.name))
    classes = pc.dictionary_encode(cells)
    codes = pc.fill_null(classes.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    codes[absent_cells(cells, target.missing)] = -1
    counts = count_persons(codes, persons, len(classes.dictionary))
    return int(counts[counts > 0].min(initial=arrow.num_rows))


def prepare(arrow: pa.Table, plan: Plan) -> PreparedRun:
    """Read levels and strata, hold rows out, and encode the rest."""
    traits, options, randomness = plan.mechanism.traits, plan.options, plan.randomness
    strata = options.strata
    arrow = repair_table(arrow, plan.schema, level=options.level)
    asked, schema = levels_of_table(options.level, arrow, plan.schema, allow_level_1=traits.level_1)
    before, (arrow, schema) = schema, coarsen(arrow, schema)
    codes = _strata(arrow, schema, strata)
    persons = persons_of_table(arrow, plan.schema)
    if persons is not None and schema != plan.schema and persons_of_table(arrow, schema) is None:
        raise OptionError("one column is both person identifier and level; use another column for the level")
    kept, outside = _hold_out(arrow, options.holdout, randomness, persons)
    if outside is not None and not isinstance(options.holdout, float):
        outside = coarsen(repair_table(outside, plan.schema), before)[0]
    kept, unlabelled = _with_class(arrow, schema, plan, kept, asked, persons)
    highest = max(int(asked[kept].max(initial=0)), 2 if traits.floor is None else traits.floor)
    people = number_of_persons(persons, kept)
    if people < highest:
        who = "records" if persons is None else "persons"
        raise LevelError(
            f"there are {people} {who} and the highest privacy level is {highest}; lower the level or add more {who}"
        )
    if people < len(kept) and traits.row_is_person:
        raise PrivacyRefusal(
            f"{len(kept)} rows are about {people} persons, and what {plan.mechanism.method!r} promises holds for a row"
            "; condense them, or use one row of each person"
        )
    original = arrow.take(pa.array(kept)) if len(kept) < arrow.num_rows else arrow
    if original is not arrow:  # the few who hold anything may all be held out
        schema = drop_empty(original, schema, {field.name for field in schema if field.role is Role.IDENTIFIER})
    whose = None if persons is None else persons[kept]
    stated = public_level(asked[kept], whose, plan.min_frequency or 2)
    shared = _share(original, schema, plan, int(asked[kept].max(initial=0)), whose, stated, coarse_columns(before))
    rules = rules_to_repair(shared.schema, plan)
    shared = (
        dataclasses.replace(shared, table=enforce_by_copying(shared.table, shared.schema, rules)) if rules else shared
    )
    codes = codes[kept] if strata not in shared.changed else _strata(shared.table, shared.schema, strata)
    highest, rng = int(asked[kept].max(initial=0)), randomness.generator("tails")
    tails, codec, coded = fit_with_tails(shared.table, shared.schema, plan, highest, whose, stated, rng, shared.copied)
    records = codec.encode(coded, levels=asked[kept], strata=codes, unseen="mean" if traits.paper_law else "refuse")
    records = dataclasses.replace(records, public_level=stated)
    if persons is not None:
        if options.keep_persons:
            check_parts(strata, codes, persons[kept])
        records = dataclasses.replace(records, persons=whose, linked=options.keep_persons)
    drawn_out = outside if isinstance(options.holdout, float) else None
    facts = _facts(original, schema, shared.schema, strata, codes, drawn_out, randomness)
    facts = (*facts, *unlabelled, *fact_of_aggregation(before, {field.name for field in shared.schema.encoded}))
    passed = [field.name for field in schema if field.role is Role.PUBLIC]
    return PreparedRun(
        shared.table.select([field.name for field in shared.schema.encoded]),
        None if outside is None else shared.like(outside, randomness.generator("rare cells of the hold-out set")),
        codec,
        records,
        (*facts, *(fact for fact in (shared.fact, tails.fact) if fact is not None)),
        _input_schema(before, shared.before if shared.changed else codec.schema, shared.schema.rules),
        original.select(passed) if passed else None,
        shared,
        tails,
    )


def fit_with_tails(
    table: pa.Table,
    schema: Schema,
    plan: Plan,
    asked: int,
    persons: NDArray[np.int64] | None,
    stated: int,
    rng: np.random.Generator,
    copied: Mapping[str, NDArray[np.bool_]],
) -> tuple[Tails, Codec, pa.Table]:
    """Tails of a table that synthetic rows are made from, its codec, and the table that the mechanism sees.

    ``asked`` is the highest privacy level that a record asks for; the cells ``copied`` hold another record's value.
    """
    traits, tails, k = plan.mechanism.traits, Tails(), max(asked, plan.min_frequency or 2)
    if traits.synthetic:
        fewest = k if plan.options.tails_k is None else max(asked, plan.options.tails_k)
        fields = (field for field in schema if not traits.classed or field.role is not Role.TARGET)
        ends = Schema(tuple(fields))
        tails = fit_tails(
            table,
            ends,
            k=fewest,
            method=plan.options.tails,
            persons=persons,
            stated=min(fewest, stated),
            copied=copied,
            rng=rng,
        )
    coded = table if traits.paper_law else tails.code(table, rng.random(table.num_rows))
    codec = Codec.fit(
        coded,
        tails.opened(schema),
        min_frequency=k,
        persons=persons,
        gaps=traits.gaps,
        codes=traits.codes,
        within=tails.bounds,
    )
    return tails, codec, coded


def _input_schema(before: Schema, settled: Schema, rules: tuple[str, ...]) -> Schema:
    """Schema of the table as it came, with what a codec settled; coarsened columns are as before."""
    fields = (old if old.coarsened else new for old, new in zip(before, settled, strict=True))
    return dataclasses.replace(settled, fields=tuple(fields), rules=rules)


def _share(
    original: pa.Table,
    schema: Schema,
    plan: Plan,
    level: int,
    persons: NDArray[np.int64] | None,
    stated: int,
    coarse: frozenset[str],
) -> PooledCategories:
    """The table with its rare values hidden, as far as the method has a level to count them by."""
    min_frequency = plan.min_frequency
    if min_frequency is None or not schema.encoded:
        return PooledCategories(original, schema, schema)
    rng = plan.randomness.generator("rare values")
    most = None if plan.mechanism.traits.codes else MOST_CATEGORIES
    k, ruled = max(level, min_frequency), plan.mechanism.traits.synthetic and not plan.options.no_rules
    found = partial(find_decisions, original, schema, persons) if plan.found_rules else None
    decisions = found if ruled else None
    shared = pool_rare_values(
        original, schema, k=k, way=plan.options.rare, persons=persons, rng=rng, most=most, decisions=decisions
    )
    if shared.fact is not None:
        shared = dataclasses.replace(shared, fact=dataclasses.replace(shared.fact, k=min(k, stated) or k))
    if not shared.schema.encoded:
        raise LevelError(
            f"in none of the {len(schema.encoded)} columns a value is held by {max(level, min_frequency)} persons; "
            "lower the level (--k)"
        )
    if shared.fact is not None and plan.options.strata in shared.fact.dropped:
        raise LevelError(
            f"no stratum of column {plan.options.strata!r} has as many persons as the highest privacy level, "
            f"{shared.fact.k}; pool small strata, or lower the level"
        )
    if shared.fact is not None and shared.fact.dropped:
        names = shared.fact.dropped
        warnings.warn(
            Notice(
                f"columns without a value held by {shared.fact.k} persons were dropped: {len(names)}, the first is "
                f"{shown(names[0])}; a lower level (--k) keeps more"
            ),
            stacklevel=2,
        )
    if not (shared.changed or coarse) or not ruled:
        return shared
    if plan.found_rules:
        rules = find_rules(shared.table, shared.schema, persons, pair=min(k, 10))
    else:
        rules = _rules_left(original, shared, coarse)
    return dataclasses.replace(shared, schema=dataclasses.replace(shared.schema, rules=rules))


def rules_to_repair(schema: Schema, plan: Plan) -> tuple[Rule, ...]:
    """Rules that few rows may break: those that were found, or whose column the schema lets repair.

    Only for synthetic rows: others are released as they are, and promise nothing of rules.
    """
    if not plan.mechanism.traits.synthetic:
        return ()
    return tuple(rule for rule in rules_within(schema) if plan.found_rules or schema[rule.follows].repair)


def _rules_left(original: pa.Table, shared: PooledCategories, coarse: frozenset[str]) -> tuple[str, ...]:
    """Rules that the owner wrote down, less those that held only before values became others or wider."""
    rules = rules_within(shared.schema)
    lost = {str(rule) for rule in rules if rule.form != "->" and coarse & set(rule.columns)}
    broken = {str(rule) for rule in rules if str(rule) not in lost and _breaks(rule, shared.table, shared.schema)}
    lost |= broken - {str(rule) for rule in rules if str(rule) in broken and _breaks(rule, original, shared.before)}
    if lost:
        warnings.warn(
            UserWarning(f"rules that hold only before values are pooled or coarsened were left out: {len(lost)}"),
            stacklevel=3,
        )
    return tuple(text for text in shared.schema.rules if text not in lost)


def _breaks(rule: Rule, table: pa.Table, schema: Schema) -> bool:
    cells = {name: cells_of_column(table.column(name), schema[name]) for name in rule.columns}
    return bool(broken_rows(rule, cells).any())


def _strata(arrow: pa.Table, schema: Schema, strata: str | None) -> NDArray[np.int64]:
    if strata is None:
        return np.zeros(arrow.num_rows, dtype=np.int64)
    field = schema[strata]
    if field not in schema.encoded:
        raise OptionError(f"column {strata!r} is {field.role.value}, so it cannot define strata; choose another")
    array = plain(arrow.column(strata))
    absent = int(absent_cells(array, field.missing).sum())
    if absent:
        raise SchemaError(f"column {strata!r} has {absent} missing cells, so it cannot define strata; fill them in")
    return np.asarray(pc.dictionary_encode(array).indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _hold_out(
    arrow: pa.Table,
    holdout: float | Any | None,
    randomness: Randomness,
    persons: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int64], pa.Table | None]:
    """Rows to sanitize and the table that was held out; all rows of a person are on one side."""
    rows = np.arange(arrow.num_rows)
    if holdout is None:
        return rows, None
    if not isinstance(holdout, float):
        return rows, to_arrow(holdout)[0]
    out = hold_out(rows if persons is None else persons, holdout, randomness.generator("holdout"))
    return rows[~out], arrow.take(pa.array(rows[out]))


def _with_class(
    arrow: pa.Table,
    schema: Schema,
    plan: Plan,
    kept: NDArray[np.int64],
    asked: NDArray[np.int64],
    persons: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int64], tuple[UnlabelledRows, ...]]:
    """Rows whose class is known, if missing classes cannot leave, and the fact of those left out; else all rows.

    A method that keeps classes apart has no place for a missing one. Of other methods with a minimum frequency, rows
    are left out if fewer persons lack a class: their missing cells would take the class of another record.
    """
    target, classed = schema.target, plan.mechanism.traits.classed
    if target is None or not (classed or target.kind in (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)):
        return kept, ()
    absent = absent_cells(plain(arrow.column(target.name)), target.missing)[kept]
    rows = int(absent.sum())
    if not rows or not (classed or (plan.min_frequency is not None and plan.options.rare != "keep")):
        return kept, ()
    k = max(int(asked[kept].max(initial=0)), plan.min_frequency or 2)
    lacking = number_of_persons(persons, kept[absent])
    if lacking >= k and not classed:
        return kept, ()
    warnings.warn(
        UserWarning(
            f"{rows} of {len(kept)} rows have no class in column {target.name!r} and were left out; fill their classes "
            "in to keep them"
        ),
        stacklevel=3,
    )
    stated = min(k, public_level(asked[kept], None if persons is None else persons[kept], plan.min_frequency or 2))
    return kept[~absent], (UnlabelledRows(target.name, rows if lacking >= k else 0, stated),)


def _facts(
    original: pa.Table,
    schema: Schema,
    left: Schema,
    strata: str | None,
    codes: NDArray[np.int64],
    held_out: pa.Table | None,
    randomness: Randomness,
) -> tuple[Fact, ...]:
    """State what was done around the mechanism; columns of rare values are not ``left``."""
    dropped = [field for field in schema if field.role in (Role.IDENTIFIER, Role.PERSON)]
    empty = empty_columns(original, dropped)
    facts: list[Fact] = [
        RandomnessSource(randomness.mode.value, randomness.algorithm),
        ColumnsDropped(
            tuple(field.name for field in dropped if field.name not in empty),
            tuple(field.name for field in schema if field.role is Role.LEVEL),
            empty,
        ),
    ]
    facts.extend(coarsened_facts(left))
    if held_out is not None:
        facts.append(HeldOut(held_out.num_rows))
    if strata is not None:
        facts.append(Stratified(strata, len(np.unique(codes)), schema[strata].role is Role.TARGET))
    return tuple(facts)


def coarsened_facts(schema: Schema) -> tuple[Fact, ...]:
    """State which dates were given to the month; nothing where none was."""
    return (DatesCoarsened(schema.monthly),) if schema.monthly else ()


def _check_wanted(mechanism: Mechanism, rows: int | None, where: str | None) -> None:
    """Refuse to choose the rows of a method that does not make them anew."""
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise OptionError("rows is a whole number of at least 1; say how many to make, or leave it out")
    if rows is not None and not mechanism.traits.synthetic:
        raise OptionError(f"{mechanism.method!r} makes no synthetic rows; drop --rows, or use condense")
    if where is not None and not mechanism.traits.conditional:
        raise OptionError(f"{mechanism.method!r} cannot draw rows that fulfil a rule; drop --where, or use chain")
    if where is not None and not parse_conditions(where):
        raise OptionError("the rule of --where is not of the form 'column > value and other == text'; fix it")
