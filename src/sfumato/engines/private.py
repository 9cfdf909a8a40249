"""The engine for a method whose every output but noisy counts is independent of the records.

It finds nothing in the table: no kinds, formats, bounds, categories, rules, rare values or number of rows. What the
ordinary path would find must be declared, or is bought with a part of the budget; an option that rests on the data is
refused.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Ints
from sfumato.core.documents import write_json
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import ColumnsDropped, Fact, RandomnessSource, Shuffled
from sfumato.core.progress import tell
from sfumato.core.records import RowRequest, columns_of
from sfumato.engines.outcome import Comparison, NoComparison, Outcome
from sfumato.engines.partitions.first_pass import SAMPLE_ROWS, RowHash
from sfumato.engines.plan import Plan, make_plan
from sfumato.methods.private import PrivateChain
from sfumato.methods.private.budget import charge
from sfumato.methods.private.declared import DeclaredColumn
from sfumato.methods.private.domains import LOG_GRID, buy_bounds, buy_categories
from sfumato.methods.private.ledger import Ledger
from sfumato.methods.private.model import Model
from sfumato.methods.private.people import GRID, Counter, People, level_weights
from sfumato.methods.private.stored import MODEL_FILE, StoredModel
from sfumato.methods.protocol import Mechanism, OwnerDetails, parameters_of
from sfumato.options import RunOptions
from sfumato.tables.cells import absent_cells, declared_type, plain, read_numbers
from sfumato.tables.codec import Codec
from sfumato.tables.dates import bound_to_number
from sfumato.tables.facts import ColumnRulesKept, DatesCoarsened
from sfumato.tables.field import DateStep, Domain, Field, Kind, Role
from sfumato.tables.frames import to_arrow
from sfumato.tables.kept_rules import DeclaredRules
from sfumato.tables.levels import Condition, meets_all, parse_epsilons
from sfumato.tables.persons import persons_of_table
from sfumato.tables.schema import Schema
from sfumato.tables.spreadsheet import FormulaCount

_SHARE = 0.1  # of the budget, for all domains together
_YEARS = range(1800, 2201)
_LISTED = (Kind.NOMINAL, Kind.BOOLEAN)
_DECLARE = "declare {} in a schema ('sfumato inspect --declare' writes one to fill in)"


@dataclass(frozen=True)
class _FactEntries:
    """Entries of the fact besides those of the budget: what the release was charged to, and the levels of epsilon."""

    dataset: str = ""
    dataset_epsilon: float | None = None
    dataset_delta: float | None = None
    measured_before: bool = False
    level_rule: str = ""
    epsilons: tuple[float, ...] = ()
    weights: tuple[int, ...] = ()


def to_buy(schema: Schema) -> tuple[Field, ...]:
    """Columns without a declared domain.

    Raises
    ------
    PrivacyRefusal
        For a column whose order cannot be bought.
    """
    lacking = []
    for field in schema.encoded:
        domain = field.domain if field.domain.declared else Domain()
        if field.kind is Kind.ORDINAL and not domain.categories:
            what = _DECLARE.format("its categories in their order")
            raise PrivacyRefusal(f"the order of column {field.name!r} cannot be bought; {what}")
        bounded = domain.low is not None and domain.high is not None
        if not (domain.categories if field.kind in (*_LISTED, Kind.ORDINAL) else bounded):
            if field is schema.weight:
                raise PrivacyRefusal(
                    f"the weight {field.name!r} has no declared bounds; {_DECLARE.format('low and high')}"
                )
            lacking.append(field)
    return tuple(lacking)


def buy_domains(schema: Schema, lacking: Sequence[Field], arrow: pa.Table, counter: Counter) -> Schema:
    """The schema with domains of these columns, for equal parts of their share of the budget.

    Raises
    ------
    PrivacyRefusal
        If the noisy counts show no domain.
    """
    if not lacking:
        return schema
    ledger = counter.ledger
    rho, listed = _SHARE * ledger.rho / len(lacking), sum(field.kind in _LISTED for field in lacking)
    bought = {}
    for field in lacking:
        column = arrow.column(field.name)
        if field.kind in _LISTED:
            domain = _categories(column, field, counter, rho, ledger.thresholds / listed)
        else:
            domain = _bounds(column, field, counter, rho)
        if domain is None:
            raise PrivacyRefusal(
                f"too few people share a value of column {field.name!r} to buy its domain with this budget; "
                f"{_DECLARE.format('it')}, or take a larger epsilon"
            )
        bought[field.name] = dataclasses.replace(field, domain=domain)
    return dataclasses.replace(schema, fields=tuple(bought.get(field.name, field) for field in schema))


def _bounds(column: pa.ChunkedArray, field: Field, counter: Counter, rho: float) -> Domain | None:
    domain = dataclasses.replace(field.domain, declared=True, low=None, high=None)
    if field.kind is Kind.DATE and domain.step is None:
        domain = dataclasses.replace(domain, step=DateStep.DAY)
    field = dataclasses.replace(field, domain=domain)
    numbers, _ = read_numbers(column, field)
    dates = [datetime.datetime(year, 1, 1) for year in _YEARS]
    grid = np.array([bound_to_number(each, field) for each in dates]) if field.kind is Kind.DATE else LOG_GRID
    ends = buy_bounds(counter, numbers, grid, rho)
    if ends is None:
        return None
    if field.kind is Kind.DATE:
        first, last = (dates[int(np.searchsorted(grid, each))] for each in ends)
        return dataclasses.replace(domain, low=first, high=last)
    if field.kind is Kind.INTEGER:
        ends = int(np.ceil(ends[0])), int(np.ceil(ends[1])) - 1
    return dataclasses.replace(domain, low=ends[0], high=ends[1])


def _categories(column: pa.ChunkedArray, field: Field, counter: Counter, rho: float, delta: float) -> Domain | None:
    array = plain(column)
    absent = absent_cells(array, field.missing)
    present = pc.if_else(pa.array(~absent), array, pa.scalar(None, array.type))
    found = pc.dictionary_encode(present)
    codes = pc.fill_null(found.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    labels: list[Any] = found.dictionary.to_pylist()
    kept = buy_categories(counter, codes, labels, rho, delta)
    return dataclasses.replace(field.domain, declared=True, categories=kept) if kept else None


if TYPE_CHECKING:
    from sfumato.engines.partitions.gather import PartitionSettings
    from sfumato.engines.partitions.run import PartitionedRows

__all__ = [
    "DRAWN_AT_ONCE",
    "DeclaredReading",
    "DrawnRows",
    "drawn_batches",
    "run_private",
    "run_private_in_parts",
    "write_drawn",
]

DRAWN_AT_ONCE = 50_000
"""Rows of a model that are drawn at a time, if they are written to a file or by a cluster."""

_REFUSED = ("level", "strata", "rare", "tails", "where", "keep_persons")


def refuse_observed(plan: Plan) -> None:
    """Refuse what would let something leave that was found in the data."""
    method, options, schema = plan.mechanism.method, plan.options, plan.schema
    for name in _REFUSED:
        if getattr(options, name) not in (None, False):
            raise OptionError(f"{method!r} does not support --{name.replace('_', '-')}; leave it out")
    for field in schema:
        if field.role is Role.LEVEL:
            raise OptionError(f"{method!r} makes no groups; drop column {field.name!r}, or name it with --epsilon-of")
        if field.coarsened or field.repair:
            raise OptionError(f"{method!r} neither coarsens nor repairs column {field.name!r}; do so before")
    weight = schema.weight
    if weight is not None and weight.domain.declared and not _is_above_zero(weight):
        raise OptionError(f"the weight {weight.name!r} may be 0 by its declared domain; declare a low above 0")


def _is_above_zero(weight: Field) -> bool:
    low = weight.domain.low
    return weight.kind in (Kind.INTEGER, Kind.CONTINUOUS) and isinstance(low, int | float) and low > 0


def run_private(arrow: pa.Table, plan: Plan, *, native: bool = False, report: bool = True) -> Outcome:
    """Rows drawn from noisy counts of a table."""
    refuse_observed(plan)
    chain = plan.mechanism
    assert isinstance(chain, PrivateChain)
    arrow, nobody = _with_person(_plain_cells(arrow), plan.schema)
    arrow, outside = _hold_out(arrow, plan)
    levels = _Levels.of(plan.schema, chain)
    rules = DeclaredRules(levels.schema)
    people = levels.people(arrow, plan.schema)
    lacking = to_buy(rules.drawn) if chain.private_bounds else ()
    begin, ledger = perf_counter(), chain.ledger(plan.randomness.generator("sanitize"))
    stated = _charged(plan, ledger, levels.stated, measured=report)
    counter = Counter(people, ledger)
    sizes = counter.measure_sizes()
    schema = buy_domains(rules.drawn, lacking, arrow, counter)
    codec = Codec.declared(schema, {field.name: declared_type(field) for field in schema})
    records = codec.encode(arrow.select(codec.schema.names), unseen="nearest")
    wanted = None if plan.options.rows is None else RowRequest(plan.options.rows)
    made = chain.synthesize(
        dataclasses.replace(records, wanted=wanted),
        people,
        ledger,
        sizes,
        shared=people.most_rows > 1,
        bought=tuple(field.name for field in lacking),
        **vars(stated),
    )
    seconds = perf_counter() - begin
    released = rules.complete(codec.decode(made.records.coordinates, native=native), codec)
    assert isinstance(made.model, Model)
    settled, names = rules.settled(codec.schema), [field.name for field in codec.schema.encoded]
    model, kept = _stored(made.model, rules, codec, plan), _rules_kept(rules)
    return Outcome(
        recipe=plan.recipe(settled),
        table=released,
        rows_in=None if people.most_rows > 1 else chain.people,
        rows_out=released.num_rows,
        schema=settled,
        facts=(*_facts(settled, plan), *made.facts, *kept),
        comparison=Comparison(
            codec.decode(records.coordinates),  # the owner compares with what the domains let be seen
            codec.decode(codec.encode(released.select(names)).coordinates) if native or kept else released,
            codec,
            records,
            None
            if outside is None
            else codec.decode(codec.encode(outside.select(names), unseen="nearest").coordinates),
            _notes(codec.misfits(arrow), nobody) if report else (),
        ),
        workings=made.workings,
        public_texts={MODEL_FILE: model.to_json()},
        seconds=seconds,
    )


def run_private_in_parts(
    rows: PartitionedRows, mechanism: Mechanism, options: RunOptions, settings: PartitionSettings
) -> Outcome:
    """Rows drawn from noisy counts of a table of any length: counts of partitions add up, and noise is drawn once."""
    plan = make_plan(rows.head(1), mechanism, options)  # which takes names and types of columns alone
    refuse_observed(plan)
    chain = plan.mechanism
    assert isinstance(chain, PrivateChain)
    needs = "--private-bounds" if chain.private_bounds else "--holdout" if options.holdout is not None else None
    needs = "--resume-key" if options.resume_key is not None else needs
    if needs is not None:
        raise OptionError(f"{needs} needs all rows at once; leave it out, or grant more memory with --memory")
    levels = _Levels.of(plan.schema, chain)
    rules = DeclaredRules(levels.schema)
    codec = Codec.declared(rules.drawn, {field.name: declared_type(field) for field in rules.drawn})
    reading, begin = DeclaredReading(plan.schema, levels, codec), perf_counter()
    people, ledger = rows.people(reading), chain.ledger(plan.randomness.generator("sanitize"))
    stated = _charged(plan, ledger, levels.stated, measured=bool(settings.measured))
    sizes = Counter(people, ledger).measure_sizes()
    target = codec.schema.target
    model = chain.measure(people, reading.columns, None if target is None else target.name, ledger, sizes)
    stored, many = _stored(model, rules, codec, plan), options.rows or chain.rows_of(model)
    seconds, released = perf_counter() - begin, rows.draw(stored, many, settings)
    shared = people.most_rows > 1
    fact = chain.fact(ledger, len(reading.columns), shared=shared, **vars(stated))
    settled = rules.settled(codec.schema)
    return Outcome(
        recipe=plan.recipe(settled),
        table=released.table,
        rows_in=None if shared else chain.people,
        rows_out=many,
        schema=settled,
        facts=(*_facts(settled, plan), fact, Shuffled(many), *_rules_kept(rules), *released.facts),
        comparison=_sampled(rows, reading, released, settings),
        workings=OwnerDetails(),
        public_texts={MODEL_FILE: stored.to_json()},
        seconds=seconds,
    )


def _sampled(
    rows: PartitionedRows, reading: DeclaredReading, released: DrawnRows, settings: PartitionSettings
) -> Comparison | NoComparison:
    """Some rows beside as many released ones, for the owner."""
    if not settings.measured:
        return NoComparison("no report was asked for", codec=reading.codec)
    codec = reading.codec
    original = reading.rows(rows.sample(RowHash.of(settings.randomness, None, None)))[0]
    records = codec.encode(original, unseen="nearest")
    drawn = codec.decode(codec.encode(released.sample, unseen="nearest").coordinates)
    note = f"Measured on {original.num_rows} rows, drawn at random."
    return Comparison(codec.decode(records.coordinates), drawn, codec, records, None, (note,))


@dataclass(frozen=True, eq=False, repr=False)
class DeclaredReading:
    """How rows become people, row by row and person by person; it goes to wherever the rows are."""

    schema: Schema
    levels: _Levels
    codec: Codec

    @property
    def columns(self) -> list[DeclaredColumn]:
        """The columns that are measured."""
        return [DeclaredColumn.of(block, missing) for block, missing in columns_of(self.codec.layout)]

    @property
    def person(self) -> str | None:
        """Column that says whose a row is."""
        return next((field.name for field in self.schema if field.role is Role.PERSON), None)

    @property
    def nobody(self) -> People:
        """A partition without rows."""
        none = np.empty(0, dtype=np.int64)
        levels = None if self.levels.codes_of is None else none
        places = tuple(none for _ in self.columns)
        return People.of(places, None if self.person is None else none, levels, self.levels.weights)

    def rows(self, arrow: pa.Table) -> tuple[pa.Table, int]:
        """Rows of a person, read cell by cell, and the number of rows without one."""
        return _with_person(_plain_cells(arrow), self.schema)

    def frame(self, rows: pa.Table) -> pa.Table:
        """All rows of some people as places, with what each counts and its level."""
        records = self.codec.encode(rows, unseen="nearest")
        people = self.levels.people(rows, self.schema, tuple(column.places(records) for column in self.columns))
        extra = {"parts": people.parts, "levels": people.levels}
        named = {str(at): places for at, places in enumerate(people.places)}
        return pa.table(named | {name: values for name, values in extra.items() if values is not None})

    def people(self, frame: pa.Table) -> People:
        """People of such places."""
        arrays = {name: frame.column(name).to_numpy() for name in frame.column_names}
        parts, levels = arrays.pop("parts", None), arrays.pop("levels", None)
        return dataclasses.replace(self.nobody, places=tuple(arrays.values()), parts=parts, levels=levels)

    def __repr__(self) -> str:
        return f"DeclaredReading({len(self.schema)} columns)"


@dataclass(frozen=True, eq=False, repr=False)
class DrawnRows:
    """Released rows: a table, or the file that holds them, or neither if they are elsewhere; and some to measure."""

    table: pa.Table | Path | None
    sample: pa.Table
    facts: tuple[Fact, ...] = ()

    def __repr__(self) -> str:
        return "DrawnRows"


def drawn_batches(
    numbers: Iterable[int], stored: StoredModel, rows: int, settings: PartitionSettings
) -> Iterator[pa.Table]:
    """Batches of a model's rows, by their numbers: the same ones wherever they are drawn."""
    for number in numbers:
        many = min(DRAWN_AT_ONCE, rows - number * DRAWN_AT_ONCE)
        rng = settings.randomness.generator(f"rows {number}")
        yield stored.draw(many, rng, native=settings.native)


