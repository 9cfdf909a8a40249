"""Connections of the engine for secure computation, relayed over the TLS connections of the parties.

The engine's own TLS leaves its port open to plain text and takes any certificate of the authority for any party. The
engine therefore speaks to 127.0.0.1 alone, and every connection that it opens is relayed over one of the parties'.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from functools import partial
from weakref import WeakSet

from sfumato.parties.channel import Inbox, PartyError
from sfumato.parties.connection import Purpose
from sfumato.parties.stream import ConnectionLost, Frame, TlsStream

__all__ = ["EngineRelay"]

_LOCALHOST = "127.0.0.1"
_CHUNK = 1 << 16
_RETRY = 0.05  # seconds between two tries to reach an engine that is starting

Call = Callable[[int, Purpose], Awaitable[TlsStream]]


class EngineRelay:
    """Relay of one computing party; opened by `sfumato.parties.network.NetworkChannel.open_relay`.

    Parameters
    ----------
    computing : tuple of int
        Ranks of the computing parties.
    call : callable
        Connects to a party.
    inbox : Inbox
        Gets failures.
    timeout : float
        Seconds to wait for an engine that is starting.

    Attributes
    ----------
    addresses : tuple of str
        Of the engines of all computing parties, as this party's engine needs them: its own is where it listens,
        those of the others are the near ends of the relay.
    sent : int
        Bytes that this party's engine has sent.
    transports : WeakSet of asyncio transports
        Connections to this party's engine that are not let go yet.
    """

    def __init__(self, rank: int, computing: tuple[int, ...], call: Call, inbox: Inbox, timeout: float) -> None:
        self.addresses: tuple[str, ...] = ()
        self.sent = 0
        self._rank, self._computing = rank, computing
        self._call, self._inbox, self._timeout = call, inbox, timeout
        self._port = 0
        self._ends: list[asyncio.Server] = []
        self._tasks: set[asyncio.Future[None]] = set()
        self.transports: WeakSet[asyncio.WriteTransport] = WeakSet()
        self._closing = False

    async def open(self) -> None:
        """Open the near ends."""
        self._port = _free_port()
        found = []
        for rank in self._computing:
            if rank == self._rank:
                found.append(f"{_LOCALHOST}:{self._port}")
                continue
            end = await asyncio.start_server(partial(self._called, rank), _LOCALHOST, 0)
            self._ends.append(end)
            found.append(f"{_LOCALHOST}:{end.sockets[0].getsockname()[1]}")
        self.addresses = tuple(found)

    def end(self) -> None:
        """Close the near ends and all connections."""
        self._closing = True
        for end in self._ends:
            end.close()
        for task in list(self._tasks):
            task.cancel()

    async def incoming(self, rank: int, stream: TlsStream) -> None:
        """Relay a connection that another engine has opened to the engine of this party."""
        if rank not in self._computing:
            stream.close()
            return
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                reader, writer = await asyncio.open_connection(_LOCALHOST, self._port)
                self.transports.add(writer.transport)
                break
            except OSError as error:  # any other than a refusal is the end of an engine that was there
                if self._closing or not isinstance(error, ConnectionRefusedError) or time.monotonic() > deadline:
                    stream.close()
                    return
            await asyncio.sleep(_RETRY)
        await self._carry(reader, writer, stream)

    def _called(self, rank: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.transports.add(writer.transport)
        task = asyncio.ensure_future(self._forward(rank, reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, rank: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay a connection that the engine of this party has opened to another engine."""
        try:
            stream = await self._call(rank, "engine")
        except PartyError as error:
            self._inbox.fail(error)
            writer.close()
            return
        except (OSError, ConnectionLost):
            if not self._closing:
                name = self._inbox.names[rank]
                self._inbox.fail(
                    PartyError(f"party {name!r} cannot be reached by the engine of this party; start all parties again")
                )
            writer.close()
            return
        await self._carry(reader, writer, stream)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stream: TlsStream) -> None:
        """Relay bytes in both directions until both ends have finished or one disconnects."""
        ways = [
            asyncio.ensure_future(self._send_all(reader, stream)),
            asyncio.ensure_future(_receive_all(stream, writer)),
        ]
        self._tasks.update(ways)
        try:
            await asyncio.gather(*ways)
        except (ConnectionLost, OSError, ssl.SSLError):
            writer.transport.abort()  # so that the engine sees that it is no clean end
        finally:
            for way in ways:
                way.cancel()
            self._tasks.difference_update(ways)
            stream.close()
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _send_all(self, reader: asyncio.StreamReader, stream: TlsStream) -> None:
        while data := await reader.read(_CHUNK):
            stream.send(Frame.DATA, data)
            self.sent += len(data)
            await stream.drain()
        stream.send(Frame.DATA)  # no more will come this way
        await stream.drain()


async def _receive_all(stream: TlsStream, writer: asyncio.StreamWriter) -> None:
    while True:
        frame, data = await stream.receive()
        if frame is not Frame.DATA:
            raise ConnectionLost
        if not data:
            writer.write_eof()
            return
        writer.write(data)
        await writer.drain()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((_LOCALHOST, 0))
        return int(found.getsockname()[1])
