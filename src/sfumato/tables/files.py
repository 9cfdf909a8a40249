"""Read and write tables: CSV, Parquet, Arrow, workbooks, SQLite, standard input and databases.

CSV cells are read as texts and stay so until the schema says what they mean: nothing is guessed silently, and a
release can be written the way its original was.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
import warnings
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from sfumato.core.errors import Notice, OptionError, TableError, shown
from sfumato.tables.cells import MISSING_MARKS, is_text, plain
from sfumato.tables.header import Header, csv_header, refuse_alike, to_utf8
from sfumato.tables.numerals import Numerals, plain_numerals
from sfumato.tables.spreadsheet import quote_formulas, write_opendocument, write_workbook
from sfumato.tables.workbook import (
    MOST_CELLS,
    SQLITE,
    WORKBOOKS,
    Sheet,
    read_query,
    read_sqlite,
    read_workbook,
    write_sqlite,
)

if TYPE_CHECKING:
    from sfumato.tables.reading import FileReading

__all__ = [
    "ENDINGS",
    "CsvWriter",
    "FileForm",
    "FileFormat",
    "bytes_within",
    "check_names",
    "describe_detected",
    "ending_of",
    "read_file",
    "read_numerals",
    "read_sql",
    "read_table",
    "read_table_as",
    "write_file",
]

_SMALL = 2**22  # bytes up to which threads gain nothing, and may outlive a process that ends at once


class FileFormat(StrEnum):
    """Format of a table file."""

    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    XLSX = "xlsx"
    ODS = "ods"
    SQLITE = "sqlite"


@dataclass(frozen=True)
class FileForm:
    """How a table was written: format, delimiter and number format of a CSV file, sheet of a workbook.

    What came from a workbook or a database is released as CSV by default. ``header_row`` is the row of the header, in
    a workbook or in CSV, ``found`` what was detected of encoding, sheet and header, a sentence each.
    """

    format: FileFormat
    delimiter: str = ","
    numerals: Numerals = field(default_factory=Numerals)
    sheet: Sheet | None = None
    notes: tuple[str, ...] = ()  # what became of columns without a name, a sentence each
    encoding: str = "utf-8"
    header_row: int = 1
    found: tuple[str, ...] = ()

    @property
    def decimal(self) -> Literal[","] | None:
        """Decimal mark, if the numbers of the table settle it."""
        return "," if self.numerals.commas else None

    @property
    def is_detected(self) -> bool:
        """Whether sheet, encoding, header or number format were detected and may be wrong."""
        detected = self.found or self.notes or self.numerals.sentences()
        return bool(detected) or self.sheet is not None

    @property
    def likely_decimal(self) -> str | None:
        """Decimal mark if no number settles it: a comma if semicolons separate the cells."""
        return "," if self.delimiter == ";" else None


ENDINGS = {
    ".csv": FileFormat.CSV,
    ".csv.gz": FileFormat.CSV,
    ".parquet": FileFormat.PARQUET,
    ".arrow": FileFormat.ARROW,
    ".feather": FileFormat.ARROW,
}
"""How a file is written, by the ending of its name."""

_BLOCK = 1 << 22


def read_file(
    source: str | Path,
    *,
    encoding: str | None = None,
    most_bytes: int | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    most_cells: int = MOST_CELLS,
) -> tuple[pa.Table, FileForm]:
    """Read a table from a file, or CSV from standard input if the source is ``-``.

    Parameters
    ----------
    source : path or "-"
    encoding : str, optional
        Of CSV; by default UTF-8, or what is detected if it is not.
    most_bytes : int, optional
        Bytes that the file may have and unpack to; for one that someone else wrote.
    delimiter : str, optional
        Of CSV; without it, the most frequent of comma, semicolon, tab and bar in the header.
    sheet : str, optional
        Of a workbook, by default the first that holds a table; or a table of an SQLite file, by default its only one.
    header_row : int, optional
        Row of a workbook or line of CSV that names the columns, counted from 1; by default the first, or the one below
        a title.
    most_cells : int
        Cells that a sheet may span, or a table of an SQLite file may have.

    Raises
    ------
    TableError
        For a file that is not there, empty, ragged, of no known ending, not what its ending says, or too large.
    """
    workbook = str(source).lower().endswith((*WORKBOOKS, *SQLITE))
    if sheet is not None and not workbook:
        raise OptionError("a sheet is of a workbook, .xlsx or .ods, or a table of an SQLite file; drop --sheet")
    if header_row is not None and header_row < 1:
        raise OptionError("rows are counted from 1; correct --header-row")
    if str(source) == "-":
        data = sys.stdin.buffer.read(-1 if most_bytes is None else most_bytes + 1)
        _refuse_larger("standard input", len(data), most_bytes, "has")
        return _read_csv(data, "standard input", encoding, delimiter, header_row)
    path = Path(source)
    ending = ending_of(path)
    try:
        if not path.exists():
            raise TableError(f"there is no file {shown(path)}; check its name")
        if path.is_dir():
            raise TableError(f"{shown(path)} is a folder; name a file in it")
        if not path.is_file() or (ending is None and not workbook):
            known = ", ".join((*ENDINGS, *WORKBOOKS, *SQLITE))
            raise TableError(f"{shown(path)} is not a file of a known kind; known endings are {known}")
        csv_or_sheet = path.name.lower().endswith(WORKBOOKS) or ENDINGS.get(ending or "") is FileFormat.CSV
        if header_row not in (None, 1) and not csv_or_sheet:
            raise OptionError(f"{shown(path)} names its columns itself; drop --header-row")
        if workbook:
            return _read_sheet(path, sheet, header_row, most_bytes, most_cells)
        assert ending is not None
        if ENDINGS[ending] is FileFormat.CSV:
            data = bytes_within(path, most_bytes)
            return _read_csv(data, repr(str(path)), encoding, delimiter, header_row)
        if ENDINGS[ending] is FileFormat.PARQUET:
            table = pa.parquet.read_table(str(path)) if most_bytes is None else _parquet_within(path, most_bytes)
        else:
            table = pa.feather.read_table(str(path))
            _refuse_larger(shown(path), table.nbytes, most_bytes)
        table.validate(full=True)
        table.column_names  # noqa: B018 (decodes the names)
    except UnicodeEncodeError:
        raise TableError(f"the name {shown(path)} is not UTF-8 text; rename the file or its folder") from None
    except PermissionError:
        raise TableError(f"{str(path)!r} may not be read by you; ask for permission") from None
    except (pa.ArrowException, gzip.BadGzipFile, EOFError, OSError, zlib.error, UnicodeDecodeError):
        raise TableError(f"{str(path)!r} is not a readable {ending} file; it may be damaged or misnamed") from None
    return _check_table(table, repr(str(path))), FileForm(ENDINGS[ending])


def read_numerals(
    table: pa.Table, form: FileForm, decimal: str | None = None, missing: tuple[str, ...] = ()
) -> tuple[pa.Table, FileForm]:
    """Rewrite texts such as 1.234,50 as numbers with a decimal point; return the form with what was detected.

    ``decimal`` is the mark before decimals, where it is known, ``missing`` what means a missing cell besides the usual
    marks. A file with semicolons between cells is taken to have
    commas before decimals where its numbers do not say. Numbers that are ``"plain"`` stay as they are.
    """
    if decimal == "plain":
        return table, form
    table, numerals = plain_numerals(table, (*MISSING_MARKS, *missing), decimal=decimal, likely=form.likely_decimal)
    return table, replace(form, numerals=numerals)


def _read_sheet(
    path: Path, sheet: str | None, header_row: int | None, most_bytes: int | None, most_cells: int
) -> tuple[pa.Table, FileForm]:
    """Read a sheet of a workbook, or a table of an SQLite file."""
    header, found = Header(1), tuple[str, ...]()
    if path.name.lower().endswith(SQLITE):
        names, columns, chosen = read_sqlite(path, sheet, most_bytes=most_bytes, most_cells=most_cells)
        name = shown(path)
    else:
        names, columns, chosen, header = read_workbook(
            path, sheet, header_row=header_row, most_bytes=most_bytes, most_cells=most_cells
        )
        name = f"the sheet {shown(chosen.name)} of {shown(path)}"
        found = describe_detected("row", header)
    _check_header(names, name, header)
    table, notes = _name_columns(pa.table(columns, names=names))
    form = FileForm(FileFormat.CSV, sheet=chosen, notes=notes, header_row=header.row, found=found)
    return _check_table(table, name), form


def describe_detected(unit: str, header: Header, encoding: str | None = None) -> tuple[str, ...]:
    """Describe what was detected: the encoding, and the header row if rows above it are skipped."""
    words = []
    if encoding is not None:
        words.append(f"Not UTF-8: read as {encoding} (detected); --encoding sets another.")
    if header.above:
        above = f"{header.above} {unit} above it is" if header.above == 1 else f"{header.above} {unit}s above it are"
        words.append(f"The header is {unit} {header.row}; {above} skipped; --header-row names another.")
    return tuple(words)


def read_table(source: str | Path, missing: tuple[str, ...] = ()) -> pa.Table:
    """Read a table from a file, including local number formats of CSV."""
    return read_table_as(source, missing)[0]


def read_table_as(
    source: str | Path, missing: tuple[str, ...] = (), reading: FileReading | None = None
) -> tuple[pa.Table, FileForm]:
    """Read a table as `read_table` does, and return how it was written.

    What was detected is reported as a warning.
    """
    given = {} if reading is None else reading.given
    decimal = given.pop("decimal", None)
    table, form = read_file(source, **given)
    for words in form.found:
        warnings.warn(Notice(f"{shown(source)}: {words.rstrip('.')}"), stacklevel=4)
    return read_numerals(table, form, decimal, missing) if form.format is FileFormat.CSV else (table, form)


def ending_of(path: Path) -> str | None:
    """Longest file ending that names a format; None if there is none."""
    return max((ending for ending in ENDINGS if path.name.lower().endswith(ending)), key=len, default=None)


def bytes_within(path: Path, most_bytes: int | None) -> bytes:
    """Bytes of a file, decompressed within a limit."""
    packed = path.name.lower().endswith(".gz")
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        data = bytes(file.read(-1 if most_bytes is None else most_bytes + 1))
    _refuse_larger(shown(path), len(data), most_bytes, "unpacks to" if packed else "has")
    return data


def _parquet_within(path: Path, most_bytes: int) -> pa.Table:
    """Read Parquet batch by batch, because its metadata does not state the size of repeated cells."""
    parts: list[pa.RecordBatch] = []
    size = 0
    with pa.parquet.ParquetFile(path) as file:
        for part in file.iter_batches(use_threads=False):
            size += part.nbytes
            _refuse_larger(shown(path), size, most_bytes)
            parts.append(part)
        return pa.Table.from_batches(parts, file.schema_arrow)


def _refuse_larger(name: str, size: int, most_bytes: int | None, verb: str = "unpacks to") -> None:
    if most_bytes is not None and size > most_bytes:
        most = f"{most_bytes >> 20} MiB" if most_bytes >> 20 else f"{most_bytes} bytes"
        raise TableError(f"{name} {verb} more than {most}; if that is right, grant it more with --most-bytes")


def _read_csv(
    data: bytes, name: str, encoding: str | None, delimiter: str | None, header_row: int | None
) -> tuple[pa.Table, FileForm]:
    if not data or data.isspace():
        raise TableError(f"{name} is empty; it needs a header and rows")
    data, known, detected = to_utf8(data, name, encoding)
    if not data.strip():
        raise TableError(f"{name} is empty; it needs a header and rows")
    text = data[: 1 << 20].decode("utf-8", errors="ignore")
    delimiter, names, header = csv_header(text, name, delimiter, header_row)
    data = data[_line_offset(text, header.row) :]
    _check_header(names, name, header)
    table, notes = _name_columns(_parse(data, delimiter, names, name, header.row - 1))
    found = describe_detected("line", header, known if detected and known != "utf-16" else None)
    form = FileForm(FileFormat.CSV, delimiter, notes=notes, encoding=known, header_row=header.row, found=found)
    return _check_table(table, name), form


def _line_offset(text: str, line: int) -> int:
    """Offset in bytes of a line of UTF-8 text."""
    lines = io.StringIO(text, newline="")
    return sum(len(lines.readline().encode()) for _ in range(1, line))


def _check_header(names: list[str], name: str, header: Header) -> None:
    """Refuse duplicate column names; unnamed columns are handled once it is known whether they are empty."""
    try:
        check_names([column for column in names if column.strip()], name)
    except TableError as wrong:
        if header.row == 1 and any(column.strip() for column in names):
            raise
        raise TableError(f"{wrong}, or name another row as the header with --header-row") from None


def _parse(data: bytes, delimiter: str, header: list[str], name: str, before: int) -> pa.Table:
    """Read all cells as texts; count and refuse rows with too few or too many cells.

    ``before`` counts the lines above the header.
    """
    ragged: list[int | None] = []

    def skip(row: Any) -> str:
        ragged.append(row.number)
        return "skip"

    def read(*, threads: bool) -> pa.Table:
        return pa.csv.read_csv(
            pa.py_buffer(data),
            read_options=pa.csv.ReadOptions(use_threads=threads),
            parse_options=pa.csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=b'"' in data,
                ignore_empty_lines=len(header) > 1,
                invalid_row_handler=skip,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False
            ),
        )

    try:
        table = read(threads=len(data) > _SMALL)
        if ragged:
            ragged.clear()
            read(threads=False)  # only one thread knows row numbers
    except pa.ArrowException:  # Arrow's own words would quote a row
        raise TableError(
            f"{name} cannot be read as CSV with delimiter {delimiter!r}; check quotes and delimiters"
        ) from None
    if ragged and not table.num_rows:
        raise TableError(
            f"line {before + 1} of {name} has {len(header)} cells and no row below has as many; if another line "
            "names the columns, give it with --header-row"
        )
    if ragged and ragged[0] is not None:
        rows, have, them = ("row", "has", "it") if len(ragged) == 1 else ("rows", "have", "them")
        raise TableError(
            f"{len(ragged)} {rows} of {name} {have} more or fewer cells than the header, which has {len(header)}, the "
            f"first in line {ragged[0] + before}; correct {them}"
        )
    return table


def _check_table(table: pa.Table, name: str) -> pa.Table:
    check_names(table.column_names, name)
    if table.num_rows == 0:
        raise TableError(f"{name} has a header but no rows; provide at least as many rows as the highest privacy level")
    return table


def read_sql(url: str, query: str) -> tuple[pa.Table, FileForm]:
    """Read the rows of a query from a database, through SQLAlchemy."""
    names, columns = read_query(url, query)
    check_names(names, "the query's result")
    arrays = []
    for name, column in zip(names, columns, strict=True):
        try:
            arrays.append(pa.array(list(column)))
        except (pa.ArrowException, TypeError, ValueError):
            raise TableError(
                f"column {name!r} of the query's result mixes types; cast it to one in the query"
            ) from None
    return _check_table(pa.table(arrays, names=names), "the query's result"), FileForm(FileFormat.CSV)


def write_file(table: pa.Table, path: Path, form: FileForm, *, spreadsheet_safe: bool = False) -> None:
    """Write a table; texts are quoted only if a cell needs it.

    CSV for a spreadsheet has an apostrophe before what it would take for a formula.
    """
    if form.format is FileFormat.PARQUET:
        pa.parquet.write_table(table, str(path))
    elif form.format is FileFormat.ARROW:
        pa.feather.write_feather(table, str(path), compression="uncompressed")
    elif form.format is FileFormat.XLSX:
        write_workbook(table, path)
    elif form.format is FileFormat.ODS:
        write_opendocument(table, path)
    elif form.format is FileFormat.SQLITE:
        write_sqlite(table, path)
    else:
        columns = [_csv_cells(column.combine_chunks()) for column in table.columns]
        plainly = pa.table(columns, names=table.column_names)
        with path.open("wb") as file:
            CsvWriter(file, plainly.schema, form.delimiter, spreadsheet_safe=spreadsheet_safe).write(plainly)


def _csv_cells(cells: pa.Array) -> pa.Array:
    """Cells as CSV writes them: dictionaries decoded, durations in seconds, times of day as text."""
    if pa.types.is_duration(cells.type):
        return plain(cells)
    if pa.types.is_time(cells.type):
        return cells.cast(pa.string())
    return pc.cast(cells, cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells


class CsvWriter:
    """Writes a table as CSV, whole or in parts; quotes texts only if a cell needs it."""

    def __init__(self, file: Any, schema: pa.Schema, delimiter: str, *, spreadsheet_safe: bool) -> None:
        self.file, self.delimiter, self.safe = file, delimiter, spreadsheet_safe
        names = quote_formulas(schema.empty_table()).column_names if spreadsheet_safe else schema.names
        self.texts = [name for name, of in zip(names, schema, strict=True) if is_text(of.type)]
        self.file.write(self._lines([names]))

    def write(self, part: pa.RecordBatch | pa.Table) -> None:
        """Add rows."""
        if self.safe:
            part = quote_formulas(part if isinstance(part, pa.Table) else pa.Table.from_batches([part]))
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
        plainly = csv.writer(text, delimiter=self.delimiter, lineterminator="\n")
        whole = csv.writer(text, delimiter=self.delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
        for row in rows:  # a return ends a line for readers, and not every version of the writer quotes it
            (whole if any("\r" in cell for cell in row) else plainly).writerow(row)
        return text.getvalue().encode()


_ROW = "row"  # what the first column is called where it has no name: R and pandas write row names so


def _name_columns(table: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
    """The table without empty unnamed columns and with its first column named ``row``, and notes on both.

    Spreadsheets leave empty columns behind; R and pandas write the names of rows as a first column without one. Any
    other column without a name stays as it is.

    Examples
    --------
    >>> table, notes = _name_columns(pa.Table.from_arrays([["1", "2"], ["a", "b"], [" ", ""]], names=["", "town", ""]))
    >>> table.to_pydict()
    {'row': ['1', '2'], 'town': ['a', 'b']}
    >>> notes
    ("The first column has no name: it is called 'row'.", 'A column without name and cells is left out.')
    """
    names = list(table.column_names)
    nameless = [place for place, name in enumerate(names) if not name.strip()]
    empty = {place for place in nameless if _is_blank(table.column(place))}
    notes = []
    if nameless and nameless[0] == 0 and 0 not in empty and _ROW not in names:
        names[0] = _ROW
        notes.append(f"The first column has no name: it is called {_ROW!r}.")
    if empty and len(empty) < len(names):
        words = (
            "A column without name and cells is"
            if len(empty) == 1
            else f"{len(empty)} columns without name and cells are"
        )
        notes.append(f"{words} left out.")
        kept = [place for place in range(len(names)) if place not in empty]
        table, names = table.select(kept), [names[place] for place in kept]
    return table.rename_columns(names), tuple(notes)


def _is_blank(column: pa.ChunkedArray) -> bool:
    if not is_text(column.type):
        return bool(column.null_count == len(column))
    return not pc.any(pc.not_equal(pc.utf8_trim_whitespace(column), "")).as_py()


def check_names(names: list[str], name: str) -> None:
    """Refuse a table without columns, with unnamed columns, or with duplicate names."""
    if not names:
        raise TableError(f"{name} has no columns; it needs a header and rows")
    nameless = [place for place, column in enumerate(names, 1) if not column.strip()]
    if nameless:
        if len(nameless) == 1:
            raise TableError(f"{name} has 1 column without a name, number {nameless[0]}; name it")
        title = ", or give the row of the header with --header-row" if 2 * len(nameless) > len(names) else ""
        raise TableError(
            f"{name} has {len(nameless)} columns without a name, the first is number {nameless[0]}; name them{title}"
        )
    twice = sorted((column, times) for column, times in Counter(names).items() if times > 1)
    if twice:
        raise TableError(f"column {twice[0][0]!r} stands {twice[0][1]} times in {name}; name it once")
    refuse_alike(names, name)
