"""HTTP connections of a server: a request header must arrive in time and be small.

Uvicorn waits without limit for the header of a request. Everything else that protects a public server, such as limits
on connections per address, is the task of a reverse proxy.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
import socket
from contextlib import suppress
from typing import Any

from sfumato.core.errors import OptionError

__all__ = ["HEADER_TIMEOUT", "http_protocol", "listen", "network_of", "run_app"]

HEADER_TIMEOUT = 15.0
"""Seconds in which the header of a request must have arrived."""

_MAX_HEADER_BYTES = 65_536


def network_of(address: str) -> str:
    """What is counted as one client: an IPv4 address, or the /64 network of an IPv6 address.

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


def listen(host: str, port: int, backlog: int, hint: str) -> socket.socket:
    """Socket that accepts connections; port 0 is any free one. ``hint`` says what to do where that cannot be."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(backlog)
        except (OSError, OverflowError):
            listening.close()
            raise
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None) or 0
        reason = os.strerror(number) if number > 0 else "no such address"
        raise OptionError(f"cannot listen on port {port} ({reason}); {hint}") from None
    return listening


def run_app(app: Any, listening: socket.socket, header_timeout: float = HEADER_TIMEOUT, **settings: Any) -> None:
    """Serve an application with uvicorn until Ctrl-C or SIGTERM; nothing is logged, and no header names the server."""
    import uvicorn

    config = uvicorn.Config(
        app,
        http=http_protocol(header_timeout),
        lifespan="on",
        log_config=None,
        access_log=False,
        log_level="critical",
        server_header=False,
        date_header=False,
        ws="none",
        timeout_keep_alive=math.ceil(header_timeout),
        **settings,
    )
    with suppress(KeyboardInterrupt):  # uvicorn raises the signal again once it has ended
        uvicorn.Server(config).run(sockets=[listening])


def http_protocol(header_timeout: float = HEADER_TIMEOUT) -> Any:
    """Protocol class for uvicorn's option ``http`` that closes a connection without a complete request header."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class HeaderTimeoutProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """Uvicorn's protocol with a limit on the time and the bytes of a request header."""

        _timer: asyncio.TimerHandle | None = None
        _header_bytes = 0

        def connection_made(self, transport: Any) -> None:
            """Await the first header."""
            super().connection_made(transport)
            self._await_header()

        def data_received(self, data: bytes) -> None:
            """Take in a part of a request."""
            super().data_received(data)
            self._header_bytes += len(data)
            if self._is_waiting and self._header_bytes > _MAX_HEADER_BYTES:
                self.transport.close()

        def on_response_complete(self) -> None:
            """Await the next header."""
            super().on_response_complete()
            self._await_header()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop the timer."""
            super().connection_lost(exc)
            if self._timer is not None:
                self._timer.cancel()

        @property
        def _is_waiting(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _await_header(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._header_bytes = 0
            self._timer = self.loop.call_later(header_timeout, self._close_if_waiting)

        def _close_if_waiting(self) -> None:
            if self._is_waiting:
                self.transport.close()

    return HeaderTimeoutProtocol
