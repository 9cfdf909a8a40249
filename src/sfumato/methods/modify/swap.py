"""Swapping and sampling: cells exchanged between rows, or rows of a sample of people [JS07, sec. 2.1; OZ03, 2]."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal
from sfumato.core.facts import Shuffled
from sfumato.core.option import offered
from sfumato.core.persons import number_of_persons
from sfumato.core.records import Records
from sfumato.methods.modify import (
    ColumnCells,
    columns_of_layout,
    modifiable,
    named_columns,
    names_of,
    people_of,
    released,
    shuffled,
    unchanged,
)
from sfumato.methods.modify.facts import Sampled, Swapped
from sfumato.methods.protocol import MethodResult, OwnerDetails, Traits, check_parameters

__all__ = ["WITHIN", "Subsampling", "Swapping", "people_drawn", "swap_in_leaves", "swap_ranks"]

WITHIN = ("window", "leaves")
"""Between which rows cells are exchanged."""

_TRIES = 32
_DRAWS = 1 << 14


@dataclass(frozen=True)
class Swapping:
    """Cells of some columns exchanged between rows; every column keeps its values.

    Parameters
    ----------
    within : {"window", "leaves"}
        Between rows that are near in rank, in pairs and for each column apart; or at random between the rows of a leaf
        of a tree that is grown to tell the target from all other columns.
    window : float
        How far two exchanged cells of a column may lie apart in rank, in percent of its cells.
    leaf : int
        Fewest persons of a leaf: the more, the less a row's own cell is known and the rules of the target are kept.
    columns : tuple of str
        Columns to exchange; by default all numbers, orders and dates, and in leaves the target alone.
    pass_categories : bool
        Window: publish categories as they are. They have no ranks, so without it they are refused.

    Examples
    --------
    >>> Swapping(window=10).method
    'swap'
    >>> Swapping(within="groups")
    Traceback (most recent call last):
        ...
    sfumato.core.errors.OptionError: there is no place 'groups' to swap within; choose one of window, leaves
    """

    method: ClassVar[str] = "swap"
    traits: ClassVar[Traits] = Traits(synthetic=False, codes=True)

    within: str = field(
        default="window",
        metadata=offered(
            "swap: between rows of similar rank, or in a leaf of a tree that predicts the target.  [default: window]",
            choices=WITHIN,
        ),
    )
    window: float = field(
        default=5.0, metadata=offered("swap: largest difference in rank, in percent of the rows.  [default: 5]")
    )
    leaf: int = 50
    columns: tuple[str, ...] = field(
        default=(),
        metadata=offered("swap: column to swap; block: a quasi-identifier; repeatable.  [default: see the docs]"),
    )
    pass_categories: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names_of(self.columns, "columns"))
        check_parameters(self)
        if self.within not in WITHIN:
            raise OptionError(f"there is no place {self.within!r} to swap within; choose one of {', '.join(WITHIN)}")
        window = self.window
        if not 0.0 < window <= 100.0:
            raise OptionError("the window is a percentage above 0 and at most 100; try 5")
        if self.leaf < 2:
            raise OptionError("a leaf of fewer than 2 persons has nobody to swap with; try 50")

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Exchange cells and shuffle the rows."""
        columns = modifiable(records, "swapping")
        values = records.values.copy()
        persons = people_of(records)
        if self.within == "window":
            chosen = self._with_ranks(columns)
            leaves, smallest = 0, 0
            for column in chosen:
                _exchange(column, values, swap_ranks(column, values, persons, self.window, rng))
        else:
            chosen = named_columns(columns, self.columns or _target(records), "columns")
            labels, leaves, smallest = self._leaves(records)
            for column in chosen:
                _exchange(column, values, swap_in_leaves(column, values, labels, rng))
        names = {column.name for column in chosen}
        fact = Swapped(
            "window" if self.within == "window" else "leaves",
            tuple(column.name for column in chosen),
            tuple(int((column.codes(values) != column.codes(records.values)).sum()) for column in chosen),
            len(records),
            self.window if self.within == "window" else None,
            records.target if self.within == "leaves" else None,
            leaves,
            smallest,
            sum(bool(column.absent(values).any()) for column in chosen),
        )
        left = [column for name, column in columns.items() if name not in names]
        return released(fact, records, values, left, rng)

    def _with_ranks(self, columns: dict[str, ColumnCells]) -> list[ColumnCells]:
        """Columns to exchange by rank."""
        if self.columns:
            chosen = named_columns(columns, self.columns, "columns")
            without = [column.name for column in chosen if not column.has_order]
            if without:
                raise OptionError(
                    f"column {without[0]!r} holds categories, which have no ranks; leave it out, or swap within leaves "
                    "(--within leaves)"
                )
            return chosen
        chosen = [column for column in columns.values() if column.has_order]
        if not chosen:
            raise OptionError("no column has ranks, so there is nothing to swap; use --within leaves or another method")
        categories = [column.block for column in columns.values() if not column.has_order]
        if categories and not self.pass_categories:
            raise PrivacyRefusal(
                f"{len(categories)} columns are categories, the first is {categories[0].named}: swapping by rank would "
                "publish them as they are; leave them out, swap within leaves, or allow it with --pass-categories"
            )
        return chosen

    def _leaves(self, records: Records) -> tuple[Ints, int, int]:
        """Leaf of each record, how many there are, and the persons of the smallest."""
        from sfumato.methods.modify.rules import grow_on

        (target,) = _target(records)
        people = number_of_persons(records.persons, np.arange(len(records)))
        if people < self.leaf:
            raise LevelError(f"there are {people} persons and a leaf needs {self.leaf}; lower the leaf or add more")
        if len(columns_of_layout(records.layout)) < 2:
            raise OptionError("the target is the only column, so no tree can tell it; swap within a window")
        who = None if records.persons is None else np.unique(records.persons, return_inverse=True)[1]
        grown = grow_on(records, target, self.leaf)
        return grown.labels, len(np.unique(grown.labels)), grown.smallest(who)


