"""Batches and their ids: the same rows at the same place of a source have the same id, so a replay is recognised."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import TableError
from sfumato.engines.stream.settings import StateEntry, StateError, whole_number
from sfumato.engines.stream.state import State
from sfumato.tables.cells import is_text, plain

__all__ = ["Batch", "KnownBatches", "batch_id", "cut_batches", "place_of"]

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
    """Cut the rows of a source into batches of so many and give each its id; the last may be shorter.

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
