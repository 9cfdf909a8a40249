"""Claims about noise, transformations by a key, and Laplace noise on principal components of groups."""

from __future__ import annotations

import math

from sfumato.certificate.grouped import check_levels
from sfumato.certificate.statements import (
    ONE_ROW,
    SECRET_RANDOMNESS,
    Claim,
    ClaimsOf,
    Refused,
    Statements,
    at_least,
    counted,
    joined,
    quoted,
)
from sfumato.core.distributions.amplification import highest_posterior
from sfumato.core.facts import (
    BoundsKept,
    ComponentNoise,
    Enhanced,
    Fact,
    Grouped,
    Noised,
    Shuffled,
    ShuffledWithin,
    TargetMoved,
    Transformed,
    Untouched,
)

__all__ = ["CLAIMS", "is_noised_by_group", "of_noised_groups"]

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


def of_noise(fact: Noised, _: tuple[Fact, ...]) -> Statements:
    """State the noise on numbers, and what it does not hide."""
    law = _LAWS.get(fact.law, fact.law)
    noise = f"given {law} noise with standard deviation {fact.size:g} times the column's own"
    if fact.kind == "multiplicative":
        noise = f"multiplied by a {law} factor of mean 1 and standard deviation {fact.size:g}"
    each = "row, with the correlations of the data" if fact.correlated else "row and column"
    yield Claim(
        f"Every number in {counted(fact.columns, 'column', 'columns')} was {noise}, drawn independently for each "
        f"{each}.",
        "proved",
        f"{_STEPS} Every result lies on one grid of {fact.grid:g} standard deviations, so its last digits reveal "
        f"nothing [Mironov 2012]. {_CORRECTED}",
        SECRET_RANDOMNESS,
    )
    yield from _not_of_noise(fact)


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


def of_bounds(fact: BoundsKept, _: tuple[Fact, ...]) -> Statements:
    """Refuse that every column kept its mean and all of its noise."""
    yield Refused(
        "Every column keeps its mean, and its variance grows by that of the noise.",
        f"In {counted(len(fact.columns), 'column', 'columns')} ({quoted(fact.columns)}), numbers beyond declared "
        "bounds, or beyond the ends of an order, were moved back to them. This shifts a mean near a bound and removes "
        "some of the noise.",
    )


def of_enhance(fact: Enhanced, facts: tuple[Fact, ...]) -> Statements:
    """State how many rows received additional noise."""
    yield Claim(
        f"{counted(fact.rows, 'row', 'rows')}, drawn at random, received additional noise.",
        "proved",
        "A share of the rows was drawn without replacement [OZ03, sec. 5.4].",
        SECRET_RANDOMNESS,
    )
    if not any(isinstance(other, Shuffled) and other.rows <= fact.rows for other in facts):
        yield Refused(
            "The additional noise protects every row.",
            f"Only a share of {fact.share:g} of the rows received it.",
        )


def of_untouched(fact: Untouched, _: tuple[Fact, ...]) -> Statements:
    """Refuse that every column is protected."""
    categories = f"the categories of {counted(fact.category_columns, 'column', 'columns')}"
    missing = f"the positions of missing cells in {counted(fact.missing_columns, 'column', 'columns')}"
    parts = joined([categories] * (fact.category_columns > 0) + [missing] * (fact.missing_columns > 0))
    yield Refused(
        "Every column is protected.",
        f"{parts[0].upper()}{parts[1:]} are published unchanged. They may be enough to identify a person.",
    )


def of_transformation(fact: Transformed, facts: tuple[Fact, ...]) -> Statements:
    """State how many known rows undo a transformation, and refuse that it protects."""
    extra = next((other for other in facts if isinstance(other, Enhanced)), None)
    noisy, drawn = "", "Nothing was drawn for single rows: one secret key transforms all of them alike."
    if extra is not None:
        noisy = (
            f" The {counted(extra.rows, 'row', 'rows')} with additional noise do not count among these, and keep that "
            "noise."
        )
        drawn = "Noise was drawn for some rows only, and it is scaled by the spread of the data."
    yield Refused(
        f"The transformation ({', '.join(fact.operations)}) hides the numbers of "
        f"{counted(len(fact.columns), 'column', 'columns')} from a recipient.",
        f"It is reversible by anyone who knows {counted(fact.known_rows, 'independent row', 'independent rows')} and "
        "the position of each in the release, as far as rounding allows. Fewer rows, public figures, or the digits and "
        f"distribution of the numbers may suffice.{noisy}",
    )
    if fact.exact_digits:
        yield Refused(
            "The digits of the transformed numbers reveal nothing about the key.",
            "The numbers are released unrounded (exact_digits), so their spacing in one column shows its factor. "
            "Numbers of a known step also show a shift or an angle.",
        )
    yield Refused(_PRIVATE, drawn)


