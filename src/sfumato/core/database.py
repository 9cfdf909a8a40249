"""One way to SQLite and PostgreSQL: where a database lies, its connections, transactions, locks and faults.

Statements write ``%s`` for a value, whatever the database. What fails is a `DatabaseFault` without the database's own
words, which may quote what it holds; each room says in its own sentence what that means.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import sqlite3
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sfumato.core.errors import OptionError, SfumatoError

__all__ = [
    "ConnectionPool",
    "DatabaseConnection",
    "DatabaseFault",
    "FileLock",
    "Location",
    "Reason",
    "connect",
    "file_identity",
    "locate",
]

_POSTGRES = ("postgresql", "postgres")
_NO_URL = "this is not a database URL; write sqlite:///FILE or postgresql://USER@HOST/NAME"
_LOCK_PATIENCE = 2.0  # seconds to wait for a reader of a file, which is quick
_SERVER_PATIENCE = 5.0  # seconds until a server has noticed that an earlier writer was killed
_PAUSE = 0.02
_NUMBER = struct.Struct("<Q16s")


class Reason(Enum):
    """Why a database did not do what it was asked."""

    FULL = "the disk is full or fails"
    BUSY = "another process uses it"
    LOCKED = "another process writes to it"
    RIGHTS = "it may not be opened"
    DAMAGED = "it is damaged"
    FAILED = "it failed"


class DatabaseFault(SfumatoError):
    """What a database could not do: why, the name of its error, and nothing that it holds."""

    def __init__(self, why: Reason, name: str) -> None:
        super().__init__(f"the database did not do what it was asked ({name}); check that it is there and not full")
        self.why, self.name = why, name


@dataclass(frozen=True)
class Location:
    """Where a database lies: in a file, or on a server by its URL."""

    file: Path | None
    url: str = ""

    @property
    def name(self) -> str:
        """What errors call it; never a password."""
        hidden = re.sub(r"(password=)[^&]*", r"\1***", self.url)
        return str(self.file) if self.file is not None else re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", hidden)

    def __repr__(self) -> str:
        return f"Location({self.name!r})"


def locate(place: str | Path) -> Location:
    """Location of a path, ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``.

    Raises
    ------
    OptionError
        For any other URL, and for a database in memory.

    Examples
    --------
    >>> locate("survey.db"), locate("sqlite:////srv/survey.db"), locate("postgresql://steward:secret@db/survey")
    (Location('survey.db'), Location('/srv/survey.db'), Location('postgresql://steward:***@db/survey'))
    """
    text = str(place)
    scheme, colon, rest = text.partition("://")
    scheme = scheme.partition("+")[0]
    if not colon or scheme == "sqlite":
        file = rest.removeprefix("/").partition("?")[0] if colon else text
        if file in ("", ":memory:"):
            raise OptionError("what lies in memory is lost at its end; name a file, as in sqlite:///survey.db")
        if colon and not rest.startswith("/"):
            raise OptionError(_NO_URL)
        return Location(Path(file))
    if scheme not in _POSTGRES:
        raise OptionError(
            "data are not kept in that kind of database; use sqlite:///FILE or postgresql://USER@HOST/NAME"
        )
    try:
        _ = urlsplit(f"{scheme}://{rest}").port
    except ValueError:
        raise OptionError(_NO_URL) from None
    return Location(None, f"{scheme}://{rest}")


class DatabaseConnection:
    """One connection to a database, on which transactions begin where `begin` says."""

    def __init__(self, raw: Any, errors: type[Exception] = sqlite3.Error) -> None:
        self._raw, self._errors = raw, errors
        self.server = errors is not sqlite3.Error
        self._cursor_name = ("rows",) if self.server else ()  # a server keeps the rows of a cursor that has a name

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows that a statement gives."""
        with _faults(self._errors):
            cursor = self._raw.execute(self._spelled(statement), tuple(values))
            return cursor.fetchall() if cursor.description else []

    def execute_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each row of values."""
        given = list(rows)
        if given:
            with _faults(self._errors):
                self._raw.cursor().executemany(self._spelled(statement), given)

    def scan(self, statement: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows that a statement gives, few of them in memory at a time; needs a transaction."""
        with _faults(self._errors), closing(self._raw.cursor(*self._cursor_name)) as cursor:
            yield from cursor.execute(self._spelled(statement), tuple(values))

    def begin(self, *, write: bool) -> None:
        """Begin a transaction; all that is read in it without ``write`` is of one moment."""
        if not self.server:
            self.execute("begin immediate" if write else "begin")
            return
        self.execute("begin" if write else "begin isolation level repeatable read read only")
        self.execute("set local synchronous_commit = on" if write else "select 1")

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """All of the block or nothing of it; at the end it is on disk."""
        self.begin(write=write)
        try:
            yield
            self.execute("commit")
        except BaseException:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        """Undo the transaction that has begun, if there still is one."""
        with suppress(DatabaseFault):
            self.execute("rollback")

    def take_writer_lock(self, name: str) -> None:
        """Be the only writer of this name on a server, as long as the connection lasts."""
        ask = f"select pg_try_advisory_lock(hashtextextended('{name} ' || coalesce(current_schema(), ''), 0))"
        end = time.monotonic() + _SERVER_PATIENCE
        while not self.execute(ask)[0][0]:
            if time.monotonic() > end:
                raise DatabaseFault(Reason.LOCKED, "locked")
            time.sleep(_PAUSE)

    def has_table(self, name: str) -> bool:
        """Whether there is a table of this name."""
        ask = "select to_regclass(%s)" if self.server else "select max(name) from sqlite_master where name = %s"
        return self.execute(ask, (name,))[0][0] is not None

    def close(self) -> None:
        """End it, and with it its transaction and its lock."""
        self._raw.close()

    def _spelled(self, statement: str) -> str:
        return statement if self.server else statement.replace("%s", "?")


