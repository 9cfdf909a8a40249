"""The vocabulary of facts: what a mechanism did, in words that hold no data.

The vocabulary only grows. `privacy` draws its claims from these and from nothing else; a fact that
it does not know is refused there, never ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sfumato.core.documents import Unparsable, plain, typed
from sfumato.core.errors import BadInput

__all__ = [
    "Aggregated",
    "Alike",
    "BasketPersons",
    "BasketsRandomized",
    "BasketsReleased",
    "Blocked",
    "BoundsKept",
    "Chained",
    "ClassPure",
    "ColumnRulesKept",
    "ColumnsDropped",
    "ComponentNoise",
    "CountsKept",
    "DatesCoarsened",
    "DespitePolicy",
    "DomainsObserved",
    "Downgraded",
    "Drawn",
    "Enhanced",
    "EpochPublished",
    "Fact",
    "FormulaTexts",
    "Grouped",
    "HeldOut",
    "Joint",
    "Maintained",
    "Noised",
    "Opened",
    "PersonsApart",
    "PersonsBounded",
    "Randomized",
    "RareValues",
    "RowsDrawn",
    "RowsKept",
    "RulesBlocked",
    "RulesHidden",
    "Sampled",
    "Shuffled",
    "ShuffledWithin",
    "Stratified",
    "Swapped",
    "Synthesized",
    "TargetMoved",
    "Transformed",
    "Unchanged",
    "Unmeasured",
    "Untouched",
    "WeightsScaled",
    "fact_from_json",
    "fact_to_json",
    "is_quoted",
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
class Stratified(Fact):
    """Groups never cross the values of this column."""

    fact: ClassVar[str] = "stratified"
    column: str
    strata: int
    is_target: bool


@dataclass(frozen=True)
class ClassPure(Fact):
    """No group holds records of two classes of this column, and every released row has the class of its group."""

    fact: ClassVar[str] = "class-pure"
    column: str
    classes: int


@dataclass(frozen=True)
class Grouped(Fact):
    """Records were partitioned into groups, each at least as large as the highest level inside.

    ``asked_min`` and ``asked_max`` bound the levels that were met, the floor k included.
    ``tiny`` counts the groups of three records or fewer, ``alone`` the records that stand alone, ``alike`` those in
    groups that vary in no number and at most in one other column; None where nobody looked.
    """

    fact: ClassVar[str] = "grouped"
    algorithm: str
    records: int
    groups: int
    smallest: int
    asked_min: int
    asked_max: int
    violations: int
    tiny: int
    alone: int
    alike: int | None = None


@dataclass(frozen=True)
class PersonsApart(Fact):
    """No group holds two records of one person, so that groups are as large in persons as in records.

    ``left_out`` counts the records that no group without their person could take; they are in none.
    """

    fact: ClassVar[str] = "persons-apart"
    persons: int
    left_out: int


@dataclass(frozen=True)
class PersonsBounded(Fact):
    """The leaves of a chain are counted in persons, none of whom supplies more than two in ``leaf`` of their cells.

    ``left_out`` counts the cells, over all columns, that persons had beyond that in a leaf: none was drawn.
    """

    fact: ClassVar[str] = "persons-bounded"
    persons: int
    left_out: int


@dataclass(frozen=True)
class Synthesized(Fact):
    """Every released row was drawn from a group's statistics: as many as it has records, or as `RowsDrawn` says."""

    fact: ClassVar[str] = "synthesized"
    statistics: str
    law: str
    rows: int


@dataclass(frozen=True)
class RowsDrawn(Fact):
    """The owner asked for so many rows of so many records, or for rows that fulfil a rule ``where``; "" is none.

    More rows are drawn from the same statistics again, of fewer those that leave are chosen by chance; rows that do not
    fulfil the rule were drawn and left out.
    """

    fact: ClassVar[str] = "rows-drawn"
    records: int
    rows: int
    where: str = ""


@dataclass(frozen=True)
class Chained(Fact):
    """Columns were drawn one after the other, each cell from a leaf of records that are alike in the columns before.

    Of each column, in the order in which they were drawn, ``leaves`` counts the leaves, ``smallest`` the records of the
    smallest and ``alike`` those leaves that hold one value alone. A leaf holds at least ``leaf`` records and as many as
    the highest level inside; ``asked_min`` and ``asked_max`` bound the levels, the floor included, and k is the
    highest. Of the released numbers ``kept`` are as at least k records have them and ``moved`` were moved inside their
    leaf. In the ``regressed`` columns what was drawn is how far records lie from a linear regression on the columns
    before. Beside `PersonsBounded`, leaf, levels, k and the smallest leaves count persons and not records.
    """

    fact: ClassVar[str] = "chained"
    columns: tuple[str, ...]
    leaves: tuple[int, ...]
    smallest: tuple[int, ...]
    alike: tuple[int, ...]
    records: int
    rows: int
    k: int
    leaf: int
    asked_min: int
    asked_max: int
    violations: int
    kept: int
    moved: int
    regressed: tuple[str, ...] = ()


