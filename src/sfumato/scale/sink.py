"""A table written part by part under a temporary name, which takes its place once it is whole."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from sfumato.errors import OptionError, SfumatoError
from sfumato.replacing import reason, replacing_file
from sfumato.tables.cells import is_text
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.spreadsheet import quote_formulas

__all__ = ["Sink", "check_target", "replacing_target", "writing"]


class Sink(Protocol):
    """Takes a table part by part."""

    def write(self, part: pa.RecordBatch) -> None:
        """Add rows."""


def check_target(target: str | Path, source: Path, *, overwrite: bool) -> Path:
    """Refuse a place where the output must not be written."""
    path = Path(target)
    if path.exists() and path.resolve() == source.resolve():
        raise OptionError(f"the output {str(path)!r} is the input; choose another name")
    if path.is_dir() or not path.parent.is_dir():
        raise OptionError(f"the output {str(path)!r} is no file in a folder that exists; choose another name")
    if path.exists() and not overwrite:
        raise OptionError(f"the output {str(path)!r} exists; choose another name, or allow it to be replaced")
    return path


@contextmanager
def replacing_target(target: Path) -> Iterator[Path]:
    """Hidden file that takes the place of the target once the block has ended well; see `replacing_file`."""
    try:
        with replacing_file(target) as work:
            yield work
    except OSError as error:  # those of reading have become errors of ours
        raise SfumatoError(
            f"the output {str(target)!r} could not be written ({reason(error)}); make room or choose another place"
        ) from None


@contextmanager
def writing(
    path: Path,
    schema: pa.Schema,
    form: FileForm,
    *,
    zipped: bool = False,
    numbers: Sequence[str] = (),
    spreadsheet_safe: bool = False,
) -> Iterator[Sink]:
    """Open a file for writing.

    Parameters
    ----------
    path : path
    schema : pyarrow.Schema
    form : FileForm
    zipped : bool
        Whether CSV is compressed by gzip.
    numbers : sequence of str
        Columns in which hardly a number comes twice: for them Parquet keeps no dictionary, which would cost time.
    spreadsheet_safe : bool
        Whether CSV has an apostrophe before what a spreadsheet would take for a formula.
    """
    if form.format is FileFormat.CSV:
        with gzip.open(path, "wb") if zipped else path.open("wb") as file:
            yield _CsvSink(file, schema, form.delimiter, spreadsheet_safe=spreadsheet_safe)
    elif form.format is FileFormat.ARROW:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
            yield writer
    else:
        repeated = [name for name in schema.names if name not in set(numbers)]
        with pa.parquet.ParquetWriter(path, schema, use_dictionary=repeated or False) as writer:
            yield _ParquetSink(writer)


class _ParquetSink:
    """Makes a row group of each part."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    def write(self, part: pa.RecordBatch) -> None:
        self.writer.write_batch(part, row_group_size=max(1, len(part)))


class _CsvSink:
    """Writes rows as `sfumato.tables.files.write_file` does: texts are quoted only where a cell needs it."""

    def __init__(self, file: Any, schema: pa.Schema, delimiter: str, *, spreadsheet_safe: bool) -> None:
        self.file, self.delimiter, self.safe = file, delimiter, spreadsheet_safe
        names = quote_formulas(schema.empty_table()).column_names if spreadsheet_safe else schema.names
        self.texts = [name for name, field in zip(names, schema, strict=True) if is_text(field.type)]
        self.file.write(self._lines([names]))

    def write(self, part: pa.RecordBatch) -> None:
        if self.safe:
            (part,) = quote_formulas(pa.Table.from_batches([part])).combine_chunks().to_batches()
        special = f'[{self.delimiter}"\r\n]'
        columns = (part.column(name) for name in self.texts)
        quoted = part.num_columns == 1 or any(
            pc.any(pc.match_substring_regex(column, special)).as_py() for column in columns
        )
        if quoted:
            cells = [pc.fill_null(column.cast(pa.string()), "").to_pylist() for column in part.columns]
            self.file.write(self._lines(zip(*cells, strict=True)))
            return
        options = pa.csv.WriteOptions(include_header=False, delimiter=self.delimiter, quoting_style="none")
        pa.csv.write_csv(part, self.file, options)

    def _lines(self, rows: Any) -> bytes:
        text = io.StringIO()
        csv.writer(text, delimiter=self.delimiter, lineterminator="\n").writerows(rows)
        return text.getvalue().encode()
