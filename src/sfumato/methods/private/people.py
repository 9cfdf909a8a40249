"""The records of people as a measurement sees them: places, and how much of a person each row counts.

Rows of a person share the parts of that person. A person of a smaller epsilon has fewer parts, so that no measurement
learns more of them than that epsilon allows; people of the same epsilon are counted by themselves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.amplification import rho_of
from sfumato.core.errors import OptionError
from sfumato.methods.private.ledger import Ledger, LevelCounts, Measurement

__all__ = ["GRID", "AllPeople", "Cells", "Counter", "Partitions", "People", "level_weights", "share_parts"]

GRID = 64
"""Parts of a person of the largest epsilon, if people have different ones."""

Cells = tuple[Ints, Ints | slice]
"""A cell of each of some rows, and which rows they are."""

_PARTS = 64  # that the rows of a person share
_AT_ONCE = 1 << 18  # rows that are counted at a time, so that memory stays bounded
_LEVELS = 0.02  # share of the budget for the number of people of each level


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Records as places of their columns: a partition of the table, or all of it.

    Parameters
    ----------
    places : tuple of ndarray
        Place of each row in each column.
    parts : ndarray, optional
        How many ``unit``-ths of a person each row counts; all of them without it.
    unit : int
    levels : ndarray, optional
        Level of each row: the place of its person's weight.
    weights : tuple of int
        Parts of `GRID` that a person of each level counts.
    most_rows : int
        Rows of a person that count anything, at most.
    """

    places: tuple[Ints, ...]
    parts: Ints | None = None
    unit: int = 1
    levels: Ints | None = None
    weights: tuple[int, ...] = (GRID,)
    most_rows: int = 1

    @classmethod
    def of(
        cls,
        places: tuple[Ints, ...],
        persons: Ints | None = None,
        levels: Ints | None = None,
        weights: tuple[int, ...] = (GRID,),
    ) -> People:
        """Records of these persons, each row a person without them, with levels of rows; the strictest row decides."""
        some = persons if levels is None else levels
        if some is None:
            return cls(places)
        unit = (1 if persons is None else _PARTS) * (1 if levels is None else GRID)
        whose = np.arange(len(some)) if persons is None else persons
        levels = None if levels is None else _strictest(levels, weights, whose)
        whole = np.full(len(some), unit) if levels is None else np.array(weights)[levels] * (unit // GRID)
        return cls(places, share_parts(whole, whose), unit, levels, weights, 1 if persons is None else unit)

    def __len__(self) -> int:
        return len(next(each for each in (*self.places, self.levels, self.parts) if each is not None))

    @property
    def levelled(self) -> bool:
        """Whether people have different epsilons."""
        return self.levels is not None

    def with_places(self, *places: Ints) -> People:
        """The same people, by other columns."""
        return dataclasses.replace(self, places=places)

    def __repr__(self) -> str:
        return f"People({len(self.places)} columns)"

    def total(self, work: Callable[[People], Ints]) -> Ints:
        """Sum of what is counted of all rows, some of them at a time."""
        whole = work(self._rows(slice(0, _AT_ONCE)))
        for first in range(_AT_ONCE, len(self), _AT_ONCE):
            whole = whole + work(self._rows(slice(first, first + _AT_ONCE)))
        return whole

    def _rows(self, some: slice) -> People:
        units, levels = (None if each is None else each[some] for each in (self.parts, self.levels))
        return dataclasses.replace(self, places=tuple(each[some] for each in self.places), parts=units, levels=levels)

    def counts(self, cells: Ints, size: int, where: Ints | slice = slice(None), *, apart: bool = False) -> Ints:
        """How many people are in each cell, in units; of each level if they are counted ``apart``."""
        parts = None if self.parts is None else self.parts[where]
        if apart and self.levels is not None:
            cells, size = self.levels[where] * size + cells, size * len(self.weights)
        return np.bincount(cells, weights=parts, minlength=size).astype(np.int64)


class AllPeople(Protocol):
    """People of a table, wherever its partitions lie: `People`, `Partitions`, or those of a cluster."""

    @property
    def unit(self) -> int:
        """Parts of a person."""
        ...

    @property
    def weights(self) -> tuple[int, ...]:
        """Parts of `GRID` that a person of each level counts."""
        ...

    @property
    def most_rows(self) -> int:
        """Rows of a person that count anything, at most."""
        ...

    @property
    def levelled(self) -> bool:
        """Whether people have different epsilons."""
        ...

    def total(self, work: Callable[[People], Ints]) -> Ints:
        """Sum of what is counted in each partition."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Partitions:
    """People in partitions, over which each `total` is ``mapped``; all rows of a person lie in one.

    ``nobody`` is a partition without rows, which tells what all of them have in common.
    """

    nobody: People
    mapped: Callable[[Callable[[People], Ints]], Iterable[Ints]]

    @property
    def unit(self) -> int:
        """Parts of a person."""
        return self.nobody.unit

    @property
    def weights(self) -> tuple[int, ...]:
        """Parts of `GRID` that a person of each level counts."""
        return self.nobody.weights

    @property
    def most_rows(self) -> int:
        """Rows of a person that count anything, at most."""
        return self.nobody.most_rows

    @property
    def levelled(self) -> bool:
        """Whether people have different epsilons."""
        return self.nobody.levelled

    def total(self, work: Callable[[People], Ints]) -> Ints:
        """Sum of what is counted in each partition."""
        whole = work(self.nobody)
        for counts in self.mapped(work):
            whole = whole + counts
        return whole

    def __repr__(self) -> str:
        return "Partitions(owner only)"


def level_weights(epsilons: Sequence[float], epsilon: float, delta: float) -> tuple[int, ...]:
    """Parts of `GRID` that people of each epsilon count, if a whole person has the largest ``epsilon``; rounded down.

    Examples
    --------
    >>> level_weights([0.5, 1.0, 3.0], 3.0, 1e-5)
    (12, 23, 64)
    """
    whole = rho_of(epsilon, delta)
    weights = []
    for each in epsilons:
        parts = int(GRID * np.sqrt(rho_of(each, delta) / whole))
        while parts and (parts / GRID) ** 2 * whole > rho_of(each, delta):
            parts -= 1
        if each > epsilon:
            raise OptionError(
                f"some people have epsilon {each:g}, above {epsilon:g}, which is that of the run; raise it"
            )
        if not parts:
            raise OptionError(
                f"epsilon {each:g} is too small compared with {epsilon:g} of others; choose closer values"
            )
        weights.append(min(parts, GRID))
    return tuple(weights)


def share_parts(whole: Ints, persons: Ints) -> Ints:
    """Parts of each row: those of its person, shared by the person's rows as evenly as whole numbers can."""
    order = np.argsort(persons, kind="stable")
    _, first, many = np.unique(persons[order], return_index=True, return_counts=True)
    rank, size = np.arange(len(persons)) - np.repeat(first, many), np.repeat(many, many)
    parts, shared = np.empty(len(persons), dtype=np.int64), whole[order]
    parts[order] = (rank + 1) * shared // size - rank * shared // size
    return parts


def _strictest(levels: Ints, weights: tuple[int, ...], persons: Ints) -> Ints:
    """Level of each row's person: that of the person's row of the smallest weight."""
    order = np.argsort(weights, kind="stable")  # levels by weight
    rank = np.empty(len(weights), dtype=np.int64)
    rank[order] = np.arange(len(weights))
    _, whose = np.unique(persons, return_inverse=True)
    smallest = np.full(int(whose.max(initial=-1)) + 1, len(weights), dtype=np.int64)
    np.minimum.at(smallest, whose, rank[levels])
    return np.asarray(order[smallest[whose]])


@dataclass(eq=False, repr=False)
class Counter:
    """Noisy counts of people, whose levels are counted by themselves and then taken together.

    Parameters
    ----------
    people : AllPeople
    ledger : Ledger
    known_sizes : ndarray, optional
        Noisy number of people of each level, once it is measured.
    """

    people: AllPeople
    ledger: Ledger
    known_sizes: Floats | None = None

    def measure_sizes(self) -> Floats | None:
        """Number of people of each level, measured if it is not known; None if all have the same epsilon."""
        people = self.people
        if people.levelled and self.known_sizes is None:
            counts = people.total(lambda part: part.counts(np.zeros(len(part), dtype=np.int64), 1, apart=True))
            noisy = self.ledger.release(LevelCounts(counts, people.unit), _LEVELS * self.ledger.rho)
            self.known_sizes = np.maximum(noisy / self.shares, 1.0)
        return self.known_sizes

    @property
    def sizes(self) -> Floats:
        """Noisy number of people of each level."""
        assert self.known_sizes is not None
        return self.known_sizes

    @property
    def levelled(self) -> bool:
        """Whether people have different epsilons."""
        return self.people.levelled

    @cached_property
    def shares(self) -> Floats:
        """What a person of each level counts, as a share of one of the largest epsilon."""
        return np.array(self.people.weights) / GRID

    @property
    def counted(self) -> float:
        """Mean of what a person counts."""
        return float(self.shares @ self.sizes / self.sizes.sum()) if self.levelled else 1.0

    @property
    def noise(self) -> float:
        """Noise of counts of people of all levels, if levels are alike, as a multiple of that of one level."""
        return float(self.sizes.sum() / np.sqrt(((self.shares * self.sizes) ** 2).sum())) if self.levelled else 1.0

    def counts(
        self, sizes: Sequence[int], cells_of: Callable[[People], Iterable[Cells]], *, apart: bool = True
    ) -> list[Ints]:
        """Counts of several vectors of cells, in one pass over all rows; of each level if they are counted ``apart``.

        ``cells_of`` must depend on what was released alone.
        """
        levels = len(self.people.weights) if self.levelled and apart else 1

        def work(people: People) -> Ints:
            pairs = zip(cells_of(people), sizes, strict=True)
            return np.concatenate([people.counts(cells, size, rows, apart=apart) for (cells, rows), size in pairs])

        return np.split(self.people.total(work), np.cumsum([levels * size for size in sizes])[:-1])

    def noisy(self, kind: type[Measurement], counts: Ints, rho: float, *, blocks: int = 1) -> tuple[Floats, float]:
        """Noisy number of people in each cell of counts, and the standard deviation of its noise.

        The cells are ``blocks`` blocks of equal size, in each of which levels are compared by themselves.
        """
        sd, noisy = float(np.sqrt(1 / (2 * rho))), self.ledger.release(kind(counts, self.people.unit), rho)
        if not self.levelled:
            return noisy, sd
        whole, sd = self.pool(noisy.reshape(len(self.shares), blocks, -1), sd)
        return whole.ravel(), sd

    def pool(self, noisy: Floats, sd: float) -> tuple[Floats, float]:
        """Counts of all levels in blocks of cells, from those of each level with noise of this standard deviation.

        What a level has in a block is drawn towards what all have in common, or towards nothing, whichever is nearer,
        as far as noise explains the difference [James and Stein 1961]; people of small weights alone would say little.
        """
        shares, sizes = self.shares[:, None], self.sizes[:, None]
        own = noisy / shares[..., None]
        precision = shares**2 * sizes / ((shares * sizes) ** 2).sum()
        common = (precision[..., None] * own).sum(axis=0)  # per person
        squared, apart = (own**2).sum(axis=2), own - sizes[..., None] * common
        alike = (apart**2).sum(axis=2) <= squared  # levels by blocks
        distance = np.maximum(np.where(alike, (apart**2).sum(axis=2), squared), 1e-12)
        kept = np.clip(1 - (noisy.shape[2] - 1) * (sd / shares) ** 2 / distance, 0.0, 1.0)
        shared = np.where(alike, (1 - kept) * sizes, 0.0).sum(axis=0)  # people whom the common counts stand for
        counts = (kept[..., None] * own).sum(axis=0) + shared[:, None] * common
        variance = (((kept + precision * shared) / shares) ** 2).sum(axis=0)
        return counts, sd * float(np.sqrt(variance.mean()))

    def __repr__(self) -> str:
        return f"Counter({len(self.people.weights)} levels)"
