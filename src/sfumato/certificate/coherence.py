"""Facts that cannot all be true bear no claim: counts against counts, names against names, one way of making rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TypeVar

from sfumato.certificate.modified import columns_agree, is_modified, modified_names
from sfumato.certificate.transactions import is_possible_transaction_fact, transactions_agree
from sfumato.core.distributions.accounting import rho_of
from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import (
    Aggregated,
    Alike,
    Blocked,
    BoundsKept,
    Celled,
    Chained,
    ClassPure,
    ColumnRulesKept,
    ColumnsDropped,
    ComponentNoise,
    CountsKept,
    DatesCoarsened,
    DespitePolicy,
    DomainsObserved,
    Downgraded,
    Drawn,
    Enhanced,
    EpochPublished,
    Fact,
    Grouped,
    Joint,
    Maintained,
    Noised,
    Opened,
    PersonRowsBounded,
    PersonsApart,
    PersonsBounded,
    PersonsLinked,
    PrivatelyMeasured,
    Randomized,
    RareValues,
    RowsDrawn,
    RowsKept,
    RulesBlocked,
    RulesHidden,
    Sampled,
    Scored,
    Shuffled,
    ShuffledWithin,
    Stratified,
    Swapped,
    Synthesized,
    TailsCoded,
    TargetMoved,
    TransactionPersons,
    TransactionsRandomized,
    TransactionsReleased,
    Transformed,
    Unchanged,
    UnlabelledRows,
    Unmeasured,
    Untouched,
    WeightsScaled,
)

__all__ = ["check_facts"]

F = TypeVar("F", bound=Fact)

_SEVERAL = (EpochPublished, Opened, Randomized)  # a line each; all other facts stand once
_TRANSACTIONS = (TransactionsRandomized, RulesBlocked, RulesHidden)
_MODIFIED = (Blocked, Downgraded, Sampled, Swapped)  # rows stay rows, and other cells stay as they are
_OF_RECORDS = (*_TRANSACTIONS, *_MODIFIED, Maintained, Noised, Randomized, Transformed)
_WAYS = (*_OF_RECORDS, Chained, ComponentNoise, PrivatelyMeasured, Synthesized)
_WITHOUT_GROUPS = {*_OF_RECORDS, Chained, PrivatelyMeasured}
_WITHOUT_ROWS = {*_OF_RECORDS, ComponentNoise}  # synthetic rows, whose weights are scaled
_TINY = 3
_WORDS: dict[type[Fact], dict[str, frozenset[str]]] = {
    Drawn: {"mode": frozenset({"release", "dry-run"}), "generator": frozenset({"ChaCha20", "PCG64"})},
    Synthesized: {
        "statistics": frozenset({"mean and covariance"}),
        "law": frozenset({"uniform along eigenvectors"}),
    },
    Noised: {
        "law": frozenset({"gaussian", "uniform", "laplace"}),
        "kind": frozenset({"additive", "multiplicative"}),
    },
    ComponentNoise: {"law": frozenset({"laplace"}), "guarantee": frozenset({"component", "record"})},
    Maintained: {"split": frozenset({"paper", "strict"})},
    Joint: {"centres": frozenset({"", "last", "each"}), "noise": frozenset({"", "each", "split"})},
    DespitePolicy: {"outcome": frozenset({"does-not-meet", "inconclusive"})},
    RareValues: {"way": frozenset({"pool", "lift", "keep"})},
    TailsCoded: {"method": frozenset({"code", "smooth", "keep"})},
    TransactionsRandomized: {"operator": frozenset({"flip", "uniform", "cut-and-paste", "select-a-size"})},
    RulesHidden: {"strategy": frozenset({"consequent", "antecedent", "itemsets"})},
    Opened: {"action": frozenset({"opened", "sum", "told"})},
}
"""Texts of facts that sentences are made of: no others are known here."""


def check_facts(facts: Sequence[Fact]) -> None:
    """Refuse facts that contradict each other or themselves.

    Raises
    ------
    PrivacyRefusal
        Naming the fact, and never what it holds.
    """
    kinds = [type(fact) for fact in facts]
    twice = [kind for kind in kinds if kind not in _SEVERAL and kinds.count(kind) > 1]
    if twice:
        raise PrivacyRefusal(f"the fact {twice[0].fact!r} occurs twice, so nothing can be certified")
    for fact in facts:
        if not _is_possible(fact):
            raise PrivacyRefusal(f"the fact {fact.fact!r} contradicts itself, so nothing can be certified")
    if len({kind for kind in kinds if kind in _WAYS}) > 1 or {Shuffled, ShuffledWithin} <= set(kinds):
        raise PrivacyRefusal("the facts describe two methods or two orders of the rows, so nothing can be certified")
    if set(kinds) & {Alike, Unchanged} and set(kinds) & ({Grouped, RareValues, *_WAYS} - {*_MODIFIED}):
        raise PrivacyRefusal("the facts state that new or recoded rows are unchanged, so nothing can be certified")
    if (Grouped in kinds and set(kinds) & _WITHOUT_GROUPS) or (WeightsScaled in kinds and set(kinds) & _WITHOUT_ROWS):
        raise PrivacyRefusal("the facts describe groups or weights that the method lacks, so nothing can be certified")
    if Synthesized in kinds and Grouped not in kinds:
        raise PrivacyRefusal("the facts describe rows drawn from groups but no groups, so nothing can be certified")
    if Scored in kinds and Synthesized not in kinds:
        raise PrivacyRefusal("the facts describe scores but no rows drawn by them, so nothing can be certified")
    if {Unmeasured, DespitePolicy} <= set(kinds):
        raise PrivacyRefusal("the facts state that nothing was measured and also a result, so nothing can be certified")
    if not transactions_agree(facts):
        raise PrivacyRefusal("the facts contradict each other about transactions, so nothing can be certified")
    if not _cells_agree(facts):
        raise PrivacyRefusal("the facts contradict each other about cells, so nothing can be certified")
    if not _persons_agree(facts):
        raise PrivacyRefusal("the facts contradict each other about persons, so nothing can be certified")
    if not _names_agree(facts):
        raise PrivacyRefusal("the facts contradict each other about a column, so nothing can be certified")
    if not _counts_agree(facts):
        raise PrivacyRefusal("the facts contradict each other about the number of rows, so nothing can be certified")


def _cells_agree(facts: Sequence[Fact]) -> bool:
    """Tell whether there are groups or leaves to cut apart, at least one in each cell, the smallest in any of them."""
    cut = _all(Celled, facts)
    if not cut:
        return True
    parted = [(fact.groups, fact.smallest, fact.records) for fact in _all(Grouped, facts)]
    parted += [(min(fact.leaves), min(fact.smallest), fact.records) for fact in _all(Chained, facts)]
    return bool(parted) and all(
        1 <= cut[0].cells <= parts and smallest <= cut[0].smallest and cut[0].cells * cut[0].smallest <= records
        for parts, smallest, records in parted
    )


def _is_possible(fact: Fact) -> bool:
    words = _WORDS.get(type(fact), {})
    if any(getattr(fact, name) not in known for name, known in words.items()):
        return False
    counts = [getattr(fact, field.name) for field in dataclasses.fields(fact) if field.type in ("int", "int | None")]
    return all(count is None or count >= 0 for count in counts) and _agrees_with_itself(fact)


def _is_accounted(fact: PrivatelyMeasured) -> bool:
    """Tell whether the budget gives the stated epsilon, and the steps stay within it."""
    known = fact.epsilon > 0 and 0 < fact.delta < 1 and fact.columns >= 1 and len(fact.steps) == len(fact.spent) > 0
    return (
        known
        and 0 <= fact.thresholds < fact.delta
        and 0 < fact.rho <= rho_of(fact.epsilon, fact.delta - fact.thresholds)
        and all(rho > 0 for rho in fact.spent)
        and math.fsum(fact.spent) <= fact.rho * (1 + 1e-9)
        and _are_levels(fact)
        and bool(fact.dataset) == (fact.dataset_epsilon is not None) == (fact.dataset_delta is not None)
    )


def _are_levels(fact: PrivatelyMeasured) -> bool:
    """Tell whether nobody's weight gives them more than their epsilon."""
    paired = len(fact.epsilons) == len(fact.weights) and bool(fact.epsilons) == bool(fact.level_rule)
    return paired and all(
        0 < epsilon <= fact.epsilon
        and 0 < weight <= 64
        and (weight / 64) ** 2 * fact.rho <= rho_of(epsilon, fact.delta - fact.thresholds) * (1 + 1e-9)
        for epsilon, weight in zip(fact.epsilons, fact.weights, strict=True)
    )


