"""What is said of any release: how it was drawn, what was dropped and kept, and how cells were changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

__all__ = [
    "Aggregated",
    "Alike",
    "Blocked",
    "BoundsKept",
    "ColumnRulesKept",
    "ColumnsDropped",
    "ComponentNoise",
    "DatesCoarsened",
    "DespitePolicy",
    "DomainsObserved",
    "Downgraded",
    "Drawn",
    "Enhanced",
    "Fact",
    "FormulaTexts",
    "HeldOut",
    "Noised",
    "PrivatelyMeasured",
    "Randomized",
    "RareValues",
    "RulesBlocked",
    "RulesHidden",
    "Sampled",
    "Shuffled",
    "ShuffledWithin",
    "Swapped",
    "TailsCoded",
    "TargetMoved",
    "TransactionPersons",
    "TransactionsRandomized",
    "TransactionsReleased",
    "Transformed",
    "Unchanged",
    "UnlabelledRows",
    "Unmeasured",
    "Untouched",
    "WeightsScaled",
]


@dataclass(frozen=True)
class Fact:
    """One deed, which documents call by the name of its class: `RowsDrawn` is "rows-drawn"."""

    fact: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        cls.fact = re.sub("(?<!^)(?=[A-Z])", "-", cls.__name__).lower()


@dataclass(frozen=True)
class Drawn(Fact):
    """Randomness came from here."""

    mode: str
    generator: str


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


@dataclass(frozen=True)
class HeldOut(Fact):
    """``rows`` rows were held out of the release as the control group."""

    rows: int


@dataclass(frozen=True)
class UnlabelledRows(Fact):
    """Rows without a class in this column, the target, were left out before anything else was done.

    ``rows`` is their number if it is of at least ``k`` persons, else 0.
    """

    column: str
    rows: int
    k: int


@dataclass(frozen=True)
class Shuffled(Fact):
    """The order of the released rows was drawn uniformly."""

    rows: int


@dataclass(frozen=True)
class ShuffledWithin(Fact):
    """Released rows were shuffled uniformly inside runs of at least ``rows``; the runs keep their order.

    1 where rows stand in the order of the original.
    """

    rows: int


@dataclass(frozen=True)
class BoundsKept(Fact):
    """In these columns noise did not drive numbers beyond declared bounds, or an order's ends: they were brought back.

    Numbers of other columns lie where the noise left them, on the column's step.
    """

    columns: tuple[str, ...]


@dataclass(frozen=True)
class Untouched(Fact):
    """Categories and missing cells of ``columns`` columns are published unchanged."""

    category_columns: int
    missing_columns: int


@dataclass(frozen=True)
class DomainsObserved(Fact):
    """The domains that these columns were randomized over were read off the data, and are published."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class ColumnRulesKept(Fact):
    """Every released row obeys these rules between columns, as it was made so.

    ``rare_pairs`` if the owner wrote down a rule by which a label decides something: pairs of fewer records than
    the highest privacy level are kept then.
    """

    rules: tuple[str, ...]
    rare_pairs: bool = False


@dataclass(frozen=True)
class DatesCoarsened(Fact):
    """Every date of these columns was taken as the first day of its month before anything was computed."""

    columns: tuple[str, ...]
    to: Literal["month"] = "month"


@dataclass(frozen=True)
class RareValues(Fact):
    """What became of categories that fewer than ``k`` persons of the table hold, before anything else was done.

    ``way`` is "pool" or "lift" if such cells took a common category, a wider one of a hierarchy or one named other that
    at least ``k`` persons share, and "keep" if they were left as they are. ``columns`` hold categories; so do columns
    ``passed`` through as public, in which nothing is hidden. ``dropped`` are columns that would have been left without
    a common value. How many cells there were is not stated: it may tell of one person. Persons are counted
    ``by_person`` if a column identifies the person of a row, and else by row.
    """

    way: str
    k: int
    columns: int
    passed: int = 0
    dropped: tuple[str, ...] = ()
    by_person: bool = False

    @property
    def shown(self) -> bool:
        """Whether the release may show a rare category."""
        return self.way == "keep" or self.passed > 0


