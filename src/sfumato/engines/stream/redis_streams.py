"""Redis streams: read from where the state stands, acknowledged after the commit.

The position lies in the state: the id of a batch names its first and last entry, and entries never change. So the
server's own memory is no part of what makes a record count once; its consumer group only learns, after each commit, how
far the state has come, for people who look at the server and trim it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

from sfumato.core.errors import OptionError, TableError
from sfumato.engines.stream.batches import Batch
from sfumato.engines.stream.connectors import ReadOptions, table_of_fields
from sfumato.engines.stream.settings import StateError

if TYPE_CHECKING:
    import redis

__all__ = ["RedisPlace", "read_redis"]

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
