"""Claims about classic modifications: swapping, sampling, generalization, suppression and unchanged cells.

Also checks which of their facts contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.certificate.statements import (
    NOTHING,
    SECRET_RANDOMNESS,
    Claim,
    ClaimsOf,
    Refused,
    Statements,
    at_most,
    counted,
    quoted,
    whom_rows_describe,
)
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

__all__ = ["CLAIMS", "columns_agree", "is_modified", "modified_names", "sampling_error"]

_PRIVATE = "The release is differentially private."
_AGAIN = "The table may be released again with new randomness."
_GAPS = Refused(
    "A missing cell reveals nothing about its value.",
    "Cells were suppressed because they disclosed too much, so a gap shows that its value did.",
)


def of_swapped(fact: Swapped, facts: tuple[Fact, ...]) -> Statements:
    """State between which rows cells were swapped, and what this does not hide."""
    generalized = " after generalization" if _generalized(facts) & set(fact.columns) else ""
    cells = f"{sum(fact.changed)} of {fact.rows * len(fact.columns)} cells changed"
    yield Claim(
        f"{_columns(fact.columns)} {'has' if len(fact.columns) == 1 else 'have'} the original values{generalized}, "
        "each with its original frequency.",
        "proved",
        f"Columns: {quoted(fact.columns)}. Cells were exchanged between rows and none was altered. Every row received "
        "the cell of one row, and every cell was used once.",
        "the original table is correct",
    )
    if fact.within == "window":
        yield Claim(
            f"Cells were swapped in pairs of rows of different persons, at most {fact.window:g} % of a column's ranks "
            f"apart; {cells}.",
            "proved",
            "Ranks were processed in order, with ties in random order. Each cell without a partner got one at random "
            "from the cells within the window [Moore 1996]. Cells that found no partner stayed.",
            SECRET_RANDOMNESS,
        )
        near = "A swapped cell lies within the window around the person's own value, and shows roughly what that was."
    else:
        yield Claim(
            f"Cells were permuted at random within {counted(fact.leaves, 'leaf', 'leaves')} of a tree that predicts "
            f"{fact.target!r}; {cells}. Smallest leaf: {counted(fact.smallest, 'person', 'persons')}.",
            "proved",
            "The order of the cells in each leaf was drawn uniformly at random [Estivill-Castro, Brankovic 1999].",
            SECRET_RANDOMNESS,
        )
        near = "A row receives a cell of its own leaf. If most of a leaf share one value, a person's own is disclosed."
    yield Refused("A person's own values stay unknown in swapped columns.", near)
    if fact.missing:
        yield Refused(
            "The positions of missing cells were swapped too.",
            f"In {counted(fact.missing, 'column', 'columns')}, missing cells stayed in their rows.",
        )
    yield Refused(
        _AGAIN,
        "Cells that agree in two releases are most likely unswapped, and the others narrow down the original values.",
    )
    if not any(isinstance(other, Unchanged) for other in facts):
        yield Refused(_PRIVATE, "Every cell of the original is published, in its own row or in another.")


def _columns(names: Sequence[str]) -> str:
    return counted(len(names), "column", "columns")


def _generalized(facts: tuple[Fact, ...]) -> set[str]:
    """List the columns whose values were generalized before any other step."""
    return {name for fact in facts if isinstance(fact, Aggregated | DatesCoarsened) for name in fact.columns}


def sampling_error(persons: int, drawn: int) -> float:
    """Bound the error of a proportion in the sample, in 95 % of samples [Serfling 1974].

    Examples
    --------
    >>> round(sampling_error(1000, 100), 3), sampling_error(50, 50) < sampling_error(1000, 50)
    (0.129, True)
    """
    return math.sqrt(math.log(2 / 0.05) * (1 - (drawn - 1) / persons) / (2 * drawn))


def of_sampled(fact: Sampled, _: tuple[Fact, ...]) -> Statements:
    """State who was sampled and the error of proportions, and refuse that sampling protects."""
    assumes = f"{whom_rows_describe(by_person=fact.by_person)}, and {SECRET_RANDOMNESS}"
    yield Claim(
        f"The release contains {counted(fact.rows, 'row', 'rows')}, exactly those of a simple random sample of "
        f"{fact.drawn} of {counted(fact.persons, 'person', 'persons')}.",
        "proved",
        "Persons were drawn without replacement, each with the same probability. All rows of a person stay together.",
        assumes,
    )
    error = sampling_error(fact.persons, fact.drawn)
    if error < 1:
        yield Claim(
            "A proportion of persons in the release differs from that in the original by at most "
            f"{at_most(error, 2)}, in 95 % of such samples.",
            "proved",
            "This is Hoeffding's inequality for draws without replacement [Serfling 1974], for one proportion.",
            assumes,
        )
    yield Refused(
        "Random sampling protects the people in the sample.",
        "Their rows are published. Anyone who knows that a person was sampled has no doubt left.",
    )
    yield Refused(
        "No one can tell whether a person was sampled.",
        "Anyone who knows enough about a person finds the row in the release, or finds that it is absent.",
    )
    yield Refused(_AGAIN, "Two samples together show the rows of more people.")


def of_aggregated(fact: Aggregated, facts: tuple[Fact, ...]) -> Statements:
    """State at which level of a hierarchy values are released."""
    pooled = any(isinstance(other, RareValues) and not other.shown for other in facts)
    levels = (
        f"{name}: {hierarchy}, level {level}"
        for name, hierarchy, level in zip(fact.columns, fact.hierarchies, fact.levels, strict=True)
    )
    yield Claim(
        f"The values of {_columns(fact.columns)} were generalized to labels of a hierarchy"
        f"{', or to a label named other' if pooled else ''}.",
        "proved",
        f"Levels: {quoted(levels)}. Every value was replaced by its label before any other step.",
        "the hierarchy file of the data owner lists wider labels" if "file" in fact.hierarchies else NOTHING,
    )
    yield Refused(
        "The labels of several columns disclose no more together than each alone.",
        "A combination of labels may fit few people, and related columns narrow each other down.",
    )


def of_alike(fact: Alike, _: tuple[Fact, ...]) -> Statements:
    """State the size of the smallest equivalence class, or that some rows are unique."""
    if fact.fewest > 1:
        yield Claim(
            f"Every released row is in an equivalence class of at least {fact.fewest} rows that agree in "
            f"{_columns(fact.columns)}.",
            "proved",
            f"Columns: {quoted(fact.columns)}. Released rows were counted, with a missing cell as a value of its own.",
            NOTHING,
        )
        return
    yield Refused(
        "Every released row agrees with another one.",
        f"{counted(fact.alone, 'row is', 'rows are')} unique in {_columns(fact.columns)} ({quoted(fact.columns)}).",
    )


def of_unchanged(fact: Unchanged, facts: tuple[Fact, ...]) -> Statements:
    """Refuse that unchanged cells hide anyone."""
    left = tuple(name for name in fact.columns if name not in _generalized(facts))
    shown = f"original values of {_columns(left)} ({quoted(left)})" if left else "generalized values"
    suppressed = any(isinstance(other, Blocked | Downgraded) for other in facts)
    gaps = (
        f" The positions of missing cells are published in {counted(fact.missing, 'column', 'columns')}."
        if fact.missing
        else ""
    )
    yield Refused(
        "The values of a released row come from different persons.",
        f"The {shown} stay together in their rows{', unless suppressed,' if suppressed else ''} and may be enough to "
        f"identify a person.{gaps}",
    )
    yield Refused(_PRIVATE, "Cells are published unchanged.")


def of_blocked(fact: Blocked, _: tuple[Fact, ...]) -> Statements:
    """State how many persons share each combination, and what suppression and the other columns disclose."""
    yield Claim(
        f"Each combination of values in {_columns(fact.columns)} is shared by at least {fact.least} different persons; "
        f"{counted(sum(fact.cells), 'cell was', 'cells were')} suppressed for this.",
        "proved",
        f"Columns: {quoted(fact.columns)}. The finished rows were counted in persons, with a missing cell as a value "
        "of its own. Each combination has at least as many persons as the highest privacy level among them.",
        whom_rows_describe(by_person=fact.by_person),
    )
    yield _GAPS
    yield Refused(
        "The other columns stay unknown to anyone who finds a person's equivalence class.",
        "They are published unchanged. If all rows of a class share a value there, that value is disclosed.",
    )


def of_downgraded(fact: Downgraded, _: tuple[Fact, ...]) -> Statements:
    """State what the remaining rules of a tree disclose about a label, and that other models may disclose more."""
    yield Claim(
        f"The label {fact.private!r} is missing in {counted(fact.hidden, 'row', 'rows')}, and no rule of a decision "
        f"tree grown on these lowers its entropy by more than {at_most(fact.most)} bits.",
        "proved",
        "The last tree was grown on the released rows with their true labels. The first tree had "
        f"{counted(fact.rules_before, 'rule', 'rules')} and the last one {fact.rules_after}; "
        f"{counted(sum(fact.cells), 'other cell was', 'other cells were')} suppressed. If a rule disclosed more, all "
        "such rows that a wider rule covers lost the cells that it tests, with the fewest cells for each tree. Trees "
        "were regrown until no rule disclosed more. A suppressed answer counts as the share of records that would give "
        "it [JS07, sec. 2.2.1.3].",
        "the reader knows only these rules",
    )
    yield Refused(
        f"The label {fact.private!r} cannot be inferred from the release.",
        "Only rules of trees were suppressed. Another model, other cells or other knowledge may infer the label; the "
        "report measures what a strong model does.",
    )
    yield _GAPS
    if fact.hidden < fact.rows:
        yield Refused(
            f"The label {fact.private!r} is hidden in every row.",
            f"{counted(fact.rows - fact.hidden, 'row has', 'rows have')} the original label, as the owner decided.",
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
