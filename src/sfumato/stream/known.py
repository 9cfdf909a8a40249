"""The batches that a stream has counted, and what of a longer batch was counted before its source grew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pyarrow as pa

from sfumato.stream.batches import batch_id, place_of
from sfumato.stream.book import Book
from sfumato.stream.format import Entry, StateError, whole_number

__all__ = ["Known"]

_BATCH = "batch"


class Known:
    """Ids of batches with the number of rows of each."""

    def __init__(self, book: Book) -> None:
        self._rows: dict[str, int] = {}
        self._lengths: dict[tuple[str, int] | None, set[int]] = {}
        for key in book.keys(_BATCH):
            self.add(key, whole_number(book.body(_BATCH, key)))

    def __contains__(self, identity: str) -> bool:
        return identity in self._rows

    @property
    def rows(self) -> Mapping[str, int]:
        """The ids, with the rows of each; grows as batches are counted."""
        return MappingProxyType(self._rows)

    @staticmethod
    def entry(identity: str, rows: int) -> Entry:
        """Write a batch down."""
        return Entry(_BATCH, identity, str(rows).encode())

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
