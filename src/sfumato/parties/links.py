"""Connections to the other parties as the network's thread keeps them, and the mail that the caller's thread reads.

The engine's loopback connections go through the parties' TLS ports too: its own TLS leaves its port open to plain text
and takes any certificate of the authority for any party, so the engine speaks to 127.0.0.1 alone, and every connection
it opens is carried over one of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from weakref import WeakSet

from sfumato.core.documents import Unparsable, from_json
from sfumato.parties.ports import PartyError
from sfumato.parties.wire import MOST_FRAME, Frame, Lost, Purpose, Wire

__all__ = ["MOST_MESSAGE", "Farewell", "Link", "Mail", "Tunnel"]

MOST_MESSAGE = 1 << 30
"""Bytes of a message at most, and of what one party may send before it is read."""

_LOOK = 0.5  # seconds between two looks
_MOST_WORDS = 600  # of a reason that another party gives
_MOST_KIND = 200
_RANK = 2  # bytes
_MESSAGE = 1 << 10  # bytes that a message takes at most beside its own: many empty ones count too
_AGAIN = "start all parties again"


@dataclass(frozen=True)
class Farewell:
    """Why a party gives up, and the exit code of that."""

    reason: str
    code: int


class Mail:
    """What has arrived and not been read, and the first failure.

    Parameters
    ----------
    names : tuple of str
        Of all parties.
    step : float
        Seconds to wait for a message at most.

    Attributes
    ----------
    awaited : tuple of int
        The parties that this one waits for now.
    """

    def __init__(self, names: tuple[str, ...], step: float = 1800.0) -> None:
        self.names, self.step = names, step
        self.awaited: tuple[int, ...] = ()
        self._awaited_by: dict[int, tuple[int, ...]] = {}  # by the other parties, as their signs of life say
        self.failed = threading.Event()
        self._news = threading.Condition()
        self._boxes: dict[int, deque[tuple[str, bytes]]] = {rank: deque() for rank in range(len(names))}
        self._held = dict.fromkeys(range(len(names)), 0)
        self._ended: set[int] = set()
        self._failure: PartyError | None = None

    def room(self, sender: int) -> int:
        """Bytes that a party may still send before some are read."""
        return MOST_MESSAGE - self._held[sender]

    def put(self, sender: int, kind: str, payload: bytes) -> None:
        """Lay a message into the box."""
        with self._news:
            self._boxes[sender].append((kind, payload))
            self._held[sender] += len(payload) + _MESSAGE
            self._news.notify_all()

    def take(self, sender: int) -> tuple[str, bytes]:
        """Wait for a message of a party, or for a failure of any."""
        end = time.monotonic() + self.step
        with self.waiting(sender), self._news:
            while True:
                self.check()
                if self._boxes[sender]:
                    kind, payload = self._boxes[sender].popleft()
                    self._held[sender] -= len(payload) + _MESSAGE
                    return kind, payload
                if sender in self._ended:
                    raise PartyError(
                        f"party {self.names[sender]!r} has ended its run while a message of it was due; {_AGAIN}"
                    )
                if time.monotonic() > end:
                    raise self.too_late()
                self._news.wait(_LOOK)

    @contextmanager
    def waiting(self, *ranks: int) -> Iterator[None]:
        """Say in the signs of life that this party waits for others, until the block ends."""
        self.awaited = ranks
        try:
            yield
        finally:
            self.awaited = ()

    def heard(self, sender: int, awaited: tuple[int, ...]) -> None:
        """Note whom another party waits for."""
        self._awaited_by[sender] = awaited

    def late(self) -> str:
        """Names of the parties that hold this one up: those that wait for nobody, behind all that wait for them."""
        seen, left, idle = set[int](), list(self.awaited), []
        while left:
            rank = left.pop(0)
            if rank in seen:
                continue
            seen.add(rank)
            behind = self._awaited_by.get(rank, ())
            left.extend(behind)
            if not behind:
                idle.append(rank)
        named = [self.names[rank] for rank in idle or self.awaited]  # where all wait for each other, for whom I wait
        return ("party " if len(named) == 1 else "parties ") + " and ".join(map(repr, named))

    def too_late(self) -> PartyError:
        """What to say where a step has taken too long."""
        return PartyError(
            f"{self.late()} gave signs of life and did nothing else for {self.step:g} seconds; {_AGAIN}, with a longer "
            "'step' if this was honest work"
        )

    def end(self, sender: int) -> None:
        """Note that a party has said all it had to say."""
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


class Link:
    """The connection to one party.

    Parameters
    ----------
    rank : int
        Of the other party.
    wire : Wire
        After both ends have greeted.
    clock : callable
        Gives seconds that only go up.
    """

    def __init__(self, rank: int, wire: Wire, mail: Mail, clock: Callable[[], float] = time.monotonic) -> None:
        self.rank, self.wire = rank, wire
        self._mail, self._clock = mail, clock
        self.heard = clock()
        self.over = False  # one of both has said farewell: silence is no failure
        self.seen = asyncio.Event()
        self._kind, self._due, self._parts = "", -1, bytearray()

    @property
    def name(self) -> str:
        """Name of the other party."""
        return self._mail.names[self.rank]

    async def listen(self) -> None:
        """Take in frames until the connection ends."""
        try:
            while True:
                frame, payload = await self.wire.receive()
                self.heard = self._clock()
                self._take(frame, payload)
        except (Lost, ssl.SSLError):
            if not self.over:
                self._mail.fail(PartyError(f"party {self.name!r} is gone, its connection ended; {_AGAIN}"))
        finally:
            self.over = True
            self.seen.set()
            self.wire.close()

    async def send(self, kind: str, payload: bytes) -> None:
        """Send a message in parts, no faster than the other end takes them."""
        self.wire.send(Frame.MESSAGE, len(payload).to_bytes(8, "big") + kind.encode())
        view = memoryview(payload)
        for start in range(0, len(payload), MOST_FRAME):
            self.wire.send(Frame.PART, view[start : start + MOST_FRAME])
            await self.wire.drain()
        await self.wire.drain()

    async def farewell(self, frame: Frame, payload: bytes, within: float) -> None:
        """Say that this party ends or gives up, and wait a while until the other has read it."""
        if self.over:
            return
        self.over = True
        with contextlib.suppress(Lost, TimeoutError):
            self.wire.send(frame, payload)
            async with asyncio.timeout(within):
                await self.seen.wait()

    def beat(self) -> None:
        """Say that this party lives, and whom this party waits for."""
        with contextlib.suppress(Lost):  # whoever listens there notes it
            self.wire.send(Frame.BEAT, b"".join(rank.to_bytes(_RANK, "big") for rank in self._mail.awaited))

    def _take(self, frame: Frame, payload: bytes) -> None:
        if frame is Frame.MESSAGE and self._due < 0:
            self._begin(payload)
        elif frame is Frame.PART and 0 < len(payload) <= self._due - len(self._parts):
            self._parts += payload
        elif frame is Frame.SEEN:
            self.seen.set()
        elif frame in (Frame.ABORT, Frame.BYE):
            self._ended(frame, payload)
        elif frame is Frame.BEAT and len(payload) <= _RANK * len(self._mail.names):
            ranks = (int.from_bytes(payload[place : place + _RANK], "big") for place in range(0, len(payload), _RANK))
            self._mail.heard(self.rank, tuple(rank for rank in ranks if rank < len(self._mail.names)))
        else:
            raise Lost
        if self._due == len(self._parts):
            self._mail.put(self.rank, self._kind, bytes(self._parts))
            self._due, self._parts = -1, bytearray()

    def _begin(self, payload: bytes) -> None:
        self._due = int.from_bytes(payload[:8], "big")
        if not 8 <= len(payload) <= _MOST_KIND:
            raise Lost
        self._kind = payload[8:].decode(errors="replace")
        if self._due > self._mail.room(self.rank):
            self._mail.fail(
                PartyError(f"party {self.name!r} sends more than {MOST_MESSAGE >> 20} MiB at once; use fewer rows")
            )
            raise Lost

    def _ended(self, frame: Frame, payload: bytes) -> None:
        self.over = True
        if frame is Frame.BYE:
            self._mail.end(self.rank)
        else:
            self._mail.fail(self._told(payload))
        with contextlib.suppress(Lost):
            self.wire.send(Frame.SEEN)

    def _told(self, payload: bytes) -> PartyError:
        """Make the failure of what a party says when it gives up; what it only passes on keeps its own words."""
        reason, code = _reason(payload)
        passed_on = reason.startswith(tuple(f"party {name!r} gave up: " for name in self._mail.names))
        error = PartyError(reason if passed_on else f"party {self.name!r} gave up: {reason}")
        error.exit_code = code
        return error


def _reason(payload: bytes) -> tuple[str, int]:
    """Read why a party gave up, and with which exit code; whatever it sent is shown as plain words."""
    try:
        told = from_json(Farewell, payload)  # of one frame
    except Unparsable:
        return "it did not say why", 1
    words = "".join(sign if sign.isprintable() else " " for sign in told.reason)[:_MOST_WORDS]
    return words, told.code if told.code in (2, 3) else 1


_HERE = "127.0.0.1"
_PIECE = 1 << 16
_RETRY = 0.05  # seconds between two tries to reach an engine that is starting

Call = Callable[[int, Purpose], Awaitable[Wire]]


class Tunnel:
    """The ways of one computing party; made by `sfumato.parties.network.NetworkChannel.open_tunnel`.

    Parameters
    ----------
    computing : tuple of int
        Ranks of the computing parties.
    call : callable
        Connects to a party.
    mail : Mail
        Gets failures.
    timeout : float
        Seconds to wait for an engine that is starting.

    Attributes
    ----------
    addresses : tuple of str
        Of the engines of all computing parties, as this party's engine needs them: its own is where it listens,
        those of the others are the near ends of the tunnel.
    sent : int
        Bytes that this party's engine has sent.
    transports : WeakSet of asyncio transports
        Connections to this party's engine that are not let go yet.
    """

    def __init__(self, rank: int, computing: tuple[int, ...], call: Call, mail: Mail, timeout: float) -> None:
        self.addresses: tuple[str, ...] = ()
        self.sent = 0
        self._rank, self._computing = rank, computing
        self._call, self._mail, self._timeout = call, mail, timeout
        self._port = 0
        self._ends: list[asyncio.Server] = []
        self._relays: set[asyncio.Future[None]] = set()
        self.transports: WeakSet[asyncio.WriteTransport] = WeakSet()
        self._over = False

    async def open(self) -> None:
        """Open the near ends."""
        self._port = _free_port()
        found = []
        for rank in self._computing:
            if rank == self._rank:
                found.append(f"{_HERE}:{self._port}")
                continue
            end = await asyncio.start_server(partial(self._called, rank), _HERE, 0)
            self._ends.append(end)
            found.append(f"{_HERE}:{end.sockets[0].getsockname()[1]}")
        self.addresses = tuple(found)

    def end(self) -> None:
        """Close the near ends and all connections."""
        self._over = True
        for end in self._ends:
            end.close()
        for task in list(self._relays):
            task.cancel()

    async def incoming(self, rank: int, wire: Wire) -> None:
        """Carry a connection that another's engine has opened to the engine of this party."""
        if rank not in self._computing:
            wire.close()
            return
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                reader, writer = await asyncio.open_connection(_HERE, self._port)
                self.transports.add(writer.transport)
                break
            except OSError as error:  # any other than a refusal is the end of an engine that was there
                if self._over or not isinstance(error, ConnectionRefusedError) or time.monotonic() > deadline:
                    wire.close()
                    return
            await asyncio.sleep(_RETRY)
        await self._relay(reader, writer, wire)

    def _called(self, rank: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.transports.add(writer.transport)
        task = asyncio.ensure_future(self._outgoing(rank, reader, writer))
        self._relays.add(task)
        task.add_done_callback(self._relays.discard)

    async def _outgoing(self, rank: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry a connection that this party's engine has opened to another's."""
        try:
            wire = await self._call(rank, "engine")
        except PartyError as error:
            self._mail.fail(error)
            writer.close()
            return
        except (OSError, Lost):
            if not self._over:
                name = self._mail.names[rank]
                self._mail.fail(
                    PartyError(f"party {name!r} cannot be reached by the engine of this party; start all parties again")
                )
            writer.close()
            return
        await self._relay(reader, writer, wire)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wire: Wire) -> None:
        """Carry bytes both ways until both ends have said all, or one is gone."""
        ways = [asyncio.ensure_future(self._up(reader, wire)), asyncio.ensure_future(_down(wire, writer))]
        self._relays.update(ways)
        try:
            await asyncio.gather(*ways)
        except (Lost, OSError, ssl.SSLError):
            writer.transport.abort()  # so that the engine sees that it is no clean end
        finally:
            for way in ways:
                way.cancel()
            self._relays.difference_update(ways)
            wire.close()
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _up(self, reader: asyncio.StreamReader, wire: Wire) -> None:
        while data := await reader.read(_PIECE):
            wire.send(Frame.DATA, data)
            self.sent += len(data)
            await wire.drain()
        wire.send(Frame.DATA)  # no more will come this way
        await wire.drain()


async def _down(wire: Wire, writer: asyncio.StreamWriter) -> None:
    while True:
        frame, data = await wire.receive()
        if frame is not Frame.DATA:
            raise Lost
        if not data:
            writer.write_eof()
            return
        writer.write(data)
        await writer.drain()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((_HERE, 0))
        return int(found.getsockname()[1])