def write_drawn(batches: Iterable[pa.Table], rows: int, settings: PartitionSettings) -> DrawnRows:
    """Released batches, written to the file if one is named; as a table if not."""
    batches = iter(batches)
    first = next(batches)
    kept, held, formulas = list[pa.Table](), 0, FormulaCount(first.column_names)
    with nullcontext() if settings.place is None else settings.open_sink(first.schema) as sink:
        for batch in itertools.chain((first,), batches):
            formulas.add(batch)
            if sink is not None:
                for part in batch.combine_chunks().to_batches():
                    sink.write(part)
            if sink is None or held < SAMPLE_ROWS:
                kept.append(batch)
            held += batch.num_rows
            tell("drawing rows", held / rows)
    whole = pa.concat_tables(kept)
    if settings.place is None:
        return DrawnRows(whole, whole.slice(0, SAMPLE_ROWS))  # texts are counted when it is certified
    return DrawnRows(settings.place, whole.slice(0, SAMPLE_ROWS), formulas.facts(quoted=settings.spreadsheet_safe))


def _stored(model: Model, rules: DeclaredRules, codec: Codec, plan: Plan) -> StoredModel:
    """The model that leaves."""
    settled = rules.settled(codec.schema)
    public = dataclasses.replace(settled.public_part(), rules=settled.rules)
    return StoredModel(public, tuple(str(column.kind) for column in codec.columns), model, plan.randomness.mode)


