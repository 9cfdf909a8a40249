"""How much memory a run may take, how large its partitions may be, and the encrypted files in which rows wait.

The figures are peaks of whole processes, measured on tables of 5 to 40 columns (``benchmarks/results/large.md``).
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from sfumato.core.documents import read_bytes
from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.replacing import discard_kept, kept_folder, kept_path, reason, sync, work_folder
from sfumato.engines.measured import MEASURED_ROWS, MEASURED_WHOLE
from sfumato.engines.partitions.first_pass import SAMPLE_ROWS
from sfumato.methods.protocol import Mechanism
from sfumato.options import RunOptions
from sfumato.tables.files import FileFormat
from sfumato.tables.frames import to_arrow
from sfumato.tables.schema import Schema
from sfumato.tables.source import TableSource
from sfumato.version import __version__

__all__ = [
    "LEAST_ROWS",
    "FileSpill",
    "Spill",
    "check_memory",
    "frame_of",
    "least_bytes",
    "needed_bytes",
    "parse_size",
    "partition_rows",
    "run_key",
    "run_mark",
    "size_words",
    "spilling",
    "table_of",
    "usual_memory",
]

LEAST_ROWS = 50_000
"""Rows of a partition, about, below which none is cut."""

_BASE = 470 << 20  # bytes that interpreter, libraries and compiled code take
_TEXT = 64 << 20  # more, where CSV is read
_WORK = 120  # bytes that a value of a partition takes while it is sanitized
_LEAST_WORK = 147  # the same for the smallest partition, with what was learnt of the whole table
_AT_ONCE = {"chain": 45}  # bytes that a value takes if all rows are sanitized at once; more where rows become a matrix
_AS_MATRIX = 90
_REPORT = 150 << 20  # bytes that a report takes, beside those of the values that it measures
_MEASURED = 400  # bytes that a value takes while it is measured
_FEWEST_COLUMNS = 4
_USUAL = 3 << 29
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"\s*(\d{1,6}(?:\.\d{1,3})?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_HEAD = 1 << 20
_UNZIPPED = 5  # times the size of a compressed file


def parse_size(text: str | int) -> int:
    """Bytes of a size such as 512M or 2G.

    Examples
    --------
    >>> parse_size("512M") == 512 * 2**20, parse_size("1.5 GiB") == 3 * 2**29
    (True, True)
    """
    if isinstance(text, int) and not isinstance(text, bool) and text > 0:
        return text
    found = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if found is None or not float(found[1]):
        raise OptionError("the memory is a size such as 512M or 2G; write it so")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def size_words(size: int) -> str:
    """A size as a person writes it.

    Examples
    --------
    >>> size_words(3 * 2**29), size_words(300 << 20)
    ('1.5 GB', '300 MB')
    """
    return f"{size / (1 << 30):.1f} GB" if size >= 1 << 30 else f"{size / (1 << 20):.0f} MB"


def usual_memory() -> int:
    """1.5 GB, or half of the memory that the machine, or what this process is confined to, has where that is less."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 8 << 30
    for path in _LIMITS:
        try:
            text = path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        whole = min(whole, int(text)) if text.isdigit() and int(text) else whole
    return min(_USUAL, whole // 2)


def partition_rows(memory: int, columns: int) -> int:
    """Most rows of a partition for the given memory; no half of it has fewer than 50,000."""
    return max(2 * LEAST_ROWS, (memory - _BASE) // (_WORK * max(columns, _FEWEST_COLUMNS)))


def needed_bytes(source: TableSource, method: str | None, *, report: bool = False) -> int:
    """Bytes that a run takes, about, if all rows are in memory; with its ``report`` if there is one."""
    columns = max(1, len(source.schema.names))
    rows = _rows_about(source, columns)
    work = _BASE + rows * columns * _AT_ONCE.get(method or "chain", _AS_MATRIX)
    measured = rows if rows <= MEASURED_WHOLE else MEASURED_ROWS
    return max(work, _report_bytes(measured, columns)) if report else work


def least_bytes(source: TableSource, *, report: bool) -> int:
    """Bytes that a run in partitions takes at least: the smallest partition, or the report of a sample."""
    columns = max(_FEWEST_COLUMNS, len(source.schema.names))
    text = _TEXT if source.form.format is FileFormat.CSV else 0
    rows = min(SAMPLE_ROWS, _rows_about(source, columns))
    work = _BASE + text + min(2 * LEAST_ROWS, rows) * columns * _LEAST_WORK
    return max(work, _report_bytes(rows, columns) + text) if report else work


def _report_bytes(rows: int, columns: int) -> int:
    return _BASE + _REPORT + rows * columns * _MEASURED


def check_memory(memory: int, least: int, less: int) -> None:
    """Refuse less memory than a run takes at least; ``less`` is what it takes at least without a report.

    Raises
    ------
    OptionError
        Which names both.
    """
    if memory >= least:
        return
    programs, rest = size_words(_BASE), size_words(least - _BASE)
    instead = "" if less >= least else f", or {_rounded(less)} with --no-report"
    raise OptionError(
        f"{size_words(memory)} of memory are too little for this run: the programs take about {programs} and the least "
        f"work on this table {rest}; grant at least --memory {_rounded(least)}{instead}"
    )


def _rounded(size: int) -> str:
    """A size as --memory takes it, rounded up to 10 MB."""
    step = 10 << 20
    return f"{-(-size // step) * 10}M"


def _rows_about(source: TableSource, columns: int) -> int:
    if source.rows is not None:
        return source.rows
    size = source.path.stat().st_size
    if source.form.format is not FileFormat.CSV:
        return size // (8 * columns)
    if source.path.name.lower().endswith(".gz"):
        return _UNZIPPED * size // (6 * columns)
    with source.path.open("rb") as file:
        head = file.read(_HEAD)
    return size * max(1, head.count(b"\n")) // max(1, len(head))


_OF_THIS_MACHINE = ("memory", "resume_key", "engine", "master", "batch_rows")  # which change no released row
_HELD = 1 << 25  # bytes that wait in memory before they are written
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


class Spill:
    """Rows by leaf as they come, and what has become of cells; all of it in memory."""

    def __init__(self) -> None:
        self._held: dict[int, list[pa.Table]] = {}
        self._bytes = 0
        self._kept: dict[str, list[bytes]] = {}

    def add(self, leaf: int, rows: pa.Table) -> None:
        """Add rows to a leaf."""
        self._held.setdefault(leaf, []).append(rows)
        self._bytes += rows.nbytes
        if self._bytes > _HELD:
            self.flush()

    def flush(self) -> None:
        """Put away what waits to be."""
        for leaf, tables in sorted(self._held.items()):
            self._append(f"leaf-{leaf}", frame_of(pa.concat_tables(tables).combine_chunks()))
        self._held, self._bytes = {}, 0

    def rows(self, leaves: Iterable[int]) -> pa.Table:
        """All rows of some leaves, those of a leaf in the order in which they came."""
        tables = [table_of(frame) for leaf in leaves for frame in self.frames(f"leaf-{leaf}")]
        return pa.concat_tables(tables)

    def frames(self, name: str) -> Iterator[bytes]:
        """All frames of a name, in order."""
        yield from self._kept.get(name, ())

    def frame(self, name: str, number: int) -> bytes:
        """One frame of a name."""
        return self._kept[name][number]

    def has(self, name: str) -> bool:
        """Tell whether anything is kept under a name."""
        return name in self._kept

    def put(self, name: str, frames: Sequence[bytes]) -> None:
        """Keep frames under a name, all of them or none."""
        self._kept[name] = list(frames)

    def drop(self, name: str) -> None:
        """Forget what is kept under a name."""
        self._kept.pop(name, None)

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()

    def _append(self, name: str, frame: bytes) -> None:
        self._kept.setdefault(name, []).append(frame)


class FileSpill(Spill):
    """The same in the files of a folder, encrypted and authenticated frame by frame.

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

    def put(self, name: str, frames: Sequence[bytes]) -> None:
        """Keep frames under a name, all of them or none."""
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


@contextmanager
def spilling(folder: Path, resume_key: str | Path | None) -> Iterator[tuple[FileSpill, bytes]]:
    """Hidden folder beside the output for rows that wait, and a secret of the run that a resumed one has again.

    The folder is removed at the end, unless a stopped run is to be resumed; then the key stays, too.
    """
    created = resume_key is not None and not os.path.lexists(resume_key)
    for_this_run = created or (resume_key is not None and kept_path(folder).exists())
    key = run_key(resume_key, folder)
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    if resume_key is None:
        discard_kept(folder)
    with work_folder(folder.absolute()) if resume_key is None else kept_folder(folder) as place:
        yield FileSpill(place, key), hashlib.blake2b(b"chance", key=key, digest_size=32).digest()
    if resume_key is not None and for_this_run:  # and not a key that was there for something else
        Path(resume_key).unlink(missing_ok=True)


def run_mark(source: TableSource, mechanism: Mechanism, options: RunOptions, *settings: object) -> str:
    """Digest of the options of a run and of what it reads: rows that another run put aside are of no use to it."""
    found = source.path.stat()
    parts = [__version__, str(mechanism), *map(str, settings), str(found.st_size), str(found.st_mtime_ns)]
    parts += [source.form.delimiter, *map(":".join, sorted(source.form.numerals.marks.items()))]
    for name, value in sorted(vars(options).items()):
        if name in _OF_THIS_MACHINE:
            continue
        if isinstance(value, Schema):
            value = value.to_toml()
        elif isinstance(value, Path):
            value = value.read_bytes() if value.is_file() else value
        elif name == "holdout" and value is not None and not isinstance(value, float):
            value = hashlib.blake2b(frame_of(to_arrow(value)[0])).hexdigest()
        parts.append(f"{name}={value!r}")
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=32).hexdigest()


def run_key(path: str | Path | None, folder: Path) -> bytes:
    """Key of a run: fresh, or that of the file of one that can be resumed, which is made if it is not there."""
    if path is None:
        return secrets.token_bytes(32)
    place = Path(path)
    if folder.absolute() in place.absolute().parents or folder.resolve() in place.resolve().parents:
        raise OptionError("the resume key is in the output folder, part of which is released; keep it elsewhere")
    if os.path.lexists(place):
        text = read_bytes(place, "resume key", "name the file that the stopped run wrote", most=200, linked=False)
        if place.stat().st_mode & 0o077:
            raise OptionError("other users can read the resume key; restrict it with chmod 600")
        try:
            key = bytes.fromhex(text.decode("ascii").strip())
        except ValueError:
            key = b""
        if len(key) != 32:
            raise OptionError("the resume key is not valid; name the file that the stopped run wrote, or a new one")
        return key
    key = secrets.token_bytes(32)
    try:
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise OptionError(f"the resume key cannot be written ({reason(error)}); choose another place") from None
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(key.hex() + "\n")
        file.flush()
        os.fsync(handle)
    return key
