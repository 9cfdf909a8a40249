"""Baskets randomized one by one, so that supports can be estimated and no basket be read [JS07, sec. 3.3]."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.errors import OptionError
from sfumato.core.facts import BasketsRandomized
from sfumato.core.laws.basket_operators import BasketOperator, OperatorName
from sfumato.mechanisms.transactions.protocol import BasketRule, SanitizedBaskets
from sfumato.tables.baskets import BasketTable

__all__ = ["MOST_ENTRIES", "BasketRandomization"]

MOST_ENTRIES = 1 << 28
"""Entries that randomized baskets may come to; more are refused before any is drawn."""

_USUAL: dict[str, dict[str, Any]] = {
    "flip": {"keep": 0.9, "insert": 0.1},
    "uniform": {"keep": 0.5},
    "cut-and-paste": {"cutoff": 3, "insert": 0.1},
    "select-a-size": {"gamma": 19.0, "insert": 0.1},
}


@dataclass(frozen=True)
class BasketRandomization:
    """Randomizes every basket by itself.

    Parameters
    ----------
    operator : {"flip", "uniform", "cut-and-paste", "select-a-size"}
    keep : float, optional
        flip, uniform: chance that an item of the basket stays; by default 0.9 and 0.5.
    insert : float, optional
        Chance that an item which is not in the basket comes in, by default 0.1; not for uniform.
    cutoff : int, optional
        cut-and-paste: most items that are cut out of the basket on purpose, by default 3.
    gamma : float, optional
        select-a-size: the most by which odds between two baskets of one size may change, by default 19.
    """

    operator: OperatorName = "flip"
    keep: float | None = None
    insert: float | None = None
    cutoff: int | None = None
    gamma: float | None = None

    def __post_init__(self) -> None:
        for name, value in _USUAL.get(self.operator, {}).items():
            told = getattr(self, name)
            object.__setattr__(self, name, value if told is None else type(value)(told))
        self.law(1)

    @property
    def method(self) -> str:
        """Its name in certificates."""
        return "randomize-baskets"

    @property
    def takes_rules(self) -> bool:
        """Nothing is named that it should hide."""
        return False

    def law(self, width: int) -> BasketOperator:
        """The operator over so many items."""
        return BasketOperator(self.operator, width, self.keep, self.insert, self.cutoff, self.gamma)

    def sanitize(
        self, table: BasketTable, *, rules: Sequence[BasketRule] = (), rng: np.random.Generator
    ) -> SanitizedBaskets:
        """Randomized baskets, and the true size of each where supports can only be estimated with it."""
        if rules:
            raise OptionError("randomizing hides no rules; leave them out")
        law, sizes = self.law(table.baskets.width), table.baskets.sizes
        expected = len(table.baskets.items) + len(sizes) * law.width * (law.insert or 0.0)
        if expected > MOST_ENTRIES:
            raise OptionError(
                f"{law.width} items would come into {len(sizes)} baskets {expected / len(sizes):,.0f} at a time; take "
                "a smaller --insert, or uniform"
            )
        drawn = law.randomize(table.baskets, rng)
        longest = int(sizes.max(initial=0)) if law.by_size else 0
        epsilon = law.epsilon_up_to(longest)
        fact = BasketsRandomized(
            law.name, law.width, law.keep, law.insert, law.cutoff, law.gamma, longest, epsilon, table.declared
        )
        shown = sizes if law.shows_size else None
        return SanitizedBaskets(dataclasses.replace(table, baskets=drawn, sizes=shown), (fact,))