def _agrees_with_itself(fact: Fact) -> bool:
    match fact:
        case Drawn():
            return (fact.mode == "release") == (fact.generator == "ChaCha20")
        case Grouped():
            return _are_groups(fact)
        case Chained():
            return _is_chain(fact)
        case Scored():
            return fact.columns >= 1 and fact.k >= 2
        case Maintained():
            return (
                fact.k >= 1
                and fact.groups >= max(1, fact.pseudo, fact.short, fact.tiny)
                and fact.smallest >= 1
                and (fact.smallest <= _TINY) == (fact.tiny > 0)
                and (fact.smallest < fact.k) <= (fact.short > 0)
            )
        case PrivatelyMeasured():
            return _is_accounted(fact)
        case Noised():
            return fact.size > 0 and fact.grid > 0 and fact.columns >= 1
        case Enhanced():
            return 0 < fact.share <= 1 and fact.rows >= 1
        case ComponentNoise():
            return fact.scale > 0 and fact.components >= 1 and 0 < fact.rho1 < 1 and fact.grid > 0
        case TransactionsRandomized() | TransactionsReleased() | TransactionPersons() | RulesBlocked() | RulesHidden():
            return is_possible_transaction_fact(fact)
        case Untouched() | CountsKept():
            return fact.category_columns + fact.missing_columns > 0
        case BoundsKept():
            return bool(fact.columns)
        case WeightsScaled():
            return fact.total > 0 and fact.step > 0
        case DatesCoarsened():
            return bool(fact.columns) and len(set(fact.columns)) == len(fact.columns)
        case ColumnRulesKept():
            return bool(fact.rules) and len(set(fact.rules)) == len(fact.rules)
        case RareValues():
            few = bool(fact.dropped) and fact.way == "keep"
            return fact.k >= 2 and not few and len(set(fact.dropped)) == len(fact.dropped)
        case TailsCoded():
            return fact.k >= 2 and fact.columns >= 1
        case Transformed():
            return bool(fact.columns) and bool(fact.operations) and set(fact.operations) <= {"add", "mult", "rotate"}
        case Swapped() | Sampled() | Aggregated() | Alike() | Unchanged() | Blocked() | Downgraded():
            return is_modified(fact)
        case PersonRowsBounded():
            return fact.most >= 1
        case PersonsLinked():
            return min(fact.most, fact.persons) >= 1 and len(set(fact.constant)) == len(fact.constant)
        case RowsKept():
            return not (fact.forgotten and fact.rows)
        case ClassPure():
            return fact.classes >= 1 and (
                fact.size == fact.unit == 0 or (fact.size >= fact.unit >= 1 and fact.size % fact.unit == 0)
            )
        case UnlabelledRows():
            return fact.k >= 2
        case RowsDrawn():
            return min(fact.records, fact.rows) >= 1
        case Stratified():
            return fact.strata >= 1
        case _:
            return True


