"""A state in one SQLite file: write-ahead log, every commit on disk before it is acknowledged.

At rest the file is sealed by a SHA-256 of all its bytes. After a crash there is no seal: then the digest of the entries
is checked, and the number of the last acknowledged commit, which stands in the lock file beside it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sfumato.errors import OptionError, SfumatoError
from sfumato.replacing import reason, rename_synced, work_folder
from sfumato.stream.format import APPLICATION_ID, FORMAT, Entry, StateError, damaged
from sfumato.stream.lock import Lock
from sfumato.stream.seal import PAGE, is_sealed, seal, unseal

__all__ = ["SqliteStore"]

_MAGIC = b"SQLite format 3\0"
_FOLIO = 4096  # a write that is killed ends at a multiple of it
_BUSY = 10.0  # seconds to wait for a reader
_PUT = "insert into entry (kind, key, body) values (?, ?, ?) on conflict (kind, key) do update set body = excluded.body"


class SqliteStore:
    """Entries in an SQLite file; see `sfumato.stream.store.Store`."""

    def __init__(self, path: Path, db: sqlite3.Connection, lock: Lock | None, *, write: bool) -> None:
        self._path, self._db, self._lock, self._write = path, db, lock, write
        self._closed = False

    @property
    def name(self) -> str:
        """The path."""
        return str(self._path)

    @property
    def acknowledged(self) -> int | None:
        """The number of the last acknowledged commit, from the lock file."""
        return None if self._lock is None else self._lock.acknowledged

    @classmethod
    def create(cls, path: Path, entries: Iterable[Entry]) -> None:
        """Write a new file under a temporary name, seal it and give it its name."""
        if path.exists() or path.is_symlink() or lock_path(path).exists():
            raise OptionError(f"there is a state {str(path)!r} already; choose another name, or remove it first")
        if not path.absolute().parent.is_dir():
            raise OptionError(f"there is no folder {str(path.absolute().parent)!r} for the state; make it first")
        with _plain_errors(str(path)), work_folder(path) as folder:
            work = folder / path.name
            work.touch(mode=0o600)
            with closing(_connect(work)) as db:
                db.execute(f"pragma page_size = {PAGE}")
                db.execute(f"pragma application_id = {APPLICATION_ID}")
                db.execute(f"pragma user_version = {FORMAT}")
                db.execute("pragma synchronous = full")
                db.execute("begin")
                db.execute(
                    "create table entry (kind text not null, key text not null, body blob not null, "
                    "primary key (kind, key))"
                )
                db.executemany(_PUT, entries)
                db.execute("commit")
            seal(work)
            rename_synced(work, path)

    @classmethod
    def open(cls, path: Path, *, write: bool) -> SqliteStore:
        """Open a file that `create` wrote, for writing with the lock."""
        if not path.is_file():
            raise StateError(f"there is no state {str(path)!r}; make one with 'sfumato stream init'")
        lock = Lock.take(lock_path(path), str(path), write=write)
        try:
            with _plain_errors(str(path)):
                if lock.held:
                    _check_at_rest(path, lock, write=write)
                if lock.held and not write:
                    _roll_back(path)
                db = _connect(path, write=write)
                try:
                    _check_marks(db, str(path))
                    if write:
                        db.execute("pragma journal_mode = wal")
                        db.execute("pragma synchronous = full")
                        db.execute("pragma secure_delete = on")  # an earlier state of a group less this is a record
                    else:
                        db.execute("begin")  # all that is read is of one moment, whoever writes meanwhile
                except BaseException:
                    db.close()
                    raise
            return cls(path, db, lock, write=write)
        except BaseException:
            lock.release()
            raise

    def read(self, kind: str | None = None) -> Iterator[Entry]:
        """Give the entries of one moment."""
        where, which = ("", ()) if kind is None else (" where kind = ?", (kind,))
        with _plain_errors(self.name):
            for row in self._db.execute(f"select kind, key, body from entry{where} order by kind, key", which):  # noqa: S608
                if not (isinstance(row[0], str) and isinstance(row[1], str) and isinstance(row[2], bytes)):
                    raise damaged(self.name, "an entry is of another type")
                yield Entry(*row)

    def commit(self, put: Iterable[Entry], drop: Iterable[tuple[str, str]], number: int) -> None:
        """Write and remove entries in one transaction; at the return they are on disk."""
        with _plain_errors(self.name):
            self._db.execute("begin immediate")
            try:
                self._db.executemany("delete from entry where kind = ? and key = ?", drop)
                self._db.executemany(_PUT, put)
                self._db.execute("commit")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("rollback")
                raise
        if self._lock is not None:
            self._lock.acknowledge(number)

    def close(self) -> None:
        """Bring everything into the one file and seal it; left unsealed where somebody still reads."""
        if self._closed:
            return
        alone, self._closed = False, True
        try:
            if self._write:
                self._db.execute("pragma busy_timeout = 200")
                found = self._db.execute("pragma journal_mode = delete").fetchone()
                alone = found is not None and found[0] == "delete"
        except sqlite3.Error:
            alone = False  # the write-ahead log stays beside the file and is read with it
        finally:
            self._db.close()
            if alone:
                with suppress(OSError):  # no room for it; the lock file tells that nothing is lacking
                    seal(self._path)
            if self._lock is not None:
                self._lock.release()


def lock_path(path: Path) -> Path:
    """Give the name of the lock file beside a state."""
    return path.with_name(path.name + ".lock")


def _check_at_rest(path: Path, lock: Lock, *, write: bool) -> None:
    """Refuse a file that is neither sealed nor left by a crash; take the seal off for writing."""
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise damaged(str(path), "it is not an SQLite file")
    if _is_half_written(path, lock):
        if write:
            unseal(path)
        return
    sealed = is_sealed(path)  # raises where the seal is broken
    if not sealed and lock.acknowledged is None:
        raise damaged(str(path), "it has no seal, and the lock file of an unfinished run is not beside it")
    if sealed and write:
        lock.begin()
        unseal(path)


def _is_half_written(path: Path, lock: Lock) -> bool:
    """Tell whether a kill has cut a page short that was on its way from the log, which still has it whole."""
    size, log = path.stat().st_size, Path(f"{path}-wal")
    at_work = lock.acknowledged is not None and log.is_file() and log.stat().st_size > 0
    return at_work and size % PAGE > 0 and size % _FOLIO == 0


def _roll_back(path: Path) -> None:
    """Undo what a kill left half done while the file went to its write-ahead log or came back from it.

    Then there is a journal of the first page, which nobody may use who has opened the file for reading only.
    """
    if Path(f"{path}-journal").exists():
        with closing(_connect(path)) as db:
            db.execute("pragma user_version")


def _connect(path: Path, *, write: bool = True) -> sqlite3.Connection:
    place = f"{path.absolute().as_uri()}?mode={'rw' if write else 'ro'}"
    return sqlite3.connect(place, uri=True, isolation_level=None, timeout=_BUSY)


def _check_marks(db: sqlite3.Connection, name: str) -> None:
    mark = db.execute("pragma application_id").fetchone()[0]
    if mark != APPLICATION_ID:
        raise StateError(f"{name!r} is not the state of a stream; make one with 'sfumato stream init'")
    version = db.execute("pragma user_version").fetchone()[0]
    if version != FORMAT:
        raise StateError(f"the state {name!r} is not of format {FORMAT}; use the version that wrote it")


@contextmanager
def _plain_errors(name: str) -> Iterator[None]:
    """Say what the database could not do without its own words, which may quote what it holds."""
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
        if code.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            raise SfumatoError(
                f"the state {name!r} could not be written, for the disk is full or fails; what was acknowledged before "
                "stays, make room and run it again"
            ) from None
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise StateError(f"the state {name!r} is in use by another process; wait until it has ended") from None
        if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            raise StateError(
                f"the state {name!r} may not be opened by you; check the rights of file and folder"
            ) from None
        raise damaged(name, code) from None
    except sqlite3.DatabaseError as error:
        raise damaged(name, getattr(error, "sqlite_errorname", type(error).__name__)) from None
    except UnicodeDecodeError:
        raise damaged(name, "it holds what is no text") from None
    except OSError as error:
        raise SfumatoError(f"the state {name!r} could not be written ({reason(error)}); nothing was changed") from None
