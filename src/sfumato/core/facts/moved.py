"""What is said of noise, geometry and randomization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.facts.fact import Fact

__all__ = ["ComponentNoise", "Enhanced", "Noised", "Randomized", "TargetMoved", "Transformed"]


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
