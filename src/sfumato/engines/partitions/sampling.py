"""Rows of a file that are drawn at random in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, TableError
from sfumato.tables.source import TableSource, open_people

__all__ = ["SAMPLE_ROWS", "Reservoir", "sample_file"]

SAMPLE_ROWS = 100_000
"""Rows that are drawn for whatever is estimated: scales, cuts, keys, the schema where none is given, and measures."""

_BATCH = 1 << 16


class Reservoir:
    """Rows that drew the lowest numbers of all that were added, in the order in which they came.

    Mutable for the sake of one pass.
    """

    def __init__(self, rows: int) -> None:
        if rows < 1:
            raise OptionError(f"a sample of {rows} rows is none; ask for at least 1")
        self.rows, self.drawn = rows, np.empty(0)
        self.kept: pa.Table | None = None

    def add(self, part: pa.Table, drawn: NDArray[np.float64]) -> None:
        """Take in further rows, each with the number that it drew."""
        threshold = self.drawn.max() if len(self.drawn) == self.rows else 1.0
        low = np.flatnonzero(drawn < threshold)
        if not len(low):
            return
        taken = part.take(pa.array(low))
        self.kept = taken if self.kept is None else pa.concat_tables([self.kept, taken])
        self.drawn = np.concatenate([self.drawn, drawn[low]])
        if len(self.drawn) > self.rows:
            stay = np.sort(np.argpartition(self.drawn, self.rows - 1)[: self.rows])
            self.kept, self.drawn = self.kept.take(pa.array(stay)).combine_chunks(), self.drawn[stay]


def sample_file(
    path: str | Path | TableSource,
    rows: int,
    rng: np.random.Generator,
    *,
    columns: Sequence[str] | None = None,
    encoding: str | None = None,
) -> pa.Table:
    """Draw rows uniformly without replacement; they keep the order of the file.

    Every row draws a number and the rows with the lowest ones are kept: a reservoir.

    Parameters
    ----------
    path : path or Source
        A .parquet, .csv, .csv.gz, .arrow or .feather file; cells of CSV come as texts.
    rows : int
        A file with no more rows comes whole.
    rng : numpy.random.Generator
    columns : sequence of str, optional
        By default all.
    encoding : str, optional
        Of CSV; by default UTF-8, or what is detected.
    """
    sample = Reservoir(rows)
    source = open_people(path, encoding=encoding)
    names = source.schema.names if columns is None else list(columns)
    unknown = [name for name in names if name not in source.schema.names]
    if unknown:
        raise OptionError(f"there is no column {unknown[0]!r} in {str(source.path)!r}; choose among its own")
    for batch in source.batches(names, _BATCH):
        sample.add(pa.Table.from_batches([batch]), rng.random(len(batch)))
    if sample.kept is None:
        raise TableError(f"{str(source.path)!r} has a header but no rows; add some")
    return sample.kept
