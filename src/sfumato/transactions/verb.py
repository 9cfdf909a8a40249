"""Transactions from a file to a release, and from a release to the supports of itemsets; the methods by name."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.documents import fits
from sfumato.core.errors import OptionError, TableError, shown
from sfumato.core.facts import ColumnsDropped, Fact, HeldOut, RandomnessSource, Shuffled
from sfumato.core.itemsets import Transactions
from sfumato.core.randomness import Randomness
from sfumato.engines.outcome import Outcome, Recipe
from sfumato.options import PublishOptions, RunOptions
from sfumato.publish.verify import certificate_beside
from sfumato.tables.persons import hold_out
from sfumato.transactions.estimate import Estimates, estimate_itemsets, interval_itemsets
from sfumato.transactions.facts import TransactionPersons, TransactionsRandomized
from sfumato.transactions.mechanism import TransactionMechanism, TransactionRandomization, TransactionRule, read_rules
from sfumato.transactions.rules import RuleBlocking, RuleHiding
from sfumato.transactions.table import TransactionTable, read_transactions
from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.assess.report import Report
    from sfumato.publish.policy import Policy
    from sfumato.publish.release import Release
    from sfumato.transactions.confidence import RuleEstimates
    from sfumato.transactions.measures import TransactionPair

__all__ = [
    "TRANSACTION_METHODS",
    "FoundItemsets",
    "TransactionPlan",
    "TransactionSource",
    "make_transaction_mechanism",
    "plan_release",
    "run_transactions",
    "transactions",
]


@dataclass(frozen=True, eq=False, repr=False)
class FoundItemsets:
    """Itemsets with their supports, and how these were found; rules too where a confidence was asked for."""

    estimates: Estimates
    labels: tuple[str, ...]
    transactions: int
    kind: str  # "estimated" of randomized transactions, "certain bounds" of blocked ones, "counted" of others
    rules: RuleEstimates | None = None

    def __len__(self) -> int:
        return len(self.estimates)

    def __repr__(self) -> str:
        return f"FoundItemsets({len(self)} sets, {self.kind})"

    def to_table(self) -> pa.Table:
        """A row for each set: its items, support, and the ends that it lies between; the most frequent first."""
        found = self.estimates
        order = np.argsort(-found.support, kind="stable")
        texts = [";".join(self.labels[item] for item in found.sets[place]) for place in order.tolist()]
        numbers = {"support": found.support, "low": found.low, "high": found.high}
        return pa.table({"items": texts, **{name: value[order] for name, value in numbers.items()}})

    def rules_table(self) -> pa.Table:
        """A row for each rule: its sides, support, confidence, and the ends that the confidence lies between.

        The rules of the highest confidence come first.
        """
        found = self.rules
        if found is None:
            raise OptionError("no rules were looked for; name a min_confidence")
        order = np.lexsort((-found.support, -found.confidence))
        sides = [found.rules[place] for place in order.tolist()]
        texts = {
            name: [";".join(self.labels[item] for item in rule[side]) for rule in sides]
            for side, name in enumerate(("left", "right"))
        }
        numbers = {name: getattr(found, name)[order] for name in ("support", "confidence", "low", "high")}
        return pa.table({name: pa.array(column, pa.string()) for name, column in texts.items()} | numbers)


@dataclass(frozen=True, eq=False, repr=False)
class TransactionSource:
    """Transactions that were read; each verb leaves them as they are. The table of a release is a pyarrow table."""

    table: TransactionTable
    randomized: TransactionsRandomized | None = None

    def __repr__(self) -> str:
        return f"TransactionSource({self.table.transactions!r})"

    def randomize(
        self, mechanism: TransactionMechanism | None = None, *, items: Iterable[str] | None = None, **options: Any
    ) -> Release:
        """Release of randomized transactions, from which supports can be estimated.

        Parameters
        ----------
        mechanism : TransactionRandomization, optional
            Or its parameters by name: ``operator``, ``keep``, ``insert``, ``cutoff``, ``gamma``.
        items : iterable of str, optional
            Names of all items that there are. Without, they are read off the transactions, which tells that someone
            holds each, and what is claimed of a transaction assumes that this was known.
        **options
            ``holdout``, ``seed``, ``report``, ``policy``, ``despite_policy``, ``recipe``, as in `sfumato.sanitize`. A
            recipe says what the parameters say; rules, items and columns it does not hold are named as before.
        """
        listed = None if items is None else tuple(items)
        return self.release(*plan_release("randomize-transactions", mechanism, items=listed, **options))

    def hide(self, rules: Iterable[str], mechanism: TransactionMechanism | None = None, **options: Any) -> Release:
        """Release of transactions in which none of these rules holds.

        Parameters
        ----------
        rules : iterable of str
            As ``"bread;butter -> milk"``, or ``"bread;butter"`` for a set; neither certificate nor recipe holds them.
        mechanism : RuleHiding, optional
            Or its parameters by name: ``strategy``, ``min_support``, ``min_confidence``.
        **options
            As in `randomize`.
        """
        return self.release(*plan_release("hide-rules", mechanism, rules=tuple(rules), **options))

    def block(self, rules: Iterable[str], mechanism: TransactionMechanism | None = None, **options: Any) -> Release:
        """Release of transactions with unknown entries, in which none of these rules certainly holds.

        Parameters
        ----------
        rules : iterable of str
            As in `hide`.
        mechanism : RuleBlocking, optional
            Or its parameters by name: ``min_support``, ``min_confidence``, ``margin``, ``zeros``.
        **options
            As in `randomize`.
        """
        return self.release(*plan_release("block-rules", mechanism, rules=tuple(rules), **options))

    def estimate(self, min_support: float, *, longest: int = 4, min_confidence: float | None = None) -> FoundItemsets:
        """Sets of items that at least this share of the true transactions held, as far as the transactions tell.

        Supports behind randomized transactions are estimated, with 95 % confidence intervals; of blocked ones the ends
        are certain; others are counted. With ``min_confidence`` also the rules with one item on their right that are
        right at least so often, with intervals of their confidence.
        """
        from sfumato.transactions.confidence import estimate_rules, interval_rules

        if isinstance(longest, bool) or not 1 <= longest <= 15:
            raise OptionError("longest must lie between 1 and 15; it is the most items of a set")
        held, count = self.table.transactions, len(self.table.transactions)
        if self.randomized is not None:
            law = self.randomized.as_operator()
            found = estimate_itemsets(law, held, self.table.sizes, min_support, longest=longest)
            rules = None
            if min_confidence is not None:
                thresholds = {"min_support": min_support, "min_confidence": min_confidence}
                rules = estimate_rules(law, held, self.table.sizes, found, **thresholds, longest=longest)
            return FoundItemsets(found, self.table.labels, count, "estimated", rules)
        sets, sure = interval_itemsets(held, self.table.unknown, min_support, longest=longest)
        low, high = sure / count, sets.counts / count
        counted = Estimates(tuple(sets.as_tuples()), (low + high) / 2, low, high, np.zeros(len(sets)))
        kind = "counted" if self.table.unknown is None else "certain bounds"
        rules = None if min_confidence is None else interval_rules(held, self.table.unknown, counted, min_confidence)
        return FoundItemsets(counted, self.table.labels, count, kind, rules)

    def release(self, plan: TransactionPlan, publishing: PublishOptions) -> Release:
        """Release by a plan, as `plan_release` makes it."""
        from sfumato.publish.release import publish

        if self.randomized is not None or self.table.unknown is not None or self.table.sizes is not None:
            raise TableError("these transactions were released before; provide the original ones")
        return publish(run_transactions(self.table, plan), publishing)


@dataclass(frozen=True, kw_only=True, repr=False)
class _ReleaseOptions:
    """Options of a release of transactions other than rules, items and the parameters of its mechanism."""

    holdout: float | None = None
    seed: int | None = None
    report: bool = True
    policy: Policy | str | Path | None = None
    despite_policy: bool = False
    recipe: Recipe | str | Path | None = None
    command: Sequence[str] = ()


def plan_release(
    method: str,
    mechanism: TransactionMechanism | None = None,
    *,
    rules: tuple[str, ...] = (),
    items: tuple[str, ...] | None = None,
    **options: Any,
) -> tuple[TransactionPlan, PublishOptions]:
    """Plan of a release, and how it is published; what cannot be done is refused before transactions are read."""
    from sfumato.publish.attainable import PlannedRun, refuse_unattainable
    from sfumato.publish.judge import asked_policy, policy_of

    names = {each.name for each in dataclasses.fields(_ReleaseOptions)} & options.keys()
    stated = _ReleaseOptions(**{name: options.pop(name) for name in names})
    if stated.recipe is not None:
        recipe = _replayed(stated.recipe, method, {**options, "mechanism": mechanism})
        mechanism, options = make_transaction_mechanism(method, recipe.parameters), {}
        repeated = {"holdout": recipe.options.holdout, "seed": recipe.options.seed, "policy": policy_of(recipe)}
        stated = dataclasses.replace(
            stated, **{name: value for name, value in repeated.items() if getattr(stated, name) is None}
        )
    if mechanism is not None and (options or mechanism.method != method):
        raise OptionError("a mechanism for another verb was given, or parameters beside it; give one of them")
    chosen = make_transaction_mechanism(method, options) if mechanism is None else mechanism
    policy = asked_policy(stated.policy, report=stated.report, despite=stated.despite_policy)
    planned = PlannedRun(control=stated.holdout is not None, transactions=True)
    refuse_unattainable(policy, planned, despite=stated.despite_policy)
    plan = TransactionPlan(chosen, rules, items, stated.holdout, Randomness(stated.seed))
    publishing = PublishOptions(
        report=stated.report, policy=policy, despite_policy=stated.despite_policy, command=stated.command
    )
    return plan, publishing


def _replayed(recipe: Recipe | str | Path, method: str, beside: Mapping[str, object]) -> Recipe:
    """Recipe that is to be run again, of this verb and with nothing beside it that it says."""
    named = [name for name, value in beside.items() if value is not None]
    if named:
        option = named[0].replace("_", "-")
        raise OptionError(f"--recipe already sets --{option}; edit the recipe or leave one out")
    found = recipe if isinstance(recipe, Recipe) else Recipe.load(recipe)
    if found.method != method:
        raise OptionError(f"the recipe is of the method {shown(found.method)} and not of {method!r}; use its own verb")
    if not fits(TRANSACTION_METHODS[method], found.parameters):
        raise OptionError("a parameter of the recipe is not known or of the wrong type; fix it")
    return found


def transactions(
    source: Any,
    *,
    person: str | None = None,
    transaction: str | None = None,
    item: str | None = None,
    lines: bool = False,
    most_bytes: int | None = None,
) -> TransactionSource:
    """Transactions of a file, a frame, or a released folder, to be randomized, hidden in, blocked or mined.

    Parameters
    ----------
    source : path, or pandas, polars or pyarrow table
        A .dat file (FIMI), CSV or Parquet, as `sfumato.transactions.table.read_transactions` says; or the folder
        ``release`` of transactions that were released, or its table, to estimate from.
    person : str, optional
        Column that says whom a transaction is of: dropped, and held out and attacked by person.
    transaction, item : str, optional
        Columns of a table that has a row for each item of a transaction.
    lines : bool
        CSV without header: one transaction per line, items separated by commas.
    most_bytes : int, optional
        Bytes that a file may unpack to.

    Examples
    --------
    >>> import pyarrow as pa
    >>> shop = transactions(pa.table({"items": ["bread;milk", "bread", "milk;beer", "bread;milk"] * 5}))
    >>> shop.estimate(0.5).to_table().to_pydict()["items"]
    ['bread', 'milk', 'bread;milk']
    """
    if isinstance(source, str | Path) and Path(source).is_dir():
        tables = sorted(Path(source).glob("table.*"))
        if len(tables) != 1:
            raise TableError("the folder holds no single released table; name the folder 'release' itself")
        source = tables[0]
    table = read_transactions(
        source, person=person, transaction=transaction, item=item, lines=lines, most_bytes=most_bytes
    )
    empty = "transactions are empty; they are kept, and count in every support"
    released = isinstance(source, str | Path) and (Path(source).parent / "certificate.json").exists()
    for count, words in (
        (table.twice, "entries stood twice in their transaction and are taken once"),
        (table.empty, empty),
    ):
        if count and table.sizes is None and not released:
            warnings.warn(UserWarning(f"{count} {words}"), stacklevel=2)
    if not isinstance(source, str | Path):
        return TransactionSource(table)
    certificate, wrong = certificate_beside(Path(source))
    if wrong is not None:
        raise TableError(f"{wrong}, so nothing can be estimated; ask for the release again")
    facts = () if certificate is None else certificate.facts
    randomized = next((fact for fact in facts if isinstance(fact, TransactionsRandomized)), None)
    return TransactionSource(table, randomized)


_FEWEST = 2
_MUCH = 20  # times as many entries as before


@dataclass(frozen=True, eq=False, repr=False)
class TransactionPlan:
    """Options of a run on transactions.

    Parameters
    ----------
    mechanism : TransactionMechanism
    rules : tuple of str
        Rules to hide, by the names of items. They are secret: neither certificate nor recipe holds them.
    items : tuple of str, optional
        Names of the items that there are, which may come into a transaction; without, those that the transactions hold.
    holdout : float, optional
        Share of the transactions, or of the persons, to keep out of the release, for measuring.
    randomness : Randomness
    """

    mechanism: TransactionMechanism
    rules: tuple[str, ...] = ()
    items: tuple[str, ...] | None = None
    holdout: float | None = None
    randomness: Randomness = field(default_factory=Randomness)

    def __repr__(self) -> str:
        return f"TransactionPlan({self.mechanism.method}, {len(self.rules)} rules)"


@dataclass(frozen=True, eq=False, repr=False)
class TransactionComparison:
    """Raw transactions beside the released ones; they stay with the owner."""

    pair: TransactionPair
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "TransactionComparison(owner only)"

    def assess(self, facts: Sequence[Fact], *, judged: bool, rng: np.random.Generator) -> Report:
        """Report of what the released transactions still give and what they give away."""
        from sfumato.transactions.measures import assess_transactions

        return assess_transactions(self.pair, facts, judged=judged, rng=rng)


def run_transactions(table: TransactionTable, plan: TransactionPlan) -> Outcome:
    """Hold transactions out, run the mechanism, and shuffle what came of it."""
    from sfumato.transactions.measures import TransactionPair

    members, outside = _hold_out(table, plan)
    inside = table.take(members)
    inside = _with_items(inside, inside.transactions.counts > 0) if plan.items is None else inside.over(plan.items)
    if len(members) < _FEWEST:
        raise TableError(f"{len(members)} transactions are left, too few to hide one among; add more")
    rules: tuple[TransactionRule, ...] = ()
    if plan.mechanism.takes_rules:
        limits = {name: getattr(plan.mechanism, name) for name in ("min_support", "min_confidence")}
        rules = read_rules(plan.rules, inside, **limits)
    elif plan.rules:
        raise OptionError("rules are for hide and block; leave them out")
    begin = perf_counter()
    done = plan.mechanism.sanitize(inside, rules=rules, rng=plan.randomness.generator("sanitize"))
    seconds = perf_counter() - begin
    grown = len(done.table.transactions.items) / max(1, len(inside.transactions.items))
    if grown > _MUCH:
        warnings.warn(
            f"the released transactions hold {grown:.0f} times as many entries, nearly all of them random; drop "
            "--operator and --insert, or use a smaller --insert",
            stacklevel=3,
        )
    order = plan.randomness.generator("shuffle").permutation(len(members))
    released = dataclasses.replace(done.table.take(order), persons=None, dropped=())
    held, known = None, set(inside.labels)
    if outside is not None:  # without items that nobody inside holds
        held = _with_items(table.take(outside), np.array([label in known for label in table.labels]))
    pair = TransactionPair(
        original=inside.transactions,
        released=released.transactions,
        unknown=released.unknown,
        sizes=released.sizes,
        origin=order,
        persons=inside.persons,
        outside=None if held is None else held.transactions,
        outside_persons=None if held is None else held.persons,
        at_random=done.at_random,
        secret=tuple((rule.left, rule.right) for rule in rules),
    )
    parameters = dataclasses.asdict(plan.mechanism)
    schema = released.schema()
    options = RunOptions(holdout=plan.holdout, seed=plan.randomness.seed)
    return Outcome(
        recipe=Recipe(plan.mechanism.method, parameters, schema, options, __version__),
        table=released.to_table(),
        rows_in=len(members),
        rows_out=len(members),
        schema=schema,
        facts=(*_around(table, inside, outside, plan), *done.facts, released.counted(), Shuffled(len(members))),
        comparison=TransactionComparison(pair),
        seconds=seconds,
    )


def _hold_out(table: TransactionTable, plan: TransactionPlan) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Places of the transactions to sanitize and of those held out; all of a person are on one side."""
    places = np.arange(len(table.transactions))
    if plan.holdout is None:
        return places, None
    units = places if table.persons is None else table.persons
    out = hold_out(units, plan.holdout, plan.randomness.generator("holdout"))
    return places[~out], places[out]


