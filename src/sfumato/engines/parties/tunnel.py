"""Ways for the engine: its loopback connections go through the parties' TLS ports.

The engine's own TLS leaves its port open to plain text and takes any certificate of the authority for any party, so the
engine speaks to 127.0.0.1 alone, and every connection it opens is carried over one of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from functools import partial

from sfumato.engines.parties.links import Mail
from sfumato.engines.parties.ports import PartyError
from sfumato.engines.parties.wire import Frame, Lost, Purpose, Wire

__all__ = ["Tunnel"]

_HERE = "127.0.0.1"
_PIECE = 1 << 16
_RETRY = 0.05  # seconds between two tries to reach an engine that is starting

Call = Callable[[int, Purpose], Awaitable[Wire]]


class Tunnel:
    """The ways of one computing party; made by `sfumato.engines.parties.network.NetworkChannel.open_tunnel`.

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
        Of the engines of all computing parties, as this party's engine must be told: its own is where it listens,
        those of the others are the near ends of the tunnel.
    sent : int
        Bytes that this party's engine has sent.
    """

    def __init__(self, rank: int, computing: tuple[int, ...], call: Call, mail: Mail, timeout: float) -> None:
        self.addresses: tuple[str, ...] = ()
        self.sent = 0
        self._rank, self._computing = rank, computing
        self._call, self._mail, self._timeout = call, mail, timeout
        self._port = 0
        self._ends: list[asyncio.Server] = []
        self._relays: set[asyncio.Future[None]] = set()
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
                break
            except OSError as error:  # any other than a refusal is the end of an engine that was there
                if self._over or not isinstance(error, ConnectionRefusedError) or time.monotonic() > deadline:
                    wire.close()
                    return
            await asyncio.sleep(_RETRY)
        await self._relay(reader, writer, wire)

    def _called(self, rank: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
