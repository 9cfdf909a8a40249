"""The state of a stream: all its entries, checked as a whole when it is opened and changed in whole commits.

Where it lies, entries are changed together or not at all, by one writer at a time. In a file of SQLite every commit is
in the write-ahead log on disk before it is acknowledged. At rest the file is sealed by a SHA-256 of all its bytes
behind its last page, so that no flipped bit goes unseen. After a crash there is no seal: then the digest of the entries
is checked, and the number of the last acknowledged commit, which stands in the lock file beside it. In PostgreSQL the
entries are one table, and the one writer holds an advisory lock.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa

from sfumato.core.database import (
    Blob,
    DatabaseFault,
    FileLock,
    Location,
    PreparedStatement,
    Reason,
    engine,
    faults,
    insert_into,
    locate,
    take_writer_lock,
    transaction,
)
from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.replacing import reason, rename_synced, work_folder
from sfumato.stream.settings import (
    APPLICATION_ID,
    FORMAT,
    HEAD,
    Head,
    StateEntry,
    StateError,
    damaged,
    entry_digest,
)

__all__ = ["PAGE", "State", "StateStore", "seal", "unseal"]

PAGE = 16_384
"""Bytes of a page of the file; a group of ten columns takes about one kilobyte."""

_MAGIC = b"SQLite format 3\0"
_FOLIO = 4096  # a write that is killed ends at a multiple of it
_SEAL = b"sfumato sealed 1"
_SEAL_LENGTH = len(_SEAL) + hashlib.sha256().digest_size
_BLOCK = 1 << 20
_ENTRIES = sa.Table(
    "sfumato_stream",
    sa.MetaData(),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("body", Blob, nullable=False),
)


class StateStore:
    """A place that holds entries.

    Several may read; one writes. What `commit` was given is on disk when it returns, whole, and survives the end of the
    process at any moment. One state a file, or a schema of a database in PostgreSQL.
    """

    def __init__(
        self, location: Location, connection: sa.Connection, lock: FileLock | None, moment: ExitStack, *, write: bool
    ) -> None:
        self._location, self._connection, self._lock, self._write = location, connection, lock, write
        self._moment = moment
        self._closed = False
        self._put = _put(connection.engine)
        self._drop = PreparedStatement(_DROP, connection.engine)

    @property
    def name(self) -> str:
        """What errors call the place; never a password."""
        return self._location.name

    @property
    def acknowledged(self) -> int | None:
        """Number of the last commit that is known to have been made; a server alone knows what it has on disk."""
        with _plain_errors(self._location):
            return None if self._lock is None else self._lock.acknowledged

    @classmethod
    def create(cls, place: str | Path, entries: Iterable[StateEntry]) -> None:
        """Write a new state, whole or not at all; raises OptionError if there is one already."""
        location = _located(place)
        with _plain_errors(location):
            if location.file is not None:
                _create_file(location.file, entries)
                return
            with transaction(engine(location), write=True) as connection:
                if _has_entries(connection):
                    raise OptionError(
                        f"there is a state in {location.name!r} already; choose another database, or drop it first"
                    )
                _fill(connection, entries)

    @classmethod
    def open(cls, place: str | Path, *, write: bool) -> StateStore:
        """Open the state at a path, or in PostgreSQL by its URL, for writing with the lock.

        Raises
        ------
        StateError
            If there is none, it is damaged, or another process writes to it.
        """
        location = _located(place)
        if location.file is not None and not location.file.is_file():
            raise StateError(f"there is no state {location.name!r}; make one with 'sfumato stream init'")
        with ExitStack() as stack:
            lock = None if location.file is None else _locked(location.file, write=write)
            if lock is not None:
                stack.callback(lock.release)
            with _plain_errors(location):
                if location.file is not None and lock is not None and lock.held:
                    _check_at_rest(location.file, lock, write=write)
                    if not write:
                        _roll_back(location)
                pragmas = ("synchronous = full", "secure_delete = on") if write else ()  # an earlier state of a
                with faults():  # group less this one is a record, so it is not left in the file
                    connection = stack.enter_context(engine(location, write=write, pragmas=pragmas).connect())
                _prepare(connection, location, write=write)
                if not write:  # all that is read is of one moment, whoever writes meanwhile
                    stack.enter_context(transaction(connection, write=False))
            return cls(location, connection, lock, stack.pop_all(), write=write)

    def read(self, kind: str | None = None) -> Iterator[StateEntry]:
        """Entries of one moment, of one kind or all."""
        query = sa.select(_ENTRIES).order_by(_ENTRIES.c.kind, _ENTRIES.c.key)
        if kind is not None:
            query = query.where(_ENTRIES.c.kind == kind)
        moment = transaction(self._connection, write=False) if self._write else faults()
        with _plain_errors(self._location), moment:
            for row in self._connection.execute(query, execution_options={"stream_results": True}):
                if not (isinstance(row[0], str) and isinstance(row[1], str) and isinstance(row[2], bytes)):
                    raise damaged(self.name, "an entry is of another type")
                yield StateEntry(*row)

    def commit(self, put: Iterable[StateEntry], drop: Iterable[tuple[str, str]], number: int) -> None:
        """Write and remove entries in one numbered commit; on return they are on disk."""
        with _plain_errors(self._location):
            with transaction(self._connection, write=True) as connection:
                if gone := list(drop):
                    self._drop.run(connection, gone)
                if changed := list(put):
                    self._put.run(connection, changed)
            if self._lock is not None:
                self._lock.acknowledge(number)

    def close(self) -> None:
        """Let go of the place; a file is brought into one and sealed, unless someone still reads."""
        if self._closed:
            return
        alone, self._closed = False, True
        try:
            if self._write and self._location.file is not None:
                with faults():
                    self._connection.exec_driver_sql("pragma busy_timeout = 200")
                    alone = self._connection.exec_driver_sql("pragma journal_mode = delete").scalar() == "delete"
        except DatabaseFault:
            alone = False  # the write-ahead log stays beside the file and is read with it
        finally:
            self._connection.close()
            if alone and self._location.file is not None:
                with suppress(OSError):  # no room for it; the lock file tells that nothing is lacking
                    seal(self._location.file)
            self._moment.close()


def _located(place: str | Path) -> Location:
    if "://" in str(place) and str(place).partition("://")[0] not in ("postgresql", "postgres"):
        raise OptionError("the state is a file or a PostgreSQL URL; write a path, or postgresql://USER@HOST/NAME")
    return locate(place) if "://" in str(place) else Location(Path(place))


_DROP = _ENTRIES.delete().where(_ENTRIES.c.kind == sa.bindparam("old_kind"), _ENTRIES.c.key == sa.bindparam("old_key"))


def _has_entries(connection: sa.Connection) -> bool:
    return sa.inspect(connection).has_table(_ENTRIES.name)


def _put(source: sa.Engine) -> PreparedStatement:
    insert = insert_into(_ENTRIES, source)
    changed = insert.on_conflict_do_update(index_elements=["kind", "key"], set_={"body": insert.excluded.body})
    return PreparedStatement(changed, source, ["kind", "key", "body"])


def _fill(connection: sa.Connection, entries: Iterable[StateEntry]) -> None:
    _ENTRIES.create(connection)
    _put(connection.engine).run(connection, list(entries))


def _create_file(path: Path, entries: Iterable[StateEntry]) -> None:
    """Write a new file under a temporary name, seal it and give it its name."""
    if path.exists() or path.is_symlink() or _lock_path(path).exists():
        raise OptionError(f"there is a state {str(path)!r} already; choose another name, or remove it first")
    if not path.absolute().parent.is_dir():
        raise OptionError(f"there is no folder {str(path.absolute().parent)!r} for the state; make it first")
    with work_folder(path) as folder:
        work = folder / path.name
        work.touch(mode=0o600)
        pragmas = (
            f"page_size = {PAGE}",
            f"application_id = {APPLICATION_ID}",
            f"user_version = {FORMAT}",
            "synchronous = full",
        )
        with transaction(engine(Location(work), pragmas=pragmas), write=True) as connection:
            _fill(connection, entries)
        seal(work)
        rename_synced(work, path)


def _prepare(connection: sa.Connection, location: Location, *, write: bool) -> None:
    """Check that a state is there, and make ready to write it."""
    with faults():
        if location.file is None:
            there = _has_entries(connection)
            connection.rollback()
            if not there:
                raise StateError(f"there is no state in {location.name!r}; make one with 'sfumato stream init'")
            if write:
                take_writer_lock(connection, "sfumato stream")
            return
        application, version = (
            connection.exec_driver_sql(f"pragma {name}").scalar() for name in ("application_id", "user_version")
        )
        if application != APPLICATION_ID:
            raise StateError(f"{location.name!r} is not the state of a stream; make one with 'sfumato stream init'")
        if version != FORMAT:
            raise StateError(f"the state {location.name!r} is not of format {FORMAT}; use the version that wrote it")
        if write:
            connection.exec_driver_sql("pragma journal_mode = wal")
        connection.rollback()


def _lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _locked(path: Path, *, write: bool) -> FileLock:
    try:
        return FileLock(_lock_path(path), write=write)
    except DatabaseFault as fault:
        raise _worded(fault, Location(path)) from None
    except OSError as error:
        raise StateError(
            f"the state {str(path)!r} cannot be locked ({reason(error)}); check the rights of its folder"
        ) from None


def _check_at_rest(path: Path, lock: FileLock, *, write: bool) -> None:
    """Refuse a file that is neither sealed nor left by a crash; remove the seal to write."""
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise damaged(str(path), "it is not an SQLite file")
    if _is_half_written(path, lock):
        if write:
            unseal(path)
        return
    sealed = _is_sealed(path)
    if not sealed and lock.acknowledged is None:
        raise damaged(str(path), "it has no seal, and the lock file of an unfinished run is not beside it")
    if sealed and write:
        lock.begin()
        unseal(path)


def _is_half_written(path: Path, lock: FileLock) -> bool:
    """Whether a kill has cut a page short that was on its way from the log, which still has it whole."""
    size, log = path.stat().st_size, Path(f"{path}-wal")
    at_work = lock.acknowledged is not None and log.is_file() and log.stat().st_size > 0
    return at_work and size % PAGE > 0 and size % _FOLIO == 0


def _roll_back(location: Location) -> None:
    """Undo what a kill left half done while the file went to its write-ahead log or came back from it.

    Then there is a journal of the first page, which nobody may use who has opened the file for reading only.
    """
    if Path(f"{location.file}-journal").exists():
        with faults(), engine(location).connect() as connection:
            connection.exec_driver_sql("pragma user_version")


def seal(path: Path) -> None:
    """Put the seal behind the last page, whole or not at all. SQLite does not look there."""
    length = path.stat().st_size
    handle = os.open(path, os.O_WRONLY)
    try:
        if os.pwrite(handle, _SEAL + _digest(path, length), length) < _SEAL_LENGTH:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, length)
        raise
    finally:
        os.close(handle)


def unseal(path: Path) -> None:
    """Take the seal off, for writing."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // PAGE * PAGE)


