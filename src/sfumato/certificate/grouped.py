"""Claims about groups of records, released persons with linked rows, and the leaves of a chain."""

from __future__ import annotations

from sfumato.certificate.statements import (
    NOTHING,
    RAN_AS_WRITTEN,
    SECRET_RANDOMNESS,
    Claim,
    ClaimsOf,
    Refused,
    Statements,
    counted,
    quoted,
    whom_rows_describe,
)
from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import (
    Celled,
    Chained,
    ColumnRulesKept,
    Fact,
    Grouped,
    PersonsApart,
    PersonsBounded,
    PersonsLinked,
    RowsDrawn,
    Scored,
    Synthesized,
    TailsCoded,
    WeightsScaled,
)

__all__ = ["CLAIMS", "check_levels", "of_any_groups", "of_chain", "of_groups", "of_partitions"]

_SEVERAL_RECORDS = "Several records of a person disclose no more than one of them."


def check_levels(fact: Grouped) -> None:
    """Refuse to certify groups that are smaller than a privacy level inside."""
    if fact.violations:
        records = counted(fact.violations, "record is", "records are")
        raise PrivacyRefusal(f"{records} in groups below their privacy level; nothing is certified")


def of_groups(fact: Grouped, facts: tuple[Fact, ...]) -> Statements:
    """State the sizes of groups, and what groups do not protect.

    Raises
    ------
    PrivacyRefusal
        If a record is in a group below its privacy level.
    """
    check_levels(fact)
    drawn = any(isinstance(other, Synthesized) for other in facts)
    apart = next((other for other in facts if isinstance(other, PersonsApart)), None)
    if apart is not None:
        yield _of_groups_of_persons(fact, apart)
    else:
        yield _of_groups_of_records(fact, drawn=drawn)
    yield from of_any_groups(fact.groups)
    yield from _of_small_groups(fact)


def _of_groups_of_records(fact: Grouped, *, drawn: bool) -> Claim:
    return Claim(
        f"Each of the {fact.records} original records was {'condensed with others' if drawn else 'put'} into a group "
        f"at least as large as its privacy level. Smallest group: {fact.smallest}."
        if not fact.alone
        else f"{counted(fact.records, 'original record was', 'original records were')} put into groups at least as "
        f"large as their privacy levels, {counted(fact.alone, 'record', 'records')} of level 1 into groups of one.",
        "proved",
        "Condensation forms groups at least as large as the highest privacy level inside [AY05, sec. 2]. The finished "
        "groups were checked record by record.",
        whom_rows_describe(by_person=False),
    )


def _of_groups_of_persons(fact: Grouped, apart: PersonsApart) -> Claim:
    records = f"{counted(fact.records, 'record', 'records')} of {counted(apart.persons, 'person', 'persons')}"
    return Claim(
        f"The {records} were condensed into groups with at least as many different persons as each record's privacy "
        f"level. Smallest group: {counted(fact.smallest, 'person', 'persons')}.",
        "proved",
        "No group contains two records of one person. The first records of all persons are grouped separately from the "
        "second ones, and so on. Further records of a person join groups without that person. The finished groups were "
        "checked record by record.",
        whom_rows_describe(by_person=True),
    )


def of_persons(fact: PersonsApart, facts: tuple[Fact, ...]) -> Statements:
    """State which records were left out of the groups, and what several records of a person disclose."""
    records = next(other.records for other in facts if isinstance(other, Grouped))
    which = "a record that no group could take"
    why = (
        "A group cannot take a record if it would contain a person twice or be smaller than the record's privacy level."
    )
    if any(isinstance(other, PersonsLinked) for other in facts):
        which = "a record beyond the number of records that enough persons have"
        why = "Such records are left out of the groups."
    yield Claim(
        f"No released row was drawn from {which}.",
        "proved",
        f"{why} Rows are drawn from the finished groups alone.",
        whom_rows_describe(by_person=True),
    )
    if fact.persons < records:
        yield Refused(
            _SEVERAL_RECORDS,
            f"There are {records} records of {counted(fact.persons, 'person', 'persons')}, and records of one person "
            "are in different groups. Anyone who knows several of them may find several groups and their typical "
            "values.",
        )


