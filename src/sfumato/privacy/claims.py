"""Claims drawn from facts: each proved or assumed, and those that must not be made."""

from __future__ import annotations

from sfumato.errors import PrivacyRefusal
from sfumato.facts import (
    ClassPure,
    ColumnsDropped,
    ComponentNoise,
    CountsKept,
    DomainsObserved,
    Drawn,
    Enhanced,
    EpochPublished,
    Fact,
    Grouped,
    HeldOut,
    Joint,
    Maintained,
    Noised,
    Opened,
    Randomized,
    Shuffled,
    ShuffledWithin,
    Stratified,
    Synthesized,
    TargetMoved,
    Transformed,
    Untouched,
)
from sfumato.privacy.joint import of_joint
from sfumato.privacy.laplace import is_noised_by_group, of_component_noise, of_noised_groups
from sfumato.privacy.perturbed import of_enhance, of_moved_target, of_noise, of_runs, of_transformation, of_untouched
from sfumato.privacy.randomized import of_observed, of_randomized, of_rows
from sfumato.privacy.statements import Claim, Refused
from sfumato.privacy.streamed import of_stream

__all__ = ["Claim", "Refused", "draw_claims"]


def draw_claims(facts: tuple[Fact, ...]) -> tuple[tuple[Claim, ...], tuple[Refused, ...]]:
    """Draw every claim that the facts bear, and refuse those that readers might make without cause.

    Raises
    ------
    PrivacyRefusal
        For a fact that is not known here, or facts that contradict the rules of the house.
    """
    claims: list[Claim] = []
    refused: list[Refused] = [
        Refused(
            "The table is anonymous.",
            "that is a judgement about everything an attacker may know; this certificate states only what was done and "
            "what follows from it",
        )
    ]
    for fact in facts:
        match fact:
            case Grouped() if is_noised_by_group(facts):
                of_noised_groups(fact, claims, refused)
            case ComponentNoise():
                of_component_noise(fact, claims, refused)
            case Grouped():
                _of_groups(fact, claims, refused)
            case Synthesized():
                claims.append(_synthetic(fact, facts))
            case Stratified():
                refused.extend(_of_strata(fact))
            case ClassPure():
                _of_classes(fact, claims, refused)
            case ColumnsDropped():
                claims.extend(_of_columns(fact))
            case Shuffled():
                claims.append(
                    Claim(
                        "The order of the rows says nothing of the order or the groups of the original records.",
                        "proved",
                        f"The order of all {fact.rows} rows was drawn uniformly after they were made.",
                        "the source of randomness is not known to the attacker",
                    )
                )
            case Drawn():
                refused.extend(_of_randomness(fact))
            case CountsKept():
                refused.append(
                    Refused(
                        "Rare categories are hidden.",
                        "each group keeps the exact counts of its categories and missing cells, so a category that one "
                        "person has appears once in the release",
                    )
                )
            case ShuffledWithin():
                of_runs(fact, claims, refused)
            case Noised():
                of_noise(fact, claims, refused)
            case Enhanced():
                of_enhance(fact, claims, refused)
            case Untouched():
                refused.append(of_untouched(fact))
            case Transformed():
                refused.extend(of_transformation(fact, facts))
            case TargetMoved():
                refused.append(of_moved_target(fact))
            case Randomized():
                of_randomized(fact, facts, claims, refused)
            case DomainsObserved():
                refused.append(of_observed(fact))
            case Maintained():
                of_stream(fact, facts, claims, refused)
            case EpochPublished():
                pass  # a line of the ledger: the maintained groups speak of it
            case Joint():
                of_joint(fact, facts, claims, refused)
            case Opened() if any(isinstance(other, Joint) for other in facts):
                pass  # a line of the ledger: the joint run speaks of it
            case HeldOut():
                pass  # a matter of measuring: it makes no claim
            case _:
                raise PrivacyRefusal(
                    "a fact is not known to this version, so nothing can be certified; use a newer one"
                )
    of_rows(facts, claims, refused)
    return tuple(claims), tuple(refused)