def _rules_kept(rules: DeclaredRules) -> tuple[Fact, ...]:
    return (ColumnRulesKept(tuple(map(str, rules.rules))),) if rules.rules else ()


def _charged(plan: Plan, ledger: Ledger, stated: _FactEntries, *, measured: bool) -> _FactEntries:
    """Charge the release to its dataset, and state which that is; a dry run is not released and costs nothing."""
    path = plan.options.budget_file
    if path is None or plan.options.seed is not None:
        return stated
    chosen = write_json([parameters_of(plan.mechanism), plan.schema.to_toml(), plan.options.rows], "canonical")
    settings = hashlib.sha256(chosen.encode()).hexdigest()
    budget = charge(path, ledger.rho, ledger.thresholds, settings, measured=measured)
    return dataclasses.replace(
        stated,
        dataset=budget.dataset,
        dataset_epsilon=budget.epsilon,
        dataset_delta=budget.delta,
        measured_before=budget.measured,
    )


# ------------------------------------------------------------------------------------------------------------ the rows


def _plain_cells(arrow: pa.Table) -> pa.Table:
    """The table with cells that are read one by one.

    A dictionary lists what the data hold, and short floats are read as decimals if all of them are such.
    """
    return arrow.cast(pa.schema([field.with_type(_plain_type(field.type)) for field in arrow.schema]))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_float16(kind) or pa.types.is_float32(kind) or pa.types.is_decimal(kind):
        return pa.float64()
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind


