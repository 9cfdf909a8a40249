"""Sampling: the rows of some people, drawn at random, leave as they are [JS07, sec. 2.1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.core.errors import LevelError, OptionError
from sfumato.core.facts import Sampled, Shuffled
from sfumato.core.records import Records
from sfumato.mechanisms.modify.cells import (
    columns_of_layout,
    people_of,
    refuse_levels,
    refuse_strata,
    shuffled,
    unchanged,
)
from sfumato.mechanisms.protocol import Sanitized, Traits, Workings

__all__ = ["Sampling", "people_drawn"]


def people_drawn(share: float, people: int) -> int:
    """How many of so many people a share is: rounded, and at least one.

    Examples
    --------
    >>> people_drawn(0.1, 1234), people_drawn(0.01, 7)
    (123, 1)
    """
    return max(1, round(share * people))


@dataclass(frozen=True)
class Sampling:
    """All rows of a random share of the people, unchanged; nobody else's rows leave.

    Parameters
    ----------
    share : float
        Share of the people who are drawn, without replacement and each with the same chance.

    Examples
    --------
    >>> Sampling(share=0.2).method
    'sample'
    >>> Sampling(share=2)
    Traceback (most recent call last):
        ...
    sfumato.core.errors.OptionError: the share of people to draw must lie between 0 and 1; try 0.1
    """

    method: ClassVar[str] = "sample"
    traits: ClassVar[Traits] = Traits(synthetic=False, codes=True)

    share: float = 0.1

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0.0 < self.share < 1.0:
            raise OptionError("the share of people to draw must lie between 0 and 1; try 0.1")

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> Sanitized:
        """Draw people and shuffle their rows."""
        refuse_levels(records, "sampling")
        refuse_strata(records, "sampling")
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
            *unchanged(columns_of_layout(records.layout).values(), released.values),
            Shuffled(len(kept)),
        )
        return Sanitized(released, facts, Workings(origin=order, sample=kept))
