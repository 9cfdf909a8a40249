"""A stream whose groups are kept cell by cell: what a cell's records do to its groups [AY05, sec. 3].

Nothing here knows a cluster: `engines.spark.stream` keeps the bytes of each cell in Spark's state store and calls
`take_in`, which is the maintenance of every stream as a function from one state and some records to the next.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.documents import Unparsable, from_json, write_json
from sfumato.core.records import BlockKind
from sfumato.engines.cells.cuts import Cuts, Tree, cut_tree, leaf_in, merged
from sfumato.engines.stream.epochs import Leaving, leaving
from sfumato.engines.stream.groups import entries_of_rows, entries_of_tally, rows_of_entries, tally_of_bytes
from sfumato.engines.stream.pending import Vault
from sfumato.engines.stream.rare import HeldValues
from sfumato.engines.stream.settings import StateError, StreamSettings
from sfumato.mechanisms.condense.maintainer import GroupRows, Maintainer, MaintainerState
from sfumato.mechanisms.condense.slots import CategoryTally
from sfumato.tables.codec import Codec

__all__ = ["CENSUS", "CellChange", "StreamCells", "cells_of_groups", "in_one_order", "read_change", "take_in"]

_FIELDS = tuple(field.name for field in fields(GroupRows))

CENSUS = ("records", "pending", "groups", "pseudo", "splits")
"""What is counted of a cell: records in groups, those that wait, groups, those cut out of statistics, and splits."""

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

    def cell(self, values: Matrix) -> NDArray[np.int64]:
        """Cell of each record, by its coordinates."""
        leaf = leaf_in(self.tree, values, np.arange(len(values)))
        return np.asarray(np.array(self.cell_of, dtype=np.int64)[leaf])

    def __repr__(self) -> str:
        return f"StreamCells({len(self.first)})"


def cells_of_groups(maintainer: Maintainer, settings: StreamSettings, codec: Codec, most: int) -> StreamCells:
    """Cut the groups of a stream into so many cells at most, by their means.

    A cell without a group as large as the highest level so far is joined with its neighbour, so that a record of that
    level finds room in each.
    """
    rows = maintainer.rows()
    tree, leaves = cut_tree(rows.mean, max(1.0, len(rows.ids) / most))
    leaf = leaf_in(tree, rows.mean, np.arange(len(rows.ids)))
    sizes = np.zeros(leaves, dtype=np.int64)
    np.maximum.at(sizes, leaf, rows.count)
    groups = np.bincount(leaf, minlength=leaves).tolist()
    cuts = Cuts((), pa.array([""]), (tree,), leaves)
    cells = merged(cuts, groups, sizes.tolist(), int(rows.level_max.max()))
    cell_of = np.zeros(leaves, dtype=np.int64)
    for number, some in enumerate(cells):
        cell_of[list(some)] = number
    first = []
    for number in range(len(cells)):
        ids = rows.ids[cell_of[leaf] == number]
        tallies = [entry.body for entry in entries_of_tally(maintainer.tally, ids)]
        head = _Head(maintainer.state().next_id, 0, len(ids), waiting=False)
        first.append(_packed(_json(head), _bodies(maintainer.rows(ids)), *tallies))
    return StreamCells(settings, codec, tree, tuple(cell_of.tolist()), tuple(first))


@dataclass(frozen=True)
class _Head:
    next_id: int
    splits: int
    groups: int
    waiting: bool


@dataclass(frozen=True)
class _Counts:
    """What changed in a cell, but for groups, which stand beside it."""

    records: int
    pending: int
    groups: int
    pseudo: int
    splits: int
    families: tuple[int, ...]
    staying: tuple[int, ...]
    fresh: int
    leaving: int
    held: dict[str, list[int]]


@dataclass(frozen=True, eq=False, repr=False)
class CellChange:
    """What some records did to a cell: counts, the groups that leave now, and families whose earlier rows stay.

    ``held`` are the records among them that lack a cell of a column and that hold each of its categories.
    """

    records: int
    pending: int
    groups: int
    pseudo: int
    splits: int
    left: Leaving
    staying: NDArray[np.int64]
    held: dict[str, NDArray[np.int64]]


def take_in(
    body: bytes | None, cells: StreamCells, cell: int, values: Matrix, levels: NDArray[np.int64], vault: Vault | None
) -> tuple[bytes, bytes]:
    """Let records join the groups of a cell, and mark the families that leave: its new state, and what changed.

    Parameters
    ----------
    body : bytes or None
        State of the cell; None where nothing has come to it yet.
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
    after, held = _census(maintainer), HeldValues(cells.codec)
    held.add(values)
    gained: dict[str, int] = dict(zip(CENSUS, (after - before).tolist(), strict=True))
    counts = _Counts(
        **gained,
        families=tuple(left.families.tolist()),
        staying=tuple(staying.tolist()),
        fresh=left.fresh,
        leaving=len(left.rows.ids),
        held={name: each.tolist() for name, each in held.counts.items()},
    )
    tallies = [entry.body for entry in entries_of_tally(maintainer.tally, left.rows.ids)]
    return _to_bytes(maintainer, cell, vault), _packed(_json(counts), _bodies(left.rows), *tallies)