def _with_person(arrow: pa.Table, schema: Schema) -> tuple[pa.Table, int]:
    """Rows that say whose they are, if a column does, and how many others are left out."""
    person = next((field for field in schema if field.role is Role.PERSON), None)
    if person is None:
        return arrow, 0
    absent = absent_cells(plain(arrow.column(person.name)), person.missing)
    return arrow.filter(pa.array(~absent)), int(absent.sum())


def _hold_out(arrow: pa.Table, plan: Plan) -> tuple[pa.Table, pa.Table | None]:
    """Rows to measure and rows held out: each person is held out by a coin of their own, which decides on no other."""
    holdout = plan.options.holdout
    if holdout is None:
        return arrow, None
    if not isinstance(holdout, float):
        return arrow, _plain_cells(to_arrow(holdout)[0])
    if not 0.0 < holdout < 1.0:
        raise OptionError("the share of rows to hold out must lie between 0 and 1; try 0.2")
    persons = persons_of_table(arrow, plan.schema)
    whose = np.arange(arrow.num_rows) if persons is None else persons
    out = (plan.randomness.generator("holdout").random(int(whose.max(initial=-1)) + 1) < holdout)[whose]
    return arrow.filter(pa.array(~out)), arrow.filter(pa.array(out))


# ---------------------------------------------------------------------------------------------------------- the levels


