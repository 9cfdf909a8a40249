"""Whether what a certificate says around its facts follows from them: claims, levels, rows, method and parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sfumato.core.errors import SfumatoError
from sfumato.core.facts import (
    Alike,
    Blocked,
    BoundsKept,
    Chained,
    ClassPure,
    ColumnsDropped,
    CountsKept,
    DatesCoarsened,
    DomainsObserved,
    Downgraded,
    Drawn,
    EpochPublished,
    Grouped,
    Maintained,
    Noised,
    PersonsLinked,
    Randomized,
    RareValues,
    RowsDrawn,
    Sampled,
    Shuffled,
    Stratified,
    Swapped,
    Synthesized,
    TargetMoved,
    Transformed,
    Untouched,
    WeightsScaled,
)
from sfumato.privacy.certificate import Certificate
from sfumato.privacy.claims import draw_claims
from sfumato.privacy.modified import modified_names
from sfumato.publish.agreement_method import unfit_method

__all__ = ["Check", "agreement_checks", "columns_check"]

_CLAIMS, _LEVELS, _METHOD = "claims follow from facts", "levels met", "method follows from facts"
_COLUMNS = "columns of the facts"


@dataclass(frozen=True)
class Check:
    """One question that was asked of a release; ``checked`` is False where only asking it could be offered."""

    name: str
    holds: bool
    detail: str
    checked: bool = True


def agreement_checks(certificate: Certificate) -> list[Check]:
    """Compare every part of a certificate with its facts.

    The sentences and parameters of sfumato 0.1 are shown as that version's and not derived anew.
    """
    if not certificate.derived:
        return [_claims(certificate), _levels(certificate)]
    return [_claims(certificate), _levels(certificate), _method(certificate)]


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
    detail = f"{len(named)} columns that facts name are in the table, {len(dropped)} that were dropped are not"
    if not named <= released:
        detail = f"{len(named - released)} columns that facts name are not in the table"
    elif dropped & released:
        detail = f"{len(dropped & released)} columns that were dropped are in the table"
    elif most > len(names):
        detail = f"the facts count {most} columns and the table has {len(names)}"
    return Check(_COLUMNS, named <= released and not dropped & released and most <= len(names), detail)


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
    wrong = Check(_CLAIMS, False, "the claims are not those that follow from the facts")
    if [fact.mode for fact in certificate.facts if isinstance(fact, Drawn)] != [certificate.randomness]:
        return wrong
    if not certificate.derived:
        worded = f"{len(certificate.claims)} claims are worded by sfumato {certificate.sfumato}, not derived anew"
        return Check(_CLAIMS, True, worded, checked=False)
    try:
        claims, refused = draw_claims(certificate.facts)
    except SfumatoError:
        return Check(_CLAIMS, False, "the facts do not bear a certificate")
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
    counted = Alike | Blocked | Chained | Downgraded | Sampled | Shuffled | Swapped | Synthesized
    rows |= {fact.rows for fact in certificate.facts if isinstance(fact, counted)}
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
        holds = agree and chained.violations == 0 and max(chained.leaf, chained.asked_min) <= smallest
        detail = (
            f"levels {chained.asked_min} to {chained.asked_max}, smallest of {sum(chained.leaves)} leaves {smallest}"
        )
        return _counted(holds, detail)
    kept = next((fact for fact in certificate.facts if isinstance(fact, Maintained)), None)
    if kept is not None:
        rows |= {fact.rows for fact in [fact for fact in certificate.facts if isinstance(fact, EpochPublished)][-1:]}
        detail = (
            f"levels {kept.k} to {kept.asked_max}, smallest of {kept.groups} groups {kept.smallest}; {kept.pseudo} "
            f"were cut out of statistics, {kept.short} of them smaller than a level inside"
        )
        return _counted(agree and len(rows) == 1 and kept.groups * kept.smallest <= certificate.rows_out, detail)
    fact = next((fact for fact in certificate.facts if isinstance(fact, Grouped)), None)
    if fact is None:
        return _counted(agree, "this method makes no groups")
    holds = (
        agree
        and fact.violations == 0
        and fact.asked_min <= fact.smallest
        and fact.asked_max <= fact.records
        and fact.groups * fact.smallest <= fact.records
    )
    return _counted(
        holds, f"levels {fact.asked_min} to {fact.asked_max}, smallest of {fact.groups} groups {fact.smallest}"
    )


def _counted(holds: bool, detail: str) -> Check:
    return Check(_LEVELS, holds, detail if holds else "the numbers of records, groups and rows contradict each other")


def _method(certificate: Certificate) -> Check:
    unfit = unfit_method(certificate.method, certificate.parameters, certificate.facts)
    count = len(certificate.parameters)
    return Check(_METHOD, unfit is None, f"{certificate.method} with {count} parameters" if unfit is None else unfit)