@dataclass(frozen=True)
class CountsKept(Fact):
    """Within each group, category counts and missing cells are those of its records; of all rows that were drawn."""

    fact: ClassVar[str] = "counts-kept"
    category_columns: int
    missing_columns: int


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
class BoundsKept(Fact):
    """In these columns noise did not drive numbers beyond declared bounds, or an order's ends: they were brought back.

    Numbers of other columns lie where the noise left them, on the column's step.
    """

    fact: ClassVar[str] = "bounds-kept"
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Enhanced(Fact):
    """A share of the rows, drawn at random, got more noise on top."""

    fact: ClassVar[str] = "enhanced"
    share: float
    rows: int


@dataclass(frozen=True)
class Untouched(Fact):
    """Categories, and which cells are missing, are published as they are in so many columns."""

    fact: ClassVar[str] = "untouched"
    category_columns: int
    missing_columns: int


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
class DomainsObserved(Fact):
    """The domains that these columns were randomized over were read off the data, and are published."""

    fact: ClassVar[str] = "domains-observed"
    columns: tuple[str, ...]


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
class Maintained(Fact):
    """Groups were kept up as records arrived, by their statistics alone.

    Of the ``groups`` that the rows were drawn from, ``pseudo`` were cut out of the statistics of a larger one, so that
    their counts are a model's and not of people; ``short`` are smaller than the highest level that they stem from, and
    ``tiny`` have three rows or fewer. ``k`` is the lowest level and ``asked_max`` the highest, ``split`` the test.
    ``alike`` counts the rows of groups whose rows vary in no number and at most in one other column.
    """

    fact: ClassVar[str] = "maintained"
    algorithm: str
    split: str
    k: int
    asked_max: int
    groups: int
    pseudo: int
    smallest: int
    short: int
    tiny: int
    category_columns: int
    missing_columns: int
    alike: int | None = None


@dataclass(frozen=True)
class EpochPublished(Fact):
    """One epoch of a stream: so many families of groups left in a new state, the others repeated their rows.

    ``fresh`` is the least number of records behind a new state that had not been behind an earlier one; 0 where no
    family left. ``rows`` are those of all families.
    """

    fact: ClassVar[str] = "epoch-published"
    epoch: int
    renewed: int
    repeated: int
    rows: int
    fresh: int


@dataclass(frozen=True)
class RowsKept(Fact):
    """Raw rows of a stream lie encrypted in the owner's state, to measure releases by and for nothing else.

    ``rows`` are of records that were taken in; ``outside`` came and were never taken in. Where they are ``forgotten``
    both were deleted, so that ``rows`` is 0, and those outside stay out.
    """

    fact: ClassVar[str] = "rows-kept"
    rows: int
    outside: int
    forgotten: bool


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
    said which items there are, so that they were not read off the baskets.
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


@dataclass(frozen=True)
class Joint(Fact):
    """Several owners made the table together, none showing the others its cells.

    ``partition`` says whether each had some of the rows or some of the columns. ``computing`` are those that held
    shares, and ``engine`` what they computed with: "plain" where all ran in one process, in the clear. ``centres`` says
    when cluster centres were opened and ``noise`` how it was drawn, each "" where the partition knows no such choice.
    ``rounds`` are those of K-means; ``bare`` is how often an owner has all rows of a group but one or two, or all cells
    of a column there, and for owners of columns how often a record alone has a category or a missing cell in its group.
    """

    fact: ClassVar[str] = "joint"
    partition: str
    parties: tuple[str, ...]
    computing: tuple[str, ...]
    engine: str
    centres: str
    noise: str
    rounds: int
    bare: int = 0


@dataclass(frozen=True)
class Opened(Fact):
    """A line of a joint run's ledger: this was seen in the clear by these parties.

    ``action`` is "opened", "sum" or "told"; ``numbers`` are those of all ``times``.
    """

    fact: ClassVar[str] = "opened"
    label: str
    what: str
    action: str
    to: tuple[str, ...]
    numbers: int
    times: int


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


_VOCABULARY: dict[str, type[Fact]] = {kind.fact: kind for kind in Fact.__subclasses__()}


def is_quoted(facts: Iterable[Fact]) -> bool:
    """Tell whether an apostrophe stands before the formulas in the file of the table."""
    return any(fact.quoted for fact in facts if isinstance(fact, FormulaTexts))


def fact_to_json(fact: Fact) -> dict[str, Any]:
    """Write a fact as a JSON object.

    Examples
    --------
    >>> fact_to_json(Shuffled(rows=3))
    {'fact': 'shuffled', 'rows': 3}
    """
    return {"fact": fact.fact, **plain(fact)}


def fact_from_json(document: dict[str, Any]) -> Fact:
    """Read a fact back; an unknown one is an error. Entries that an earlier version did not know have a default."""
    name = document.get("fact")
    kind = _VOCABULARY.get(name) if isinstance(name, str) else None
    if kind is None:
        raise BadInput("the certificate holds a fact that this version does not know; use a newer sfumato")
    try:
        return typed(kind, {key: value for key, value in document.items() if key != "fact"})
    except Unparsable as error:
        raise BadInput(f"the fact {kind.fact!r} has {error}; the file was altered") from None