def _target(records: Records) -> tuple[str]:
    if records.target is None:
        raise OptionError("a tree is grown to tell the target, and none is named; name it with --target")
    return (records.target,)


def _exchange(column: ColumnCells, values: Floats, source: Ints) -> None:
    """Give every row the cell of another."""
    values[:, column.block.where] = values[source, column.block.where]
    if column.missing is not None:
        values[:, column.missing.where] = values[source, column.missing.where]


def swap_ranks(column: ColumnCells, values: Floats, persons: Ints, window: float, rng: np.random.Generator) -> Ints:
    """Donor of each row: a partner at most ``window`` percent of the cells away in rank.

    Cells are taken in the order of their ranks, equal ones in random order; each that has no partner yet gets one drawn
    from those above it, within the window, that have none and are of another person [Moore 1996]. Missing cells stay.
    """
    rows = np.flatnonzero(~column.absent(values))
    reach = math.floor(len(rows) * window / 100.0)
    if reach < 1:
        raise OptionError(
            f"a window of {window:g} percent of the {len(rows)} cells of column {column.name!r} holds no second one; "
            "widen it"
        )
    order = rng.permutation(len(rows))
    ranked = rows[order[np.argsort(values[rows[order], column.block.start], kind="stable")]]
    partner = _pair(persons[ranked].tolist(), reach, rng)
    source = np.arange(len(values))
    source[ranked] = ranked[partner]
    return source


def _pair(who: list[int], reach: int, rng: np.random.Generator) -> list[int]:
    """Partner of each rank, itself if none is left; partners are different persons."""
    partner, paired = list(range(len(who))), [False] * len(who)
    draws = _uniform(rng)
    for rank in range(len(who)):
        if paired[rank]:
            continue
        room = min(reach, len(who) - 1 - rank)
        found = -1
        for _ in range(_TRIES if room else 0):
            other = rank + 1 + int(next(draws) * room)
            if not paired[other] and who[other] != who[rank]:
                found = other
                break
        if found < 0:  # few are left: look at all of them
            left = [
                other for other in range(rank + 1, rank + 1 + room) if not paired[other] and who[other] != who[rank]
            ]
            if not left:
                continue
            found = left[int(next(draws) * len(left))]
        partner[rank], partner[found] = found, rank
        paired[rank] = paired[found] = True
    return partner


def _uniform(rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield from rng.random(_DRAWS).tolist()


def swap_in_leaves(column: ColumnCells, values: Floats, labels: Ints, rng: np.random.Generator) -> Ints:
    """Donor of each row: a random permutation within each leaf. Missing cells stay."""
    rows = np.flatnonzero(~column.absent(values))
    by_leaf = rows[np.argsort(labels[rows], kind="stable")]
    drawn = rng.permutation(rows)
    mixed = drawn[np.argsort(labels[drawn], kind="stable")]
    source = np.arange(len(values))
    source[by_leaf] = mixed
    return source


def people_drawn(share: float, people: int) -> int:
    """Number of people in a share: rounded, at least one.

    Examples
    --------
    >>> people_drawn(0.1, 1234), people_drawn(0.01, 7)
    (123, 1)
    """
    return max(1, round(share * people))


@dataclass(frozen=True)
class Subsampling:
    """All rows of a random share of the people, unchanged.

    Parameters
    ----------
    share : float
        Share of the people who are drawn, without replacement and each with the same chance.

    Examples
    --------
    >>> Subsampling(share=0.2).method
    'subsample'
    >>> Subsampling(share=2)
    Traceback (most recent call last):
        ...
    sfumato.core.errors.OptionError: the share of people to draw must lie between 0 and 1; try 0.1
    """

    method: ClassVar[str] = "subsample"
    traits: ClassVar[Traits] = Traits(synthetic=False, codes=True, control=True)

    share: float = field(default=0.1, metadata=offered("subsample: share of the people in the sample.  [default: 0.1]"))

    def __post_init__(self) -> None:
        check_parameters(self)
        if not 0.0 < self.share < 1.0:
            raise OptionError("the share of people to draw must lie between 0 and 1; try 0.1")

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Draw people and shuffle their rows."""
        columns = modifiable(records, "sampling")
        told = records.persons is not None
        who = people_of(records)
        people = int(who.max()) + 1
        count = people_drawn(self.share, people)
        if count < 2:
            raise LevelError(f"a share of {self.share:g} of {people} people is one alone; draw more of them")
        chosen = np.zeros(people, dtype=np.bool_)
        chosen[rng.permutation(people)[:count]] = True
        kept = np.flatnonzero(chosen[who]).astype(np.int64)
        released, order = shuffled(records, records.values[kept], rng)
        facts = (
            Sampled(len(records), len(kept), people, count, told),
            *unchanged(columns.values(), released.values),
            Shuffled(len(kept)),
        )
        return MethodResult(released, facts, OwnerDetails(origin=order, sample=kept))
