"""Claims of groups made at once, of released persons who keep their rows together, and of the leaves of a chain."""

from __future__ import annotations

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
from sfumato.privacy.statements import SECRET_RANDOMNESS, Claim, ClaimsOf, Refused, Statements, counted, quoted

__all__ = ["CLAIMS", "check_levels", "of_any_groups", "of_cells", "of_chain", "of_groups", "of_parts"]

_EACH_ROW, _PERSON_COLUMN = "one row is one person", "the person column tells who each row is about"


def check_levels(fact: Grouped) -> None:
    """Refuse to certify groups that are smaller than a level inside."""
    if fact.violations:
        who = counted(fact.violations, "record is", "records are")
        raise PrivacyRefusal(f"{who} in groups below their privacy level; nothing is certified")


def of_groups(fact: Grouped, facts: tuple[Fact, ...]) -> Statements:
    """Say how large groups are, and who finds what in them.

    Raises
    ------
    PrivacyRefusal
        Where a record is in a group below its level.
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
        f"Each of the {fact.records} original records was {'condensed with others' if drawn else 'put'} into a "
        "group at least as large as its own privacy level; the "
        f"smallest group has {fact.smallest}."
        if not fact.alone
        else f"The {counted(fact.records, 'original record was', 'original records were')} put into groups at least as "
        "large as the privacy level of each, "
        f"{counted(fact.alone, 'record', 'records')} of level 1 into groups of one.",
        "proved",
        "Condensation puts a record only where the group is as large as the highest level inside [AY05, sec. 2]; "
        "the finished partition was checked record by record.",
        "one row is one person",
    )


def _of_groups_of_persons(fact: Grouped, apart: PersonsApart) -> Claim:
    who = f"{counted(fact.records, 'record', 'records')} of {counted(apart.persons, 'person', 'persons')}"
    return Claim(
        f"The {who} were condensed into groups that hold at least as many different persons as the privacy level of "
        f"each record inside; the smallest group has {counted(fact.smallest, 'person', 'persons')}.",
        "proved",
        "No group holds two records of one person: the first records of all are grouped apart from the second ones, "
        "and so on, and whoever has more joins groups without their own records. The finished partition was checked "
        "record by record.",
        "the person column tells who each row is about",
    )


def of_persons(fact: PersonsApart, facts: tuple[Fact, ...]) -> Statements:
    """Say what became of records that no group could take, and what several records of a person give away."""
    records = next(other.records for other in facts if isinstance(other, Grouped))
    which = "that no group could take without holding its person twice or being too small for its level"
    if any(isinstance(other, PersonsLinked) for other in facts):
        which = "beyond those that enough persons have"
    yield Claim(
        f"No released row was drawn from an original record {which}.",
        "proved",
        "Such records are left out when the partition is finished, and rows are drawn from groups alone.",
        "the person column tells who each row is about",
    )
    if fact.persons < records:
        yield Refused(
            "A person's several records give away no more than one of them does.",
            f"{records} records are of {counted(fact.persons, 'person', 'persons')}, whose records stand in different "
            "groups: whoever knows several of them may find several groups, and with them the typical values of each",
        )


def of_cells(fact: Celled) -> Statements:
    """Say that the groups of cells were made apart."""
    yield Claim(
        f"No group holds records of two of the {fact.cells} cells that the table was cut into; the smallest cell has "
        f"{counted(fact.smallest, 'record', 'records')}."
        if fact.cells > 1
        else "The table was put into groups in one cell.",
        "proved",
        "The table was cut along principal axes of a sample before any group was made, cells with fewer people than "
        "the highest privacy level were joined, and each cell was put into groups by itself.",
        "nothing but that the program ran as it is written",
    )


def of_any_groups(groups: int) -> Statements:
    """Say what statistics of groups never give, whoever made them."""
    which = f"in which of the {groups} groups" if groups > 1 else "in which group"
    yield Refused(
        "The release is differentially private.",
        "the groups' means and covariances carry no calibrated noise",
    )
    yield Refused(
        f"Nobody can tell {which} a known person is.",
        "a group hides which of its members a person is, not where in the table they are: someone who knows a "
        "person's values may find the right group, and with it the group's typical values",
    )
    yield Refused(
        "The statistics of a group stay safe from its own members.",
        "whoever knows all members of a group but one can work out the last one from the group's sums",
    )


def _of_small_groups(fact: Grouped) -> Statements:
    if fact.tiny:
        yield Refused(
            "No record can be recovered from the statistics of its group.",
            f"{counted(fact.tiny, 'group has', 'groups have')} three records or fewer; mean and covariance of two "
            "records give both exactly",
        )
    if fact.alone:
        yield Refused(
            "Every record is protected.",
            f"{counted(fact.alone, 'record of level 1 stands', 'records of level 1 stand')} alone and "
            f"{'is' if fact.alone == 1 else 'are'} published as {'it is' if fact.alone == 1 else 'they are'}",
        )


def of_scores(fact: Scored, facts: tuple[Fact, ...]) -> Statements:
    """Say what drawn scores became numbers by."""
    who = "persons" if any(isinstance(other, PersonsApart) for other in facts) else "original records"
    yield Claim(
        f"In {counted(fact.columns, 'column', 'columns')} of numbers a released number is computed from means of the "
        f"numbers of at least {fact.k} {who} each, and from numbers that as many hold.",
        "proved",
        "Statistics are of normal scores, the places of numbers among all; drawn scores became numbers by a line "
        "through these points, which goes on beyond the outermost.",
        "the person column tells who each row is about" if who == "persons" else "one row is one person",
    )


def of_drawn_rows(fact: Synthesized, facts: tuple[Fact, ...]) -> Statements:
    """Say that rows were drawn, and which of them are original records all the same."""
    groups = next(other for other in facts if isinstance(other, Grouped))
    same = groups.alike
    basis = f"{fact.law.capitalize()} of each group's covariance [AY05, eq. 2.1]."
    but = but_for(facts, "columns", "its weight, which was")
    near = "a drawn row may still come to lie close to, or by chance on, an original record: see the report"
    if not same:
        yield Claim(
            f"Every released row{but} was drawn at random from the {fact.statistics} of a group of at least "
            f"{groups.smallest} records; no row was copied from an original record.",
            "proved",
            basis,
            near,
        )
    elif any(isinstance(other, RowsDrawn) for other in facts):
        yield Claim(
            f"Every released row of a group whose records differ was drawn at random from its {fact.statistics}; none "
            "of these was copied from an original record.",
            "proved",
            basis,
            near,
        )
    elif same < fact.rows:
        yield Claim(
            f"{fact.rows - same} of the {fact.rows} released rows{but} were drawn at random from the {fact.statistics} "
            "of a group whose records differ; none of these was copied from an original record.",
            "proved",
            basis,
            near,
        )
    looked_up = any(isinstance(other, ColumnRulesKept) and other.rare_pairs for other in facts)  # may be held by few
    if groups.smallest > 1 and not looked_up:
        yield _of_numbers(groups, facts)
    if same:
        where = counted(same, "row comes", "rows come")
        if any(isinstance(other, RowsDrawn) for other in facts):
            where = f"what is drawn for {counted(same, 'record', 'records')} comes"
        yield Refused(
            "No released row is an original record.",
            f"{where} from groups that vary in no number and at most in one other column, such as records alone or all "
            "the same: what is drawn from these are the records as they are",
        )


def but_for(facts: tuple[Fact, ...], made: str, scaled: str) -> str:
    """What was not drawn of a row, to stand in a sentence: columns that a rule makes, and a weight that was scaled."""
    ruled = any(isinstance(other, ColumnRulesKept) for other in facts)
    weighed = any(isinstance(other, WeightsScaled) for other in facts)
    parts = [f"{made} that a rule between columns makes from others"] if ruled else []
    parts += [f"{scaled} scaled afterwards"] if weighed else []
    return f", but for {' and '.join(parts)}," if parts else ""


def _of_numbers(fact: Grouped, facts: tuple[Fact, ...]) -> Claim:
    persons = any(isinstance(other, PersonsApart) for other in facts)
    return Claim(
        f"No number that fewer than {fact.smallest} persons of the table hold was copied.",
        "proved",
        "Numbers and dates were drawn from the spread of a group, or made from such by rules; where all records of a "
        f"group hold one number, that is drawn, and each group has at least {fact.smallest}.",
        ("the person column tells who each row is about" if persons else "one row is one person")
        + "; a drawn number may still come to lie on an original one, above all where a column has few: see the report",
    )


def of_wanted_rows(fact: RowsDrawn, _: tuple[Fact, ...]) -> Statements:
    """Say which rows the owner asked for, and what more rows than records give away."""
    if fact.where:
        yield Claim(
            f"Every released row fulfils the rule {fact.where!r}, by which the owner chose what to draw.",
            "proved",
            "Rows that do not were drawn and left out before their other columns were drawn; all rows were checked.",
            "nothing; the released table shows it",
        )
    if fact.rows > fact.records:
        yield Refused(
            "More rows than there are records give away no more than as many would.",
            f"{fact.rows} rows were drawn from the same statistics of {counted(fact.records, 'record', 'records')}: "
            "the more rows, the closer a reader comes to these statistics",
        )


def of_linked_persons(fact: PersonsLinked, facts: tuple[Fact, ...]) -> Statements:
    """Say whom a released person was drawn from, and what rows that stay together give away."""
    smallest = next(other.smallest for other in facts if isinstance(other, Grouped))
    yield Claim(
        f"The rows of each of the {counted(fact.persons, 'released person', 'released persons')} were drawn together "
        f"from the records of at least {counted(smallest, 'person', 'persons')} who have as many, those left out not "
        "counted.",
        "proved",
        "Persons with as many records were condensed by all of them at once; the first records of a group's members "
        "make the first rows, the second ones the second, and so on.",
        "the person column tells who each row is about",
    )
    yield Claim(
        f"The numbers of {fact.column!r} say nothing of the values of the person column.",
        "proved",
        "They were dealt by chance, after the rows were drawn.",
        SECRET_RANDOMNESS,
    )
    if fact.constant:
        yield Claim(
            "No released person has two values in a column that never changes within a person of the original: "
            f"{quoted(fact.constant)}.",
            "proved",
            "They were drawn once for each released person.",
            "nothing; the released table shows it",
        )
    yield Refused(
        "How many records a person has stays unknown to whoever finds that person's group.",
        "persons of a group have as many records each, up to those left out, and released persons as many rows",
    )
    yield Refused(
        "Rows that stay together give away no more than single rows do.",
        f"a released person keeps up to {counted(fact.most, 'row', 'rows')}, so whoever knows several records of "
        "somebody compares them all at once",
    )


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
    yield _of_leaves(fact, bounded, but_for(facts, "those", "weights, which were"), parts=parts)
    coded = any(isinstance(other, TailsCoded) and other.method != "keep" for other in facts)
    yield from _of_rare_numbers(fact, bounded, parts=parts, coded=coded)
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
    beside = (
        f" A number that at least {fact.k} {'records' if bounded is None else 'persons'} hold may then have become, "
        "by chance, one beside it that as many hold: at most a fiftieth of the column's numbers"
        f"{' in the part' if parts else ''} lie between."
        if fact.kept
        else ""
    )
    left_out = (
        " Cells beyond those by which a person supplies that much of a leaf were left out of its draws."
        if bounded is not None
        else ""
    )
    return Claim(
        f"Each cell of the {fact.rows} released rows{but} was drawn from the cells of at least {fact.leaf} {who} "
        f"are {'in the same part of the table and ' if parts else ''}alike in the columns drawn before it, and of at "
        f"least as many as any of these asked for; the smallest such leaf has {so_many}."
        f"{regressed}{twice}{beside}",
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


def _of_rare_numbers(fact: Chained, bounded: PersonsBounded | None, *, parts: bool, coded: bool) -> Statements:
    who, assumed = ("original records", _EACH_ROW) if bounded is None else ("persons of the table", _PERSON_COLUMN)
    holders = "records" if bounded is None else "persons"
    yield Claim(
        f"No number that fewer than {fact.k} {who} hold was copied.",
        "proved",
        f"{counted(fact.moved, 'drawn number was', 'drawn numbers were')} of that kind"
        f"{' in their part of the table' if parts else ''}, or of a column where many are, or drawn by a "
        "regression, and each became the nearest of its leaf that at least "
        f"{fact.k} {holders} hold, or was moved by chance towards another value of its leaf; "
        f"{counted(fact.kept, 'other is', 'others are')} as at least {fact.k} {holders} have them"
        f"{' once tails are coded' if coded else ''}.",
        f"{assumed}; a moved number may still come to lie on an original one, at most where that is "
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


CLAIMS: ClaimsOf = {
    Chained: of_chain,
    PersonsApart: of_persons,
    PersonsBounded: of_bounded_persons,
    PersonsLinked: of_linked_persons,
    RowsDrawn: of_wanted_rows,
    Scored: of_scores,
    Synthesized: of_drawn_rows,
}
