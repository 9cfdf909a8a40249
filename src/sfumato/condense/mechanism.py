"""Condensation as a mechanism: group, keep the groups' statistics, draw new records from them [AY05]."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sfumato.errors import LevelError, OptionError, PrivacyLeakWarning
from sfumato.facts import CountsKept, Fact, Grouped, Shuffled, Synthesized
from sfumato.mechanism import Sanitized, Workings
from sfumato.records import BlockKind, Layout, Records

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Condensation", "effective_levels"]

_ALGORITHMS = {
    "compact": "principal-axis tree and local search",
    "mdav": "MDAV",
    "paper": "AY05 ConstructGroups",
}
_EFFORTS = ("fast", "default", "thorough")
_TINY = 3  # mean and covariance of two records give both away, and three are not far from it


@dataclass(frozen=True)
class Condensation:
    """Group condensation with a privacy level for each record.

    Parameters
    ----------
    k : int
        The floor: a record's level is max(k, the level it asks for).
    grouping : {"compact", "mdav", "paper"}
        ``"compact"`` searches for groups of low sum of squares with every record's own level, ``"mdav"`` is exact MDAV
        at the highest level, ``"paper"`` is ConstructGroups [AY05, sec. 2].
    effort : {"fast", "default", "thorough"}
        How long the compact grouping searches.
    allow_level_1 : bool
        Level 1 is no protection: such a record may stand alone and is then published as it is.

    Examples
    --------
    >>> Condensation(k=10).method
    'condense'
    >>> Condensation(k=1)
    Traceback (most recent call last):
        ...
    sfumato.errors.LevelError: k is 1, which is no protection; take k of at least 2 or allow level 1 explicitly
    """

    makes_synthetic_rows: ClassVar[bool] = True

    k: int = 10
    grouping: str = "compact"
    effort: str = "default"
    allow_level_1: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise LevelError("k must be a whole number of at least 2")
        if self.k == 1 and not self.allow_level_1:
            raise LevelError("k is 1, which is no protection; take k of at least 2 or allow level 1 explicitly")
        for name, choices in (("grouping", _ALGORITHMS), ("effort", _EFFORTS)):
            chosen = getattr(self, name)
            if chosen not in choices:
                raise OptionError(f"there is no {name} {chosen!r}; choose one of {', '.join(choices)}")

    @property
    def method(self) -> str:
        """The method's name on the command line."""
        return "condense-paper" if self.grouping == "paper" else "condense"

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> Sanitized:
        """Replace the records by as many synthetic ones, drawn from the statistics of their groups."""
        import numpy as np

        from sfumato.condense.partition import partition
        from sfumato.condense.warm import compile_ahead
        from sfumato.groups import redraw

        compile_ahead()
        levels = effective_levels(records.levels, self.k, allow_level_1=self.allow_level_1)
        labels = partition(records.values, levels, records.strata, rng, grouping=self.grouping, effort=self.effort)
        sizes = np.bincount(labels)
        values = redraw(records.values, labels, records.layout, rng)
        order = rng.permutation(len(values))
        values, drawn_from = values[order], np.repeat(np.arange(len(sizes)), sizes)[order]
        nothing = np.zeros(len(values), dtype=np.int64)
        released = Records(values, records.layout, nothing, nothing.copy())
        return Sanitized(
            released,
            _facts(_ALGORITHMS[self.grouping], records.layout, sizes, levels, labels),
            Workings(labels, levels, drawn_from),
        )


def _facts(
    algorithm: str, layout: Layout, sizes: NDArray[np.int64], levels: NDArray[np.int64], labels: NDArray[np.int64]
) -> tuple[Fact, ...]:
    """State what was done; warn where groups are so small that their statistics are their members."""
    tiny = int((sizes <= _TINY).sum())
    if tiny:
        warnings.warn(
            f"{tiny} of {len(sizes)} groups have {_TINY} records or fewer: their mean and covariance nearly or "
            "exactly give the members away; take a higher k",
            PrivacyLeakWarning,
            stacklevel=3,
        )
    categories = sum(block.kind is BlockKind.CATEGORY for block in layout)
    missing = sum(block.kind is BlockKind.MISSING for block in layout)
    grouped = Grouped(
        algorithm=algorithm,
        records=len(labels),
        groups=len(sizes),
        smallest=int(sizes.min()),
        asked_min=int(levels.min()),
        asked_max=int(levels.max()),
        violations=int((sizes[labels] < levels).sum()),
        tiny=tiny,
        alone=int((sizes == 1).sum()),
    )
    drawn = Synthesized(statistics="mean and covariance", law="uniform along eigenvectors", rows=len(labels))
    kept = (CountsKept(categories, missing),) if categories or missing else ()
    return (grouped, drawn, *kept, Shuffled(rows=len(labels)))


def effective_levels(asked: NDArray[np.int64], k: int, *, allow_level_1: bool) -> NDArray[np.int64]:
    """Give max(k, level asked) of each record; 0 asks for nothing of its own."""
    import numpy as np

    if (asked < 0).any():
        raise LevelError(f"{int((asked < 0).sum())} privacy levels are negative; levels are whole numbers from 2")
    low = int(((asked == 1) & ~np.bool_(allow_level_1)).sum())
    if low:
        raise LevelError(
            f"{low} records ask for privacy level 1, which is no protection; raise them to at least 2 "
            "or allow level 1 explicitly"
        )
    return np.maximum(asked, k).astype(np.int64)
