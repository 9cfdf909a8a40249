"""What follows from Laplace noise on the principal components of groups, and what does not [BCG10, theorem 1]."""

from __future__ import annotations

import math

from sfumato.facts import ComponentNoise, Fact, Grouped
from sfumato.laws.amplification import highest_posterior
from sfumato.privacy.grouped import asked_levels, check_levels
from sfumato.privacy.statements import SECRET_RANDOMNESS, Claim, Refused, at_least, counted

__all__ = ["is_noised_by_group", "of_component_noise", "of_noised_groups"]

_VOID = 0.999  # a bound that says no more than that nothing is certain
_ASSUMES = (
    "the probability before the release already takes in all that the record's group tells: which group it is, its "
    "mean and covariance, where its components begin and end from the lowest record to the highest, and its counts; "
    "records are independent of each other given these; "
    f"{SECRET_RANDOMNESS}; there is one release"
)
_APART = "the components of a record are independent of each other, not uncorrelated alone"


def is_noised_by_group(facts: tuple[Fact, ...]) -> bool:
    """Tell whether groups served to scale noise, and rows descend from rows."""
    return any(isinstance(fact, ComponentNoise) for fact in facts)


def of_noised_groups(fact: Grouped, claims: list[Claim], refused: list[Refused]) -> None:
    """Say what a group is where it scales the noise of its members, which is not a crowd to hide in."""
    check_levels(fact)
    claims.append(
        Claim(
            f"Each of the {fact.records} original records was put into a group at least as large as its own privacy "
            f"level ({asked_levels(fact.asked_min, fact.asked_max)}), and got noise in proportion to the ranges of "
            "that group; the smallest group has "
            f"{fact.smallest}.",
            "proved",
            "Small clusters are filled from larger ones or dissolved [BCG10, alg. 2, lines 4 to 11; errata BCG10.4]; "
            "the finished partition was checked record by record.",
            "one row is one person",
        )
    )
    refused.append(
        Refused(
            f"A record hides among the {fact.smallest} or more of its group.",
            "every released row descends from one record: a group says how wide its noise is, not that members are "
            "exchangeable, and the report measures how many records are linked to their own rows",
        )
    )
    if fact.alike:
        refused.append(
            Refused(
                "The noise changes every record.",
                f"{counted(fact.alike, 'record is in a group that varies', 'records are in groups that vary')} in no "
                "number and at most in one other column: noise in proportion to ranges is none there, and such "
                "records are published as they are",
            )
        )
    if fact.tiny:
        refused.append(
            Refused(
                "The noise is as wide as a crowd.",
                f"{counted(fact.tiny, 'group has', 'groups have')} three records or fewer, and noise in proportion "
                "to their ranges hides little",
            )
        )


def of_component_noise(fact: ComponentNoise, claims: list[Claim], refused: list[Refused]) -> None:
    """State the bound for one component and for the whole record, upward and downward, and what neither covers."""
    claims.append(
        Claim(
            f"Every principal component of every record got noise of a {fact.law.capitalize()} law of scale "
            f"{fact.scale:g} times the range of that component in the record's group, drawn afresh and independent of "
            "all else.",
            "proved",
            "Noise is a whole number of steps drawn by rejection [Canonne, Kamath, Steinke 2020] on a grid of "
            f"{fact.grid:g} standard deviations; ranges are measured on that grid [BCG10, alg. 2; errata BCG10.1].",
            f"{SECRET_RANDOMNESS}; numbers off a column's step, or beyond bounds that it keeps, are brought back "
            "afterwards",
        )
    )
    _bound(fact, 1, "about one principal component of a record", claims, refused)
    _bound(fact, fact.components, "about a whole record, or about one of its columns,", claims, refused)
    refused.extend(_not_of_components(fact))


def _bound(fact: ComponentNoise, components: int, what: str, claims: list[Claim], refused: list[Refused]) -> None:
    """Claim a bound, or refuse it where it says nothing."""
    rho2 = highest_posterior(fact.rho1, fact.scale, components)
    factor = f"e^({components}/{at_least(fact.scale, 6)})"
    basis = f"Theorem 1 [BCG10]: the odds change by a factor of at most {factor}"
    if rho2 > _VOID:
        refused.append(
            Refused(
                f"What is asked {what} stays uncertain.",
                f"it may depend on {counted(components, 'component', 'components together')}, and so much noise lets "
                f"odds change by up to {factor}: from {fact.rho1:g} to {_up(rho2)} (errata BCG10.2); take more noise, "
                "or the guarantee of the record",
            )
        )
        return
    claims.append(
        Claim(
            f"What is asked {what} and had probability {fact.rho1:g} looks no more probable than {_up(rho2)} after the "
            f"release; and what had {1.0 - fact.rho1:g} no less probable than {_down(1.0 - rho2)}.",
            "proved",
            f"{basis}, upward and downward.",
            _ASSUMES if components == fact.components else f"{_ASSUMES}; {_APART}",
        )
    )


def _not_of_components(fact: ComponentNoise) -> list[Refused]:
    refused = [
        Refused(
            "The bounds hold against what was known before the release.",
            "they are relative to what a record's group already tells (errata BCG10.3): the rows of a group show where "
            "it lies and how far it reaches, and whoever finds a person's group knows that much without any bound",
        ),
        Refused(
            "The release is differentially private.",
            "groups, principal axes and ranges are computed from the data, their effect on the release is not "
            "accounted for, and the noise is measured by them and not by how much one person could change",
        ),
        Refused(
            "An attacker stays as far from the true numbers as the noise is large.",
            "who knows a group's statistics draws noised rows towards its mean: the report measures the error that is "
            "left",
        ),
        Refused("The table may be made again with fresh noise.", "the factors of two releases multiply"),
    ]
    if fact.guarantee == "component" and fact.components > 1:
        refused.append(
            Refused(
                "The bound for one component is a bound for one column.",
                f"a column is a mixture of all {fact.components} components, so only the bound for a whole record "
                "covers it",
            )
        )
    return refused


def _up(probability: float) -> str:
    """Write a probability with four digits, rounded up."""
    return f"{min(1.0, math.ceil(probability * 1e4) / 1e4):g}"


def _down(probability: float) -> str:
    return f"{math.floor(probability * 1e4) / 1e4:g}"
