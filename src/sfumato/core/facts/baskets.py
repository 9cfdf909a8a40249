"""What is said of baskets of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.facts.made import Fact

__all__ = ["BasketPersons", "BasketsRandomized", "BasketsReleased", "RulesBlocked", "RulesHidden"]


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
    said which items there are, so that they were not read off the baskets. ``chosen`` where the owner named no operator
    and it is the one that is usual for so many items.
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
    chosen: bool = False


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
