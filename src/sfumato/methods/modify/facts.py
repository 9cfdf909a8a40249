"""Facts about classic modifications: swapping, sampling, suppression and unchanged cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.core.facts import (
    NOTHING,
    SECRET_RANDOMNESS,
    Claim,
    Context,
    Fact,
    Refused,
    RowCheck,
    Statements,
    are_unique,
    at_most,
    counted,
    quoted,
    whom_rows_describe,
)
from sfumato.tables.facts import Aggregated, DatesCoarsened, RareValues

__all__ = [
    "Blocked",
    "Downgraded",
    "IdenticalRows",
    "Sampled",
    "Swapped",
    "Unchanged",
]

_PRIVATE = "The release is differentially private."
_AGAIN = "The table may be released again with new randomness."
_GAPS = Refused(
    "A missing cell reveals nothing about its value.",
    "Cells were suppressed because they disclosed too much, so a gap shows that its value did.",
)


@dataclass(frozen=True)
class Swapped(Fact):
    """Cells of these columns were exchanged between rows, so that each column holds the cells that it held before.

    ``within`` "window" they were exchanged in pairs of different persons that lie at most ``window`` percent of the
    column's cells apart in rank; within "leaves" at random among the rows of a leaf of a tree that was grown to tell
    ``target``, of which there are ``leaves``, the smallest of ``smallest`` persons. Of each column ``changed`` counts
    the cells that are another value than before. ``missing`` counts the columns of which it is published which cells
    are missing.
    """

    methods = ("swap",)

    within: Literal["window", "leaves"]
    columns: tuple[str, ...]
    changed: tuple[int, ...]
    rows: int
    window: float | None = None
    target: str | None = None
    leaves: int = 0
    smallest: int = 0
    missing: int = 0

    def claims(self, context: Context) -> Statements:
        """State between which rows cells were swapped, and what this does not hide."""
        generalized = " after generalization" if _generalized(context) & set(self.columns) else ""
        cells = f"{sum(self.changed)} of {self.rows * len(self.columns)} cells changed"
        yield Claim(
            f"{_columns(self.columns)} {'has' if len(self.columns) == 1 else 'have'} the original values{generalized}, "
            "each with its original frequency.",
            f"Columns: {quoted(self.columns)}. Cells were exchanged between rows and none was altered. Every row "
            "received the cell of one row, and every cell was used once.",
            "the original table is correct",
        )
        if self.within == "window":
            yield Claim(
                f"Cells were swapped in pairs of rows of different persons, at most {self.window:g} % of a column's "
                f"ranks apart; {cells}.",
                "Ranks were processed in order, with ties in random order. Each cell without a partner got one at "
                "random from the cells within the window [Moore 1996]. Cells that found no partner stayed.",
                SECRET_RANDOMNESS,
            )
            near = (
                "A swapped cell lies within the window around the person's own value, and shows roughly what that was."
            )
        else:
            yield Claim(
                f"Cells were permuted at random within {counted(self.leaves, 'leaf', 'leaves')} of a tree that "
                f"predicts {self.target!r}; {cells}. Smallest leaf: {counted(self.smallest, 'person', 'persons')}.",
                "The order of the cells in each leaf was drawn uniformly at random [Estivill-Castro, Brankovic 1999].",
                SECRET_RANDOMNESS,
            )
            near = (
                "A row receives a cell of its own leaf. If most of a leaf share one value, a person's own is disclosed."
            )
        yield Refused("A person's own values stay unknown in swapped columns.", near)
        if self.missing:
            yield Refused(
                "The positions of missing cells were swapped too.",
                f"In {counted(self.missing, 'column', 'columns')}, missing cells stayed in their rows.",
            )
        yield Refused(
            _AGAIN,
            "Cells that agree in two releases are most likely unswapped, and the others narrow down the original "
            "values.",
        )
        if not context.has(Unchanged):
            yield Refused(_PRIVATE, "Every cell of the original is published, in its own row or in another.")

    def named_columns(self) -> tuple[str, ...]:
        return self.columns if self.target is None else (*self.columns, self.target)

    def check(self) -> bool:
        possible = are_unique(self.columns, self.changed) and self.missing <= len(self.columns)
        if not possible or any(changed > self.rows for changed in self.changed):
            return False
        if self.within == "window":
            bare = self.target is None and not self.leaves and not self.smallest
            return bare and self.window is not None and 0 < self.window <= 100
        return (
            self.window is None
            and self.target is not None
            and min(self.leaves, self.smallest) >= 1
            and self.leaves * self.smallest <= self.rows
        )

    def agrees(self, context: Context) -> bool:
        return not any(set(self.columns) & set(other.columns) for other in context.all(Unchanged))

    def fits(self, context: Context) -> bool:
        mechanism = context.mechanism
        if mechanism.within != self.within or (mechanism.columns and self.columns != mechanism.columns):
            return False
        if self.within == "window":
            return bool(self.window == mechanism.window)
        return self.smallest >= mechanism.leaf and (bool(mechanism.columns) or self.columns == (self.target,))

    def summary(self, context: Context, file_format: str) -> tuple[int, str]:
        more = f" and {len(self.columns) - 3} more" if len(self.columns) > 3 else ""
        changed = f"{sum(self.changed)} of {self.rows * len(self.columns)} values"
        return 0, f"Swapped values of {quoted(self.columns[:3])}{more}: {changed} changed."

    @property
    def rows_released(self) -> int:
        return self.rows


@dataclass(frozen=True)
class Sampled(Fact):
    """A random sample of persons, drawn without replacement; only their rows are released.

    ``by_person`` where a column identifies the person of a row; else each of the ``records`` is a person of its own.
    """

    methods = ("subsample",)
    resized = True

    records: int
    rows: int
    persons: int
    drawn: int
    by_person: bool = False

    def claims(self, context: Context) -> Statements:
        """State who was sampled and the error of proportions, and refuse that sampling protects."""
        assumes = f"{whom_rows_describe(by_person=self.by_person)}, and {SECRET_RANDOMNESS}"
        yield Claim(
            f"The release contains {counted(self.rows, 'row', 'rows')}, exactly those of a simple random sample of "
            f"{self.drawn} of {counted(self.persons, 'person', 'persons')}.",
            "Persons were drawn without replacement, each with the same probability. All rows of a person stay "
            "together.",
            assumes,
        )
        error = sampling_error(self.persons, self.drawn)
        if error < 1:
            yield Claim(
                "A proportion of persons in the release differs from that in the original by at most "
                f"{at_most(error, 2)}, in 95 % of such samples.",
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

    def check(self) -> bool:
        return (
            1 <= self.drawn <= self.persons <= self.records
            and self.drawn <= self.rows <= self.records
            and (self.drawn < self.persons) <= (self.rows < self.records)
            and (self.by_person or (self.persons, self.drawn) == (self.records, self.rows))
        )

    def fits(self, context: Context) -> bool:
        from sfumato.methods.modify.swap import people_drawn

        return context.has(Unchanged) and self.drawn == people_drawn(context.mechanism.share, self.persons)

    def summary(self, context: Context, file_format: str) -> tuple[int, str]:
        people = f"{self.drawn} of {self.persons} people"
        return 0, f"A sample of {people} with their original rows, which are not protected."

    @property
    def rows_released(self) -> int:
        return self.rows

    @property
    def records_used(self) -> int:
        return self.records


@dataclass(frozen=True)
class IdenticalRows(Fact):
    """Released rows that are equal in these columns, a missing cell counted like a value.

    ``fewest`` is the least number of rows that are equal in them, ``alone`` counts the rows that are like no other.
    """

    methods = ("aggregate", "block")

    columns: tuple[str, ...]
    rows: int
    fewest: int
    alone: int

    def claims(self, context: Context) -> Statements:
        """State the size of the smallest equivalence class, or that some rows are unique."""
        if self.fewest > 1:
            yield Claim(
                f"Every released row is in an equivalence class of at least {self.fewest} rows that agree in "
                f"{_columns(self.columns)}.",
                f"Columns: {quoted(self.columns)}. Released rows were counted, with a missing cell as a value of its "
                "own.",
                NOTHING,
            )
            return
        yield Refused(
            "Every released row agrees with another one.",
            f"{counted(self.alone, 'row is', 'rows are')} unique in {_columns(self.columns)} ({quoted(self.columns)}).",
        )

    def check(self) -> bool:
        return (
            are_unique(self.columns)
            and 1 <= self.fewest <= self.rows
            and self.alone <= self.rows
            and (self.fewest == 1) == (self.alone > 0)
        )

    def agrees(self, context: Context) -> bool:
        return not context.has(RareValues)

    def fits(self, context: Context) -> bool:
        return context.has(_FACT_OF[context.method or ""]) and context.has(Unchanged)

    def row_check(self, schema: Any, context: Context) -> RowCheck:
        from sfumato.tables.row_checks import ClassCheck

        return ClassCheck(self.columns, (self.fewest, self.alone), schema)

    def summary(self, context: Context, file_format: str) -> tuple[int, str] | None:
        return (0, f"{self.alone} of {self.rows} rows are unique.") if self.alone else None

    @property
    def rows_released(self) -> int:
        return self.rows


@dataclass(frozen=True)
class Unchanged(Fact):
    """The cells of these columns are published as the original has them, those of one row together.

    ``missing`` counts the columns of which it is published, too, which cells are missing.
    """

    methods = ("swap", "subsample", "aggregate", "block", "downgrade")

    columns: tuple[str, ...]
    missing: int = 0

    def claims(self, context: Context) -> Statements:
        """Refuse that unchanged cells hide anyone."""
        left = tuple(name for name in self.columns if name not in _generalized(context))
        shown = f"original values of {_columns(left)} ({quoted(left)})" if left else "generalized values"
        suppressed = context.has(Blocked, Downgraded)
        gaps = (
            f" The positions of missing cells are published in {counted(self.missing, 'column', 'columns')}."
            if self.missing
            else ""
        )
        yield Refused(
            "The values of a released row come from different persons.",
            f"The {shown} stay together in their rows{', unless suppressed,' if suppressed else ''} and may be enough "
            f"to identify a person.{gaps}",
        )
        yield Refused(_PRIVATE, "Cells are published unchanged.")

    def check(self) -> bool:
        return are_unique(self.columns) and self.missing <= len(self.columns)

    def agrees(self, context: Context) -> bool:
        return not context.has(RareValues)

    def fits(self, context: Context) -> bool:
        counted_rows = context.method != "aggregate" or context.has(IdenticalRows)
        return counted_rows and context.has(_FACT_OF[context.method or ""])


@dataclass(frozen=True)
class Blocked(Fact):
    """Cells of these columns became missing until what a row shows of them all is shown by rows of enough persons.

    Of each column ``cells`` counts those that became missing. ``least`` is the least number of persons whose rows are
    equal in the columns, a missing cell counted like a value. Persons are counted ``by_person`` if a column
    identifies them.
    """

    methods = ("block",)

    columns: tuple[str, ...]
    cells: tuple[int, ...]
    rows: int
    least: int
    by_person: bool = False

    def claims(self, context: Context) -> Statements:
        """State how many persons share each combination, and what suppression and the other columns disclose."""
        yield Claim(
            f"Each combination of values in {_columns(self.columns)} is shared by at least {self.least} different "
            f"persons; {counted(sum(self.cells), 'cell was', 'cells were')} suppressed for this.",
            f"Columns: {quoted(self.columns)}. The finished rows were counted in persons, with a missing cell as a "
            "value of its own. Each combination has at least as many persons as the highest privacy level among them.",
            whom_rows_describe(by_person=self.by_person),
        )
        yield _GAPS
        yield Refused(
            "The other columns stay unknown to anyone who finds a person's equivalence class.",
            "They are published unchanged. If all rows of a class share a value there, that value is disclosed.",
        )

    def check(self) -> bool:
        possible = are_unique(self.columns, self.cells) and 2 <= self.least <= self.rows
        return possible and all(cells <= self.rows for cells in self.cells)

    def agrees(self, context: Context) -> bool:
        return all(each.columns == self.columns and each.fewest >= self.least for each in context.all(IdenticalRows))

    def fits(self, context: Context) -> bool:
        named = context.mechanism.columns
        return context.has(IdenticalRows) and bool(
            self.least >= context.mechanism.k and (not named or self.columns == named)
        )

    def row_check(self, schema: Any, context: Context) -> RowCheck:
        from sfumato.tables.row_checks import MissingCheck

        return MissingCheck(dict(zip(self.columns, self.cells, strict=True)), schema)

    def summary(self, context: Context, file_format: str) -> tuple[int, str]:
        values = f"{sum(self.cells)} values of the quasi-identifiers"
        return 0, f"Blocked {values}: each combination that remains belongs to at least {self.least} people."

    @property
    def rows_released(self) -> int:
        return self.rows


@dataclass(frozen=True)
class Downgraded(Fact):
    """The label ``private`` of ``hidden`` rows became missing, and cells that rules of decision trees tell it by.

    Trees were grown, first on the original and then on what was left, and rules that gave more than ``limit`` bits were
    given up. ``rules_before`` counts those of the first tree and ``rules_after`` those of the last, grown on the hidden
    rows as released with their true labels; ``most`` is the most bits by which one of its rules lowers the entropy of
    the label. ``columns`` lost ``cells`` each.
    """

    methods = ("downgrade",)

    private: str
    rows: int
    hidden: int
    limit: float
    most: float
    rules_before: int
    rules_after: int
    columns: tuple[str, ...] = ()
    cells: tuple[int, ...] = ()

    def claims(self, context: Context) -> Statements:
        """State what the remaining rules of a tree disclose about a label, and that other models may disclose more."""
        yield Claim(
            f"The label {self.private!r} is missing in {counted(self.hidden, 'row', 'rows')}, and no rule of a "
            f"decision tree grown on these lowers its entropy by more than {at_most(self.most)} bits.",
            "The last tree was grown on the released rows with their true labels. The first tree had "
            f"{counted(self.rules_before, 'rule', 'rules')} and the last one {self.rules_after}; "
            f"{counted(sum(self.cells), 'other cell was', 'other cells were')} suppressed. If a rule disclosed more, "
            "all such rows that a wider rule covers lost the cells that it tests, with the fewest cells for each tree. "
            "Trees were regrown until no rule disclosed more. A suppressed answer counts as the share of records that "
            "would give it [JS07, sec. 2.2.1.3].",
            "the reader knows only these rules",
        )
        yield Refused(
            f"The label {self.private!r} cannot be inferred from the release.",
            "Only rules of trees were suppressed. Another model, other cells or other knowledge may infer the label; "
            "the report measures what a strong model does.",
        )
        yield _GAPS
        if self.hidden < self.rows:
            yield Refused(
                f"The label {self.private!r} is hidden in every row.",
                f"{counted(self.rows - self.hidden, 'row has', 'rows have')} the original label, as the owner decided.",
            )

    def named_columns(self) -> tuple[str, ...]:
        return (*self.columns, self.private)

    def check(self) -> bool:
        return (
            (are_unique(self.columns, self.cells) or not (self.columns or self.cells))
            and self.private not in self.columns
            and all(1 <= cells <= self.hidden for cells in self.cells)
            and 1 <= self.hidden <= self.rows
            and 0 <= self.most <= self.limit + 1e-9
            and 1 <= self.rules_after <= self.rows
            and 1 <= self.rules_before <= self.rows
        )

    def fits(self, context: Context) -> bool:
        mechanism = context.mechanism
        if (self.private, self.limit) != (mechanism.private, mechanism.limit):
            return False
        return bool(mechanism.hidden != 1 or self.hidden == self.rows)

    def row_check(self, schema: Any, context: Context) -> RowCheck:
        from sfumato.tables.row_checks import MissingCheck

        cells = dict(zip(self.columns, self.cells, strict=True))
        return MissingCheck({**cells, self.private: self.hidden}, schema)

    def summary(self, context: Context, file_format: str) -> tuple[int, str]:
        rules = f"no remaining rule gives more than {self.most:.2g} bits; see owner/rules.txt"
        return 0, f"Hid the label of {self.hidden} rows and {sum(self.cells)} other values: {rules}."

    @property
    def rows_released(self) -> int:
        return self.rows


_FACT_OF: Mapping[str, type[Fact]] = {
    "swap": Swapped,
    "subsample": Sampled,
    "aggregate": Aggregated,
    "block": Blocked,
    "downgrade": Downgraded,
}
"""The fact that each method states of its changes."""


def _columns(names: Sequence[str]) -> str:
    return counted(len(names), "column", "columns")


def _generalized(context: Context) -> set[str]:
    """List the columns whose values were generalized before any other step."""
    return {name for fact in context if isinstance(fact, Aggregated | DatesCoarsened) for name in fact.columns}


def sampling_error(persons: int, drawn: int) -> float:
    """Bound the error of a proportion in the sample, in 95 % of samples [Serfling 1974].

    Examples
    --------
    >>> round(sampling_error(1000, 100), 3), sampling_error(50, 50) < sampling_error(1000, 50)
    (0.129, True)
    """
    return math.sqrt(math.log(2 / 0.05) * (1 - (drawn - 1) / persons) / (2 * drawn))