def _is_sealed(path: Path) -> bool:
    """Whether a file is sealed; refuses one whose bytes are not those that were sealed, or that ends in the middle."""
    pages, rest = divmod(path.stat().st_size, PAGE)
    with path.open("rb") as file:
        file.seek(pages * PAGE)
        end = file.read(rest)
    if not end.strip(b"\0"):  # nothing, or room for a seal that a power cut kept from being written
        return False
    if rest != _SEAL_LENGTH or not end.startswith(_SEAL):
        raise damaged(str(path), "it ends in the middle")
    if _digest(path, pages * PAGE) != end[len(_SEAL) :]:
        raise damaged(str(path), "its bytes are not those that were sealed")
    return True


def _digest(path: Path, length: int) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(min(_BLOCK, length)):
            digest.update(block)
            length -= len(block)
    return digest.digest()


@contextmanager
def _plain_errors(location: Location) -> Iterator[None]:
    """Say what could not be done in a sentence about the state."""
    try:
        yield
    except DatabaseFault as fault:
        raise _worded(fault, location) from None
    except OSError as error:
        raise SfumatoError(
            f"the state {location.name!r} could not be written ({reason(error)}); nothing was changed"
        ) from None


def _worded(fault: DatabaseFault, location: Location) -> SfumatoError:
    name = location.name
    if fault.why is Reason.LOCKED:
        return StateError(f"another process writes to the state {name!r}; wait until it has ended, or stop it")
    if fault.why is Reason.FULL:
        return SfumatoError(
            f"the state {name!r} could not be written, for the disk is full or fails; what was acknowledged before "
            "stays, make room and run it again"
        )
    if fault.why is Reason.BUSY:
        return StateError(f"the state {name!r} is in use by another process; wait until it has ended")
    if fault.why is Reason.RIGHTS:
        return StateError(f"the state {name!r} may not be opened by you; check the rights of file and folder")
    if fault.why is Reason.DAMAGED:
        return damaged(name, fault.name)
    return StateError(
        f"the database {name!r} did not do what it was asked ({fault.name}); what was acknowledged before stays, check "
        "that it is there and that you may write to it"
    )


