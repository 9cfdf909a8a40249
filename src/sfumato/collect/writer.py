"""Group commit: answers that come while a transaction is on its way to the disk share the next one.

A single commit to disk takes milliseconds whether it holds one answer or hundreds. So one task writes, all others wait
for their result, and nobody is told "accepted" before the transaction is on disk.
"""

from __future__ import annotations

import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

from sfumato.collect.store import AnswerStore, StoreError, Submission, SubmissionResult
from sfumato.core.documents import write_json
from sfumato.core.errors import SfumatoError

__all__ = ["AnswerWriter", "Crowded", "Log"]

_MOST_AT_ONCE = 1000
_MOST_WAITING = 20_000
_SECONDS_A_LINE = 10.0  # of the log, and
_ANSWERS_A_LINE = 10  # at least: a line for each commit would say when each answer came
_SORE = 30.0  # seconds for which a commit that failed is held against the database


class Log:
    """Writes one JSON object a line: what happened and how often, never an answer, a token or an address.

    Stored answers are logged as a count now and then: a line for each would say when somebody answered.

    Parameters
    ----------
    stream : text stream or None
        None is standard error, as it is when a line is written.
    quiet : bool
        Write nothing.
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


class Crowded(SfumatoError):
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

        Raises
        ------
        StoreError
            If the transaction failed.
        Crowded
            If too many wait.
        """
        if not self.alive:
            raise StoreError("the collector has stopped; send it again later")
        if len(self._waiting) >= _MOST_WAITING:
            raise Crowded("too many answers wait to be stored; send it again later")
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
