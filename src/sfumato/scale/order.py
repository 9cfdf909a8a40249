"""The order of rows that are read once: they are shuffled within runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

__all__ = ["runs_of_rows"]


def runs_of_rows(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Cut a stream of batches into runs of so many rows; the last has up to twice as many, so that none is shorter.

    Only a stream of fewer rows than that gives a shorter one.
    """
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if not len(batch):
            continue
        held.append(batch)
        count += len(batch)
        while count >= 2 * rows:
            table = pa.Table.from_batches(held)
            yield table.slice(0, rows)
            held, count = table.slice(rows).to_batches(), count - rows
            del table
    if held:
        yield pa.Table.from_batches(held)