def read_change(body: bytes, codec: Codec) -> CellChange:
    """What `take_in` told of a cell."""
    head, groups, *tallies = _unpacked(body)
    counts, d = _read(_Counts, head), codec.layout[-1].stop
    rows = rows_of_entries(_cut(groups, counts.leaving), d)
    blocks = [block for block in codec.layout if block.kind is BlockKind.CODE]
    sizes = rows.count.tolist()
    held = (
        tuple(tally_of_bytes(each, blocks, size) for each, size in zip(tallies, sizes, strict=True)) if blocks else None
    )
    families = np.array(counts.families, dtype=np.int64)
    return CellChange(
        **{name: getattr(counts, name) for name in CENSUS},
        left=Leaving(rows, held, families, counts.fresh),
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
    head = _Head(state.next_id, state.splits, len(state.ids), waiting)
    return _packed(_json(head), _bodies(maintainer.rows()), *parts)


def _from_bytes(body: bytes, cells: StreamCells, cell: int, vault: Vault | None) -> Maintainer:
    told, groups, *parts = _unpacked(body)
    head, settings, layout = _read(_Head, told), cells.settings, cells.codec.layout
    pool = np.empty((0, 1 + settings.d))
    if head.waiting:
        if vault is None:
            raise StateError("records that wait are encrypted in this stream; give the key with pending_key")
        pool = np.frombuffer(vault.unlock(f"cell {cell}", parts.pop()), dtype="<f8").reshape(-1, 1 + settings.d)
    rows = rows_of_entries(_cut(groups, head.groups), settings.d)
    state = MaintainerState(
        **{name: getattr(rows, name) for name in _FIELDS},
        d=settings.d,
        k=settings.k,
        split=settings.split,
        pending_limit=0 if vault is None else settings.pending_limit,
        track=False,
        next_id=head.next_id,
        splits=head.splits,
        pending_values=pool[:, 1:].astype(np.float64),
        pending_levels=pool[:, 0].astype(np.int64),
    )
    blocks, tally = [block for block in layout if block.kind is BlockKind.CODE], None
    if blocks:
        sizes = zip(rows.ids.tolist(), rows.count.tolist(), parts, strict=True)
        tally = CategoryTally.of_groups(layout, ((group, tally_of_bytes(each, blocks, n)) for group, n, each in sizes))
    return Maintainer.from_state(state, tally)


def _bodies(rows: GroupRows) -> bytes:
    return b"".join(entry.body for entry in entries_of_rows(rows))


def _cut(body: bytes, parts: int) -> list[bytes]:
    size = len(body) // parts if parts else 0
    return [body[place * size : (place + 1) * size] for place in range(parts)]


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
