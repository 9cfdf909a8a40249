"""Claims of the classic modifications: cells exchanged, blocked, widened, or published as they are.

And facts of them that cannot all be true.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.core.facts import (
    Aggregated,
    Alike,
    Blocked,
    DatesCoarsened,
    Downgraded,
    Fact,
    RareValues,
    Sampled,
    Swapped,
    Unchanged,
)
from sfumato.privacy.statements import SECRET_RANDOMNESS, Claim, ClaimsOf, Refused, Statements, at_most, counted, quoted

__all__ = ["CLAIMS", "columns_agree", "is_modified", "modified_names", "sampling_error"]

_PRIVATE = "The release is differentially private."
_GAPS = Refused(
    "A cell that is missing says nothing of its value.",
    "cells were turned to missing where they told too much, so that a gap tells that its cell did",
)


def of_swapped(fact: Swapped, facts: tuple[Fact, ...]) -> Statements:
    """Say that columns kept their cells, between which rows these were exchanged, and what that does not hide."""
    columns = f"{counted(len(fact.columns), 'column', 'columns')} ({quoted(fact.columns)})"
    cells = f"{sum(fact.changed)} of {fact.rows * len(fact.columns)} cells are another value than before"
    coarse = "after their values were widened, " if _widened(facts) & set(fact.columns) else ""
    yield Claim(
        f"The cells of {columns} are {coarse}those of the original, each as often as there.",
        "proved",
        "Cells were exchanged between rows and none was altered: every row took the cell of one row, and every row's "
        "cell was taken once.",
        "nothing but that the original is right",
    )
    if fact.within == "window":
        yield Claim(
            f"Cells were exchanged in pairs of rows of different persons, at most {fact.window:g} percent of the cells "
            f"of a column apart in rank; {cells}.",
            "proved",
            "Ranks were gone through in order, equal cells in random order, and each cell without a partner got one "
            "that was drawn from those within the window [Moore 1996]; cells that found none stayed.",
            SECRET_RANDOMNESS,
        )
        near = "an exchanged cell lies within the window around the person's own, and tells about where that was"
    else:
        yield Claim(
            f"Cells were put into random order within each of the {counted(fact.leaves, 'leaf', 'leaves')} of a tree "
            f"that tells {fact.target!r}; the smallest leaf has {counted(fact.smallest, 'person', 'persons')}; "
            f"{cells}.",
            "proved",
            "The order of each leaf's cells was drawn uniformly [Estivill-Castro, Brankovic 1999].",
            SECRET_RANDOMNESS,
        )
        near = "a row has a cell of its own leaf, and where most of a leaf hold one value a person's own is told"
    yield Refused("A person's own cells stay unknown where cells were exchanged.", near)
    if fact.missing:
        yield Refused(
            "Which cells are missing was exchanged too.",
            f"in {counted(fact.missing, 'column', 'columns')} missing cells stayed in their rows",
        )
    yield Refused(
        "The table may be made again with fresh randomness.",
        "what does not change between two releases was not exchanged, and what does is narrowed down",
    )
    if not any(isinstance(other, Unchanged) for other in facts):
        yield Refused(_PRIVATE, "every cell of the original is published, in its own row or in another")


def _widened(facts: tuple[Fact, ...]) -> set[str]:
    """Columns whose values became wider before anything else was done."""
    return {name for fact in facts if isinstance(fact, Aggregated | DatesCoarsened) for name in fact.columns}


def sampling_error(persons: int, drawn: int) -> float:
    """How far a share among those drawn is at most off, in 95 of 100 samples [Serfling 1974].

    Examples
    --------
    >>> round(sampling_error(1000, 100), 3), sampling_error(50, 50) < sampling_error(1000, 50)
    (0.129, True)
    """
    return math.sqrt(math.log(2 / 0.05) * (1 - (drawn - 1) / persons) / (2 * drawn))


def of_sampled(fact: Sampled, _: tuple[Fact, ...]) -> Statements:
    """Say who was drawn and how far shares are off, and that those who were drawn are not hidden."""
    who = "the person column tells who each row is about" if fact.by_person else "one row is one person"
    yield Claim(
        f"The {counted(fact.rows, 'row', 'rows')} of {fact.drawn} of {counted(fact.persons, 'person', 'persons')}, "
        "drawn at random with the same chance for everybody, are in the release, and nobody else's.",
        "proved",
        "Persons were drawn without replacement; all rows of a person stay together.",
        f"{who}; {SECRET_RANDOMNESS}",
    )
    error = sampling_error(fact.persons, fact.drawn)
    if error < 1:
        yield Claim(
            "Whatever is asked of each person, the share of those in the release of whom it is true differs from that "
            f"of all by at most {at_most(error, 2)}, in 95 of 100 such samples.",
            "proved",
            "Hoeffding's inequality for draws without replacement [Serfling 1974], for one question.",
            f"{who}; {SECRET_RANDOMNESS}",
        )
    yield Refused(
        "Being drawn at random protects the people who were drawn.",
        "their rows are published, and whoever knows that a person was drawn has lost all doubt",
    )
    yield Refused(
        "Nobody can tell whether a person was drawn.",
        "whoever knows enough of a person finds the row in the release, or finds that it is not there",
    )
    yield Refused(
        "The table may be made again with fresh randomness.", "two samples together show the rows of more people"
    )


def of_aggregated(fact: Aggregated, facts: tuple[Fact, ...]) -> Statements:
    """Say at which level of which hierarchy values are given, or that labels which few hold are one named other."""
    pooled = any(isinstance(other, RareValues) and not other.shown for other in facts)
    wide = (
        f"{name}: {hierarchy}, level {level}"
        for name, hierarchy, level in zip(fact.columns, fact.hierarchies, fact.levels, strict=True)
    )
    listed = "file" in fact.hierarchies
    yield Claim(
        f"The values of {counted(len(fact.columns), 'column', 'columns')} are given as labels of a hierarchy"
        f"{', or as one named other' if pooled else ''}: {quoted(wide)}.",
        "proved",
        "Every value became its label before anything else was done.",
        "the owner's file lists wider labels; the released table shows the others"
        if listed
        else "nothing; the released table shows it",
    )
    yield Refused(
        "The labels of several columns tell no more together than each alone.",
        "together they may fit few people, and columns that go together narrow each other down",
    )


def of_alike(fact: Alike, _: tuple[Fact, ...]) -> Statements:
    """Say how many rows are alike, or that some are like no other."""
    columns = f"{counted(len(fact.columns), 'column', 'columns')} ({quoted(fact.columns)})"
    if fact.fewest > 1:
        yield Claim(
            f"Every released row is one of at least {fact.fewest} that are equal in {columns}.",
            "proved",
            "Released rows were counted, a missing cell like a value.",
            "nothing; the released table shows it",
        )
        return
    yield Refused(
        "Every released row is equal to another.",
        f"{counted(fact.alone, 'row is', 'rows are')} like no other in {columns}",
    )


def of_unchanged(fact: Unchanged, facts: tuple[Fact, ...]) -> Statements:
    """Refuse that cells which were published as they are hide anybody."""
    left = tuple(name for name in fact.columns if name not in _widened(facts))
    gaps = (
        f"; which cells are missing is published in {counted(fact.missing, 'column', 'columns')}"
        if fact.missing
        else ""
    )
    shown = f"the cells of {counted(len(left), 'column', 'columns')} ({quoted(left)})" if left else "the wider values"
    but = " where they are not missing," if any(isinstance(other, Blocked | Downgraded) for other in facts) else ""
    yield Refused(
        "The cells of a released row are not those of one person.",
        f"{shown} are published as the original has them,{but} those of one row beside each other, and may be enough "
        f"to find a person{gaps}",
    )
    yield Refused(_PRIVATE, "cells are published as they are")


def of_blocked(fact: Blocked, _: tuple[Fact, ...]) -> Statements:
    """Say how many persons share what is left, and what a gap and the other columns tell."""
    columns = f"{counted(len(fact.columns), 'column', 'columns')} ({quoted(fact.columns)})"
    yield Claim(
        f"What a released row shows of {columns} is shown by the rows of at least {fact.least} different persons, and "
        "of as many as any of these asked for; "
        f"{counted(sum(fact.cells), 'cell', 'cells')} became missing for it.",
        "proved",
        "The finished rows were counted in persons, a missing cell like a value.",
        "the person column tells who each row is about" if fact.by_person else "one row is one person",
    )
    yield _GAPS
    yield Refused(
        "The rest of a row stays secret from whoever finds those who show the same.",
        "other cells are published as they are: where all rows that show the same hold the same there, it is told",
    )


def of_downgraded(fact: Downgraded, _: tuple[Fact, ...]) -> Statements:
    """Say what the rules that are left tell of a label, and that others may tell more."""
    yield Claim(
        f"The label {fact.private!r} of {counted(fact.hidden, 'row', 'rows')} is missing, and a decision tree grown on "
        "these rows as they are here, with their true labels, has no rule that lowers the entropy of the label by more "
        f"than {at_most(fact.most)} bits ({counted(fact.rules_before, 'rule', 'rules')} before, {fact.rules_after} "
        f"after; {counted(sum(fact.cells), 'other cell', 'other cells')} became missing for it).",
        "proved",
        "Where a rule told more, all such rows that a wider rule covers lost the cells that it asks about, with the "
        "fewest cells for each tree, and another tree was grown on what was left until none told more; a blocked "
        "answer counts as the share of records that would give it [JS07, sec. 2.2.1.3].",
        "whoever reads the release knows of these rules alone",
    )
    yield Refused(
        f"The label {fact.private!r} cannot be told from the release.",
        "the rules of trees were given up: another model, other cells or knowledge from elsewhere may tell it, and "
        "the report measures what a strong one does",
    )
    yield _GAPS
    if fact.hidden < fact.rows:
        yield Refused(
            f"The label {fact.private!r} is hidden for everybody.",
            f"{counted(fact.rows - fact.hidden, 'row has it', 'rows have it')} as in the original, by the owner's "
            "decision",
        )


CLAIMS: ClaimsOf = {
    Aggregated: of_aggregated,
    Alike: of_alike,
    Blocked: of_blocked,
    Downgraded: of_downgraded,
    Sampled: of_sampled,
    Swapped: of_swapped,
    Unchanged: of_unchanged,
}


def is_modified(fact: Fact) -> bool:
    """Tell whether a fact of a modification agrees with itself."""
    match fact:
        case Swapped():
            return _are_names(fact.columns, fact.changed) and _is_swapped(fact)
        case Sampled():
            return (
                1 <= fact.drawn <= fact.persons <= fact.records
                and fact.drawn <= fact.rows <= fact.records
                and (fact.drawn < fact.persons) <= (fact.rows < fact.records)
                and (fact.by_person or (fact.persons, fact.drawn) == (fact.records, fact.rows))
            )
        case Aggregated():
            return _are_names(fact.columns, fact.levels, fact.hierarchies) and min(fact.levels) >= 1
        case Alike():
            return (
                _are_names(fact.columns)
                and 1 <= fact.fewest <= fact.rows
                and fact.alone <= fact.rows
                and (fact.fewest == 1) == (fact.alone > 0)
            )
        case Unchanged():
            return _are_names(fact.columns) and 0 <= fact.missing <= len(fact.columns)
        case Blocked():
            return (
                _are_names(fact.columns, fact.cells)
                and 2 <= fact.least <= fact.rows
                and all(0 <= cells <= fact.rows for cells in fact.cells)
            )
        case Downgraded():
            return _is_downgraded(fact)
        case _:
            return False


def _are_names(columns: Sequence[str], *beside: Sequence[object]) -> bool:
    """Tell whether there are columns, each once, and as many entries beside them."""
    return (
        bool(columns)
        and len(set(columns)) == len(columns)
        and all(len(entries) == len(columns) for entries in beside)
        and all(entry >= 0 for entries in beside for entry in entries if isinstance(entry, int))
    )


def _is_swapped(fact: Swapped) -> bool:
    fine = all(changed <= fact.rows for changed in fact.changed) and fact.missing <= len(fact.columns)
    if fact.within == "window":
        bare = fact.target is None and not fact.leaves and not fact.smallest
        return fine and bare and fact.window is not None and 0 < fact.window <= 100
    return (
        fine
        and fact.window is None
        and fact.target is not None
        and fact.leaves >= 1
        and fact.smallest >= 1
        and fact.leaves * fact.smallest <= fact.rows
    )


def _is_downgraded(fact: Downgraded) -> bool:
    return (
        (not fact.columns or _are_names(fact.columns, fact.cells))
        and len(fact.columns) == len(fact.cells)
        and fact.private not in fact.columns
        and all(1 <= cells <= fact.hidden for cells in fact.cells)
        and 1 <= fact.hidden <= fact.rows
        and math.isfinite(fact.limit)
        and 0 <= fact.most <= fact.limit + 1e-9
        and 1 <= fact.rules_after <= fact.rows
        and 1 <= fact.rules_before <= fact.rows
    )


def modified_names(facts: Sequence[Fact]) -> set[str]:
    """Columns that facts of a modification name, all of which are released."""
    names = set[str]()
    for fact in facts:
        if isinstance(fact, Aggregated | Alike | Blocked | Downgraded | Swapped | Unchanged):
            names |= set(fact.columns)
        if isinstance(fact, Downgraded):
            names.add(fact.private)
        if isinstance(fact, Swapped) and fact.target is not None:
            names.add(fact.target)
    return names


def columns_agree(facts: Sequence[Fact]) -> bool:
    """Tell whether no column is exchanged and as it was, and blocked columns are those that rows are alike in."""
    swapped = {name for fact in facts if isinstance(fact, Swapped) for name in fact.columns}
    same = {name for fact in facts if isinstance(fact, Unchanged) for name in fact.columns}
    blocked = [fact for fact in facts if isinstance(fact, Blocked)]
    alike = [fact for fact in facts if isinstance(fact, Alike)]
    fine = all(fact.columns == one.columns and fact.fewest >= one.least for fact in alike for one in blocked)
    return fine and not swapped & same
