"""The process that does the work of the page: one step after the other, each told in lines of JSON.

It runs in the folder of the visit, reads orders from standard input and ends when that ends, however the server did. A
step that can be stopped early (tuning) is interrupted as Ctrl-C does it; anything else is cancelled by its end.
"""

from __future__ import annotations

import _thread
import os
import queue
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import TracebackType
from typing import Any, TextIO

from sfumato.core.documents import parse_json, write_json
from sfumato.core.errors import SfumatoError, printable
from sfumato.core.progress import listening

__all__ = ["STOP", "main"]

STOP = "stop"
"""The order that ends a step that can be stopped early."""

_PAUSE = 0.1  # seconds between two words about progress
_STOPPED = "it was stopped before one setting had been tried"
_MEMORY = "there is not enough memory for this table; nothing was written"


class _Line:
    """Where events go: what a library prints by itself goes nowhere."""

    def __init__(self) -> None:
        self._out: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8")
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        self._last = 0.0
        self.order = 0  # the one that is worked on

    def send(self, event: str, **told: Any) -> None:
        """Tell the server something of the order that is worked on."""
        self._out.write(f"{write_json({'event': event, 'order': self.order, **told})}\n")
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
    """Work in the folder that the command line names, with files of so many bytes, until the server is gone."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell had it ignored
    os.chdir(sys.argv[1])
    line = _Line()
    sys.excepthook = _telling(line)
    orders = _Orders()
    from sfumato.web.steps import Steps  # here, so that the page is there before all of it is loaded

    steps = Steps(line.send, orders.stoppable, most_bytes=int(sys.argv[2]))
    for order in orders:
        line.order = order.pop("order")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda message, *_rest, **_more: line.send("note", words=f"{message}.")
            try:
                with listening(line.progress):
                    line.send("done", result=steps.run(order))
            except SfumatoError as error:
                line.send("failed", words=printable(f"{error}"), code=error.exit_code)
            except KeyboardInterrupt:
                line.send("failed", words=_STOPPED, code=1)
            except MemoryError:
                line.send("failed", words=_MEMORY, code=1)


def _telling(line: _Line) -> Callable[[type[BaseException], BaseException, TracebackType | None], None]:
    """What is said of a defect: its kind, and nothing of the data."""

    def tell(kind: type[BaseException], _error: BaseException, _trace: TracebackType | None) -> None:
        line.send("broken", kind=kind.__name__)

    return tell


if __name__ == "__main__":
    main()
