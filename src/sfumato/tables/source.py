"""Read and write files in record batches with bounded memory: Parquet, CSV and Arrow."""

from __future__ import annotations

import atexit
import codecs
import gzip
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from sfumato.core.errors import OptionError, TableError, shown
from sfumato.tables.cells import MISSING_MARKS
from sfumato.tables.files import ENDINGS, CsvWriter, FileForm, FileFormat, check_names, describe_detected, ending_of
from sfumato.tables.header import csv_header, encoding_of
from sfumato.tables.numerals import NumeralScan, rewrite_numerals

__all__ = ["TableSink", "TableSource", "form_of", "open_people", "open_sink", "open_source", "runs_of_rows"]

_BLOCK = 1 << 22  # bytes of CSV that are parsed at once
_BATCH = 1 << 16  # rows that are looked at together
_HEAD = 1 << 20  # bytes of CSV that say how it is written
_BUFFER = 1 << 20  # bytes of a Parquet column that are read ahead; without it a whole column of a row group is


@dataclass(frozen=True)
class TableSource:
    """A file that is read in batches of rows.

    ``schema`` names columns and types; all are texts in CSV, as everywhere in this package. ``rows`` is None where the
    format does not say. A file that cannot be read in parts comes as a ``table``. Numbers of CSV whose marks the form
    tells, such as 1.234,50, come with a point before decimals and nothing between thousands.
    """

    path: Path
    form: FileForm
    schema: pa.Schema
    rows: int | None
    table: pa.Table | None = None

    def batches(self, columns: Sequence[str], rows: int, *, threads: bool = True) -> Iterator[pa.RecordBatch]:
        """Read some columns from the first row to the last; Parquet batches have ``rows`` rows."""
        names = list(columns)
        if self.table is not None:
            yield from self.table.select(names).to_batches(max_chunksize=rows)
            return
        with _plain_errors(self.path, self.form.encoding):
            if self.form.format is FileFormat.PARQUET:
                yield from self._parquet(names, rows, threads=threads)
            elif self.form.format is FileFormat.CSV:
                yield from self._csv(names, threads=threads)
            else:
                yield from self._arrow(names)

    def head(self, columns: Sequence[str], rows: int) -> pa.Table:
        """Read the first rows."""
        parts: list[pa.RecordBatch] = []
        for batch in self.batches(columns, rows, threads=False):
            parts.append(batch)
            if sum(map(len, parts)) >= rows:
                break
        if not sum(map(len, parts)):
            raise TableError(f"{str(self.path)!r} has a header but no rows; add some")
        return pa.Table.from_batches(parts).slice(0, rows)

    def first_rows(self, most: int) -> int:
        """Number of rows in the file, or in its beginning if the format does not state it."""
        return self.rows if self.rows is not None else len(self.head(self.schema.names, most))

    def _parquet(self, columns: list[str], rows: int, *, threads: bool) -> Iterator[pa.RecordBatch]:
        with pa.parquet.ParquetFile(self.path, buffer_size=_BUFFER, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=rows, columns=columns, use_threads=threads):
                batch.validate(full=True)
                yield batch

    def _arrow(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(self.path)) as mapped, pa.ipc.open_file(mapped) as reader:
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number).select(columns)
                batch.validate(full=True)
                yield batch

    def _csv(self, columns: list[str], *, threads: bool) -> Iterator[pa.RecordBatch]:
        ragged = 0

        def skip(_: Any) -> str:
            nonlocal ragged
            ragged += 1
            return "skip"

        names = self.schema.names
        with (
            pa.input_stream(str(self.path), compression="detect") as stream,
            _CheckedReader(self.form.encoding) as checked,
            pa.csv.open_csv(
                pa.TransformInputStream(stream, checked),
                read_options=pa.csv.ReadOptions(
                    use_threads=threads,
                    block_size=_BLOCK,
                    encoding=self.form.encoding,
                    skip_rows=self.form.header_row - 1,
                ),
                parse_options=pa.csv.ParseOptions(
                    delimiter=self.form.delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=len(names) > 1,
                    invalid_row_handler=skip,
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), include_columns=columns, strings_can_be_null=False
                ),
            ) as reader,
        ):
            for batch in reader:
                if ragged:
                    break
                yield from rewrite_numerals(pa.Table.from_batches([batch]), self.form.numerals.marks).to_batches()
        if ragged:
            raise TableError(
                f"{ragged} rows near each other in {str(self.path)!r} do not have the {len(names)} cells of the "
                "header; correct them"
            )


