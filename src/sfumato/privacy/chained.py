"""Claims of a chain: columns drawn one after the other from leaves of records that are alike in the columns before."""

from __future__ import annotations

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import Celled, Chained, Fact, PersonsBounded, RareValues
from sfumato.privacy.grouped import asked_levels, but_for, of_filled
from sfumato.privacy.statements import Claim, ClaimsOf, Refused, Statements, counted

__all__ = ["CLAIMS", "of_chain", "of_parts"]

_EACH_ROW, _PERSON_COLUMN = "one row is one person", "the person column tells who each row is about"


def of_chain(fact: Chained, facts: tuple[Fact, ...] = ()) -> Statements:
    """Say what each cell was drawn from, and what a chain does not promise although a group would.

    Where rules between columns were kept, some cells are made from others, and were not drawn. The cells that a table
    was cut into are called its parts here, where a cell is what a row has in a column.

    Raises
    ------
    PrivacyRefusal
        Where a record is in a leaf below its level.
    """
    if fact.violations:
        who = counted(fact.violations, "record is", "records are")
        raise PrivacyRefusal(f"{who} in leaves below their privacy level; nothing is certified")
    bounded = next((other for other in facts if isinstance(other, PersonsBounded)), None)
    parts = any(isinstance(other, Celled) and other.cells > 1 for other in facts)
    rare = next((other for other in facts if isinstance(other, RareValues)), None)
    yield _of_leaves(fact, bounded, but_for(facts, "those", "weights, which were"), parts=parts)
    yield from _of_rare_values(fact, bounded, rare, parts=parts)
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


def _of_leaves(fact: Chained, bounded: PersonsBounded | None, but: str, *, parts: bool) -> Claim:
    who, so_many = "original records that", f"{min(fact.smallest)}"
    if bounded is not None:
        who = "persons who"
        so_many = f"{min(fact.smallest)} persons, and none supplies more than 2 in {fact.leaf} of what it is drawn from"
    beyond = counted(len(fact.regressed), "column", "columns")
    regressed = (
        f" In {beyond} of numbers{', in all or some parts,' if parts else ''} what was drawn is how far these records "
        f"lie from a regression, over all records{' of the part' if parts else ''}, on the columns before."
        if fact.regressed
        else ""
    )
    twice = (
        f" {'In all or some parts ' if parts else ''}{counted(len(fact.twice), 'column was', 'columns were')} drawn "
        "twice: first so that the others could be drawn by it, then anew by all of them, and only the second draw is "
        "released."
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
        f"are {'in the same part of the table and ' if parts else ''}alike in the columns drawn before it, and of at "
        "least as many as any of these asked for "
        f"({asked_levels(fact.asked_min, fact.asked_max)}); the smallest such leaf has {so_many}.{regressed}{twice}",
        "proved",
        f"The {counted(len(fact.columns), 'column was', 'columns were')} drawn one after the other from the leaves of "
        f"trees; every finished leaf was counted and compared with the levels inside.{left_out}",
        f"{_EACH_ROW if bounded is None else _PERSON_COLUMN}; alike means on the same side of every cut of the tree",
    )


def of_parts(fact: Celled) -> Statements:
    """Say that the parts of a table were drawn from apart."""
    yield Claim(
        f"No leaf holds records of two of the {fact.cells} parts that the table was cut into; the smallest part has "
        f"{counted(fact.smallest, 'record', 'records')}, and rows were drawn from each in proportion to its records."
        if fact.cells > 1
        else "The table was drawn from as one part.",
        "proved",
        "The table was cut by a sample before any tree was grown, parts with fewer people than a leaf or the highest "
        "privacy level needs were joined, and each part was drawn from by itself.",
        "nothing but that the program ran as it is written",
    )


def _of_rare_values(
    fact: Chained, bounded: PersonsBounded | None, rare: RareValues | None, *, parts: bool
) -> Statements:
    who, assumed = ("original records", _EACH_ROW) if bounded is None else ("persons of the table", _PERSON_COLUMN)
    holders = "records" if bounded is None else "persons"
    yield Claim(
        f"No number that fewer than {fact.k} {who} hold was copied.",
        "proved",
        f"{counted(fact.moved, 'drawn number was', 'drawn numbers were')} of that kind"
        f"{' in their part of the table' if parts else ''}, and each became the nearest of its leaf that at least "
        f"{fact.k} {holders} hold, or was moved by chance towards another value of its leaf; "
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


CLAIMS: ClaimsOf = {Chained: of_chain, PersonsBounded: of_bounded_persons}
