"""What is said of any release: how it was drawn, what was dropped, kept and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

__all__ = [
    "BoundsKept",
    "ColumnRulesKept",
    "ColumnsDropped",
    "DatesCoarsened",
    "DespitePolicy",
    "DomainsObserved",
    "Drawn",
    "Fact",
    "FormulaTexts",
    "HeldOut",
    "RareValues",
    "Shuffled",
    "ShuffledWithin",
    "Unmeasured",
    "Untouched",
    "WeightsScaled",
]


@dataclass(frozen=True)
class Fact:
    """One deed."""

    fact: ClassVar[str] = ""


@dataclass(frozen=True)
class Drawn(Fact):
    """Randomness came from here."""

    fact: ClassVar[str] = "drawn"
    mode: str
    generator: str


@dataclass(frozen=True)
class ColumnsDropped(Fact):
    """These columns of the original are not in the release; the ``empty`` ones have no value in any row."""

    fact: ClassVar[str] = "columns-dropped"
    identifiers: tuple[str, ...]
    levels: tuple[str, ...]
    empty: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.identifiers, *self.levels, *self.empty)


@dataclass(frozen=True)
class HeldOut(Fact):
    """So many rows were kept out of the release, for measuring."""

    fact: ClassVar[str] = "held-out"
    rows: int


@dataclass(frozen=True)
class Shuffled(Fact):
    """The order of the released rows was drawn uniformly."""

    fact: ClassVar[str] = "shuffled"
    rows: int


@dataclass(frozen=True)
class ShuffledWithin(Fact):
    """The order of the released rows was drawn uniformly inside runs of at least so many, which keep their order.

    1 where rows stand in the order of the original.
    """

    fact: ClassVar[str] = "shuffled-within"
    rows: int


@dataclass(frozen=True)
class BoundsKept(Fact):
    """In these columns noise did not drive numbers beyond declared bounds, or an order's ends: they were brought back.

    Numbers of other columns lie where the noise left them, on the column's step.
    """

    fact: ClassVar[str] = "bounds-kept"
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Untouched(Fact):
    """Categories, and which cells are missing, are published as they are in so many columns."""

    fact: ClassVar[str] = "untouched"
    category_columns: int
    missing_columns: int


@dataclass(frozen=True)
class DomainsObserved(Fact):
    """The domains that these columns were randomized over were read off the data, and are published."""

    fact: ClassVar[str] = "domains-observed"
    columns: tuple[str, ...]


@dataclass(frozen=True)
class ColumnRulesKept(Fact):
    """Every released row obeys these rules between columns, as it was made so.

    ``rare_pairs`` counts pairs of a label and what it decides, by a rule that the owner wrote down, that fewer records
    hold than the highest privacy level.
    """

    fact: ClassVar[str] = "column-rules-kept"
    rules: tuple[str, ...]
    rare_pairs: int = 0


@dataclass(frozen=True)
class DatesCoarsened(Fact):
    """Every date of these columns was taken as the first day of its month before anything was computed."""

    fact: ClassVar[str] = "dates-coarsened"
    columns: tuple[str, ...]
    to: Literal["month"] = "month"


@dataclass(frozen=True)
class RareValues(Fact):
    """What became of categories that fewer than ``k`` persons of the table hold, before anything else was done.

    ``way`` is "pool" or "lift" where ``categories`` of them, that stand in so many ``cells``, became others, and "keep"
    where they were left; ``columns`` hold categories. ``filled`` cells that fewer persons lack took the value of
    another record. ``shown`` counts the categories that fewer hold and that the release may show; ``dropped`` are
    columns that would have been left with one category, or in which fewer persons have a value. Persons are counted
    ``by_person`` where a column says who a row is about, and else by row.
    """

    fact: ClassVar[str] = "rare-values"
    way: str
    k: int
    columns: int
    categories: int = 0
    cells: int = 0
    filled: int = 0
    shown: int = 0
    dropped: tuple[str, ...] = ()
    by_person: bool = False


@dataclass(frozen=True)
class WeightsScaled(Fact):
    """The weights of this column were all multiplied by one number after they were drawn, and rounded to their step.

    ``total`` is what they add up to, which is what those of the records did, up to ``step``.
    """

    fact: ClassVar[str] = "weights-scaled"
    column: str
    total: float
    step: float


@dataclass(frozen=True)
class FormulaTexts(Fact):
    """So many texts of the released table begin as the formulas of a spreadsheet do.

    ``cells`` of these ``columns`` and ``names`` of columns; ``quoted`` where an apostrophe stands before each of them
    in the file of the table.
    """

    fact: ClassVar[str] = "formula-texts"
    columns: tuple[str, ...]
    cells: int
    names: int
    quoted: bool


@dataclass(frozen=True)
class Unmeasured(Fact):
    """The owner asked for no report: no attack was tried on the release."""

    fact: ClassVar[str] = "unmeasured"


@dataclass(frozen=True)
class DespitePolicy(Fact):
    """The owner judged the release by a policy of this name and let it leave although it was not found to meet it.

    ``outcome`` is "does-not-meet" or "cannot-tell".
    """

    fact: ClassVar[str] = "despite-policy"
    policy: str
    outcome: str