def connect(location: Location, *, write: bool = True, busy: float = 10.0) -> DatabaseConnection:
    """DatabaseConnection to a database that is there; ``busy`` are the seconds to wait for another process.

    Raises
    ------
    OptionError
        If the driver of a server is not installed.
    DatabaseFault
    """
    if location.file is None:
        try:
            import psycopg
        except ModuleNotFoundError:
            raise OptionError(
                "PostgreSQL needs the package psycopg; install sfumato[stream] or sfumato[survey]"
            ) from None
        with _faults(psycopg.Error):
            return DatabaseConnection(psycopg.connect(location.url, autocommit=True, connect_timeout=10), psycopg.Error)
    uri = f"{location.file.absolute().as_uri()}?mode={'rw' if write else 'ro'}"
    with _faults(sqlite3.Error):
        return DatabaseConnection(
            sqlite3.connect(uri, uri=True, isolation_level=None, timeout=busy, check_same_thread=False)
        )


class ConnectionPool:
    """Connections to one database that threads take in turn.

    Parameters
    ----------
    make : callable
        Makes a connection.
    """

    def __init__(self, make: Callable[[], DatabaseConnection]) -> None:
        self._make = make
        self._free: list[DatabaseConnection] = []

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[DatabaseConnection]:
        """A connection on which a transaction has begun: all of the block or nothing of it."""
        connection = self._begun(write=write)
        try:
            yield connection
            connection.execute("commit")
        except BaseException:
            connection.roll_back()
            raise
        finally:
            self._free.append(connection)

    def close(self) -> None:
        """Close all connections that nobody has taken."""
        while self._free:
            self._free.pop().close()

    def _begun(self, *, write: bool) -> DatabaseConnection:
        """Take a connection; one that the server has ended meanwhile is replaced."""
        while self._free:
            connection = self._free.pop()
            try:
                connection.begin(write=write)
                return connection
            except DatabaseFault as fault:
                connection.close()
                if fault.why is Reason.BUSY:
                    raise
        connection = self._make()
        try:
            connection.begin(write=write)
        except BaseException:
            connection.close()
            raise
        return connection