_CodesOf = Callable[[pa.Table], Ints]


@dataclass(frozen=True, eq=False, repr=False)
class _Levels:
    """The epsilon of each row, by declared columns alone, and the schema without a column that says nothing else."""

    schema: Schema
    codes_of: _CodesOf | None = None
    weights: tuple[int, ...] = (GRID,)
    stated: _FactEntries = _FactEntries()

    @classmethod
    def of(cls, schema: Schema, chain: PrivateChain) -> _Levels:
        rule = chain.epsilon_of
        if rule is None:
            return cls(schema)
        if rule in schema.names:
            asked, codes_of = _epsilons_of_column(schema[rule])
            if schema[rule].role is Role.TARGET:
                raise OptionError(f"column {rule!r} is the target and sets epsilon; name another column")
            schema = schema.with_role(Role.LEVEL, rule)
        else:
            asked, codes_of = _epsilons_of_rules(schema, parse_epsilons(rule), chain.epsilon)
        epsilons = sorted(set(asked))
        if epsilons[-1] != chain.epsilon:
            raise OptionError(
                f"the largest epsilon of --epsilon-of is {epsilons[-1]:g}; take --epsilon {epsilons[-1]:g}"
            )
        weights = level_weights(epsilons, chain.epsilon, chain.delta - chain.thresholds)
        places = np.array([epsilons.index(each) for each in asked])
        stated = _FactEntries(level_rule=rule, epsilons=tuple(epsilons), weights=weights)
        return cls(schema, lambda arrow: places[codes_of(arrow)], weights, stated)

    def people(self, arrow: pa.Table, schema: Schema, places: tuple[Ints, ...] = ()) -> People:
        """Whom each row is about, and how much it counts."""
        codes = None if self.codes_of is None else self.codes_of(arrow)
        return People.of(places, persons_of_table(arrow, schema), codes, self.weights)

    def __repr__(self) -> str:
        return f"_Levels({len(self.weights)})"


