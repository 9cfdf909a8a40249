"""Check the entries of a certificate against its facts: claims, levels, rows, method and parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.certificate.certificate import Certificate
from sfumato.certificate.claims import draw_claims
from sfumato.certificate.coherence import check_facts
from sfumato.certificate.modified import modified_names
from sfumato.certificate.statements import counted
from sfumato.core.documents import fits, write_json
from sfumato.core.errors import SfumatoError
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
    FormulaTexts,
    Grouped,
    HeldOut,
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
from sfumato.tables.levels import parse_conditions

if TYPE_CHECKING:
    from sfumato.parties.plan import JointPlan

__all__ = ["Check", "agreement_checks", "are_possible", "columns_check", "unfit_method"]

_CLAIMS, _LEVELS = "claims follow from facts", "privacy levels met"


@dataclass(frozen=True)
class Check:
    """One check of a release; ``checked`` is False if the check could not be made."""

    name: str
    holds: bool
    detail: str
    checked: bool = True


def agreement_checks(certificate: Certificate) -> list[Check]:
    """Compare every part of a certificate with its facts."""
    unfit = unfit_method(certificate.method, certificate.parameters, certificate.facts)
    detail = f"{certificate.method} with {counted(len(certificate.parameters), 'parameter', 'parameters')}"
    method = Check("method follows from facts", unfit is None, unfit or detail)
    return [_claims(certificate), _levels(certificate), method]


def are_possible(facts: Sequence[Fact]) -> bool:
    """Whether no fact contradicts itself or another, so that a table can be checked against them."""
    try:
        check_facts(facts)
    except SfumatoError:
        return False
    return True


def columns_check(certificate: Certificate, names: Sequence[str]) -> Check:
    """Compare the columns that facts name, drop and count with those of the table."""
    released = set(names)
    named, dropped = set(_named(certificate)), set[str]()
    for fact in certificate.facts:
        if isinstance(fact, ColumnsDropped):
            dropped.update(fact.names)
        elif isinstance(fact, RareValues):
            dropped.update(fact.dropped)
    most = max(_column_counts(certificate), default=0)
    detail = (
        f"the table has {counted(len(named), 'named column', 'named columns')} and none of {len(dropped)} dropped ones"
    )
    if not named <= released:
        detail = f"{counted(len(named - released), 'column', 'columns')} in the facts but not in the table"
    elif dropped & released:
        detail = f"{counted(len(dropped & released), 'dropped column is', 'dropped columns are')} in the table"
    elif most > len(names):
        detail = f"the facts count {most} columns, the table has {len(names)}"
    return Check("columns in facts", named <= released and not dropped & released and most <= len(names), detail)


def _named(certificate: Certificate) -> Iterator[str]:
    for fact in certificate.facts:
        if isinstance(fact, ClassPure | Randomized | Stratified | TargetMoved | WeightsScaled):
            yield fact.column
        elif isinstance(fact, PersonsLinked):
            yield from (fact.column, *fact.constant)
        elif isinstance(fact, BoundsKept | Chained | DatesCoarsened | DomainsObserved | Transformed):
            yield from fact.columns
    yield from modified_names(certificate.facts)


def _column_counts(certificate: Certificate) -> Iterator[int]:
    for fact in certificate.facts:
        if isinstance(fact, CountsKept | Maintained | Untouched):
            yield from (fact.category_columns, fact.missing_columns)
        elif isinstance(fact, Noised):
            yield fact.columns


def _claims(certificate: Certificate) -> Check:
    wrong = Check(_CLAIMS, False, "the claims do not follow from the facts")
    if [fact.mode for fact in certificate.facts if isinstance(fact, Drawn)] != [certificate.randomness]:
        return wrong
    try:
        check_facts(certificate.facts)
        claims, refused = draw_claims(certificate.facts)
    except SfumatoError:
        return Check(_CLAIMS, False, "the facts contradict each other or are unknown")
    if (claims, refused) != (certificate.claims, certificate.refused):
        return wrong
    return Check(
        _CLAIMS,
        True,
        f"{len(claims)} claims and {len(refused)} refused claims follow from {len(certificate.facts)} facts",
    )


def _levels(certificate: Certificate) -> Check:
    """Compare the counts of records, groups and rows: as many rows as records unless others were asked for."""
    rows = {certificate.rows_out}
    with_rows = Alike | Blocked | Chained | Downgraded | Sampled | Shuffled | Swapped | Synthesized
    rows |= {fact.rows for fact in certificate.facts if isinstance(fact, with_rows)}
    if any(isinstance(fact, PrivatelyMeasured) for fact in certificate.facts):
        return _levels_check(certificate.rows_in is None and len(rows) == 1, "this method makes no groups")
    records = {certificate.rows_in}
    records |= {fact.records for fact in certificate.facts if isinstance(fact, Chained | Grouped | Sampled)}
    asked = [fact for fact in certificate.facts if isinstance(fact, RowsDrawn)]
    agree = len(records | rows) == 1
    if any(isinstance(fact, Sampled) for fact in certificate.facts):
        agree = len(records) == len(rows) == 1
    if asked:
        agree = records == {asked[0].records} and rows == {asked[0].rows}
    chained = next((fact for fact in certificate.facts if isinstance(fact, Chained)), None)
    if chained is not None:
        smallest = min(chained.smallest, default=0)
        holds = agree and chained.violations == 0 and chained.leaf <= smallest
        return _levels_check(holds, f"{counted(sum(chained.leaves), 'leaf', 'leaves')}, the smallest with {smallest}")
    kept = next((fact for fact in certificate.facts if isinstance(fact, Maintained)), None)
    if kept is not None:
        rows |= {fact.rows for fact in [fact for fact in certificate.facts if isinstance(fact, EpochPublished)][-1:]}
        detail = (
            f"levels of at least {kept.k}; {counted(kept.groups, 'group', 'groups')}, the smallest with {kept.smallest}"
            f"; {kept.pseudo} split off from statistics, {kept.short} smaller than a level inside"
        )
        return _levels_check(agree and len(rows) == 1 and kept.groups * kept.smallest <= certificate.rows_out, detail)
    fact = next((fact for fact in certificate.facts if isinstance(fact, Grouped)), None)
    if fact is None:
        return _levels_check(agree, "this method makes no groups")
    holds = agree and fact.violations == 0 and fact.groups * fact.smallest <= fact.records
    return _levels_check(holds, f"{counted(fact.groups, 'group', 'groups')}, the smallest with {fact.smallest}")


def _levels_check(holds: bool, detail: str) -> Check:
    return Check(_LEVELS, holds, detail if holds else "the numbers of records, groups and rows contradict each other")


Kinds = tuple[type[Fact], ...]
F = TypeVar("F", bound=Fact)

_AROUND: Kinds = (Drawn, ColumnsDropped)
_OF_ANY: Kinds = (FormulaTexts, UnlabelledRows, Unmeasured, DespitePolicy, DatesCoarsened, Aggregated)
_GROUPS: Kinds = (HeldOut, Stratified, CountsKept)
_DRAWN: Kinds = (*_GROUPS, Celled, ColumnRulesKept, PersonsApart, RareValues, RowsDrawn, TailsCoded, WeightsScaled)
_CONDENSED: tuple[Kinds, Kinds] = ((Grouped, Synthesized, Shuffled), (*_DRAWN, PersonsLinked, Scored))
_MOVED: tuple[Kinds, Kinds] = ((Transformed,), (Shuffled, ShuffledWithin, Untouched, Enhanced, TargetMoved, HeldOut))
_TRANSACTIONS: Kinds = (TransactionsReleased, Shuffled)
_STATED: dict[str, tuple[Kinds, Kinds]] = {
    "condense": _CONDENSED,
    "condense-paper": _CONDENSED,
    "classwise": ((ClassPure, Grouped, Synthesized, Shuffled), _DRAWN),
    "chain": (
        (Chained, Shuffled),
        (
            Celled,
            HeldOut,
            Stratified,
            ColumnRulesKept,
            PersonsBounded,
            RareValues,
            RowsDrawn,
            TailsCoded,
            WeightsScaled,
        ),
    ),
    "laplace-pca": ((Grouped, ComponentNoise, Shuffled), (*_GROUPS, BoundsKept, RareValues)),
    "private": ((PrivatelyMeasured, Shuffled), (ColumnRulesKept,)),
    "noise": ((Noised, Shuffled), (Enhanced, Untouched, HeldOut, BoundsKept)),
    "translate": _MOVED,
    "scale": _MOVED,
    "rotate": _MOVED,
    "hybrid": _MOVED,
    "randomize": ((Randomized, Shuffled), (DomainsObserved, Untouched, HeldOut)),
    "randomize-transactions": ((TransactionsRandomized, *_TRANSACTIONS), (TransactionPersons, HeldOut)),
    "hide-rules": ((RulesHidden, *_TRANSACTIONS), (TransactionPersons, HeldOut)),
    "block-rules": ((RulesBlocked, *_TRANSACTIONS), (TransactionPersons, HeldOut)),
    "swap": ((Swapped, Shuffled), (Unchanged, HeldOut)),
    "subsample": ((Sampled, Unchanged, Shuffled), (HeldOut,)),
    "aggregate": ((Aggregated, Unchanged, Alike, Shuffled), (HeldOut,)),
    "block": ((Blocked, Alike, Unchanged, Shuffled), (HeldOut,)),
    "downgrade": ((Downgraded, Shuffled), (Unchanged, HeldOut)),
    "stream": (
        (Maintained, EpochPublished, Shuffled),
        (RowsKept, PersonRowsBounded, RareValues, Stratified, TailsCoded),
    ),
    "joint-laplace-pca": ((Grouped, ComponentNoise, Shuffled, Joint, Opened), (CountsKept, BoundsKept, TailsCoded)),
}
"""For each method, the facts that it always states and those that it may state."""

_CLOSE = 1e-6  # of an epsilon on a grid


def unfit_method(method: str, parameters: dict[str, Any], facts: Sequence[Fact]) -> str | None:
    """Give the reason why a method with these parameters cannot have stated the facts; None if it can.

    What the facts do not cover must be a parameter of the method, with a value that it takes.
    """
    if method not in _STATED:
        return "this version does not know the method"
    always, at_times = _STATED[method]
    kinds = {type(fact) for fact in facts}
    if not {*_AROUND, *always} <= kinds or not kinds <= {*_AROUND, *_OF_ANY, *always, *at_times}:
        return "the facts are not those of the method"
    if always == _MOVED[0] and not kinds & {Shuffled, ShuffledWithin}:
        return "no fact states the order of the rows"
    try:
        fits = _fits(method, parameters, facts)
    except (SfumatoError, ArithmeticError, KeyError, TypeError, ValueError):
        fits = False  # values that no such method takes
    return None if fits else "the facts do not match the parameters"


def _fits(method: str, parameters: dict[str, Any], facts: Sequence[Fact]) -> bool:
    if method == "stream":
        return _fits_stream(parameters, facts)
    if method == "joint-laplace-pca":
        return _fits_joint(parameters, facts)
    if TransactionsReleased in _STATED[method][0]:
        return _fits_transactions(method, parameters, facts)
    from sfumato.methods.catalogue import make_mechanism

    mechanism = make_mechanism(method, parameters)
    if mechanism.method != method or not _is_told(mechanism, parameters):
        return False
    if not _fits_rare(mechanism, facts):
        return False
    match method:
        case "condense" | "condense-paper" | "classwise":
            return _fits_groups(mechanism, facts)
        case "chain":
            return _fits_chain(mechanism, facts)
        case "laplace-pca":
            return _fits_components(mechanism, facts)
        case "noise":
            return _fits_noise(mechanism, facts)
        case "private":
            measured = _the(PrivatelyMeasured, facts)
            return (measured.epsilon, measured.delta) == (parameters["epsilon"], parameters["delta"])
        case "randomize":
            return _fits_specs(mechanism, facts)
        case "swap" | "subsample" | "aggregate" | "block" | "downgrade":
            return fits_modified(mechanism, facts)
        case _:
            return _fits_key(mechanism, facts)


def _the(kind: type[F], facts: Sequence[Fact]) -> F:
    (fact,) = (fact for fact in facts if isinstance(fact, kind))
    return fact


def _all(kind: type[F], facts: Sequence[Fact]) -> list[F]:
    return [fact for fact in facts if isinstance(fact, kind)]


def _is_told(mechanism: Any, parameters: dict[str, Any]) -> bool:
    """Tell whether the parameters are all that the mechanism has, each of its type and as it keeps them."""
    told = write_json(mechanism, "canonical") == write_json(parameters, "canonical")
    return told and fits(type(mechanism), parameters)


def _fits_rare(mechanism: Any, facts: Sequence[Fact]) -> bool:
    """Tell whether rare values and tails are counted by at least as many persons as the method asks for.

    If a chain takes a larger k for a small table, its cut-offs stay those of its default k.
    """
    from sfumato.methods.chain import Chain

    least = mechanism.traits.floor if mechanism.traits.min_frequency is None else mechanism.traits.min_frequency
    limits = {RareValues: least, TailsCoded: least}
    if isinstance(mechanism, Chain) and least is not None:
        limits[TailsCoded] = min(least, Chain.k)
    counted = [fact for fact in facts if isinstance(fact, RareValues | TailsCoded)]
    return all((limit := limits[type(fact)]) is not None and fact.k >= limit for fact in counted)


def _fits_groups(mechanism: Any, facts: Sequence[Fact]) -> bool:
    from sfumato.methods.condense import ALGORITHMS

    grouped = _the(Grouped, facts)
    if _all(Scored, facts) and mechanism.scores != "normal":
        return False
    known = {ALGORITHMS[mechanism.grouping]} if mechanism.grouping is not None else set(ALGORITHMS.values())
    algorithm = grouped.algorithm
    if mechanism.method == "classwise":
        algorithm = algorithm.removeprefix("class-wise: ")
        if algorithm == grouped.algorithm:
            return False
        pure = _the(ClassPure, facts)
        if bool(pure.size) == (mechanism.k is not None) or grouped.smallest < pure.size:
            return False
        if mechanism.grouping is None:
            algorithm = algorithm.removesuffix(", chosen by trial")
    return algorithm in known and grouped.smallest >= int(mechanism.traits.floor)


def _fits_chain(mechanism: Any, facts: Sequence[Fact]) -> bool:
    where = "".join(fact.where for fact in _all(RowsDrawn, facts))
    named = dict.fromkeys(name for name, _, _ in parse_conditions(where))
    chained, head = _the(Chained, facts), tuple(dict.fromkeys([*named, *(mechanism.order or ())]))
    return bool(
        chained.k >= mechanism.k
        and chained.leaf == max(mechanism.leaf, mechanism.k)
        and chained.columns[: len(head)] == head
    )


def _fits_components(mechanism: Any, facts: Sequence[Fact]) -> bool:
    from sfumato.methods.perturb.laplace_pca import ALGORITHMS, USUAL_K, USUAL_RHO1

    grouped, noise = _the(Grouped, facts), _the(ComponentNoise, facts)
    told = dataclasses.replace(
        noise,
        law="laplace",
        scale=mechanism.scale(noise.components),
        guarantee=mechanism.guarantee,
        rho1=USUAL_RHO1 if mechanism.rho1 is None else mechanism.rho1,
        grid=mechanism.grid,
    )
    if told != noise or grouped.algorithm != ALGORITHMS[mechanism.grouping]:
        return False
    if mechanism.groups is not None:
        return bool(grouped.smallest >= grouped.records // mechanism.groups)
    return grouped.smallest >= (USUAL_K if mechanism.k is None else mechanism.k)


def _fits_noise(mechanism: Any, facts: Sequence[Fact]) -> bool:
    noised = _the(Noised, facts)
    told = dataclasses.replace(
        noised,
        law=mechanism.law,
        kind=mechanism.kind,
        size=mechanism.size,
        correlated=mechanism.correlated,
        grid=mechanism.grid,
    )
    passed = [fact for fact in _all(Untouched, facts) if fact.category_columns]
    return told == noised and _is_enhanced(mechanism.enhance, facts) and (mechanism.pass_categories or not passed)


def _is_enhanced(share: float, facts: Sequence[Fact]) -> bool:
    """Tell whether as many rows got noise on top as a share says, or none did."""
    rows = _the(Shuffled, facts).rows if share else 0
    return _all(Enhanced, facts) == ([Enhanced(share, min(rows, max(1, round(share * rows))))] if share else [])


def _fits_key(mechanism: Any, facts: Sequence[Fact]) -> bool:
    moved = _the(Transformed, facts)
    passed = [fact for fact in _all(Untouched, facts) if fact.category_columns]
    return (
        set(moved.operations) <= set(mechanism.operations)
        and moved.exact_digits == mechanism.exact_digits
        and all(fact.column in moved.columns for fact in _all(TargetMoved, facts))
        and _is_enhanced(mechanism.enhance, facts)
        and (mechanism.pass_categories or not passed)
    )


def _fits_specs(mechanism: Any, facts: Sequence[Fact]) -> bool:
    named, columns = dict(mechanism.specs), _all(Randomized, facts)
    most = mechanism.epsilon
    for fact in columns:
        spec = named.pop(fact.column, None)
        if spec is not None and spec != fact.spec:
            return False
        if spec is None and (most is None or fact.epsilon is None or fact.epsilon > most * (1 + _CLOSE)):
            return False
    return (
        not named
        and (mechanism.allow_observed or not _all(DomainsObserved, facts))
        and (mechanism.pass_missing or not _all(Untouched, facts))
    )


def _fits_transactions(method: str, parameters: dict[str, Any], facts: Sequence[Fact]) -> bool:
    from sfumato.transactions.methods import make_transaction_mechanism

    mechanism = make_transaction_mechanism(method, parameters)
    (fact,) = (each for each in facts if isinstance(each, TransactionsRandomized | RulesHidden | RulesBlocked))
    entries = {name: getattr(fact, name) for name in vars(fact) if name in parameters}
    if isinstance(fact, TransactionsRandomized):
        return _is_told(mechanism, parameters) and _fits_operator(fact, parameters)
    return _is_told(mechanism, parameters) and all(parameters[name] == value for name, value in entries.items())


def _fits_operator(fact: TransactionsRandomized, parameters: dict[str, Any]) -> bool:
    """Tell whether an operator is the one that was asked for, or one that is usual where none was."""
    from sfumato.transactions.randomize import USUAL

    if fact.chosen != (parameters["operator"] == "usual") or (
        fact.chosen and fact.operator not in ("flip", "select-a-size")
    ):
        return False
    entries = {**parameters, "operator": fact.operator, **(USUAL[fact.operator] if fact.chosen else {})}
    if entries["insert"] is None and fact.operator in ("cut-and-paste", "select-a-size"):
        entries["insert"] = fact.insert if fact.insert is not None and fact.insert <= 0.1 else None
    return all(entries[name] == getattr(fact, name) for name in ("operator", "keep", "insert", "cutoff", "gamma"))


def _fits_stream(parameters: dict[str, Any], facts: Sequence[Fact]) -> bool:
    from sfumato.methods.condense import ALGORITHMS

    kept, ledger = _the(Maintained, facts), _all(EpochPublished, facts)
    started = kept.algorithm.removeprefix("AY05 dynamic maintenance, started by ")
    entries = {"k": kept.k, "split": kept.split, "grouping": parameters["grouping"], "epoch": ledger[-1].epoch}
    for bounded in _all(PersonRowsBounded, facts):
        entries |= {"k": kept.k // bounded.most, "person_rows": bounded.most}
    if any(rare.k != entries["k"] for rare in _all(RareValues, facts)):
        return False
    return (
        write_json(entries, "canonical") == write_json(parameters, "canonical")
        and ALGORITHMS[parameters["grouping"]] == started != kept.algorithm
    )


def _fits_joint(parameters: dict[str, Any], facts: Sequence[Fact]) -> bool:
    from sfumato.methods.perturb.laplace_pca import LaplacePCA
    from sfumato.parties.plan import JointPlan

    joint = _the(Joint, facts)
    plan = JointPlan.from_document(parameters)
    entries = {key: value for key, value in plan.document().items() if key != "seed"}
    vertical = plan.partition == "vertical"
    return (
        all(fits(JointPlan, {key: value}) or fits(LaplacePCA, {key: value}) for key, value in parameters.items())
        and write_json(entries, "canonical") == write_json(parameters, "canonical")
        and (joint.partition, joint.parties) == (plan.partition, plan.parties)
        and joint.engine in (plan.engine, "plain")
        and (joint.centres, joint.noise) == (("", plan.noise) if vertical else (plan.centres, ""))
        and joint.rounds <= plan.rounds
        and all(_is_declared(line, plan) for line in _all(Opened, facts))
        and (vertical or plan.few == "allow" or not joint.bare)
        and _fits_components(plan.mechanism, facts)
    )


def _is_declared(line: Opened, plan: JointPlan) -> bool:
    """Whether the plan's protocol declares this disclosure, in these words and to this number of parties."""
    from sfumato.parties.plan import leaks_of

    leak = leaks_of(plan).get(line.label)
    to = line.to == plan.parties if leak is not None and leak.to == "all" else len(line.to) == 1
    return leak is not None and (line.what, line.action) == (leak.what, leak.action) and to and line.times > 0