def _with_items(table: TransactionTable, remaining: NDArray[np.bool_]) -> TransactionTable:
    """The table with some of the items alone: what only transactions outside hold does not leave."""
    places = np.cumsum(remaining) - 1
    transactions = table.transactions.having(remaining[table.transactions.items])
    items = places[transactions.items].astype(np.int32)
    labels = tuple(label for label, stays in zip(table.labels, remaining, strict=True) if stays)
    return dataclasses.replace(table, transactions=Transactions(items, transactions.starts, len(labels)), labels=labels)


def _around(
    table: TransactionTable, inside: TransactionTable, outside: NDArray[np.int64] | None, plan: TransactionPlan
) -> tuple[Fact, ...]:
    facts: list[Fact] = [
        RandomnessSource(plan.randomness.mode.value, plan.randomness.algorithm),
        ColumnsDropped(table.dropped, ()),
    ]
    if outside is not None:
        facts.append(HeldOut(len(outside)))
    if inside.persons is not None:
        each = np.unique(inside.persons, return_counts=True)[1]
        facts.append(TransactionPersons(len(each), int(each.max())))
    return tuple(facts)


TRANSACTION_METHODS: dict[str, type[TransactionRandomization | RuleHiding | RuleBlocking]] = {
    "randomize-transactions": TransactionRandomization,
    "hide-rules": RuleHiding,
    "block-rules": RuleBlocking,
}


def make_transaction_mechanism(method: str, parameters: Mapping[str, Any]) -> TransactionMechanism:
    """Mechanism of a method with these parameters; those that are None are left to its defaults."""
    if method not in TRANSACTION_METHODS:
        raise OptionError(
            f"there is no method for transactions of that name; choose one of {', '.join(TRANSACTION_METHODS)}"
        )
    entries = {name: value for name, value in parameters.items() if value is not None}
    if not entries.keys() <= {field.name for field in dataclasses.fields(TRANSACTION_METHODS[method])}:
        raise OptionError(f"an option of {method!r} is not known; its docstring lists them")
    return TRANSACTION_METHODS[method](**entries)