class FileLock:
    """Lock file beside a database: one writer at a time, and the number of the last commit that was acknowledged.

    The lock ends with the process, however it ends. ``held`` is False where a reader found a writer at work.
    """

    def __init__(self, path: Path, *, write: bool) -> None:
        self._path = path
        self._handle: int | None = None
        self.held = True
        try:
            self._handle = os.open(path, (os.O_RDWR | os.O_CREAT) if write else os.O_RDONLY, 0o600)
        except FileNotFoundError:
            return  # nobody has written to the database since it came here
        end = time.monotonic() + _LOCK_PATIENCE
        while True:
            try:
                fcntl.flock(self._handle, (fcntl.LOCK_EX if write else fcntl.LOCK_SH) | fcntl.LOCK_NB)
                return
            except OSError:
                if not write:
                    self.held = False
                    return
                if time.monotonic() > end:
                    self.release()
                    raise DatabaseFault(Reason.LOCKED, "locked") from None
                time.sleep(_PAUSE)

    @property
    def acknowledged(self) -> int | None:
        """Number of the last acknowledged commit, None if no commit was made here."""
        found = b"" if self._handle is None else os.pread(self._handle, _NUMBER.size, 0)
        if not found:
            return None
        number, check = _NUMBER.unpack(found) if len(found) == _NUMBER.size else (0, b"")
        if check != _check(number):
            raise DatabaseFault(Reason.DAMAGED, f"the number in {self._path.name!r} was altered")
        return int(number)

    def begin(self) -> None:
        """Leave a mark that a writer is at work."""
        if self.acknowledged is None:
            self.acknowledge(0)

    def acknowledge(self, number: int) -> None:
        """Note that a commit is on disk; outlives the process, though not a power cut, after which it may lag."""
        if self._handle is None:
            return
        before = os.pread(self._handle, _NUMBER.size, 0)
        try:
            if os.pwrite(self._handle, _NUMBER.pack(number, _check(number)), 0) < _NUMBER.size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:  # half a number would be taken for damage
            os.pwrite(self._handle, before, 0)
            os.ftruncate(self._handle, len(before))
            raise SfumatoError(
                f"the lock file {str(self._path)!r} could not be written ({os.strerror(error.errno or 0)}); what was "
                "acknowledged before stays, make room and run it again"
            ) from None

    def release(self) -> None:
        """Let go; the file stays, for its number and because removing it would free two writers at once."""
        if self._handle is not None:
            with suppress(OSError):  # at worst its number lags, as after a power cut
                os.close(self._handle)
            self._handle = None


def file_identity(file: Path) -> tuple[int, int] | None:
    """What identifies a file until another takes its name; None if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _check(number: int) -> bytes:
    return hashlib.sha256(f"sfumato lock {number}".encode()).digest()[:16]


_BY_CODE = {
    ("SQLITE_FULL", "SQLITE_IOERR", "DiskFull"): Reason.FULL,
    ("SQLITE_BUSY", "SQLITE_LOCKED"): Reason.BUSY,
    ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"): Reason.RIGHTS,
}


@contextmanager
def _faults(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except (kind, UnicodeDecodeError, OverflowError) as error:
        raise _fault(error) from None


def _fault(error: Exception) -> DatabaseFault:
    if isinstance(error, UnicodeDecodeError):
        return DatabaseFault(Reason.DAMAGED, "it holds what is no text")
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    otherwise = Reason.DAMAGED if isinstance(error, sqlite3.Error) else Reason.FAILED
    return DatabaseFault(next((why for codes, why in _BY_CODE.items() if name.startswith(codes)), otherwise), name)
