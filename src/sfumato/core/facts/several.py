"""What is said of streams and of several owners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.facts.made import Fact

__all__ = ["EpochPublished", "Joint", "Maintained", "Opened", "PersonRowsBounded", "RowsKept"]


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
class PersonRowsBounded(Fact):
    """No more than ``most`` rows of a person were taken into a stream, and levels are as many times what was asked.

    A group of n records holds those of at least n / most persons.
    """

    fact: ClassVar[str] = "person-rows-bounded"
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
