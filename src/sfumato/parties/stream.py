"""Frames over TLS, which every connection between two parties carries.

A frame is its type (one byte), its length (four bytes, big-endian) and its bytes. TLS is done over buffers in memory,
so that a refusal reaches the other end as one, and reading and writing never happen in two threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ssl
from enum import IntEnum

__all__ = ["MOST_FRAME", "ConnectionLost", "Frame", "TlsStream"]

MOST_FRAME = 1 << 18
"""Largest frame in bytes; longer messages take several."""

_HEAD = 5
_READ = 1 << 16


class Frame(IntEnum):
    """Types of frames."""

    HELLO = 1  # who speaks, and what it takes the run to be
    VERDICT = 2  # what the listening end makes of that
    MESSAGE = 3  # kind and length of a message
    PART = 4  # some of its bytes
    HEARTBEAT = 5  # a sign of life
    ABORT = 6  # the speaker gives up
    DISCONNECT = 7  # the speaker has said all it had to say
    ACKNOWLEDGED = 8  # ABORT or DISCONNECT was read
    DATA = 9  # bytes of the engine; none of them: no more will come


class ConnectionLost(Exception):
    """The connection ended."""


class TlsStream:
    """One TLS connection.

    Parameters
    ----------
    reader, writer : asyncio streams
        Of the plain connection below.
    server : bool
        Whether this end was called.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext, *, server: bool
    ) -> None:
        self._reader, self._writer = reader, writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server)
        self._buffer = bytearray()
        self.bytes_sent = 0

    async def handshake(self) -> None:
        """Agree on keys; each end checks the certificate of the other.

        Raises
        ------
        ssl.SSLError
            If one end refuses the other.
        ConnectionLost
            If the connection ends.
        """
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._read_more()
            except ssl.SSLError:
                self._flush()  # the other end hears why
                raise
        await self.drain()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the other end's certificate, in hexadecimal."""
        return hashlib.sha256(self._tls.getpeercert(binary_form=True) or b"").hexdigest()

    @property
    def host(self) -> str:
        """The address that the other end speaks from."""
        return str((self._writer.get_extra_info("peername") or ("an unknown address",))[0])

    def send(self, kind: Frame, payload: bytes | memoryview = b"") -> None:
        """Put a frame on its way."""
        if len(payload) > MOST_FRAME:
            raise ValueError(f"a frame has at most {MOST_FRAME} bytes")
        if self._writer.is_closing():
            raise ConnectionLost
        try:
            self._tls.write(bytes((kind,)) + len(payload).to_bytes(4, "big"))
            if len(payload):
                self._tls.write(payload)
        except ssl.SSLError:
            raise ConnectionLost from None
        self._flush()

    async def drain(self) -> None:
        """Wait until the other end has taken most of what was sent."""
        self._flush()
        try:
            await self._writer.drain()
        except OSError:
            raise ConnectionLost from None

    async def receive(self) -> tuple[Frame, bytes]:
        """Wait for the next frame."""
        head = await self._exactly(_HEAD)
        size = int.from_bytes(head[1:], "big")
        if size > MOST_FRAME or head[0] not in Frame.__members__.values():
            raise ConnectionLost  # not ours, or damaged beyond use
        return Frame(head[0]), await self._exactly(size)

    def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(ssl.SSLError):  # it expects the other's close_notify, which nobody waits for
            self._tls.unwrap()
        if not self._writer.is_closing():
            self._flush()
            self._writer.close()

    async def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            try:
                data = self._tls.read(_READ)
            except ssl.SSLWantReadError:
                await self._read_more()
                continue
            except ssl.SSLZeroReturnError:
                raise ConnectionLost from None
            if not data:
                raise ConnectionLost
            self._buffer += data
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    async def _read_more(self) -> None:
        self._flush()
        try:
            data = await self._reader.read(_READ)
        except OSError:
            raise ConnectionLost from None
        if not data:
            raise ConnectionLost
        self._incoming.write(data)

    def _flush(self) -> None:
        if self._outgoing.pending:
            data = self._outgoing.read()
            self.bytes_sent += len(data)
            self._writer.write(data)
