"""The channel between machines: mutual TLS with pinned certificates, one port a party, signs of life all the time.

All connections live in one thread of their own, so that a long computation is not taken for a party that is gone. A
party meets the others, starts its engine, and leaves nothing behind when it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Collection, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Self, TypeVar

from sfumato.core.documents import write_json
from sfumato.core.errors import SfumatoError
from sfumato.parties.config import PartyConfig
from sfumato.parties.links import MOST_MESSAGE, Farewell, Link, Mail, Tunnel
from sfumato.parties.meeting import Meeting
from sfumato.parties.peers import NetworkSettings
from sfumato.parties.ports import Engine, PartyChannel, PartyError
from sfumato.parties.session import computing_parties
from sfumato.parties.wire import Frame, Lost, Wire

__all__ = ["NetworkChannel", "joined", "telling_others"]

T = TypeVar("T")

_LOOK = 0.5  # seconds between two looks at whether a party has failed
_LAST_TURNS = 5
_BEAT = 2.0  # seconds between two signs of life at most
_FAREWELL = 3.0  # seconds in which others read that this party ends
_MOST_REASON = 600
_NOTICE = 2.0  # seconds in which those who wait already call, or are called

_KINDS = {2: "its table or its settings must be fixed", 3: "its table may not be released"}
_PATIENCE = 10  # an engine may compute for long; that its party is alive, the channel knows


class NetworkChannel(PartyChannel):
    """One party's connections to all others; see `sfumato.parties.ports.PartyChannel`.

    Made by `connect`. A party that gives up, closes, dies or stays silent for longer than the timeout fails the
    channel: ``failed`` is set, and whatever waits raises `PartyError` with one sentence.
    """

    def __init__(self, place: NetworkSettings) -> None:
        self.rank, self.names = place.rank, place.names
        self.sent = self.messages = 0
        self._place = place
        self._mail = Mail(place.names, place.step)
        self._links: dict[int, Link] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._tunnel: Tunnel | None = None
        self._meeting = Meeting(place, self._mail, self._arrived)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sfumato network", daemon=True)
        self._every = min(_BEAT, place.timeout / 5)  # seconds between two signs of life
        self._closed = False

    def __repr__(self) -> str:
        return f"NetworkChannel(rank={self.rank}, parties={self.parties})"

    @classmethod
    def connect(cls, place: NetworkSettings) -> Self:
        """Meet all other parties, in whatever order they start.

        Raises
        ------
        PartyMismatch
            Where two do not take the run to be the same, or a certificate is not the pinned one.
        PartyError
            Where one does not come in time.
        """
        channel = cls(place)
        channel._thread.start()
        try:
            channel._call(channel._meet(), watch=False)
        except PartyError as error:
            channel.abort(str(error))
            channel.close()
            raise
        except BaseException:
            channel.abort("it was interrupted")
            channel.close()
            raise
        return channel

    @classmethod
    def decline(cls, place: NetworkSettings, reason: str) -> None:
        """Tell the parties that are waiting already that this one cannot begin, and why; who is not there is not told.

        Takes no longer than a moment. What fails here is no news: this party has something else to say.
        """
        with contextlib.suppress(SfumatoError):
            channel = cls(replace(place, wait=_NOTICE))
            channel._thread.start()
            try:
                with contextlib.suppress(PartyError):
                    channel._call(channel._meet(), watch=False)
                channel.abort(reason)
            finally:
                channel.close()

    @property
    def failed(self) -> threading.Event:
        """Set as soon as any party has failed."""
        return self._mail.failed

    @property
    def failure(self) -> str:
        """What failed, in one sentence; nothing while all is well."""
        return self._mail.failure

    @property
    def carried(self) -> int:
        """Bytes that this party has put on the network for messages, TLS and signs of life included."""
        return sum(link.wire.carried for link in self._links.values())

    def check(self) -> None:
        """Raise `PartyError` if any party has failed."""
        self._mail.check()

    def send(self, to: int, kind: str, payload: bytes) -> None:
        """Send bytes to a party; returns when they are on their way."""
        if len(payload) > MOST_MESSAGE:
            raise PartyError(f"a message has at most {MOST_MESSAGE >> 20} MiB; use fewer rows")
        self.check()
        try:
            with self.waiting(to):
                self._call(self._links[to].send(kind, payload))
        except Lost:
            self._mail.failed.wait(_LOOK)
            self.check()
            raise PartyError(
                f"party {self.names[to]!r} has ended its run before this party; start all parties again"
            ) from None
        self.sent += len(payload)
        self.messages += 1

    def receive(self, sender: int, kind: str) -> bytes:
        """Wait for the next bytes of a party."""
        told, payload = self._mail.take(sender)
        self.check_kind(sender, told, kind)
        return payload

    def waiting(self, *ranks: int) -> AbstractContextManager[None]:
        """Let the others know whom this party waits for, so that who holds all up can be named."""
        return self._mail.waiting(*ranks)

    def late(self) -> str:
        """Names of the parties that hold this one up."""
        return self._mail.late()

    def open_tunnel(self, computing: tuple[int, ...]) -> Tunnel:
        """Open ways for the engines of the computing parties; only they call this."""
        if self.rank not in computing or self._tunnel is not None:
            raise ValueError("a party that computes opens one tunnel")
        tunnel = Tunnel(self.rank, computing, self._meeting.call, self._mail, self._place.timeout)
        self._call(tunnel.open())
        self._tunnel = tunnel
        return tunnel

    def abort(self, reason: str) -> None:
        """Tell all others that this party gives up, and why; they end with the exit code of the error at hand."""
        if self._closed:
            return
        code = getattr(sys.exception(), "exit_code", 1)
        told = write_json(Farewell(reason[:_MOST_REASON], code), escaped=True).encode()
        self._call(self._farewell(Frame.ABORT, told), watch=False)

    def close(self) -> None:
        """Say farewell to the remaining parties, and end the connections."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(KeyboardInterrupt):  # a second Ctrl-C does not leave threads behind
            self._call(self._farewell(Frame.BYE, b""), watch=False)
        self._call(self._end(), watch=False)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        tunnelled = () if self._tunnel is None else (self._tunnel.transports,)
        self._loop.run_until_complete(_turns(self._meeting.transports, *tunnelled))
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, T], *, watch: bool = True) -> T:
        """Have the network's thread do something, and wait for it; a failure of a party ends the wait."""
        future, end = asyncio.run_coroutine_threadsafe(work, self._loop), time.monotonic() + self._place.step
        try:
            while True:
                try:
                    return future.result(_LOOK)
                except TimeoutError:
                    if future.done():
                        raise
                if watch:
                    self.check()
                    if time.monotonic() > end:
                        raise self._mail.too_late()
        except BaseException:
            future.cancel()
            raise

    async def _meet(self) -> None:
        await self._meeting.open_door()
        self._keep(self._pulse())
        await self._meeting.gather()

    def _arrived(self, rank: int, kind: str, wire: Wire) -> None:
        if kind == "channel":
            link = Link(rank, wire, self._mail)
            self._links[rank] = link
            self._keep(link.listen())
        else:
            self._keep(self._let_through(rank, wire))

    async def _let_through(self, rank: int, wire: Wire) -> None:
        """Hand a connection of another's engine to the tunnel, which may open a little later."""
        end = time.monotonic() + self._place.timeout
        while self._tunnel is None and time.monotonic() < end:
            await asyncio.sleep(0.02)
        if self._tunnel is None:
            wire.close()
        else:
            await self._tunnel.incoming(rank, wire)

    async def _pulse(self) -> None:
        """Send signs of life, and notice who has stopped giving them."""
        every = self._every
        patience = self._place.timeout - every  # so that it is reported within the timeout
        last = time.monotonic()
        while True:
            await asyncio.sleep(every)
            now = time.monotonic()
            slept = now - last - every
            for link in list(self._links.values()):
                if link.over:
                    continue
                if slept > every:
                    link.heard += slept  # this party was stopped itself: read what has come first
                elif now - link.heard > patience:
                    self._mail.fail(
                        PartyError(
                            f"party {link.name!r} has given no sign of life for {self._place.timeout:g} seconds; start "
                            "all parties again"
                        )
                    )
                link.beat()
            last = now

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _farewell(self, frame: Frame, payload: bytes) -> None:
        now, late = time.monotonic(), 2.5 * self._every
        waits = {link: 0.0 if now - link.heard > late else _FAREWELL for link in self._links.values()}
        await asyncio.gather(*(link.farewell(frame, payload, wait) for link, wait in waits.items()))

    async def _end(self) -> None:
        self._meeting.close_door()
        if self._tunnel is not None:
            self._tunnel.end()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for link in self._links.values():
            link.wire.close()
        await asyncio.sleep(0)  # lets sockets close


