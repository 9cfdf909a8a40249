"""The interface of all sanitizing methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from sfumato.core.arguments import check_argument, types_of
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import LevelError, OptionError
from sfumato.core.facts import Fact
from sfumato.core.records import Records
from sfumato.tables.facts import RowsDrawn

__all__ = [
    "CoarsenedColumn",
    "Mechanism",
    "MethodResult",
    "OwnerDetails",
    "Traits",
    "check_parameters",
    "pairs_by_column",
    "parameters_of",
    "refuse_levels",
    "refuse_strata",
    "rows_drawn",
]


@dataclass(frozen=True)
class CoarsenedColumn:
    """A column to be generalized to a hierarchy level; by default that of its schema."""

    column: str
    hierarchy: str | None
    level: int


@dataclass(frozen=True)
class Traits:
    """Properties of a mechanism that an engine needs before it runs it.

    Parameters
    ----------
    synthetic : bool
        No released row descends from one original row, so that nothing can be passed through beside it.
    floor : int, optional
        Fewest records of any group, whatever levels ask for; None if it makes no groups, or chooses from the data.
    min_frequency : int, optional
        Fewest persons who hold a category that may leave, whatever levels ask for; by default as many as ``floor``.
    level_1 : bool
        A record may ask to stand alone.
    keyed : bool
        Rows are moved one by one, by a secret key.
    row_is_person : bool
        What is claimed holds for a row, so that a person with several rows would get less than it says.
    conditional : bool
        It can draw rows that fulfil a rule.
    gaps : bool
        It may turn any cell to missing.
    paper_law : bool
        It draws by the law of a paper from the values as they are, so that tails are coded in what it draws alone.
    classed : bool
        Its target is a class, whose values stay as they are and which it refuses if too few persons have one.
    links : bool
        It can keep the rows of a person together.
    codes : bool
        It takes a column of very many categories as one coordinate, and gives back categories that there are.
    grouped : bool
        It makes rows from groups of records, whose size a policy may ask for.
    control : bool
        The rows that it leaves out of the release are a control group to compare attacks with.
    declared : bool
        What leaves depends on the records through noisy counts alone: domains are declared, and nothing that was found
        in the data is released.
    chooses_size : bool
        It chooses the size of its groups from the data; ``floor`` is the least that it takes.
    coarsened : tuple of Coarsened, optional
        Columns whose values become wider labels before it sees them, at least one here or in the schema; None for a
        method that asks for none.
    """

    synthetic: bool
    floor: int | None = None
    level_1: bool = False
    keyed: bool = False
    row_is_person: bool = False
    min_frequency: int | None = None
    conditional: bool = False
    gaps: bool = False
    coarsened: tuple[CoarsenedColumn, ...] | None = None
    links: bool = False
    codes: bool = False
    paper_law: bool = False
    classed: bool = False
    grouped: bool = False
    control: bool = False
    declared: bool = False
    chooses_size: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class OwnerDetails:
    """Details of how a release was made, for the owner only; never written into a release.

    ``labels`` is the group of each original record and ``levels`` the level that was met for it; both are None where
    the mechanism makes no groups. ``drawn_from`` is the group that each released row was drawn from, ``origin`` the
    original row that each released row descends from; None if there is no such thing. Where records are known by
    their groups alone, ``sizes`` are the records of each group and ``highest`` the level that it had to meet. ``kept``
    are the places of the records that labels and levels speak of, where some were left out. ``likelihood`` scores
    people, by their coordinates, as an attacker can who knows the algorithm and the trees, ``regrown`` as one
    who grows them again on the release; more is likelier among the records. ``sample`` are the places of the records
    that were drawn into the release, to which ``origin`` refers; all others are the control group. ``texts`` are
    further files for the owner, by name. ``answers`` are the codes of cells that leave as values of another kind, by
    column.
    """

    labels: Ints | None = None
    levels: Ints | None = None
    drawn_from: Ints | None = None
    origin: Ints | None = None
    sizes: Ints | None = None
    highest: Ints | None = None
    kept: Ints | None = None
    likelihood: Callable[[Floats], Floats] | None = None
    regrown: Callable[[Floats], Floats] | None = None
    sample: Ints | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, Ints] = field(default_factory=dict)
    redraw: Callable[[Ints, Mapping[str, float], np.random.Generator], Mapping[str, Floats] | None] | None = None

    def __repr__(self) -> str:
        return "OwnerDetails(owner only)"


@dataclass(frozen=True, eq=False, repr=False)
class MethodResult:
    """Records to release, the facts of how they were made, and the owner's details.

    ``model`` is what the records were drawn from, if it may leave as they do.
    """

    records: Records
    facts: tuple[Fact, ...]
    workings: OwnerDetails
    model: object | None = None

    def __repr__(self) -> str:
        return f"MethodResult({self.records!r}, facts={len(self.facts)})"


@runtime_checkable
class Mechanism(Protocol):
    """A frozen dataclass of parameters with one pure method."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @property
    def traits(self) -> Traits:
        """Properties that an engine needs to know."""
        ...

    @property
    def method(self) -> str:
        """The method's name on the command line."""
        ...

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Records that can be analysed in place of these."""
        ...


def check_parameters(mechanism: Any) -> None:
    """Refuse parameters of the wrong type; NumPy scalars become Python numbers."""
    hints = types_of(mechanism.__class__)
    for each in dataclasses.fields(mechanism):
        value = getattr(mechanism, each.name)
        if isinstance(value, np.number):
            value = value.item()
            object.__setattr__(mechanism, each.name, value)
        check_argument(each.name, value, hints[each.name])


def pairs_by_column(given: Any, option: str, what: str) -> tuple[tuple[str, Any], ...]:
    """Pairs of a column and what is given for it: a mapping, pairs as a recipe lists them, or one pair."""
    items: list[Any] = list(given.items()) if isinstance(given, Mapping) else [given]
    if isinstance(given, list | tuple):
        items = list(given)
    if any(not isinstance(item, list | tuple) or len(item) != 2 or not isinstance(item[0], str) for item in items):
        raise OptionError(f"{option} takes pairs of a column and {what}")
    if len({name for name, _ in items}) < len(items):
        raise OptionError(f"{option} names a column twice; name it once")
    return tuple((name, value) for name, value in items)


def parameters_of(mechanism: Mechanism) -> Mapping[str, Any]:
    """Parameters by name, as in certificates and recipes; secret keys are not parameters."""
    return dataclasses.asdict(mechanism)


def rows_drawn(records: Records) -> tuple[RowsDrawn, ...]:
    """Fact about a requested number of rows; none if it is one per record."""
    wanted = records.wanted
    return () if wanted is None else (RowsDrawn(len(records), wanted.rows, wanted.where),)


def refuse_levels(records: Records, what: str) -> None:
    """Refuse privacy levels for a method that cannot give them."""
    asked = int((records.levels > 0).sum())
    if asked:
        raise LevelError(f"{asked} records have a privacy level, which {what} does not give; use condense for them")


def refuse_strata(records: Records, what: str) -> None:
    """Refuse strata for a method that makes no groups."""
    if records.strata.any():
        raise OptionError(f"{what} makes no groups, so it takes no strata; drop them")
