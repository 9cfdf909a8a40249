"""The only door from the data to the release: whole numbers leave with discrete Gaussian noise, or not at all.

Every measurement is a vector of integers and states by how much one person can change it. The ledger draws its noise,
charges its cost in zero-concentrated differential privacy, and refuses what exceeds the budget. Costs add up, also if a
measurement is chosen after earlier ones were seen (Bun and Steinke 2016, lemma 1.7).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.noise import draw_exact_gaussian, representable_variance
from sfumato.core.errors import PrivacyRefusal

__all__ = [
    "MOST_EPSILON",
    "BoundCounts",
    "CategoryCounts",
    "ColumnTable",
    "CountsGivenTarget",
    "Covariance",
    "Ledger",
    "LevelCounts",
    "Measurement",
    "OneWayCounts",
    "PairCounts",
    "PairScores",
]

MOST_EPSILON = 1000.0  # above it nothing is protected, and exponentials overflow


@dataclass(frozen=True, eq=False, repr=False)
class Measurement:
    """Whole numbers computed from the records, in ``unit``-ths of a person.

    Adding or removing all rows of one person changes them by a vector whose squared length is at most
    `squared_sensitivity`. ``paragraph`` names the place of docs/private-proof.md that shows it; an ``optional`` step is
    taken only if an option asks for it.
    """

    values: Ints
    unit: int = 1
    step: ClassVar[str] = ""
    paragraph: ClassVar[str] = ""
    optional: ClassVar[bool] = False

    @property
    def squared_sensitivity(self) -> int:
        """Square of the largest change, weighed as `noise_variances` weighs the coordinates."""
        return self.unit**2

    def noise_variances(self, variance: Fraction) -> list[tuple[slice, Fraction]]:
        """Variance of the noise of each part, if that of a coordinate of weight 1 is ``variance``."""
        return [(slice(None), variance)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.values)} values)"


class LevelCounts(Measurement):
    """Counts of people by their epsilon: a person has one."""

    step = "people of each epsilon"
    paragraph = "counts"
    optional = True


class BoundCounts(Measurement):
    """Counts of one column in the intervals of a grid that does not depend on the data."""

    step = "bounds"
    paragraph = "bounds"
    optional = True


class CategoryCounts(Measurement):
    """Counts of the categories that occur, of which only those above a threshold are released."""

    step = "categories"
    paragraph = "categories"
    optional = True


class OneWayCounts(Measurement):
    """Counts of one column in disjoint intervals or categories: a person is in at most one of them."""

    step = "one-way counts"
    paragraph = "counts"


class CountsGivenTarget(Measurement):
    """Counts of one column by target class: a person is in at most one cell."""

    step = "counts given the target"
    paragraph = "counts"


class ColumnTable(Measurement):
    """Counts of one column by its parents: a person is in at most one cell."""

    step = "tables given parents"
    paragraph = "counts"


class PairCounts(Measurement):
    """Counts of two columns by target class: a person is in at most one cell."""

    step = "tables of pairs"
    paragraph = "counts"


@dataclass(frozen=True, eq=False, repr=False)
class PairScores(Measurement):
    """Distances between the counts of pairs of columns and those of a released model, one for each pair.

    A person changes one count of each pair by one, hence each distance by at most one.
    """

    step = "pair scores"
    paragraph = "scores"

    @property
    def squared_sensitivity(self) -> int:
        """One unit for each pair."""
        return self.unit**2 * len(self.values)


@dataclass(frozen=True, eq=False, repr=False)
class Covariance(Measurement):
    """Sums of products of clipped scores: the diagonal, then what stands above it.

    ``bound`` is the largest squared length of a person's scores. Off-diagonal sums count twice in a symmetric matrix,
    so they get half of the variance: the change then has at most the length ``bound``.
    """

    bound: int = 0
    columns: int = 0
    step = "covariance of scores"
    paragraph = "covariance"

    @property
    def squared_sensitivity(self) -> int:
        """Square of the bound."""
        return (self.unit * self.bound) ** 2

    def noise_variances(self, variance: Fraction) -> list[tuple[slice, Fraction]]:
        """Half of the variance above the diagonal."""
        return [(slice(0, self.columns), variance), (slice(self.columns, None), variance / 2)]


Noise = Callable[[Fraction, int], Ints]


@dataclass(eq=False, repr=False)
class Ledger:
    """Budget of a release and what each step spent of it, in zCDP.

    Parameters
    ----------
    rho : float
        Of the whole release.
    rng : numpy Generator
        Source of the noise.
    thresholds : float
        Part of delta that thresholds of categories may cost.
    """

    rho: float
    rng: np.random.Generator
    spent: dict[str, Fraction] = field(default_factory=dict)
    thresholds: float = 0.0

    @property
    def remaining(self) -> float:
        """Budget that is not spent yet, rounded down."""
        return math.nextafter(float(Fraction(self.rho) - sum(self.spent.values(), Fraction(0))), 0.0)

    def release(self, measurement: Measurement, rho: float) -> Floats:
        """The measurement with noise, in persons, at a cost of at most ``rho``.

        Raises
        ------
        PrivacyRefusal
            If more would be spent than the budget.
        """
        squared = measurement.squared_sensitivity
        parts = self._parts(measurement, rho)
        # cost of a part: squared / (2 variance); parts of a smaller variance weigh their change less in `squared`
        cost = Fraction(squared) / (2 * min(v * w for (_, v), w in zip(parts, self._weights(measurement), strict=True)))
        if sum(self.spent.values(), cost) > Fraction(self.rho):
            raise PrivacyRefusal(
                "the steps of the method would spend more than its privacy budget; nothing is released"
            )
        self.spent[measurement.step] = self.spent.get(measurement.step, Fraction(0)) + cost
        return self.noised(measurement, parts)

    @staticmethod
    def _weights(measurement: Measurement) -> list[Fraction]:
        return [1 / v for _, v in measurement.noise_variances(Fraction(1))]

    def _parts(self, measurement: Measurement, rho: float) -> list[tuple[slice, Fraction]]:
        least = Fraction(measurement.squared_sensitivity) / (2 * Fraction(rho))
        return [(where, representable_variance(v)) for where, v in measurement.noise_variances(least)]

    def noised(self, measurement: Measurement, parts: list[tuple[slice, Fraction]]) -> Floats:
        """Values of a measurement plus noise of these variances, in persons."""
        values = measurement.values.astype(np.int64)
        for where, variance in parts:
            values[where] += draw_exact_gaussian(variance, len(values[where]), self.rng)
        return np.asarray(values / measurement.unit, dtype=np.float64)

    @property
    def lines(self) -> tuple[tuple[str, float], ...]:
        """What each step spent, rounded up."""
        return tuple((step, math.nextafter(float(rho), math.inf)) for step, rho in self.spent.items())

    def __repr__(self) -> str:
        return f"Ledger({len(self.spent)} steps)"