@dataclass(frozen=True)
class TailsCoded(Fact):
    """What became of the ends of ``columns`` of numbers and dates, before anything else was done.

    ``method`` is "code" for top and bottom coding at cut-offs, "smooth" if values beyond the cut-offs of long tails
    were drawn from an exponential tail, and "keep" if they were left as they are. A cut-off is computed from at least
    ``k`` persons, each of whom counts once; they are counted ``by_person`` if a column identifies the person of a row.
    """

    method: str
    k: int
    columns: int
    by_person: bool = False


@dataclass(frozen=True)
class WeightsScaled(Fact):
    """The weights of this column were all multiplied by one number after they were drawn, and rounded to their step.

    ``total`` is what they add up to, which is what those of the records did, up to ``step``.
    """

    column: str
    total: float
    step: float


@dataclass(frozen=True)
class FormulaTexts(Fact):
    """Texts of the released table begin like spreadsheet formulas.

    They are ``cells`` cells of these ``columns`` and ``names`` column names; ``quoted`` if each is preceded by an
    apostrophe in the table's file.
    """

    columns: tuple[str, ...]
    cells: int
    names: int
    quoted: bool


@dataclass(frozen=True)
class Unmeasured(Fact):
    """The owner asked for no report: no attack was tried on the release."""


@dataclass(frozen=True)
class DespitePolicy(Fact):
    """The owner judged the release by a policy of this name and let it leave although it was not found to meet it.

    ``outcome`` is "does-not-meet" or "inconclusive".
    """

    policy: str
    outcome: str


@dataclass(frozen=True)
class Unchanged(Fact):
    """The cells of these columns are published as the original has them, those of one row together.

    ``missing`` counts the columns of which it is published, too, which cells are missing.
    """

    columns: tuple[str, ...]
    missing: int = 0


@dataclass(frozen=True)
class Alike(Fact):
    """Released rows that are equal in these columns, a missing cell counted like a value.

    ``fewest`` is the least number of rows that are equal in them, ``alone`` counts the rows that are like no other.
    """

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
    """A random sample of persons, drawn without replacement; only their rows are released.

    ``by_person`` where a column identifies the person of a row; else each of the ``records`` is a person of its own.
    """

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

    columns: tuple[str, ...]
    hierarchies: tuple[str, ...]
    levels: tuple[int, ...]


@dataclass(frozen=True)
class Blocked(Fact):
    """Cells of these columns became missing until what a row shows of them all is shown by rows of enough persons.

    Of each column ``cells`` counts those that became missing. ``least`` is the least number of persons whose rows are
    equal in the columns, a missing cell counted like a value. Persons are counted ``by_person`` if a column
    identifies them.
    """

    columns: tuple[str, ...]
    cells: tuple[int, ...]
    rows: int
    least: int
    by_person: bool = False


@dataclass(frozen=True)
class Downgraded(Fact):
    """The label ``private`` of ``hidden`` rows became missing, and cells that rules of decision trees tell it by.

    Trees were grown, first on the original and then on what was left, and rules that told more than ``limit`` bits were
    given up. ``rules_before`` counts those of the first tree and ``rules_after`` those of the last, grown on the hidden
    rows as released with their true labels; ``most`` is the most bits by which one of its rules lowers the entropy of
    the label. ``columns`` lost ``cells`` each.
    """

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
    """Noise of a distribution was added to every number of ``columns`` columns.

    ``size`` is its standard deviation: of additive noise in standard deviations of the column, of multiplicative noise
    that of the factor. ``grid`` is the step, in standard deviations of the column, that numbers were brought to.
    ``correlated`` noise has the correlations of the data.
    """

    law: str
    kind: str
    size: float
    columns: int
    correlated: bool
    grid: float


@dataclass(frozen=True)
class Enhanced(Fact):
    """A share of the rows, drawn at random, got more noise on top."""

    share: float
    rows: int


@dataclass(frozen=True)
class Transformed(Fact):
    """The numbers of these columns were moved by a secret key, in the same way for every row.

    ``operations`` are kinds (add, mult, rotate), never terms; ``known_rows`` original rows suffice to undo it.
    ``exact_digits`` if the moved numbers are written with all their digits, and not rounded so that these hide the key.
    """

    operations: tuple[str, ...]
    columns: tuple[str, ...]
    known_rows: int
    exact_digits: bool = False


