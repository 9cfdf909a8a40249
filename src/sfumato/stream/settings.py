"""Settings and progress of a stream, the lines of its ledger, and its status: counts, never a cell.

Entries of a stream's state: kind, key and bytes under one digest, which every commit carries on.

The digest is the sum of the entries' own SHA-256, so a commit costs what it changes and a reader checks the whole: an
entry that is lost, altered or of another moment shows. It detects damage; it is no protection from a forger.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

from sfumato.core.documents import UNLESS_DEFAULT, from_json, parse_json, write_json
from sfumato.core.errors import BadInput, OptionError

__all__ = [
    "APPLICATION_ID",
    "FORMAT",
    "HEAD",
    "BatchReceipt",
    "ClusterHandover",
    "EpochLine",
    "Head",
    "IngestSummary",
    "Progress",
    "StateEntry",
    "StateError",
    "Status",
    "StreamSettings",
    "damaged",
    "document_of",
    "entry_digest",
    "entry_of",
    "whole_number",
]

FORMAT = 1
"""Version of the form; a state of another one is refused."""

APPLICATION_ID = 0x53664D74
"""The mark of an SQLite file that is a stream's state."""

HEAD = ("head", "")
"""Kind and key of the entry that holds the digest of all others."""

_MODULUS = 1 << 256
_WHOLE = re.compile(r"-?[0-9]{1,18}")


class StateError(BadInput):
    """The state of a stream cannot be used."""


def damaged(name: str, why: str) -> StateError:
    """Error of a state that is not whole."""
    return StateError(f"the state {name!r} is damaged or only half copied ({why}); restore a complete copy of it")


def whole_number(written: str | bytes) -> int:
    """Number that a key or an entry tells: a count, or a place in an order; raises StateError if it is none.

    Examples
    --------
    >>> whole_number("00000012"), whole_number(b"-1")
    (12, -1)
    """
    text = written.decode("ascii", "replace") if isinstance(written, bytes) else written
    if _WHOLE.fullmatch(text) is None:
        raise StateError("the state has something else where a number is expected; restore a complete copy of it")
    return int(text)


class StateEntry(NamedTuple):
    """One thing that is remembered."""

    kind: str
    key: str
    body: bytes


def entry_digest(entry: StateEntry) -> int:
    """Digest of an entry, for adding up."""
    head = f"{len(entry.kind)} {entry.kind} {len(entry.key)} {entry.key} ".encode()
    return int.from_bytes(hashlib.sha256(head + entry.body).digest(), "big")


@dataclass(frozen=True)
class Head:
    """The number of the last commit, the digest of all entries, and the chain of all digests before."""

    number: int
    digest: int
    chain: str

    def following(self, change: int) -> Head:
        """Head of the next commit, whose entries' digests add up to so much more."""
        digest = (self.digest + change) % _MODULUS
        chain = hashlib.sha256(f"{self.chain} {self.number + 1} {digest:064x}".encode()).hexdigest()
        return Head(self.number + 1, digest, chain)

    def to_entry(self) -> StateEntry:
        """Write the head, with a check of its own."""
        text = f"{FORMAT} {self.number} {self.digest:064x} {self.chain}"
        document = {"format": FORMAT, "number": self.number, "digest": f"{self.digest:064x}", "chain": self.chain}
        document["check"] = hashlib.sha256(text.encode()).hexdigest()
        return StateEntry(*HEAD, write_json(document).encode())

    @classmethod
    def from_body(cls, body: bytes, name: str) -> Head:
        """Read a head; raises StateError if it is of another format, or not what was written."""
        try:
            document = parse_json(body)
            if document["format"] != FORMAT:
                raise StateError(f"the state {name!r} is not of format {FORMAT}; use the version that wrote it")
            head = cls(int(document["number"]), int(document["digest"], 16), str(document["chain"]))
        except StateError:
            raise
        except (KeyError, TypeError, ValueError):
            raise damaged(name, "its head cannot be read") from None
        if head.to_entry().body != body:
            raise damaged(name, "its head was altered")
        return head


MODES = ("memory", "encrypted")
"""How waiting records are kept: in memory only, or in the state under a key."""


_MOST_ROWS = 1_000  # of a person


