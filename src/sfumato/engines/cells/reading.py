"""Rows of a source in runs, each with its number, and which of them are held out."""

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
from sfumato.engines.chunks.source import Source
from sfumato.engines.chunks.transform import runs_of_rows
from sfumato.tables.cells import plain

__all__ = ["Chance", "Run", "read_runs"]

_RUN_CELLS = 1 << 21
_MOST_ROWS, _FEWEST_ROWS = 1 << 17, 1 << 12

Numbers = NDArray[np.uint64]


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Rows that follow each other in the source, and the number of each there."""

    table: pa.Table
    rows: NDArray[np.int64]

    def take(self, places: NDArray[np.int64]) -> Run:
        """Some of the rows."""
        return Run(self.table.take(pa.array(places)), self.rows[places])

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Run({len(self)} rows)"


def read_runs(source: Source) -> Iterator[Run]:
    """Runs of a source from its first row to its last; how long they are hangs on the number of columns alone."""
    names, first = source.schema.names, 0
    rows = int(np.clip(_RUN_CELLS // max(1, len(names)), _FEWEST_ROWS, _MOST_ROWS))
    for table in runs_of_rows(source.batches(names, rows), rows):
        yield Run(table, np.arange(first, first + table.num_rows))
        first += table.num_rows


@dataclass(frozen=True, eq=False, repr=False)
class Chance:
    """A number of each row, or of each person, that nobody outside the run can tell; the same wherever it is drawn."""

    key: bytes
    person: str | None = None
    share: float | None = None

    @classmethod
    def of(cls, randomness: Randomness, person: str | None, holdout: object) -> Chance:
        """Chance of a run; ``holdout`` is a share, or something else that holds out no row here."""
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
        """A number of the person whom each row is about; None where rows are people."""
        if self.person is None:
            return None
        coded = pc.dictionary_encode(plain(table.column(self.person)), null_encoding="encode")
        texts = coded.dictionary.cast(pa.string()).to_pylist()
        words = [hashlib.blake2b(repr(text).encode(), key=self.key, digest_size=8).digest() for text in texts]
        numbers = np.frombuffer(b"".join(words), dtype="<u8").astype(np.uint64)
        return np.asarray(numbers[coded.indices.to_numpy(zero_copy_only=False)])

    def held_out(self, run: Run) -> NDArray[np.bool_]:
        """Which rows are kept out of the release; all rows of a person are on one side."""
        if self.share is None:
            return np.zeros(len(run), dtype=np.bool_)
        persons = self.of_persons(run.table)
        drawn = self.of_rows(run.rows if persons is None else persons.view(np.int64), "held out")
        return np.asarray(drawn < np.uint64(int(self.share * 2.0**64)))

    def __repr__(self) -> str:
        return "Chance(owner only)"
