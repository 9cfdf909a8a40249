"""Where cells wait: in memory, or in files that only this run can read.

Files are encrypted with ChaCha20-Poly1305 under a key that the run holds in memory alone (or that its owner keeps in a
file to be able to resume): raw rows never stand on disk in the clear, and what a killed run leaves is noise.
"""

from __future__ import annotations

import hashlib
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from sfumato.core.errors import SfumatoError
from sfumato.core.replacing import sync

__all__ = ["FileSpill", "MemorySpill", "Spill", "frame_of", "table_of"]

_HELD = 1 << 26  # bytes that wait in memory before they are written
_NONCE, _LENGTH = 12, struct.Struct("<Q")


def frame_of(table: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_of(frame: bytes) -> pa.Table:
    """A table from bytes that `frame_of` gave."""
    return pa.ipc.open_stream(pa.py_buffer(frame)).read_all()


class Spill(ABC):
    """Rows by leaf as they come, and what has become of cells."""

    def __init__(self) -> None:
        self._held: dict[int, list[pa.Table]] = {}
        self._bytes = 0

    def add(self, leaf: int, rows: pa.Table) -> None:
        """Add rows to a leaf."""
        self._held.setdefault(leaf, []).append(rows)
        self._bytes += rows.nbytes
        if self._bytes > _HELD:
            self.flush()

    def flush(self) -> None:
        """Write what waits in memory."""
        for leaf, tables in sorted(self._held.items()):
            self._append(f"leaf-{leaf}", frame_of(pa.concat_tables(tables).combine_chunks()))
        self._held, self._bytes = {}, 0

    def rows(self, leaves: Iterable[int]) -> pa.Table:
        """All rows of some leaves, those of a leaf in the order in which they came."""
        tables = [table_of(frame) for leaf in leaves for frame in self.frames(f"leaf-{leaf}")]
        return pa.concat_tables(tables)

    def put(self, name: str, frames: Sequence[bytes]) -> None:
        """Keep frames under a name, all of them or none."""
        self._put(name, frames)

    @abstractmethod
    def frames(self, name: str) -> Iterator[bytes]:
        """All frames of a name, in order."""

    @abstractmethod
    def frame(self, name: str, number: int) -> bytes:
        """One frame of a name."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Tell whether anything is kept under a name."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Forget what is kept under a name."""

    @abstractmethod
    def clear(self) -> None:
        """Forget everything."""

    @abstractmethod
    def _append(self, name: str, frame: bytes) -> None: ...

    @abstractmethod
    def _put(self, name: str, frames: Sequence[bytes]) -> None: ...


class MemorySpill(Spill):
    """Keeps everything in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, list[bytes]] = {}

    def frames(self, name: str) -> Iterator[bytes]:
        """All frames of a name, in order."""
        yield from self._kept.get(name, ())

    def frame(self, name: str, number: int) -> bytes:
        """One frame of a name."""
        return self._kept[name][number]

    def has(self, name: str) -> bool:
        """Tell whether anything is kept under a name."""
        return name in self._kept

    def drop(self, name: str) -> None:
        """Forget what is kept under a name."""
        self._kept.pop(name, None)

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()

    def _append(self, name: str, frame: bytes) -> None:
        self._kept.setdefault(name, []).append(frame)

    def _put(self, name: str, frames: Sequence[bytes]) -> None:
        self._kept[name] = list(frames)


class FileSpill(Spill):
    """Keeps everything in the files of a folder, encrypted and authenticated frame by frame.

    A frame is bound to its name and its place there, so that files cannot be exchanged for one another.
    """

    def __init__(self, folder: Path, key: bytes) -> None:
        super().__init__()
        self.folder = folder
        self._cipher = ChaCha20Poly1305(hashlib.blake2b(b"spill", key=key, digest_size=32).digest())
        self._counts: dict[str, int] = {}
        self._places: dict[str, list[tuple[int, int]]] = {}

    def frames(self, name: str) -> Iterator[bytes]:
        """All frames of a name, in order."""
        for number in range(len(self._found(name))):
            yield self.frame(name, number)

    def frame(self, name: str, number: int) -> bytes:
        """One frame of a name."""
        places = self._found(name)
        if number >= len(places):
            raise SfumatoError("a part of the rows that were put aside is missing; begin the run again")
        offset, size = places[number]
        with (self.folder / name).open("rb") as file:
            file.seek(offset)
            sealed = file.read(size)
        try:
            return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], self._bound(name, number))
        except InvalidTag:
            raise SfumatoError("rows that were put aside were altered on disk; begin the run again") from None

    def has(self, name: str) -> bool:
        """Tell whether anything is kept under a name."""
        return (self.folder / name).exists()

    def drop(self, name: str) -> None:
        """Forget what is kept under a name."""
        (self.folder / name).unlink(missing_ok=True)
        self._counts.pop(name, None)
        self._places.pop(name, None)

    def clear(self) -> None:
        """Forget everything."""
        for path in self.folder.iterdir():
            self.drop(path.name)

    def _append(self, name: str, frame: bytes) -> None:
        number = self._counts.get(name, 0)
        self._counts[name] = number + 1
        self._places.pop(name, None)
        with (self.folder / name).open("ab") as file:
            file.write(self._sealed(name, number, frame))

    def _put(self, name: str, frames: Sequence[bytes]) -> None:
        made = self.folder / f"{name}.part"
        with made.open("wb") as file:
            for number, frame in enumerate(frames):
                file.write(self._sealed(name, number, frame))
        sync(made)
        made.replace(self.folder / name)
        self._places.pop(name, None)

    def _sealed(self, name: str, number: int, frame: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        sealed = nonce + self._cipher.encrypt(nonce, frame, self._bound(name, number))
        return _LENGTH.pack(len(sealed)) + sealed

    def _found(self, name: str) -> list[tuple[int, int]]:
        """Where the frames of a file begin, and how long they are."""
        if name not in self._places:
            path, places, offset = self.folder / name, [], 0
            size = path.stat().st_size if path.exists() else 0
            if size:
                with path.open("rb") as file:
                    while offset < size:
                        file.seek(offset)
                        (length,) = _LENGTH.unpack(file.read(_LENGTH.size).ljust(_LENGTH.size, b"\0"))
                        length = min(length, size)  # an altered file says anything
                        places.append((offset + _LENGTH.size, length))
                        offset += _LENGTH.size + length
            self._places[name] = places
        return self._places[name]

    @staticmethod
    def _bound(name: str, number: int) -> bytes:
        return f"{name} {number}".encode()