def of_moved_target(fact: TargetMoved, _: tuple[Fact, ...]) -> Statements:
    """Refuse that a model of a transformed target predicts in its original units."""
    yield Refused(
        f"A model of {fact.column!r} trained on this table predicts it in its original units.",
        f"The key transformed {fact.column!r} like every other number. Only the owner of the key can convert "
        "predictions back.",
    )


def of_runs(fact: ShuffledWithin, _: tuple[Fact, ...]) -> Statements:
    """State how far the order of the rows was mixed."""
    kept = "rows keep their original order"
    if fact.rows > 1:
        kept = f"every row stays in its run of at least {fact.rows} rows"
        yield Claim(
            f"Within runs of at least {fact.rows} consecutive rows, order reveals nothing about the original order.",
            "proved",
            "The order of each run was drawn uniformly at random.",
            SECRET_RANDOMNESS,
        )
    yield Refused(
        "The order of the rows reveals nothing about the order of the original records.",
        f"The file was processed in one pass, and {kept}. Anyone who knows the original order knows roughly where a "
        "person's row is.",
    )


def is_noised_by_group(facts: tuple[Fact, ...]) -> bool:
    """Tell whether groups scale noise, so that each row descends from one record."""
    return any(isinstance(fact, ComponentNoise) for fact in facts)


def of_noised_groups(fact: Grouped) -> Statements:
    """State that groups scale the noise of their members, and refuse that members are indistinguishable."""
    check_levels(fact)
    yield Claim(
        f"Each of the {fact.records} original records received noise scaled by the ranges of a group at least as large "
        f"as its privacy level. Smallest group: {fact.smallest}.",
        "proved",
        "Small clusters are filled from larger ones or dissolved [BCG10, alg. 2, lines 4 to 11; errata BCG10.4]. The "
        "finished groups were checked record by record.",
        ONE_ROW,
    )
    yield Refused(
        f"A record is indistinguishable within its group of at least {fact.smallest}.",
        "Every released row descends from one record; a group only scales its noise. The report measures how many "
        "records are linked to their own rows.",
    )
    if fact.alike:
        yield Refused(
            "The noise changes every record.",
            f"{counted(fact.alike, 'record is in a group that varies', 'records are in groups that vary')} in no "
            "number and at most one other column. Noise scaled by ranges is zero there, and such records are published "
            "unchanged.",
        )
    if fact.tiny:
        yield Refused(
            "The noise is always wide enough to hide a record.",
            f"{counted(fact.tiny, 'group has', 'groups have')} three records or fewer, and noise scaled by their "
            "ranges hides little.",
        )


def of_component_noise(fact: ComponentNoise, _: tuple[Fact, ...]) -> Statements:
    """State the bound for one component and for a whole record, and what neither covers."""
    yield Claim(
        f"Every principal component of every record received independent {_LAWS.get(fact.law, fact.law)} noise of "
        f"scale {fact.scale:g} times its range in the record's group.",
        "proved",
        f"{_STEPS} The grid has steps of {fact.grid:g} standard deviations, and ranges are measured on it [BCG10, alg. "
        f"2; errata BCG10.1]. {_CORRECTED}",
        SECRET_RANDOMNESS,
    )
    yield from _bound(fact, 1, "one principal component of a record")
    yield from _bound(fact, fact.components, "a whole record or one of its columns")
    yield from _not_of_components(fact)


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
        "proved",
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


CLAIMS: ClaimsOf = {
    BoundsKept: of_bounds,
    ComponentNoise: of_component_noise,
    Enhanced: of_enhance,
    Noised: of_noise,
    ShuffledWithin: of_runs,
    TargetMoved: of_moved_target,
    Transformed: of_transformation,
    Untouched: of_untouched,
}
