"""Tables as people have them: a file, standard input or a database, and in words how it was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.errors import OptionError, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.tables.files import FileForm

__all__ = ["read_input", "read_people", "reading_words"]


def read_input(
    source: str,
    *,
    encoding: str,
    query: str | None,
    most_bytes: int | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> tuple[pa.Table, FileForm]:
    """Read a file, standard input (``-``) or a database URL; texts stay as they are."""
    from sfumato.tables.files import read_file, read_sql

    if "://" in source:
        if query is None:
            raise OptionError("a database URL needs --query, for example --query 'select * from people'")
        if delimiter is not None or sheet is not None:
            raise OptionError("--delimiter and --sheet are for files; a database has none")
        return read_sql(source, query)
    if query is not None:
        raise OptionError("--query is for a database URL; a file is read whole")
    return read_file(source, encoding=encoding, most_bytes=most_bytes, delimiter=delimiter, sheet=sheet)


def read_people(
    source: str,
    *,
    encoding: str = "utf-8",
    query: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
    missing: tuple[str, ...] = (),
    most_bytes: int | None = None,
) -> tuple[pa.Table, FileForm]:
    """Read a table as people write it: also numbers such as 1.234,50, where a CSV file holds them.

    Texts in ``missing`` mean a missing cell, besides the usual marks.
    """
    from sfumato.tables.files import FileFormat, read_numerals

    table, form = read_input(
        source, encoding=encoding, query=query, delimiter=delimiter, sheet=sheet, most_bytes=most_bytes
    )
    if form.sheet is not None and delimiter is not None:
        raise OptionError("--delimiter is for CSV; this file has none")
    if form.format is FileFormat.CSV:
        return read_numerals(table, form, decimal, missing)
    if decimal is not None or delimiter is not None:
        raise OptionError("--decimal and --delimiter are for CSV; this file says itself what its cells are")
    return table, form


def reading_words(source: str, form: FileForm) -> str:
    """Say how a table was read, where that was found out and not told: delimiter, and how numbers are written."""
    from sfumato.tables.files import FileFormat

    words = [*form.notes, *form.numerals.sentences()]
    if form.sheet is not None:
        others = ", ".join(map(shown, form.sheet.others))
        more = f" The file also has {others}: --sheet reads another." if others else ""
        words.insert(0, f"{form.sheet.what} {shown(form.sheet.name)}.{more}")
    elif form.format is FileFormat.CSV and "://" not in source:
        marks = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}.get(form.delimiter or "", form.delimiter)
        words.insert(0, f"CSV with {marks} between cells.")
    return "\n".join(words)
