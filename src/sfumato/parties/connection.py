"""The connection to one party: its greeting, messages in frames, heartbeats, and the end.

A greeting states name, rank and settings of the run; any difference is named.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.core.documents import Unparsable, from_json, parse_json, typed, write_json
from sfumato.core.errors import printable
from sfumato.parties.channel import MOST_MESSAGE, Inbox, PartyError
from sfumato.parties.stream import MOST_FRAME, ConnectionLost, Frame, TlsStream

__all__ = [
    "Connection",
    "Disconnect",
    "Hello",
    "PartyMismatch",
    "Purpose",
    "difference",
    "digest_of",
    "read_verdict",
    "verdict",
]

_PROTOCOL = 1
"""Version of the protocol between parties; those who speak another are refused."""

_SHOWN = 60
_MOST_VERDICT = 300

Purpose = Literal["channel", "engine"]
"""Purpose of a connection."""


class PartyMismatch(PartyError):
    """Two parties have different settings of the run, or one has another identity; nothing is written."""

    exit_code = 2


@dataclass(frozen=True)
class Hello:
    """First message of a party."""

    sfumato: str  # version of the package
    run: str  # name of the run
    kind: Purpose  # {"channel", "engine"}: what the connection is for
    rank: int
    digest: str  # SHA-256 of the settings
    settings: Mapping[str, Any] | None = None  # the settings themselves, on a channel
    protocol: int = _PROTOCOL

    def to_bytes(self) -> bytes:
        """Write it for the stream."""
        return write_json(self).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Hello:
        """Read it; a later protocol may say more, which is passed over.

        Raises
        ------
        ValueError
            If it is no greeting.
        """
        try:
            document = parse_json(data)  # of one frame
            return typed(cls, {name: document[name] for name in cls.__dataclass_fields__})
        except (Unparsable, KeyError, TypeError):
            raise ValueError("not a greeting") from None


def digest_of(settings: Mapping[str, Any]) -> str:
    """SHA-256 of settings, whatever the order of their keys."""
    text = write_json(settings, "canonical")
    return hashlib.sha256(text.encode()).hexdigest()


def difference(mine: Hello, theirs: Hello, name: str) -> str | None:
    """First difference between a party and this one, as a sentence; None if there is none.

    Examples
    --------
    >>> here = Hello("0.2.0", "trial", "channel", 0, "", {"k": 5})
    >>> difference(here, Hello("0.2.0", "trial", "channel", 1, "x", {"k": 6}), "bank")
    "party 'bank' has k = 6 and this party k = 5; agree on one and start all parties again"
    """
    if mine.protocol != theirs.protocol or mine.sfumato != theirs.sfumato:
        them, us = f"sfumato {_plain(theirs.sfumato)}", f"sfumato {mine.sfumato}"
        if mine.sfumato == theirs.sfumato:
            them, us = f"protocol {theirs.protocol}", f"protocol {mine.protocol}"
        return f"party {name!r} speaks {them} and this party {us}; install the same version at all parties"
    if mine.run != theirs.run:
        return f"party {name!r} is in the run {_brief(theirs.run)} and this party in {_brief(mine.run)}; name it alike"
    if mine.digest == theirs.digest:
        return None
    if mine.settings is None or theirs.settings is None:
        return f"party {name!r} has other settings than this party; agree on them and start all parties again"
    ours, other = dict(_flat(mine.settings)), dict(_flat(theirs.settings))
    for key in (*ours, *other):
        if ours.get(key) != other.get(key):
            return (
                f"party {name!r} has {_stated(key, other)} and this party {_stated(key, ours)}; agree on one and start "
                "all parties again"
            )
    return f"party {name!r} has other settings than this party; agree on them and start all parties again"


def verdict(reason: str = "") -> bytes:
    """Message to a caller: why it is refused, or an empty reason."""
    return write_json({"reason": reason}, escaped=True).encode()


def read_verdict(payload: bytes) -> str:
    """Reason why this party is refused; empty if it is not.

    Raises
    ------
    ValueError
        If it is no verdict.
    """
    try:
        reason = from_json(dict[str, str], payload)["reason"]
    except (Unparsable, KeyError):
        raise ValueError("not a verdict") from None
    return _one_line(reason, _MOST_VERDICT)


def _one_line(text: str, most: int) -> str:
    """What a peer has written, shortened, with blanks for control characters."""
    return "".join(sign if sign.isprintable() else " " for sign in text)[:most]


def _flat(settings: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """List settings by their dotted names, in their order."""
    found: list[tuple[str, Any]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{key}.")
        else:
            found.append((f"{before}{key}", value))
    return found


def _stated(key: str, settings: Mapping[str, Any]) -> str:
    value = settings.get(key)
    return f"no {_plain(key)}" if value is None else f"{_plain(key)} = {_brief(value)}"


def _plain(text: str) -> str:
    """Text of a peer, shortened and without control characters."""
    return printable(text[:_SHOWN])


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


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
    return _one_line(notice.reason, _MOST_WORDS), notice.code if notice.code in (2, 3) else 1
