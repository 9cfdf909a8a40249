"""Facts about condensation, with claims about rows drawn from groups and about linked persons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sfumato.core.facts import (
    NOTHING,
    RAN_AS_WRITTEN,
    SECRET_RANDOMNESS,
    Check,
    Claim,
    Context,
    Fact,
    Refused,
    ReleasedColumns,
    RowCheck,
    Statements,
    counted,
    quoted,
    whom_rows_describe,
)
from sfumato.core.groups.facts import Grouped
from sfumato.tables.facts import ColumnRulesKept, RowsDrawn, derived_basis, except_derived

__all__ = [
    "ClassPure",
    "GroupSynthesis",
    "NormalScoreColumns",
    "PersonRows",
    "PersonsInDistinctGroups",
    "PersonsLinked",
]

_SEVERAL_RECORDS = "Several records of a person disclose no more than one of them."


_BY_CLASS = "class-wise: "


@dataclass(frozen=True)
class GroupSynthesis(Fact):
    """Every released row was drawn from a group's statistics: as many as it has records, or as `RowsDrawn` says."""

    methods = ("condense", "condense-paper", "classwise", "joint-condense")
    grouped = synthetic = True

    statistics: str
    law: str
    rows: int

    def claims(self, context: Context) -> Statements:
        """State that rows were drawn from statistics, and refuse this for groups whose records do not differ."""
        groups = context.the(Grouped)
        same = groups.alike
        asked = context.has(RowsDrawn)
        rows = (
            f"drawn from the {self.statistics} of a group of at least {groups.smallest} records; no record was copied."
        )
        drawn = f"every released row was {rows}"
        if same and asked:
            drawn = (
                f"every released row of a group whose records differ was drawn from its {self.statistics}; none of "
                "these was copied."
            )
        elif same:
            drawn = (
                f"{self.rows - same} of {self.rows} released rows were drawn from the {self.statistics} of groups "
                "whose records differ; none of these was copied."
            )
        if not same or asked or same < self.rows:
            yield Claim(
                except_derived(context, drawn),
                f"Rows are drawn at random, {self.law} of each group's covariance [AY05, eq. "
                f"2.1].{derived_basis(context)} A drawn row may still lie close to an original record, or equal it by "
                "chance; see the report.",
                RAN_AS_WRITTEN,
            )
        looked_up = any(isinstance(other, ColumnRulesKept) and other.rare_pairs for other in context)  # may be rare
        if groups.smallest > 1 and not looked_up:
            yield _of_numbers(groups, context)
        if same:
            come = counted(same, "row comes", "rows come")
            if asked:
                come = f"The rows drawn for {counted(same, 'record', 'records')} come"
            yield Refused(
                "No released row is an original record.",
                f"{come} from groups that vary in no number and at most one other column, such as single or identical "
                "records. Rows of these groups are the records themselves.",
            )

    def check(self) -> bool:
        return (self.statistics, self.law) == ("mean and covariance", "uniform along eigenvectors")

    def agrees(self, context: Context) -> bool:
        return context.has(Grouped)

    def fits(self, context: Context) -> bool:
        from sfumato.methods.condense import ALGORITHMS

        mechanism, groups = context.mechanism, context.the(Grouped)
        if context.method == "joint-condense":  # its plan is compared by the fact of the joint run
            return context.has("joint")
        known = {ALGORITHMS[mechanism.grouping]} if mechanism.grouping is not None else set(ALGORITHMS.values())
        algorithm, pure = groups.algorithm, context.one(ClassPure)
        if (context.method == "classwise") != (pure is not None):
            return False
        if pure is not None:
            if not algorithm.startswith(_BY_CLASS):
                return False
            algorithm = algorithm.removeprefix(_BY_CLASS)
            algorithm = algorithm.removesuffix(", chosen by trial") if mechanism.grouping is None else algorithm
        return algorithm in known and groups.smallest >= int(mechanism.traits.floor)

    @property
    def rows_released(self) -> int:
        return self.rows


