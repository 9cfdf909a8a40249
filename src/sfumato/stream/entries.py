"""What a stream's state holds beside its settings: the batches it knows, its groups with their categories, families.

Batches have ids: the same rows at the same place of a source have the same id, so a replay is recognised.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.documents import from_json, write_json
from sfumato.core.errors import TableError
from sfumato.core.records import Block, BlockKind, Layout
from sfumato.methods.condense.maintainer import AbsorptionResult, GroupRows, Maintainer, MaintainerState
from sfumato.methods.condense.slots import MISSING, CategoryTally
from sfumato.stream.rare import strata_of
from sfumato.stream.settings import Progress, StateEntry, StateError, StreamSettings, entry_of, whole_number
from sfumato.stream.state import State
from sfumato.tables.cells import is_text, plain
from sfumato.tables.codec import Codec, codec_to_document

__all__ = [
    "GROUP",
    "LEFT",
    "TALLY",
    "UNKNOWN",
    "Batch",
    "KnownBatches",
    "absorb_traced",
    "batch_id",
    "bytes_of_rows",
    "create_state",
    "cut_batches",
    "empty_tally",
    "entries_of_rows",
    "entries_of_tally",
    "entry_of_left",
    "families_left",
    "place_of",
    "rows_of_bytes",
    "state_on_disk",
    "tally_of_bytes",
    "tally_on_disk",
    "with_pending",
]

Batch = tuple[str, pa.Table]
"""An id and the rows it stands for; the id never stands for other rows."""

_BATCH = "batch"


def batch_id(ordinal: int, table: pa.Table, *, source: str = "") -> str:
    """Id of a batch: the name of its source, its place there, and a digest of columns and cells.

    Chunks, dictionaries and the bytes under missing cells do not count, so the id does not depend on how the rows were
    read. Two sources with the same rows give the same ids unless they are named apart.

    Examples
    --------
    >>> batch_id(0, pa.table({"age": [30, 40]})) == batch_id(0, pa.table({"age": pa.chunked_array([[30], [40]])}))
    True
    >>> batch_id(0, pa.table({"age": [30]})) == batch_id(1, pa.table({"age": [30]}))
    False
    """
    digest = hashlib.sha256(f"{ordinal} {table.num_rows}".encode())
    for name, column in zip(table.column_names, table.columns, strict=True):
        array = plain(column)
        digest.update(f"\0{len(name)}\0{name}\0{array.type}\0".encode())
        try:
            for part in _parts(array):
                digest.update(part)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise TableError(
                f"column {name!r} holds cells that are no numbers, dates or texts; leave it out, or convert it first"
            ) from None
    return f"{source}:{ordinal}-{digest.hexdigest()[:40]}" if source else f"{ordinal}-{digest.hexdigest()[:40]}"


def place_of(identity: str) -> tuple[str, int] | None:
    """Source, and the place in it, that an id of `batch_id` tells, None of other ids.

    Examples
    --------
    >>> place_of(batch_id(3, pa.table({"age": [30]}), source="north")), place_of("kafka 17")
    (('north', 3), None)
    """
    source, _, rest = identity.rpartition(":")
    found = re.fullmatch(r"(\d{1,18})-[0-9a-f]{40}", rest, re.ASCII)
    return None if found is None else (source, int(found[1]))


def cut_batches(tables: Iterable[pa.Table | pa.RecordBatch], rows: int, *, source: str = "") -> Iterator[Batch]:
    """Cut the rows of a source into batches of equal size and give each its id; the last may be shorter.

    Parameters
    ----------
    tables : iterable of pyarrow.Table or pyarrow.RecordBatch
        In the order of the source, of any lengths.
    source : str
        Goes into the ids, to tell sources apart that may hold the same rows.
    """
    waiting: list[pa.Table] = []
    held, ordinal = 0, 0
    for part in tables:
        table = pa.Table.from_batches([part]) if isinstance(part, pa.RecordBatch) else part
        waiting.append(table)
        held += table.num_rows
        while held >= rows:
            whole = pa.concat_tables(waiting)
            batch, rest = whole.slice(0, rows), whole.slice(rows)
            yield batch_id(ordinal, batch, source=source), batch
            waiting, held, ordinal = [rest], rest.num_rows, ordinal + 1
    if held:
        batch = pa.concat_tables(waiting)
        yield batch_id(ordinal, batch, source=source), batch


def _parts(array: pa.Array) -> Iterator[bytes | memoryview]:
    """Bytes that tell an array's cells, the missing ones marked and otherwise blank."""
    yield np.packbits(array.is_null().to_numpy(zero_copy_only=False)).tobytes()
    if pa.types.is_boolean(array.type) or pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        zero = pa.scalar(False if pa.types.is_boolean(array.type) else 0, array.type)
        yield np.ascontiguousarray(pc.fill_null(array, zero).to_numpy(zero_copy_only=False)).tobytes()
        return
    texts = array if is_text(array.type) else array.cast(pa.string())
    filled = pa.concat_arrays([pc.fill_null(texts.cast(pa.large_string()), "")])
    _, offsets, data = filled.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64, count=len(filled) + 1) if len(filled) else np.zeros(1, np.int64)
    yield np.diff(ends).tobytes()
    if data is not None and len(filled):
        yield memoryview(data)[int(ends[0]) : int(ends[-1])]


