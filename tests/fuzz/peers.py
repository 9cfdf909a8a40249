"""What a peer sends in a joint run: settings, certificates, frames, and what protocols receive."""

from __future__ import annotations

import io
import ssl
import struct
from collections.abc import Callable
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from sfumato.core.errors import TableError
from sfumato.parties import codecs, folder, intersection, part, publish, vertical
from sfumato.parties.arithmetic import read_secret, read_words
from sfumato.parties.channel import Inbox, PartyError
from sfumato.parties.codecs import ReadColumn, read_columns
from sfumato.parties.config import PartyConfig
from sfumato.parties.connection import Connection, Hello, difference, read_verdict
from sfumato.parties.engine.party import EngineRefusal, _join, _part, _words
from sfumato.parties.engine.worker import FrameError, pack, unpack
from sfumato.parties.groupwise import broadcast_numbers
from sfumato.parties.peers import _trust, fingerprint_of, read_fingerprint
from sfumato.parties.stream import ConnectionLost, Frame, TlsStream
from sfumato.parties.vertical import align_keys
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.schema import Schema
from tests.fuzz.fuzzing import Parser
from tests.fuzz.inputs import as_file, as_text, folder_in_memory

__all__ = ["PEERS"]

_OF_PEER = (PartyError, ConnectionLost)


@cache
def _party() -> tuple[Path, str]:
    """Folder of a party whose settings are hostile, and the fingerprint of its certificate."""
    from tests.parties.meetings import self_signed

    folder = folder_in_memory() / "party"
    folder.mkdir()
    made = self_signed("bank", "127.0.0.1")
    (folder / "key.pem").write_bytes(made.key)
    (folder / "key.pem").chmod(0o600)
    (folder / "certificate.pem").write_bytes(made.certificate)
    (folder / "data.csv").write_text("id,age\n1,2\n", encoding="utf-8")
    return folder, made.fingerprint


def _config(data: bytes) -> Any:
    folder, fingerprint = _party()
    (folder / "party.toml").write_bytes(data.replace(b"OWN-FINGERPRINT", fingerprint.encode()))
    return PartyConfig.load(folder / "party.toml").settings()


class _Told:
    """A session in which the other party tells hostile bytes, all at once or as many at a time as are due."""

    names, parties = ("bank", "shop"), 2
    traffic: ClassVar[dict[str, int]] = {"bytes": 1, "messages": 2, "engine_bytes": 3}

    def __init__(self, data: bytes, rank: int = 0, lengths: tuple[int, ...] = ()) -> None:
        self.rank = rank
        ends = [0, *accumulate(lengths), len(data)]
        self._parts = [data[start:end] for start, end in pairwise(ends)]

    def broadcast(self, payload: bytes | None, owner: int, label: str, count: int) -> bytes:
        return payload if payload is not None else self._parts.pop(0)

    def phase(self, name: str) -> None:
        """Nobody asks what comes now."""

    def secret(self, label: str) -> bytes:
        return bytes(32)


def _told(read: Callable[..., Any], *more: Any, rank: int = 0, lengths: tuple[int, ...] = ()) -> Callable[[bytes], Any]:
    """Let a step of a protocol read what the other party tells it."""
    return lambda data: read(_Told(data, rank, lengths), *more)


def _told_agreement(data: bytes) -> Any:
    told = part._document(data, "shop")
    return part._schema(told.schema, "shop"), told.dropped


def _told_numbers(session: Any) -> Any:
    return broadcast_numbers(session, None, 1, "axes", (2, 2), "<f8", within=1.5).tolist()


@cache
def _own_columns() -> tuple[list[ReadColumn], Schema]:
    schema = Schema((Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0, high=120)),))
    return read_columns(pa.table({"age": [30, 40]}), schema), schema


def _told_columns(session: Any) -> None:
    codecs._compare_columns(session, *_own_columns())


def _trusted(path: Path) -> str:
    """Take a certificate that a peer sent, as what is pinned and as what is trusted."""
    fingerprint = fingerprint_of(path)
    _trust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), [path])
    return fingerprint