@dataclass(frozen=True)
class TargetMoved(Fact):
    """The target, a column of numbers, was moved by the key like the others."""

    column: str


@dataclass(frozen=True)
class Randomized(Fact):
    """Every cell of this column was randomized by itself, by the law of a noise specification.

    ``spec`` is the specification as JSON text: all that an analyst needs to recover the column's distribution.
    ``digest`` is its SHA-256, ``gamma`` the amplification and ``epsilon`` its logarithm; None where infinite.
    """

    column: str
    spec: str
    digest: str
    gamma: float | None
    epsilon: float | None


@dataclass(frozen=True)
class ComponentNoise(Fact):
    """Every principal component of a record's group got noise of a distribution, drawn independently for each record.

    ``scale`` is that of the law, in ranges of the component within the group; ``components`` is how many can get noise
    at once; ``guarantee`` says for what the noise was chosen, one component or the whole record, and ``rho1`` for which
    probability the bound is stated. ``grid`` is the step, in standard deviations of the columns.
    """

    law: str
    scale: float
    components: int
    guarantee: str
    rho1: float
    grid: float


@dataclass(frozen=True)
class PrivatelyMeasured(Fact):
    """All that was learnt of the records are counts with discrete Gaussian noise, over ``columns`` columns.

    ``rho`` is the budget of zero-concentrated differential privacy that ``epsilon`` and ``delta`` allow, less the part
    of delta that ``thresholds`` of categories may cost; of the ``steps`` each ``spent`` its share. Neighbouring tables
    differ in all rows of one person, ``shared`` if a column says whose a row is.

    People of the ``epsilons`` count as 64ths of a person, given in ``weights``, as ``level_rule`` says of whom. The
    domains of the columns ``bought`` were not declared. Releases of a ``dataset`` have a budget together; other
    settings may have been ``measured_before`` on it.
    """

    epsilon: float
    delta: float
    rho: float
    steps: tuple[str, ...]
    spent: tuple[float, ...]
    columns: int
    unit: Literal["person"] = "person"
    neighbours: Literal["add or remove one person"] = "add or remove one person"
    thresholds: float = 0.0
    shared: bool = False
    level_rule: str = ""
    epsilons: tuple[float, ...] = ()
    weights: tuple[int, ...] = ()
    bought: tuple[str, ...] = ()
    dataset: str = ""
    dataset_epsilon: float | None = None
    dataset_delta: float | None = None
    measured_before: bool = False


@dataclass(frozen=True)
class TransactionsReleased(Fact):
    """Rows are transactions: ``entries`` in all, of ``items`` different items, and ``unknown`` ones."""

    transactions: int
    items: int
    entries: int
    unknown: int = 0


@dataclass(frozen=True)
class TransactionPersons(Fact):
    """The transactions are of ``persons`` persons, none of whom has more than ``most``."""

    persons: int
    most: int


@dataclass(frozen=True)
class TransactionsRandomized(Fact):
    """Every transaction was randomized by itself over ``width`` items, by an operator and its parameters.

    ``longest`` is the size of the longest transaction where sizes show, else 0. ``epsilon`` is the logarithm of the
    amplification: over any two transactions for flip, and over two of one size for the others. ``declared`` where the
    owner said which items there are, so that they were not read off the transactions. ``chosen`` where the owner named
    no operator and it is the default for this number of items.
    """

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
    """Rules that the owner named were brought below a threshold by changing entries of transactions.

    Each of them holds for less than ``min_support`` of the transactions or is right in less than ``min_confidence`` of
    its cases. ``removed`` entries were taken out and ``added`` ones put in.
    """

    strategy: str
    rules: int
    min_support: float
    min_confidence: float
    removed: int
    added: int


@dataclass(frozen=True)
class RulesBlocked(Fact):
    """Rules that the owner named may be below a threshold, whatever the unknown entries are.

    The lowest support or the lowest confidence that each may have is below the threshold less ``margin``.
    """

    rules: int
    min_support: float
    min_confidence: float
    margin: float
