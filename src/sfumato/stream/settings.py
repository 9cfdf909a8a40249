"""What a stream was told when it began, how far it has come, and the lines of its ledger of epochs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TypeVar

from sfumato.documents import UNLESS_DEFAULT, from_json, write_json
from sfumato.errors import OptionError
from sfumato.stream.format import Entry, StateError
from sfumato.stream.pool import MODES

__all__ = ["EpochLine", "Progress", "Settings", "document_of", "entry_of"]


@dataclass(frozen=True)
class Settings:
    """What does not change while a stream lives.

    ``pending_key`` is how the state tells a wrong key: an encrypted nothing, None where no key is used.
    ``decimals`` are those that published numbers of a column are written with. ``measure_rows`` are kept at most to
    measure by, of those taken in and again of those who are not, who are ``measure_share`` of all; 0 where none are.
    ``measure_key`` is how the state tells a wrong key of theirs.
    """

    state_id: str
    sfumato: str
    d: int
    k: int
    split: str
    grouping: str
    level: str | int | None
    seed: int | None
    pending: str
    pending_limit: int
    pending_key: str | None
    batch_rows: int
    format: str
    delimiter: str
    decimals: dict[str, int] = dataclasses.field(default_factory=dict, hash=False)
    measure_rows: int = dataclasses.field(default=0, metadata=UNLESS_DEFAULT)
    measure_share: float = dataclasses.field(default=0.0, metadata=UNLESS_DEFAULT)
    measure_key: str | None = dataclasses.field(default=None, metadata=UNLESS_DEFAULT)

    def __post_init__(self) -> None:
        if self.pending not in MODES:
            raise OptionError(f"there is no way {self.pending!r} to keep waiting records; choose {' or '.join(MODES)}")
        if self.batch_rows < 1:
            raise OptionError("a batch has at least 1 row; raise --batch-rows")
        if (self.measure_rows > 0) != (self.measure_key is not None) or self.measure_rows < 0:
            raise OptionError(
                "rows are kept for measuring under a key; give --measure-rows with --measure-key, or none"
            )
        if not 0.0 <= self.measure_share <= 0.5:
            raise OptionError("the share of rows that is not taken in lies between 0 and 0.5; try 0.1")


@dataclass(frozen=True)
class Progress:
    """How far a stream has come.

    ``rows`` counts all rows that were given, ``quarantined`` those of them that were kept out; ``late`` says that
    records joined while others, which wait, were not at hand; ``delivered`` that the last epoch's folder was written.
    """

    next_id: int
    splits: int = 0
    batches: int = 0
    rows: int = 0
    quarantined: int = 0
    next_place: int = 0
    late: bool = False
    last_batch: str | None = None
    epoch: int = 0
    delivered: bool = True


@dataclass(frozen=True)
class EpochLine:
    """One line of the ledger: families that left in a new state, families that repeat their rows, rows of all.

    ``fresh`` is the least number of fresh records behind a family that left, 0 where none did.
    """

    epoch: int
    renewed: int
    repeated: int
    rows: int
    fresh: int


D = TypeVar("D", Settings, Progress, EpochLine)


def entry_of(kind: str, thing: Settings | Progress | EpochLine, key: str = "") -> Entry:
    """Write one of these as an entry; of measuring only what was asked for, as states of before know nothing of it."""
    return Entry(kind, key, write_json(thing).encode())


def document_of(shape: type[D], body: bytes) -> D:
    """Read one of these back.

    Raises
    ------
    StateError
        Where it is not what this version writes.
    """
    try:
        return from_json(shape, body)
    except ValueError:
        raise StateError("the state was written by another version; use that one") from None
