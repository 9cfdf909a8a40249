"""The channel between machines: mutual TLS with pinned certificates, one port per party, heartbeats.

All connections are served by one thread, so that a party that computes for long still sends heartbeats. A party
connects to all others, starts its engine, and closes both when it ends.
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
from sfumato.parties.arithmetic import Engine
from sfumato.parties.channel import MOST_MESSAGE, Inbox, PartyChannel, PartyError
from sfumato.parties.config import PartyConfig
from sfumato.parties.connection import Connection, Disconnect
from sfumato.parties.peers import NetworkSettings
from sfumato.parties.relay import EngineRelay
from sfumato.parties.rendezvous import Rendezvous
from sfumato.parties.session import computing_parties
from sfumato.parties.stream import ConnectionLost, Frame, TlsStream

__all__ = ["NetworkChannel", "connected", "notifying_others"]

T = TypeVar("T")

_POLL = 0.5  # seconds between two looks at whether a party has failed
_LAST_ITERATIONS = 5
_HEARTBEAT = 2.0  # seconds between two signs of life at most
_DISCONNECT_WAIT = 3.0  # seconds in which others read that this party ends
_MOST_REASON = 600
_DECLINE_WAIT = 2.0  # seconds in which those who wait already call, or are called

_REASONS = {2: "its table or its settings must be fixed", 3: "its table may not be released"}
_ENGINE_TIMEOUTS = 10  # an engine may compute for long; that its party is alive, the channel knows


class NetworkChannel(PartyChannel):
    """One party's connections to all others; see `sfumato.parties.channel.PartyChannel`.

    Made by `connect`. A party that gives up, closes, dies or stays silent for longer than the timeout fails the
    channel: ``inbox.failed`` is set, and whatever waits raises `PartyError` with one sentence.
    """

    def __init__(self, settings: NetworkSettings) -> None:
        self.rank, self.names = settings.rank, settings.names
        self.sent = self.messages = 0
        self._settings = settings
        self.inbox = Inbox(settings.names, settings.step)
        self._connections: dict[int, Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._relay: EngineRelay | None = None
        self._rendezvous = Rendezvous(settings, self.inbox, self._on_connection)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sfumato network", daemon=True)
        self._every = min(_HEARTBEAT, settings.timeout / 5)  # seconds between two signs of life
        self._closed = False

    def __repr__(self) -> str:
        return f"NetworkChannel(rank={self.rank}, parties={self.parties})"

    @classmethod
    def connect(cls, settings: NetworkSettings) -> Self:
        """Connect to all other parties, in any order of their starts.

        Raises
        ------
        PartyMismatch
            If two do not take the run to be the same, or a certificate is not the pinned one.
        PartyError
            If one does not come in time.
        """
        channel = cls(settings)
        channel._thread.start()
        try:
            channel._call(channel._connect_all(), watch=False)
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
    def decline(cls, settings: NetworkSettings, reason: str) -> None:
        """Tell the parties that already wait that this one cannot begin, and why.

        It takes a moment only. A failure here is ignored: the party reports another error.
        """
        with contextlib.suppress(SfumatoError):
            channel = cls(replace(settings, wait=_DECLINE_WAIT))
            channel._thread.start()
            try:
                with contextlib.suppress(PartyError):
                    channel._call(channel._connect_all(), watch=False)
                channel.abort(reason)
            finally:
                channel.close()

    @property
    def bytes_sent(self) -> int:
        """Bytes that this party has sent over the network, with TLS and heartbeats."""
        return sum(connection.stream.bytes_sent for connection in self._connections.values())

    def send(self, to: int, kind: str, payload: bytes) -> None:
        """Send bytes to a party; returns when they are on their way."""
        if len(payload) > MOST_MESSAGE:
            raise PartyError(f"a message has at most {MOST_MESSAGE >> 20} MiB; use fewer rows")
        self.inbox.check()
        try:
            with self.waiting(to):
                self._call(self._connections[to].send(kind, payload))
        except ConnectionLost:
            self.inbox.failed.wait(_POLL)
            self.inbox.check()
            raise PartyError(
                f"party {self.names[to]!r} has ended its run before this party; start all parties again"
            ) from None
        self.sent += len(payload)
        self.messages += 1

    def waiting(self, *ranks: int) -> AbstractContextManager[None]:
        """Report to the others which parties this one waits for, so that the slow one can be named."""
        return self.inbox.waiting(*ranks)

    def open_relay(self, computing: tuple[int, ...]) -> EngineRelay:
        """Relay between the engines of the computing parties; only they call this."""
        if self.rank not in computing or self._relay is not None:
            raise ValueError("a party that computes opens one relay")
        relay = EngineRelay(self.rank, computing, self._rendezvous.call, self.inbox, self._settings.timeout)
        self._call(relay.open())
        self._relay = relay
        return relay

    def abort(self, reason: str) -> None:
        """Tell all others that this party gives up, and why; they end with the exit code of the error at hand."""
        if self._closed:
            return
        code = getattr(sys.exception(), "exit_code", 1)
        notice = write_json(Disconnect(reason[:_MOST_REASON], code), escaped=True).encode()
        self._call(self._disconnect(Frame.ABORT, notice), watch=False)

    def close(self) -> None:
        """Disconnect from the remaining parties."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(KeyboardInterrupt):  # a second Ctrl-C does not leave threads behind
            self._call(self._disconnect(Frame.DISCONNECT, b""), watch=False)
        self._call(self._end(), watch=False)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        relayed = () if self._relay is None else (self._relay.transports,)
        self._loop.run_until_complete(_drain_loop(self._rendezvous.transports, *relayed))
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, T], *, watch: bool = True) -> T:
        """Run a coroutine in the network's thread and wait for it; a failure of a party ends the wait."""
        future, end = asyncio.run_coroutine_threadsafe(work, self._loop), time.monotonic() + self._settings.step
        try:
            while True:
                try:
                    return future.result(_POLL)
                except TimeoutError:
                    if future.done():
                        raise
                if watch:
                    self.inbox.check()
                    if time.monotonic() > end:
                        raise self.inbox.step_expired()
        except BaseException:
            future.cancel()
            raise

    async def _connect_all(self) -> None:
        await self._rendezvous.listen()
        self._start(self._send_heartbeats())
        await self._rendezvous.wait_for_all()

    def _on_connection(self, rank: int, kind: str, stream: TlsStream) -> None:
        if kind == "channel":
            connection = Connection(rank, stream, self.inbox)
            self._connections[rank] = connection
            self._start(connection.listen())
        else:
            self._start(self._hand_over(rank, stream))

    async def _hand_over(self, rank: int, stream: TlsStream) -> None:
        """Hand a connection of another's engine to the relay, which may open a little later."""
        end = time.monotonic() + self._settings.timeout
        while self._relay is None and time.monotonic() < end:
            await asyncio.sleep(0.02)
        if self._relay is None:
            stream.close()
        else:
            await self._relay.incoming(rank, stream)

    async def _send_heartbeats(self) -> None:
        """Send heartbeats, and fail if a party has stopped sending them."""
        every = self._every
        patience = self._settings.timeout - every  # so that it is reported within the timeout
        last = time.monotonic()
        while True:
            await asyncio.sleep(every)
            now = time.monotonic()
            slept = now - last - every
            for connection in list(self._connections.values()):
                if connection.closing:
                    continue
                if slept > every:
                    connection.last_heard += slept  # this party was stopped itself: read what has come first
                elif now - connection.last_heard > patience:
                    silent = f"has given no sign of life for {self._settings.timeout:g} seconds"
                    self.inbox.fail(PartyError(f"party {connection.name!r} {silent}; start all parties again"))
                connection.heartbeat()
            last = now

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _disconnect(self, frame: Frame, payload: bytes) -> None:
        now, late = time.monotonic(), 2.5 * self._every
        waits = {
            connection: 0.0 if now - connection.last_heard > late else _DISCONNECT_WAIT
            for connection in self._connections.values()
        }
        await asyncio.gather(*(connection.disconnect(frame, payload, wait) for connection, wait in waits.items()))

    async def _end(self) -> None:
        self._rendezvous.stop_listening()
        if self._relay is not None:
            self._relay.end()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in self._connections.values():
            connection.stream.close()
        await asyncio.sleep(0)  # lets sockets close


