"""The process that does the work of the page, and the server's end of it: one job at a time, reported in lines of JSON.

It runs in the folder of the visit, reads orders from standard input and ends when that ends, however the server did. A
step that can be stopped early (tuning) is interrupted as Ctrl-C does it; anything else is cancelled by its end.
"""

from __future__ import annotations

import _thread
import asyncio
import os
import queue
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Literal, TextIO

from sfumato.core.documents import from_json, parse_json, write_json
from sfumato.core.errors import OptionError, SfumatoError, TableError, printable, with_options
from sfumato.core.progress import listening

__all__ = ["COMPARED", "OUTPUT", "TUNING_PAGE", "Job", "Worker", "main"]

STOP = "stop"
"""The order that ends a step that can be stopped early."""

_PAUSE = 0.1  # seconds between two words about progress
_STOPPED = "stopped before a setting was measured"
_MEMORY = "not enough memory for this table; nothing was written"


class _Line:
    """Where events go: what a library prints by itself goes nowhere."""

    def __init__(self) -> None:
        self._out: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8")
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        self._last = 0.0
        self.order = 0  # the one that is worked on

    def send(self, event: str, **options: Any) -> None:
        """Tell the server something of the order that is worked on."""
        self._out.write(f"{write_json({'event': event, 'order': self.order, **options})}\n")
        self._out.flush()

    def progress(self, stage: str, fraction: float) -> None:
        """Tell how far it is, not too often."""
        if (now := monotonic()) - self._last >= _PAUSE or fraction >= 1.0:
            self._last = now
            self.send("progress", stage=stage, fraction=round(fraction, 4))


class _Orders:
    """Orders as they come, read beside the work."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._stoppable = False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin.buffer:
            order = parse_json(line)
            if order.get("step") != STOP:
                self._waiting.put(order)
                continue
            with self._guard:
                if self._stoppable:
                    self._stoppable = False
                    _thread.interrupt_main()
        os._exit(0)  # the server is gone

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while True:
            yield self._waiting.get()

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """A block that the order to stop interrupts, once, as Ctrl-C would."""
        with self._guard:
            self._stoppable = True
        try:
            yield
        finally:
            with self._guard:
                self._stoppable = False


def main() -> None:
    """Work in the folder that the command line names, with files up to a size limit, until the server is gone."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell had it ignored
    os.chdir(sys.argv[1])
    line = _Line()
    sys.excepthook = lambda kind, *_: line.send("broken", kind=kind.__name__)  # without anything of the data
    orders = _Orders()
    from sfumato.web.steps import Steps  # here, so that the page is there before all of it is loaded
    from sfumato.web.visit import LABELS

    steps = Steps(line.send, orders.stoppable, most_bytes=int(sys.argv[2]))
    for order in orders:
        line.order = order.pop("order")
        with with_options(LABELS), warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda message, *_rest, **_more: line.send("note", words=f"{message}.")
            try:
                with listening(line.progress):
                    line.send("done", result=steps.run(order))
            except SfumatoError as error:
                proposed = dict(error.proposed) if isinstance(error, TableError) else {}
                line.send("failed", words=printable(f"{error}"), code=error.exit_code, proposed=proposed)
            except KeyboardInterrupt:
                line.send("failed", words=_STOPPED, code=1)
            except MemoryError:
                line.send("failed", words=_MEMORY, code=1)


OUTPUT = "out"
"""Folder of a release, with ``release/`` and ``owner/``."""
TUNING_PAGE = "tuning.html"
COMPARED = "compared.json"
"""File of the drawings of original and release."""

_MOST_LINE = 1 << 26  # bytes of one event: a schema of very many columns
_MOST_NOTES = 20
_UNPACKED = 10  # a decompressed file may be ten times as large as an uploaded one
_BROKEN = (
    "internal error ({}); nothing was written. Please report it, with the output of the same "
    "command with --debug, without data"
)
_KILLED = "the process ended early, perhaps for lack of memory; nothing was written"


@dataclass
class Job:
    """One step of work, as far as it has come."""

    order: int
    kind: str
    state: str = "running"  # running, done, failed or cancelled
    stage: str = ""
    fraction: float = 0.0
    points: list[dict[str, object]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    result: dict[str, object] | None = None
    error: str = ""
    proposed: dict[str, object] = field(default_factory=dict)  # options that may read a file that could not be read
    keep: Callable[[dict[str, object]], None] | None = field(default=None, repr=False)  # is given the result
    ended: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def end(self, state: str, error: str = "") -> None:
        """Say that it is over."""
        self.state, self.error = state, error
        self.ended.set()

    def to_json(self) -> dict[str, object]:
        """How far it is, for the page."""
        shown = ("order", "kind", "state", "stage", "fraction", "points", "notes", "error", "proposed")
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

    async def begin(self, kind: str, keep: Callable[[dict[str, object]], None] | None = None, **options: Any) -> Job:
        """Begin a job, which is refused while another is under way; what comes of it is given to ``keep``."""
        if self.busy:
            raise OptionError("another step is running; wait for it or cancel it")
        self._orders += 1
        job = self.job = Job(self._orders, kind, keep=keep)
        await self.start()
        await self._send({"order": job.order, "step": kind, **options})
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

    async def _send(self, order: dict[str, object]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(ConnectionError):  # its end is heard by the reader
            self._process.stdin.write(f"{write_json(order)}\n".encode())
            await self._process.stdin.drain()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            event = from_json(Event, line)
            if self.job is not None and event.order == self.job.order and self.busy:
                _hear(self.job, event)
        await process.wait()
        if self.job is not None and self.busy and process is self._process:
            self.job.end("failed", _KILLED)


@dataclass(frozen=True)
class Event:
    """What the process tells the server of an order, in a line of JSON."""

    event: Literal["progress", "point", "note", "done", "failed", "broken"]
    order: int
    stage: str = ""
    fraction: float = 0.0
    point: dict[str, object] = field(default_factory=dict)  # a setting that was measured
    words: str = ""
    result: dict[str, object] = field(default_factory=dict)
    code: int = 0
    proposed: dict[str, object] = field(default_factory=dict)
    kind: str = ""  # of an internal error


def _hear(job: Job, event: Event) -> None:
    if event.event == "progress":
        job.stage, job.fraction = event.stage, event.fraction
    elif event.event == "point":
        job.points.append(event.point)
    elif event.event == "note" and len(job.notes) < _MOST_NOTES:
        job.notes.append(event.words)
    elif event.event == "done":
        job.result = event.result
        if job.keep is not None:
            job.keep(event.result)
        job.end("done")
    elif event.event == "failed":
        job.proposed = event.proposed
        job.end("failed", event.words)
    elif event.event == "broken":
        job.end("failed", _BROKEN.format(event.kind))


if __name__ == "__main__":
    main()