@dataclass(frozen=True)
class NormalScoreColumns(Fact):
    """Numbers of some columns were normal scores (ranks among all people) while rows were grouped and drawn.

    Drawn scores became numbers again by a line through means of the numbers of at least ``k`` people each, and through
    numbers that as many hold; people are records, or beside `PersonsInDistinctGroups` persons.
    """

    methods = ("condense", "condense-paper")
    grouped = synthetic = True

    columns: int
    k: int

    def claims(self, context: Context) -> Statements:
        """State which numbers the drawn normal scores are mapped back to."""
        persons = context.has(PersonsInDistinctGroups)
        yield Claim(
            f"In {counted(self.columns, 'numeric column', 'numeric columns')}, released numbers are computed from "
            f"means over at least {self.k} {'persons' if persons else 'records'} and from numbers that as many share.",
            "Statistics are computed on normal scores, which are ranks mapped to a normal distribution. Drawn scores "
            "are mapped back by linear interpolation between these numbers, extended beyond the outermost.",
            whom_rows_describe(by_person=persons),
        )

    def check(self) -> bool:
        return self.columns >= 1 and self.k >= 2

    def agrees(self, context: Context) -> bool:
        return context.has(GroupSynthesis)

    def fits(self, context: Context) -> bool:
        return bool(context.parameters["scores"] == "normal")

    def wrong_columns(self, released: ReleasedColumns, context: Context) -> Iterator[str]:
        if self.columns > released.numbers:
            yield "numeric columns"


@dataclass(frozen=True)
class ClassPure(Fact):
    """No group holds records of two classes of this column, and every released row has the class of its group.

    ``size`` is the group size if it was chosen from the sizes of the classes, their approximate greatest common divisor
    in units of ``unit`` records; 0 if it was not.
    """

    methods = ("classwise",)
    grouped = synthetic = True

    column: str
    classes: int
    size: int = 0
    unit: int = 0

    def claims(self, context: Context) -> Statements:
        yield Claim(
            f"Every released row has the class {self.column!r} of all records in its group; no group mixes the "
            f"{self.classes} classes."
            if self.classes > 1
            else f"Every released row has the only class {self.column!r} in the table.",
            "Each class was condensed separately [KCG12, fig. 5]. The finished groups were checked one by one.",
            "the classes in the table are correct",
        )
        if self.size:
            yield Claim(
                f"The group size, {self.size}, is the approximate greatest common divisor of the class sizes.",
                f"Class sizes were counted in units of {counted(self.unit, 'record', 'records')}. The group size is "
                "the largest number of units that divides the units of every class [KCG12, fig. 5, theorem 1]. A group "
                "may be larger if a record in it has a higher privacy level.",
                RAN_AS_WRITTEN,
            )
        yield Refused(
            f"A reader cannot be certain of the class {self.column!r} of the people behind a row.",
            "No group mixes classes. Anyone who finds a person's group knows the class with certainty (l = 1).",
        )

    def check(self) -> bool:
        chosen = self.size >= self.unit >= 1 and self.size % self.unit == 0
        return self.classes >= 1 and (chosen or self.size == self.unit == 0)

    def fits(self, context: Context) -> bool:
        chosen = bool(self.size) == (context.parameters["k"] is None)
        return chosen and context.the(Grouped).smallest >= self.size and context.has(GroupSynthesis)

    def most_values(self) -> Mapping[str, int]:
        return {self.column: self.classes}


@dataclass(frozen=True)
class PersonsInDistinctGroups(Fact):
    """No group holds two records of one person, so that groups are as large in persons as in records.

    Records that no group without their person could take are in none; how many is not stated.
    """

    methods = ("condense", "condense-paper", "classwise")
    grouped = synthetic = True

    persons: int

    def claims(self, context: Context) -> Statements:
        """State which records were left out of the groups, and what several records of a person disclose."""
        records = context.the(Grouped).records
        which = "a record that no group could take"
        why = (
            "A group cannot take a record if it would contain a person twice or be smaller than the record's privacy "
            "level."
        )
        if context.has(PersonsLinked):
            which = "a record beyond the number of records that enough persons have"
            why = "Such records are left out of the groups."
        yield Claim(
            f"No released row was drawn from {which}.",
            f"{why} Rows are drawn from the finished groups alone.",
            whom_rows_describe(by_person=True),
        )
        if self.persons < records:
            yield Refused(
                _SEVERAL_RECORDS,
                f"There are {records} records of {counted(self.persons, 'person', 'persons')}, and records of one "
                "person are in different groups. Anyone who knows several of them may find several groups and their "
                "typical values.",
            )

    def agrees(self, context: Context) -> bool:
        groups = context.one(Grouped)
        counts = groups is not None and groups.smallest <= self.persons <= groups.records
        return counts and context.has(GroupSynthesis)


