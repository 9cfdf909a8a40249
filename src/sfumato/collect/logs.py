"""Logs as JSON lines: what happened and how often, never an answer, a token or an address.

Stored answers are logged as a count now and then: a line for each would say when somebody answered.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

from sfumato.documents import write_json

__all__ = ["Log"]


class Log:
    """Writes one JSON object a line.

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
