"""Claims of a chain: columns drawn one after the other from leaves of records that are alike in the columns before."""

from __future__ import annotations

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import Chained
from sfumato.privacy.grouped import asked_levels
from sfumato.privacy.statements import Claim, Refused, Statements, counted

__all__ = ["of_chain"]


def of_chain(fact: Chained, *, ruled: bool = False) -> Statements:
    """Say what each cell was drawn from, and what a chain does not promise although a group would.

    Where rows are ``ruled``, some cells are made from others by a rule, and were not drawn.

    Raises
    ------
    PrivacyRefusal
        Where a record is in a leaf below its level.
    """
    if fact.violations:
        who = counted(fact.violations, "record is", "records are")
        raise PrivacyRefusal(f"{who} in leaves below their privacy level; nothing is certified")
    beyond = counted(len(fact.regressed), "column", "columns")
    drawn = ", but for those that a rule between columns makes from others," if ruled else ""
    yield Claim(
        f"Each cell of the {fact.rows} released rows{drawn} was drawn from the cells of at least {fact.leaf} original "
        "records that are alike in the columns drawn before it, and of at least as many as any of these asked for "
        f"({asked_levels(fact.asked_min, fact.asked_max)}); the smallest such leaf has {min(fact.smallest)}."
        + (
            f" In {beyond} of numbers what was drawn is how far these records lie from a linear regression, over all "
            "records, on the columns before."
            if fact.regressed
            else ""
        ),
        "proved",
        f"The {counted(len(fact.columns), 'column was', 'columns were')} drawn one after the other from the leaves of "
        "trees; every finished leaf was counted and compared with the levels inside.",
        "one row is one person; alike means on the same side of every cut of the tree",
    )
    yield Claim(
        f"No number that fewer than {fact.k} original records hold was copied.",
        "proved",
        f"{counted(fact.moved, 'drawn number was', 'drawn numbers were')} of that kind, and each was moved by chance "
        f"towards another value of its leaf; {counted(fact.kept, 'other is', 'others are')} as at least {fact.k} "
        "records have them.",
        "one row is one person; a moved number may still come to lie on an original one, at most where that is dense: "
        "see the report",
    )
    yield Claim(
        f"No category that fewer than {fact.k} original records hold appears in the release.",
        "proved",
        f"{counted(fact.joined, 'cell', 'cells')} of that kind, or missing as few are, counted as others before "
        "anything was drawn.",
        "one row is one person",
    )
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
        f"{counted(alike, 'leaf holds', 'leaves hold')} one value alone, of {sum(fact.leaves)} in all, and the others "
        "show how values are distributed among their members",
    )
    yield Refused(
        "The release is differentially private.",
        "the cuts of the trees and the values of their leaves carry no calibrated noise",
    )
