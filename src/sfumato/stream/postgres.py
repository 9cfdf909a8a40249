"""A state in PostgreSQL, by its URL: one table, one transaction a commit, one writer by an advisory lock."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sfumato.errors import OptionError, SfumatoError
from sfumato.stream.format import Entry, StateError

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresStore"]

_TABLE = "sfumato_stream"
_PATIENCE = 5.0  # seconds until the server has noticed that an earlier writer was killed
_PUT = (
    f"insert into {_TABLE} (kind, key, body) values (%s, %s, %s) "  # noqa: S608
    "on conflict (kind, key) do update set body = excluded.body"
)


class PostgresStore:
    """Entries in a table of PostgreSQL; see `sfumato.stream.store.Store`. One state a schema of a database."""

    acknowledged: int | None = None
    """The server alone knows what it has on disk."""

    def __init__(self, connection: psycopg.Connection[Any], name: str) -> None:
        self._connection, self.name = connection, name

    @classmethod
    def create(cls, url: str, entries: Iterable[Entry]) -> None:
        """Make the table and fill it in one transaction."""
        name = _without_password(url)
        connection = _connect(url, name)
        try:
            with _plain_errors(name), connection.transaction():
                if _has_table(connection):
                    raise OptionError(
                        f"there is a state in {name!r} already; choose another database, or drop it first"
                    )
                connection.execute(
                    f"create table {_TABLE} (kind text not null, key text not null, body bytea not null, "
                    "primary key (kind, key))"
                )
                with connection.cursor() as cursor:
                    cursor.executemany(_PUT, list(entries))
        finally:
            connection.close()

    @classmethod
    def open(cls, url: str, *, write: bool) -> PostgresStore:
        """Open the table, for writing with the lock."""
        name = _without_password(url)
        connection = _connect(url, name)
        try:
            with _plain_errors(name):
                with connection.transaction():
                    found = _has_table(connection)
                if not found:
                    raise StateError(f"there is no state in {name!r}; make one with 'sfumato stream init'")
                if write:
                    _lock(connection, name)
                else:
                    _hold_still(connection)
            return cls(connection, name)
        except BaseException:
            connection.close()
            raise

    def read(self, kind: str | None = None) -> Iterator[Entry]:
        """Give the entries of one moment."""
        where, which = ("", ()) if kind is None else (" where kind = %s", (kind,))
        query = f"select kind, key, body from {_TABLE}{where}"  # noqa: S608
        with _plain_errors(self.name), self._connection.transaction(), self._connection.cursor("entries") as cursor:
            for row in cursor.execute(query, which):
                yield Entry(row[0], row[1], bytes(row[2]))

    def commit(self, put: Iterable[Entry], drop: Iterable[tuple[str, str]], number: int) -> None:  # noqa: ARG002
        """Write and remove entries in one transaction; at the return the server has them on disk."""
        with _plain_errors(self.name), self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute("set local synchronous_commit = on")
            gone, new = list(drop), list(put)
            if gone:
                cursor.executemany(f"delete from {_TABLE} where kind = %s and key = %s", gone)  # noqa: S608
            if new:
                cursor.executemany(_PUT, new)

    def close(self) -> None:
        """Close the connection, and with it the lock."""
        self._connection.close()


def _connect(url: str, name: str) -> psycopg.Connection[Any]:
    try:
        import psycopg
    except ModuleNotFoundError:
        raise OptionError("a state in PostgreSQL needs the package psycopg; install sfumato[stream]") from None
    with _plain_errors(name):
        return psycopg.connect(url, autocommit=True, connect_timeout=10)


def _has_table(connection: psycopg.Connection[Any]) -> bool:
    found = connection.execute("select to_regclass(%s)", (_TABLE,)).fetchone()
    return found is not None and found[0] is not None


def _hold_still(connection: psycopg.Connection[Any]) -> None:
    """Read all of one moment from now on, whoever writes meanwhile."""
    import psycopg

    connection.set_autocommit(False)
    connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
    connection.set_read_only(True)
    connection.execute("select 1")


def _lock(connection: psycopg.Connection[Any], name: str) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        row = connection.execute(
            "select pg_try_advisory_lock(hashtextextended('sfumato stream ' || coalesce(current_schema(), ''), 0))"
        ).fetchone()
        if row is not None and row[0]:
            return
        if time.monotonic() > end:
            raise StateError(f"another process writes to the state {name!r}; wait until it has ended, or stop it")
        time.sleep(0.05)


def _without_password(url: str) -> str:
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", re.sub(r"(password=)[^&]*", r"\1***", url))


@contextmanager
def _plain_errors(name: str) -> Iterator[None]:
    """Say what the server could not do without its own words, which may quote what it holds."""
    import psycopg

    try:
        yield
    except psycopg.errors.DiskFull:
        raise SfumatoError(f"the disk of {name!r} is full; what was acknowledged before stays, make room") from None
    except psycopg.Error as error:
        raise StateError(
            f"the database {name!r} did not do what it was asked ({type(error).__name__}); what was acknowledged "
            "before stays, check that it is there and that you may write to it"
        ) from None
