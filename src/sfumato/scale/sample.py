"""A uniform sample of the rows of a file, in one pass and in the memory of the sample."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.errors import OptionError, TableError
from sfumato.scale.source import open_source

if TYPE_CHECKING:
    import numpy as np

__all__ = ["sample_file"]

_BATCH = 1 << 16


def sample_file(
    path: str | Path,
    rows: int,
    rng: np.random.Generator,
    *,
    columns: Sequence[str] | None = None,
    encoding: str = "utf-8",
) -> pa.Table:
    """Draw rows without replacement, each set of so many as likely as any other; they keep the order of the file.

    Every row draws a number and the rows with the lowest ones are kept: a reservoir.

    Parameters
    ----------
    path : path
        A .parquet, .csv, .csv.gz, .arrow or .feather file; cells of CSV come as texts.
    rows : int
        A file with no more rows comes whole.
    rng : numpy.random.Generator
    columns : sequence of str, optional
        By default all.
    encoding : str
        Of CSV.
    """
    import numpy as np

    if rows < 1:
        raise OptionError(f"a sample of {rows} rows is none; ask for at least 1")
    source = open_source(path, encoding=encoding)
    names = source.schema.names if columns is None else list(columns)
    unknown = [name for name in names if name not in source.schema.names]
    if unknown:
        raise OptionError(f"there is no column {unknown[0]!r} in {str(path)!r}; choose among its own")
    kept: pa.Table | None = None
    drawn = np.empty(0)
    for batch in source.batches(names, _BATCH):
        fresh = rng.random(len(batch))
        threshold = drawn.max() if len(drawn) == rows else 1.0
        low = np.flatnonzero(fresh < threshold)
        if not len(low):
            continue
        taken = pa.Table.from_batches([batch]).take(pa.array(low))
        kept = taken if kept is None else pa.concat_tables([kept, taken])
        drawn = np.concatenate([drawn, fresh[low]])
        if len(drawn) > rows:
            stay = np.sort(np.argpartition(drawn, rows - 1)[:rows])
            kept, drawn = kept.take(pa.array(stay)).combine_chunks(), drawn[stay]
    if kept is None:
        raise TableError(f"{str(path)!r} has a header but no rows; bring some")
    return kept