def _are_groups(fact: Grouped) -> bool:
    """Tell whether such groups can be: their number, sizes and levels, and those that hide nobody."""
    return (
        fact.groups >= 1
        and fact.groups * fact.smallest <= fact.records
        and fact.alone <= fact.tiny <= fact.groups
        and (fact.smallest == 1) == (fact.alone > 0)
        and (fact.smallest <= _TINY) == (fact.tiny > 0)
        and fact.alone <= fact.alike <= fact.records
    )


def _is_chain(fact: Chained) -> bool:
    """Tell whether such leaves can be, of columns that each stand once."""
    per_column = (fact.leaves, fact.smallest, fact.alike)
    return (
        bool(fact.columns)
        and len(set(fact.columns)) == len(fact.columns)
        and set(fact.regressed) <= set(fact.columns if fact.twice else fact.columns[1:])
        and len(set(fact.regressed)) == len(fact.regressed)
        and fact.twice in ((), fact.columns[-1:])
        and set(fact.twice) <= set(fact.regressed)
        and all(len(counts) == len(fact.columns) for counts in per_column)
        and all(
            0 <= alike <= leaves and leaves >= 1 and smallest >= 1 and leaves * smallest <= fact.records
            for leaves, smallest, alike in zip(*per_column, strict=True)
        )
        and 2 <= fact.k <= fact.records
        and (fact.violations > 0 or fact.leaf <= min(fact.smallest))
        and fact.leaf <= fact.records
        and fact.kept + fact.moved <= fact.rows * len(fact.columns)
    )


def _all(kind: type[F], facts: Sequence[Fact]) -> list[F]:
    return [fact for fact in facts if isinstance(fact, kind)]


