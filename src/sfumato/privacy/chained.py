"""Claims of a chain: columns drawn one after the other from leaves of records that are alike in the columns before."""

from __future__ import annotations

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import Chained, Fact, PersonsBounded, RareValues
from sfumato.privacy.grouped import asked_levels, but_for, of_filled
from sfumato.privacy.statements import Claim, Refused, Statements, counted

__all__ = ["of_bounded_persons", "of_chain"]

_EACH_ROW, _PERSON_COLUMN = "one row is one person", "the person column tells who each row is about"


def of_chain(fact: Chained, facts: tuple[Fact, ...] = ()) -> Statements:
    """Say what each cell was drawn from, and what a chain does not promise although a group would.

    Where rules between columns were kept, some cells are made from others, and were not drawn.

    Raises
    ------
    PrivacyRefusal
        Where a record is in a leaf below its level.
    """
    if fact.violations:
        who = counted(fact.violations, "record is", "records are")
        raise PrivacyRefusal(f"{who} in leaves below their privacy level; nothing is certified")
    bounded = next((other for other in facts if isinstance(other, PersonsBounded)), None)
    yield _of_leaves(fact, bounded, but_for(facts, "those", "weights, which were"))
    yield from _of_rare_values(fact, bounded, next((other for other in facts if isinstance(other, RareValues)), None))
    yield Refused(
        f"A combination of values in a released row is shared by {fact.k} people.",
        "each cell comes from a leaf of its own, so that a row joins values of many people, and a combination may be "
        "that of one person or of nobody",
    )
    yield Refused(
        "No released row equals an original record.",
        "rows are drawn without looking at whether they equal one; to leave such rows out would tell who is in the "
        "table. The report counts them beside people who are not",
    )
    alike = sum(fact.alike)
    yield Refused(
        "The values of a leaf's members stay unknown to whoever finds the leaf.",
        f"a leaf shows how values are distributed among its members; of {sum(fact.leaves)} leaves {alike} "
        f"{'holds' if alike == 1 else 'hold'} one value alone",
    )
    yield Refused(
        "The release is differentially private.",
        "the cuts of the trees and the values of their leaves carry no calibrated noise",
    )


def _of_leaves(fact: Chained, bounded: PersonsBounded | None, but: str) -> Claim:
    who, so_many = "original records that", f"{min(fact.smallest)}"
    if bounded is not None:
        who = "persons who"
        so_many = f"{min(fact.smallest)} persons, and none supplies more than 2 in {fact.leaf} of what it is drawn from"
    beyond = counted(len(fact.regressed), "column", "columns")
    regressed = (
        f" In {beyond} of numbers what was drawn is how far these records lie from a regression, over all records, on "
        "the columns before."
        if fact.regressed
        else ""
    )
    twice = (
        f" {counted(len(fact.twice), 'column was', 'columns were')} drawn twice: first so that the others could be "
        "drawn by it, then anew by all of them, and only the second draw is released."
        if fact.twice
        else ""
    )
    left_out = (
        f" {counted(bounded.left_out, 'cell was', 'cells were')} left out of the draws of their leaves, since their "
        "persons supply enough there without them."
        if bounded is not None and bounded.left_out
        else ""
    )
    return Claim(
        f"Each cell of the {fact.rows} released rows{but} was drawn from the cells of at least {fact.leaf} {who} "
        "are alike in the columns drawn before it, and of at least as many as any of these asked for "
        f"({asked_levels(fact.asked_min, fact.asked_max)}); the smallest such leaf has {so_many}.{regressed}{twice}",
        "proved",
        f"The {counted(len(fact.columns), 'column was', 'columns were')} drawn one after the other from the leaves of "
        f"trees; every finished leaf was counted and compared with the levels inside.{left_out}",
        f"{_EACH_ROW if bounded is None else _PERSON_COLUMN}; alike means on the same side of every cut of the tree",
    )


def _of_rare_values(fact: Chained, bounded: PersonsBounded | None, rare: RareValues | None) -> Statements:
    who, assumed = ("original records", _EACH_ROW) if bounded is None else ("persons of the table", _PERSON_COLUMN)
    holders = "records" if bounded is None else "persons"
    yield Claim(
        f"No number that fewer than {fact.k} {who} hold was copied.",
        "proved",
        f"{counted(fact.moved, 'drawn number was', 'drawn numbers were')} of that kind, and each became the nearest of "
        f"its leaf that at least {fact.k} {holders} hold, or was moved by chance towards another value of its leaf; "
        f"{counted(fact.kept, 'other is', 'others are')} as at least {fact.k} {holders} have them.",
        f"{assumed}{of_filled(rare)}; a moved number may still come to lie on an original one, at most where that is "
        "dense: see the report",
    )


def of_bounded_persons(fact: PersonsBounded, facts: tuple[Fact, ...]) -> Statements:
    """Say what several records of a person give away."""
    records = next(other.records for other in facts if isinstance(other, Chained))
    if fact.persons < records:
        yield Refused(
            "A person's several records give away no more than one of them does.",
            f"{records} records are of {counted(fact.persons, 'person', 'persons')}, whose records may lie in "
            "different leaves: whoever knows several of them may find several leaves, and with them the values there",
        )
