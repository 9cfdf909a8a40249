"""What follows from groups that rows were drawn from, and what does not [AY05, sec. 2]."""

from __future__ import annotations

from sfumato.errors import PrivacyRefusal
from sfumato.facts import Fact, Grouped, Synthesized
from sfumato.privacy.statements import Claim, Refused, counted

__all__ = ["asked_levels", "check_levels", "of_drawn_rows", "of_groups"]


def check_levels(fact: Grouped) -> None:
    """Refuse to certify groups that are smaller than a level inside."""
    if fact.violations:
        who = counted(fact.violations, "record is", "records are")
        raise PrivacyRefusal(f"{who} in groups below their privacy level; nothing is certified")


def asked_levels(low: int, high: int) -> str:
    """Levels from the lowest to the highest."""
    return f"{low}" if low == high else f"{low} to {high}"


def of_groups(fact: Grouped, facts: tuple[Fact, ...], claims: list[Claim], refused: list[Refused]) -> None:
    """Say how large groups are, and who finds what in them.

    Raises
    ------
    PrivacyRefusal
        Where a record is in a group below its level.
    """
    check_levels(fact)
    drawn = any(isinstance(other, Synthesized) for other in facts)
    claims.append(
        Claim(
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
    )
    which = f"in which of the {fact.groups} groups" if fact.groups > 1 else "in which group"
    refused.extend(
        (
            Refused(
                "The release is differentially private.",
                "the groups' means and covariances carry no calibrated noise",
            ),
            Refused(
                f"Nobody can tell {which} a known person is.",
                "a group hides which of its members a person is, not where in the table they are: someone who knows a "
                "person's values may find the right group, and with it the group's typical values",
            ),
            Refused(
                "The statistics of a group stay safe from its own members.",
                "whoever knows all members of a group but one can work out the last one from the group's sums",
            ),
        )
    )
    refused.extend(_of_small_groups(fact))


def _of_small_groups(fact: Grouped) -> list[Refused]:
    refused = []
    if fact.tiny:
        refused.append(
            Refused(
                "No record can be recovered from the statistics of its group.",
                f"{counted(fact.tiny, 'group has', 'groups have')} three records or fewer; mean and covariance of two "
                "records give both exactly",
            )
        )
    if fact.alone:
        refused.append(
            Refused(
                "Every record is protected.",
                f"{counted(fact.alone, 'record of level 1 stands', 'records of level 1 stand')} alone and "
                f"{'is' if fact.alone == 1 else 'are'} published as {'it is' if fact.alone == 1 else 'they are'}",
            )
        )
    return refused


def of_drawn_rows(fact: Synthesized, facts: tuple[Fact, ...], claims: list[Claim], refused: list[Refused]) -> None:
    """Say that rows were drawn, and which of them are original records all the same."""
    groups = next((other for other in facts if isinstance(other, Grouped)), None)
    same = None if groups is None else groups.alike
    basis = f"{fact.law.capitalize()} of each group's covariance [AY05, eq. 2.1]."
    near = "a drawn row may still come to lie close to, or by chance on, an original record: see the report"
    if groups is None or same is None:
        claims.append(
            Claim(
                f"Every released row was drawn at random from the {fact.statistics} of a group of records.",
                "proved",
                basis,
                "the group may be one record, or of records that are all the same: then the row is that record",
            )
        )
    elif not same:
        claims.append(
            Claim(
                f"Every released row was drawn at random from the {fact.statistics} of a group of at least "
                f"{groups.smallest} records; no row was copied from an original record.",
                "proved",
                basis,
                near,
            )
        )
    elif same < fact.rows:
        claims.append(
            Claim(
                f"{fact.rows - same} of the {fact.rows} released rows were drawn at random from the {fact.statistics} "
                "of a group whose records differ; none of these was copied from an original record.",
                "proved",
                basis,
                near,
            )
        )
    if same:
        refused.append(
            Refused(
                "No released row is an original record.",
                f"{counted(same, 'row comes', 'rows come')} from groups that vary in no number and at most in one "
                "other column, such as records alone or all the same: what is drawn from these are the records as "
                "they are",
            )
        )