def _epsilons_of_column(field: Field) -> tuple[list[float], _CodesOf]:
    """The epsilons that a column declares, and which each row has; any other cell gets the least."""
    categories = field.domain.categories if field.domain.declared else None
    if not categories:
        raise PrivacyRefusal(f"column {field.name!r} sets epsilon and declares no categories; list its epsilons")
    try:
        asked = [float(each) for each in categories]
    except ValueError:
        asked = [0.0]
    if min(asked) <= 0 or not np.isfinite(asked).all():
        raise OptionError(f"a category of column {field.name!r} is no epsilon; list numbers above 0")
    codec = Codec.declared(_confidential([field]), {field.name: declared_type(field)})
    least = int(np.argmin(asked))

    def codes_of(arrow: pa.Table) -> Ints:
        seen = codec.decode(codec.encode(arrow, unseen="nearest").coordinates)
        codes = codec.codes(seen, field.name, unseen="mean")[0]
        return np.where(codes < 0, least, codes)

    return asked, codes_of


def _epsilons_of_rules(
    schema: Schema, rules: tuple[tuple[tuple[Condition, ...], float], ...], otherwise: float
) -> tuple[list[float], _CodesOf]:
    """The epsilons of rules, and which each row has, by its cells as the declared domains let them be seen."""
    asked = [epsilon for _, epsilon in rules]
    if rules[-1][0]:
        asked.append(otherwise)
    if min(asked) <= 0:
        raise OptionError("a rule of --epsilon-of asks for epsilon 0; take a number above 0")
    names = dict.fromkeys(schema[name].name for conditions, _ in rules for name, _, _ in conditions)
    fields = [schema[name] for name in names]
    seen = Codec.declared(_confidential(fields), {field.name: declared_type(field) for field in fields})

    def codes_of(arrow: pa.Table) -> Ints:
        table = seen.decode(seen.encode(arrow, unseen="nearest").coordinates)
        codes = np.full(arrow.num_rows, len(asked) - 1)
        for place in reversed(range(len(rules))):
            codes[meets_all(rules[place][0], table, seen.schema)] = place
        return codes

    return asked, codes_of


def _confidential(fields: list[Field]) -> Schema:
    return Schema(tuple(dataclasses.replace(field, role=Role.CONFIDENTIAL) for field in fields))


# ----------------------------------------------------------------------------------------------------------- the words


def _facts(schema: Schema, plan: Plan) -> tuple[Fact, ...]:
    randomness = plan.randomness
    dropped = tuple(field.name for field in schema if field.is_dropped)
    monthly = (DatesCoarsened(schema.monthly),) if schema.monthly else ()
    return (RandomnessSource(randomness.mode.value, randomness.algorithm), ColumnsDropped(dropped, ()), *monthly)


def _notes(misfits: dict[str, int], nobody: int) -> tuple[str, ...]:
    """How many cells lay outside their domains, and rows without a person, for the owner alone."""
    notes = []
    if misfits:
        cells, columns = sum(misfits.values()), len(misfits)
        notes.append(f"{cells} cells in {columns} columns lay outside their domains: clipped, or taken as missing.")
    if nobody:
        notes.append(f"{nobody} rows do not say whose they are and were left out.")
    return tuple(notes)
