"""The server's end of the process that does the work: one job at a time, how far it is, stop and cancel."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.core.documents import parse_json, write_json
from sfumato.core.errors import OptionError
from sfumato.web.worker import STOP

__all__ = ["COMPARED", "OUTPUT", "TUNING_PAGE", "Job", "Worker"]

OUTPUT = "out"
"""Folder of a release, with ``release/`` and ``owner/``."""
TUNING_PAGE = "tuning.html"
COMPARED = "compared.json"
"""File of the drawings of original and release."""

_MOST_LINE = 1 << 26  # bytes of one event: a schema of very many columns
_MOST_NOTES = 20
_UNPACKED = 10  # a packed file may be so many times as large as one that is dropped in
_BROKEN = (
    "something unforeseen went wrong ({}); nothing was written. Please report it as a defect, with what the same "
    "command shows with --debug, less any data"
)
_KILLED = "the work ended before it was done, perhaps for lack of memory; nothing was written"


@dataclass
class Job:
    """One step of work, as far as it has come."""

    order: int
    kind: str
    state: str = "running"  # running, done, failed or cancelled
    stage: str = ""
    fraction: float = 0.0
    points: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    result: dict[str, Any] | None = None
    error: str = ""
    keep: Callable[[dict[str, Any]], None] | None = field(default=None, repr=False)  # is given the result
    ended: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def end(self, state: str, error: str = "") -> None:
        """Say that it is over."""
        self.state, self.error = state, error
        self.ended.set()

    def to_json(self) -> dict[str, Any]:
        """How far it is, for the page."""
        shown = ("order", "kind", "state", "stage", "fraction", "points", "notes", "error")
        return {name: getattr(self, name) for name in shown}


class Worker:
    """Starts the process, gives it orders and listens to it; a cancelled one is ended and started anew."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder, self._most_bytes = folder, most_bytes
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._orders = 0
        self.job: Job | None = None

    @property
    def busy(self) -> bool:
        """Whether a job is under way."""
        return self.job is not None and self.job.state == "running"

    async def start(self) -> None:
        """Start the process, so that it has loaded what it needs when the first order comes."""
        if self._process is not None and self._process.returncode is None:
            return
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # nothing that lies in the folder is ever imported
            "-m",
            "sfumato.web.worker",
            str(self._folder),
            str(_UNPACKED * self._most_bytes),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_MOST_LINE,
            start_new_session=True,  # Ctrl-C at the terminal is the server's
        )
        self._reader = asyncio.create_task(self._listen(self._process))

    async def begin(self, kind: str, keep: Callable[[dict[str, Any]], None] | None = None, **told: Any) -> Job:
        """Begin a job; what comes of it is given to ``keep``.

        Raises
        ------
        OptionError
            While another one is under way.
        """
        if self.busy:
            raise OptionError("something else is being worked on; wait for it, or stop it")
        self._orders += 1
        job = self.job = Job(self._orders, kind, keep=keep)
        await self.start()
        await self._send({"order": job.order, "step": kind, **told})
        return job

    async def stop(self) -> None:
        """End the job that is under way: tuning keeps what it has measured, anything else leaves nothing."""
        if self.job is None or not self.busy:
            return
        if self.job.kind == "tune" and self.job.points:
            await self._send({"order": self.job.order, "step": STOP})
            return
        self.job.end("cancelled")
        await self.kill()

    async def kill(self) -> None:
        """End the process at once."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._reader is not None:
            await self._reader

    async def _send(self, order: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(ConnectionError):  # its end is heard by the reader
            self._process.stdin.write(f"{write_json(order)}\n".encode())
            await self._process.stdin.drain()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            event = parse_json(line)
            if self.job is not None and event["order"] == self.job.order and self.busy:
                _hear(self.job, event)
        await process.wait()
        if self.job is not None and self.busy and process is self._process:
            self.job.end("failed", _KILLED)


def _hear(job: Job, event: dict[str, Any]) -> None:
    kind = event.pop("event")
    if kind == "progress":
        job.stage, job.fraction = event["stage"], event["fraction"]
    elif kind == "point":
        job.points.append({name: value for name, value in event.items() if name != "order"})
    elif kind == "note" and len(job.notes) < _MOST_NOTES:
        job.notes.append(event["words"])
    elif kind == "done":
        job.result = event["result"]
        if job.keep is not None:
            job.keep(event["result"])
        job.end("done")
    elif kind == "failed":
        job.end("failed", event["words"])
    elif kind == "broken":
        job.end("failed", _BROKEN.format(event["kind"]))
