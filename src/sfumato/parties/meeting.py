"""How parties come together: each has one port and calls those before it; both ends check who the other is."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Callable
from functools import partial
from typing import NoReturn
from weakref import WeakSet

from sfumato.parties.links import Mail
from sfumato.parties.peers import NetworkSettings, tls_contexts
from sfumato.parties.ports import PartyError
from sfumato.parties.wire import (
    MOST_FRAME,
    Frame,
    Hello,
    Lost,
    PartyMismatch,
    Purpose,
    Wire,
    difference,
    digest_of,
    read_verdict,
    verdict,
)

__all__ = ["Meeting"]

_RETRY = 0.25  # seconds between two calls
_MOST_CALLERS = 64  # at the door at the same time, before they have said who they are
_MOST_GREETING = 10.0  # seconds
_REMEMBERED = 3
_GRACE = 1.5  # seconds in which those who come a little later are still told what went wrong

Arrived = Callable[[int, str, Wire], None]


class Meeting:
    """The port of a party, and its calls to others.

    Parameters
    ----------
    mail : Mail
        Gets failures.
    arrived : callable
        Gets the rank, the kind and the wire of every connection that both ends agree on.

    Attributes
    ----------
    transports : WeakSet of asyncio transports
        Connections that are not let go yet.
    """

    def __init__(self, place: NetworkSettings, mail: Mail, arrived: Arrived) -> None:
        self._place, self._mail, self._arrived = place, mail, arrived
        self._answering, self._calling = tls_contexts(place.identity)
        self._ranks = {peer.fingerprint: rank for rank, peer in enumerate(place.peers)}
        self._digest = digest_of(place.settings)
        self._linked: set[int] = set()
        self._answers: dict[asyncio.Future[None], None] = {}  # the oldest first
        self._refused: list[str] = []
        self._unreached: dict[int, str] = {}
        self._door: asyncio.Server | None = None
        self.transports: WeakSet[asyncio.WriteTransport] = WeakSet()
        self._limit = min(_MOST_GREETING, place.timeout)

    async def open_door(self) -> None:
        """Listen for the others."""
        listen = self._place.listen
        try:
            self._door = await asyncio.start_server(self._called, listen.host, listen.port)
        except OSError as error:
            raise PartyError(
                f"this party cannot listen at {listen} ({_words(error)}); end what uses that port, or change 'listen'"
            ) from None

    def close_door(self) -> None:
        """Take no more calls."""
        if self._door is not None:
            self._door.close()

    async def gather(self) -> None:
        """Wait until every two parties are connected, as far as this one is concerned."""
        calls = [asyncio.ensure_future(self._dial(rank)) for rank in range(self._place.rank)]
        end = time.monotonic() + self._place.wait
        told: float | None = None
        try:
            while len(self._linked) < len(self._place.peers) - 1:
                if time.monotonic() > end:
                    self._mail.check()
                    raise self._too_late()
                if self._mail.failed.is_set():
                    told = told or time.monotonic() + _GRACE
                    end = min(end, told)
                await asyncio.sleep(0.05)
            self._mail.check()
        finally:
            for call in calls:
                call.cancel()

    async def call(self, rank: int, kind: Purpose) -> Wire:
        """Connect to a party.

        Raises
        ------
        PartyMismatch
            Where it is not who it should be, or differs.
        OSError, Lost
            Where it is not there.
        """
        address = self._place.peers[rank].address
        async with asyncio.timeout(self._limit):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            self.transports.add(writer.transport)
            wire = Wire(reader, writer, self._calling, server=False)
            try:
                await wire.handshake()
                await self._greet(wire, rank, kind)
            except ssl.SSLError as error:
                wire.close()
                raise PartyMismatch(self._refusal_of(rank, error)) from None
            except ValueError:  # not our language
                wire.close()
                raise Lost from None
            except BaseException:
                wire.close()
                raise
        return wire

    async def _dial(self, rank: int) -> None:
        while True:
            try:
                wire = await self.call(rank, "channel")
                break
            except PartyMismatch as error:
                self._mail.fail(error)
                return
            except (OSError, Lost) as error:  # a call that took too long is an OSError too
                self._unreached[rank] = _words(error) if isinstance(error, OSError) else "the connection ended"
            await asyncio.sleep(_RETRY)
        self._linked.add(rank)
        self._arrived(rank, "channel", wire)

    def _hello(self, kind: Purpose) -> Hello:
        known = (self._place.version, self._place.run, kind, self._place.rank, self._digest)
        whole = Hello(*known, self._place.settings)
        fits = kind == "channel" and len(whole.to_bytes()) <= MOST_FRAME
        return whole if fits else Hello(*known)

    async def _greet(self, wire: Wire, rank: int, kind: Purpose) -> None:
        """Say who calls; the called one speaks first, so that its refusal is read."""
        name = self._place.names[rank]
        theirs = Hello.from_bytes(await _expect(wire, Frame.HELLO))
        problem = self._wrong_pin(wire.fingerprint, rank)
        if problem is not None:
            wire.send(Frame.VERDICT, verdict(f"the certificate it showed is not the one pinned for {name!r}"))
            await wire.drain()
            raise PartyMismatch(problem)
        mine = self._hello(kind)
        wire.send(Frame.HELLO, mine.to_bytes())
        await wire.drain()
        refusal = read_verdict(await _expect(wire, Frame.VERDICT))
        problem = difference(self._hello("channel"), theirs, name)
        if problem is None and refusal:
            problem = f"party {name!r} refused this party: {refusal}"
        if problem is None and theirs.rank != rank:
            problem = f"party {name!r} is number {theirs.rank + 1} in its own list; list all parties in one order"
        if problem is not None:
            raise PartyMismatch(problem)

    def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.transports.add(writer.transport)
        if len(self._answers) >= _MOST_CALLERS:
            next(iter(self._answers)).cancel()  # who has been silent longest makes room: a party speaks at once
        task = asyncio.ensure_future(self._answer(reader, writer))  # ours, so that its end is no news to asyncio
        self._answers[task] = None
        task.add_done_callback(partial(self._answered, writer))

    def _answered(self, writer: asyncio.StreamWriter, task: asyncio.Future[None]) -> None:
        self._answers.pop(task, None)
        if task.cancelled():  # by one who came later, or at the end
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = Wire(reader, writer, self._answering, server=True)
        try:
            async with asyncio.timeout(self._limit):
                rank, kind = await self._admit(wire)
        except ssl.SSLError as error:
            self._remember(wire.host, error)
            wire.close()
        except (Lost, OSError, ValueError):  # a scan, a slow caller, or another's language
            wire.close()
        except PartyMismatch as error:
            self._mail.fail(error)
            wire.close()
        else:
            self._arrived(rank, kind, wire)

    async def _admit(self, wire: Wire) -> tuple[int, str]:
        """Hear who calls, and say whether it may come in."""
        await wire.handshake()
        holder = self._ranks.get(wire.fingerprint)
        wire.send(Frame.HELLO, self._hello("channel").to_bytes())
        await wire.drain()
        frame, payload = await wire.receive()
        if holder is None or holder == self._place.rank:
            if len(self._refused) < _REMEMBERED:
                self._refused.append(f"a caller from {wire.host} showed a certificate that is pinned for no party")
            await _refuse(wire, "its certificate is pinned for no party here")
        name = self._place.names[holder]
        if frame is Frame.VERDICT:
            raise PartyMismatch(f"party {name!r} refused this party: {read_verdict(payload)}")
        theirs = Hello.from_bytes(payload)
        if theirs.rank != holder:
            await self._refuse_claim(wire, theirs, name)
        problem = difference(self._hello(theirs.kind), theirs, name)
        if problem is not None:
            wire.send(Frame.VERDICT, verdict("its version, run or settings differ"))
            await wire.drain()
            raise PartyMismatch(problem)
        if theirs.kind == "channel":
            if holder in self._linked or holder < self._place.rank:
                await _refuse(wire, "it is connected already, or should have been called")
            self._linked.add(holder)
        wire.send(Frame.VERDICT, verdict())
        await wire.drain()
        return holder, theirs.kind

    async def _refuse_claim(self, wire: Wire, theirs: Hello, name: str) -> None:
        claimed = theirs.rank
        known = 0 <= claimed < len(self._place.peers)
        other = repr(self._place.names[claimed]) if known else f"number {claimed + 1}"
        wire.send(Frame.VERDICT, verdict(f"it calls itself {other} and showed the certificate of {name!r}"))
        await wire.drain()
        raise PartyMismatch(
            f"a caller from {wire.host} calls itself {other} and showed the certificate of {name!r}; check 'me' and "
            "the certificates of both"
        )

    def _wrong_pin(self, fingerprint: str, rank: int) -> str | None:
        peer = self._place.peers[rank]
        if fingerprint == peer.fingerprint:
            return None
        holder = self._ranks.get(fingerprint)
        whose = "pinned for no party" if holder is None else f"that of {self._place.names[holder]!r}"
        return f"the certificate of party {peer.name!r} at {peer.address} is {whose}; check address and fingerprint"

    def _refusal_of(self, rank: int, error: ssl.SSLError) -> str:
        peer = self._place.peers[rank]
        if isinstance(error, ssl.SSLCertVerificationError):
            return (
                f"the certificate of party {peer.name!r} at {peer.address} is not trusted ({error.verify_message}); "
                "check its address and the certificates"
            )
        if "ALERT" in str(error.reason) and "VERSION" not in str(error.reason):
            return f"party {peer.name!r} does not accept the certificate of this party; check what it has pinned"
        return f"no party speaks TLS 1.3 at {peer.address}, the address of {peer.name!r}; check it"

    def _remember(self, host: str, error: ssl.SSLError) -> None:
        if len(self._refused) >= _REMEMBERED:
            return
        if isinstance(error, ssl.SSLCertVerificationError):
            self._refused.append(f"a caller from {host} showed a certificate that is not trusted")
        elif "ALERT" in str(error.reason):
            self._refused.append(f"a caller from {host} did not accept the certificate of this party")
        elif "PEER_DID_NOT_RETURN" in str(error.reason):
            self._refused.append(f"a caller from {host} showed no certificate")

    def _too_late(self) -> PartyError:
        place = self._place
        missing = [rank for rank in range(len(place.peers)) if rank != place.rank and rank not in self._linked]
        first = missing[0]
        names = ", ".join(repr(place.names[rank]) for rank in missing)
        come = f"party {names}" if len(missing) == 1 else f"parties {names}"
        where = f" at {place.peers[first].address} ({self._unreached[first]})" if first in self._unreached else ""
        text = f"{come} could not be reached{where}" if where else f"{come} did not come"
        text += f" within {place.wait:g} seconds"
        if self._refused:
            return PartyMismatch(f"{text}; {'; '.join(self._refused)}. Check certificates and fingerprints")
        return PartyError(f"{text}; start all parties at about the same time, and check addresses")


async def _expect(wire: Wire, frame: Frame) -> bytes:
    got, payload = await wire.receive()
    if got is not frame:
        raise Lost
    return payload


async def _refuse(wire: Wire, reason: str) -> NoReturn:
    wire.send(Frame.VERDICT, verdict(reason))
    await wire.drain()
    raise Lost


def _words(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    if error.errno is None or error.errno <= 0:  # a name that cannot be resolved has numbers of its own
        return error.strerror or "no connection"
    return os.strerror(error.errno)
