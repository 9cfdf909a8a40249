"""Frames over TLS: what every connection between two parties carries, and the first words on it.

A frame is its type (one byte), its length (four bytes, the highest first) and its bytes. TLS is done over buffers in
memory, so that a refusal reaches the other end as one, and reading and writing never meet in two threads. The first
words say who speaks, and what it takes the run to be; any difference is named.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

from sfumato.core.documents import Unparsable, from_json, parse_json, typed, write_json
from sfumato.core.errors import printable
from sfumato.parties.ports import PartyError

__all__ = [
    "MOST_FRAME",
    "Frame",
    "Hello",
    "Lost",
    "PartyMismatch",
    "Purpose",
    "Wire",
    "difference",
    "digest_of",
    "read_verdict",
    "verdict",
]

MOST_FRAME = 1 << 18
"""Bytes of a frame at most; longer messages go in several."""

_HEAD = 5
_READ = 1 << 16

_PROTOCOL = 1
"""Number of the language between parties; those who speak another are refused."""

_SHOWN = 60
_MOST_WORDS = 300

Purpose = Literal["channel", "engine"]
"""What a connection is for."""


class Frame(IntEnum):
    """What a frame is."""

    HELLO = 1  # who speaks, and what it takes the run to be
    VERDICT = 2  # what the listening end makes of that
    MESSAGE = 3  # kind and length of a message
    PART = 4  # some of its bytes
    BEAT = 5  # a sign of life
    ABORT = 6  # the speaker gives up
    BYE = 7  # the speaker has said all it had to say
    SEEN = 8  # ABORT or BYE was read
    DATA = 9  # bytes of the engine; none of them: no more will come


class Lost(Exception):
    """The connection ended."""


class Wire:
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
        self._into, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._into, self._out, server_side=server)
        self._held = bytearray()
        self.carried = 0

    async def handshake(self) -> None:
        """Agree on keys; each end checks the certificate of the other.

        Raises
        ------
        ssl.SSLError
            Where one end refuses the other.
        Lost
            Where the connection ends.
        """
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._more()
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
            raise Lost
        try:
            self._tls.write(bytes((kind,)) + len(payload).to_bytes(4, "big"))
            if len(payload):
                self._tls.write(payload)
        except ssl.SSLError:
            raise Lost from None
        self._flush()

    async def drain(self) -> None:
        """Wait until the other end has taken most of what was sent."""
        self._flush()
        try:
            await self._writer.drain()
        except OSError:
            raise Lost from None

    async def receive(self) -> tuple[Frame, bytes]:
        """Wait for the next frame."""
        head = await self._exactly(_HEAD)
        size = int.from_bytes(head[1:], "big")
        if size > MOST_FRAME or head[0] not in Frame.__members__.values():
            raise Lost  # not ours, or damaged beyond use
        return Frame(head[0]), await self._exactly(size)

    def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(ssl.SSLError):  # it wants the other's farewell, which nobody waits for
            self._tls.unwrap()
        if not self._writer.is_closing():
            self._flush()
            self._writer.close()

    async def _exactly(self, size: int) -> bytes:
        while len(self._held) < size:
            try:
                data = self._tls.read(_READ)
            except ssl.SSLWantReadError:
                await self._more()
                continue
            except ssl.SSLZeroReturnError:
                raise Lost from None
            if not data:
                raise Lost
            self._held += data
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    async def _more(self) -> None:
        self._flush()
        try:
            data = await self._reader.read(_READ)
        except OSError:
            raise Lost from None
        if not data:
            raise Lost
        self._into.write(data)

    def _flush(self) -> None:
        if self._out.pending:
            data = self._out.read()
            self.carried += len(data)
            self._writer.write(data)


class PartyMismatch(PartyError):
    """Two parties do not take the run to be the same, or one is not whom it says; nothing is written."""

    exit_code = 2


@dataclass(frozen=True)
class Hello:
    """What a party says first."""

    sfumato: str  # version of the package
    run: str  # name of the run
    kind: Purpose  # {"channel", "engine"}: what the connection is for
    rank: int
    digest: str  # SHA-256 of the settings
    settings: Mapping[str, Any] | None = None  # the settings themselves, on a channel
    protocol: int = _PROTOCOL

    def to_bytes(self) -> bytes:
        """Write it for the wire."""
        return write_json(self).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Hello:
        """Read it; a later protocol may say more, which is passed over.

        Raises
        ------
        ValueError
            Where it is not a greeting.
        """
        try:
            told = parse_json(data)  # of one frame
            return typed(cls, {name: told[name] for name in cls.__dataclass_fields__})
        except (Unparsable, KeyError, TypeError):
            raise ValueError("not a greeting") from None


def digest_of(settings: Mapping[str, Any]) -> str:
    """SHA-256 of settings, whatever the order of their keys."""
    text = write_json(settings, "canonical")
    return hashlib.sha256(text.encode()).hexdigest()


def difference(mine: Hello, theirs: Hello, name: str) -> str | None:
    """Say in one sentence in what a party differs from this one; None where it does not.

    Examples
    --------
    >>> here = Hello("0.2.0", "trial", "channel", 0, "", {"k": 5})
    >>> difference(here, Hello("0.2.0", "trial", "channel", 1, "x", {"k": 6}), "bank")
    "party 'bank' has k = 6 and this party k = 5; agree on one and start all parties again"
    """
    if mine.protocol != theirs.protocol or mine.sfumato != theirs.sfumato:
        them, us = f"sfumato {_plain(theirs.sfumato)}", f"sfumato {mine.sfumato}"
        if mine.sfumato == theirs.sfumato:
            them, us = f"protocol {theirs.protocol}", f"protocol {mine.protocol}"
        return f"party {name!r} speaks {them} and this party {us}; install the same version at all parties"
    if mine.run != theirs.run:
        return f"party {name!r} is in the run {_brief(theirs.run)} and this party in {_brief(mine.run)}; name it alike"
    if mine.digest == theirs.digest:
        return None
    if mine.settings is None or theirs.settings is None:
        return f"party {name!r} has other settings than this party; agree on them and start all parties again"
    ours, other = dict(_flat(mine.settings)), dict(_flat(theirs.settings))
    for key in (*ours, *other):
        if ours.get(key) != other.get(key):
            return (
                f"party {name!r} has {_said(key, other)} and this party {_said(key, ours)}; agree on one and start "
                "all parties again"
            )
    return f"party {name!r} has other settings than this party; agree on them and start all parties again"


def verdict(reason: str = "") -> bytes:
    """Write what is said to a caller: why it is refused, or nothing."""
    return write_json({"reason": reason}, escaped=True).encode()


def read_verdict(payload: bytes) -> str:
    """Read why this party is refused, as plain words; nothing where it is not.

    Raises
    ------
    ValueError
        Where it is not a verdict.
    """
    try:
        reason = from_json(dict[str, str], payload)["reason"]
    except (Unparsable, KeyError):
        raise ValueError("not a verdict") from None
    return "".join(sign if sign.isprintable() else " " for sign in reason)[:_MOST_WORDS]


def _flat(settings: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """List settings by their dotted names, in their order."""
    found: list[tuple[str, Any]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{key}.")
        else:
            found.append((f"{before}{key}", value))
    return found


def _said(key: str, settings: Mapping[str, Any]) -> str:
    value = settings.get(key)
    return f"no {_plain(key)}" if value is None else f"{_plain(key)} = {_brief(value)}"


def _plain(text: str) -> str:
    """Words of a peer that can neither steer a terminal nor fill it."""
    return printable(text[:_SHOWN])


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
