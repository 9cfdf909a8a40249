"""The groups of a stream as entries of its state: one entry a group, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.condense.maintainer import GroupRows, MaintainerState
from sfumato.stream.book import Book
from sfumato.stream.format import Entry, StateError
from sfumato.stream.settings import Progress, Settings

__all__ = ["GROUP", "entries_of_rows", "rows_of_entries", "state_on_disk"]

GROUP = "group"

_FIELDS = tuple(field.name for field in fields(GroupRows))
_WHOLE = ("ids", "count", "level_max", "family", "fresh", "fresh_level_max")


def entries_of_rows(rows: GroupRows) -> list[Entry]:
    """Write each group as one entry under its id: 8 bytes a number, little end first, in the order of the fields."""
    if not len(rows.ids):
        return []
    bodies = np.concatenate([_bytes_of(getattr(rows, name), name) for name in _FIELDS], axis=1)
    return [
        Entry(GROUP, str(identity), body.tobytes()) for identity, body in zip(rows.ids.tolist(), bodies, strict=True)
    ]


def rows_of_entries(held: Sequence[bytes], d: int) -> GroupRows:
    """Read groups of so many coordinates back, in order of id.

    Raises
    ------
    StateError
        Where an entry is not as long as a group of d coordinates.
    """
    lengths = [_length(name, d) for name in _FIELDS]
    if any(len(body) != 8 * sum(lengths) for body in held):
        raise StateError(f"the groups of the state are not of {d} coordinates; bring back a whole copy of it")
    raw = np.frombuffer(b"".join(held), dtype=np.uint8).reshape(len(held), 8 * sum(lengths))
    found: dict[str, NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_]] = {}
    start = 0
    for name, length in zip(_FIELDS, lengths, strict=True):
        part = np.ascontiguousarray(raw[:, start : start + 8 * length])
        start += 8 * length
        if name == "pseudo":
            found[name] = part.view("<i8")[:, 0].astype(np.bool_)
        elif name in _WHOLE:
            found[name] = part.view("<i8")[:, 0].astype(np.int64)
        else:
            numbers = part.view("<f8").astype(np.float64)
            found[name] = numbers[:, 0] if name == "level_sum" else numbers
    order = np.argsort(found["ids"], kind="stable")
    return GroupRows(**{name: array[order] for name, array in found.items()})  # type: ignore[arg-type]


def state_on_disk(
    book: Book, settings: Settings, progress: Progress, values: NDArray[np.float64], levels: NDArray[np.int64]
) -> MaintainerState:
    """Give the state of the groups on disk, with these records waiting."""
    rows = rows_of_entries(list(book.read_large(GROUP).values()), settings.d)
    given: dict[str, Any] = {name: getattr(rows, name) for name in _FIELDS}
    return MaintainerState(
        **given,
        d=settings.d,
        k=settings.k,
        split=settings.split,
        pending_limit=settings.pending_limit,
        track=True,
        next_id=progress.next_id,
        splits=progress.splits,
        pending_values=values,
        pending_levels=levels,
    )


def _bytes_of(array: NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_], name: str) -> NDArray[np.uint8]:
    kind = "<i8" if name in _WHOLE or name == "pseudo" else "<f8"
    return np.ascontiguousarray(array.astype(kind).reshape(len(array), -1)).view(np.uint8)


def _length(name: str, d: int) -> int:
    return {"mean": d, "triangle": d * (d + 1) // 2}.get(name, 1)