def _persons_agree(facts: Sequence[Fact]) -> bool:
    """Tell whether persons are counted in groups or leaves that rows were drawn from, no more of them than records.

    A leaf that is the only one of its column holds them all.
    """
    apart, bounded = _all(PersonsApart, facts), _all(PersonsBounded, facts)
    grouped, chained = _all(Grouped, facts), _all(Chained, facts)
    drawn = bool(_all(Synthesized, facts))
    in_groups = not apart or (
        drawn and all(fact.smallest <= apart[0].persons <= fact.records for fact in grouped) and bool(grouped)
    )
    in_leaves = not bounded or all(max(fact.smallest) <= bounded[0].persons <= fact.records for fact in chained)
    whole = [bounded[0].persons if bounded else fact.records for fact in chained]
    lone = all(
        smallest == all_of_them
        for fact, all_of_them in zip(chained, whole, strict=True)
        for leaves, smallest in zip(fact.leaves, fact.smallest, strict=True)
        if leaves == 1
    )
    counted = in_groups and in_leaves and lone and (not bounded or bool(chained))
    return counted and _links_agree(facts) and _rows_agree(facts)


def _rows_agree(facts: Sequence[Fact]) -> bool:
    """Tell whether rows of persons are bounded in a stream, whose levels are then as many times what was asked."""
    bounded, kept = _all(PersonRowsBounded, facts), _all(Maintained, facts)
    return not bounded or (len(kept) == 1 and not kept[0].k % bounded[0].most and not _all(RowsKept, facts))


def _links_agree(facts: Sequence[Fact]) -> bool:
    """Tell whether released persons are as many as those whose records were grouped, one row for each record."""
    linked, apart = _all(PersonsLinked, facts), _all(PersonsApart, facts)
    rows = [fact.records for fact in _all(Grouped, facts)]
    return not linked or (
        [fact.persons for fact in apart] == [linked[0].persons]
        and not _all(RowsDrawn, facts)
        and not _all(ClassPure, facts)
        and all(linked[0].persons + linked[0].most - 1 <= count <= linked[0].persons * linked[0].most for count in rows)
    )


def _names_agree(facts: Sequence[Fact]) -> bool:
    """Tell whether no column is both dropped and released, and none randomized or moved twice."""
    randomized = [fact.column for fact in _all(Randomized, facts)]
    moved = [name for fact in _all(Transformed, facts) for name in fact.columns]
    named = {fact.column for fact in facts if isinstance(fact, ClassPure | Stratified | TargetMoved | UnlabelledRows)}
    observed = {name for fact in _all(DomainsObserved, facts) for name in fact.columns}
    named |= {name for fact in _all(BoundsKept, facts) for name in fact.columns}
    chained = {name for fact in _all(Chained, facts) for name in fact.columns}
    if chained and not named <= chained:
        return False
    named |= chained  # a column that a rule makes is none of these
    named |= {fact.column for fact in _all(WeightsScaled, facts)}
    named |= {name for fact in _all(PersonsLinked, facts) for name in (fact.column, *fact.constant)}
    named |= {name for fact in _all(DatesCoarsened, facts) for name in fact.columns} | modified_names(facts)
    dropped = {name for fact in _all(ColumnsDropped, facts) for name in fact.names}
    few = {name for fact in _all(RareValues, facts) for name in fact.dropped}
    if few & dropped:
        return False
    dropped |= few
    return (
        columns_agree(facts)
        and not dropped & (named | observed | {*randomized, *moved})
        and len(set(randomized)) == len(randomized)
        and len(set(moved)) == len(moved)
        and (not randomized or observed <= set(randomized))
        and (not moved or {fact.column for fact in _all(TargetMoved, facts)} <= set(moved))
    )


def _counts_agree(facts: Sequence[Fact]) -> bool:
    """Tell whether all facts have the same rows, and records; and both are equal unless other rows were asked for."""
    records = {fact.records for fact in facts if isinstance(fact, Grouped | Chained | Sampled)}
    counted = Synthesized | Chained | Shuffled | Swapped | Sampled | Alike | Blocked | Downgraded
    rows = {fact.rows for fact in facts if isinstance(fact, counted)}
    rows |= {fact.rows for fact in _all(EpochPublished, facts)[-1:]}
    rows |= {fact.transactions for fact in _all(TransactionsReleased, facts)}
    asked = _all(RowsDrawn, facts)
    if not asked and _all(Sampled, facts):
        return len(rows) == 1
    if not asked:
        return len(records | rows) <= 1
    made = any(isinstance(fact, Synthesized | Chained) for fact in facts)
    made = made and (not asked[0].where or any(isinstance(fact, Chained) for fact in facts))
    return made and records == {asked[0].records} and rows == {asked[0].rows}