def of_partitions(fact: Celled, *, chain: bool) -> Statements:
    """State that no group or leaf crosses the partitions of a large table."""
    grouped = (
        "The table was partitioned along principal axes of a sample before any group was made. Partitions with fewer "
        "people than the highest privacy level were merged. Each partition was grouped separately."
    )
    drawn = (
        "The table was partitioned by a sample before any tree was grown. Partitions with fewer people than a leaf or "
        "the highest privacy level requires were merged. Rows were drawn from each partition separately, in proportion "
        "to its records. A group is a leaf of a tree."
    )
    yield Claim(
        f"No group contains records of two of the {fact.cells} partitions of the table. Smallest partition: "
        f"{counted(fact.smallest, 'record', 'records')}."
        if fact.cells > 1
        else "The table was processed as a single partition.",
        "proved",
        drawn if chain else grouped,
        RAN_AS_WRITTEN,
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


def of_scores(fact: Scored, facts: tuple[Fact, ...]) -> Statements:
    """State which numbers the drawn normal scores are mapped back to."""
    persons = any(isinstance(other, PersonsApart) for other in facts)
    yield Claim(
        f"In {counted(fact.columns, 'numeric column', 'numeric columns')}, released numbers are computed from means "
        f"over at least {fact.k} {'persons' if persons else 'records'} and from numbers that as many share.",
        "proved",
        "Statistics are computed on normal scores, which are ranks mapped to a normal distribution. Drawn scores are "
        "mapped back by linear interpolation between these numbers, extended beyond the outermost.",
        whom_rows_describe(by_person=persons),
    )


def of_drawn_rows(fact: Synthesized, facts: tuple[Fact, ...]) -> Statements:
    """State that rows were drawn from statistics, and refuse this for groups whose records do not differ."""
    groups = next(other for other in facts if isinstance(other, Grouped))
    same = groups.alike
    asked = any(isinstance(other, RowsDrawn) for other in facts)
    rows = f"drawn from the {fact.statistics} of a group of at least {groups.smallest} records; no record was copied."
    drawn = f"every released row was {rows}"
    if same and asked:
        drawn = (
            f"every released row of a group whose records differ was drawn from its {fact.statistics}; none of these "
            "was copied."
        )
    elif same:
        drawn = (
            f"{fact.rows - same} of {fact.rows} released rows were drawn from the {fact.statistics} of groups whose "
            "records differ; none of these was copied."
        )
    if not same or asked or same < fact.rows:
        yield Claim(
            _except_derived(facts, drawn),
            "proved",
            f"Rows are drawn at random, {fact.law} of each group's covariance [AY05, eq. 2.1].{_derived(facts)} A "
            "drawn row may still lie close to an original record, or equal it by chance; see the report.",
            RAN_AS_WRITTEN,
        )
    looked_up = any(isinstance(other, ColumnRulesKept) and other.rare_pairs for other in facts)  # may be rare
    if groups.smallest > 1 and not looked_up:
        yield _of_numbers(groups, facts)
    if same:
        come = counted(same, "row comes", "rows come")
        if asked:
            come = f"The rows drawn for {counted(same, 'record', 'records')} come"
        yield Refused(
            "No released row is an original record.",
            f"{come} from groups that vary in no number and at most one other column, such as single or identical "
            "records. Rows of these groups are the records themselves.",
        )


def _except_derived(facts: tuple[Fact, ...], claim: str) -> str:
    """Except from a claim the columns that a rule derives, and weights that were scaled."""
    ruled = any(isinstance(other, ColumnRulesKept) for other in facts)
    scaled = any(isinstance(other, WeightsScaled) for other in facts)
    parts = ["derived columns"] * ruled + ["scaled weights"] * scaled
    return f"Except for {' and '.join(parts)}, {claim}" if parts else f"{claim[0].upper()}{claim[1:]}"


def _derived(facts: tuple[Fact, ...]) -> str:
    """Explain what was excepted, for the basis of the claim."""
    ruled = any(isinstance(other, ColumnRulesKept) for other in facts)
    scaled = any(isinstance(other, WeightsScaled) for other in facts)
    return (" Derived columns are computed from others by a rule between columns." if ruled else "") + (
        " Weights were scaled after drawing." if scaled else ""
    )


def _of_numbers(fact: Grouped, facts: tuple[Fact, ...]) -> Claim:
    persons = any(isinstance(other, PersonsApart) for other in facts)
    return Claim(
        f"No number that fewer than {fact.smallest} persons in the table have was copied.",
        "proved",
        "Numbers and dates were drawn from the spread of a group, or derived from drawn ones by rules. If all records "
        f"of a group share one number, that number is drawn; each group has at least {fact.smallest}. A drawn number "
        "may still equal an original one by chance, above all in a column with few values; see the report.",
        whom_rows_describe(by_person=persons),
    )


def of_wanted_rows(fact: RowsDrawn, _: tuple[Fact, ...]) -> Statements:
    """State which rows the data owner asked for, and what more rows than records disclose."""
    if fact.where:
        yield Claim(
            f"Every released row satisfies the condition {fact.where!r}, which the data owner chose.",
            "proved",
            "Rows that do not satisfy it were discarded before their other columns were drawn. All rows were checked.",
            NOTHING,
        )
    if fact.rows > fact.records:
        yield Refused(
            "More rows than original records disclose no more than equally many rows.",
            f"{fact.rows} rows were drawn from the same statistics of {counted(fact.records, 'record', 'records')}. "
            "The more rows there are, the more precisely a reader can estimate these statistics.",
        )


def of_linked_persons(fact: PersonsLinked, facts: tuple[Fact, ...]) -> Statements:
    """State how linked rows of a released person were drawn, and what they disclose."""
    smallest = next(other.smallest for other in facts if isinstance(other, Grouped))
    yield Claim(
        f"The rows of each of {counted(fact.persons, 'released person', 'released persons')} were drawn together from "
        f"the records of at least {counted(smallest, 'person', 'persons')} with equally many records.",
        "proved",
        "Persons with equally many records were condensed by all of them at once. The first records of a group's "
        "members give the first rows, the second ones the second, and so on. Records left out of the groups do not "
        "count.",
        whom_rows_describe(by_person=True),
    )
    yield Claim(
        f"The numbers in {fact.column!r} reveal nothing about the values of the person column.",
        "proved",
        "They were assigned at random after the rows were drawn.",
        SECRET_RANDOMNESS,
    )
    if fact.constant:
        yield Claim(
            f"No released person has two values in {counted(len(fact.constant), 'column that is', 'columns that are')} "
            "constant for each original person.",
            "proved",
            f"Columns: {quoted(fact.constant)}. Their values were drawn once for each released person.",
            NOTHING,
        )
    yield Refused(
        "The number of a person's records stays unknown to anyone who finds the person's group.",
        "Members of a group have equally many records, up to those left out, and released persons have as many rows.",
    )
    yield Refused(
        "The linked rows of a person disclose no more than single rows.",
        f"A released person has up to {counted(fact.most, 'row', 'rows')}. Anyone who knows several records of a "
        "person can compare them all at once.",
    )


def of_chain(fact: Chained, facts: tuple[Fact, ...] = ()) -> Statements:
    """State what each value of a chain was drawn from, and refuse what groups would provide and a chain does not.

    Raises
    ------
    PrivacyRefusal
        If a record is in a leaf below its privacy level.
    """
    if fact.violations:
        records = counted(fact.violations, "record is", "records are")
        raise PrivacyRefusal(f"{records} in leaves below their privacy level; nothing is certified")
    bounded = any(isinstance(other, PersonsBounded) for other in facts)
    partitioned = any(isinstance(other, Celled) and other.cells > 1 for other in facts)
    yield _of_leaves(fact, facts, by_person=bounded, partitioned=partitioned)
    coded = any(isinstance(other, TailsCoded) and other.method != "keep" for other in facts)
    yield _of_rare_numbers(fact, by_person=bounded, partitioned=partitioned, coded=coded)
    yield Refused(
        f"A combination of values in a released row is shared by {fact.k} people.",
        "Each value comes from a leaf of its own, so a row combines values of many people. A combination may be that "
        "of one person or of no one.",
    )
    yield Refused(
        "No released row equals an original record.",
        "Rows are drawn without this check, because discarding equal rows would disclose who is in the table. The "
        "report compares the number of equal rows with a control group.",
    )
    single = sum(fact.alike)
    yield Refused(
        "The values of a leaf's members stay unknown to anyone who finds the leaf.",
        f"A leaf shows how values are distributed among its members. Of {sum(fact.leaves)} leaves, {single} "
        f"{'contains' if single == 1 else 'contain'} a single value.",
    )
    yield Refused(
        "The release is differentially private.",
        "The splits of the trees and the values of their leaves carry no calibrated noise.",
    )


def _of_leaves(fact: Chained, facts: tuple[Fact, ...], *, by_person: bool, partitioned: bool) -> Claim:
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
        _except_derived(
            facts,
            f"every released value was drawn from a group of at least {fact.leaf} {who} with similar values in the "
            f"preceding columns. Smallest group: {min(fact.smallest)}.",
        ),
        "proved",
        " ".join(basis) + _derived(facts),
        whom_rows_describe(by_person=by_person),
    )


