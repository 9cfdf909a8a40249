"""Files and folders of files: Parquet, CSV and Arrow, each row counted once however often it is given."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from sfumato.errors import TableError
from sfumato.scale.source import Source, form_of, open_source
from sfumato.stream.batches import Batch, batch_id, cut_batches, place_of
from sfumato.stream.connectors.reading import Reading

__all__ = ["files_of", "read_file_batches", "read_folder"]


def read_file_batches(path: Path, reading: Reading) -> Iterator[Batch]:
    """Give the batches of a file; one that has grown at its end goes on from where it was."""
    file = open_source(path, encoding=reading.encoding)
    yield from cut_batches(file.batches(file.schema.names, reading.rows), reading.rows, source=reading.source)


def files_of(folder: Path) -> list[Path]:
    """List the tables in a folder by name; hidden files and those of other endings are no tables."""
    return [path for path in sorted(folder.iterdir()) if path.is_file() and _is_table(path)]


def read_folder(folder: Path, reading: Reading) -> Iterator[Batch]:
    """Give the batches of all files in a folder, by name; a file that came since is given the next time.

    A file is known by its name, so two files may hold the same rows. Only a file that the state knows already from
    elsewhere under the bare source, such as the one that it was begun with, keeps that source.
    """
    paths = files_of(folder)
    if not paths:
        raise TableError(f"there is no table in the folder {str(folder)!r}; bring .csv, .parquet or .arrow files")
    beginnings = {rows for identity, rows in reading.known.items() if place_of(identity) == (reading.source, 0)}
    for path in paths:
        file = open_source(path, encoding=reading.encoding)
        if not _is_known(file, beginnings, reading):
            own = f"{reading.source}/{path.name}" if reading.source else path.name
            yield from read_file_batches(path, dataclasses.replace(reading, source=own))
        else:
            yield from read_file_batches(path, reading)


def _is_table(path: Path) -> bool:
    if path.name.startswith((".", "_")):
        return False
    try:
        form_of(path)
    except TableError:
        return False
    return True


def _is_known(file: Source, beginnings: set[int], reading: Reading) -> bool:
    """Tell whether the first batch of a file, or its beginning, was counted under the bare source."""
    if not beginnings:
        return False
    first = next(cut_batches(file.batches(file.schema.names, reading.rows), reading.rows), None)
    return first is not None and any(
        batch_id(0, first[1].slice(0, rows), source=reading.source) in reading.known
        for rows in beginnings
        if rows <= first[1].num_rows
    )
