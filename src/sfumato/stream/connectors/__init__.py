"""Where a stream's records come from: files, folders, standard input, and Redis streams.

Every connector gives batches in an order that does not change, under ids that never stand for other rows. The next
batch is asked for only once the one before is on disk, so what a connector does after handing a batch out, such as
acknowledging it to a server, happens after the commit and never before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sfumato.stream.batches import Batch
from sfumato.stream.connectors.files import read_file_batches, read_folder
from sfumato.stream.connectors.lines import read_standard_input
from sfumato.stream.connectors.reading import Reading

__all__ = ["Reading", "read_batches"]


def read_batches(place: str | Path, reading: Reading) -> Iterator[Batch]:
    """Give the batches of one input.

    Parameters
    ----------
    place : str or path
        A file or a folder of files, ``-`` for standard input, or ``redis://HOST[:PORT][/DB]/STREAM``.
    reading : Reading
        How it is read, and what the state knows.

    Raises
    ------
    TableError
        For an input that is not there or cannot be read; the batches before it stay.
    OptionError
        For a URL that is not understood.
    """
    name = str(place)
    if name == "-":
        return read_standard_input(reading)
    if "://" in name:
        from sfumato.stream.connectors.redis_stream import read_redis

        return read_redis(name, reading)
    return read_folder(Path(name), reading) if Path(name).is_dir() else read_file_batches(Path(name), reading)