def _of_rare_numbers(fact: Chained, *, by_person: bool, partitioned: bool, coded: bool) -> Claim:
    who = "persons" if by_person else "records"
    return Claim(
        f"No number that fewer than {fact.k} {who} in the table have was copied.",
        "proved",
        f"{counted(fact.moved, 'drawn number was', 'drawn numbers were')} replaced, because rare"
        f"{' in the partition' if partitioned else ''}, from a column with many rare numbers, or drawn by a "
        f"regression. Each became the nearest number of its leaf that at least {fact.k} {who} have, or moved at random "
        f"towards another value of the leaf. {counted(fact.kept, 'other number is', 'other numbers are')} unchanged, "
        f"as at least {fact.k} {who} have them{' after top and bottom coding' if coded else ''}. A moved number may "
        "still equal an original one, at most where original numbers are dense; see the report.",
        whom_rows_describe(by_person=by_person),
    )


def of_bounded_persons(fact: PersonsBounded, facts: tuple[Fact, ...]) -> Statements:
    """Refuse that several records of a person disclose no more than one."""
    records = next(other.records for other in facts if isinstance(other, Chained))
    if fact.persons < records:
        yield Refused(
            _SEVERAL_RECORDS,
            f"There are {records} records of {counted(fact.persons, 'person', 'persons')}, and records of one person "
            "may be in different leaves. Anyone who knows several of them may find several leaves and their values.",
        )


CLAIMS: ClaimsOf = {
    Chained: of_chain,
    PersonsApart: of_persons,
    PersonsBounded: of_bounded_persons,
    PersonsLinked: of_linked_persons,
    RowsDrawn: of_wanted_rows,
    Scored: of_scores,
    Synthesized: of_drawn_rows,
}
