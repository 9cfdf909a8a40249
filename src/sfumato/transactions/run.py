"""Transactions in memory, from a plan to an outcome."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.report import Report
from sfumato.core.errors import OptionError, TableError
from sfumato.core.facts import ColumnsDropped, Drawn, Fact, HeldOut, Shuffled
from sfumato.core.itemsets import Transactions
from sfumato.core.randomness import Randomness
from sfumato.engines.outcome import Outcome, Recipe
from sfumato.options import RunOptions
from sfumato.tables.persons import hold_out
from sfumato.transactions.facts import TransactionPersons
from sfumato.transactions.measures import TransactionPair, assess_transactions
from sfumato.transactions.mechanism import TransactionMechanism, TransactionRule, read_rules
from sfumato.transactions.table import TransactionTable
from sfumato.version import __version__

__all__ = ["TransactionPlan", "run_transactions"]

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
        return assess_transactions(self.pair, facts, judged=judged, rng=rng)


def run_transactions(table: TransactionTable, plan: TransactionPlan) -> Outcome:
    """Hold transactions out, run the mechanism, and shuffle what came of it."""
    kept, outside = _hold_out(table, plan)
    inside = table.take(kept)
    inside = _with_items(inside, inside.transactions.counts > 0) if plan.items is None else inside.over(plan.items)
    if len(kept) < _FEWEST:
        raise TableError(f"{len(kept)} transactions are left, too few to hide one among; add more")
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
            f"the released transactions hold {grown:.0f} times as many entries, nearly all of them made up; if "
            "there are this many items, leave --operator and --insert to what is usual, or take a smaller --insert",
            stacklevel=3,
        )
    order = plan.randomness.generator("shuffle").permutation(len(kept))
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
        rows_in=len(kept),
        rows_out=len(kept),
        schema=schema,
        facts=(*_around(table, inside, outside, plan), *done.facts, released.counted(), Shuffled(len(kept))),
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


def _with_items(table: TransactionTable, kept: NDArray[np.bool_]) -> TransactionTable:
    """The table with some of the items alone: what only transactions outside hold does not leave."""
    places = np.cumsum(kept) - 1
    transactions = table.transactions.having(kept[table.transactions.items])
    items = places[transactions.items].astype(np.int32)
    labels = tuple(label for label, stays in zip(table.labels, kept, strict=True) if stays)
    return dataclasses.replace(table, transactions=Transactions(items, transactions.starts, len(labels)), labels=labels)


def _around(
    table: TransactionTable, inside: TransactionTable, outside: NDArray[np.int64] | None, plan: TransactionPlan
) -> tuple[Fact, ...]:
    facts: list[Fact] = [
        Drawn(plan.randomness.mode.value, plan.randomness.algorithm),
        ColumnsDropped(table.dropped, ()),
    ]
    if outside is not None:
        facts.append(HeldOut(len(outside)))
    if inside.persons is not None:
        each = np.unique(inside.persons, return_counts=True)[1]
        facts.append(TransactionPersons(len(each), int(each.max())))
    return tuple(facts)
