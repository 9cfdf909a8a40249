"""Connecting all parties: each listens on one port and calls the parties before it; both ends check the identity."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Callable
from functools import partial
from typing import NoReturn
from weakref import WeakSet

from sfumato.parties.channel import Inbox, PartyError
from sfumato.parties.connection import Hello, PartyMismatch, Purpose, difference, digest_of, read_verdict, verdict
from sfumato.parties.peers import NetworkSettings, tls_contexts
from sfumato.parties.stream import MOST_FRAME, ConnectionLost, Frame, TlsStream

__all__ = ["Rendezvous"]

_RETRY = 0.25  # seconds between two calls
_MOST_CALLERS = 64  # at the door at the same time, before they have said who they are
_MOST_GREETING = 10.0  # seconds
_MOST_REFUSED = 3
_GRACE = 1.5  # seconds in which those who come a little later are still told what went wrong

OnConnection = Callable[[int, str, TlsStream], None]


class Rendezvous:
    """The listening port of a party, and its calls to others.

    Parameters
    ----------
    inbox : Inbox
        Gets failures.
    on_connection : callable
        Gets the rank, the kind and the stream of every connection that both ends agree on.

    Attributes
    ----------
    transports : WeakSet of asyncio transports
        Connections that are not let go yet.
    """

    def __init__(self, settings: NetworkSettings, inbox: Inbox, on_connection: OnConnection) -> None:
        self._settings, self._inbox, self._on_connection = settings, inbox, on_connection
        self._server_context, self._client_context = tls_contexts(settings.identity)
        self._ranks = {peer.fingerprint: rank for rank, peer in enumerate(settings.peers)}
        self._digest = digest_of(settings.settings)
        self._connected: set[int] = set()
        self._pending: dict[asyncio.Future[None], None] = {}  # the oldest first
        self._refused: list[str] = []
        self._unreached: dict[int, str] = {}
        self._server: asyncio.Server | None = None
        self.transports: WeakSet[asyncio.WriteTransport] = WeakSet()
        self._limit = min(_MOST_GREETING, settings.timeout)

    async def listen(self) -> None:
        """Listen for connections."""
        listen = self._settings.listen
        try:
            self._server = await asyncio.start_server(self._accept, listen.host, listen.port)
        except OSError as error:
            raise PartyError(
                f"this party cannot listen at {listen} ({_reason(error)}); end what uses that port, or change 'listen'"
            ) from None

    def stop_listening(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.close()

    async def wait_for_all(self) -> None:
        """Wait until this party is connected to all others."""
        calls = [asyncio.ensure_future(self._dial(rank)) for rank in range(self._settings.rank)]
        end = time.monotonic() + self._settings.wait
        end_of_grace: float | None = None
        try:
            while len(self._connected) < len(self._settings.peers) - 1:
                if time.monotonic() > end:
                    self._inbox.check()
                    raise self._timeout_error()
                if self._inbox.failed.is_set():
                    end_of_grace = end_of_grace or time.monotonic() + _GRACE
                    end = min(end, end_of_grace)
                await asyncio.sleep(0.05)
            self._inbox.check()
        finally:
            for call in calls:
                call.cancel()

    async def call(self, rank: int, kind: Purpose) -> TlsStream:
        """Connect to a party.

        Raises
        ------
        PartyMismatch
            If it has another identity or other settings.
        OSError, ConnectionLost
            If it cannot be reached.
        """
        address = self._settings.peers[rank].address
        async with asyncio.timeout(self._limit):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            self.transports.add(writer.transport)
            stream = TlsStream(reader, writer, self._client_context, server=False)
            try:
                await stream.handshake()
                await self._greet(stream, rank, kind)
            except ssl.SSLError as error:
                stream.close()
                raise PartyMismatch(self._refusal_of(rank, error)) from None
            except ValueError:  # not our language
                stream.close()
                raise ConnectionLost from None
            except BaseException:
                stream.close()
                raise
        return stream

    async def _dial(self, rank: int) -> None:
        while True:
            try:
                stream = await self.call(rank, "channel")
                break
            except PartyMismatch as error:
                self._inbox.fail(error)
                return
            except (OSError, ConnectionLost) as error:  # a call that took too long is an OSError too
                self._unreached[rank] = _reason(error) if isinstance(error, OSError) else "the connection ended"
            await asyncio.sleep(_RETRY)
        self._connected.add(rank)
        self._on_connection(rank, "channel", stream)

    def _hello(self, kind: Purpose) -> Hello:
        known = (self._settings.version, self._settings.run, kind, self._settings.rank, self._digest)
        whole = Hello(*known, self._settings.settings)
        fits = kind == "channel" and len(whole.to_bytes()) <= MOST_FRAME
        return whole if fits else Hello(*known)

    async def _greet(self, stream: TlsStream, rank: int, kind: Purpose) -> None:
        """Greet the party that was called; it speaks first, so that its refusal is read."""
        name = self._settings.names[rank]
        theirs = Hello.from_bytes(await _expect(stream, Frame.HELLO))
        problem = self._wrong_pin(stream.fingerprint, rank)
        if problem is not None:
            stream.send(Frame.VERDICT, verdict(f"the certificate it showed is not the one pinned for {name!r}"))
            await stream.drain()
            raise PartyMismatch(problem)
        mine = self._hello(kind)
        stream.send(Frame.HELLO, mine.to_bytes())
        await stream.drain()
        refusal = read_verdict(await _expect(stream, Frame.VERDICT))
        problem = difference(self._hello("channel"), theirs, name)
        if problem is None and refusal:
            problem = f"party {name!r} refused this party: {refusal}"
        if problem is None and theirs.rank != rank:
            problem = f"party {name!r} is number {theirs.rank + 1} in its own list; list all parties in one order"
        if problem is not None:
            raise PartyMismatch(problem)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.transports.add(writer.transport)
        if len(self._pending) >= _MOST_CALLERS:
            next(iter(self._pending)).cancel()  # who has been silent longest makes room: a party speaks at once
        task = asyncio.ensure_future(self._serve(reader, writer))  # ours, so that its end is no news to asyncio
        self._pending[task] = None
        task.add_done_callback(partial(self._served, writer))

    def _served(self, writer: asyncio.StreamWriter, task: asyncio.Future[None]) -> None:
        self._pending.pop(task, None)
        if task.cancelled():  # by one who came later, or at the end
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = TlsStream(reader, writer, self._server_context, server=True)
        try:
            async with asyncio.timeout(self._limit):
                rank, kind = await self._admit(stream)
        except ssl.SSLError as error:
            self._remember(stream.host, error)
            stream.close()
        except (ConnectionLost, OSError, ValueError):  # a scan, a slow caller, or another protocol
            stream.close()
        except PartyMismatch as error:
            self._inbox.fail(error)
            stream.close()
        else:
            self._on_connection(rank, kind, stream)

    async def _admit(self, stream: TlsStream) -> tuple[int, str]:
        """Identify a caller, and accept or refuse it."""
        await stream.handshake()
        holder = self._ranks.get(stream.fingerprint)
        stream.send(Frame.HELLO, self._hello("channel").to_bytes())
        await stream.drain()
        frame, payload = await stream.receive()
        if holder is None or holder == self._settings.rank:
            if len(self._refused) < _MOST_REFUSED:
                self._refused.append(f"a caller from {stream.host} showed a certificate that is pinned for no party")
            await _refuse(stream, "its certificate is pinned for no party here")
        name = self._settings.names[holder]
        if frame is Frame.VERDICT:
            raise PartyMismatch(f"party {name!r} refused this party: {read_verdict(payload)}")
        theirs = Hello.from_bytes(payload)
        if theirs.rank != holder:
            await self._refuse_claim(stream, theirs, name)
        problem = difference(self._hello(theirs.kind), theirs, name)
        if problem is not None:
            stream.send(Frame.VERDICT, verdict("its version, run or settings differ"))
            await stream.drain()
            raise PartyMismatch(problem)
        if theirs.kind == "channel":
            if holder in self._connected or holder < self._settings.rank:
                await _refuse(stream, "it is connected already, or should have been called")
            self._connected.add(holder)
        stream.send(Frame.VERDICT, verdict())
        await stream.drain()
        return holder, theirs.kind

    async def _refuse_claim(self, stream: TlsStream, theirs: Hello, name: str) -> None:
        claimed = theirs.rank
        known = 0 <= claimed < len(self._settings.peers)
        other = repr(self._settings.names[claimed]) if known else f"number {claimed + 1}"
        stream.send(Frame.VERDICT, verdict(f"it calls itself {other} and showed the certificate of {name!r}"))
        await stream.drain()
        raise PartyMismatch(
            f"a caller from {stream.host} calls itself {other} and showed the certificate of {name!r}; check 'me' and "
            "the certificates of both"
        )

    def _wrong_pin(self, fingerprint: str, rank: int) -> str | None:
        peer = self._settings.peers[rank]
        if fingerprint == peer.fingerprint:
            return None
        holder = self._ranks.get(fingerprint)
        whose = "pinned for no party" if holder is None else f"that of {self._settings.names[holder]!r}"
        return f"the certificate of party {peer.name!r} at {peer.address} is {whose}; check address and fingerprint"

    def _refusal_of(self, rank: int, error: ssl.SSLError) -> str:
        peer = self._settings.peers[rank]
        if isinstance(error, ssl.SSLCertVerificationError):
            return (
                f"the certificate of party {peer.name!r} at {peer.address} is not trusted ({error.verify_message}); "
                "check its address and the certificates"
            )
        if "ALERT" in str(error.reason) and "VERSION" not in str(error.reason):
            return f"party {peer.name!r} does not accept the certificate of this party; check what it has pinned"
        return f"no party speaks TLS 1.3 at {peer.address}, the address of {peer.name!r}; check it"

    def _remember(self, host: str, error: ssl.SSLError) -> None:
        if len(self._refused) >= _MOST_REFUSED:
            return
        if isinstance(error, ssl.SSLCertVerificationError):
            self._refused.append(f"a caller from {host} showed a certificate that is not trusted")
        elif "ALERT" in str(error.reason):
            self._refused.append(f"a caller from {host} did not accept the certificate of this party")
        elif "PEER_DID_NOT_RETURN" in str(error.reason):
            self._refused.append(f"a caller from {host} showed no certificate")

    def _timeout_error(self) -> PartyError:
        settings = self._settings
        missing = [rank for rank in range(len(settings.peers)) if rank != settings.rank and rank not in self._connected]
        first = missing[0]
        names = ", ".join(repr(settings.names[rank]) for rank in missing)
        come = f"party {names}" if len(missing) == 1 else f"parties {names}"
        where = f" at {settings.peers[first].address} ({self._unreached[first]})" if first in self._unreached else ""
        text = f"{come} could not be reached{where}" if where else f"{come} did not come"
        text += f" within {settings.wait:g} seconds"
        if self._refused:
            return PartyMismatch(f"{text}; {'; '.join(self._refused)}. Check certificates and fingerprints")
        return PartyError(f"{text}; start all parties at about the same time, and check addresses")


async def _expect(stream: TlsStream, frame: Frame) -> bytes:
    found, payload = await stream.receive()
    if found is not frame:
        raise ConnectionLost
    return payload


async def _refuse(stream: TlsStream, reason: str) -> NoReturn:
    stream.send(Frame.VERDICT, verdict(reason))
    await stream.drain()
    raise ConnectionLost


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    if error.errno is None or error.errno <= 0:  # a name that cannot be resolved has numbers of its own
        return error.strerror or "no connection"
    return os.strerror(error.errno)