_LARGE = ("group", "tally", "published")  # kinds that are read again when they are needed


class State:
    """Entries under one digest."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._digests: dict[str, dict[str, int]] = {}
        self._bodies: dict[tuple[str, str], bytes] = {}
        self._head = self._read_all()

    @classmethod
    def create(cls, place: str | Path, entries: Iterable[StateEntry]) -> None:
        """Write a new state that holds these entries."""
        entries = list(entries)
        head = Head(0, 0, "").following(sum(map(entry_digest, entries)))
        StateStore.create(place, [*entries, head.to_entry()])

    @classmethod
    def open(cls, place: str | Path, *, write: bool) -> State:
        """Open a state and check it.

        Raises
        ------
        StateError
            If there is none, where it is damaged, or where another process writes to it.
        """
        store = StateStore.open(place, write=write)
        try:
            return cls(store)
        except BaseException:
            store.close()
            raise

    @property
    def name(self) -> str:
        """What errors call the state."""
        return self._store.name

    @property
    def number(self) -> int:
        """The number of the last commit."""
        return self._head.number

    @property
    def digest(self) -> str:
        """The digest of all entries: equal states have equal ones."""
        return f"{self._head.digest:064x}"

    def body(self, kind: str, key: str = "") -> bytes:
        """Bytes of one entry."""
        try:
            return self._bodies[kind, key]
        except KeyError:
            raise damaged(self.name, f"it has no {kind}") from None

    def keys(self, kind: str) -> list[str]:
        """Keys of a kind."""
        return list(self._digests.get(kind, ()))

    def read_large(self, kind: str) -> dict[str, bytes]:
        """Read the entries of a kind that is not kept in memory, and check them again."""
        found: dict[str, bytes] = {}
        for entry in self._store.read(kind):
            if self._digest(entry.kind, entry.key) != entry_digest(entry):
                raise damaged(self.name, "an entry was altered")
            found[entry.key] = entry.body
        if len(found) != len(self.keys(kind)):
            raise damaged(self.name, "an entry is lost")
        return found

    def commit(self, put: Iterable[StateEntry] = (), drop: Iterable[tuple[str, str]] = ()) -> None:
        """Change entries in one step; at the return it is on disk.

        Entries that are the same as before are not written again, nor are any dropped that are not there.
        """
        last = {(entry.kind, entry.key): entry for entry in put}
        changed: list[tuple[StateEntry, int]] = []
        change = 0
        for place, entry in last.items():
            digest, before = entry_digest(entry), self._digest(*place)
            if digest != before:
                changed.append((entry, digest))
                change += digest - before
        gone = [place for place in dict.fromkeys(drop) if self._digest(*place) and place not in last]
        head = self._head.following(change - sum(self._digest(*place) for place in gone))
        self._store.commit([*(entry for entry, _ in changed), head.to_entry()], gone, head.number)
        for kind, key in gone:
            del self._digests[kind][key]
            self._bodies.pop((kind, key), None)
        for entry, digest in changed:
            self._keep(entry, digest)
        self._head = head

    def close(self) -> None:
        """Let go of the state."""
        self._store.close()

    def _digest(self, kind: str, key: str) -> int:
        return self._digests.get(kind, {}).get(key, 0)

    def _keep(self, entry: StateEntry, digest: int) -> None:
        self._digests.setdefault(entry.kind, {})[entry.key] = digest
        if entry.kind not in _LARGE:
            self._bodies[entry.kind, entry.key] = entry.body

    def _read_all(self) -> Head:
        """Read every entry and compare the whole with its head."""
        head: Head | None = None
        name = self._store.name
        for entry in self._store.read():
            if (entry.kind, entry.key) == HEAD:
                head = Head.from_body(entry.body, name)
            else:
                self._keep(entry, entry_digest(entry))
        if head is None:
            raise damaged(name, "it has no head")
        if sum(sum(digests.values()) for digests in self._digests.values()) % (1 << 256) != head.digest:
            raise damaged(name, "its entries are not those that were written")
        acknowledged = self._store.acknowledged
        if acknowledged is not None and acknowledged > head.number:
            raise StateError(
                f"the state {name!r} lacks the last {acknowledged - head.number} commits that were acknowledged, so it "
                "is an older or half copied one; restore the newer copy, or remove the lock file to go on from the "
                "older one, which has forgotten what was published since"
            )
        return head
