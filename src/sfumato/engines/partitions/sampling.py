"""Rows sampled and held out by a keyed hash of their numbers: the same rows however the table is read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.randomness import Randomness
from sfumato.tables.cells import plain
from sfumato.tables.source import TableSource, runs_of_rows

__all__ = ["SAMPLE_ROWS", "RowBlock", "RowHash", "RowSampler", "join_blocks", "read_blocks"]

SAMPLE_ROWS = 100_000
"""Rows that are drawn for whatever is estimated: scales, cuts, keys, the schema where none is given, and measures."""

_RUN_CELLS = 1 << 21
_MOST_ROWS, _FEWEST_ROWS = 1 << 17, 1 << 12

Numbers = NDArray[np.uint64]


@dataclass(frozen=True, eq=False, repr=False)
class RowBlock:
    """Rows that follow each other in the source, and the number of each there."""

    table: pa.Table
    rows: NDArray[np.int64]

    def take(self, places: NDArray[np.int64]) -> RowBlock:
        """Some of the rows."""
        return RowBlock(self.table.take(pa.array(places)), self.rows[places])

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"RowBlock({len(self)} rows)"


def read_blocks(source: TableSource) -> Iterator[RowBlock]:
    """Blocks of a source from its first row to its last; their length depends on the number of columns alone."""
    names, first = source.schema.names, 0
    rows = int(np.clip(_RUN_CELLS // max(1, len(names)), _FEWEST_ROWS, _MOST_ROWS))
    for table in runs_of_rows(source.batches(names, rows), rows):
        yield RowBlock(table, np.arange(first, first + table.num_rows))
        first += table.num_rows


@dataclass(frozen=True, eq=False, repr=False)
class RowHash:
    """Keyed hash of each row, or of each person: the same for all workers, and secret outside the run."""

    key: bytes
    person: str | None = None
    share: float | None = None

    @classmethod
    def of(cls, randomness: Randomness, person: str | None, holdout: object) -> RowHash:
        """RowHash of a run; ``holdout`` is a share, or something else that holds out no row here."""
        if isinstance(holdout, float) and not 0.0 < holdout < 1.0:
            raise OptionError("the share of rows to hold out must lie between 0 and 1; try 0.2")
        key = randomness.generator("rows").bytes(32)
        return cls(key, person, holdout if isinstance(holdout, float) else None)

    def of_rows(self, rows: NDArray[np.int64], purpose: str) -> Numbers:
        """A number of each row, spread evenly over 64 bits."""
        word = int.from_bytes(hashlib.blake2b(purpose.encode(), key=self.key, digest_size=8).digest(), "little")
        mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(word)  # splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(mixed ^ (mixed >> np.uint64(31)))

    def of_persons(self, table: pa.Table) -> Numbers | None:
        """A number of the person whom each row is about; None if rows are people."""
        if self.person is None:
            return None
        coded = pc.dictionary_encode(plain(table.column(self.person)), null_encoding="encode")
        texts = coded.dictionary.cast(pa.string()).to_pylist()
        words = [hashlib.blake2b(repr(text).encode(), key=self.key, digest_size=8).digest() for text in texts]
        numbers = np.frombuffer(b"".join(words), dtype="<u8").astype(np.uint64)
        return np.asarray(numbers[coded.indices.to_numpy(zero_copy_only=False)])

    def held_out(self, block: RowBlock) -> NDArray[np.bool_]:
        """Which rows are kept out of the release; all rows of a person are on one side."""
        if self.share is None:
            return np.zeros(len(block), dtype=np.bool_)
        persons = self.of_persons(block.table)
        drawn = self.of_rows(block.rows if persons is None else persons.view(np.int64), "held out")
        return np.asarray(drawn < np.uint64(int(self.share * 2.0**64)))

    def __repr__(self) -> str:
        return "RowHash(owner only)"


class RowSampler:
    """Keeps the rows with the lowest hashes for a purpose, up to a number: a uniform sample."""

    def __init__(self, row_hash: RowHash, purpose: str, most: int | None = None) -> None:
        self.row_hash, self.purpose = row_hash, purpose
        self.most = SAMPLE_ROWS if most is None else most
        self.parts: list[RowBlock] = []
        self.drawn: list[NDArray[np.uint64]] = []
        self.bar = np.uint64(2**64 - 1)
        self.held = 0

    def add(self, block: RowBlock) -> None:
        """Take in further rows."""
        drawn = self.row_hash.of_rows(block.rows, self.purpose)
        low = np.flatnonzero(drawn <= self.bar)
        if not len(low):
            return
        self.parts.append(block.take(low))
        self.drawn.append(drawn[low])
        self.held += len(low)
        if self.held > 2 * self.most:
            self._cut()

    def done(self) -> RowBlock:
        """The sample, in the order in which the rows came."""
        if not self.parts:
            return RowBlock(pa.table({}), np.empty(0, dtype=np.int64))
        self._cut()
        return self.parts[0]

    def _cut(self) -> None:
        whole, drawn = join_blocks(self.parts), np.concatenate(self.drawn)
        stay = np.arange(len(drawn))
        if len(drawn) > self.most:
            stay = np.sort(np.argpartition(drawn, self.most - 1)[: self.most])
            self.bar = drawn[stay].max()
        self.parts, self.drawn, self.held = [whole.take(stay)], [drawn[stay]], len(stay)


def join_blocks(parts: list[RowBlock]) -> RowBlock:
    """One block of several, in their order."""
    table = pa.concat_tables([part.table for part in parts]).unify_dictionaries().combine_chunks()
    return RowBlock(table, np.concatenate([part.rows for part in parts]))
