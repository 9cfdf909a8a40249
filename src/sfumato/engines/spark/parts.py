"""The parts of a data frame: what workers tell the driver of them, and files that a cluster reads by itself."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sfumato.core.documents import parse_json, write_json
from sfumato.core.errors import OptionError, TableError
from sfumato.engines.partitions.first_pass import RowBlock
from sfumato.tables.cells import MISSING_MARKS
from sfumato.tables.files import FileForm, FileFormat, check_names
from sfumato.tables.header import csv_header
from sfumato.tables.numerals import NumeralScan, rewrite_numerals
from sfumato.tables.source import runs_of_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "FRAMES",
    "Batches",
    "ClusterFile",
    "RowNumbering",
    "frames_from",
    "is_spark_frame",
    "number_rows",
    "open_on_spark",
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
class RowNumbering:
    """Numbers the rows of each part of a data frame, from where the part begins in the whole."""

    starts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Rows of the whole."""
        return self.starts[-1]

    def runs(self, batches: Batches) -> Iterator[RowBlock]:
        """The rows of the part that this worker has, in runs."""
        first = self.starts[part_number()]
        for table in runs_of_rows(batches, _RUN_ROWS):
            yield RowBlock(table, np.arange(first, first + table.num_rows))
            first += table.num_rows


def number_rows(frame: DataFrame) -> RowNumbering:
    """Numbers for the rows of a data frame, counted by their holder."""
    counts = sorted((row["part"], int.from_bytes(row["frame"], "little")) for row in frames_from(frame, _count))
    return RowNumbering(tuple(np.cumsum([0, *(rows for _, rows in counts)]).tolist()))


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


_RAGGED = "\x1fragged"
_ENCODINGS = {"utf-8": "UTF-8", "iso8859-1": "ISO-8859-1", "utf-16": "UTF-16"}  # that both Python and Spark know


@dataclass(frozen=True, eq=False, repr=False)
class ClusterFile:
    """A file, or a folder of them, as a cluster reads it, and how it is written."""

    frame: DataFrame
    form: FileForm

    def first_rows(self, most: int) -> int:
        """Rows of its beginning."""
        return int(self.frame.limit(most).count())


def spark_session(master: str | None) -> SparkSession:
    """A session on a master, such as ``spark://host:7077`` or ``local[2]``; the workers run this Python.

    Raises
    ------
    OptionError
        If Spark is not installed.
    """
    import os
    import sys

    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise OptionError("Spark is not installed; install the extra 'spark' (pip install 'sfumato[spark]')") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("sfumato").config("spark.ui.showConsoleProgress", "false")
    return (builder if master is None else builder.master(master)).getOrCreate()


def open_on_spark(
    path: str | Path,
    master: str | None,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    header_row: int | None = None,
    missing: tuple[str, ...] = (),
) -> ClusterFile:
    """A Parquet or CSV file, or a folder of them; cells of CSV are texts, numbers among them written plainly.

    Raises
    ------
    OptionError
        For a file that Spark does not read.
    TableError
        For a CSV file with lines that do not have the cells of its header.
    """
    name = str(path)
    if name.lower().endswith((".arrow", ".feather", ".xlsx", ".ods", ".sqlite")):
        raise OptionError("Spark reads Parquet and CSV; convert the file first")
    if header_row not in (None, 1):
        raise OptionError(
            "Spark reads the header from the first line; drop --header-row, and remove the lines above the header "
            "or take --engine partitions"
        )
    csv = name.lower().endswith((".csv", ".csv.gz"))
    if not csv and (delimiter is not None or decimal is not None):
        raise OptionError("--decimal and --delimiter are for CSV; this file states the types of its cells")
    spark = spark_session(master)
    if not csv:
        return ClusterFile(spark.read.parquet(name), FileForm(FileFormat.PARQUET))
    frame, form = _csv(spark, name, encoding or "utf-8", delimiter)
    marks = (*MISSING_MARKS, *missing)
    look, ragged = NumeralScan(marks), 0
    for row in frames_from(frame, partial(_scan_numerals, marks)):
        found = parse_json(bytes(row["frame"]))
        look.join(found["numbers"])
        ragged += found["ragged"]
    frame = frame.drop(_RAGGED)
    if ragged:
        raise TableError(
            f"{ragged} rows of {name!r} do not have the {len(frame.columns)} cells of the header; fix them, or "
            "convert a file whose cells hold line breaks to Parquet"
        )
    if decimal == "plain":
        return ClusterFile(frame, form)
    numerals = look.decide(decimal, form.likely_decimal)
    if numerals.marks:
        frame = frame.mapInArrow(partial(_rewrite, dict(numerals.marks)), frame.schema)
    return ClusterFile(frame, replace(form, numerals=numerals))


def _csv(spark: SparkSession, name: str, encoding: str, delimiter: str | None) -> tuple[DataFrame, FileForm]:
    """All cells as texts, beside them lines that do not have the cells of the header, and how the file is written."""
    from pyspark.sql.types import StringType, StructField, StructType

    try:
        known = _ENCODINGS.get(codecs.lookup(encoding).name)
    except LookupError:
        known = None
    if known is None:
        raise OptionError(f"Spark does not read the encoding {encoding!r}; convert the file to utf-8 first")
    first = spark.read.text(name).head()
    mark, names, _ = csv_header("" if first is None else first[0].removeprefix("\ufeff"), repr(name), delimiter, 1)
    check_names(names, repr(name))
    kinds = StructType([StructField(each, StringType()) for each in (*names, _RAGGED)])
    frame = spark.read.csv(
        name,
        schema=kinds,
        header=True,
        sep=mark,
        escape='"',
        encoding=known,
        nullValue="\x00",
        emptyValue="",
        columnNameOfCorruptRecord=_RAGGED,
    )
    return frame, FileForm(FileFormat.CSV, mark, encoding=known)


def _scan_numerals(marks: tuple[str, ...], batches: Batches) -> Batches:
    """How the numbers of a part are written, and how many of its lines are ragged, wherever the rows are."""
    look, ragged = NumeralScan(marks), 0
    for batch in batches:
        table = pa.Table.from_batches([batch])
        ragged += table.num_rows - table.column(_RAGGED).null_count
        look.add(table.drop_columns([_RAGGED]))
    found = write_json({"numbers": look.to_json(), "ragged": ragged}, "canonical")
    yield part_of(part_number(), {"look": found.encode()})


def _rewrite(marks: dict[str, str], batches: Batches) -> Batches:
    """Writes numbers plainly, wherever the rows are."""
    for batch in batches:
        yield from rewrite_numerals(pa.Table.from_batches([batch]), marks).to_batches()
