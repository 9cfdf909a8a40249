"""Facts about a stream: groups that are maintained while records arrive, and the epochs that are released."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sfumato.core.documents import write_json
from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import (
    PERSON_COLUMN,
    RAN_AS_WRITTEN,
    Claim,
    Context,
    Fact,
    GroupSizes,
    Refused,
    ReleasedColumns,
    Statements,
    counted,
)
from sfumato.core.groups.facts import of_any_groups
from sfumato.tables.facts import RareValues

__all__ = [
    "EpochPublished",
    "Maintained",
    "PersonRowsBounded",
    "RowsKept",
]

_ONE_ROW = "one row of the stream is one person"
_WAITED = (
    "A record waits unpublished until there is such a group. The size of a group that was split is that of the model."
)


_TINY = 3  # rows of a group whose statistics determine them


@dataclass(frozen=True)
class Maintained(Fact):
    """Groups were kept up as records arrived, by their statistics alone.

    Of the ``groups`` that the rows were drawn from, ``pseudo`` were cut out of the statistics of a larger one, so that
    their counts are a model's and not of people; ``short`` are smaller than the highest level that they stem from, and
    ``tiny`` have three rows or fewer. ``k`` is the lowest level, ``split`` the test.
    ``alike`` counts the rows of groups whose rows vary in no number and at most in one other column.
    """

    methods = ("stream",)

    algorithm: str
    split: str
    k: int
    groups: int
    pseudo: int
    smallest: int
    short: int
    tiny: int
    category_columns: int
    missing_columns: int
    alike: int

    def claims(self, context: Context) -> Statements:
        """State what is proved about the release of a stream, and what is not.

        Raises
        ------
        PrivacyRefusal
            If the ledger of epochs is incomplete, a family was released with fewer new records than k, or no fact
            covers rare categories.
        """
        ledger = context.all(EpochPublished)
        _check(self, ledger)
        rare = context.has(RareValues)
        if self.category_columns and not rare:
            raise PrivacyRefusal("no fact covers rare categories; nothing is certified")
        bounded = context.one(PersonRowsBounded)
        yield _of_joining(self) if bounded is None else _of_bounded_rows(bounded, self.k)
        yield from _claims(self, ledger)
        yield from _of_epochs(ledger)
        yield from _of_groups(self)
        if rare or self.missing_columns:
            yield Refused(
                "Every category in a group is shared by several of its members.",
                "Groups keep the counts of their categories and missing cells. A category that is frequent enough in "
                "the stream may occur once in a group.",
            )

    def check(self) -> bool:
        return (
            self.split in ("paper", "strict")
            and self.k >= 1
            and self.groups >= max(1, self.pseudo, self.short, self.tiny)
            and self.smallest >= 1
            and (self.smallest <= _TINY) == (self.tiny > 0)
            and (self.smallest < self.k) <= (self.short > 0)
        )

    def fits(self, context: Context) -> bool:
        from sfumato.methods.condense import ALGORITHMS

        bounded, grouping = context.one(PersonRowsBounded), context.parameters["grouping"]
        k = self.k if bounded is None else self.k // bounded.most
        stated = {"k": k, "split": self.split, "grouping": grouping, "epoch": context.all(EpochPublished)[-1].epoch}
        stated |= {} if bounded is None else {"person_rows": bounded.most}
        rare = context.one(RareValues)
        return (
            write_json(stated, "canonical") == write_json(context.parameters, "canonical")
            and self.algorithm == f"AY05 dynamic maintenance, started by {ALGORITHMS[grouping]}"
            and (rare is None or rare.k == k)
        )

    def wrong_columns(self, released: ReleasedColumns, context: Context) -> Iterator[str]:
        yield from released.wrong_counts(self.category_columns, self.missing_columns)

    @property
    def group_sizes(self) -> GroupSizes:
        return GroupSizes(self.smallest, self.groups, self.short)

    @property
    def shows_categories(self) -> bool:
        return self.category_columns > 0


@dataclass(frozen=True)
class EpochPublished(Fact):
    """One epoch of a stream: ``changed`` families of groups left in a new state, the others repeated their rows.

    ``fresh`` is the least number of records behind a new state that had not been behind an earlier one; 0 if no
    family left. ``rows`` are those of all families.
    """

    methods = ("stream",)
    repeatable = True

    epoch: int
    renewed: int
    repeated: int
    rows: int
    fresh: int

    def agrees(self, context: Context) -> bool:
        if self is not context.all(EpochPublished)[-1]:
            return True
        maintained = context.one(Maintained)
        enough = maintained is None or maintained.groups * maintained.smallest <= self.rows
        return enough and context.counts_agree(rows=self.rows)

    def fits(self, context: Context) -> bool:
        return context.has(Maintained)


@dataclass(frozen=True)
class RowsKept(Fact):
    """Raw rows of a stream lie encrypted in the owner's state, to measure releases by and for nothing else.

    ``rows`` are of records that were taken in; ``outside`` came and were never taken in. Where they are ``forgotten``
    both were deleted, so that ``rows`` is 0, and those outside stay out.
    """

    methods = ("stream",)

    rows: int
    outside: int
    forgotten: bool

    def claims(self, context: Context) -> Statements:
        """State which records are the control group of a stream, and whether original rows are kept for measurement."""
        if self.outside:
            records, them = counted(self.outside, "record was", "records were"), "it" if self.outside == 1 else "them"
            yield Claim(
                f"{records} held out of the stream as a control group, so no released row depends on {them}.",
                "Records for measurement are chosen by a keyed hash of their position in the source, before any of "
                "their values is counted. Only records that are taken in join groups.",
                _ONE_ROW,
            )
        if self.forgotten:
            yield Claim(
                "The original rows kept for measuring releases have been deleted from the data owner's state.",
                "They were removed in one step, which was on disk before this epoch was written.",
                "no backup, older copy, log or disk trace still contains them",
            )
        elif self.rows or self.outside:
            yield Refused(
                "The data owner keeps no original record.",
                f"{counted(self.rows + self.outside, 'row is', 'rows are')} stored encrypted in the owner's state to "
                f"measure releases: {self.rows} of records taken in and {self.outside} of the control group.",
            )

    def check(self) -> bool:
        return not (self.forgotten and self.rows)


@dataclass(frozen=True)
class PersonRowsBounded(Fact):
    """No more than ``most`` rows of a person were taken into a stream, and levels are as many times what was asked.

    A group of n records holds those of at least n / most persons.
    """

    methods = ("stream",)

    most: int

    def check(self) -> bool:
        return self.most >= 1

    def agrees(self, context: Context) -> bool:
        maintained = context.one(Maintained)
        return maintained is not None and not maintained.k % self.most and not context.has(RowsKept)


def _check(fact: Maintained, ledger: list[EpochPublished]) -> None:
    if [line.epoch for line in ledger] != list(range(1, len(ledger) + 1)) or not ledger:
        raise PrivacyRefusal(f"the ledger of epochs has {len(ledger)} lines with gaps; nothing is certified")
    hasty = sum(line.fresh < fact.k for line in ledger if line.renewed)
    if hasty:
        raise PrivacyRefusal(f"in {hasty} epochs a family was released with too few new records; nothing is certified")
    if fact.split == "strict" and fact.short:
        raise PrivacyRefusal(f"{fact.short} groups are smaller than a level inside; nothing is certified")


def _of_joining(fact: Maintained) -> Claim:
    return Claim(
        "Every record behind the rows joined a group that, including it, was at least as large as its privacy level "
        f"({fact.k} or more).",
        "The first records were condensed together [AY05, sec. 2]. Later ones join the closest group that has at least "
        f"their privacy level minus one [AY05, sec. 3]. {_WAITED}",
        _ONE_ROW,
    )


def _of_bounded_rows(fact: PersonRowsBounded, k: int) -> Claim:
    """State how many different persons a group had at least, if ``k`` is the minimum group size in rows."""
    return Claim(
        "Every record behind the rows joined a group that, including it, had at least as many different persons as its "
        f"privacy level ({k // fact.most} or more).",
        f"At most {counted(fact.most, 'record', 'records')} of a person {'is' if fact.most == 1 else 'are'} taken in, "
        "and a group needs that many times as many records as persons. The first records were condensed together "
        f"[AY05, sec. 2]. Later ones join the closest group that is large enough [AY05, sec. 3]. {_WAITED}",
        PERSON_COLUMN,
    )


def _claims(fact: Maintained, ledger: list[EpochPublished]) -> Statements:
    last, least = ledger[-1], min((line.fresh for line in ledger if line.renewed), default=fact.k)
    yield Claim(
        f"Between epochs, the rows of a family of groups change only after at least {least} new records; all other "
        "rows are repeated unchanged.",
        f"In epoch {last.epoch}, {counted(last.renewed, 'family', 'families')} changed and {last.repeated} "
        f"{'was' if last.repeated == 1 else 'were'} repeated. A family is released anew only with as many new records "
        "as the highest privacy level among them and the family, and never fewer than k. The ledger of epochs is among "
        "the facts.",
        "all epochs were published from one state that was never set back to an earlier copy",
    )
    yield from _of_drawn_rows(fact, last)


def _of_drawn_rows(fact: Maintained, last: EpochPublished) -> Statements:
    """State which rows are known to be no original records."""
    if fact.alike >= last.rows:
        return
    rows, copied = "Every released row was", "no original record was copied or kept for drawing."
    if fact.alike:
        rows = f"{last.rows - fact.alike} of {last.rows} released rows were"
        copied = "none of these was copied, and no original record was kept for drawing."
    yield Claim(
        f"{rows} drawn from the mean and covariance of a group; {copied}",
        "Rows are drawn at random, uniform along eigenvectors of each group's covariance [AY05, eq. 2.1]. Joining and "
        "splitting groups need statistics alone. A drawn row may still lie close to an original record, or equal it by "
        "chance.",
        RAN_AS_WRITTEN,
    )


def _of_epochs(ledger: list[EpochPublished]) -> Statements:
    least = min((line.fresh for line in ledger if line.renewed), default=0)
    yield Refused(
        "A new record stays hidden from anyone who contributed the other new records.",
        f"Two epochs differ by the new records of a family, at least {least} in this ledger. Anyone who contributed "
        "all of them but one can compute the last one.",
    )
    yield Refused(
        "No one can tell when a record was added.",
        "Rows that change show which part of the table received new records in an epoch.",
    )


def _of_groups(fact: Maintained) -> Statements:
    yield from of_any_groups(fact.groups)
    if fact.pseudo:
        yield Refused(
            "Each group represents as many people as it has rows.",
            f"{fact.pseudo} of {counted(fact.groups, 'group was', 'groups were')} split off from the statistics of "
            "larger ones by a model. The number of people behind one of them is unknown.",
        )
    if fact.short:
        yield Refused(
            "Each group is as large as the highest privacy level among the records behind it.",
            f"{counted(fact.short, 'group is', 'groups are')} smaller. The paper's test splits by the average level, "
            "and takes a group split off from statistics to keep the privacy of the whole [AY05, sec. 3].",
        )
    if fact.alike:
        yield Refused(
            "No released row is an original record.",
            f"{counted(fact.alike, 'row comes', 'rows come')} from groups that vary in no number and at most one other "
            "column. These may be the records themselves.",
        )
    if fact.tiny:
        yield Refused(
            "No record can be recovered from the statistics of its group.",
            f"{counted(fact.tiny, 'group has', 'groups have')} three rows or fewer. The mean and covariance of two "
            "records determine both exactly.",
        )
