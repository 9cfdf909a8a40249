"""A stream whose groups are kept cell by cell: what a cell's records do to them, batch after batch [AY05, sec. 3].

Nothing here knows a cluster: `streams.spark` keeps the bytes of each cell in Spark's state store and calls
`take_in`, which is the maintenance of every stream as a function from one state and some records to the next. What each
batch adds to the one before is carried on, and the epoch that it is.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.documents import Unparsable, from_json, write_json
from sfumato.core.randomness import Randomness
from sfumato.core.records import BlockKind
from sfumato.core.replacing import reason
from sfumato.engines.partitions import PartitionTree, Tree, grow_tree, leaf_in, merge_leaves
from sfumato.methods.condense.maintainer import GroupRows, Maintainer
from sfumato.methods.condense.slots import CategoryTally
from sfumato.stream.entries import bytes_of_rows, entries_of_tally, rows_of_bytes, tally_of_bytes, with_pending
from sfumato.stream.epochs import DueGroups, Publication, leaving, published
from sfumato.stream.measuring import KeptSample
from sfumato.stream.pending import Vault
from sfumato.stream.rare import HeldValues, StreamTails
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import EpochLine, StateError, StreamSettings
from sfumato.tables.codec import Codec
from sfumato.tables.facts import RareValues

__all__ = [
    "CellChange",
    "KeptOut",
    "StreamCells",
    "StreamTotals",
    "StreamUpdate",
    "carried_in",
    "cells_of_groups",
    "first_totals",
    "following",
    "in_one_order",
    "read_change",
    "take_in",
]

CENSUS = ("records", "pending", "groups", "pseudo", "splits")
"""What is counted of a cell: records in groups, pending records, groups, those from splits, and splits."""

Matrix = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class StreamCells:
    """Cells of a stream: where the groups that it was begun with are cut, and what each cell begins with."""

    settings: StreamSettings
    codec: Codec
    tree: Tree
    cell_of: tuple[int, ...]
    first: tuple[bytes, ...]
    tails: StreamTails

    def cell(self, values: Matrix) -> NDArray[np.int64]:
        """Cell of each record, by its coordinates."""
        leaf = leaf_in(self.tree, values, np.arange(len(values)))
        return np.asarray(np.array(self.cell_of, dtype=np.int64)[leaf])

    def __repr__(self) -> str:
        return f"StreamCells({len(self.first)})"


def cells_of_groups(session: StreamSession, most: int) -> StreamCells:
    """Cut the groups of a stream into a limited number of partitions, by their means.

    A cell without a group as large as the highest level so far is joined with its neighbour, so that a record of that
    level finds room in each.
    """
    maintainer, settings, codec = session.maintainer, session.settings, session.codec
    rows = maintainer.rows()
    tree, leaves = grow_tree(rows.mean, max(1.0, len(rows.ids) / most))
    leaf = leaf_in(tree, rows.mean, np.arange(len(rows.ids)))
    sizes = np.zeros(leaves, dtype=np.int64)
    np.maximum.at(sizes, leaf, rows.count)
    groups = np.bincount(leaf, minlength=leaves).tolist()
    cuts = PartitionTree((), pa.array([""]), (tree,), leaves)
    cells = merge_leaves(cuts, groups, sizes.tolist(), int(rows.level_max.max()))
    cell_of = np.zeros(leaves, dtype=np.int64)
    for number, some in enumerate(cells):
        cell_of[list(some)] = number
    first = []
    for number in range(len(cells)):
        ids = rows.ids[cell_of[leaf] == number]
        tallies = [entry.body for entry in entries_of_tally(maintainer.tally, ids)]
        head = _Head(maintainer.state().next_id, 0, waiting=False)
        first.append(_packed(_json(head), bytes_of_rows(maintainer.rows(ids)), *tallies))
    return StreamCells(settings, codec, tree, tuple(cell_of.tolist()), tuple(first), session.tails)


@dataclass(frozen=True)
class _Head:
    next_id: int
    splits: int
    waiting: bool


@dataclass(frozen=True)
class _Counts:
    """What changed in a cell, but for groups, which stand beside it."""

    gained: tuple[int, ...]
    families: tuple[int, ...]
    staying: tuple[int, ...]
    fresh: int
    held: dict[str, list[int]]


@dataclass(frozen=True, eq=False, repr=False)
class CellChange:
    """What some records did to a cell: counts, the groups that leave now, and families whose earlier rows stay.

    ``gained`` is what each number of `CENSUS` grew by. ``held`` are the records among them that lack a cell of a column
    and that hold each of its categories.
    """

    gained: NDArray[np.int64]
    left: DueGroups
    staying: NDArray[np.int64]
    held: dict[str, NDArray[np.int64]]


def take_in(
    body: bytes | None, cells: StreamCells, cell: int, values: Matrix, levels: NDArray[np.int64], vault: Vault | None
) -> tuple[bytes, bytes]:
    """Let records join the groups of a cell, and mark the families that leave: its new state, and what changed.

    Parameters
    ----------
    body : bytes or None
        State of the cell; None if nothing has come to it yet.
    values, levels
        Of records, in the order in which they join; levels are effective ones.
    vault : Vault or None
        Key of records that wait, which lie in the state encrypted; without it none may wait.
    """
    maintainer = _from_bytes(cells.first[cell] if body is None else body, cells, cell, vault)
    before = _census(maintainer)
    maintainer.absorb(values, levels)
    marks = maintainer.publish_marks()
    left, staying = leaving(maintainer, marks.due, marks), marks.family[~marks.due]
    maintainer.mark_published(left.families)
    held = HeldValues(cells.codec)
    held.add(values)
    counts = _Counts(
        gained=tuple((_census(maintainer) - before).tolist()),
        families=tuple(left.families.tolist()),
        staying=tuple(staying.tolist()),
        fresh=left.fresh,
        held={name: each.tolist() for name, each in held.counts.items()},
    )
    tallies = [entry.body for entry in entries_of_tally(maintainer.tally, left.rows.ids)]
    return _to_bytes(maintainer, cell, vault), _packed(_json(counts), bytes_of_rows(left.rows), *tallies)


def read_change(body: bytes, codec: Codec) -> CellChange:
    """What `take_in` says of a cell."""
    head, groups, *tallies = _unpacked(body)
    counts, d = _read(_Counts, head), codec.layout[-1].stop
    rows = rows_of_bytes(groups, d)
    blocks = [block for block in codec.layout if block.kind is BlockKind.CODE]
    sizes = rows.count.tolist()
    held = (
        tuple(tally_of_bytes(each, blocks, size) for each, size in zip(tallies, sizes, strict=True)) if blocks else None
    )
    families = np.array(counts.families, dtype=np.int64)
    return CellChange(
        gained=np.array(counts.gained, dtype=np.int64),
        left=DueGroups(rows, held, families, counts.fresh),
        staying=np.array(counts.staying, dtype=np.int64),
        held={name: np.array(each, dtype=np.int64) for name, each in counts.held.items()},
    )


def in_one_order(records: Sequence[bytes], settings: StreamSettings) -> list[bytes]:
    """Records in an order that hangs on nothing but what they are, and is no order of theirs.

    A batch that is taken in again after a crash then does the same to the groups.
    """
    key = settings.state_id.encode()[:64]
    return sorted(records, key=lambda each: (hashlib.blake2b(each, key=key, digest_size=16).digest(), each))


def _census(maintainer: Maintainer) -> NDArray[np.int64]:
    pseudo = int(maintainer.pseudo.sum())
    return np.array([maintainer.records, maintainer.pending, len(maintainer.ids), pseudo, maintainer.splits])


def _to_bytes(maintainer: Maintainer, cell: int, vault: Vault | None) -> bytes:
    """State of a cell; records that wait are encrypted."""
    state = maintainer.state()
    waiting = len(state.pending_levels) > 0
    parts = [entry.body for entry in entries_of_tally(maintainer.tally, maintainer.ids)]
    if waiting:
        assert vault is not None  # else the pool has no room
        pool = np.column_stack([state.pending_levels, state.pending_values]).astype("<f8")
        parts.append(vault.lock(f"cell {cell}", pool.tobytes()))
    head = _Head(state.next_id, state.splits, waiting)
    return _packed(_json(head), bytes_of_rows(maintainer.rows()), *parts)


def _from_bytes(body: bytes, cells: StreamCells, cell: int, vault: Vault | None) -> Maintainer:
    head_bytes, groups, *parts = _unpacked(body)
    head, settings, layout = _read(_Head, head_bytes), cells.settings, cells.codec.layout
    pool = np.empty((0, 1 + settings.d))
    if head.waiting:
        if vault is None:
            raise StateError("records that wait are encrypted in this stream; give the key with pending_key")
        pool = np.frombuffer(vault.unlock(f"cell {cell}", parts.pop()), dtype="<f8").reshape(-1, 1 + settings.d)
    rows, levels = rows_of_bytes(groups, settings.d), pool[:, 0].astype(np.int64)
    state = with_pending(rows, settings, head.next_id, head.splits, pool[:, 1:].astype(np.float64), levels)
    state = dataclasses.replace(state, track=False, pending_limit=0 if vault is None else settings.pending_limit)
    blocks, tally = [block for block in layout if block.kind is BlockKind.CODE], None
    if blocks:
        sizes = zip(rows.ids.tolist(), rows.count.tolist(), parts, strict=True)
        tally = CategoryTally.of_groups(layout, ((group, tally_of_bytes(each, blocks, n)) for group, n, each in sizes))
    return Maintainer.from_state(state, tally)


def _json(thing: _Head | _Counts) -> bytes:
    return write_json(thing, "canonical").encode()


def _read(shape: type[T], body: bytes) -> T:
    try:
        return from_json(shape, body)
    except Unparsable:
        raise StateError("a cell of the stream cannot be read; use the version that wrote its checkpoint") from None


def _packed(*parts: bytes) -> bytes:
    return b"".join(struct.pack("<q", len(part)) + part for part in parts)


def _unpacked(body: bytes) -> list[bytes]:
    parts, place = [], 0
    while place < len(body):
        (size,) = struct.unpack_from("<q", body, place)
        parts.append(body[place + 8 : place + 8 + size])
        place += 8 + size
    return parts


_CELL_BITS = 40  # of the number of a family, below that of its cell
_TOTALS, _FAMILIES, _PUBLISHED = "totals.json", "families.json", "published"


@dataclass(frozen=True)
class KeptOut:
    """Rows of a batch, and those of them that were excluded, by column; which dropped columns had no value."""

    rows: int
    out: int
    columns: dict[str, int]
    empty: tuple[str, ...] | None = None


@dataclass(frozen=True)
class StreamTotals:
    """How a stream stands after a batch: counts only, all columns of categories with those who hold each.

    ``query`` is Spark's own number of the run, which stays as long as its checkpoint does.
    """

    query: str
    batch: int
    rows: int
    quarantined: int
    quarantine: dict[str, int]
    records: int
    pending: int
    groups: int
    pseudo: int
    splits: int
    empty: tuple[str, ...]
    held: dict[str, list[int]]
    ledger: tuple[EpochLine, ...] = ()
    rare: RareValues | None = None


@dataclass(frozen=True, eq=False, repr=False)
class StreamUpdate:
    """A stream after a batch, as `run_epoch` publishes it; ``renewed`` says that something leaves."""

    settings: StreamSettings
    codec: Codec
    tails: StreamTails
    totals: StreamTotals
    publication: Publication | None = None
    before: Publication | None = None
    renewed: bool = False

    @property
    def kept(self) -> None:
        """No rows are kept for measuring."""

    @property
    def rare(self) -> RareValues | None:
        """What became of rare categories in the epoch."""
        return self.totals.rare

    @property
    def empty(self) -> tuple[str, ...]:
        """Columns that are dropped and have had no value in any row."""
        return self.totals.empty

    @property
    def taken(self) -> int:
        """Records that were taken in, those that wait included."""
        return self.totals.records + self.totals.pending

    def left(self) -> Publication | None:
        """What has left last."""
        return self.before

    def publish(self) -> tuple[Publication, tuple[EpochLine, ...]]:
        """The rows published now, and the line of each epoch."""
        assert self.publication is not None  # asked where something leaves
        return self.publication, self.totals.ledger

    def measured_by(self) -> KeptSample | None:
        """Nothing: raw rows are nowhere kept."""
        return None

    def write(self, folder: Path) -> None:
        """Write what the next batch goes on from into a new folder."""
        folder.mkdir(mode=0o700)
        files = {_TOTALS: write_json(self.totals).encode()}
        if self.publication is not None:
            for entry in self.publication.to_entries():
                files[_FAMILIES if entry.kind == "families" else f"{_PUBLISHED}-{entry.key}.arrow"] = entry.body
        for name, body in files.items():
            with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(body)


def first_totals(session: StreamSession) -> StreamTotals:
    """How a stream stands before its first batch on a cluster."""
    status = session.status()
    return StreamTotals(
        "", -1, status.rows, status.quarantined, status.quarantine, status.records, status.pending, status.groups,
        status.pseudo_groups, status.splits, session.empty,
        {name: counts.tolist() for name, counts in session.held.counts.items()},
    )  # fmt: skip


def carried_in(folder: Path, first: StreamUpdate) -> StreamUpdate:
    """What a batch left for the next."""
    try:
        totals = from_json(StreamTotals, _bytes_in(folder / _TOTALS))
    except Unparsable:
        raise StateError(f"{str(folder)!r} was written by another version; use that one") from None
    if not (folder / _FAMILIES).exists():
        return dataclasses.replace(first, totals=totals)
    rows = {each.stem: _bytes_in(each) for each in folder.glob(f"{_PUBLISHED}-*.arrow")}
    left = Publication.from_entries(_bytes_in(folder / _FAMILIES), rows)
    return dataclasses.replace(first, totals=totals, publication=left)


def _bytes_in(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StateError(
            f"the file {str(path)!r} of a batch cannot be read ({reason(error)}); restore a complete copy of its folder"
        ) from None


def following(
    last: StreamUpdate, changes: Mapping[int, CellChange], out: Iterable[KeptOut], *, batch: int, query: str
) -> StreamUpdate:
    """The stream after one more batch: counts added up, and rows drawn for the families that leave."""
    totals = dataclasses.replace(_added(last.totals, changes.values(), out), batch=batch, query=query)
    if not any(len(change.left.families) for change in changes.values()):
        return StreamUpdate(last.settings, last.codec, last.tails, totals, last.publication)
    left = _joined([(cell, changes[cell].left) for cell in sorted(changes)])
    epoch, seed = len(totals.ledger) + 1, last.settings.seed
    held = {name: np.array(counts, dtype=np.int64) for name, counts in totals.held.items()}
    chance = Randomness(seed).generator(f"rare values of epoch {epoch}")
    hiding = HeldValues(last.codec, held).hiding(last.settings, chance)
    staying = None if last.publication is None else last.publication.of_families(_staying(last.publication, changes))
    publication, line = published(
        left,
        staying,
        last.codec,
        epoch,
        Randomness(seed).generator(f"epoch {epoch}"),
        lambda table: hiding.of(table, chance),
    )
    totals = dataclasses.replace(totals, ledger=(*totals.ledger, line), rare=hiding.fact)
    return StreamUpdate(last.settings, last.codec, last.tails, totals, publication, last.publication, renewed=True)


def _added(totals: StreamTotals, changes: Iterable[CellChange], out: Iterable[KeptOut]) -> StreamTotals:
    census = np.array([getattr(totals, name) for name in CENSUS], dtype=np.int64)
    held = {name: np.array(counts, dtype=np.int64) for name, counts in totals.held.items()}
    for change in changes:
        census += change.gained
        for name, counts in change.held.items():
            held[name] = held[name] + counts
    rows, quarantined, quarantine, empty = totals.rows, totals.quarantined, Counter(totals.quarantine), totals.empty
    for each in out:
        rows, quarantined = rows + each.rows, quarantined + each.out
        quarantine.update(each.columns)
        if each.empty is not None:
            empty = tuple(name for name in empty if name in each.empty)
    return dataclasses.replace(
        totals,
        **dict(zip(CENSUS, census.tolist(), strict=True)),
        rows=rows,
        quarantined=quarantined,
        quarantine=dict(quarantine),
        empty=empty,
        held={name: each.tolist() for name, each in held.items()},
    )


def _staying(earlier: Publication, changes: Mapping[int, CellChange]) -> NDArray[np.int64]:
    """Families whose earlier rows are repeated: all of cells that nothing came to, and those that are not due."""
    elsewhere = ~np.isin(earlier.family >> _CELL_BITS, list(changes))
    parts = [_whole(cell, change.staying) for cell, change in changes.items()]
    return np.concatenate([earlier.family[elsewhere], *parts])


def _whole(cell: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    return (np.int64(cell) << _CELL_BITS) + numbers


def _joined(parts: Sequence[tuple[int, DueGroups]]) -> DueGroups:
    """Groups of all cells that leave, under numbers that are of one cell each."""
    rows = {
        field.name: np.concatenate([getattr(left.rows, field.name) for _, left in parts])
        for field in dataclasses.fields(GroupRows)
    }
    rows["ids"] = np.concatenate([_whole(cell, left.rows.ids) for cell, left in parts])
    families = np.concatenate([_whole(cell, left.families) for cell, left in parts])
    coded = all(left.held is not None for _, left in parts)
    held = tuple(each for _, left in parts for each in left.held or ()) if coded else None
    fresh = min((left.fresh for _, left in parts if len(left.families)), default=0)
    return DueGroups(GroupRows(**rows), held, families, fresh)
