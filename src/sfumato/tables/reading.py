"""Read a table from a file, standard input or a database, and describe how it was read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from sfumato.core.arguments import Panel, option
from sfumato.core.errors import OptionError, shown, spelled

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.tables.files import FileForm
    from sfumato.tables.workbook import Sheet

__all__ = ["READING_OPTIONS", "FileReading", "describe_reading", "read_input", "read_people"]

_ALL = ("sanitize", "evaluate", "tune")
_WORKBOOKS = (".xlsx", ".ods")


@dataclass(frozen=True)
class FileReading:
    """Options for reading a file; what is not given is detected.

    Parameters
    ----------
    encoding : str, optional
        Of CSV.
    delimiter : str, optional
        Between cells of CSV.
    decimal : {".", ",", "plain"}, optional
        Mark before decimals of CSV; numbers that are plain are read one by one, without looking at others.
    sheet : str, optional
        Of a workbook, or a table of an SQLite file.
    header_row : int, optional
        Row of a workbook, or line of CSV, that names the columns, counted from 1.
    """

    encoding: str | None = option(
        None,
        "Encoding of CSV, such as utf-8, cp1252 or latin-1.  [default: utf-8, or detected]",
        Panel.INPUT,
        _ALL,
        metavar="NAME",
    )
    delimiter: str | None = option(
        None, "Delimiter of CSV.  [default: detected from the header]", Panel.INPUT, _ALL, metavar="MARK"
    )
    decimal: Literal[".", ",", "plain"] | None = option(
        None, "Decimal separator of CSV.  [default: detected from the numbers]", Panel.INPUT, _ALL, choices=(".", ",")
    )
    sheet: str | None = option(
        None,
        "Sheet of a workbook, or table of an SQLite file.  [default: the first that contains a table]",
        Panel.INPUT,
        _ALL,
        metavar="NAME",
    )
    header_row: int | None = option(
        None,
        "Row of a workbook, or line of CSV, with the column names, counted from 1.  [default: the first, or the "
        "one below a title]",
        Panel.INPUT,
        _ALL,
        least=1,
        metavar="N",
    )

    @property
    def given(self) -> dict[str, Any]:
        """The given options, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def or_else(self, other: FileReading) -> FileReading:
        """The given options, completed by others."""
        return FileReading(**{**other.given, **self.given})

    def without_detection(self, source: str) -> FileReading:
        """Options that read a file the same way whatever its rows hold."""
        name = source.lower()
        if source != "-" and not name.endswith((".csv", ".csv.gz")):
            return self.or_else(FileReading(header_row=1)) if name.endswith(_WORKBOOKS) else self
        if self.decimal == ",":
            raise OptionError("this method reads numbers with a decimal point only; rewrite the file, or take Parquet")
        return replace(self.or_else(FileReading(encoding="utf-8", delimiter=",", header_row=1)), decimal="plain")

    def of_other_file(self, form: FileForm) -> FileReading:
        """Options that read another file than INPUT: written alike, but with a sheet and a header of its own."""
        return replace(self, sheet=None, header_row=None, decimal=self.decimal or form.decimal)

    def repeated(self, form: FileForm) -> FileReading:
        """Options that read the file again in the same way: given ones, and unusual detected ones."""
        sheet = form.sheet.name if form.sheet is not None and form.sheet.detected else None
        row = form.header_row if form.header_row > 1 else None
        encoding = form.encoding if form.encoding != "utf-8" else None
        return self.or_else(FileReading(encoding=encoding, sheet=sheet, header_row=row))


READING_OPTIONS = tuple(FileReading.__dataclass_fields__)
"""Options that say how a file is read, besides the query of a database."""


def read_input(
    source: str, reading: FileReading | None = None, *, query: str | None = None, most_bytes: int | None = None
) -> tuple[pa.Table, FileForm]:
    """Read a file, standard input (``-``) or a database URL; texts stay unchanged."""
    from sfumato.tables.files import read_file, read_sql

    reading = reading or FileReading()
    sheet, row = reading.sheet, reading.header_row
    if "://" in source:
        if query is None:
            raise OptionError("a database URL needs --query, for example --query 'select * from people'")
        if reading.delimiter is not None or sheet is not None or row is not None:
            raise OptionError("--delimiter, --sheet and --header-row are for files; a database has none")
        return read_sql(source, query)
    if query is not None:
        raise OptionError("--query is for a database URL; a file is read whole")
    encoding, delimiter = reading.encoding, reading.delimiter
    return read_file(source, encoding=encoding, most_bytes=most_bytes, delimiter=delimiter, sheet=sheet, header_row=row)


def read_people(
    source: str,
    reading: FileReading | None = None,
    *,
    query: str | None = None,
    missing: tuple[str, ...] = (),
    most_bytes: int | None = None,
) -> tuple[pa.Table, FileForm]:
    """Read a table including local number formats such as 1.234,50 in CSV files.

    Texts in ``missing`` mean a missing cell, besides the usual marks.
    """
    from sfumato.tables.files import FileFormat, read_numerals

    reading = reading or FileReading()
    table, form = read_input(source, reading, query=query, most_bytes=most_bytes)
    if form.sheet is not None and reading.delimiter is not None:
        raise OptionError("--delimiter is for CSV; this file has none")
    if form.format is FileFormat.CSV:
        return read_numerals(table, form, reading.decimal, missing)
    if reading.decimal is not None or reading.delimiter is not None:
        raise OptionError("--decimal and --delimiter are for CSV; this file states the types of its cells")
    return table, form


def describe_reading(source: str, form: FileForm) -> str:
    """Describe what was detected in reading a table: sheet, encoding, header, delimiter and number format."""
    from sfumato.tables.files import FileFormat

    words = [*form.found, *form.notes, *form.numerals.sentences()]
    if form.sheet is not None:
        words.insert(0, _sheet_words(form.sheet))
    elif form.format is FileFormat.CSV and "://" not in source:
        marks = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}.get(form.delimiter or "", form.delimiter)
        words.insert(0, f"CSV with {marks} as delimiter.")
    return spelled("\n".join(words))


def _sheet_words(sheet: Sheet) -> str:
    """Name the sheet that was read, and the others."""
    if sheet.detected:
        first, *others = sheet.others
        more = f"; there are also {', '.join(map(shown, others))}" if others else ""
        return f"Sheet {shown(sheet.name)}: the first, {shown(first)}, holds no table{more}; --sheet reads another."
    listed = ", ".join(map(shown, sheet.others))
    more = f" The file also has {listed}: --sheet reads another." if listed else ""
    return f"{sheet.what} {shown(sheet.name)}.{more}"
