"""The answers of a survey in a database: a file of SQLite by default, PostgreSQL by its URL.

What is stored is not a list of people's answers: one table says how often each randomized value came, another holds the
marks of used tokens and the seals of their answers, in the order of hashes and not of arrival.

A single commit to disk takes milliseconds whether it holds one answer or hundreds. So answers that come while a
transaction is on its way share the next one: one task writes, all others wait for their result, and nobody is answered
"accepted" before the transaction is on disk.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from itertools import chain
from typing import TextIO

import sqlalchemy as sa

from sfumato.core.database import (
    Blob,
    DatabaseFault,
    Location,
    PreparedStatement,
    engine,
    file_identity,
    insert_into,
    locate,
    transaction,
)
from sfumato.core.documents import MOST_BYTES, Unparsable, parse_json, write_json
from sfumato.core.errors import BadInput, OptionError, SfumatoError
from sfumato.survey.questions import KEY_BYTES

__all__ = [
    "AnswerStore",
    "AnswerWriter",
    "Log",
    "QueueFull",
    "StoreError",
    "Submission",
    "SubmissionResult",
    "read_survey_document",
]

_BUSY = 30.0  # seconds to wait for another process that writes
_MOST_ROWS = 128  # of a statement

_TABLES = sa.MetaData()
# SQLite orders used tokens by hash: no row number tells the order of arrival
_SURVEY = sa.Table(  # the key of the tokens and the survey's document
    "sfumato_survey",
    _TABLES,
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("value", Blob, nullable=False),
    sqlite_with_rowid=False,
)
_USED = sa.Table(
    "sfumato_used",
    _TABLES,
    sa.Column("mark", Blob, primary_key=True),
    sa.Column("seal", Blob, nullable=False),
    sqlite_with_rowid=False,
)
_COUNTS = sa.Table(  # how often each randomized value came
    "sfumato_counts",
    _TABLES,
    sa.Column("question", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("output", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("answers", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)


class StoreError(SfumatoError):
    """The database did not do what it was asked; nothing of the transaction stays."""


class SubmissionResult(Enum):
    """What became of a submission: counted, a retry of what was counted, or refused for another answer was."""

    NEW = "new"
    SAME = "same"
    OTHER = "other"


@dataclass(frozen=True)
class Submission:
    """One person's randomized answers: a code for each question, under the mark and the seal of the token."""

    mark: bytes
    seal: bytes
    codes: tuple[int, ...]


