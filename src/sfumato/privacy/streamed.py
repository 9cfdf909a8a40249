"""Claims of a stream: groups that are kept up while records arrive, and the epochs that leave."""

from __future__ import annotations

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import EpochPublished, Fact, Maintained, PersonRowsBounded, RareValues, RowsKept
from sfumato.privacy.grouped import of_any_groups
from sfumato.privacy.statements import Claim, ClaimsOf, Refused, Statements, counted

__all__ = ["CLAIMS", "of_stream"]


def of_stream(fact: Maintained, facts: tuple[Fact, ...]) -> Statements:
    """Say what is proved of a stream's release, and what is not.

    Raises
    ------
    PrivacyRefusal
        If the ledger of epochs is not whole, a family left with fewer fresh records than k, or nothing is said of
        rare categories.
    """
    ledger = [other for other in facts if isinstance(other, EpochPublished)]
    _check(fact, ledger)
    rare = any(isinstance(other, RareValues) for other in facts)
    if fact.category_columns and not rare:
        raise PrivacyRefusal("the facts do not tell what became of rare categories; nothing is certified")
    bounded = next((other for other in facts if isinstance(other, PersonRowsBounded)), None)
    yield _of_joining(fact) if bounded is None else _of_bounded_rows(bounded, fact.k)
    yield from _claims(fact, ledger)
    yield from _of_epochs(ledger)
    yield from _of_groups(fact)
    if rare or fact.missing_columns:
        yield Refused(
            "Every category of a group is shared by several of its members.",
            "groups keep the counts of their categories and missing cells, so a category that enough people of the "
            "stream have may stand once inside a group",
        )


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
        f"privacy level, {fact.k} or more, when it came; until there was one it waited and "
        "was not published.",
        "proved",
        "The first records were condensed together [AY05, sec. 2] and later ones join the closest group that holds "
        "at least their level less one [AY05, sec. 3]; a group that was split counts as the model has it.",
        "one row of the stream is one person",
    )


def _of_bounded_rows(fact: PersonRowsBounded, k: int) -> Claim:
    """Say how many persons a group of a stream had at least, whose lowest level of rows this is."""
    return Claim(
        "Every record that stands behind the rows joined a group that, with it, was of at least as many different "
        f"persons as its own privacy level, {k // fact.most} or more, when it came; until there was one it waited and "
        "was not published.",
        "proved",
        f"Of a person at most {counted(fact.most, 'record is', 'records are')} taken in, the others are kept out, and "
        "a group needs as many times as many records as persons; the first records were condensed together [AY05, "
        "sec. 2] and later ones join the closest group that is large enough [AY05, sec. 3]; a group that was split "
        "counts as the model has it.",
        "the person column tells who each row is about",
    )


def _claims(fact: Maintained, ledger: list[EpochPublished]) -> Statements:
    last, least = ledger[-1], min((line.fresh for line in ledger if line.renewed), default=fact.k)
    yield Claim(
        f"From one epoch to the next, the rows of a family of groups change only where at least {least} records are "
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
    if fact.alike >= last.rows:
        return
    which, copied = "Every released row was", " no row was copied from an original record, and"
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


def _of_groups(fact: Maintained) -> Statements:
    yield from of_any_groups(fact.groups)
    if fact.pseudo:
        yield Refused(
            "Each group stands for as many people as it has rows.",
            f"{fact.pseudo} of {counted(fact.groups, 'group was', 'groups were')} cut out of the statistics of larger "
            "ones by a model, so nobody knows how many people are behind one of them",
        )
    if fact.short:
        yield Refused(
            "Each group is as large as the highest privacy level among the records that it stems from.",
            f"{counted(fact.short, 'group is', 'groups are')} smaller: the paper's test splits by the average level, "
            "and holds that a group cut out of statistics keeps the privacy of the whole [AY05, sec. 3]",
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


CLAIMS: ClaimsOf = {Maintained: of_stream, RowsKept: of_kept_rows}
