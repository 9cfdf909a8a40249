"""The connection to one party: messages in frames, heartbeats, and the end."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass

from sfumato.core.documents import Unparsable, from_json
from sfumato.parties.channel import MOST_MESSAGE, Inbox, PartyError
from sfumato.parties.stream import MOST_FRAME, ConnectionLost, Frame, TlsStream

__all__ = ["Connection", "Disconnect"]

_MOST_WORDS = 600  # of a reason that another party gives
_MOST_KIND = 200
_RANK_BYTES = 2


@dataclass(frozen=True)
class Disconnect:
    """Reason why a party gives up, and its exit code."""

    reason: str
    code: int


class Connection:
    """The connection to one party.

    Parameters
    ----------
    rank : int
        Of the other party.
    stream : TlsStream
        After both ends have greeted.
    clock : callable
        Gives seconds that only go up.
    """

    def __init__(self, rank: int, stream: TlsStream, inbox: Inbox, clock: Callable[[], float] = time.monotonic) -> None:
        self.rank, self.stream = rank, stream
        self._inbox, self._clock = inbox, clock
        self.last_heard = clock()
        self.closing = False  # either end has disconnected: silence is no failure
        self.acknowledged = asyncio.Event()
        self._kind, self._due, self._parts = "", -1, bytearray()

    @property
    def name(self) -> str:
        """Name of the other party."""
        return self._inbox.names[self.rank]

    async def listen(self) -> None:
        """Receive frames until the connection ends."""
        try:
            while True:
                frame, payload = await self.stream.receive()
                self.last_heard = self._clock()
                self._take(frame, payload)
        except (ConnectionLost, ssl.SSLError):
            if not self.closing:
                self._inbox.fail(PartyError(f"party {self.name!r} disconnected; start all parties again"))
        finally:
            self.closing = True
            self.acknowledged.set()
            self.stream.close()

    async def send(self, kind: str, payload: bytes) -> None:
        """Send a message in parts, no faster than the other end takes them."""
        self.stream.send(Frame.MESSAGE, len(payload).to_bytes(8, "big") + kind.encode())
        view = memoryview(payload)
        for start in range(0, len(payload), MOST_FRAME):
            self.stream.send(Frame.PART, view[start : start + MOST_FRAME])
            await self.stream.drain()
        await self.stream.drain()

    async def disconnect(self, frame: Frame, payload: bytes, within: float) -> None:
        """Report that this party ends or gives up, and wait a while for the acknowledgement."""
        if self.closing:
            return
        self.closing = True
        with contextlib.suppress(ConnectionLost, TimeoutError):
            self.stream.send(frame, payload)
            async with asyncio.timeout(within):
                await self.acknowledged.wait()

    def heartbeat(self) -> None:
        """Send a heartbeat, with the parties that this one waits for."""
        with contextlib.suppress(ConnectionLost):  # whoever listens there notes it
            self.stream.send(
                Frame.HEARTBEAT, b"".join(rank.to_bytes(_RANK_BYTES, "big") for rank in self._inbox.awaited)
            )

    def _take(self, frame: Frame, payload: bytes) -> None:
        if frame is Frame.MESSAGE and self._due < 0:
            self._begin(payload)
        elif frame is Frame.PART and 0 < len(payload) <= self._due - len(self._parts):
            self._parts += payload
        elif frame is Frame.ACKNOWLEDGED:
            self.acknowledged.set()
        elif frame in (Frame.ABORT, Frame.DISCONNECT):
            self._take_end(frame, payload)
        elif frame is Frame.HEARTBEAT and len(payload) <= _RANK_BYTES * len(self._inbox.names):
            ranks = (
                int.from_bytes(payload[place : place + _RANK_BYTES], "big")
                for place in range(0, len(payload), _RANK_BYTES)
            )
            self._inbox.note_waiting(self.rank, tuple(rank for rank in ranks if rank < len(self._inbox.names)))
        else:
            raise ConnectionLost
        if self._due == len(self._parts):
            self._inbox.put(self.rank, self._kind, bytes(self._parts))
            self._due, self._parts = -1, bytearray()

    def _begin(self, payload: bytes) -> None:
        self._due = int.from_bytes(payload[:8], "big")
        if not 8 <= len(payload) <= _MOST_KIND:
            raise ConnectionLost
        self._kind = payload[8:].decode(errors="replace")
        if self._due > self._inbox.free_bytes(self.rank):
            self._inbox.fail(
                PartyError(f"party {self.name!r} sends more than {MOST_MESSAGE >> 20} MiB at once; use fewer rows")
            )
            raise ConnectionLost

    def _take_end(self, frame: Frame, payload: bytes) -> None:
        self.closing = True
        if frame is Frame.DISCONNECT:
            self._inbox.end(self.rank)
        else:
            self._inbox.fail(self._failure_of(payload))
        with contextlib.suppress(ConnectionLost):
            self.stream.send(Frame.ACKNOWLEDGED)

    def _failure_of(self, payload: bytes) -> PartyError:
        """Failure of a party that gives up; the reason of a third party that it passes on is kept."""
        reason, code = _reason(payload)
        passed_on = reason.startswith(tuple(f"party {name!r} gave up: " for name in self._inbox.names))
        error = PartyError(reason if passed_on else f"party {self.name!r} gave up: {reason}")
        error.exit_code = code
        return error


def _reason(payload: bytes) -> tuple[str, int]:
    """Reason and exit code of a party that gave up; control characters are removed."""
    try:
        notice = from_json(Disconnect, payload)  # of one frame
    except Unparsable:
        return "it did not say why", 1
    words = "".join(sign if sign.isprintable() else " " for sign in notice.reason)[:_MOST_WORDS]
    return words, notice.code if notice.code in (2, 3) else 1
