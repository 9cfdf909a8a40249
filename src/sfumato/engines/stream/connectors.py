"""Where a stream's records come from: files, folders, standard input, and Redis streams.

Every connector gives batches in an order that does not change, under ids that never stand for other rows. The next
batch is asked for only once the one before is on disk, so what a connector does after handing a batch out, such as
acknowledging it to a server, happens after the commit and never before.

The position in a Redis stream lies in the state: the id of a batch names its first and last entry, and entries never
change. So the server's own memory is no part of what makes a record count once; its consumer group only learns, after
each commit, how far the state has come, for people who look at the server and trim it.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import logging
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

from sfumato.core.documents import Unparsable, parse_json
from sfumato.core.errors import OptionError, TableError, shown
from sfumato.engines.chunks.source import Source, form_of, open_source
from sfumato.engines.stream.entries import Batch, batch_id, cut_batches, place_of
from sfumato.engines.stream.settings import StateError
from sfumato.tables.encodings import codec_name
from sfumato.tables.numerals import Numerals, rewrite_numerals

if TYPE_CHECKING:
    import redis

__all__ = ["ReadOptions", "RedisPlace", "read_batches", "read_lines", "read_redis"]

_FORMS = ("csv", "jsonl")
"""How standard input may be written."""

_DELIMITERS = ",;\t|"
_NAME = "standard input"


@dataclass(frozen=True)
class ReadOptions:
    """What a connector is told."""

    rows: int  # rows of a batch, always the same for one state
    # the columns of the schema, for records that name their own fields: one that lacks is a missing cell, one that the
    # schema does not know is left out. By default the fields of the first record
    columns: tuple[str, ...] | None = None
    # ids of the batches that the state has counted, with the rows of each; may grow while it is read
    known: Mapping[str, int] = field(default_factory=dict, repr=False)
    awaited: Collection[str] = ()  # ids among them whose records wait, were in memory only, and must be given again
    source: str = ""  # goes into the ids, to tell inputs apart that may hold the same rows
    encoding: str | None = None  # of CSV and JSON lines, by default UTF-8, or what is detected of a file
    header_row: int | None = None  # line of CSV that names the columns
    marks: Mapping[str, str] = field(default_factory=dict)  # decimal marks of columns of CSV
    form: str | None = None  # {"csv", "jsonl"}: how standard input is written, by default as its first character tells
    follow: bool = False  # wait for more at the end of a Redis stream
    group: str = "sfumato"  # the consumer group that a Redis server remembers this state by

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
            raise TableError(f"{_NAME} is empty; bring a header and rows, or JSON lines")
        form = reading.form or ("jsonl" if first.lstrip().startswith("{") else "csv")
        if form == "jsonl":
            if reading.header_row is not None:
                raise OptionError("JSON lines name their fields themselves; leave out --header-row")
            tables = _json_tables(first, text, reading)
        else:
            tables = (rewrite_numerals(part, reading.marks) for part in _csv_tables(first, text, reading.rows))
        yield from cut_batches(tables, reading.rows, source=reading.source)
    except UnicodeDecodeError:
        raise TableError(f"{_NAME} is not {encoding}; name its encoding with --encoding") from None
    finally:
        text.detach()


def _csv_tables(first: str, text: TextIO, rows: int) -> Iterator[pa.Table]:
    """Read rows of CSV, so many at a time."""
    delimiter = max(_DELIMITERS, key=first.count) if any(mark in first for mark in _DELIMITERS) else ","
    reader = csv.reader(itertools.chain([first], text), delimiter=delimiter)
    try:
        names = next(reader)
        nameless = sum(not name.strip() for name in names)
        if nameless or len(set(names)) < len(names):
            raise TableError(f"the header of {_NAME} has {nameless} empty names, or the same name twice; mend it")
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


def _json_tables(first: str, text: TextIO, reading: ReadOptions) -> Iterator[pa.Table]:
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


def _read_file_batches(path: Path, reading: ReadOptions) -> Iterator[Batch]:
    """Batches of a file; one that has grown at its end goes on from where it was."""
    file = _opened(path, reading)
    yield from cut_batches(file.batches(file.schema.names, reading.rows), reading.rows, source=reading.source)


def _opened(path: Path, reading: ReadOptions) -> Source:
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
        raise TableError(f"there is no table in the folder {str(folder)!r}; bring .csv, .parquet or .arrow files")
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


def _is_known(file: Source, beginnings: set[int], reading: ReadOptions) -> bool:
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
        A file or a folder of files, ``-`` for standard input, or ``redis://HOST[:PORT][/DB]/STREAM``.
    reading : ReadOptions
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
        return read_lines(sys.stdin.buffer, reading)
    if "://" in name:
        return read_redis(name, reading)
    return _read_folder(Path(name), reading) if Path(name).is_dir() else _read_file_batches(Path(name), reading)


_PATIENCE = 10.0  # seconds until a server that does not answer is given up
_WAIT = 1_000  # milliseconds between two looks for an interrupt while following
_START = (0, 0)
_ENTRY = re.compile(r"([0-9]{1,20})(?:-([0-9]{1,20}))?")
_RANGE = re.compile(rf"{_ENTRY.pattern} {_ENTRY.pattern}")
_DATABASE = re.compile(r"[0-9]{1,9}")

EntryId = tuple[int, int]


@dataclass(frozen=True, repr=False)
class RedisPlace:
    """A stream on a server.

    Examples
    --------
    >>> place = RedisPlace.of_url("redis://steward:secret@db.example:6380/2/people")
    >>> place, place.db, place.stream
    (redis://db.example:6380/2/people, 2, 'people')
    """

    host: str
    port: int
    db: int
    stream: str
    user: str | None
    password: str | None
    tls: bool

    def __repr__(self) -> str:
        return f"{'rediss' if self.tls else 'redis'}://{self.host}:{self.port}/{self.db}/{self.stream}"

    @classmethod
    def of_url(cls, url: str) -> RedisPlace:
        """Read ``redis[s]://[USER:PASSWORD@]HOST[:PORT][/DB]/STREAM``.

        Raises
        ------
        OptionError
            For another scheme, or a URL without a stream.
        """
        told = "an input by URL is redis://HOST[:PORT][/DB]/STREAM, or rediss:// for TLS; write it so"
        try:
            parts = urlsplit(url)
            port = parts.port or 6379
        except ValueError:
            raise OptionError(told) from None
        path = [unquote(part) for part in parts.path.split("/") if part]
        if parts.scheme not in ("redis", "rediss") or not parts.hostname or parse_qs(parts.query) or parts.fragment:
            raise OptionError(told)
        db = int(path.pop(0)) if len(path) == 2 and _DATABASE.fullmatch(path[0]) else 0
        if len(path) != 1:
            raise OptionError(told)
        user = unquote(parts.username) if parts.username else None
        password = unquote(parts.password) if parts.password else None
        return cls(parts.hostname, port, db, path[0], user, password, parts.scheme == "rediss")

    def connect(self) -> redis.Redis:
        """Make a client; the first command opens the connection."""
        try:
            import redis
        except ModuleNotFoundError:
            raise OptionError("Redis streams need the client library; pip install 'sfumato[stream]'") from None
        return redis.Redis(
            host=self.host,
            port=self.port,
            db=self.db,
            username=self.user,
            password=self.password,
            ssl=self.tls,
            socket_timeout=_PATIENCE,
            socket_connect_timeout=_PATIENCE,
        )


def read_redis(url: str, reading: ReadOptions) -> Iterator[Batch]:
    """Batches of a Redis stream from where the state stands; each is acknowledged once it is on disk.

    First come the batches whose records wait and must be given again, as long as the stream still holds them. A record
    is an entry, and its fields are the entry's, as texts.

    Raises
    ------
    OptionError
        For a URL that is not understood, or where the client library is not installed.
    TableError
        Where the server does not do what it is asked, or has no such stream.
    StateError
        Where the stream ends before what the state has read of it.
    """
    place = RedisPlace.of_url(url)
    client: Any = place.connect()
    with _plain_errors(place):
        try:
            position = _stand(client, place, reading)
            yield from _once_more(client, place, reading)
            _acknowledge(client, place, reading, position)
            while True:
                entries = client.xrange(place.stream, min=f"({_text(position)}", count=reading.rows)
                if entries:
                    first, last = _entry_id(entries[0][0]), _entry_id(entries[-1][0])
                    yield f"{_prefix(place, reading)}{_text(first)} {_text(last)}", _table(entries, reading)
                    position = last
                    _acknowledge(client, place, reading, position)
                elif reading.follow:
                    client.xread({place.stream: _text(position)}, count=1, block=_WAIT)
                else:
                    return
        finally:
            client.close()


def _once_more(client: Any, place: RedisPlace, reading: ReadOptions) -> Iterator[Batch]:
    """Batches whose records wait, once more."""
    gone = 0
    for identity in sorted(_own_ids(reading.awaited, place, reading), key=_range_of):
        first, last = _range_of(identity)
        entries = client.xrange(place.stream, min=_text(first), max=_text(last))
        if len(entries) == reading.known.get(identity):
            yield identity, _table(entries, reading)
        else:
            gone += 1
    if gone:
        _warn(place, f"no longer holds all entries of {gone} batches whose records wait; they go on waiting")


def _stand(client: Any, place: RedisPlace, reading: ReadOptions) -> EntryId:
    """Find the last entry that the state has counted, and compare it with what the stream holds."""
    if not client.exists(place.stream):
        raise TableError(f"there is no stream {place.stream!r} on the server; check its name, or add the first entry")
    told = client.xinfo_stream(place.stream)
    own = _own_ids(reading.known, place, reading)
    position = max((_range_of(identity)[1] for identity in own), default=_START)
    if _entry_id(told["last-generated-id"]) < position:
        raise StateError(
            f"the stream {place.stream!r} ends before what this state has read of it, so it was emptied and begun "
            "anew; read it under another --source"
        )
    if _lost(told, position, sum(reading.known[identity] for identity in own)):
        _warn(place, "has lost entries that this state never read; trim only what is acknowledged")
    return position


def _lost(told: dict[str, Any], position: EntryId, read: int) -> bool:
    """Whether entries were deleted, or trimmed off the old end, that lay behind the last one that was read."""
    if _entry_id(told.get("max-deleted-entry-id", b"0-0")) > position:
        return True
    first = told.get("first-entry")
    trimmed_beyond = first is None or _entry_id(first[0]) > position
    return bool(trimmed_beyond and told.get("entries-added", 0) - told["length"] > read)


def _acknowledge(client: Any, place: RedisPlace, reading: ReadOptions, position: EntryId) -> None:
    """Let the consumer group stand at the last entry that is on disk."""
    import redis

    try:
        client.xgroup_setid(place.stream, reading.group, _text(position))
    except redis.ResponseError:
        client.xgroup_create(place.stream, reading.group, id=_text(position))


def _prefix(place: RedisPlace, reading: ReadOptions) -> str:
    """Begin the id of a batch; the server is not named, for it may move."""
    return f"{reading.source}:redis {place.stream} " if reading.source else f"redis {place.stream} "


def _own_ids(ids: Iterable[str], place: RedisPlace, reading: ReadOptions) -> list[str]:
    prefix = _prefix(place, reading)
    return [
        identity for identity in ids if identity.startswith(prefix) and _RANGE.fullmatch(identity.removeprefix(prefix))
    ]


def _range_of(identity: str) -> tuple[EntryId, EntryId]:
    _, first, last = identity.rsplit(" ", 2)
    return _entry_id(first), _entry_id(last)


def _entry_id(written: bytes | str) -> EntryId:
    found = _ENTRY.fullmatch(written.decode("utf-8", "replace") if isinstance(written, bytes) else written)
    if found is None:
        raise TableError("the server names an entry otherwise than Redis does; check that it is one")
    return int(found[1]), int(found[2] or 0)


def _text(entry: EntryId) -> str:
    return f"{entry[0]}-{entry[1]}"


def _table(entries: list[tuple[bytes, dict[bytes, bytes]]], reading: ReadOptions) -> pa.Table:
    """Read entries as rows; bytes that are no text lie in no domain, so their row will be kept out and counted."""
    records = [
        {name.decode("utf-8", "replace"): cell.decode("utf-8", "replace") for name, cell in fields.items()}
        for _, fields in entries
    ]
    return table_of_fields(records, tuple(records[0]) if reading.columns is None else reading.columns)


def _warn(place: RedisPlace, words: str) -> None:
    logging.getLogger("sfumato").warning("the stream %r %s", place.stream, words)


@contextmanager
def _plain_errors(place: RedisPlace) -> Iterator[None]:
    """Say what went wrong in our own words; those of the server may quote what it was sent."""
    import redis

    try:
        yield
    except redis.AuthenticationError:
        raise TableError(f"the server of {place!r} does not let you in; check user and password") from None
    except (redis.ConnectionError, redis.TimeoutError):
        raise TableError(
            f"the server of {place!r} does not answer; what was acknowledged stays, run it again when it does"
        ) from None
    except redis.RedisError as error:
        raise TableError(
            f"the server of {place!r} did not do what it was asked ({type(error).__name__}); check that it holds a "
            "stream of that name and that you may read it and make a consumer group"
        ) from None