class AnswerStore:
    """The database of one survey, which has the tables; see `open`. Several processes may work on it.

    Answers that go to a file that was deleted meanwhile are lost, so it is looked at. With ``create`` it may be
    changed; what is only read may be anybody's.
    """

    def __init__(self, location: Location, *, create: bool = True) -> None:
        self._location, self._create = location, create
        self._identity = None if location.file is None else file_identity(location.file)
        pragmas = (*(["journal_mode = wal"] if create else []), "synchronous = full")  # the first stays in the file
        self._engine = engine(location, busy=_BUSY, pragmas=pragmas, poolclass=sa.QueuePool)
        count = insert_into(_COUNTS, self._engine)
        answers = _COUNTS.c.answers + count.excluded.answers
        added = count.on_conflict_do_update(index_elements=["question", "output"], set_={"answers": answers})
        self._count = PreparedStatement(added, self._engine, ["question", "output", "answers"])
        self._claims: dict[int, PreparedStatement] = {}  # by number of rows

    def __repr__(self) -> str:
        return f"AnswerStore({self._location.name!r})"

    @classmethod
    def open(cls, place: str, *, create: bool = True) -> AnswerStore:
        """Open a database by its URL, or an SQLite file by its path; a new file is for its owner only.

        The URL is ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``. File and tables are made if there are none.
        """
        location = locate(place)
        if location.file is not None:
            _prepare_file(location, create=create)
        store = cls(location, create=create)
        try:
            with _plain_errors("opened", BadInput):
                if not store._has_tables():
                    if not create:
                        raise OptionError(
                            "this database holds no survey; begin one with 'sfumato survey serve' or 'tokens'"
                        )
                    store._create_tables()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Let go of all connections."""
        self._engine.dispose()

    @property
    def key(self) -> bytes:
        """The key that signs tokens; made at the first call."""
        made = secrets.token_bytes(KEY_BYTES)
        with self._writing() as connection:
            _put(connection, "key", made)
            return _value(connection, "key") or made

    def survey_document(self) -> Mapping[str, object] | None:
        """Document of the survey, None before one was set."""
        with self._reading() as connection:
            found = _value(connection, "survey")
        return None if found is None else read_survey_document(found)

    def set_survey(self, document: Mapping[str, object]) -> Mapping[str, object]:
        """Store the document of the survey; the one that stands then, for one with another digest is left as it is."""
        text = write_json(document).encode()
        with self._writing() as connection:  # so that two that begin at once do not both believe it is theirs
            _put(connection, "survey", text)
            standing = read_survey_document(_value(connection, "survey") or text)
            if standing.get("digest") == document.get("digest"):
                connection.execute(_SURVEY.update().where(_SURVEY.c.name == "survey").values(value=text))
        return standing

    def add(self, batch: Sequence[Submission]) -> list[SubmissionResult]:
        """Store submissions in one transaction and say what became of each; at the return they are on disk.

        A token counts once. Of several answers under one token the first stands; the same answer again is a retry.
        """
        first: dict[bytes, Submission] = {}
        for each in batch:
            first.setdefault(each.mark, each)
        with self._writing() as connection:
            # in the order of marks: two processes with the same tokens wait for each other and never in a circle
            new = self._claim(connection, [(mark, first[mark].seal) for mark in sorted(first)])
            tally = Counter(place for mark in new for place in enumerate(first[mark].codes))
            if tally:
                self._count.run(connection, [(*place, answers) for place, answers in sorted(tally.items())])
            seals: dict[bytes, bytes] = {}
            if known := [mark for mark in first if mark not in new]:
                found = connection.execute(sa.select(_USED).where(_USED.c.mark.in_(known)))
                seals = {row.mark: row.seal for row in found}
        results = []
        for each in batch:
            if each.mark in new:
                new.remove(each.mark)  # the first of its token; all after it are retries or others
                seals[each.mark] = each.seal
                results.append(SubmissionResult.NEW)
            else:
                results.append(SubmissionResult.SAME if seals[each.mark] == each.seal else SubmissionResult.OTHER)
        return results

    def _claim(self, connection: sa.Connection, rows: Sequence[tuple[bytes, bytes]]) -> set[bytes]:
        """Write down the marks that are not there yet, and say which; by powers of two, for there are few of these."""
        new: set[bytes] = set()
        first = 0
        while first < len(rows):
            size = 1 << min(len(rows) - first, _MOST_ROWS).bit_length() - 1
            if size not in self._claims:
                claim = insert_into(_USED, self._engine).values([{"mark": b"", "seal": b""}] * size)
                claim = claim.on_conflict_do_nothing().returning(_USED.c.mark)  # type: ignore[assignment]
                self._claims[size] = PreparedStatement(claim, self._engine)
            values = tuple(chain.from_iterable(rows[first : first + size]))
            new.update(mark for (mark,) in self._claims[size].fetch(connection, values))
            first += size
        return new

    def counts(self) -> tuple[int, dict[int, dict[int, int]]]:
        """Number of used tokens, and for each question how often each output came, of one moment."""
        tallies: dict[int, dict[int, int]] = {}
        with self._reading() as connection:
            used = connection.scalar(sa.select(sa.func.count()).select_from(_USED)) or 0
            for question, output, answers in connection.execute(sa.select(_COUNTS)):
                tallies.setdefault(question, {})[output] = answers
        return used, tallies

    def ping(self) -> None:
        """Ask the database whether it answers."""
        with self._reading() as connection:
            connection.execute(sa.select(_SURVEY.c.name))

    def _has_tables(self) -> bool:
        with transaction(self._engine, write=False) as connection:
            return sa.inspect(connection).has_table(_SURVEY.name)

    def _create_tables(self) -> None:
        try:
            with transaction(self._engine, write=True) as connection:
                _TABLES.create_all(connection)
        except DatabaseFault:
            if not self._has_tables():  # else another process made them in this moment
                raise

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        self._check_file()
        with _plain_errors("written"), transaction(self._engine, write=True) as connection:
            yield connection
        self._check_file()  # what was written to a file without a name is not stored

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        self._check_file()
        with _plain_errors("read"), transaction(self._engine, write=False) as connection:
            yield connection

    def _check_file(self) -> None:
        file = self._location.file
        if file is not None and file_identity(file) != self._identity:
            raise StoreError("the file of the survey's database was deleted or replaced; put it back and start again")


def _prepare_file(location: Location, *, create: bool) -> None:
    """Make a new file for its owner only; the files beside it take its mode."""
    if location.file is None or location.file.exists():
        return
    if not create:
        raise OptionError(f"there is no database {location.name!r}; begin it with 'sfumato survey serve' or 'tokens'")
    try:
        os.close(os.open(location.file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise OptionError(f"the database {location.name!r} cannot be made ({reason}); choose another place") from None


def _put(connection: sa.Connection, name: str, value: bytes) -> None:
    """Store a value under a name, unless there is one."""
    connection.execute(insert_into(_SURVEY, connection).on_conflict_do_nothing(), {"name": name, "value": value})


def _value(connection: sa.Connection, name: str) -> bytes | None:
    found: bytes | None = connection.scalar(sa.select(_SURVEY.c.value).where(_SURVEY.c.name == name))
    return found


@contextmanager
def _plain_errors(done: str, kind: type[SfumatoError] = StoreError) -> Iterator[None]:
    try:
        yield
    except DatabaseFault as fault:
        raise kind(
            f"the survey's database could not be {done} ({fault.name}); check that it is there and not full"
        ) from None


def read_survey_document(body: bytes) -> Mapping[str, object]:
    """Document of a survey as the database holds it; raises BadInput where it is no document."""
    with suppress(Unparsable):
        document = parse_json(body, most=MOST_BYTES)
        if isinstance(document, dict):
            return document
    raise BadInput("the survey in the database cannot be read; restore a complete copy of it")


_MOST_AT_ONCE = 1000
_MOST_WAITING = 20_000
_SECONDS_A_LINE = 10.0  # of the log, and
_ANSWERS_A_LINE = 10  # at least: a line for each commit would say when each answer came
_SORE = 30.0  # seconds for which a commit that failed is held against the database


class Log:
    """Writes one JSON object a line: what happened and how often, never an answer, a token or an address.

    Stored answers are logged as a count now and then: a line for each would say when someone answered. Without a
    stream it is standard error, as it is when a line is written.
    """

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream
        self._quiet = quiet

    def write(self, event: str, **details: str | int | float) -> None:
        """Write one line; details are names, counts and times only.

        A log that cannot be written (a full disk, a closed pipe) does not keep answers from being stored.
        """
        if self._quiet:
            return
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        line = write_json({"time": moment, "event": event, **details}, escaped=True)
        with suppress(OSError, ValueError):
            print(line, file=self._stream or sys.stderr, flush=True)


class QueueFull(SfumatoError):
    """More answers wait for the disk than it can take."""


class AnswerWriter:
    """The one task of a process that stores answers."""

    def __init__(self, store: AnswerStore, log: Log) -> None:
        self._store = store
        self._log = log
        self._waiting: list[tuple[Submission, asyncio.Future[SubmissionResult]]] = []
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answers")
        self._task: asyncio.Task[None] | None = None
        self._ending = False
        self._batch: list[tuple[Submission, asyncio.Future[SubmissionResult]]] = []
        self._failed = -_SORE
        self._answers, self._commits, self._slowest, self._reported = 0, 0, 0.0, time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether answers are being stored."""
        return self._task is not None and not self._task.done()

    @property
    def failing(self) -> bool:
        """Whether the last commit failed, a moment ago."""
        return time.monotonic() - self._failed < _SORE

    def start(self) -> None:
        """Begin to store."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Store what waits, then end."""
        self._ending = True
        self._wake.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def add(self, submission: Submission) -> SubmissionResult:
        """Store a submission and say what became of it, once that is on disk.

        A `StoreError` if the transaction failed, `QueueFull` if too many wait.
        """
        if not self.alive:
            raise StoreError("the collector has stopped; send it again later")
        if len(self._waiting) >= _MOST_WAITING:
            raise QueueFull("too many answers wait to be stored; send it again later")
        done: asyncio.Future[SubmissionResult] = asyncio.get_running_loop().create_future()
        self._waiting.append((submission, done))
        self._wake.set()
        return await done

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting or not self._ending:
                await self._wake.wait()
                self._wake.clear()
                while self._waiting:
                    self._batch, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
                    began = time.perf_counter()
                    rows = [each for each, _ in self._batch]
                    try:
                        results = await loop.run_in_executor(self._thread, self._store.add, rows)
                    except StoreError as error:
                        self._failed = time.monotonic()
                        self._log.write("commit failed", answers=len(rows))
                        self._fail(self._batch, str(error))
                        continue
                    self._tell(results, time.perf_counter() - began)
        finally:  # whatever ends it, nobody is left waiting
            self._fail([*self._batch, *self._waiting], "the collector has stopped; send it again later")
            self._report()

    def _tell(self, results: list[SubmissionResult], seconds: float) -> None:
        self._failed = -_SORE
        new = results.count(SubmissionResult.NEW)
        for (_, done), result in zip(self._batch, results, strict=True):
            if not done.done():  # the client may have gone away
                done.set_result(result)
        if not new:
            return
        self._answers, self._commits = self._answers + new, self._commits + 1
        self._slowest = max(self._slowest, seconds)
        if self._answers >= _ANSWERS_A_LINE and time.monotonic() - self._reported >= _SECONDS_A_LINE:
            self._report()

    def _report(self) -> None:
        if self._commits:
            slowest = round(1000.0 * self._slowest, 1)
            self._log.write("stored", answers=self._answers, commits=self._commits, slowest_milliseconds=slowest)
        self._answers, self._commits, self._slowest, self._reported = 0, 0, 0.0, time.monotonic()

    def _fail(self, batch: list[tuple[Submission, asyncio.Future[SubmissionResult]]], words: str) -> None:
        for _, done in batch:
            if not done.done():
                done.set_exception(StoreError(words))
