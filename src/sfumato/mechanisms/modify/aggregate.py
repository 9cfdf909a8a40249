"""Aggregation: values merged into coarser categories, intervals or levels of a hierarchy [JS07, sec. 2.1]."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.core.errors import OptionError
from sfumato.core.facts import Shuffled
from sfumato.core.records import Records
from sfumato.mechanisms.modify.cells import (
    alike_rows,
    columns_of_layout,
    refuse_levels,
    refuse_strata,
    shuffled,
    unchanged,
)
from sfumato.mechanisms.protocol import Coarsened, Sanitized, Traits, Workings

__all__ = ["Aggregation"]

_WIDEST = 1e300


@dataclass(frozen=True)
class Aggregation:
    """Rows as they are, with the values of some columns given as wider labels.

    Columns that the schema releases at a level of their hierarchy (``coarsened``) are taken without being told.

    Parameters
    ----------
    coarsened : pairs of (str, int)
        Columns and the level of their hierarchy that they are released at. A column of dates without a hierarchy takes
        the calendar: 1 is the month, 2 the quarter, 3 the year.
    widths : pairs of (str, float)
        Columns of numbers and the width of the intervals that they are released as, which begin at multiples of it.

    Examples
    --------
    >>> Aggregation(widths={"age": 10}).widths
    (('age', 10.0),)
    """

    method: ClassVar[str] = "aggregate"

    coarsened: tuple[tuple[str, int], ...] | Mapping[str, int] = ()
    widths: tuple[tuple[str, float], ...] | Mapping[str, float] = ()

    def __post_init__(self) -> None:
        levels, widths = _pairs(self.coarsened, "coarsened"), _pairs(self.widths, "widths")
        if any(isinstance(level, bool) or not isinstance(level, int) or level < 1 for _, level in levels):
            raise OptionError("a level of a hierarchy is a whole number of at least 1; write --coarsened COLUMN=1")
        if any(isinstance(width, bool) or not isinstance(width, int | float) for _, width in widths) or any(
            not (math.isfinite(width) and 0.0 < width < _WIDEST) for _, width in widths
        ):
            raise OptionError("the width of an interval is a number above 0; write --widths COLUMN=10")
        both = {name for name, _ in levels} & {name for name, _ in widths}
        if both:
            raise OptionError(f"column {min(both)!r} has a level and a width; leave one of them out")
        object.__setattr__(self, "coarsened", levels)
        object.__setattr__(self, "widths", tuple((name, float(width)) for name, width in widths))

    @property
    def traits(self) -> Traits:
        """What an engine must know of it."""
        wide = tuple(Coarsened(name, f"intervals {width:.17g}", 1) for name, width in dict(self.widths).items())
        levels = tuple(Coarsened(name, None, level) for name, level in dict(self.coarsened).items())
        return Traits(synthetic=False, coarsened=(*levels, *wide), codes=True)

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> Sanitized:
        """Shuffle the rows, whose columns stand at their levels already."""
        refuse_levels(records, "aggregation")
        refuse_strata(records, "aggregation")
        released, order = shuffled(records, records.values, rng)
        columns = columns_of_layout(records.layout).values()
        facts = (
            *unchanged(columns, released.values),
            alike_rows(columns, released.values),
            Shuffled(len(records)),
        )
        return Sanitized(released, facts, Workings(origin=order))


def _pairs(told: Any, option: str) -> tuple[tuple[str, Any], ...]:
    items: list[Any] = list(told.items()) if isinstance(told, Mapping) else [told]
    if isinstance(told, list | tuple):
        items = list(told)
    if any(not isinstance(item, list | tuple) or len(item) != 2 or not isinstance(item[0], str) for item in items):
        raise OptionError(f"{option} takes pairs of a column and a number")
    names = [name for name, _ in items]
    if len(set(names)) < len(names):
        raise OptionError(f"{option} names a column twice; name it once")
    return tuple((name, number) for name, number in items)
