"""Claims of noise on cells, and of Laplace noise on principal components of groups."""

from __future__ import annotations

import math

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
from sfumato.core.laws.amplification import highest_posterior
from sfumato.privacy.grouped import check_levels
from sfumato.privacy.statements import (
    SECRET_RANDOMNESS,
    Claim,
    ClaimsOf,
    Refused,
    Statements,
    at_least,
    counted,
    quoted,
)

__all__ = ["CLAIMS", "is_noised_by_group", "of_noised_groups"]


def of_noise(fact: Noised, _: tuple[Fact, ...]) -> Statements:
    """Say what noise is proved to be, and what it does not hide."""
    what = "a factor of mean 1" if fact.kind == "multiplicative" else "noise"
    size = f"{fact.size:g}" if fact.kind == "multiplicative" else f"{fact.size:g} times the column's own"
    how = "multiplied by" if fact.kind == "multiplicative" else "given"
    each = "with the correlations of the data" if fact.correlated else "independent of all else"
    yield Claim(
        f"Every number of {counted(fact.columns, 'column', 'columns')} was {how} {what} of a {fact.law} law with "
        f"standard deviation {size}, drawn afresh for each row, {each}.",
        "proved",
        "Noise is a whole number of steps drawn by rejection [Canonne, Kamath, Steinke 2020] and every result lies "
        f"on one grid of {fact.grid:g} standard deviations, so that its last digits say nothing [Mironov 2012].",
        f"{SECRET_RANDOMNESS}; numbers off a column's step, or beyond bounds that it keeps, are brought back "
        "afterwards",
    )
    yield from _not_of_noise(fact)


def _not_of_noise(fact: Noised) -> Statements:
    yield Refused(
        "An attacker stays as far from the true numbers as the noise is large.",
        "a filter takes off much of the noise where columns go together, and an estimate draws the rest towards "
        "the mean: the report measures the error that is left",
    )
    yield Refused(
        "The release is differentially private.",
        "the noise is measured by each column's own standard deviation, which is data and can be read off the "
        "release, and not by how much one person could change",
    )
    yield Refused("The table may be made again with fresh noise.", "two releases average to half the noise's variance")
    if fact.law == "uniform":
        yield Refused(
            "No released number proves anything about its original.",
            "uniform noise is bounded: every released number proves between which two numbers its original lies, "
            "and no factor bounds what is learned (the amplification is infinite)",
        )
    if fact.kind == "multiplicative":
        yield Refused(
            "Zeros and small numbers are hidden.",
            "a product with 0 is 0, and a number near 0 is changed by little",
        )


def of_bounds(fact: BoundsKept, _: tuple[Fact, ...]) -> Statements:
    """Refuse that every column kept its mean and all of its noise."""
    yield Refused(
        "Every column has the mean of the original, and the variance of the original and the noise together.",
        f"in {counted(len(fact.columns), 'column', 'columns')} ({quoted(fact.columns)}) numbers that the "
        "noise drove beyond declared bounds, or beyond the ends of an order, were brought back to them: the mean of a "
        "column that leans on a bound moves, and some of its noise is lost",
    )


def of_enhance(fact: Enhanced, facts: tuple[Fact, ...]) -> Statements:
    """Say that some rows got extra noise, and that the others did not."""
    yield Claim(
        f"{counted(fact.rows, 'row', 'rows')}, drawn at random, got extra noise.",
        "proved",
        "A share of the rows was drawn without replacement [OZ03, sec. 5.4].",
        SECRET_RANDOMNESS,
    )
    if not any(isinstance(other, Shuffled) and other.rows <= fact.rows for other in facts):
        yield Refused(
            "The extra noise protects every row.",
            f"the share of rows that got it is {fact.share:g}; all others got nothing of it",
        )


