"""The bytes of a `DynamicCondenser`: arrays and JSON under a digest, and no code."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.condense.maintained import MaintainerState
from sfumato.documents import from_json, write_json
from sfumato.errors import TableError

__all__ = ["Snapshot", "read_snapshot", "write_snapshot"]

_MAGIC = b"sfumato condenser 1\n"
_DIGEST = 32
_NO_SNAPSHOT = (  # a file in it that is encrypted or packed by another method is a RuntimeError
    *(KeyError, TypeError, ValueError, EOFError, RuntimeError, OSError, OverflowError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """Parameters, names of features, rows that are held for the first groups, and the state of the groups."""

    parameters: dict[str, Any]
    names: tuple[str, ...] | None
    values: NDArray[np.float64]
    levels: NDArray[np.int64]
    state: MaintainerState

    def __repr__(self) -> str:
        return "Snapshot(owner only)"


@dataclass(frozen=True)
class _About:
    """What a snapshot says beside its arrays."""

    parameters: dict[str, Any]
    names: tuple[str, ...] | None
    state: dict[str, Any]


def write_snapshot(snapshot: Snapshot) -> bytes:
    """Write everything; the same state gives the same bytes."""
    state = {field.name: getattr(snapshot.state, field.name) for field in fields(MaintainerState)}
    arrays = {f"state {name}": value for name, value in state.items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in state.items() if not isinstance(value, np.ndarray)}
    about = _About(snapshot.parameters, snapshot.names, numbers)
    body = io.BytesIO()
    text = np.frombuffer(write_json(about, escaped=True).encode(), dtype=np.uint8)
    given: dict[str, Any] = {"about": text, "values": snapshot.values, "levels": snapshot.levels, **arrays}
    np.savez(body, **given)
    return _MAGIC + hashlib.sha256(body.getvalue()).digest() + body.getvalue()


def read_snapshot(data: bytes) -> Snapshot:
    """Read what `write_snapshot` wrote.

    Raises
    ------
    TableError
        For bytes that are not a whole snapshot of this form.
    """
    start = len(_MAGIC) + _DIGEST
    if data[: len(_MAGIC)] != _MAGIC:
        raise TableError("these bytes are no snapshot of a condenser of this version; bring one")
    if hashlib.sha256(data[start:]).digest() != data[len(_MAGIC) : start]:
        raise TableError("the snapshot is damaged or only half copied; bring a whole one")
    try:
        with np.load(io.BytesIO(data[start:]), allow_pickle=False) as held:
            about = from_json(_About, held["about"].tobytes())
            arrays = {name.removeprefix("state "): held[name] for name in held.files if name.startswith("state ")}
            state = MaintainerState(**arrays, **about.state)
            return Snapshot(about.parameters, about.names, held["values"], held["levels"], state)
    except _NO_SNAPSHOT:
        raise TableError("the snapshot was written by another version; use that one") from None
