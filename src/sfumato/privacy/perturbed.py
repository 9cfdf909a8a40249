"""What follows from facts about rows that were changed one by one: noise and geometric transformations."""

from __future__ import annotations

from sfumato.facts import (
    BoundsKept,
    Enhanced,
    Fact,
    Noised,
    Shuffled,
    ShuffledWithin,
    TargetMoved,
    Transformed,
    Untouched,
)
from sfumato.privacy.statements import SECRET_RANDOMNESS, Claim, Refused, counted, quoted

__all__ = ["of_bounds", "of_enhance", "of_moved_target", "of_noise", "of_runs", "of_transformation", "of_untouched"]


def of_noise(fact: Noised, claims: list[Claim], refused: list[Refused]) -> None:
    """Say what noise is proved to be, and what it does not hide."""
    what = "a factor of mean 1" if fact.kind == "multiplicative" else "noise"
    size = f"{fact.size:g}" if fact.kind == "multiplicative" else f"{fact.size:g} times the column's own"
    how = "multiplied by" if fact.kind == "multiplicative" else "given"
    each = "with the correlations of the data" if fact.correlated else "independent of all else"
    claims.append(
        Claim(
            f"Every number of {counted(fact.columns, 'column', 'columns')} was {how} {what} of a {fact.law} law with "
            "standard deviation "
            f"{size}, drawn afresh for each row, {each}.",
            "proved",
            "Noise is a whole number of steps drawn by rejection [Canonne, Kamath, Steinke 2020] and every result lies "
            f"on one grid of {fact.grid:g} standard deviations, so that its last digits say nothing [Mironov 2012].",
            f"{SECRET_RANDOMNESS}; numbers off a column's step, or beyond bounds that it keeps, are brought back "
            "afterwards",
        )
    )
    refused.extend(_not_of_noise(fact))


def _not_of_noise(fact: Noised) -> list[Refused]:
    refused = [
        Refused(
            "An attacker stays as far from the true numbers as the noise is large.",
            "a filter takes off much of the noise where columns go together, and an estimate draws the rest towards "
            "the mean: the report measures the error that is left",
        ),
        Refused(
            "The release is differentially private.",
            "the noise is measured by each column's own standard deviation, which is data and can be read off the "
            "release, and not by how much one person could change",
        ),
        Refused("The table may be made again with fresh noise.", "two releases average to half the noise's variance"),
    ]
    if fact.law == "uniform":
        refused.append(
            Refused(
                "No released number proves anything about its original.",
                "uniform noise is bounded: every released number proves between which two numbers its original lies, "
                "and no factor bounds what is learned (the amplification is infinite)",
            )
        )
    if fact.kind == "multiplicative":
        refused.append(
            Refused(
                "Zeros and small numbers are hidden.",
                "a product with 0 is 0, and a number near 0 is changed by little",
            )
        )
    return refused


def of_bounds(fact: BoundsKept) -> Refused:
    """Refuse that every column kept its mean and all of its noise."""
    return Refused(
        "Every column has the mean of the original, and the variance of the original and the noise together.",
        f"in {counted(len(fact.columns), 'column', 'columns')} ({quoted(fact.columns)}) numbers that the "
        "noise drove beyond declared bounds, or beyond the ends of an order, were brought back to them: the mean of a "
        "column that leans on a bound moves, and some of its noise is lost",
    )


def of_enhance(fact: Enhanced, facts: tuple[Fact, ...], claims: list[Claim], refused: list[Refused]) -> None:
    """Say that some rows got extra noise, and that the others did not."""
    claims.append(
        Claim(
            f"{counted(fact.rows, 'row', 'rows')}, drawn at random, got extra noise.",
            "proved",
            "A share of the rows was drawn without replacement [OZ03, sec. 5.4].",
            SECRET_RANDOMNESS,
        )
    )
    if not any(isinstance(other, Shuffled) and other.rows <= fact.rows for other in facts):
        refused.append(
            Refused(
                "The extra noise protects every row.",
                f"the share of rows that got it is {fact.share:g}; all others got nothing of it",
            )
        )


def of_untouched(fact: Untouched) -> Refused:
    """Refuse that every column is protected."""
    parts = []
    if fact.category_columns:
        parts.append(f"the categories of {counted(fact.category_columns, 'column', 'columns')}")
    if fact.missing_columns:
        parts.append(f"which cells are missing in {counted(fact.missing_columns, 'column', 'columns')}")
    return Refused(
        "Every column is protected.",
        " and ".join(parts) + " are published as they are, and may be enough to find a person",
    )


def of_transformation(fact: Transformed, facts: tuple[Fact, ...]) -> tuple[Refused, ...]:
    """Say by how many known rows a transformation is undone, and that extra noise on some rows changes little."""
    what, extra = ", ".join(fact.operations), next((other for other in facts if isinstance(other, Enhanced)), None)
    blurred, drawn = "", "nothing was drawn for each row: one secret key moves all of them alike"
    if extra is not None:
        rows = counted(extra.rows, "row", "rows")
        blurred = f"; the {rows} with extra noise come back blurred by it, and do not count among those"
        drawn = "noise was drawn for some rows only, and its size is that of the data's own spread"
    return (
        Refused(
            f"The numbers of the {counted(len(fact.columns), 'column', 'columns')} that were moved ({what}) are "
            "hidden from a recipient.",
            f"the table is reversible by anyone who knows {counted(fact.known_rows, 'row', 'rows')}: one key moved "
            "all rows alike, and so many original rows, independent of each other, with their places in the release "
            "fix it as far as the rounding of the release allows; fewer rows, public figures, or the digits and the "
            f"shape of the numbers alone, may do as well{blurred}",
        ),
        Refused("The release is differentially private.", drawn),
    )


def of_moved_target(fact: TargetMoved) -> Refused:
    """Refuse that a model of a target that was moved speaks in the target's own units."""
    return Refused(
        f"A model of {fact.column!r} that is learned from this table predicts it in its own units.",
        f"{fact.column!r} is a number and was moved by the key like every other; only the owner of the key can tell "
        "what a prediction means",
    )


def of_runs(fact: ShuffledWithin, claims: list[Claim], refused: list[Refused]) -> None:
    """Say how far the order of the rows was mixed."""
    where = "rows stand in the order of the original"
    if fact.rows > 1:
        where = f"every row stays in its run of at least {fact.rows} rows"
        claims.append(
            Claim(
                f"Within runs of at least {fact.rows} consecutive rows the order says nothing of that of the original.",
                "proved",
                "The order of each run was drawn uniformly.",
                SECRET_RANDOMNESS,
            )
        )
    refused.append(
        Refused(
            "The order of the rows says nothing of the order of the original records.",
            f"the file was moved in one pass and {where}, so whoever knows the order of the original knows about where "
            "a person's row is",
        )
    )
