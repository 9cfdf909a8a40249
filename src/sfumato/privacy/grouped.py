"""Claims of groups of records: made at once, and kept up while records arrive."""

from __future__ import annotations

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import (
    Celled,
    ColumnRulesKept,
    EpochPublished,
    Fact,
    Grouped,
    Maintained,
    PersonRowsBounded,
    PersonsApart,
    PersonsLinked,
    RareValues,
    RowsDrawn,
    RowsKept,
    Scored,
    Synthesized,
    WeightsScaled,
)
from sfumato.privacy.linked import of_bounded_rows
from sfumato.privacy.statements import Claim, ClaimsOf, Refused, Statements, counted

__all__ = ["CLAIMS", "asked_levels", "but_for", "check_levels", "of_cells", "of_filled", "of_groups", "of_stream"]


def check_levels(fact: Grouped) -> None:
    """Refuse to certify groups that are smaller than a level inside."""
    if fact.violations:
        who = counted(fact.violations, "record is", "records are")
        raise PrivacyRefusal(f"{who} in groups below their privacy level; nothing is certified")


def asked_levels(low: int, high: int) -> str:
    """Levels from the lowest to the highest."""
    return f"{low}" if low == high else f"{low} to {high}"


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
    yield from _of_any_groups(fact.groups)
    yield from _of_small_groups(fact)


def _of_groups_of_records(fact: Grouped, *, drawn: bool) -> Claim:
    return Claim(
        f"Each of the {fact.records} original records was {'condensed with others' if drawn else 'put'} into a "
        f"group at least as large as its own privacy level ({asked_levels(fact.asked_min, fact.asked_max)}); the "
        f"smallest group has {fact.smallest}."
        if not fact.alone
        else f"The {counted(fact.records, 'original record', 'original records')} were put into groups at least as "
        f"large as the privacy level of each ({asked_levels(fact.asked_min, fact.asked_max)}), "
        f"{counted(fact.alone, 'record', 'records')} of level 1 into groups of one.",
        "proved",
        "Condensation puts a record only where the group is as large as the highest level inside [AY05, sec. 2]; "
        "the finished partition was checked record by record.",
        "one row is one person",
    )


def _of_groups_of_persons(fact: Grouped, apart: PersonsApart) -> Claim:
    who = f"{counted(fact.records, 'record', 'records')} of {counted(apart.persons, 'person', 'persons')}"
    asked = asked_levels(fact.asked_min, fact.asked_max)
    return Claim(
        f"The {who} were condensed into groups that hold at least as many different persons as the privacy level of "
        f"each record inside ({asked}); the smallest group has {counted(fact.smallest, 'person', 'persons')}.",
        "proved",
        "No group holds two records of one person: the first records of all are grouped apart from the second ones, "
        "and so on, and whoever has more joins groups without their own records. The finished partition was checked "
        "record by record.",
        "the person column tells who each row is about",
    )


def of_persons(fact: PersonsApart, facts: tuple[Fact, ...]) -> Statements:
    """Say what became of records that no group could take, and what several records of a person give away."""
    records = next(other.records for other in facts if isinstance(other, Grouped))
    if fact.left_out:
        why = "every group that could have taken such a record held its person already or was too small for its level"
        if any(isinstance(other, PersonsLinked) for other in facts):
            why = "fewer persons than the level asks for have as many, and rows of a person stay together"
        yield Claim(
            f"{counted(fact.left_out, 'original record was', 'original records were')} left out, since {why}; no "
            "released row was drawn from a group that holds one of these.",
            "proved",
            "Records in no group are counted when the partition is finished; rows are drawn from groups alone.",
            "the person column tells who each row is about",
        )
    if fact.persons < records:
        yield Refused(
            "A person's several records give away no more than one of them does.",
            f"{records} records are of {counted(fact.persons, 'person', 'persons')}, whose records stand in different "
            "groups: whoever knows several of them may find several groups, and with them the typical values of each",
        )


def of_cells(fact: Celled) -> Statements:
    """Say that cells were condensed apart."""
    yield Claim(
        f"No group holds records of two of the {fact.cells} cells that the table was cut into; the smallest cell has "
        f"{counted(fact.smallest, 'record', 'records')}."
        if fact.cells > 1
        else "The table was condensed in one cell.",
        "proved",
        "The table was cut along principal axes of a sample before any group was made, cells with fewer people than "
        "the highest privacy level were joined, and each cell was condensed by itself.",
        "nothing but that the program ran as it is written",
    )


