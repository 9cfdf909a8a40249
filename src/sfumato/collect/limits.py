"""Limits of a collector: what it is told, how often a client may ask, and connections that are not held for nothing.

Uvicorn waits for ever for the first line, and for headers without end, and counts no connections by address; a few
thousand such connections would keep everybody else out.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "AT_LEAST",
    "CONNECTION",
    "CollectorSettings",
    "GuardedConnection",
    "OpenConnections",
    "RateLimit",
    "network_of",
    "watched",
]

AT_LEAST = 50
"""Answers from which on figures are shown."""

CONNECTION = "sfumato_connection"
"""Name under which a request tells the connection that it came in."""

_PATIENCE = 15.0  # seconds in which a head must have come
_MOST_BYTES = 65_536  # of a head that is not complete
_WORDS = b'{"error": "too many connections from one address; close some, or wait a little"}'
_TOO_MANY = (
    b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: 15\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_WORDS), _WORDS)
)
_MOST = 100_000  # clients that are remembered; beyond, those not seen for longest begin anew


@dataclass(frozen=True)
class CollectorSettings:
    """Limits of a collector."""

    password: str = field(repr=False)  # of the dashboard
    rate: float = 20.0  # requests with answers or passwords that one address may send, a second; 0 is no limit
    most_bytes: int = 16_384  # of a body
    at_least: int = AT_LEAST  # answers from which on the dashboard shows figures
    connections: int = 1_000  # that one address may hold open at once
    names: frozenset[str] = frozenset()  # names that requests may ask for; none is any


class RateLimit:
    """At most ``burst`` requests at once and ``rate`` a second after that, for each client. A rate of 0 is no limit.

    Examples
    --------
    >>> limit = RateLimit(rate=1.0, burst=2, clock=lambda: 0.0)
    >>> [limit.wait_for("a"), limit.wait_for("a"), limit.wait_for("a"), limit.wait_for("b")]
    [0.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, rate: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._full_at: OrderedDict[Hashable, float] = OrderedDict()  # when each bucket will be full again

    def wait_for(self, client: Hashable) -> float:
        """Count a request: 0, or the seconds after which the next one will be let through."""
        if self._rate <= 0:
            return 0.0
        wait, full_at = self._next(client)
        self._full_at.pop(client, None)
        self._full_at[client] = full_at if wait == 0.0 else full_at - 1.0 / self._rate
        if len(self._full_at) > _MOST:
            self._full_at.popitem(last=False)
        return wait

    def would_wait(self, client: Hashable) -> float:
        """What `wait_for` would give, without counting."""
        return self._next(client)[0] if self._rate > 0 else 0.0

    def _next(self, client: Hashable) -> tuple[float, float]:
        """Wait of one more request, and when the bucket would be full again after it."""
        now = self._clock()
        full_at = max(now, self._full_at.get(client, now)) + 1.0 / self._rate
        wait = full_at - now - self._burst / self._rate
        return (wait if wait > 1e-9 else 0.0), full_at


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
    """How many connections each address holds open, and whether it may open another.

    Parameters
    ----------
    most : int
        From one address, or one network of IPv6.
    proxy : str, optional
        Address or network that many come through, and that is not counted.
    """

    def __init__(self, most: int, proxy: str | None = None) -> None:
        self._most = most
        self._proxy = None if proxy is None else ipaddress.ip_network(proxy)
        self._open: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """Count a connection; False where it is one too many."""
        self._open[network_of(address)] += 1
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
    """One connection in front of uvicorn's HTTP: its head must come in time, and be of modest size.

    Parameters
    ----------
    http : asyncio.Protocol
        Answers requests. It is told in which connection they came, see `watched`.
    """

    def __init__(self, connections: OpenConnections, http: Callable[[GuardedConnection], asyncio.Protocol]) -> None:
        self._connections, self._http = connections, http(self)
        self._loop = asyncio.get_running_loop()
        self._address = ""
        self._refused = False
        self._answering, self._bytes = 0, 0
        self._since: float | None = None  # a head began to come, or was waited for
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) else ""
        self._refused = not self._connections.enter(self._address)
        if self._refused:
            transport.write(_TOO_MANY)
            transport.close()
            return
        self._http.connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        if self._refused:
            return
        self._http.data_received(data)
        if not self._answering:
            self._bytes += len(data)
            self._wait()
            if self._bytes > _MOST_BYTES:
                self._loop.call_soon(self._check_size)  # by then a head that was complete is being answered

    def eof_received(self) -> bool | None:
        """Take note that no more comes."""
        return None if self._refused else self._http.eof_received()

    def pause_writing(self) -> None:
        """Hold back what is sent."""
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """Send again."""
        self._http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._connections.leave(self._address)
        self._since = None
        if self._timer is not None:
            self._timer.cancel()
        if not self._refused:
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
            self._timer = self._loop.call_later(_PATIENCE, self._look)

    def _look(self) -> None:
        """Close where a head has not come; one that began to come later has the rest of its time."""
        self._timer = None
        if self._since is None:
            return
        left = self._since + _PATIENCE - self._loop.time()
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
        connection = scope.get("state", {}).get(CONNECTION)
        if connection is None:
            await app(scope, receive, send)
            return
        connection.answer_began()
        try:
            await app(scope, receive, send)
        finally:
            connection.answer_ended()

    return wrapped