class _CheckedReader:
    """Checks the encoding before Arrow reads the bytes, because Arrow's error would quote a row.

    Threads of Arrow call it, also for a while after a reader has failed or was left. None may when the program ends:
    Python stops such a thread, Arrow waits for it, and the program stays. So no bytes pass after the end, and the
    program ends when Arrow has let go.
    """

    _held: ClassVar[weakref.WeakSet[_CheckedReader]] = weakref.WeakSet()

    def __init__(self, encoding: str) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ended = False

    def __enter__(self) -> _CheckedReader:
        self._held.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True

    def __call__(self, data: pa.Buffer) -> pa.Buffer:
        if self._ended:
            raise EOFError
        self._decoder.decode(data, final=not len(data))
        return data

    @classmethod
    def await_all(cls) -> None:
        """Wait until Arrow has released all readers, a second at most."""
        until = time.monotonic() + 1
        for checked in list(cls._held):
            checked._ended = True
            del checked
        while cls._held and time.monotonic() < until:
            time.sleep(0.01)


atexit.register(_CheckedReader.await_all)


def form_of(path: Path) -> FileForm:
    """Format of a file by its ending."""
    ending = ending_of(path)
    if ending is None:
        raise TableError(f"{str(path)!r} is not of a known kind; known endings are {', '.join(ENDINGS)}")
    return FileForm(ENDINGS[ending])


def open_source(
    path: str | Path, *, encoding: str | None = None, delimiter: str | None = None, header_row: int | None = None
) -> TableSource:
    """Open a file: its format, columns and, if the format states them, rows; texts stay unchanged.

    Without an encoding and a header row, those of CSV are detected from its first MiB.

    Raises
    ------
    TableError
        For a file that is not there, empty, of no known ending, or not what its ending says.
    """
    place = Path(path)
    form = form_of(place)
    rows: int | None = None
    with _plain_errors(place):
        if not place.is_file():
            raise TableError(f"there is no file {str(place)!r}; check its name")
        if header_row not in (None, 1) and form.format is not FileFormat.CSV:
            raise OptionError(f"{shown(place)} names its columns itself; drop --header-row")
        if form.format is FileFormat.PARQUET:
            with pa.parquet.ParquetFile(place) as file:
                schema, rows = file.schema_arrow, file.metadata.num_rows
        elif form.format is FileFormat.ARROW:
            with pa.memory_map(str(place)) as mapped, pa.ipc.open_file(mapped) as reader:
                schema = reader.schema
        else:
            names, form = _csv_form(place, encoding, delimiter, header_row)
            schema = pa.schema([(name, pa.string()) for name in names])
        check_names(schema.names, repr(str(place)))  # decodes the names
    return TableSource(place, form, schema, rows)


def open_people(
    path: str | Path | TableSource,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    header_row: int | None = None,
    missing: tuple[str, ...] = (),
) -> TableSource:
    """Open a file including local number formats of CSV.

    The number format is detected in all rows, unless the first ones are plain. One that was opened is
    given back.

    Raises
    ------
    OptionError
        If a file that is no CSV is given a delimiter or a decimal mark.
    TableError
        As `open_source`.
    """
    if isinstance(path, TableSource):
        return path
    source = open_source(path, encoding=encoding, delimiter=delimiter, header_row=header_row)
    if source.form.format is not FileFormat.CSV:
        if delimiter is not None or decimal is not None:
            raise OptionError("--decimal and --delimiter are for CSV; this file states the types of its cells")
        return source
    if decimal == "plain":
        return source
    look, likely = NumeralScan((*MISSING_MARKS, *missing)), source.form.likely_decimal
    for batch in source.batches(source.schema.names, _BATCH):
        look.add(pa.Table.from_batches([batch]))
        if look.all_plain and decimal is None and likely is None:
            break
    return replace(source, form=replace(source.form, numerals=look.decide(decimal, likely)))


def _csv_form(
    path: Path, encoding: str | None, delimiter: str | None, header_row: int | None
) -> tuple[list[str], FileForm]:
    """Column names of a CSV file and its form, from the first MiB."""
    with pa.input_stream(str(path), compression="detect") as stream:
        data = stream.read(_HEAD)
    name = repr(str(path))
    known, detected = encoding_of(data, name, encoding, whole=len(data) < _HEAD)
    text = data.decode(known, "ignore").removeprefix("\ufeff")
    if not text.strip():
        raise TableError(f"{name} is empty; it needs a header and rows")
    delimiter, names, header = csv_header(text, name, delimiter, header_row)
    found = describe_detected("line", header, known if detected else None)
    return names, FileForm(FileFormat.CSV, delimiter, encoding=known, header_row=header.row, found=found)


@contextmanager
def _plain_errors(path: Path, encoding: str = "") -> Iterator[None]:
    """Report unreadable files in our own words; Arrow's would quote a row."""
    try:
        yield
    except PermissionError:
        raise TableError(f"{str(path)!r} may not be read by you; ask for permission") from None
    except UnicodeEncodeError:
        raise TableError(f"the name {shown(path)} is not UTF-8 text; rename the file or its folder") from None
    except (pa.ArrowException, EOFError, OSError, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError) and encoding:
            raise TableError(f"{shown(path)} is not {encoding} throughout; name its encoding with --encoding") from None
        raise TableError(f"{str(path)!r} cannot be read as its ending says; it may be damaged or misnamed") from None


def runs_of_rows(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Regroup a stream of batches into runs of ``rows`` rows; the last has up to twice as many.

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