def _of_any_groups(groups: int) -> Statements:
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
    groups = next((other for other in facts if isinstance(other, Grouped)), None)
    same = None if groups is None else groups.alike
    basis = f"{fact.law.capitalize()} of each group's covariance [AY05, eq. 2.1]."
    but = but_for(facts, "columns", "its weight, which was")
    near = "a drawn row may still come to lie close to, or by chance on, an original record: see the report"
    if groups is None or same is None:
        yield Claim(
            f"Every released row{but} was drawn at random from the {fact.statistics} of a group of records.",
            "proved",
            basis,
            "the group may be one record, or of records that are all the same: then the row is that record",
        )
    elif not same:
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
    if groups is not None and groups.smallest > 1 and not _copies_pairs(facts):
        yield _of_numbers(groups, facts)
    if same:
        where = counted(same, "row comes", "rows come")
        if any(isinstance(other, RowsDrawn) for other in facts):
            where = f"what is drawn for {counted(same, 'record', 'records')} comes"
        yield Refused(
            "No released row is an original record.",
            f"{where} from groups that vary in no number and at most in one "
            "other column, such as records alone or all the same: what is drawn from these are the records as "
            "they are",
        )


def but_for(facts: tuple[Fact, ...], made: str, scaled: str) -> str:
    """What was not drawn of a row, to stand in a sentence: columns that a rule makes, and a weight that was scaled."""
    ruled = any(isinstance(other, ColumnRulesKept) for other in facts)
    weighed = any(isinstance(other, WeightsScaled) for other in facts)
    parts = [f"{made} that a rule between columns makes from others"] if ruled else []
    parts += [f"{scaled} scaled afterwards"] if weighed else []
    return f", but for {' and '.join(parts)}," if parts else ""


def _copies_pairs(facts: tuple[Fact, ...]) -> bool:
    """Whether a rule of the owner's may look up a number that few records hold."""
    return any(isinstance(other, ColumnRulesKept) and other.rare_pairs > 0 for other in facts)


def of_filled(fact: RareValues | None) -> str:
    """What is taken for held where cells that few lack were filled."""
    if fact is None or not fact.filled:
        return ""
    which = "cell filled from another record counts" if fact.filled == 1 else "cells filled from other records count"
    return f"; {fact.filled} {which} as held"


def _of_numbers(fact: Grouped, facts: tuple[Fact, ...]) -> Claim:
    persons = any(isinstance(other, PersonsApart) for other in facts)
    rare = next((other for other in facts if isinstance(other, RareValues)), None)
    return Claim(
        f"No number that fewer than {fact.smallest} persons of the table hold was copied.",
        "proved",
        "Numbers and dates were drawn from the spread of a group, or made from such by rules; where all records of a "
        f"group hold one number, that is drawn, and each group has at least {fact.smallest}.",
        ("the person column tells who each row is about" if persons else "one row is one person")
        + of_filled(rare)
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
            f"{fact.rows} rows were drawn from the same statistics of {fact.records} records: the more rows, the "
            "closer a reader comes to these statistics",
        )


def of_stream(fact: Maintained, facts: tuple[Fact, ...]) -> Statements:
    """Say what is proved of a stream's release, and what is not.

    Raises
    ------
    PrivacyRefusal
        Where the ledger of epochs is not whole, or a family left with fewer fresh records than k.
    """
    ledger = [other for other in facts if isinstance(other, EpochPublished)]
    _check(fact, ledger)
    bounded = next((other for other in facts if isinstance(other, PersonRowsBounded)), None)
    yield _of_joining(fact) if bounded is None else of_bounded_rows(bounded, fact.k, fact.asked_max)
    yield from _claims(fact, ledger)
    yield from _of_epochs(ledger)
    yield from _of_groups(fact, facts)


def of_kept_rows(fact: RowsKept, _: tuple[Fact, ...]) -> Statements:
    """Say who was left out of a stream to measure it by, and that raw rows are kept, or were."""
    if fact.outside:
        who, them = ("record that came was", "it") if fact.outside == 1 else ("records that came were", "them")
        yield Claim(
            f"{fact.outside} {who} never taken into the stream, so no released row rests on {them}.",
            "proved",
            "Rows to measure by are chosen by a keyed digest of their place in the source, before anything of them "
            "is counted; only records that are taken in join groups.",
            "one row of the stream is one person",
        )
    if fact.forgotten:
        yield Claim(
            "The original rows that were kept to measure releases by have been deleted from the owner's state.",
            "proved",
            "They were removed in one step, which was on disk before this epoch was written.",
            "no backup, older copy, log or trace on a disk still holds them",
        )
    elif fact.rows or fact.outside:
        yield Refused(
            "The owner keeps no original record.",
            f"{counted(fact.rows + fact.outside, 'row lies', 'rows lie')} encrypted in the owner's state to "
            f"measure releases by: {fact.rows} of those taken in and {fact.outside} of those who were not",
        )


def _check(fact: Maintained, ledger: list[EpochPublished]) -> None:
    if [line.epoch for line in ledger] != list(range(1, len(ledger) + 1)) or not ledger:
        raise PrivacyRefusal(f"the ledger of epochs has {len(ledger)} lines with gaps; nothing is certified")
    hasty = sum(line.fresh < fact.k for line in ledger if line.renewed)
    if hasty:
        raise PrivacyRefusal(f"in {hasty} epochs a family left with too few fresh records; nothing is certified")
    if fact.split == "strict" and fact.short:
        raise PrivacyRefusal(f"{fact.short} groups are smaller than a level inside; nothing is certified")


