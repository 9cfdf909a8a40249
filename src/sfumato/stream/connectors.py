"""Inputs of a stream: files, folders and standard input, each as batches.

Every connector gives batches in a fixed order, under ids that never stand for other rows. The next batch is requested
only after the one before it is on disk.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TextIO

import pyarrow as pa

from sfumato.core.documents import Unparsable, parse_json
from sfumato.core.errors import OptionError, TableError, shown
from sfumato.stream.entries import Batch, batch_id, cut_batches, place_of
from sfumato.tables.header import codec_name
from sfumato.tables.numerals import Numerals, rewrite_numerals
from sfumato.tables.source import TableSource, form_of, open_source

__all__ = ["ReadOptions", "read_batches", "read_lines"]

_FORMS = ("csv", "jsonl")
"""How standard input may be written."""

_DELIMITERS = ",;\t|"
_NAME = "standard input"


@dataclass(frozen=True)
class ReadOptions:
    """Options of a connector."""

    rows: int  # rows of a batch, always the same for one state
    # the columns of the schema, for records that name their own fields: one that lacks is a missing cell, one that the
    # schema does not know is left out. By default the fields of the first record
    columns: tuple[str, ...] | None = None
    # ids of the batches that the state has counted, with the rows of each; may grow while it is read
    known: Mapping[str, int] = field(default_factory=dict, repr=False)
    source: str = ""  # goes into the ids, to tell inputs apart that may hold the same rows
    encoding: str | None = None  # of CSV and JSON lines, by default UTF-8, or what is detected of a file
    header_row: int | None = None  # line of CSV that names the columns
    marks: Mapping[str, str] = field(default_factory=dict)  # decimal marks of columns of CSV
    form: str | None = None  # {"csv", "jsonl"}: how standard input is written, by default as its first character tells

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise OptionError("a batch has at least 1 row; raise the number")
        if self.form not in (None, *_FORMS):
            raise OptionError(f"standard input is not read as {self.form!r}; choose {' or '.join(_FORMS)}")


def table_of_fields(records: Sequence[Mapping[str, str | None]], columns: Sequence[str]) -> pa.Table:
    """Records that name their fields as a table of texts; what lacks is a missing cell."""
    return pa.table({name: pa.array([record.get(name) for record in records], pa.string()) for name in columns})


def read_lines(stream: BinaryIO, reading: ReadOptions) -> Iterator[Batch]:
    """Batches of a byte stream of CSV or JSON lines, each as soon as it is full, the last at the end.

    Cells are texts, as in CSV files; of a JSON number the text is that of the line. The same lines give the same ids.

    Raises
    ------
    TableError
        For lines that cannot be read, with their number; the batches before stay.
    """
    encoding = reading.encoding or "utf-8"
    text = io.TextIOWrapper(stream, encoding=codec_name(encoding), newline="")
    try:
        for _ in range((reading.header_row or 1) - 1):
            text.readline()
        first = next((line for line in text if line.strip("\ufeff \t\r\n")), "").removeprefix("\ufeff")
        if not first:
            raise TableError(f"{_NAME} is empty; it needs a header and rows, or JSON lines")
        form = reading.form or ("jsonl" if first.lstrip().startswith("{") else "csv")
        if form == "jsonl":
            if reading.header_row is not None:
                raise OptionError("JSON lines name their fields themselves; drop --header-row")
            tables = _json_tables(first, text, reading)
        else:
            tables = (rewrite_numerals(part, reading.marks) for part in _csv_tables(first, text, reading.rows))
        yield from cut_batches(tables, reading.rows, source=reading.source)
    except UnicodeDecodeError:
        raise TableError(f"{_NAME} is not {encoding}; name its encoding with --encoding") from None
    finally:
        text.detach()


def _csv_tables(first: str, text: TextIO, rows: int) -> Iterator[pa.Table]:
    """Read rows of CSV in batches of a given size."""
    delimiter = max(_DELIMITERS, key=first.count) if any(mark in first for mark in _DELIMITERS) else ","
    reader = csv.reader(itertools.chain([first], text), delimiter=delimiter)
    try:
        names = next(reader)
        nameless = sum(not name.strip() for name in names)
        if nameless or len(set(names)) < len(names):
            raise TableError(f"the header of {_NAME} has {nameless} empty names, or the same name twice; fix it")
        cells = (row for row in reader if row or len(names) == 1)
        while held := list(itertools.islice(cells, rows)):
            ragged = sum(len(row) != len(names) for row in held)
            if ragged:
                raise TableError(
                    f"{ragged} rows before line {reader.line_num + 1} of {_NAME} do not have the {len(names)} cells of "
                    "the header; fix them"
                )
            yield pa.table([pa.array(column, pa.string()) for column in zip(*held, strict=True)], names=names)
    except csv.Error:
        raise TableError(f"line {reader.line_num} of {_NAME} cannot be read as CSV; fix it") from None


def _json_tables(first: str, text: TextIO, reading: ReadOptions) -> Iterator[pa.Table]:
    """Read one record a line, in batches of a given size."""
    records = (
        _record(line, number) for number, line in enumerate(itertools.chain([first], text), start=1) if line.strip()
    )
    columns = reading.columns
    while held := list(itertools.islice(records, reading.rows)):
        columns = tuple(held[0]) if columns is None else columns
        yield table_of_fields(held, columns)


def _record(line: str, number: int) -> dict[str, str | None]:
    """Read a line of JSON; numbers keep their text."""
    try:
        record = parse_json(line, verbatim=True)
    except Unparsable:
        record = None
    if not isinstance(record, dict) or any(isinstance(cell, (dict, list)) for cell in record.values()):
        raise TableError(
            f"line {number} of {_NAME} is not a JSON object of texts, numbers, true, false and null; fix it"
        )
    return {_whole(name): None if cell is None else _whole(cell) for name, cell in record.items()}


def _whole(cell: str | bool) -> str:
    """Write a cell as text; halves of a character, which JSON can name and no text holds, become question marks."""
    text = str(cell).lower() if isinstance(cell, bool) else cell
    return text.encode("utf-8", "replace").decode()


def _read_file_batches(path: Path, reading: ReadOptions) -> Iterator[Batch]:
    """Batches of a file; one that has grown at its end goes on from where it was."""
    file = _opened(path, reading)
    yield from cut_batches(file.batches(file.schema.names, reading.rows), reading.rows, source=reading.source)


def _opened(path: Path, reading: ReadOptions) -> TableSource:
    """A file whose numbers are written as those of the first records."""
    of_csv = path.name.lower().endswith((".csv", ".csv.gz"))  # of a folder only some files may be CSV
    file = open_source(path, encoding=reading.encoding, header_row=reading.header_row if of_csv else None)
    for words in file.form.found:
        logging.getLogger("sfumato").warning("%s: %s", shown(path), words)
    return dataclasses.replace(file, form=dataclasses.replace(file.form, numerals=Numerals(marks=reading.marks)))


def _read_folder(folder: Path, reading: ReadOptions) -> Iterator[Batch]:
    """Batches of all files in a folder, by name; a file that came since is given the next time.

    A file is known by its name, so two files may hold the same rows. Only a file that the state knows already from
    elsewhere under the bare source, such as the one that it was begun with, keeps that source.
    """
    paths = [path for path in sorted(folder.iterdir()) if path.is_file() and _is_table(path)]
    if not paths:
        raise TableError(f"there is no table in the folder {str(folder)!r}; provide .csv, .parquet or .arrow files")
    beginnings = {rows for identity, rows in reading.known.items() if place_of(identity) == (reading.source, 0)}
    for path in paths:
        file = _opened(path, reading)
        if not _is_known(file, beginnings, reading):
            own = f"{reading.source}/{path.name}" if reading.source else path.name
            yield from _read_file_batches(path, dataclasses.replace(reading, source=own))
        else:
            yield from _read_file_batches(path, reading)


def _is_table(path: Path) -> bool:
    """Tell a table from hidden files and those of other endings."""
    if path.name.startswith((".", "_")):
        return False
    try:
        form_of(path)
    except TableError:
        return False
    return True


def _is_known(file: TableSource, beginnings: set[int], reading: ReadOptions) -> bool:
    """Whether the first batch of a file, or its beginning, was counted under the bare source."""
    if not beginnings:
        return False
    first = next(cut_batches(file.batches(file.schema.names, reading.rows), reading.rows), None)
    return first is not None and any(
        batch_id(0, first[1].slice(0, rows), source=reading.source) in reading.known
        for rows in beginnings
        if rows <= first[1].num_rows
    )


def read_batches(place: str | Path, reading: ReadOptions) -> Iterator[Batch]:
    """Batches of one input.

    Parameters
    ----------
    place : str or path
        A file or a folder of files, or ``-`` for standard input.
    reading : ReadOptions
        How it is read, and what the state knows.

    Raises
    ------
    TableError
        For an input that is not there or cannot be read; the batches before it stay.
    """
    name = str(place)
    if name == "-":
        return read_lines(sys.stdin.buffer, reading)
    return _read_folder(Path(name), reading) if Path(name).is_dir() else _read_file_batches(Path(name), reading)