class KnownBatches:
    """Ids of batches with the number of rows of each."""

    def __init__(self, state: State) -> None:
        self._rows: dict[str, int] = {}
        self._lengths: dict[tuple[str, int] | None, set[int]] = {}
        for key in state.keys(_BATCH):
            self.add(key, whole_number(state.body(_BATCH, key)))

    def __contains__(self, identity: str) -> bool:
        return identity in self._rows

    @property
    def rows(self) -> Mapping[str, int]:
        """The ids, with the rows of each; grows as batches are counted."""
        return MappingProxyType(self._rows)

    @staticmethod
    def entry(identity: str, rows: int) -> StateEntry:
        """Write a batch down."""
        return StateEntry(_BATCH, identity, str(rows).encode())

    def add(self, identity: str, rows: int) -> None:
        """Know a batch from now on."""
        self._rows[identity] = rows
        self._lengths.setdefault(place_of(identity), set()).add(rows)

    def check(self, identity: str, table: pa.Table) -> None:
        """Refuse a known batch that is not as long as it was."""
        if self._rows[identity] != table.num_rows:
            raise StateError(
                f"a batch that had {self._rows[identity]} rows has {table.num_rows} now; give it its own id"
            )

    def beginnings(self, identity: str, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Find the known batches that this one goes on from, the shortest first.

        A file that grows ends in a short batch that is longer the next time: its first rows are known then.
        """
        place = place_of(identity)
        if place is None:
            return
        for rows in sorted(self._lengths.get(place, ())):
            if rows < table.num_rows:
                part = table.slice(0, rows)
                known = batch_id(place[1], part, source=place[0])
                if known in self._rows:
                    yield known, part


GROUP = "group"

_FIELDS = tuple(field.name for field in fields(GroupRows) if field.name != "stratum")  # which its mean tells
_WHOLE = ("ids", "count", "level_max", "family", "fresh", "fresh_level_max", "pseudo")

LEFT = "kept-left"
"""Kind of the entry that tells when families left last; written where rows are kept for measuring."""

UNKNOWN = -1
"""The family of a record of which nobody saw the group that it joined."""

_FEWEST = 16  # records that are absorbed at once while it is noted which family each joins


def _group_form(d: int) -> np.dtype[np.void]:
    """Form of a group on disk: 8 bytes a number, little end first, in the order of the fields."""
    shapes = {"mean": (d,), "triangle": (d * (d + 1) // 2,)}
    return np.dtype([(name, "<i8" if name in _WHOLE else "<f8", shapes.get(name, ())) for name in _FIELDS])


def bytes_of_rows(rows: GroupRows) -> bytes:
    """Write groups one behind the other."""
    records = np.empty(len(rows.ids), dtype=_group_form(rows.mean.shape[1]))
    for name in _FIELDS:
        records[name] = getattr(rows, name)
    return records.tobytes()


def entries_of_rows(rows: GroupRows) -> list[StateEntry]:
    """Write each group as one entry under its id."""
    body, size = bytes_of_rows(rows), _group_form(rows.mean.shape[1]).itemsize
    return [
        StateEntry(GROUP, str(identity), body[place * size : (place + 1) * size])
        for place, identity in enumerate(rows.ids.tolist())
    ]


def rows_of_bytes(
    body: bytes, d: int, stratum_of: Callable[[NDArray[np.float64]], NDArray[np.int64] | None] = lambda _: None
) -> GroupRows:
    """Read groups back in order of id; ``stratum_of`` gives their strata from their means.

    Raises
    ------
    StateError
        If the bytes are not those of groups of d coordinates.
    """
    form = _group_form(d)
    if len(body) % form.itemsize:
        raise StateError(f"the groups of the state are not of {d} coordinates; restore a complete copy of it")
    records = np.frombuffer(body, dtype=form)
    records = records[np.argsort(records["ids"], kind="stable")]
    found: dict[str, NDArray[Any]] = {name: np.ascontiguousarray(records[name]) for name in _FIELDS}
    found["pseudo"] = found["pseudo"].astype(np.bool_)
    stratum = stratum_of(found["mean"])
    return GroupRows(**found, stratum=np.zeros(len(records), dtype=np.int64) if stratum is None else stratum)


def state_on_disk(
    state: State,
    settings: StreamSettings,
    codec: Codec,
    progress: Progress,
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
) -> MaintainerState:
    """State of the groups on disk, with these records waiting."""
    stratum_of = partial(strata_of, codec=codec, strata=settings.strata)
    rows = rows_of_bytes(b"".join(state.read_large(GROUP).values()), settings.d, stratum_of)
    whole = with_pending(rows, settings, progress.next_id, progress.splits, values, levels)
    waiting = stratum_of(values)
    return whole if waiting is None else dataclasses.replace(whole, stratified=True, pending_strata=waiting)


def with_pending(
    rows: GroupRows,
    settings: StreamSettings,
    next_id: int,
    splits: int,
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
) -> MaintainerState:
    """State of these groups, not stratified, with these records waiting."""
    return MaintainerState(
        **vars(rows),
        d=settings.d,
        k=settings.k,
        split=settings.split,
        pending_limit=settings.pending_limit,
        track=True,
        next_id=next_id,
        splits=splits,
        stratified=False,
        pending_values=values,
        pending_levels=levels,
        pending_strata=np.zeros(len(levels), dtype=np.int64),
    )


def absorb_traced(
    maintainer: Maintainer,
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
    strata: NDArray[np.int64] | None = None,
) -> tuple[AbsorptionResult, NDArray[np.int64]]:
    """Let records join, and tell the family that each joined; -1 if that is not known.

    Groups that split within a call are gone when it ends, so few records are absorbed at once; how they are cut changes
    no group. Not known are pending ones, and those who joined a group that came and went within a call.
    """
    done = [maintainer.absorb(values[:0], levels[:0], None if strata is None else strata[:0])]
    families = [np.empty(0, dtype=np.int64)]
    first = 0
    while first < len(levels):
        last = first + max(_FEWEST, len(maintainer.ids))
        ids, family = maintainer.ids, maintainer.family
        part = None if strata is None else strata[first:last]
        done.append(maintainer.absorb(values[first:last], levels[first:last], part))
        ids, where = np.unique(np.concatenate([ids, maintainer.ids]), return_index=True)
        family = np.concatenate([family, maintainer.family])[where]
        joined = done[-1].where
        place = np.minimum(np.searchsorted(ids, joined), len(ids) - 1)
        families.append(np.where(ids[place] == joined, family[place], UNKNOWN))
        first = last
    whole = AbsorptionResult(
        sum(part.absorbed for part in done),
        sum(part.pending for part in done),
        sum(part.admitted for part in done),
        sum(part.splits for part in done),
        np.concatenate([part.where for part in done]),
    )
    return whole, np.concatenate(families)


def families_left(body: bytes) -> dict[int, int]:
    """Read of each family the epoch in which it left last."""
    try:
        return {int(family): epoch for family, epoch in from_json(dict[str, int], body).items()}
    except ValueError:
        raise StateError(
            "the state does not state when families were published; use the version that wrote it"
        ) from None


def entry_of_left(entries: dict[str, int]) -> StateEntry:
    """Write of each family the epoch in which it left last."""
    return StateEntry(LEFT, "", write_json(entries).encode())


def create_state(
    place: str | Path,
    settings: StreamSettings,
    codec: Codec,
    maintainer: Maintainer,
    first: Iterable[Batch],
    more: Iterable[StateEntry],
    *,
    quarantined: int,
    empty: tuple[str, ...],
) -> None:
    """Write a new state, whole or not at all; raises OptionError if there is a state already.

    Parameters
    ----------
    codec : Codec
        Fitted on the first records.
    maintainer : Maintainer
        Started with them.
    first : iterable of (str, pyarrow.Table)
        The same records as batches, so that they are known when they are given again.
    more : iterable of StateEntry
        What is counted and stored of them.
    quarantined : int
        Records that were excluded.
    empty : tuple of str
        Columns that are dropped and have no value in any of the first records.
    """
    known = {identity: table.num_rows for identity, table in first}
    progress = Progress(
        next_id=int(maintainer.ids[-1]) + 1,
        splits=maintainer.splits,
        batches=len(known),
        rows=sum(known.values()),
        quarantined=quarantined,
        last_batch=next(reversed(known), None),
        empty=empty,
    )
    State.create(
        place,
        [
            entry_of("settings", settings),
            entry_of("progress", progress),
            StateEntry("codec", "", write_json(codec_to_document(codec), escaped=True).encode()),
            *entries_of_rows(maintainer.rows()),
            *entries_of_tally(maintainer.tally, maintainer.ids),
            *(KnownBatches.entry(identity, rows) for identity, rows in known.items()),
            *more,
        ],
    )


TALLY = "tally"
"""Kind of the entry that tells a group's categories; its key is the id of the group."""

_NUMBER = np.dtype("<i4")


def empty_tally(layout: Layout) -> CategoryTally | None:
    """A tally for columns of very many categories; None if there are none, and nothing need be counted."""
    tally = CategoryTally(layout)
    return tally if tally.blocks else None


def entries_of_tally(tally: CategoryTally | None, ids: NDArray[np.int64]) -> list[StateEntry]:
    """Write the categories of these groups: column after column how many different ones, then each and how often."""
    if tally is None:
        return []
    return [StateEntry(TALLY, str(group), _bytes_of_tally(tally.of(group))) for group in ids.tolist()]


def _bytes_of_tally(held: Sequence[NDArray[np.int64]]) -> bytes:
    parts = [np.unique(places, return_counts=True) for places in held]
    numbers = [[len(different), *np.column_stack([different, often]).ravel().tolist()] for different, often in parts]
    return b"".join(np.array(each, dtype=_NUMBER).tobytes() for each in numbers)


def tally_of_bytes(body: bytes, blocks: Sequence[Block], count: int) -> list[NDArray[np.int64]]:
    """Indices of the categories in each column of a group of the given size.

    Raises
    ------
    StateError
        If the bytes tell of other categories than the columns have, or of more or fewer records.
    """
    numbers = np.frombuffer(body[: len(body) // 4 * 4], dtype=_NUMBER).astype(np.int64)
    found, start = [], 0
    for block in blocks:
        pairs = int(numbers[start]) if start < len(numbers) else -1
        part = numbers[start + 1 : start + 1 + 2 * max(0, pairs)].reshape(-1, 2) if pairs * 2 < len(numbers) else None
        start += 1 + 2 * max(0, pairs)
        if part is None or len(part) != pairs or not _are_places(part, block, count):
            raise _unreadable()
        found.append(np.repeat(part[:, 0], part[:, 1]))
    if start * 4 != len(body):
        raise _unreadable()
    return found


def _are_places(pairs: NDArray[np.int64], block: Block, count: int) -> bool:
    places, often = pairs[:, 0], pairs[:, 1]
    inside = (places >= MISSING).all() and (places < block.categories).all() and (np.diff(places) > 0).all()
    return bool(inside and (often > 0).all() and often.sum() == count)


def _unreadable() -> StateError:
    return StateError("the categories of a group in the state are not those of its records; restore a complete copy")


def tally_on_disk(
    state: State, layout: Layout, ids: NDArray[np.int64], count: NDArray[np.int64]
) -> CategoryTally | None:
    """The tally of all groups on disk; None if no column has very many categories."""
    blocks = [block for block in layout if block.kind is BlockKind.CODE]
    if not blocks:
        return None
    sizes = dict(zip(ids.tolist(), count.tolist(), strict=True))
    held = {whole_number(key): body for key, body in state.read_large(TALLY).items()}
    if held.keys() != sizes.keys():
        raise _unreadable()
    return CategoryTally.of_groups(
        layout, ((group, tally_of_bytes(body, blocks, sizes[group])) for group, body in held.items())
    )
