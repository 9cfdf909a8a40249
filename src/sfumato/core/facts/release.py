"""Facts of any release: randomness, dropped columns, the order of the rows, and how it was judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sfumato.core.facts.fact import (
    SECRET_RANDOMNESS,
    Claim,
    Context,
    Fact,
    Refused,
    ReleasedColumns,
    Statements,
    counted,
    joined,
    quoted,
)

__all__ = [
    "BoundsKept",
    "ColumnsDropped",
    "DespitePolicy",
    "Enhanced",
    "HeldOut",
    "NoMeasurement",
    "PassedThrough",
    "RandomnessSource",
    "Shuffled",
    "ShuffledWithin",
    "Stratified",
    "UnlabelledRows",
]


@dataclass(frozen=True)
class RandomnessSource(Fact):
    """Randomness came from here."""

    mode: str
    generator: str

    def claims(self, context: Context) -> Statements:
        if self.mode == "release":
            return
        yield Refused(
            "This table may be released.",
            "It is a dry run made with a seed. Anyone who knows the seed can repeat every random draw.",
        )

    def check(self) -> bool:
        return (self.mode, self.generator) in (("release", "ChaCha20"), ("dry-run", "PCG64"))

    def fits(self, context: Context) -> bool:
        return context.has(ColumnsDropped) and context.has(Shuffled, ShuffledWithin)


@dataclass(frozen=True)
class ColumnsDropped(Fact):
    """These columns of the original are not in the release; the ``empty`` ones have no value in any row."""

    identifiers: tuple[str, ...]
    levels: tuple[str, ...]
    empty: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.identifiers, *self.levels, *self.empty)

    def claims(self, context: Context) -> Statements:
        kinds = (
            (self.identifiers, "direct identifier", "direct identifiers"),
            (self.empty, "empty column", "empty columns"),
            (self.levels, "column of privacy levels", "columns of privacy levels"),
        )
        dropped = [(names, counted(len(names), one, many)) for names, one, many in kinds if names]
        if not dropped:
            return
        yield Claim(
            f"The release omits {joined([count for _, count in dropped])}.",
            " ".join(f"{count[0].upper()}{count[1:]}: {quoted(names)}." for names, count in dropped)
            + f" They were dropped before any other step{', privacy levels after grouping' if self.levels else ''}.",
            "the columns have the correct roles",
        )

    def dropped_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.names))


@dataclass(frozen=True)
class HeldOut(Fact):
    """``rows`` rows were held out of the release as the control group."""

    rows: int


@dataclass(frozen=True)
class Shuffled(Fact):
    """The order of the released rows was drawn uniformly."""

    rows: int

    def claims(self, context: Context) -> Statements:
        readers = "To readers other than the data owners, the" if context.has("joint") else "The"
        yield Claim(
            f"{readers} order of the rows reveals nothing about the order or the groups of the original records.",
            f"The order of {counted(self.rows, 'row', 'rows')} was drawn uniformly at random after the rows were "
            "computed.",
            SECRET_RANDOMNESS,
        )

    def agrees(self, context: Context) -> bool:
        return not context.has(ShuffledWithin)

    @property
    def rows_released(self) -> int:
        return self.rows


@dataclass(frozen=True)
class ShuffledWithin(Fact):
    """Released rows were shuffled uniformly inside runs of at least ``rows``; the runs keep their order.

    1 if rows stand in the order of the original.
    """

    rows: int

    def claims(self, context: Context) -> Statements:
        """State how far the order of the rows was mixed."""
        kept = "rows keep their original order"
        if self.rows > 1:
            kept = f"every row stays in its run of at least {self.rows} rows"
            yield Claim(
                f"Within runs of at least {self.rows} consecutive rows, order reveals nothing about the original "
                "order.",
                "The order of each run was drawn uniformly at random.",
                SECRET_RANDOMNESS,
            )
        yield Refused(
            "The order of the rows reveals nothing about the order of the original records.",
            f"The file was processed in one pass, and {kept}. Anyone who knows the original order knows roughly where "
            "a person's row is.",
        )


@dataclass(frozen=True)
class Stratified(Fact):
    """Groups never cross the values of this column."""

    column: str
    strata: int
    is_target: bool

    def claims(self, context: Context) -> Statements:
        what = "the class label" if self.is_target else f"the value of {self.column!r}"
        yield Refused(
            f"A reader cannot be certain of {what} of the people behind a row.",
            f"Groups never mix values of {self.column!r}. Anyone who finds a person's group knows {what} with "
            "certainty (l = 1).",
        )

    def check(self) -> bool:
        return self.strata >= 1

    def most_values(self) -> Mapping[str, int]:
        return {self.column: self.strata}


@dataclass(frozen=True)
class UnlabelledRows(Fact):
    """Rows without a class in this column, the target, were left out before anything else was done.

    ``rows`` is their number if it is of at least ``k`` persons, else 0.
    """

    column: str
    rows: int
    k: int

    def claims(self, context: Context) -> Statements:
        records = counted(self.rows, "such record was", "such records were")
        yield Claim(
            f"No released row was made from a record whose class {self.column!r} is missing.",
            (records if self.rows else f"Such records, of fewer than {self.k} persons, were")
            + " removed before any other step.",
            "missing cells are marked as missing",
        )

    def check(self) -> bool:
        return self.k >= 2


@dataclass(frozen=True)
class PassedThrough(Fact):
    """Categories and missing cells of ``columns`` columns are published unchanged."""

    category_columns: int
    missing_columns: int

    def claims(self, context: Context) -> Statements:
        """Refuse that every column is protected."""
        categories = f"the categories of {counted(self.category_columns, 'column', 'columns')}"
        missing = f"the positions of missing cells in {counted(self.missing_columns, 'column', 'columns')}"
        parts = joined([categories] * (self.category_columns > 0) + [missing] * (self.missing_columns > 0))
        yield Refused(
            "Every column is protected.",
            f"{parts[0].upper()}{parts[1:]} are published unchanged. They may be enough to identify a person.",
        )

    def check(self) -> bool:
        return self.category_columns + self.missing_columns > 0

    def fits(self, context: Context) -> bool:
        passed = bool(context.parameters.get("pass_categories", True)) or not self.category_columns
        return passed and bool(context.parameters.get("pass_missing", True))

    def wrong_columns(self, released: ReleasedColumns, context: Context) -> Iterator[str]:
        moved = context.one("transformed")
        most = released.categories if moved is None else len(released.names) - len(moved.columns)
        yield from released.wrong_counts(self.category_columns, self.missing_columns, most)

    @property
    def shows_categories(self) -> bool:
        return self.category_columns > 0


@dataclass(frozen=True)
class BoundsKept(Fact):
    """In these columns noise did not drive numbers beyond declared bounds, or an order's ends: they were brought back.

    Numbers of other columns lie where the noise left them, on the column's step.
    """

    columns: tuple[str, ...]

    def claims(self, context: Context) -> Statements:
        """Refuse that every column kept its mean and all of its noise."""
        yield Refused(
            "Every column keeps its mean, and its variance grows by that of the noise.",
            f"In {counted(len(self.columns), 'column', 'columns')} ({quoted(self.columns)}), numbers beyond declared "
            "bounds, or beyond the ends of an order, were moved back to them. This shifts a mean near a bound and "
            "removes some of the noise.",
        )

    def check(self) -> bool:
        return bool(self.columns)


@dataclass(frozen=True)
class Enhanced(Fact):
    """A share of the rows, drawn at random, got more noise on top."""

    share: float
    rows: int

    def claims(self, context: Context) -> Statements:
        """State how many rows received additional noise."""
        yield Claim(
            f"{counted(self.rows, 'row', 'rows')}, drawn at random, received additional noise.",
            "A share of the rows was drawn without replacement [OZ03, sec. 5.4].",
            SECRET_RANDOMNESS,
        )
        if not any(isinstance(other, Shuffled) and other.rows <= self.rows for other in context):
            yield Refused(
                "The additional noise protects every row.",
                f"Only a share of {self.share:g} of the rows received it.",
            )

    def check(self) -> bool:
        return 0 < self.share <= 1 and self.rows >= 1

    def fits(self, context: Context) -> bool:
        rows = context.the(Shuffled).rows
        return (self.share, self.rows) == (context.parameters["enhance"], min(rows, max(1, round(self.share * rows))))


@dataclass(frozen=True)
class NoMeasurement(Fact):
    """The owner asked for no report: no attack was tried on the release."""

    def claims(self, context: Context) -> Statements:
        yield Refused(
            "Attacks were run against this table before its release.",
            "The data owner asked for no report, so no disclosure risk was measured.",
        )


@dataclass(frozen=True)
class DespitePolicy(Fact):
    """The owner judged the release by a policy of this name and let it leave although it was not found to meet it.

    ``outcome`` is "does-not-meet" or "inconclusive".
    """

    policy: str
    outcome: str

    def claims(self, context: Context) -> Statements:
        found = "found that it does not" if self.outcome == "does-not-meet" else "found the result inconclusive"
        yield Refused(
            f"The release meets the policy {self.policy!r}.",
            f"The data owner measured this and {found}. The table is released by the owner's decision.",
        )

    def check(self) -> bool:
        return self.outcome in ("does-not-meet", "inconclusive")

    def agrees(self, context: Context) -> bool:
        return not context.has(NoMeasurement)
