"""What is said of groups, leaves and the rows drawn from them, of streams, and of several owners."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core.facts.made import Fact

__all__ = [
    "Celled",
    "Chained",
    "ClassPure",
    "CountsKept",
    "EpochPublished",
    "Grouped",
    "Joint",
    "Maintained",
    "Opened",
    "PersonRowsBounded",
    "PersonsApart",
    "PersonsBounded",
    "PersonsLinked",
    "RowsDrawn",
    "RowsKept",
    "Scored",
    "Stratified",
    "Synthesized",
]


@dataclass(frozen=True)
class Stratified(Fact):
    """Groups never cross the values of this column."""

    column: str
    strata: int
    is_target: bool


@dataclass(frozen=True)
class ClassPure(Fact):
    """No group holds records of two classes of this column, and every released row has the class of its group.

    ``size`` is the group size if it was chosen from the sizes of the classes, their approximate greatest common divisor
    in units of ``unit`` records; 0 if it was not.
    """

    column: str
    classes: int
    size: int = 0
    unit: int = 0


@dataclass(frozen=True)
class Grouped(Fact):
    """Records were partitioned into groups, each at least as large as the highest level inside.

    Levels are not stated: an unusual one would tell of who asked for it. ``violations`` counts the records in groups
    below their level. ``tiny`` counts the groups of three records or fewer, ``alone`` the records that stand alone,
    ``alike`` those in groups that vary in no number and at most in one other column.
    """

    algorithm: str
    records: int
    groups: int
    smallest: int
    violations: int
    tiny: int
    alone: int
    alike: int


@dataclass(frozen=True)
class Celled(Fact):
    """Records were cut into cells before anything was drawn, and each cell was sanitized apart: no group crosses two.

    ``smallest`` is the number of records of the smallest cell.
    """

    cells: int
    smallest: int


@dataclass(frozen=True)
class PersonsApart(Fact):
    """No group holds two records of one person, so that groups are as large in persons as in records.

    Records that no group without their person could take are in none; how many is not stated.
    """

    persons: int


@dataclass(frozen=True)
class PersonsBounded(Fact):
    """The leaves of a chain are counted in persons, none of whom supplies more than two in ``leaf`` of their cells.

    Cells that persons had beyond that in a leaf were not drawn from; how many is not stated.
    """

    persons: int


@dataclass(frozen=True)
class PersonsLinked(Fact):
    """The rows of each of ``persons`` released persons, at most ``most`` rows each, share a new number in this column.

    They were drawn together from a group of persons with as many records each: the first records of its members are
    a group of `PersonsApart`, the second ones another, and so on. In the ``constant`` columns, which never change
    within a person of the original, they do not within a released one. Records beyond those that enough persons have
    are left out, as `PersonsApart` counts.
    """

    column: str
    persons: int
    most: int
    constant: tuple[str, ...] = ()


@dataclass(frozen=True)
class Synthesized(Fact):
    """Every released row was drawn from a group's statistics: as many as it has records, or as `RowsDrawn` says."""

    statistics: str
    law: str
    rows: int


@dataclass(frozen=True)
class Scored(Fact):
    """Numbers of some columns were normal scores (ranks among all people) while rows were grouped and drawn.

    Drawn scores became numbers again by a line through means of the numbers of at least ``k`` people each, and through
    numbers that as many hold; people are records, or beside `PersonsApart` persons.
    """

    columns: int
    k: int


@dataclass(frozen=True)
class RowsDrawn(Fact):
    """The owner requested a number of rows, or rows that satisfy the rule ``where``; "" is none.

    More rows are drawn from the same statistics again, of fewer those that leave are chosen by chance; rows that do not
    fulfil the rule were drawn and left out.
    """

    records: int
    rows: int
    where: str = ""


@dataclass(frozen=True)
class Chained(Fact):
    """Columns were drawn one after the other, each cell from a leaf of records that are alike in the columns before.

    Of each column, in the order in which they were drawn, ``leaves`` counts the leaves, ``smallest`` the records of the
    smallest and ``alike`` those leaves that hold one value alone. A leaf holds at least ``leaf`` records and as many as
    the highest level inside, but ``violations`` of them. At least ``k`` records, a number that no single record's level
    decides, hold each number that was not moved: ``kept`` released numbers are such, and ``moved`` were moved inside
    their leaf, to a value that as many have or towards another. In the ``regressed`` columns what was drawn is how far
    records lie from a regression on the columns before. The columns that were drawn ``twice`` were drawn first too, so
    that others are drawn by them; what is released is from the second time, given all others, when they stand last.
    Beside `PersonsBounded`, leaf, k and the smallest leaves count persons and not records.
    """

    columns: tuple[str, ...]
    leaves: tuple[int, ...]
    smallest: tuple[int, ...]
    alike: tuple[int, ...]
    records: int
    rows: int
    k: int
    leaf: int
    violations: int
    kept: int
    moved: int
    regressed: tuple[str, ...] = ()
    twice: tuple[str, ...] = ()


@dataclass(frozen=True)
class CountsKept(Fact):
    """Within each group, category counts and missing cells are those of its records; of all rows that were drawn."""

    category_columns: int
    missing_columns: int


@dataclass(frozen=True)
class Maintained(Fact):
    """Groups were kept up as records arrived, by their statistics alone.

    Of the ``groups`` that the rows were drawn from, ``pseudo`` were cut out of the statistics of a larger one, so that
    their counts are a model's and not of people; ``short`` are smaller than the highest level that they stem from, and
    ``tiny`` have three rows or fewer. ``k`` is the lowest level, ``split`` the test.
    ``alike`` counts the rows of groups whose rows vary in no number and at most in one other column.
    """

    algorithm: str
    split: str
    k: int
    groups: int
    pseudo: int
    smallest: int
    short: int
    tiny: int
    category_columns: int
    missing_columns: int
    alike: int


@dataclass(frozen=True)
class EpochPublished(Fact):
    """One epoch of a stream: ``changed`` families of groups left in a new state, the others repeated their rows.

    ``fresh`` is the least number of records behind a new state that had not been behind an earlier one; 0 where no
    family left. ``rows`` are those of all families.
    """

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

    rows: int
    outside: int
    forgotten: bool


@dataclass(frozen=True)
class PersonRowsBounded(Fact):
    """No more than ``most`` rows of a person were taken into a stream, and levels are as many times what was asked.

    A group of n records holds those of at least n / most persons.
    """

    most: int


@dataclass(frozen=True)
class Joint(Fact):
    """Several owners made the table together, none showing the others its cells.

    ``partition`` says whether each had some of the rows or some of the columns. ``computing`` are those that held
    shares, and ``engine`` what they computed with: "plain" where all ran in one process, in the clear. ``centres`` says
    when cluster centres were opened and ``noise`` how it was drawn, each "" where the partition knows no such choice.
    ``rounds`` are those of K-means; ``bare`` is how often an owner has all rows of a group but one or two, or all cells
    of a column there, and for owners of columns how often a record alone has a category or a missing cell in its group.
    """

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

    label: str
    what: str
    action: str
    to: tuple[str, ...]
    numbers: int
    times: int
