"""Facts about groups of records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import (
    RAN_AS_WRITTEN,
    Claim,
    Context,
    Fact,
    GroupSizes,
    Refused,
    ReleasedColumns,
    Statements,
    counted,
    whom_rows_describe,
)

__all__ = [
    "CountsKept",
    "Grouped",
    "Partitioned",
    "of_any_groups",
]

_TINY = 3  # records of a group whose statistics determine them


@dataclass(frozen=True)
class Grouped(Fact):
    """Records were partitioned into groups, each at least as large as the highest level inside.

    Levels are not stated: an unusual one would tell of who asked for it. ``violations`` counts the records in groups
    below their level. ``tiny`` counts the groups of three records or fewer, ``alone`` the records that stand alone,
    ``alike`` those in groups that vary in no number and at most in one other column.
    """

    algorithm: str
    records: int
    groups: int
    smallest: int
    violations: int
    tiny: int
    alone: int
    alike: int

    def claims(self, context: Context) -> Statements:
        """State the sizes of groups, and what groups do not protect.

        Raises
        ------
        PrivacyRefusal
            If a record is in a group below its privacy level.
        """
        if self.violations:
            records = counted(self.violations, "record is", "records are")
            raise PrivacyRefusal(f"{records} in groups below their privacy level; nothing is certified")
        noise, apart = context.one("component-noise"), context.one("persons-in-distinct-groups")
        if noise is not None:
            yield from noise.group_claims(self)
            return
        if apart is not None:
            yield _of_groups_of_persons(self, apart.persons)
        else:
            yield _of_groups_of_records(self, drawn=context.has("group-synthesis"))
        yield from of_any_groups(self.groups)
        yield from _of_small_groups(self)

    def check(self) -> bool:
        return (
            self.groups >= 1
            and self.groups * self.smallest <= self.records
            and self.alone <= self.tiny <= self.groups
            and (self.smallest == 1) == (self.alone > 0)
            and (self.smallest <= _TINY) == (self.tiny > 0)
            and self.alone <= self.alike <= self.records
        )

    def agrees(self, context: Context) -> bool:
        return all(fact.grouped for fact in context if fact.methods)

    def wrong_columns(self, released: ReleasedColumns, context: Context) -> Iterator[str]:
        if released.missing and not context.has(CountsKept, "passed-through"):
            yield "columns with missing cells"

    @property
    def records_used(self) -> int:
        return self.records

    @property
    def group_sizes(self) -> GroupSizes:
        return GroupSizes(self.smallest, self.groups, self.violations)


@dataclass(frozen=True)
class CountsKept(Fact):
    """Within each group, category counts and missing cells are those of its records; of all rows that were drawn."""

    category_columns: int
    missing_columns: int

    def claims(self, context: Context) -> Statements:
        counts, appears = "Each group keeps the exact counts of its categories and missing cells", "appears once"
        if context.has("rows-drawn"):
            counts = "Rows are drawn with the counts of categories and missing cells of each group"
            appears = "may appear"
        rare = context.one("rare-values")
        if rare is not None and not rare.shown:
            yield Refused(
                "Every category in a group is shared by several of its members.",
                f"{counts}. A category that is frequent enough in the table may occur once in a group.",
            )
        elif context.has("joint"):
            yield Refused(
                "Rare categories are hidden.",
                f"{counts}, and frequencies over all data owners were not counted. A category of one person appears "
                "once; let the owners declare only frequent or wider categories.",
            )
        else:
            yield Refused(
                "Rare categories are hidden.", f"{counts}. A category of one person {appears} in the release."
            )

    def check(self) -> bool:
        return self.category_columns + self.missing_columns > 0

    def wrong_columns(self, released: ReleasedColumns, context: Context) -> Iterator[str]:
        yield from released.wrong_counts(self.category_columns, self.missing_columns)

    @property
    def shows_categories(self) -> bool:
        return self.category_columns > 0


@dataclass(frozen=True)
class Partitioned(Fact):
    """Records were cut into cells before anything was drawn, and each cell was sanitized apart: no group crosses two.

    ``smallest`` is the number of records of the smallest cell.
    """

    cells: int
    smallest: int

    def claims(self, context: Context) -> Statements:
        """State that no group or leaf crosses the partitions of a large table."""
        grouped = (
            "The table was partitioned along principal axes of a sample before any group was made. Partitions with "
            "fewer people than the highest privacy level were merged. Each partition was grouped separately."
        )
        drawn = (
            "The table was partitioned by a sample before any tree was grown. Partitions with fewer people than a leaf "
            "or the highest privacy level requires were merged. Rows were drawn from each partition separately, in "
            "proportion to its records. A group is a leaf of a tree."
        )
        yield Claim(
            f"No group contains records of two of the {self.cells} partitions of the table. Smallest partition: "
            f"{counted(self.smallest, 'record', 'records')}."
            if self.cells > 1
            else "The table was processed as a single partition.",
            drawn if context.has("chain-synthesis") else grouped,
            RAN_AS_WRITTEN,
        )

    def agrees(self, context: Context) -> bool:
        """Whether there are groups or leaves, at least one in each partition, and the smallest fits in any of them."""
        chain, groups = context.one("chain-synthesis"), context.one(Grouped)
        parts = [] if groups is None else [(groups.groups, groups.smallest, groups.records)]
        parts += [] if chain is None else [(min(chain.leaves), min(chain.smallest), chain.records)]
        return bool(parts) and all(
            1 <= self.cells <= count and smallest <= self.smallest and self.cells * self.smallest <= records
            for count, smallest, records in parts
        )


def _of_groups_of_records(fact: Grouped, *, drawn: bool) -> Claim:
    return Claim(
        f"Each of the {fact.records} original records was {'condensed with others' if drawn else 'put'} into a group "
        f"at least as large as its privacy level. Smallest group: {fact.smallest}."
        if not fact.alone
        else f"{counted(fact.records, 'original record was', 'original records were')} put into groups at least as "
        f"large as their privacy levels, {counted(fact.alone, 'record', 'records')} of level 1 into groups of one.",
        "Condensation forms groups at least as large as the highest privacy level inside [AY05, sec. 2]. The finished "
        "groups were checked record by record.",
        whom_rows_describe(by_person=False),
    )


def _of_groups_of_persons(fact: Grouped, persons: int) -> Claim:
    records = f"{counted(fact.records, 'record', 'records')} of {counted(persons, 'person', 'persons')}"
    return Claim(
        f"The {records} were condensed into groups with at least as many different persons as each record's privacy "
        f"level. Smallest group: {counted(fact.smallest, 'person', 'persons')}.",
        "No group contains two records of one person. The first records of all persons are grouped separately from the "
        "second ones, and so on. Further records of a person join groups without that person. The finished groups were "
        "checked record by record.",
        whom_rows_describe(by_person=True),
    )


def of_any_groups(groups: int) -> Statements:
    """Refuse what statistics of groups never provide."""
    which = f"in which of the {groups} groups" if groups > 1 else "in which group"
    yield Refused(
        "The release is differentially private.",
        "The means and covariances of groups carry no calibrated noise.",
    )
    yield Refused(
        f"No one can tell {which} a known person is.",
        "A group hides which of its members a person is, not where the group lies. Anyone who knows a person's values "
        "may find the group and its typical values.",
    )
    yield Refused(
        "The statistics of a group protect each member from the other members.",
        "Anyone who knows all members of a group but one can compute the last one from the group's sums.",
    )


def _of_small_groups(fact: Grouped) -> Statements:
    if fact.tiny:
        yield Refused(
            "No record can be recovered from the statistics of its group.",
            f"{counted(fact.tiny, 'group has', 'groups have')} three records or fewer. The mean and covariance of two "
            "records determine both exactly.",
        )
    if fact.alone:
        yield Refused(
            "Every record is protected.",
            f"{counted(fact.alone, 'record of level 1 forms a group', 'records of level 1 form groups')} of one and "
            f"{'is' if fact.alone == 1 else 'are'} published unchanged.",
        )