@contextmanager
def notifying_others(config: PartyConfig, version: str) -> Iterator[None]:
    """Tell the parties that already wait if this one fails before it connects; the reason stays private."""
    try:
        yield
    except SfumatoError as error:
        try:
            settings = config.network_settings(version)
        except SfumatoError:  # its schema is what fails: the others hear that it differs
            settings = replace(config, data=replace(config.data, schema=None)).network_settings(version)
        NetworkChannel.decline(settings, f"it could not begin ({_REASONS.get(error.exit_code, 'it failed')})")
        raise


@contextmanager
def connected(config: PartyConfig, version: str) -> Iterator[tuple[NetworkChannel, Engine | None]]:
    """Connect to the other parties; gives the channel, and the engine of a party that computes.

    A failure in the block is reported to the others; the first failure elsewhere has priority over its effects here.
    The engine and all connections are closed afterwards.

    Parameters
    ----------
    version : str
        Of the package, the same at all parties.

    Raises
    ------
    PartyError
        If another party, or the way to it, fails.
    """
    with notifying_others(config, version):
        _check_engine(config)
    channel = NetworkChannel.connect(config.network_settings(version))
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
            channel.inbox.check()  # an engine ends with the party at its other side: that is what to say
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
    relay = channel.open_relay(computing)
    return SpuEngine(
        config.plan.engine,
        config.rank,
        dict(zip(computing, relay.addresses, strict=True)),
        python=config.interpreter,
        timeout=_ENGINE_TIMEOUTS * config.timeout,
        longest=config.step,
        failed=lambda: channel.inbox.failure,
        blocking=channel.inbox.blocking_parties,
    )


async def _drain_loop(*transports: Collection[asyncio.WriteTransport]) -> None:
    """Run the loop a few times more: late callers are refused, and all connections are closed."""
    for turn in range(_LAST_ITERATIONS):
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        if turn == _LAST_ITERATIONS - 2:  # who has not taken what was said by now does not hear it
            for transport in [each for those in transports for each in those]:
                transport.abort()
        await asyncio.sleep(0)
