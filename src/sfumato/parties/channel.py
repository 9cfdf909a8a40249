"""The channel of a party: bytes to every other party, in order, and one sentence to all if any party fails."""

from __future__ import annotations

import copy
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from sfumato.core.errors import SfumatoError

__all__ = ["MOST_MESSAGE", "Inbox", "LocalChannel", "PartyChannel", "PartyError", "local_channels"]

MOST_MESSAGE = 1 << 30
"""Largest message in bytes, and the most that one party may send before it is read."""

_POLL = 0.5  # seconds between two checks
_OVERHEAD = 1 << 10  # largest overhead of a message in bytes: many empty ones count too
_RESTART = "start all parties again"


class PartyError(SfumatoError):
    """Another party, or the connection to it, failed; nothing is written."""


class PartyChannel(Protocol):
    """Channel to all other parties.

    Attributes
    ----------
    rank : int
        The place of this party, from 0.
    names : tuple of str
        Of all parties, in the order of their ranks.
    sent, messages : int
        Bytes and messages that this party has sent.
    inbox : Inbox
        What has come, and the first failure.
    """

    rank: int
    names: tuple[str, ...]
    sent: int
    messages: int
    inbox: Inbox

    @property
    def parties(self) -> int:
        """Number of parties."""
        return len(self.names)

    def send(self, to: int, kind: str, payload: bytes) -> None:
        """Send a message of this kind to a party."""

    def receive(self, sender: int, kind: str) -> bytes:
        """Wait for the next bytes of a party, which must be of this kind.

        Raises
        ------
        PartyError
            If any party has given up, is gone or stays silent too long.
        """
        sent_kind, payload = self.inbox.take(sender)
        if sent_kind != kind:
            raise PartyError(f"party {self.names[sender]!r} sent {sent_kind!r} where {kind!r} was due; {_RESTART}")
        return payload

    def waiting(self, *ranks: int) -> AbstractContextManager[None]:
        """Report to the others which parties this one waits for, until the block ends."""

    def abort(self, reason: str) -> None:
        """Tell all others that this party gives up, and why; the reason contains no data."""

    def close(self) -> None:
        """End the connections."""


class Inbox:
    """Messages that have arrived and are unread, and the first failure.

    Parameters
    ----------
    names : tuple of str
        Of all parties.
    step : float
        Seconds to wait for a message at most.

    Attributes
    ----------
    awaited : tuple of int
        Parties that this one waits for now.
    """

    def __init__(self, names: tuple[str, ...], step: float = 1800.0) -> None:
        self.names, self.step = names, step
        self.awaited: tuple[int, ...] = ()
        self._waiting_for: dict[int, tuple[int, ...]] = {}  # by the other parties, as their signs of life say
        self.failed = threading.Event()
        self._news = threading.Condition()
        self._boxes: dict[int, deque[tuple[str, bytes]]] = {rank: deque() for rank in range(len(names))}
        self._unread = dict.fromkeys(range(len(names)), 0)
        self._ended: set[int] = set()
        self._failure: PartyError | None = None

    def free_bytes(self, sender: int) -> int:
        """Bytes that a party may still send before some are read."""
        return MOST_MESSAGE - self._unread[sender]

    def put(self, sender: int, kind: str, payload: bytes) -> None:
        """Add a message."""
        with self._news:
            self._boxes[sender].append((kind, payload))
            self._unread[sender] += len(payload) + _OVERHEAD
            self._news.notify_all()

    def take(self, sender: int) -> tuple[str, bytes]:
        """Wait for a message of a party, or for a failure of any."""
        end = time.monotonic() + self.step
        with self.waiting(sender), self._news:
            while True:
                self.check()
                if self._boxes[sender]:
                    kind, payload = self._boxes[sender].popleft()
                    self._unread[sender] -= len(payload) + _OVERHEAD
                    return kind, payload
                if sender in self._ended:
                    raise PartyError(
                        f"party {self.names[sender]!r} has ended its run while a message of it was due; {_RESTART}"
                    )
                if time.monotonic() > end:
                    raise self.step_expired()
                self._news.wait(_POLL)

    @contextmanager
    def waiting(self, *ranks: int) -> Iterator[None]:
        """Report in heartbeats that this party waits for others, until the block ends."""
        self.awaited = ranks
        try:
            yield
        finally:
            self.awaited = ()

    def note_waiting(self, sender: int, awaited: tuple[int, ...]) -> None:
        """Note which parties another one waits for."""
        self._waiting_for[sender] = awaited

    def blocking_parties(self) -> str:
        """Parties that hold this one up: those that it waits for, also through others, and that wait for none."""
        seen, left, idle = set[int](), list(self.awaited), []
        while left:
            rank = left.pop(0)
            if rank in seen:
                continue
            seen.add(rank)
            behind = self._waiting_for.get(rank, ())
            left.extend(behind)
            if not behind:
                idle.append(rank)
        named = [self.names[rank] for rank in idle or self.awaited]  # where all wait for each other, for whom I wait
        return ("party " if len(named) == 1 else "parties ") + " and ".join(map(repr, named))

    def step_expired(self) -> PartyError:
        """Error of a step that has taken too long."""
        return PartyError(
            f"{self.blocking_parties()} is connected but did not advance for {self.step:g} seconds; {_RESTART}, "
            "with a longer 'step' if it was still computing"
        )

    def end(self, sender: int) -> None:
        """Note that a party has ended its run."""
        with self._news:
            self._ended.add(sender)
            self._news.notify_all()

    def fail(self, error: PartyError) -> None:
        """Note a failure; the first counts."""
        with self._news:
            if self._failure is None:
                self._failure = error
                self.failed.set()
            self._news.notify_all()

    @property
    def failure(self) -> str:
        """What failed, in one sentence; nothing while all is well."""
        return "" if self._failure is None else str(self._failure)

    def check(self) -> None:
        """Raise the failure, if there is one."""
        if self._failure is not None:
            raise copy.copy(self._failure)


class LocalChannel(PartyChannel):
    """A channel between threads of one process, which puts messages into the inboxes of the others."""

    def __init__(self, rank: int, inboxes: tuple[Inbox, ...]) -> None:
        self.rank, self.names, self.inbox = rank, inboxes[rank].names, inboxes[rank]
        self.sent = self.messages = 0
        self._inboxes, self._closed = inboxes, False

    def send(self, to: int, kind: str, payload: bytes) -> None:
        """Put a message into the inbox of another thread."""
        self._inboxes[to].put(self.rank, kind, payload)
        self.sent += len(payload)
        self.messages += 1

    def waiting(self, *_: int) -> AbstractContextManager[None]:
        """Threads that wait for each other end together."""
        return nullcontext()

    def abort(self, reason: str) -> None:
        """Tell the other threads why this one gives up; the first failure counts."""
        for rank, inbox in enumerate(self._inboxes):
            if rank != self.rank and not self._closed:
                inbox.fail(PartyError(f"party {self.names[self.rank]!r} gave up: {reason}"))

    def close(self) -> None:
        """Say nothing more."""
        self._closed = True


def local_channels(names: tuple[str, ...], *, timeout: float = 60.0) -> tuple[LocalChannel, ...]:
    """Channel of each party of one process; ``timeout`` is the longest wait for a message, in seconds.

    Examples
    --------
    >>> here, there = local_channels(("here", "there"))
    >>> here.send(1, "greeting", b"hello")
    >>> there.receive(0, "greeting")
    b'hello'
    """
    inboxes = tuple(Inbox(names, timeout) for _ in names)
    return tuple(LocalChannel(rank, inboxes) for rank in range(len(names)))