class _Plain:
    """TLS and the connection below, with hostile bytes already decrypted."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, size: int) -> bytes:
        data = self._data.read(size)
        if not data:
            raise ssl.SSLZeroReturnError
        return data

    def write(self, data: bytes) -> None:
        """Take what this end answers."""

    def is_closing(self) -> bool:
        return False


def _frames(data: bytes) -> Any:
    """Take frames in as a party does, until the connection ends or breaks a rule."""
    stream = TlsStream.__new__(TlsStream)
    plain = _Plain(data)
    stream._tls, stream._writer = plain, plain  # type: ignore[assignment]
    stream._outgoing, stream._buffer, stream.bytes_sent = ssl.MemoryBIO(), bytearray(), 0
    inbox = Inbox(("bank", "shop"))
    connection = Connection(1, stream, inbox, clock=lambda: 0.0)
    while True:
        try:
            stream.receive().send(None)  # nothing waits here, so it ends at once
        except StopIteration as received:
            connection._take(*received.value)
        except ConnectionLost:
            inbox.check()
            raise


def _disconnect(data: bytes) -> Any:
    """Take what a party says when it gives up."""
    return _frames(bytes((Frame.ABORT,)) + len(data).to_bytes(4, "big") + data)


def _hello(data: bytes) -> Hello:
    hello = Hello.from_bytes(data)
    mine = Hello("0.2.0", "trial", "channel", 0, "", {"k": 5, "columns": ["age"]})
    told = difference(mine, hello, "shop")
    assert told is None or (told.isprintable() and len(told) < 600), told
    return hello


def _verdict(data: bytes) -> str:
    reason = read_verdict(data)
    assert reason.isprintable()
    return reason


def _unpack(data: bytes) -> tuple[dict[str, Any], list[Any]]:
    stream = io.BytesIO(data)

    def exactly(size: int) -> bytes:
        found = stream.read(size)
        if len(found) < size:
            raise FrameError("the pipe ended")
        return found

    header, arrays = unpack(exactly)
    return header, [(array.shape, array.tobytes()) for array in arrays]


def _pack(found: tuple[dict[str, Any], list[Any]]) -> bytes:
    header, arrays = found
    return b"".join(pack(header, [np.frombuffer(data, dtype="<u8").reshape(shape) for shape, data in arrays]))


PEERS = (
    Parser("party-config", _config),
    Parser("fingerprint", as_text(read_fingerprint)),
    Parser("peer-certificate", as_file("peer.pem", _trusted)),
    Parser("hello", _hello, Hello.to_bytes, refuses=(ValueError,)),
    Parser("verdict", _verdict, refuses=(ValueError,)),
    Parser("frames", _frames, refuses=_OF_PEER),
    Parser("disconnect", _disconnect, refuses=_OF_PEER),
    Parser("engine-frame", _unpack, _pack, refuses=(FrameError,)),
    Parser(
        "engine-header", lambda data: _unpack(struct.pack("<I", len(data)) + data + bytes(64)), refuses=(FrameError,)
    ),
    Parser("engine-share", _part, _join, refuses=(EngineRefusal,)),
    Parser("engine-words", lambda data: _words(data, (2, 2)).tolist(), refuses=(EngineRefusal,)),
    Parser("shares", lambda data: read_words(data, (2, 3), "shop").tolist(), refuses=_OF_PEER),
    Parser("secret", lambda data: read_secret(data, "shop"), bytes, refuses=_OF_PEER),
    Parser("told-agreement", _told_agreement, refuses=_OF_PEER),
    Parser("told-columns", lambda data: vertical._read(data, "shop"), refuses=_OF_PEER),
    Parser("told-digests", _told(_told_columns), refuses=_OF_PEER),
    Parser("told-keys", _told(align_keys, ["quetzal", "b"], lengths=(40,)), refuses=(*_OF_PEER, TableError)),
    Parser("told-key-counts", _told(intersection._swap_counts, intersection.KeyCounts(2, 0, 0)), refuses=_OF_PEER),
    Parser("told-judgements", _told(publish._swap_judgements, publish._Judgement(True)), refuses=_OF_PEER),
    Parser("told-numbers", _told(_told_numbers), refuses=_OF_PEER),
    Parser("told-cells", lambda data: publish._from_ipc(data, "shop", 2), refuses=_OF_PEER),
    Parser("told-time", _told(publish._time, rank=1), str.encode, refuses=_OF_PEER),
    Parser("told-traffic", _told(publish._traffic), refuses=_OF_PEER),
    Parser("told-hashes", lambda data: folder._differing(data, {"table.csv": "0" * 64})),
)
