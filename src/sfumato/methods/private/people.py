"""The records of people as a measurement sees them: places, and how much of a person each row counts.

Rows of a person share the parts of that person. A person of a smaller epsilon has fewer parts, so that no measurement
learns more of them than that epsilon allows; people of the same epsilon are counted by themselves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.amplification import rho_of
from sfumato.core.errors import OptionError
from sfumato.methods.private.ledger import Ledger, LevelCounts, Measurement

__all__ = ["GRID", "Counter", "People", "level_weights", "share_parts"]

GRID = 64
"""Parts of a person of the largest epsilon, if people have different ones."""

_PARTS = 64  # that the rows of a person share
_LEVELS = 0.02  # share of the budget for the number of people of each level


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Records as places of their columns.

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
        return len(self.places[0])

    def with_places(self, *places: Ints) -> People:
        """The same people, by other columns."""
        return dataclasses.replace(self, places=places)

    def __repr__(self) -> str:
        return f"People({len(self.places)} columns)"

    def counts(self, cells: Ints, size: int, where: Ints | slice = slice(None)) -> Ints:
        """How many people are in each cell, in units."""
        parts = None if self.parts is None else self.parts[where]
        return np.bincount(cells, weights=parts, minlength=size).astype(np.int64)


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
    people : People
    ledger : Ledger
    known_sizes : ndarray, optional
        Noisy number of people of each level, once it is measured.
    """

    people: People
    ledger: Ledger
    known_sizes: Floats | None = None

    def measure_sizes(self) -> Floats | None:
        """Number of people of each level, measured if it is not known; None if all have the same epsilon."""
        people = self.people
        if people.levels is not None and self.known_sizes is None:
            counts = people.counts(people.levels, len(people.weights))
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
        return self.people.levels is not None

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

    def count(
        self,
        kind: type[Measurement],
        cells: Ints,
        size: int,
        rho: float,
        where: Ints | slice = slice(None),
        *,
        blocks: int = 1,
    ) -> tuple[Floats, float]:
        """Noisy number of people in each cell, and the standard deviation of its noise.

        The cells are ``blocks`` blocks of equal size, in each of which levels are compared by themselves.
        """
        sd = float(np.sqrt(1 / (2 * rho)))
        if self.people.levels is None:
            return self.ledger.release(kind(self.people.counts(cells, size, where), self.people.unit), rho), sd
        cells = self.people.levels[where] * size + cells
        counts = self.people.counts(cells, size * len(self.shares), where)
        noisy = self.ledger.release(kind(counts, self.people.unit), rho)
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