@contextmanager
def telling_others(config: PartyConfig, version: str) -> Iterator[None]:
    """Tell those who wait already where this party fails before it meets them; not why, which is its own business."""
    try:
        yield
    except SfumatoError as error:
        try:
            place = config.place(version)
        except SfumatoError:  # its schema is what fails: the others hear that it differs
            place = replace(config, data=replace(config.data, schema=None)).place(version)
        NetworkChannel.decline(place, f"it could not begin ({_KINDS.get(error.exit_code, 'it failed')})")
        raise


@contextmanager
def joined(config: PartyConfig, version: str) -> Iterator[tuple[NetworkChannel, Engine | None]]:
    """Meet the other parties and give the channel to them, and the engine of a party that computes.

    Whatever ends the block early is reported to the others; the first failure elsewhere has priority over its
    effects here. The engine and all connections are gone afterwards.

    Parameters
    ----------
    version : str
        Of the package, the same at all parties.

    Raises
    ------
    PartyError
        Where another party, or the way to it, fails.
    """
    with telling_others(config, version):
        _check_engine(config)
    channel = NetworkChannel.connect(config.place(version))
    engine: Engine | None = None
    try:
        engine = _engine(config, channel)
        yield channel, engine
    except KeyboardInterrupt:
        channel.abort("it was interrupted")
        raise
    except SfumatoError as error:
        channel.abort(str(error))
        if isinstance(error, PartyError):
            channel.check()  # an engine ends with the party at its other side: that is what to say
        raise
    except BaseException as error:
        channel.abort(f"it met a {type(error).__name__}")
        raise
    finally:
        try:
            if engine is not None:
                engine.close()
        finally:
            channel.close()


