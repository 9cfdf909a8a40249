"""Connections of a server: how many each address holds open, and how long a request header may take to arrive.

Uvicorn waits without end for the first line of a request and for its headers, and counts neither the connections of an
address nor those before their TLS handshake. A few hundred such connections would keep everybody else out. Each
connection is therefore guarded in front of uvicorn, and TLS begins once it is counted.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Any

__all__ = ["PATIENCE", "GuardedConnection", "OpenConnections", "guarded_protocol", "network_of", "watched"]

PATIENCE = 15.0
"""Seconds in which a TLS handshake must be complete, and a request header must have arrived."""

_CONNECTION = "sfumato_connection"  # under which a request finds the connection that it came in
_MOST_BYTES = 65_536  # of a header that is not complete
_WORDS = b'{"error": "too many connections; close some, or wait a little"}'
_TOO_MANY = (
    b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: 15\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_WORDS), _WORDS)
)


def network_of(address: str) -> str:
    """What is counted as one client: an IPv4 address, or the network of an IPv6 one, who has 2^64 of them.

    Examples
    --------
    >>> network_of("192.0.2.7"), network_of("::ffff:192.0.2.7"), network_of("2001:db8:0:5::aaaa")
    ('192.0.2.7', '192.0.2.7', '2001:db8:0:5::')
    """
    if ":" not in address:
        return address
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(found.ipv4_mapped or ipaddress.IPv6Address(int(found) >> 64 << 64))


class OpenConnections:
    """How many connections each address, or network of IPv6, holds open, and whether it may open another.

    The address or network of a proxy, which many come through, may hold as many as there may be in all.
    """

    def __init__(self, most: int, proxy: str | None = None, *, in_all: int = 2000) -> None:
        self._most, self._in_all = most, in_all
        self._proxy = None if proxy is None else ipaddress.ip_network(proxy)
        self._open: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """Count a connection; False where it is one too many."""
        self._open[network_of(address)] += 1
        if self._open.total() > self._in_all:
            return False
        return self._open[network_of(address)] <= self._most or self._is_proxy(address)

    def leave(self, address: str) -> None:
        """Count a connection that has ended."""
        self._open[network_of(address)] -= 1
        if self._open[network_of(address)] <= 0:
            del self._open[network_of(address)]

    def _is_proxy(self, address: str) -> bool:
        try:
            return self._proxy is not None and ipaddress.ip_address(address) in self._proxy
        except ValueError:
            return False


class GuardedConnection(asyncio.Protocol):
    """One connection in front of uvicorn's HTTP: its TLS handshake and each header must arrive in time and be small.

    It counts from the moment it is accepted. ``http`` makes what answers requests and is given this connection; see
    `watched`. A handshake or a header that takes longer than ``patience`` seconds closes the connection.
    """

    def __init__(
        self,
        connections: OpenConnections,
        http: Callable[[GuardedConnection], asyncio.Protocol],
        tls: ssl.SSLContext | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._connections, self._http, self._tls = connections, http(self), tls
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._address: str | None = None  # none before it is counted, and after
        self._begun = False  # requests may come
        self._early: list[bytes] = []  # came with the last message of the handshake
        self._answering, self._bytes = 0, 0
        self._since: float | None = None  # a head began to come, or was waited for
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and begin to wait for the first request, or for the handshake before it."""
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) else ""
        if not self._connections.enter(self._address):
            if self._tls is None:
                transport.write(_TOO_MANY)
            transport.close()
        elif self._tls is None:
            self._begin(transport)
        else:
            transport.pause_reading()  # what comes is read by the handshake
            self._handshake = self._loop.create_task(self._shake_hands(transport, self._tls))

    async def _shake_hands(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        try:
            secure = await self._loop.start_tls(
                transport, self, tls, server_side=True, ssl_handshake_timeout=self._patience
            )
        except OSError as error:
            self.connection_lost(error)
            return
        if secure is not None and self._address is not None:
            self._begin(secure)

    def _begin(self, transport: asyncio.Transport) -> None:
        self._transport, self._begun = transport, True
        self._http.connection_made(transport)
        self._wait()
        early, self._early = self._early, []
        for data in early:
            self.data_received(data)

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        if not self._begun:
            if self._tls is not None:
                self._early.append(data)
            return
        self._http.data_received(data)
        if not self._answering:
            self._bytes += len(data)
            self._wait()
            if self._bytes > _MOST_BYTES:
                self._loop.call_soon(self._check_size)  # by then a head that was complete is being answered

    def eof_received(self) -> bool | None:
        """Take note that no more comes."""
        return self._http.eof_received() if self._begun else None

    def pause_writing(self) -> None:
        """Hold back what is sent."""
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """Send again."""
        self._http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; a handshake that failed may tell so twice."""
        if self._address is not None:
            self._connections.leave(self._address)
        self._address = self._since = None
        if self._timer is not None:
            self._timer.cancel()
        if self._begun:
            self._begun = False
            self._http.connection_lost(exc)

    def answer_began(self) -> None:
        """Take note that a head has come and is being answered."""
        self._answering += 1
        self._since, self._bytes = None, 0

    def answer_ended(self) -> None:
        """Take note that an answer was sent."""
        self._answering -= 1

    def _wait(self) -> None:
        if self._since is None:
            self._since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._patience, self._look)

    def _look(self) -> None:
        """Close where a head has not come; one that began to come later has the rest of its time."""
        self._timer = None
        if self._since is None:
            return
        left = self._since + self._patience - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self._transport.close()

    def _check_size(self) -> None:
        if self._bytes > _MOST_BYTES:
            self._transport.close()


def watched(app: Any) -> Any:
    """Application that tells a `GuardedConnection` which of its requests are being answered."""

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        connection = scope.get("state", {}).get(_CONNECTION)
        if connection is None:
            await app(scope, receive, send)
            return
        connection.answer_began()
        try:
            await app(scope, receive, send)
        finally:
            connection.answer_ended()

    return wrapped


def guarded_protocol(
    connections: OpenConnections, tls: ssl.SSLContext | None = None, patience: float = PATIENCE
) -> Any:
    """Class of protocol, for uvicorn's option ``http``, whose connections are guarded."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    def made(*, app_state: dict[str, Any], **told: Any) -> GuardedConnection:
        def http(own: GuardedConnection) -> asyncio.Protocol:
            return AutoHTTPProtocol(app_state={**app_state, _CONNECTION: own}, **told)  # type: ignore[call-arg]

        return GuardedConnection(connections, http, tls, patience)

    return made