@dataclass(frozen=True)
class PersonsLinked(Fact):
    """The rows of each of ``persons`` released persons, at most ``most`` rows each, share a new number in this column.

    They were drawn together from a group of persons with as many records each: the first records of its members are
    a group of `PersonsInDistinctGroups`, the second ones another, and so on. The ``constant`` columns, which never
    change within a person of the original, do not change within a released one. Records beyond those that enough
    persons have are left out, as `PersonsInDistinctGroups` counts.
    """

    methods = ("condense", "condense-paper")
    grouped = synthetic = True

    column: str
    persons: int
    most: int
    constant: tuple[str, ...] = ()

    def claims(self, context: Context) -> Statements:
        """State how linked rows of a released person were drawn, and what they disclose."""
        smallest = context.the(Grouped).smallest
        yield Claim(
            f"The rows of each of {counted(self.persons, 'released person', 'released persons')} were drawn together "
            f"from the records of at least {counted(smallest, 'person', 'persons')} with equally many records.",
            "Persons with equally many records were condensed by all of them at once. The first records of a group's "
            "members give the first rows, the second ones the second, and so on. Records left out of the groups do not "
            "count.",
            whom_rows_describe(by_person=True),
        )
        yield Claim(
            f"The numbers in {self.column!r} reveal nothing about the values of the person column.",
            "They were assigned at random after the rows were drawn.",
            SECRET_RANDOMNESS,
        )
        if self.constant:
            yield Claim(
                "No released person has two values in "
                f"{counted(len(self.constant), 'column that is', 'columns that are')} constant for each original "
                "person.",
                f"Columns: {quoted(self.constant)}. Their values were drawn once for each released person.",
                NOTHING,
            )
        yield Refused(
            "The number of a person's records stays unknown to anyone who finds the person's group.",
            "Members of a group have equally many records, up to those left out, and released persons have as many "
            "rows.",
        )
        yield Refused(
            "The linked rows of a person disclose no more than single rows.",
            f"A released person has up to {counted(self.most, 'row', 'rows')}. Anyone who knows several records of a "
            "person can compare them all at once.",
        )

    def check(self) -> bool:
        return min(self.most, self.persons) >= 1 and len(set(self.constant)) == len(self.constant)

    def agrees(self, context: Context) -> bool:
        """Whether released persons are as many as those whose records were grouped, one row for each record."""
        groups, apart = context.one(Grouped), context.one(PersonsInDistinctGroups)
        few, most = self.persons + self.most - 1, self.persons * self.most
        counts = groups is not None and few <= groups.records <= most
        return counts and apart is not None and apart.persons == self.persons and not context.has(RowsDrawn)

    def named_columns(self) -> tuple[str, ...]:
        return (self.column, *self.constant)

    def row_check(self, schema: Any, context: Context) -> RowCheck:

        return PersonRows(self, context.the(Grouped).smallest)


def _of_numbers(fact: Grouped, context: Context) -> Claim:
    persons = context.has(PersonsInDistinctGroups)
    return Claim(
        f"No number that fewer than {fact.smallest} persons in the table have was copied.",
        "Numbers and dates were drawn from the spread of a group, or derived from drawn ones by rules. If all records "
        f"of a group share one number, that number is drawn; each group has at least {fact.smallest}. A drawn number "
        "may still equal an original one by chance, above all in a column with few values; see the report.",
        whom_rows_describe(by_person=persons),
    )


_NAME = "released persons"


class PersonRows:
    """Counts persons, their rows, and the values that each has in columns that are constant for a person."""

    def __init__(self, fact: PersonsLinked, least: int) -> None:
        self.fact, self.least = fact, least
        self._rows: Counter[object] = Counter()
        self._changing = set[str]()  # columns in which a person has two values
        self._first: dict[tuple[str, object], object] = {}
        self._lacking = False

    def add(self, batch: pa.Table) -> None:
        """Read some more rows."""
        if not {self.fact.column, *self.fact.constant} <= set(batch.column_names):
            self._lacking = True
            return
        persons = batch.column(self.fact.column).to_pylist()
        self._rows.update(persons)
        for name in self.fact.constant:
            for person, value in zip(persons, batch.column(name).to_pylist(), strict=True):
                if self._first.setdefault((name, person), value) != value:
                    self._changing.add(name)

    def checks(self) -> Iterator[Check]:
        """Whether there are as many persons and rows as certified, and each count of rows for enough persons."""
        holds, detail = self._result()
        yield Check(_NAME, holds, detail)

    def _result(self) -> tuple[bool, str]:
        times = Counter(self._rows.values())
        if self._lacking or None in self._rows:
            return False, "rows do not state the person that they belong to"
        most = counted(max(times, default=0), "row", "rows")
        if (len(self._rows), max(times, default=0)) != (self.fact.persons, self.fact.most):
            return False, f"{len(self._rows)} with up to {most} each, not as certified"
        few = sum(count < self.least for count in times.values())
        if few:
            occur = counted(few, "row count occurs", "row counts occur")
            return False, f"{occur} for fewer persons than the smallest group has"
        if self._changing:
            change = counted(len(self._changing), "column changes", "columns change")
            return False, f"{change} within a person, contrary to the certificate"
        constant = counted(len(self.fact.constant), "column is", "columns are")
        return True, f"{self.fact.persons} with up to {most} each; {constant} constant"
