"""What follows from groups that were maintained as records arrived, and published by epochs [AY05, sec. 3]."""

from __future__ import annotations

from sfumato.errors import PrivacyRefusal
from sfumato.facts import EpochPublished, Fact, Maintained
from sfumato.privacy.statements import Claim, Refused

__all__ = ["of_stream"]


def of_stream(fact: Maintained, facts: tuple[Fact, ...], claims: list[Claim], refused: list[Refused]) -> None:
    """Say what is proved of a stream's release, and what is not.

    Raises
    ------
    PrivacyRefusal
        Where the ledger of epochs is not whole, or a family left with fewer fresh records than k.
    """
    ledger = [other for other in facts if isinstance(other, EpochPublished)]
    _check(fact, ledger)
    claims.extend(_claims(fact, ledger))
    refused.extend(_of_epochs(ledger))
    refused.extend(_of_groups(fact))


def _check(fact: Maintained, ledger: list[EpochPublished]) -> None:
    if [line.epoch for line in ledger] != list(range(1, len(ledger) + 1)) or not ledger:
        raise PrivacyRefusal(f"the ledger of epochs has {len(ledger)} lines with gaps; nothing is certified")
    hasty = sum(line.fresh < fact.k for line in ledger if line.renewed)
    if hasty:
        raise PrivacyRefusal(f"in {hasty} epochs a family left with too few fresh records; nothing is certified")
    if fact.split == "strict" and fact.short:
        raise PrivacyRefusal(f"{fact.short} groups are smaller than a level inside; nothing is certified")


def _claims(fact: Maintained, ledger: list[EpochPublished]) -> tuple[Claim, ...]:
    asked = f"{fact.k}" if fact.k == fact.asked_max else f"{fact.k} to {fact.asked_max}"
    last = ledger[-1]
    return (
        Claim(
            f"Every record that stands behind the rows joined a group that, with it, was at least as large as its own "
            f"privacy level ({asked}) when it came; until there was one it waited and was not published.",
            "proved",
            "The first records were condensed together [AY05, sec. 2] and later ones join the closest group that holds "
            "at least their level less one [AY05, sec. 3]; a group that was split counts as the model has it.",
            "one row of the stream is one person",
        ),
        Claim(
            "From one epoch to the next, the rows of a family of groups change only where at least as many records as "
            "the highest privacy level among them and the family are new behind them; all other rows are repeated "
            f"unchanged. In epoch {last.epoch} {last.renewed} families changed and {last.repeated} were repeated.",
            "proved",
            "A family's new state leaves only with so many fresh records, and never fewer than k; the ledger of epochs "
            "is among the facts.",
            "all epochs were published from one state, which was not set back to an earlier copy",
        ),
        Claim(
            "Every released row was drawn at random from the mean and covariance of a group; no row was copied from an "
            "original record, and no original record was kept to draw from.",
            "proved",
            "Uniform along eigenvectors of each group's covariance [AY05, eq. 2.1]; joining and splitting need "
            "statistics alone.",
            "a drawn row may still come to lie close to, or by chance on, an original record",
        ),
    )


def _of_epochs(ledger: list[EpochPublished]) -> tuple[Refused, ...]:
    least = min((line.fresh for line in ledger if line.renewed), default=0)
    return (
        Refused(
            "An arrival stays hidden from whoever brought the other arrivals.",
            "the difference of two epochs is that of the fresh records of a family, at least "
            f"{least} in this ledger: whoever contributed all of them but one works out the last one",
        ),
        Refused(
            "Nobody can tell when a record came.",
            "rows that are drawn anew tell which part of the table got fresh records in an epoch",
        ),
    )


def _of_groups(fact: Maintained) -> list[Refused]:
    refused = [
        Refused(
            "The release is differentially private.",
            "the groups' means and covariances carry no calibrated noise",
        ),
        Refused(
            f"Nobody can tell in which of the {fact.groups} groups a known person is.",
            "a group hides which of its members a person is, not where in the table they are: someone who knows a "
            "person's values may find the right group, and with it the group's typical values",
        ),
        Refused(
            "The statistics of a group stay safe from its own members.",
            "whoever knows all members of a group but one can work out the last one from the group's sums",
        ),
    ]
    if fact.pseudo:
        refused.append(
            Refused(
                "Each group stands for as many people as it has rows.",
                f"{fact.pseudo} of {fact.groups} groups were cut out of the statistics of larger ones by a model, so "
                "nobody knows how many people are behind one of them",
            )
        )
    if fact.short:
        refused.append(
            Refused(
                "Each group is as large as the highest privacy level among the records that it stems from.",
                f"{fact.short} groups are smaller: the paper's test splits by the average level, and holds that a "
                "group cut out of statistics keeps the privacy of the whole [AY05, sec. 3]",
            )
        )
    if fact.tiny:
        refused.append(
            Refused(
                "No record can be recovered from the statistics of its group.",
                f"{fact.tiny} groups have three rows or fewer; mean and covariance of two records give both exactly",
            )
        )
    if fact.category_columns or fact.missing_columns:
        refused.append(
            Refused(
                "Rare categories are hidden.",
                "groups keep the counts of their categories and missing cells, so a category that one person has may "
                "appear once in the release",
            )
        )
    return refused
