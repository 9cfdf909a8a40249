"""What workers tell the driver of the parts of a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sfumato.engines.cells.reading import Run
from sfumato.engines.chunks.transform import runs_of_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "FRAMES",
    "Batches",
    "Numbered",
    "frames_from",
    "is_spark_frame",
    "number_rows",
    "part_number",
    "part_of",
]

_RUN_ROWS = 1 << 16
FRAMES = "part long, kind string, frame binary"
"""What workers tell: named bytes of each part of a data frame."""

Batches = Iterator[pa.RecordBatch]


def is_spark_frame(table: Any) -> bool:
    """Tell whether a table is a data frame of Spark, without importing it."""
    return type(table).__module__.split(".")[:2] == ["pyspark", "sql"] and type(table).__name__ == "DataFrame"


@dataclass(frozen=True, eq=False, repr=False)
class Numbered:
    """Numbers the rows of each part of a data frame, from where the part begins in the whole."""

    starts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Rows of the whole."""
        return self.starts[-1]

    def runs(self, batches: Batches) -> Iterator[Run]:
        """The rows of the part that this worker has, in runs."""
        first = self.starts[part_number()]
        for table in runs_of_rows(batches, _RUN_ROWS):
            yield Run(table, np.arange(first, first + table.num_rows))
            first += table.num_rows


def number_rows(frame: DataFrame) -> Numbered:
    """Numbers for the rows of a data frame, counted by whoever has them."""
    counts = sorted((row["part"], int.from_bytes(row["frame"], "little")) for row in frames_from(frame, _count))
    return Numbered(tuple(np.cumsum([0, *(rows for _, rows in counts)]).tolist()))


def _count(batches: Batches) -> Batches:
    yield part_of(part_number(), {"rows": sum(map(len, batches)).to_bytes(8, "little")})


def part_number() -> int:
    """Number of the part that this worker is at."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def part_of(part: int, frames: Mapping[str, bytes]) -> pa.RecordBatch:
    """Named bytes of a part, as a worker hands them over."""
    kinds = pa.schema([("part", pa.int64()), ("kind", pa.string()), ("frame", pa.binary())])
    return pa.RecordBatch.from_arrays(
        [pa.array([part] * len(frames)), pa.array(list(frames)), pa.array(list(frames.values()), pa.binary())],
        schema=kinds,
    )


def frames_from(frame: DataFrame, work: Callable[[Batches], Batches]) -> Sequence[Any]:
    """What workers tell of all parts of a data frame."""
    return list(frame.mapInArrow(work, FRAMES).collect())
