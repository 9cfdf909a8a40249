"""What every mechanism promises, whichever room it lives in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from sfumato.facts import Fact
from sfumato.records import Records

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Mechanism", "Sanitized", "Workings"]


@dataclass(frozen=True, eq=False, repr=False)
class Workings:
    """What only the owner may see of how a release was made; it is never written into one.

    ``labels`` is the group of each original record and ``levels`` the level that was met for it; both are None where
    the mechanism makes no groups. ``drawn_from`` is the group that each released row was drawn from, ``origin`` the
    original row that each released row descends from; None where there is no such thing.
    """

    labels: NDArray[np.int64] | None = None
    levels: NDArray[np.int64] | None = None
    drawn_from: NDArray[np.int64] | None = None
    origin: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        return "Workings(owner only)"


@dataclass(frozen=True, eq=False, repr=False)
class Sanitized:
    """Records that may leave, the facts of how they were made, and the owner's workings."""

    records: Records
    facts: tuple[Fact, ...]
    workings: Workings | None

    def __repr__(self) -> str:
        return f"Sanitized({self.records!r}, facts={len(self.facts)})"


@runtime_checkable
class Mechanism(Protocol):
    """A frozen dataclass of parameters with one pure method.

    ``makes_synthetic_rows`` says that no released row descends from one original row, so that nothing
    can be passed through beside it.
    """

    makes_synthetic_rows: ClassVar[bool]

    @property
    def method(self) -> str:
        """The method's name on the command line."""
        ...

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> Sanitized:
        """Give back records that can be mined in place of these."""
        ...
