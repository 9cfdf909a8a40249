"""Batches and their ids: the same rows at the same place of a source have the same id, so a replay is recognised."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import TableError
from sfumato.tables.cells import is_text, plain

__all__ = ["Batch", "batch_id", "cut_batches", "place_of"]

Batch = tuple[str, pa.Table]
"""An id and the rows it stands for; the id never stands for other rows."""


def batch_id(ordinal: int, table: pa.Table, *, source: str = "") -> str:
    """Give the id of a batch: the name of its source, its place there, and a digest of columns and cells.

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
    """Give the source and the place in it that an id of `batch_id` tells, None of other ids.

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
    rows : int
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
    """Give the bytes that tell an array's cells, the missing ones marked and otherwise blank."""
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