def of_untouched(fact: Untouched, _: tuple[Fact, ...]) -> Statements:
    """Refuse that every column is protected."""
    parts = []
    if fact.category_columns:
        parts.append(f"the categories of {counted(fact.category_columns, 'column', 'columns')}")
    if fact.missing_columns:
        parts.append(f"which cells are missing in {counted(fact.missing_columns, 'column', 'columns')}")
    yield Refused(
        "Every column is protected.",
        " and ".join(parts) + " are published as they are, and may be enough to find a person",
    )


def of_transformation(fact: Transformed, facts: tuple[Fact, ...]) -> Statements:
    """Say by how many known rows a transformation is undone, and that extra noise on some rows changes little."""
    what, extra = ", ".join(fact.operations), next((other for other in facts if isinstance(other, Enhanced)), None)
    blurred, drawn = "", "nothing was drawn for each row: one secret key moves all of them alike"
    if extra is not None:
        rows = counted(extra.rows, "row", "rows")
        blurred = f"; the {rows} with extra noise come back blurred by it, and do not count among those"
        drawn = "noise was drawn for some rows only, and its size is that of the data's own spread"
    yield Refused(
        f"The numbers of the {counted(len(fact.columns), 'column', 'columns')} that were moved ({what}) are "
        "hidden from a recipient.",
        f"the table is reversible by anyone who knows {counted(fact.known_rows, 'row', 'rows')}: one key moved "
        "all rows alike, and so many original rows, independent of each other, with their places in the release "
        "fix it as far as the rounding of the release allows; fewer rows, public figures, or the digits and the "
        f"shape of the numbers alone, may do as well{blurred}",
    )
    if fact.exact_digits:
        yield Refused(
            "The digits of the moved numbers say nothing of the key.",
            "they are written as the move left them and not rounded to hide it (exact_digits): numbers that lay a step "
            "apart lie that step times the factor apart, so the digits of one column show its factor to anybody, and "
            "numbers of a known step show a shift or an angle",
        )
    yield Refused("The release is differentially private.", drawn)


def of_moved_target(fact: TargetMoved, _: tuple[Fact, ...]) -> Statements:
    """Refuse that a model of a target that was moved speaks in the target's own units."""
    yield Refused(
        f"A model of {fact.column!r} that is learned from this table predicts it in its own units.",
        f"{fact.column!r} is a number and was moved by the key like every other; only the owner of the key can tell "
        "what a prediction means",
    )


def of_runs(fact: ShuffledWithin, _: tuple[Fact, ...]) -> Statements:
    """Say how far the order of the rows was mixed."""
    where = "rows stand in the order of the original"
    if fact.rows > 1:
        where = f"every row stays in its run of at least {fact.rows} rows"
        yield Claim(
            f"Within runs of at least {fact.rows} consecutive rows the order says nothing of that of the original.",
            "proved",
            "The order of each run was drawn uniformly.",
            SECRET_RANDOMNESS,
        )
    yield Refused(
        "The order of the rows says nothing of the order of the original records.",
        f"the file was moved in one pass and {where}, so whoever knows the order of the original knows about where "
        "a person's row is",
    )


_VOID = 0.999  # a bound that says no more than that nothing is certain
_ASSUMES = (
    "the probability before the release already takes in all that the record's group tells: which group it is, its "
    "mean and covariance, where its components begin and end from the lowest record to the highest, and its counts; "
    f"records are independent of each other given these; {SECRET_RANDOMNESS}; there is one release"
)
_APART = "the components of a record are independent of each other, not uncorrelated alone"


def is_noised_by_group(facts: tuple[Fact, ...]) -> bool:
    """Tell whether groups served to scale noise, and rows descend from rows."""
    return any(isinstance(fact, ComponentNoise) for fact in facts)


