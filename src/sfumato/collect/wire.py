"""Connections that are not held open for nothing: the head of a request must come in time and be of modest size.

Uvicorn waits for ever for the first line, and for headers without end; a few thousand such connections would keep
everybody else out.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["PatientProtocol"]

_PATIENCE = 15.0  # seconds in which a head must have come
_MOST_BYTES = 65_536  # of a head that is not complete


class PatientProtocol(HttpToolsProtocol):
    """Uvicorn's HTTP on one connection, with an end to its patience."""

    _deadline: asyncio.TimerHandle | None = None
    _bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(_PATIENCE, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        super().data_received(data)
        if not self._waits():
            self._stop_waiting()
            return
        self._bytes += len(data)
        if self._bytes > _MOST_BYTES:
            self.transport.close()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_PATIENCE, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _waits(self) -> bool:
        """Tell whether no request is being answered: its head has not come."""
        return self.cycle is None or self.cycle.response_complete

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline, self._bytes = None, 0

    def _give_up(self) -> None:
        if self._waits():
            self.transport.close()