def _check_engine(config: PartyConfig) -> None:
    """Refuse a party that could not compute before the others are called."""
    from sfumato.parties.spu import engine_python

    if config.rank in computing_parties(config.plan.engine, len(config.peers)):
        engine_python(config.interpreter)


def _engine(config: PartyConfig, channel: NetworkChannel) -> Engine | None:
    """Start the engine, whose connections go through the channel's port."""
    from sfumato.parties.spu import SpuEngine

    computing = computing_parties(config.plan.engine, len(config.peers))
    if config.rank not in computing:
        return None
    tunnel = channel.open_tunnel(computing)
    return SpuEngine(
        config.plan.engine,
        config.rank,
        computing,
        tunnel.addresses,
        python=config.interpreter,
        timeout=_PATIENCE * config.timeout,
        longest=config.step,
        failed=lambda: channel.failure,
        late=channel.late,
    )


async def _turns(*transports: Collection[asyncio.WriteTransport]) -> None:
    """A few turns of the loop: callers who came at the very end are sent away, and all connections let go."""
    for turn in range(_LAST_TURNS):
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        if turn == _LAST_TURNS - 2:  # who has not taken what was said by now does not hear it
            for transport in [each for those in transports for each in those]:
                transport.abort()
        await asyncio.sleep(0)
