"""How parties talk: a port, and its twin in one process.

A channel carries bytes between every two parties, in order. Whatever goes wrong with any party is told to all of them
as one sentence.
"""

from __future__ import annotations

import queue
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from sfumato.errors import SfumatoError

__all__ = ["Channel", "LocalChannel", "PartyError", "local_channels"]

_LOOK = 0.2  # seconds between two looks at whether another party has given up


class PartyError(SfumatoError):
    """Another party, or the way to it, failed; nothing is written."""


class Channel(Protocol):
    """The way to all other parties.

    Attributes
    ----------
    rank : int
        The place of this party, from 0.
    names : tuple of str
        Of all parties, in the order of their ranks.
    sent, messages : int
        Bytes and messages that this party has sent.
    """

    rank: int
    names: tuple[str, ...]
    sent: int
    messages: int

    @property
    def parties(self) -> int:
        """Number of parties."""

    def send(self, to: int, kind: str, payload: bytes) -> None:
        """Send bytes to a party; the kind says what they are."""

    def receive(self, sender: int, kind: str) -> bytes:
        """Wait for the next bytes of a party, which must be of this kind.

        Raises
        ------
        PartyError
            Where any party has given up, is gone or stays silent too long.
        """

    def waiting(self, *ranks: int) -> AbstractContextManager[None]:
        """Let the others know whom this party waits for, until the block ends."""

    def abort(self, reason: str) -> None:
        """Tell all others that this party gives up, and why; the sentence holds no data."""

    def close(self) -> None:
        """End the connections."""


class _Hall:
    """What the parties of one process share: a queue for every two of them, and the first failure."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        ranks = range(len(names))
        self.queues: dict[tuple[int, int], queue.Queue[tuple[str, bytes]]] = {
            (sender, to): queue.Queue() for sender in ranks for to in ranks if sender != to
        }
        self.failure: tuple[int, str] | None = None
        self.lock = threading.Lock()


class LocalChannel:
    """A channel between threads of one process."""

    def __init__(self, hall: _Hall, rank: int, timeout: float) -> None:
        self.rank = rank
        self.names = hall.names
        self.sent = self.messages = 0
        self._hall, self._timeout = hall, timeout

    @property
    def parties(self) -> int:
        """Number of parties."""
        return len(self.names)

    def send(self, to: int, kind: str, payload: bytes) -> None:
        """Put bytes into the queue of another thread."""
        self._hall.queues[self.rank, to].put((kind, payload))
        self.sent += len(payload)
        self.messages += 1

    def receive(self, sender: int, kind: str) -> bytes:
        """Take the next bytes of another thread."""
        end = time.monotonic() + self._timeout
        while True:
            try:
                told, payload = self._hall.queues[sender, self.rank].get(timeout=_LOOK)
                break
            except queue.Empty:
                self._look()
                if time.monotonic() > end:
                    raise PartyError(
                        f"party {self.names[sender]!r} was silent for {self._timeout:g} seconds; start all again"
                    ) from None
        if told != kind:
            raise PartyError(
                f"party {self.names[sender]!r} sent {told!r} where {kind!r} was due; start all parties again"
            )
        return payload

    def _look(self) -> None:
        failure = self._hall.failure
        if failure is not None and failure[0] != self.rank:
            raise PartyError(f"party {self.names[failure[0]]!r} gave up: {failure[1]}")

    def waiting(self, *_: int) -> AbstractContextManager[None]:
        """Threads that wait for each other end together."""
        return nullcontext()

    def abort(self, reason: str) -> None:
        """Leave word for the other threads; the first to fail is the one they hear of."""
        with self._hall.lock:
            if self._hall.failure is None:
                self._hall.failure = (self.rank, reason)

    def close(self) -> None:
        """There is nothing to end."""


def local_channels(names: tuple[str, ...], *, timeout: float = 60.0) -> tuple[LocalChannel, ...]:
    """End of each party of channels between threads.

    Examples
    --------
    >>> here, there = local_channels(("here", "there"))
    >>> here.send(1, "greeting", b"hello")
    >>> there.receive(0, "greeting")
    b'hello'
    """
    hall = _Hall(names)
    return tuple(LocalChannel(hall, rank, timeout) for rank in range(len(names)))