def of_noised_groups(fact: Grouped) -> Statements:
    """Say what a group is where it scales the noise of its members, which is not a crowd to hide in."""
    check_levels(fact)
    yield Claim(
        f"Each of the {fact.records} original records was put into a group at least as large as its own privacy level, "
        "and got noise in proportion to the ranges of that group; "
        f"the smallest group has {fact.smallest}.",
        "proved",
        "Small clusters are filled from larger ones or dissolved [BCG10, alg. 2, lines 4 to 11; errata BCG10.4]; "
        "the finished partition was checked record by record.",
        "one row is one person",
    )
    yield Refused(
        f"A record hides among the {fact.smallest} or more of its group.",
        "every released row descends from one record: a group says how wide its noise is, not that members are "
        "exchangeable, and the report measures how many records are linked to their own rows",
    )
    if fact.alike:
        yield Refused(
            "The noise changes every record.",
            f"{counted(fact.alike, 'record is in a group that varies', 'records are in groups that vary')} in no "
            "number and at most in one other column: noise in proportion to ranges is none there, and such "
            "records are published as they are",
        )
    if fact.tiny:
        yield Refused(
            "The noise is as wide as a crowd.",
            f"{counted(fact.tiny, 'group has', 'groups have')} three records or fewer, and noise in proportion "
            "to their ranges hides little",
        )


def of_component_noise(fact: ComponentNoise, _: tuple[Fact, ...]) -> Statements:
    """State the bound for one component and for the whole record, upward and downward, and what neither covers."""
    yield Claim(
        f"Every principal component of every record got noise of a {fact.law.capitalize()} law of scale {fact.scale:g} "
        "times the range of that component in the record's group, drawn afresh and independent of all else.",
        "proved",
        "Noise is a whole number of steps drawn by rejection [Canonne, Kamath, Steinke 2020] on a grid of "
        f"{fact.grid:g} standard deviations; ranges are measured on that grid [BCG10, alg. 2; errata BCG10.1].",
        f"{SECRET_RANDOMNESS}; numbers off a column's step, or beyond bounds that it keeps, are brought back "
        "afterwards",
    )
    yield from _bound(fact, 1, "about one principal component of a record")
    yield from _bound(fact, fact.components, "about a whole record, or about one of its columns,")
    yield from _not_of_components(fact)


def _bound(fact: ComponentNoise, components: int, what: str) -> Statements:
    """Claim a bound, or refuse it where it says nothing."""
    rho2 = highest_posterior(fact.rho1, fact.scale, components)
    factor = f"e^({components}/{at_least(fact.scale, 6)})"
    basis = f"Theorem 1 [BCG10]: the odds change by a factor of at most {factor}"
    if rho2 > _VOID:
        yield Refused(
            f"What is asked {what} stays uncertain.",
            f"it may depend on {counted(components, 'component', 'components together')}, and so much noise lets "
            f"odds change by up to {factor}: from {fact.rho1:g} to {_up(rho2)} (errata BCG10.2); take more noise, "
            "or the guarantee of the record",
        )
        return
    yield Claim(
        f"What is asked {what} and had probability {fact.rho1:g} looks no more probable than {_up(rho2)} after the "
        f"release; and what had {1.0 - fact.rho1:g} no less probable than {math.floor((1.0 - rho2) * 1e4) / 1e4:g}.",
        "proved",
        f"{basis}, upward and downward.",
        _ASSUMES if components == fact.components else f"{_ASSUMES}; {_APART}",
    )


def _not_of_components(fact: ComponentNoise) -> Statements:
    yield Refused(
        "The bounds hold against what was known before the release.",
        "they are relative to what a record's group already tells (errata BCG10.3): the rows of a group show where "
        "it lies and how far it reaches, and whoever finds a person's group knows that much without any bound",
    )
    yield Refused(
        "The release is differentially private.",
        "groups, principal axes and ranges are computed from the data, their effect on the release is not "
        "accounted for, and the noise is measured by them and not by how much one person could change",
    )
    yield Refused(
        "An attacker stays as far from the true numbers as the noise is large.",
        "who knows a group's statistics draws noised rows towards its mean: the report measures the error that is left",
    )
    yield Refused("The table may be made again with fresh noise.", "the factors of two releases multiply")
    if fact.guarantee == "component" and fact.components > 1:
        yield Refused(
            "The bound for one component is a bound for one column.",
            f"a column is a mixture of all {fact.components} components, so only the bound for a whole record "
            "covers it",
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
