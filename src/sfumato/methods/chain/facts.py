"""Facts about the leaves of a chain."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import (
    Claim,
    Context,
    Fact,
    GroupSizes,
    Refused,
    Statements,
    Stratified,
    UnlabelledRows,
    are_unique,
    counted,
    whom_rows_describe,
)
from sfumato.core.groups.facts import Partitioned
from sfumato.tables.facts import RowsDrawn, TailsCoded, derived_basis, except_derived

__all__ = [
    "ChainSynthesis",
    "PersonsBounded",
]

_SEVERAL_RECORDS = "Several records of a person disclose no more than one of them."


@dataclass(frozen=True)
class ChainSynthesis(Fact):
    """Columns were drawn one after the other, each cell from a leaf of records that are alike in the columns before.

    Of each column, in the order in which they were drawn, ``leaves`` counts the leaves, ``smallest`` the records of the
    smallest and ``alike`` those leaves that hold one value alone. A leaf holds at least ``leaf`` records and as many as
    the highest level inside, but ``violations`` of them. At least ``k`` records, a number that no single record's level
    decides, hold each number that was not moved: ``kept`` released numbers are such, and ``moved`` were moved inside
    their leaf, to a value that as many have or towards another. In the ``regressed`` columns what was drawn is how far
    records lie from a regression on the columns before. The columns that were drawn ``twice`` were drawn first too, so
    that others are drawn by them; what is released is from the second time, given all others, when they stand last.
    Beside `PersonsBounded`, leaf, k and the smallest leaves count persons and not records.
    """

    methods = ("chain",)
    synthetic = True

    columns: tuple[str, ...]
    leaves: tuple[int, ...]
    smallest: tuple[int, ...]
    alike: tuple[int, ...]
    records: int
    rows: int
    k: int
    leaf: int
    violations: int
    kept: int
    moved: int
    regressed: tuple[str, ...] = ()
    twice: tuple[str, ...] = ()

    def claims(self, context: Context) -> Statements:
        """State what each value of a chain was drawn from, and refuse what groups would provide and a chain does not.

        Raises
        ------
        PrivacyRefusal
            If a record is in a leaf below its privacy level.
        """
        if self.violations:
            records = counted(self.violations, "record is", "records are")
            raise PrivacyRefusal(f"{records} in leaves below their privacy level; nothing is certified")
        bounded = context.has(PersonsBounded)
        partitioned = any(isinstance(other, Partitioned) and other.cells > 1 for other in context)
        yield _of_leaves(self, context, by_person=bounded, partitioned=partitioned)
        coded = any(isinstance(other, TailsCoded) and other.method != "keep" for other in context)
        yield _of_rare_numbers(self, by_person=bounded, partitioned=partitioned, coded=coded)
        yield Refused(
            f"A combination of values in a released row is shared by {self.k} people.",
            "Each value comes from a leaf of its own, so a row combines values of many people. A combination may be "
            "that of one person or of no one.",
        )
        yield Refused(
            "No released row equals an original record.",
            "Rows are drawn without this check, because discarding equal rows would disclose who is in the table. The "
            "report compares the number of equal rows with a control group.",
        )
        single = sum(self.alike)
        yield Refused(
            "The values of a leaf's members stay unknown to anyone who finds the leaf.",
            f"A leaf shows how values are distributed among its members. Of {sum(self.leaves)} leaves, {single} "
            f"{'contains' if single == 1 else 'contain'} a single value.",
        )
        yield Refused(
            "The release is differentially private.",
            "The splits of the trees and the values of their leaves carry no calibrated noise.",
        )

    def check(self) -> bool:
        """Whether such leaves are possible, of columns that each occur once."""
        per_column = (self.leaves, self.smallest, self.alike)
        return (
            are_unique(self.columns, *per_column)
            and set(self.regressed) <= set(self.columns if self.twice else self.columns[1:])
            and len(set(self.regressed)) == len(self.regressed)
            and self.twice in ((), self.columns[-1:])
            and set(self.twice) <= set(self.regressed)
            and all(
                alike <= leaves and leaves >= 1 and smallest >= 1 and leaves * smallest <= self.records
                for leaves, smallest, alike in zip(*per_column, strict=True)
            )
            and 2 <= self.k <= self.records
            and (self.violations > 0 or self.leaf <= min(self.smallest))
            and self.leaf <= self.records
            and self.kept + self.moved <= self.rows * len(self.columns)
        )

    def agrees(self, context: Context) -> bool:
        """Whether a leaf that is the only one of its column has all persons, and every column was drawn."""
        bounded = context.one(PersonsBounded)
        people = self.records if bounded is None else bounded.persons
        only = (smallest for leaves, smallest in zip(self.leaves, self.smallest, strict=True) if leaves == 1)
        named = {each.column for each in context.all(Stratified)} | {
            each.column for each in context.all(UnlabelledRows)
        }
        return all(smallest == people for smallest in only) and named <= set(self.columns)

    def fits(self, context: Context) -> bool:
        from sfumato.tables.levels import parse_conditions

        mechanism = context.mechanism
        drawn = context.one(RowsDrawn)
        named = [name for name, _, _ in parse_conditions("" if drawn is None else drawn.where)]
        first = tuple(dict.fromkeys([*named, *(mechanism.order or ())]))
        return bool(
            self.k >= mechanism.k
            and self.leaf == max(mechanism.leaf, mechanism.k)
            and self.columns[: len(first)] == first
        )

    @property
    def rows_released(self) -> int:
        return self.rows

    @property
    def records_used(self) -> int:
        return self.records

    @property
    def group_sizes(self) -> GroupSizes:
        return GroupSizes(min(self.smallest, default=0), sum(self.leaves), self.violations)


@dataclass(frozen=True)
class PersonsBounded(Fact):
    """The leaves of a chain are counted in persons, none of whom supplies more than two in ``leaf`` of their cells.

    Cells that persons had beyond that in a leaf were not drawn from; how many is not stated.
    """

    methods = ("chain",)
    synthetic = True

    persons: int

    def claims(self, context: Context) -> Statements:
        """Refuse that several records of a person disclose no more than one."""
        records = context.the(ChainSynthesis).records
        if self.persons < records:
            yield Refused(
                _SEVERAL_RECORDS,
                f"There are {records} records of {counted(self.persons, 'person', 'persons')}, and records of one "
                "person may be in different leaves. Anyone who knows several of them may find several leaves and their "
                "values.",
            )

    def agrees(self, context: Context) -> bool:
        chain = context.one(ChainSynthesis)
        return chain is not None and max(chain.smallest) <= self.persons <= chain.records


def _of_leaves(fact: ChainSynthesis, context: Context, *, by_person: bool, partitioned: bool) -> Claim:
    who = "persons" if by_person else "records"
    some, inside = ("In some or all partitions, ", " of the partition") if partitioned else ("", "")
    basis = [
        f"{counted(len(fact.columns), 'column', 'columns')} of {fact.rows} rows were drawn one after another, each "
        "value from a group that is a leaf of a decision tree.",
        "Similar values are on the same side of every split.",
        "Every leaf was counted and is at least as large as the highest privacy level inside.",
    ]
    if partitioned:
        basis.append("Every leaf lies within one partition of the table.")
    if by_person:
        basis.append(
            f"No person supplies more than 2 in {fact.leaf} of the values drawn from a leaf; others were left out."
        )
    if fact.regressed:
        columns = counted(len(fact.regressed), "numeric column", "numeric columns")
        basis.append(
            f"{some}{'in' if some else 'In'} {columns}, the drawn value is the residual of a regression on the "
            f"preceding columns over all records{inside}."
        )
    if fact.twice:
        columns = counted(len(fact.twice), "column was", "columns were")
        basis.append(
            f"{some}{columns} drawn twice: first to draw the others, then again from all of them. Only the second "
            "draw is released."
        )
    if fact.kept:
        basis.append(
            f"A number that at least {fact.k} {who} share may then be replaced at random by a neighbouring number that "
            f"as many share. At most a fiftieth of the column's numbers{inside} lie between the two."
        )
    return Claim(
        except_derived(
            context,
            f"every released value was drawn from a group of at least {fact.leaf} {who} with similar values in the "
            f"preceding columns. Smallest group: {min(fact.smallest)}.",
        ),
        " ".join(basis) + derived_basis(context),
        whom_rows_describe(by_person=by_person),
    )


def _of_rare_numbers(fact: ChainSynthesis, *, by_person: bool, partitioned: bool, coded: bool) -> Claim:
    who = "persons" if by_person else "records"
    return Claim(
        f"No number that fewer than {fact.k} {who} in the table have was copied.",
        f"{counted(fact.moved, 'drawn number was', 'drawn numbers were')} replaced, because rare"
        f"{' in the partition' if partitioned else ''}, from a column with many rare numbers, or drawn by a "
        f"regression. Each became the nearest number of its leaf that at least {fact.k} {who} have, or moved at random "
        f"towards another value of the leaf. {counted(fact.kept, 'other number is', 'other numbers are')} unchanged, "
        f"as at least {fact.k} {who} have them{' after top and bottom coding' if coded else ''}. A moved number may "
        "still equal an original one, at most where original numbers are dense; see the report.",
        whom_rows_describe(by_person=by_person),
    )
