"""Facts about noise on numbers, and on the principal components of groups."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sfumato.core.distributions.amplification import highest_posterior
from sfumato.core.facts import (
    ONE_ROW,
    SECRET_RANDOMNESS,
    Claim,
    Context,
    Enhanced,
    Fact,
    Refused,
    ReleasedColumns,
    Statements,
    at_least,
    counted,
)
from sfumato.core.groups.facts import Grouped

__all__ = [
    "ComponentNoise",
    "Noised",
]

_VOID = 0.999  # a posterior above which a bound only says that nothing is certain
_PRIVATE = "The release is differentially private."
_ERROR_LIKE_NOISE = "An attacker's error in the true numbers is as large as the noise."
_NEW_NOISE = "The table may be released again with new noise."
_LAWS = {"gaussian": "Gaussian", "laplace": "Laplace"}
_STEPS = "Noise is an integer number of steps, drawn by rejection sampling [Canonne, Kamath, Steinke 2020]."
_CORRECTED = (
    "Numbers off a column's step are then rounded to it, and numbers beyond bounds that a column keeps are moved back."
)
_PRIOR = (
    "The prior probability already includes what the record's group reveals: the group itself, its mean, covariance "
    "and counts, and the lowest and highest value of each component."
)


@dataclass(frozen=True)
class Noised(Fact):
    """Noise of a distribution was added to every number of ``columns`` columns.

    ``size`` is its standard deviation: of additive noise in standard deviations of the column, of multiplicative noise
    that of the factor. ``grid`` is the step, in standard deviations of the column, that numbers were brought to.
    ``correlated`` noise has the correlations of the data.
    """

    methods = ("noise",)

    law: str
    kind: str
    size: float
    columns: int
    correlated: bool
    grid: float

    def claims(self, context: Context) -> Statements:
        """State the noise on numbers, and what it does not hide."""
        law = _LAWS.get(self.law, self.law)
        noise = f"given {law} noise with standard deviation {self.size:g} times the column's own"
        if self.kind == "multiplicative":
            noise = f"multiplied by a {law} factor of mean 1 and standard deviation {self.size:g}"
        each = "row, with the correlations of the data" if self.correlated else "row and column"
        yield Claim(
            f"Every number in {counted(self.columns, 'column', 'columns')} was {noise}, drawn independently for each "
            f"{each}.",
            f"{_STEPS} Every result lies on one grid of {self.grid:g} standard deviations, so its last digits reveal "
            f"nothing [Mironov 2012]. {_CORRECTED}",
            SECRET_RANDOMNESS,
        )
        yield from _not_of_noise(self)

    def check(self) -> bool:
        known = self.law in ("gaussian", "uniform", "laplace") and self.kind in ("additive", "multiplicative")
        return known and self.size > 0 and self.grid > 0 and self.columns >= 1

    def fits(self, context: Context) -> bool:
        mechanism = context.mechanism
        own = (mechanism.law, mechanism.kind, mechanism.size, mechanism.correlated, mechanism.grid)
        stated = (self.law, self.kind, self.size, self.correlated, self.grid)
        return stated == own and bool(mechanism.enhance) == context.has(Enhanced)

    def wrong_columns(self, released: ReleasedColumns, context: Context) -> Iterator[str]:
        if self.columns > released.numbers:
            yield "numeric columns"


@dataclass(frozen=True)
class ComponentNoise(Fact):
    """Every principal component of a record's group got noise of a distribution, drawn independently for each record.

    ``scale`` is that of the law, in ranges of the component within the group; ``components`` is how many can get noise
    at once; ``guarantee`` says for what the noise was chosen, one component or the whole record, and ``rho1`` for which
    probability the bound is stated. ``grid`` is the step, in standard deviations of the columns.
    """

    methods = ("laplace-pca", "joint-laplace-pca")
    grouped = True

    law: str
    scale: float
    components: int
    guarantee: str
    rho1: float
    grid: float

    def claims(self, context: Context) -> Statements:
        """State the bound for one component and for a whole record, and what neither covers."""
        yield Claim(
            f"Every principal component of every record received independent {_LAWS.get(self.law, self.law)} noise of "
            f"scale {self.scale:g} times its range in the record's group.",
            f"{_STEPS} The grid has steps of {self.grid:g} standard deviations, and ranges are measured on it [BCG10, "
            f"alg. 2; errata BCG10.1]. {_CORRECTED}",
            SECRET_RANDOMNESS,
        )
        yield from _bound(self, 1, "one principal component of a record")
        yield from _bound(self, self.components, "a whole record or one of its columns")
        yield from _not_of_components(self)

    def group_claims(self, groups: Grouped) -> Statements:
        """State that groups scale the noise of their members, and refuse that members are indistinguishable."""
        yield Claim(
            f"Each of the {groups.records} original records received noise scaled by the ranges of a group at least as "
            f"large as its privacy level. Smallest group: {groups.smallest}.",
            "Small clusters are filled from larger ones or dissolved [BCG10, alg. 2, lines 4 to 11; errata BCG10.4]. "
            "The finished groups were checked record by record.",
            ONE_ROW,
        )
        yield Refused(
            f"A record is indistinguishable within its group of at least {groups.smallest}.",
            "Every released row descends from one record; a group only scales its noise. The report measures how many "
            "records are linked to their own rows.",
        )
        if groups.alike:
            yield Refused(
                "The noise changes every record.",
                f"{counted(groups.alike, 'record is in a group that varies', 'records are in groups that vary')} in no "
                "number and at most one other column. Noise scaled by ranges is zero there, and such records are "
                "published unchanged.",
            )
        if groups.tiny:
            yield Refused(
                "The noise is always wide enough to hide a record.",
                f"{counted(groups.tiny, 'group has', 'groups have')} three records or fewer, and noise scaled by their "
                "ranges hides little.",
            )

    def check(self) -> bool:
        known = self.law == "laplace" and self.guarantee in ("component", "record")
        return known and self.scale > 0 and self.components >= 1 and 0 < self.rho1 < 1 and self.grid > 0

    def fits(self, context: Context) -> bool:
        if context.mechanism is None:  # of a joint run, which checks it
            return context.has("joint")
        return self.fits_mechanism(context.mechanism, context.the(Grouped))

    def fits_mechanism(self, mechanism: Any, groups: Grouped) -> bool:
        """Whether the method has this noise and these groups."""
        from sfumato.methods.perturb.laplace_pca import ALGORITHMS, USUAL_K, USUAL_RHO1

        rho1 = USUAL_RHO1 if mechanism.rho1 is None else mechanism.rho1
        stated = (mechanism.scale(self.components), mechanism.guarantee, rho1, mechanism.grid)
        if stated != (self.scale, self.guarantee, self.rho1, self.grid):
            return False
        if mechanism.groups is not None:
            least = groups.records // mechanism.groups
        else:
            least = USUAL_K if mechanism.k is None else mechanism.k
        return bool(groups.algorithm == ALGORITHMS[mechanism.grouping] and groups.smallest >= least)


def _not_of_noise(fact: Noised) -> Statements:
    yield Refused(
        _ERROR_LIKE_NOISE,
        "Filtering removes much of the noise if columns are correlated, and shrinkage towards the mean removes more. "
        "The report measures the remaining error.",
    )
    yield Refused(
        _PRIVATE,
        "Noise is scaled by each column's standard deviation, which is data and can be read off the release. It is not "
        "calibrated to how much one person can change.",
    )
    yield Refused(_NEW_NOISE, "The average of two releases has half the noise variance.")
    if fact.law == "uniform":
        yield Refused(
            "No released number proves anything about its original.",
            "Uniform noise is bounded, so each released number proves an interval that contains its original. No "
            "factor bounds what is learned (the amplification is infinite).",
        )
    if fact.kind == "multiplicative":
        yield Refused(
            "Zeros and small numbers are hidden.",
            "Zero times any factor is zero, and numbers near zero change little.",
        )


def _bound(fact: ComponentNoise, components: int, what: str) -> Statements:
    """Claim a bound, or refuse it if it is too weak to say anything."""
    rho2 = highest_posterior(fact.rho1, fact.scale, components)
    factor = f"e^({components}/{at_least(fact.scale, 6)})"
    if rho2 > _VOID:
        yield Refused(
            f"A statement about {what} stays uncertain.",
            f"It may depend on {counted(components, 'component', 'components together')}, and this noise lets odds "
            f"change by a factor of up to {factor}: from {fact.rho1:g} to {_up(rho2)} (errata BCG10.2). Take more "
            "noise, or the guarantee of the record.",
        )
        return
    whole = components == fact.components
    independence = "" if whole else " Components must be independent, which is more than uncorrelated."
    yield Claim(
        f"A statement about {what} with prior probability {fact.rho1:g} has posterior probability at most {_up(rho2)}; "
        f"one with {1.0 - fact.rho1:g} has at least {math.floor((1.0 - rho2) * 1e4) / 1e4:g}.",
        f"Theorem 1 [BCG10]: the odds change by a factor of at most {factor}, upward and downward. "
        f"{_PRIOR}{independence}",
        f"records{'' if whole else ' and their components'} are independent given their group, there is one release, "
        f"and {SECRET_RANDOMNESS}",
    )


def _not_of_components(fact: ComponentNoise) -> Statements:
    yield Refused(
        "The bounds are relative to what was known before the release.",
        "They are relative to what a record's group already reveals (errata BCG10.3). The rows of a group show where "
        "it lies and how far it reaches, without any bound.",
    )
    yield Refused(
        _PRIVATE,
        "Groups, principal axes and ranges are computed from the data, and their effect is not accounted for. They "
        "also scale the noise, which is not calibrated to how much one person can change.",
    )
    yield Refused(
        _ERROR_LIKE_NOISE,
        "Anyone who knows a group's statistics can shrink noisy rows towards its mean. The report measures the "
        "remaining error.",
    )
    yield Refused(_NEW_NOISE, "The factors of two releases multiply.")
    if fact.guarantee == "component" and fact.components > 1:
        yield Refused(
            "The bound for one component is a bound for one column.",
            f"A column mixes all {fact.components} components, so only the bound for a whole record covers it.",
        )


def _up(probability: float) -> str:
    """Write a probability with four digits, rounded up."""
    return f"{min(1.0, math.ceil(probability * 1e4) / 1e4):g}"
