"""One way to SQLite and PostgreSQL, through SQLAlchemy Core: where a database lies, transactions, locks and faults.

What fails is a `DatabaseFault` without the database's own words, which may quote what it holds; each folder says in its
own sentence what that means.
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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPICursor

from sfumato.core.errors import OptionError, SfumatoError

__all__ = [
    "Blob",
    "DatabaseFault",
    "FileLock",
    "Location",
    "PreparedStatement",
    "Reason",
    "engine",
    "faults",
    "file_identity",
    "insert_into",
    "locate",
    "take_writer_lock",
    "transaction",
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
            raise OptionError(
                "a database in memory is lost when the process ends; name a file, as in sqlite:///survey.db"
            )
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


class Blob(sa.LargeBinary):
    """Bytes as the driver takes and gives them: what is no bytes in the database does not become bytes here."""

    cache_ok = True

    def bind_processor(self, dialect: sa.Dialect) -> None:
        """Leave bytes as they are."""

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> None:
        """Leave values as they are."""


def engine(
    location: Location,
    *,
    write: bool = True,
    busy: float = 10.0,
    pragmas: Sequence[str] = (),
    poolclass: type[sa.Pool] = sa.NullPool,
) -> sa.Engine:
    """Engine of a database that is there.

    Parameters
    ----------
    write : bool
        False opens a file for reading only.
    busy : float
        Seconds to wait for another process that writes to a file.
    pragmas : sequence of str
        Settings of each connection to a file, as in ``"synchronous = full"``.
    poolclass : type
        By default each connection is closed with its use.

    Raises
    ------
    OptionError
        If the driver of a server is not installed.
    """
    file, url = location.file, location.url
    if file is None:
        try:
            import psycopg
        except ModuleNotFoundError:
            raise OptionError(
                "PostgreSQL needs the package psycopg; install sfumato[stream] or sfumato[survey]"
            ) from None
        return sa.create_engine(
            "postgresql+psycopg://",
            creator=lambda: psycopg.connect(url, connect_timeout=10),
            poolclass=poolclass,
            pool_pre_ping=True,
            hide_parameters=True,
            paramstyle="format",
        )
    uri = f"{file.absolute().as_uri()}?mode={'rw' if write else 'ro'}"

    def open_file() -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=busy, check_same_thread=False)
        try:
            for pragma in pragmas:
                connection.execute(f"pragma {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    return sa.create_engine("sqlite://", creator=open_file, poolclass=poolclass, hide_parameters=True)


_BEGIN = {
    ("sqlite", True): "begin immediate",
    ("sqlite", False): "begin",
    ("postgresql", True): "set local synchronous_commit = on",
    ("postgresql", False): "set transaction isolation level repeatable read, read only",
}


@contextmanager
def transaction(source: sa.Engine | sa.Connection, *, write: bool) -> Iterator[sa.Connection]:
    """All of the block or nothing of it; with ``write`` it is on disk at the end, else all of it is of one moment.

    A connection that was lost is not made again, because its locks are lost too.
    """
    with faults(), ExitStack() as stack:
        connection = source if isinstance(source, sa.Connection) else stack.enter_context(source.connect())
        if connection.invalidated:
            raise DatabaseFault(Reason.FAILED, "connection lost")
        stack.enter_context(connection.begin())
        with _driver_cursor(connection) as cursor:
            cursor.execute(_BEGIN[connection.dialect.name, write])
        yield connection


def insert_into(table: sa.Table, source: sa.Engine | sa.Connection) -> postgresql.Insert | sqlite.Insert:
    """Insert that may say what becomes of rows that are there already."""
    return postgresql.insert(table) if source.dialect.name == "postgresql" else sqlite.insert(table)


class PreparedStatement:
    """A statement that is compiled once for a database and takes values as tuples, in the order that they stand in it.

    The driver runs it: what SQLAlchemy does beside costs more than SQLite needs to write a row.
    """

    def __init__(
        self, statement: sa.Insert | sa.Delete, source: sa.Engine, columns: Sequence[str] | None = None
    ) -> None:
        self._text = str(statement.compile(dialect=source.dialect, column_keys=columns))

    def run(self, connection: sa.Connection, rows: Sequence[tuple[object, ...]]) -> None:
        """Execute for each of some rows of values."""
        with _driver_cursor(connection) as cursor:
            cursor.executemany(self._text, rows)

    def fetch(self, connection: sa.Connection, values: tuple[object, ...]) -> Sequence[tuple[Any, ...]]:
        """Execute once, and give all that it returns."""
        with _driver_cursor(connection) as cursor:
            cursor.execute(self._text, values)
            return cursor.fetchall()


@contextmanager
def _driver_cursor(connection: sa.Connection) -> Iterator[DBAPICursor]:
    """A cursor of the driver itself, whose errors are those of `faults`."""
    cursor = connection.connection.cursor()
    try:
        yield cursor
    except connection.dialect.loaded_dbapi.Error as error:
        raise _fault(error) from None
    finally:
        cursor.close()


def take_writer_lock(connection: sa.Connection, name: str) -> None:
    """Be the only writer of this name on a server, as long as the connection lasts."""
    scope = sa.literal(f"{name} ").concat(sa.func.coalesce(sa.func.current_schema(), ""))
    lock = sa.select(sa.func.pg_try_advisory_lock(sa.func.hashtextextended(scope, 0)))
    end = time.monotonic() + _SERVER_PATIENCE
    while True:
        with transaction(connection, write=True):
            if connection.scalar(lock):
                return
        if time.monotonic() > end:
            raise DatabaseFault(Reason.LOCKED, "locked")
        time.sleep(_PAUSE)


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
def faults() -> Iterator[None]:
    """What fails in the block is a `DatabaseFault` without the database's words."""
    try:
        yield
    except (sa.exc.SQLAlchemyError, UnicodeDecodeError, OverflowError) as error:
        raise _fault(getattr(error, "orig", None) or error) from None


def _fault(error: BaseException) -> DatabaseFault:
    if isinstance(error, UnicodeDecodeError):
        return DatabaseFault(Reason.DAMAGED, "it holds what is no text")
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    otherwise = Reason.DAMAGED if isinstance(error, sqlite3.Error) else Reason.FAILED
    return DatabaseFault(next((why for codes, why in _BY_CODE.items() if name.startswith(codes)), otherwise), name)
