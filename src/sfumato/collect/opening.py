"""Opening the database of a survey: its URL, its file, its connections, its tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import OptionError

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

__all__ = ["identity", "make_engine", "prepare_file", "prepare_tables", "url_of"]

_BUSY = 30  # seconds to wait for another process that writes
_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg", "sqlite": "sqlite"}


def identity(file: Path | None) -> tuple[int, int] | None:
    """Give what stays the same of a file until another takes its name."""
    try:
        found = file.stat() if file is not None else None
    except OSError:
        found = None
    return None if found is None else (found.st_dev, found.st_ino)


def url_of(place: str) -> URL:
    """Read a URL, or the path of a file."""
    try:
        import sqlalchemy as sa
    except ModuleNotFoundError:
        raise OptionError("a survey's database needs SQLAlchemy; install sfumato[collect]") from None
    if "://" not in place:
        return sa.URL.create("sqlite", database=place)
    try:
        url = sa.make_url(place)
    except (sa.exc.ArgumentError, ValueError):
        raise OptionError("--db is not a database URL; write sqlite:///FILE or postgresql://USER@HOST/NAME") from None
    if url.get_backend_name() not in _DRIVERS:
        raise OptionError("--db names a database that surveys are not kept in; use sqlite:///FILE or postgresql://...")
    return url.set(drivername=_DRIVERS[url.get_backend_name()])


def prepare_file(url: URL, *, create: bool) -> Path:
    """Give the file of an SQLite database; a new one is made for its owner only."""
    if not url.database or url.database == ":memory:":
        raise OptionError("a survey in memory is lost at its end; name a file, as in sqlite:///survey.db")
    path = Path(url.database)
    if path.exists():
        return path.absolute()
    if not create:
        raise OptionError(f"there is no database {str(path)!r}; begin it with 'sfumato collect serve' or 'tokens'")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))  # the files beside it take its mode
    except FileExistsError:
        pass
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise OptionError(f"the database {str(path)!r} cannot be made ({reason}); choose another place") from None
    return path.absolute()


def make_engine(url: URL, *, create: bool) -> Engine:
    """Prepare connections: transactions that begin where we say, and commits that are on disk."""
    import sqlalchemy as sa

    try:
        if url.get_backend_name() == "postgresql":
            return sa.create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10})
        made = sa.create_engine(url, connect_args={"timeout": _BUSY})
    except ModuleNotFoundError as error:
        raise OptionError(f"this database needs the package {error.name}; install sfumato[collect]") from None

    @sa.event.listens_for(made, "connect")
    def _on_connect(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # transactions begin where we say, not where the driver thinks
        if create:  # it stays in the file, and one that is only read may be anybody's
            connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")

    @sa.event.listens_for(made, "begin")
    def _on_begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return made


def prepare_tables(engine: Engine, *, create: bool) -> None:
    """Make the tables where there are none."""
    import sqlalchemy as sa

    from sfumato.collect.tables import META, TABLES

    if sa.inspect(engine).has_table(META.name):
        return
    if not create:
        raise OptionError("this database holds no survey; begin one with 'sfumato collect serve' or 'tokens'")
    try:
        TABLES.create_all(engine)
    except (sa.exc.OperationalError, sa.exc.ProgrammingError, sa.exc.IntegrityError):
        if not sa.inspect(engine).has_table(META.name):  # else another process made them in this moment
            raise