def _of_joining(fact: Maintained) -> Claim:
    return Claim(
        f"Every record that stands behind the rows joined a group that, with it, was at least as large as its own "
        f"privacy level ({asked_levels(fact.k, fact.asked_max)}) when it came; until there was one it waited and "
        "was not published.",
        "proved",
        "The first records were condensed together [AY05, sec. 2] and later ones join the closest group that holds "
        "at least their level less one [AY05, sec. 3]; a group that was split counts as the model has it.",
        "one row of the stream is one person",
    )


def _claims(fact: Maintained, ledger: list[EpochPublished]) -> Statements:
    last, least = ledger[-1], min((line.fresh for line in ledger if line.renewed), default=fact.k)
    yield Claim(
        f"From one epoch to the next, the rows of a family of groups change only where at least {least} records "
        "are "
        f"new behind them; all other rows are repeated unchanged. In epoch {last.epoch}, "
        f"{counted(last.renewed, 'family', 'families')} changed and {last.repeated} "
        f"{'was' if last.repeated == 1 else 'were'} repeated.",
        "proved",
        "A family's new state leaves only with as many fresh records as the highest privacy level among them and "
        "the family, and never fewer than k; the ledger of epochs is among the facts.",
        "all epochs were published from one state, which was not set back to an earlier copy",
    )
    yield from _of_drawn_rows(fact, last)


def _of_drawn_rows(fact: Maintained, last: EpochPublished) -> Statements:
    """Say of which rows it is known that they are no original records."""
    if fact.alike is not None and fact.alike >= last.rows:
        return
    which, copied = "Every released row was", ""
    if fact.alike is not None:
        copied = " no row was copied from an original record, and"
    if fact.alike:
        which = f"{last.rows - fact.alike} of the {last.rows} released rows were"
        copied = " none of these was copied from an original record, and"
    yield Claim(
        f"{which} drawn at random from the mean and covariance of a group;{copied} no original record was kept to "
        "draw from.",
        "proved",
        "Uniform along eigenvectors of each group's covariance [AY05, eq. 2.1]; joining and splitting need "
        "statistics alone.",
        "a drawn row may still come to lie close to, or by chance on, an original record",
    )


def _of_epochs(ledger: list[EpochPublished]) -> Statements:
    least = min((line.fresh for line in ledger if line.renewed), default=0)
    yield Refused(
        "An arrival stays hidden from whoever brought the other arrivals.",
        "the difference of two epochs is that of the fresh records of a family, at least "
        f"{least} in this ledger: whoever contributed all of them but one works out the last one",
    )
    yield Refused(
        "Nobody can tell when a record came.",
        "rows that are drawn anew tell which part of the table got fresh records in an epoch",
    )


def _of_groups(fact: Maintained, facts: tuple[Fact, ...]) -> Statements:
    yield from _of_any_groups(fact.groups)
    if fact.pseudo:
        yield Refused(
            "Each group stands for as many people as it has rows.",
            f"{fact.pseudo} of {counted(fact.groups, 'group was', 'groups were')} cut out of the statistics of "
            "larger ones by a model, so "
            "nobody knows how many people are behind one of them",
        )
    if fact.short:
        yield Refused(
            "Each group is as large as the highest privacy level among the records that it stems from.",
            f"{counted(fact.short, 'group is', 'groups are')} smaller: the paper's test splits by the average "
            "level, and holds that a "
            "group cut out of statistics keeps the privacy of the whole [AY05, sec. 3]",
        )
    if fact.alike:
        yield Refused(
            "No released row is an original record.",
            f"{counted(fact.alike, 'row comes', 'rows come')} from groups whose rows vary in no number and at most "
            "in one other column: these may be the records as they are",
        )
    if fact.tiny:
        yield Refused(
            "No record can be recovered from the statistics of its group.",
            f"{counted(fact.tiny, 'group has', 'groups have')} three rows or fewer; mean and covariance of two "
            "records give both exactly",
        )
    if any(isinstance(other, RareValues) for other in facts):
        yield Refused(
            "Every category of a group is shared by several of its members.",
            "groups keep the counts of their categories and missing cells, so a category that enough people of the "
            "stream have may stand once inside a group",
        )
    elif fact.category_columns or fact.missing_columns:
        yield Refused(
            "Rare categories are hidden.",
            "groups keep the counts of their categories and missing cells, and rows leave before it is known how many "
            "people will hold a category: one that a single person has may appear once in the release; begin the "
            "stream anew with this version, which counts them",
        )


CLAIMS: ClaimsOf = {
    Maintained: of_stream,
    PersonsApart: of_persons,
    RowsDrawn: of_wanted_rows,
    RowsKept: of_kept_rows,
    Scored: of_scores,
    Synthesized: of_drawn_rows,
}
