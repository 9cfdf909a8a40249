"""What is said of cells that were changed by noise, geometry, answers, swaps or blocks, and of baskets of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from sfumato.core.facts.made import Fact

__all__ = [
    "Aggregated",
    "Alike",
    "BasketPersons",
    "BasketsRandomized",
    "BasketsReleased",
    "Blocked",
    "ComponentNoise",
    "Downgraded",
    "Enhanced",
    "Noised",
    "Randomized",
    "RulesBlocked",
    "RulesHidden",
    "Sampled",
    "Swapped",
    "TargetMoved",
    "Transformed",
    "Unchanged",
]


@dataclass(frozen=True)
class Unchanged(Fact):
    """The cells of these columns are published as the original has them, those of one row beside each other.

    ``missing`` counts the columns of which it is published, too, which cells are missing.
    """

    fact: ClassVar[str] = "unchanged"
    columns: tuple[str, ...]
    missing: int = 0


@dataclass(frozen=True)
class Alike(Fact):
    """Released rows that are equal in these columns, a missing cell counted like a value.

    ``fewest`` is the least number of rows that are equal in them, ``alone`` counts the rows that are like no other.
    """

    fact: ClassVar[str] = "alike"
    columns: tuple[str, ...]
    rows: int
    fewest: int
    alone: int


@dataclass(frozen=True)
class Swapped(Fact):
    """Cells of these columns were exchanged between rows, so that each column holds the cells that it held before.

    ``within`` "window" they were exchanged in pairs of different persons that lie at most ``window`` percent of the
    column's cells apart in rank; within "leaves" at random among the rows of a leaf of a tree that was grown to tell
    ``target``, of which there are ``leaves``, the smallest of ``smallest`` persons. Of each column ``changed`` counts
    the cells that are another value than before. ``missing`` counts the columns of which it is published which cells
    are missing.
    """

    fact: ClassVar[str] = "swapped"
    within: Literal["window", "leaves"]
    columns: tuple[str, ...]
    changed: tuple[int, ...]
    rows: int
    window: float | None = None
    target: str | None = None
    leaves: int = 0
    smallest: int = 0
    missing: int = 0


@dataclass(frozen=True)
class Sampled(Fact):
    """Of so many persons some were drawn at random, without replacement; their rows leave and no others do.

    ``by_person`` where a column says who a row is about; else each of the ``records`` is a person of its own.
    """

    fact: ClassVar[str] = "sampled"
    records: int
    rows: int
    persons: int
    drawn: int
    by_person: bool = False


@dataclass(frozen=True)
class Aggregated(Fact):
    """Every value of these columns became its label at a level of a hierarchy before anything else was done.

    ``hierarchies`` are texts as a schema writes them; a file is named "file" alone.
    """

    fact: ClassVar[str] = "aggregated"
    columns: tuple[str, ...]
    hierarchies: tuple[str, ...]
    levels: tuple[int, ...]


@dataclass(frozen=True)
class Blocked(Fact):
    """Cells of these columns became missing until what a row shows of them all is shown by rows of enough persons.

    Of each column ``cells`` counts those that became missing. ``least`` is the least number of persons whose rows are
    equal in the columns, a missing cell counted like a value; ``asked_min`` and ``asked_max`` bound the levels that
    were met, the floor k included. Persons are counted ``by_person`` where a column says who a row is about.
    """

    fact: ClassVar[str] = "blocked"
    columns: tuple[str, ...]
    cells: tuple[int, ...]
    rows: int
    least: int
    asked_min: int
    asked_max: int
    by_person: bool = False


@dataclass(frozen=True)
class Downgraded(Fact):
    """The label ``private`` of ``hidden`` rows became missing, and cells that rules of decision trees tell it by.

    Trees were grown, first on the original and then on what was left, and rules that told more than ``limit`` bits were
    given up. ``rules_before`` counts those of the first tree and ``rules_after`` those of the last, grown on the hidden
    rows as released with their true labels; ``most`` is the most bits by which one of its rules lowers the entropy of
    the label. ``columns`` lost so many ``cells`` each.
    """

    fact: ClassVar[str] = "downgraded"
    private: str
    rows: int
    hidden: int
    limit: float
    most: float
    rules_before: int
    rules_after: int
    columns: tuple[str, ...] = ()
    cells: tuple[int, ...] = ()


@dataclass(frozen=True)
class Noised(Fact):
    """Every number got noise of a law, in so many columns.

    ``size`` is its standard deviation: of additive noise in standard deviations of the column, of multiplicative noise
    that of the factor. ``grid`` is the step, in standard deviations of the column, that numbers were brought to.
    ``correlated`` noise has the correlations of the data.
    """

    fact: ClassVar[str] = "noised"
    law: str
    kind: str
    size: float
    columns: int
    correlated: bool
    grid: float


@dataclass(frozen=True)
class Enhanced(Fact):
    """A share of the rows, drawn at random, got more noise on top."""

    fact: ClassVar[str] = "enhanced"
    share: float
    rows: int


@dataclass(frozen=True)
class Transformed(Fact):
    """The numbers of these columns were moved by a secret key, in the same way for every row.

    ``operations`` are kinds (add, mult, rotate), never terms; ``known_rows`` original rows suffice to undo it.
    """

    fact: ClassVar[str] = "transformed"
    operations: tuple[str, ...]
    columns: tuple[str, ...]
    known_rows: int


@dataclass(frozen=True)
class TargetMoved(Fact):
    """The target, a column of numbers, was moved by the key like the others."""

    fact: ClassVar[str] = "target-moved"
    column: str


@dataclass(frozen=True)
class Randomized(Fact):
    """Every cell of this column was randomized by itself, by the law of a noise specification.

    ``spec`` is the specification as JSON text: all that an analyst needs to recover the column's distribution.
    ``digest`` is its SHA-256, ``gamma`` the amplification and ``epsilon`` its logarithm; None where infinite.
    """

    fact: ClassVar[str] = "randomized"
    column: str
    spec: str
    digest: str
    gamma: float | None
    epsilon: float | None


@dataclass(frozen=True)
class ComponentNoise(Fact):
    """Every principal component of a record's group got noise of a law, drawn afresh for each record.

    ``scale`` is that of the law, in ranges of the component within the group; ``components`` is how many can get noise
    at once; ``guarantee`` says for what the noise was chosen, one component or the whole record, and ``rho1`` for which
    probability the bound is stated. ``grid`` is the step, in standard deviations of the columns.
    """

    fact: ClassVar[str] = "component-noise"
    law: str
    scale: float
    components: int
    guarantee: str
    rho1: float
    grid: float


@dataclass(frozen=True)
class BasketsReleased(Fact):
    """Rows are baskets of items: so many ``entries``, of so many different ``items``, and ``unknown`` ones."""

    fact: ClassVar[str] = "baskets-released"
    baskets: int
    items: int
    entries: int
    unknown: int = 0


@dataclass(frozen=True)
class BasketPersons(Fact):
    """The baskets are of so many persons, none of whom has more than ``most``."""

    fact: ClassVar[str] = "basket-persons"
    persons: int
    most: int


@dataclass(frozen=True)
class BasketsRandomized(Fact):
    """Every basket was randomized by itself over ``width`` items, by an operator and its parameters.

    ``longest`` is the size of the longest basket where sizes show, else 0. ``epsilon`` is the logarithm of the
    amplification: over any two baskets for flip, and over two of one size for the others. ``declared`` where the owner
    said which items there are, so that they were not read off the baskets. ``chosen`` where the owner named no operator
    and it is the one that is usual for so many items.
    """

    fact: ClassVar[str] = "baskets-randomized"
    operator: str
    width: int
    keep: float | None
    insert: float | None
    cutoff: int | None
    gamma: float | None
    longest: int
    epsilon: float
    declared: bool = False
    chosen: bool = False


@dataclass(frozen=True)
class RulesHidden(Fact):
    """So many rules that the owner named were brought below a threshold by changing entries of baskets.

    Each of them holds for less than ``min_support`` of the baskets or is right in less than ``min_confidence`` of its
    cases. ``removed`` entries were taken out and ``added`` ones put in.
    """

    fact: ClassVar[str] = "rules-hidden"
    strategy: str
    rules: int
    min_support: float
    min_confidence: float
    removed: int
    added: int


@dataclass(frozen=True)
class RulesBlocked(Fact):
    """So many rules that the owner named can be below a threshold, for all that the unknown entries tell.

    The lowest support or the lowest confidence that each may have is below the threshold less ``margin``.
    """

    fact: ClassVar[str] = "rules-blocked"
    rules: int
    min_support: float
    min_confidence: float
    margin: float
