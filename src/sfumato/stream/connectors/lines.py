"""Standard input, line by line: CSV or JSON lines, so that memory does not grow and a batch leaves when it is full."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import sys
from collections.abc import Iterator
from typing import BinaryIO, TextIO

import pyarrow as pa

from sfumato.documents import Unparsable, parse_json
from sfumato.errors import OptionError, TableError
from sfumato.stream.batches import Batch, cut_batches
from sfumato.stream.connectors.reading import Reading, table_of_fields

__all__ = ["read_lines", "read_standard_input"]

_DELIMITERS = ",;\t|"
_NAME = "standard input"


def read_standard_input(reading: Reading) -> Iterator[Batch]:
    """Give the batches of standard input."""
    return read_lines(sys.stdin.buffer, reading)


def read_lines(stream: BinaryIO, reading: Reading) -> Iterator[Batch]:
    """Give the batches of a byte stream of CSV or JSON lines, each as soon as it is full, the last at the end.

    Cells are texts, as in CSV files; of a JSON number the text is that of the line. The same lines give the same ids.

    Raises
    ------
    TableError
        For lines that cannot be read, with their number; the batches before stay.
    """
    text = io.TextIOWrapper(stream, encoding=_known_encoding(reading.encoding), newline="")
    try:
        first = next((line for line in text if line.strip("\ufeff \t\r\n")), "").removeprefix("\ufeff")
        if not first:
            raise TableError(f"{_NAME} is empty; bring a header and rows, or JSON lines")
        form = reading.form or ("jsonl" if first.lstrip().startswith("{") else "csv")
        tables = _json_tables(first, text, reading) if form == "jsonl" else _csv_tables(first, text, reading.rows)
        yield from cut_batches(tables, reading.rows, source=reading.source)
    except UnicodeDecodeError:
        raise TableError(f"{_NAME} is not {reading.encoding}; name its encoding with --encoding") from None
    finally:
        text.detach()


def _known_encoding(encoding: str) -> str:
    try:
        codec = codecs.lookup(encoding)
    except LookupError:
        raise OptionError(f"there is no encoding {encoding!r}; try utf-8, latin-1 or cp1252") from None
    return codec.name


def _csv_tables(first: str, text: TextIO, rows: int) -> Iterator[pa.Table]:
    """Read rows of CSV, so many at a time."""
    delimiter = max(_DELIMITERS, key=first.count) if any(mark in first for mark in _DELIMITERS) else ","
    reader = csv.reader(itertools.chain([first], text), delimiter=delimiter)
    try:
        names = next(reader)
        _check_names(names)
        cells = (row for row in reader if row or len(names) == 1)
        while held := list(itertools.islice(cells, rows)):
            ragged = sum(len(row) != len(names) for row in held)
            if ragged:
                raise TableError(
                    f"{ragged} rows before line {reader.line_num + 1} of {_NAME} do not have the {len(names)} cells of "
                    "the header; mend them"
                )
            yield pa.table([pa.array(column, pa.string()) for column in zip(*held, strict=True)], names=names)
    except csv.Error:
        raise TableError(f"line {reader.line_num} of {_NAME} cannot be read as CSV; mend it") from None


def _check_names(names: list[str]) -> None:
    nameless = sum(not name.strip() for name in names)
    if nameless or len(set(names)) < len(names):
        raise TableError(f"the header of {_NAME} has {nameless} empty names, or the same name twice; mend it")


def _json_tables(first: str, text: TextIO, reading: Reading) -> Iterator[pa.Table]:
    """Read one record a line, so many at a time."""
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
            f"line {number} of {_NAME} is not a JSON object of texts, numbers, true, false and null; mend it"
        )
    return {_whole(name): None if cell is None else _whole(cell) for name, cell in record.items()}


def _whole(cell: str | bool) -> str:
    """Write a cell as text; halves of a character, which JSON can name and no text holds, become question marks."""
    text = str(cell).lower() if isinstance(cell, bool) else cell
    return text.encode("utf-8", "replace").decode()