def _of_groups(fact: Grouped, claims: list[Claim], refused: list[Refused]) -> None:
    if fact.violations:
        raise PrivacyRefusal(f"{fact.violations} records are in groups below their privacy level; nothing is certified")
    asked = f"{fact.asked_min}" if fact.asked_min == fact.asked_max else f"{fact.asked_min} to {fact.asked_max}"
    claims.append(
        Claim(
            f"Each of the {fact.records} original records was condensed with others into a group at least as large as "
            f"its own privacy level ({asked}); the smallest group has {fact.smallest}.",
            "proved",
            "Condensation puts a record only where the group is as large as the highest level inside [AY05, sec. 2]; "
            "the finished partition was checked record by record.",
            "one row is one person",
        )
    )
    refused.append(
        Refused(
            "The release is differentially private.",
            "the groups' means and covariances carry no calibrated noise",
        )
    )
    refused.append(
        Refused(
            f"Nobody can tell in which of the {fact.groups} groups a known person is.",
            "a group hides which of its members a person is, not where in the table they are: someone who knows a "
            "person's values may find the right group, and with it the group's typical values",
        )
    )
    refused.append(
        Refused(
            "The statistics of a group stay safe from its own members.",
            "whoever knows all members of a group but one can work out the last one from the group's sums",
        )
    )
    if fact.tiny:
        refused.append(
            Refused(
                "No record can be recovered from the statistics of its group.",
                f"{fact.tiny} groups have three records or fewer; mean and covariance of two records give both exactly",
            )
        )
    if fact.alone:
        refused.append(
            Refused(
                "Every record is protected.",
                f"{fact.alone} records of level 1 stand alone and are published as they are",
            )
        )


def _synthetic(fact: Synthesized, facts: tuple[Fact, ...]) -> Claim:
    smallest = min((other.smallest for other in facts if isinstance(other, Grouped)), default=1)
    return Claim(
        f"Every released row was drawn at random from the {fact.statistics} of a group of at least {smallest} records; "
        "no row was copied from an original record.",
        "proved" if smallest > 1 else "assumed",
        f"{fact.law.capitalize()} of each group's covariance [AY05, eq. 2.1].",
        "a drawn row may still come to lie close to, or by chance on, an original record: see the report",
    )


def _of_strata(fact: Stratified) -> tuple[Refused, ...]:
    what = "the class label" if fact.is_target else f"the value of {fact.column!r}"
    return (
        Refused(
            f"A reader cannot be sure of {what} of the people behind a row.",
            f"groups never cross {fact.column!r}, so for whoever finds a person's group {what} is certain (l = 1)",
        ),
    )


def _of_classes(fact: ClassPure, claims: list[Claim], refused: list[Refused]) -> None:
    claims.append(
        Claim(
            f"The class {fact.column!r} of every released row is that of all records of its group: no group mixes the "
            f"{fact.classes} classes.",
            "proved",
            "Each class was condensed apart from the others [KCG12, fig. 5]; the finished partition was checked group "
            "by group.",
            "the classes in the table are right",
        )
    )
    refused.append(
        Refused(
            f"A reader cannot be sure of the class {fact.column!r} of the people behind a row.",
            "no group mixes classes, so for whoever finds a person's group the class is certain (l = 1)",
        )
    )


def _of_columns(fact: ColumnsDropped) -> tuple[Claim, ...]:
    parts = []
    if fact.identifiers:
        parts.append("identifying columns (" + ", ".join(fact.identifiers) + ")")
    if fact.levels:
        parts.append("privacy levels (" + ", ".join(fact.levels) + ")")
    if not parts:
        return ()
    return (
        Claim(
            f"The release does not hold the {' or the '.join(parts)}.",
            "proved",
            "They were dropped before anything was computed, privacy levels after the groups were made.",
            "the columns were given their roles correctly",
        ),
    )


def _of_randomness(fact: Drawn) -> tuple[Refused, ...]:
    if fact.mode == "release":
        return ()
    return (
        Refused(
            "This table may be released.",
            "it is a rehearsal: it was made with a seed, and whoever knows the seed can repeat every random draw",
        ),
    )
