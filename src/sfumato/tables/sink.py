"""Write tables part by part with bounded memory: Parquet, CSV and Arrow."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from sfumato.tables.files import CsvWriter, FileForm, FileFormat

__all__ = ["TableSink", "open_sink"]


class TableSink(Protocol):
    """Writes a table part by part."""

    def write(self, part: pa.RecordBatch) -> None:
        """Add rows."""


@contextmanager
def open_sink(
    path: Path,
    schema: pa.Schema,
    form: FileForm,
    *,
    zipped: bool = False,
    numbers: Sequence[str] = (),
    spreadsheet_safe: bool = False,
) -> Iterator[TableSink]:
    """Open a file for writing; CSV is compressed by gzip if ``zipped``.

    In the columns of ``numbers`` hardly a number comes twice: for them Parquet keeps no dictionary, which would cost
    time.
    """
    if form.format is FileFormat.CSV:
        with gzip.open(path, "wb") if zipped else path.open("wb") as file:
            yield CsvWriter(file, schema, form.delimiter, spreadsheet_safe=spreadsheet_safe)
    elif form.format is FileFormat.ARROW:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
            yield writer
    else:
        repeated = [name for name in schema.names if name not in set(numbers)]
        with pa.parquet.ParquetWriter(path, schema, use_dictionary=repeated or False) as writer:
            yield _ParquetSink(writer)


class _ParquetSink:
    """Writes each part as a row group."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    def write(self, part: pa.RecordBatch) -> None:
        self.writer.write_batch(part, row_group_size=max(1, len(part)))