@dataclass(frozen=True)
class StreamSettings:
    """What does not change while a stream lives.

    ``pending_key`` is how the state tells a wrong key: an encrypted nothing, None if no key is used.
    ``decimals`` are those that published numbers of a column are written with. ``measure_rows`` are kept at most to
    measure by, of those taken in and again of those who are not, who are ``measure_share`` of all; 0 if none are.
    ``measure_key`` is how the state tells a wrong key of theirs. Of each ``person``, a column, ``person_rows`` are
    taken in at most, and all levels, k too, are as many times what was asked; ``person_key`` tells a wrong
    key. ``rare`` is what becomes of categories held by too few persons. ``tails`` says whether values beyond those
    of k persons are coded to cut-offs. ``marks`` are the decimal marks of columns of CSV whose numbers are not written
    plainly. ``frame`` is the kind of frame that the first records came in, and that published tables come back in.
    Groups never hold records of two categories of ``strata``, a column.
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
    decimals: dict[str, int] = dataclasses.field(hash=False)
    measure_rows: int
    measure_share: float
    measure_key: str | None
    person: str | None
    person_rows: int
    person_key: str | None
    rare: str
    tails: Literal["code", "keep"]
    marks: dict[str, str] = dataclasses.field(hash=False)
    frame: Literal["arrow", "pandas", "polars"] = dataclasses.field(default="arrow", metadata=UNLESS_DEFAULT)
    strata: str | None = dataclasses.field(default=None, metadata=UNLESS_DEFAULT)

    def __post_init__(self) -> None:
        if self.pending not in MODES:
            raise OptionError(f"there is no way {self.pending!r} to keep waiting records; choose {' or '.join(MODES)}")
        if self.batch_rows < 1:
            raise OptionError("a batch has at least 1 row; raise --batch-rows")
        if (self.measure_rows > 0) != (self.measure_key is not None) or self.measure_rows < 0:
            raise OptionError(
                "rows are kept for measuring under a key; give --measure-rows with --measure-key, or none"
            )
        if (self.person is None) != (self.person_key is None) or not 1 <= self.person_rows <= _MOST_ROWS:
            raise OptionError(
                f"persons are counted under a key, 1 to {_MOST_ROWS} rows of each; give --person with --person-key"
            )
        if self.person is not None and self.measure_rows:
            raise OptionError("rows are kept for measuring where each is a person; drop --measure-rows or --person")
        if not 0.0 <= self.measure_share <= 0.5:
            raise OptionError("the share of rows that is not taken in lies between 0 and 0.5; try 0.1")


@dataclass(frozen=True)
class Progress:
    """How far a stream has come.

    ``rows`` counts all rows that were given, ``quarantined`` those of them that were excluded; ``late`` says that
    records joined while others, which wait, were not at hand; ``delivered`` that the last epoch's folder was written.
    ``empty`` are columns that are dropped and have had no value in any row.
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
    empty: tuple[str, ...] = dataclasses.field(default=(), metadata=UNLESS_DEFAULT)


@dataclass(frozen=True)
class ClusterHandover:
    """A cluster continues a stream in limited partitions; the folder that it publishes in holds the mark."""

    cells: int
    mark: str


@dataclass(frozen=True)
class EpochLine:
    """One line of the ledger: families that left in a new state, families that repeat their rows, rows of all.

    ``fresh`` is the least number of fresh records behind a family that left, 0 if none did.
    """

    epoch: int
    renewed: int
    repeated: int
    rows: int
    fresh: int


D = TypeVar("D", StreamSettings, Progress, EpochLine, ClusterHandover)


def entry_of(kind: str, thing: StreamSettings | Progress | EpochLine | ClusterHandover, key: str = "") -> StateEntry:
    """Write one of these as an entry."""
    return StateEntry(kind, key, write_json(thing).encode())


def document_of(shape: type[D], body: bytes) -> D:
    """Read one of these back; raises StateError if it is not what this version writes."""
    try:
        return from_json(shape, body)
    except ValueError:
        raise StateError("the state was written by another version; use that one") from None


@dataclass(frozen=True)
class BatchReceipt:
    """One batch that is on disk: counts only.

    ``repeated`` rows were known already, from this batch or a shorter one that it goes on from. ``outside`` rows were
    set aside for measuring, less those who were taken in for them.
    """

    batch: str
    rows: int
    repeated: int
    absorbed: int
    pending: int
    quarantined: int
    outside: int = 0


@dataclass(frozen=True)
class IngestSummary:
    """What came of some batches: new ones, known ones, and the rows of the new ones."""

    batches: int
    known: int
    rows: int
    repeated: int
    absorbed: int
    pending: int
    quarantined: int
    outside: int = 0


@dataclass(frozen=True)
class Status:
    """How a stream stands: counts only.

    ``pending`` records wait for a group large enough; of ``awaiting_replay`` of them the state knows the batch and the
    row only, and they wait until that batch is given again. ``outside`` came and were never taken in, for measuring;
    ``rows_kept`` of those taken in are kept encrypted for it. With ``rows_forgotten`` both were deleted.
    """

    records: int
    groups: int
    pseudo_groups: int
    splits: int
    pending: int
    awaiting_replay: int
    quarantined: int
    quarantine: dict[str, int]
    rows: int
    batches: int
    last_batch: str | None
    epoch: int
    delivered: bool
    families: int
    families_due: int
    ledger: tuple[EpochLine, ...]
    k: int
    split: str
    randomness: str
    pending_mode: str
    batch_rows: int
    digest: str
    outside: int
    rows_kept: int
    rows_forgotten: bool

    def lines(self) -> list[str]:
        """The same in sentences."""
        lines = [
            f"{self.records} records in {self.groups} groups ({self.pseudo_groups} from splits). Pending: "
            f"{self.pending}; excluded: {self.quarantined}; batches: {self.batches}; epoch: {self.epoch}."
        ]
        if self.awaiting_replay:
            lines.append(f"{self.awaiting_replay} pending records were in memory only: ingest their batches again.")
        if self.rows_forgotten:
            lines.append(f"Rows for measuring were deleted; {self.outside} records remain held out.")
        elif self.rows_kept or self.outside:
            lines.append(f"Stored encrypted for measuring: {self.rows_kept} rows, and {self.outside} held-out ones.")
        lines += [f"  excluded for column {name!r}: {count}" for name, count in self.quarantine.items()]
        if not self.delivered:
            lines.append(f"Epoch {self.epoch} was started but its folder was not written; publish again to write it.")
        if self.randomness != "release":
            lines.append("DRY RUN: made with a seed, not for release.")
        return lines