def fits_modified(mechanism: Any, facts: Sequence[Fact]) -> bool:
    """Tell whether a modification with its parameters can have stated these facts."""
    from sfumato.methods.modify.swap import people_drawn

    for fact in facts:
        match fact:
            case Swapped() if not _fits_swap(mechanism, fact):
                return False
            case Sampled() if fact.drawn != people_drawn(mechanism.share, fact.persons):
                return False
            case Aggregated() if mechanism.method == "aggregate" and not _fits_levels(mechanism, fact):
                return False
            case Blocked() if fact.least < mechanism.k or (mechanism.columns and fact.columns != mechanism.columns):
                return False
            case Downgraded() if (fact.private, fact.limit) != (mechanism.private, mechanism.limit) or (
                mechanism.hidden == 1 and fact.hidden != fact.rows
            ):
                return False
    return True


def _fits_swap(mechanism: Any, fact: Swapped) -> bool:
    if mechanism.within != fact.within or (mechanism.columns and fact.columns != mechanism.columns):
        return False
    if fact.within == "window":
        return bool(fact.window == mechanism.window)
    return fact.smallest >= mechanism.leaf and (bool(mechanism.columns) or fact.columns == (fact.target,))


def _fits_levels(mechanism: Any, fact: Aggregated) -> bool:
    """Whether every requested column is at its level."""
    found = dict(zip(fact.columns, zip(fact.hierarchies, fact.levels, strict=True), strict=True))
    return all(
        each.column in found
        and found[each.column][1] == each.level
        and (each.hierarchy is None or found[each.column][0] == each.hierarchy)
        for each in mechanism.traits.coarsened
    )
