"""Rows that a stream keeps to be measured by: a sample of those taken in, and some who are never taken in.

Both lie in the state under the owner's key, are bounded, and change in the transaction of the batch that they came in.
Who is chosen follows from a keyed digest of batch and row, so that a batch that is begun again chooses the same.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.stream.entries import LEFT, UNKNOWN, Batch, entry_of_left, families_left
from sfumato.stream.pending import PendingRecord, Vault
from sfumato.stream.settings import StateEntry, StateError, StreamSettings
from sfumato.stream.state import State

__all__ = ["KeptRow", "KeptRows", "KeptSample", "entries_of_first", "first_outside"]

SAMPLE, OUTSIDE, FORGOTTEN = "kept-sample", "kept-outside", "kept-forgotten"
"""Kinds of entries: rows taken in, rows not taken in, and how many of these were forgotten."""

_FORM = struct.Struct("<qqqqI")
_ROOM = 1 << 64

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class KeptRow:
    """A row in coordinates, where it came from, after which epoch it came, and the family that it joined."""

    batch: str
    row: int
    level: int
    after: int
    family: int
    values: Matrix

    def to_bytes(self) -> bytes:
        """Write the row, to be encrypted."""
        name = self.batch.encode()
        head = _FORM.pack(self.row, self.level, self.after, self.family, len(name))
        return head + name + np.ascontiguousarray(self.values, dtype="<f8").tobytes()

    @classmethod
    def from_bytes(cls, plain: bytes, d: int) -> KeptRow:
        """Read a row back; raises StateError if it does not have the given number of coordinates."""
        try:
            row, level, after, family, length = _FORM.unpack_from(plain)
            name = plain[_FORM.size : _FORM.size + length].decode()
            values = np.frombuffer(plain[_FORM.size + length :], dtype="<f8").astype(np.float64)
        except (struct.error, ValueError):
            values, name = np.empty(0), ""
        if not len(values) == d > 0:
            raise StateError(
                f"a row kept for measuring is not of {d} coordinates; restore a complete copy of the state"
            )
        return cls(name, row, level, after, family, values)


@dataclass(frozen=True, eq=False, repr=False)
class AdmittedRows:
    """Who of a batch is taken in: those who were outside and fell out, then the rows of the batch less those set aside.

    ``aside`` are new outside, ``returned`` those who fell out, each with the key of its entry.
    """

    batch: str
    rows: Counts
    values: Matrix
    levels: Counts
    aside: tuple[tuple[str, KeptRow], ...] = ()
    returned: tuple[tuple[str, KeptRow], ...] = ()

    def who(self, place: int) -> PendingRecord:
        """Batch and row of the record at this place, should it have to wait."""
        if place < len(self.returned):
            back = self.returned[place][1]
            return PendingRecord(-1, back.batch, back.row)
        return PendingRecord(-1, self.batch, int(self.rows[place - len(self.returned)]))


@dataclass(frozen=True, eq=False, repr=False)
class KeptSample:
    """Rows kept, decrypted; for the owner alone.

    ``after`` is the epoch after which each row of the sample came, and ``behind`` whether published rows are known to
    rest on it: its family has left since it came. ``outside`` were never taken in.
    """

    values: Matrix
    levels: Counts
    after: Counts
    behind: NDArray[np.bool_]
    outside: Matrix

    def between(self, first: int, last: int) -> Matrix:
        """Rows that came after one epoch and before another."""
        return np.asarray(self.values[(self.after >= first) & (self.after < last)])


class KeptRows:
    """The rows kept in a state, known by their keys alone until they are needed.

    Parameters
    ----------
    vault : Vault or None
        Without it nothing can be added, read or let back into the stream.
    """

    def __init__(self, state: State, settings: StreamSettings, vault: Vault | None) -> None:
        self._state, self.vault, self._d = state, vault, settings.d
        self._most, self._share = settings.measure_rows, settings.measure_share
        self.forgotten = bool(state.keys(FORGOTTEN))
        self._ranks = {kind: sorted(state.keys(kind)) for kind in (SAMPLE, OUTSIDE)}

    @property
    def active(self) -> bool:
        """Whether rows are kept from now on."""
        return self._most > 0 and not self.forgotten

    @property
    def asked(self) -> bool:
        """Whether rows are kept, or were until they were forgotten."""
        return self._most > 0

    @property
    def rows(self) -> int:
        """Rows of the sample."""
        return len(self._ranks[SAMPLE])

    @property
    def outside(self) -> int:
        """Rows that came and are not taken in, those forgotten included."""
        return int(self._state.body(FORGOTTEN)) if self.forgotten else len(self._ranks[OUTSIDE])

    def admit(self, batch: str, rows: Counts, values: Matrix, levels: Counts, after: int) -> AdmittedRows:
        """Choose who of a batch stays outside, and who comes back in for them; nothing is changed yet."""
        if not self.active or self.vault is None:
            return AdmittedRows(batch, rows, values, levels)
        chosen = {
            rank: place
            for place, row in enumerate(rows.tolist())
            if _is_outside(rank := _ranks(self.vault, batch, row)[0], self._share)
        }
        before = self._ranks[OUTSIDE]
        stay = set(heapq.nsmallest(self._most, [*before, *chosen]))
        aside = {rank: place for rank, place in chosen.items() if rank in stay}
        returned = tuple((rank, self._read(OUTSIDE, rank)) for rank in before if rank not in stay)
        inside = np.setdiff1d(np.arange(len(rows)), np.array(list(aside.values()), dtype=np.int64))
        back = [row for _, row in returned]
        return AdmittedRows(
            batch,
            rows[inside],
            np.concatenate([np.array([row.values for row in back]).reshape(len(back), self._d), values[inside]]),
            np.concatenate([np.array([row.level for row in back], dtype=np.int64), levels[inside]]),
            tuple(
                (rank, KeptRow(batch, int(rows[place]), int(levels[place]), after, UNKNOWN, values[place]))
                for rank, place in aside.items()
            ),
            returned,
        )

    def update(
        self, admitted: AdmittedRows, families: Counts, after: int
    ) -> tuple[list[StateEntry], list[tuple[str, str]]]:
        """Entries to write and to drop once a batch was taken in; ``families`` are those that its records joined."""
        if not self.active or self.vault is None:
            return [], []
        origins = [admitted.who(place) for place in range(len(admitted.levels))]
        ranks = {_ranks(self.vault, who.batch, who.row)[1]: place for place, who in enumerate(origins)}
        stay = set(heapq.nsmallest(self._most, [*self._ranks[SAMPLE], *ranks]))
        put = [_entry(self.vault, OUTSIDE, rank, row) for rank, row in admitted.aside]
        for rank, place in ranks.items():
            if rank in stay:
                row = KeptRow(
                    origins[place].batch, origins[place].row, int(admitted.levels[place]), after, int(families[place]),
                    admitted.values[place],
                )  # fmt: skip
                put.append(_entry(self.vault, SAMPLE, rank, row))
        drop = [(SAMPLE, rank) for rank in self._ranks[SAMPLE] if rank not in stay]
        return put, [*drop, *((OUTSIDE, rank) for rank, _ in admitted.returned)]

    def committed(self) -> None:
        """Take note of what is on disk now."""
        self.forgotten = bool(self._state.keys(FORGOTTEN))
        self._ranks = {kind: sorted(self._state.keys(kind)) for kind in (SAMPLE, OUTSIDE)}

    def forget(self) -> tuple[list[StateEntry], list[tuple[str, str]]]:
        """Entries to write and to drop so that no row is left."""
        gone = [(kind, key) for kind in (SAMPLE, OUTSIDE, LEFT) for key in self._state.keys(kind)]
        return [StateEntry(FORGOTTEN, "", str(self.outside).encode())], gone

    def left(self, families: Iterable[int], staying: Iterable[int], epoch: int) -> list[StateEntry]:
        """StateEntry that tells when each family left last: these now, those that stay when they did before."""
        if not self.active:
            return []
        before = self._left()
        entries = {str(family): before[family] for family in staying if family in before}
        entries |= {str(family): epoch for family in families}
        return [entry_of_left(entries)]

    def read(self, current: Counts) -> KeptSample | None:
        """All rows, decrypted, if there is a key and rows are kept; ``current`` are the families of all groups."""
        if not self.active or self.vault is None:
            return None
        rows = [self._read(SAMPLE, rank) for rank in self._ranks[SAMPLE]]
        outside = [self._read(OUTSIDE, rank) for rank in self._ranks[OUTSIDE]]
        left, present = self._left(), set(current.tolist())

        def behind(row: KeptRow) -> bool:
            here = row.family in present  # a family that is not here has left, and others stem from it
            return row.family != UNKNOWN and (not here or left.get(row.family, 0) > row.after)

        return KeptSample(
            np.array([row.values for row in rows]).reshape(len(rows), self._d),
            np.array([row.level for row in rows], dtype=np.int64),
            np.array([row.after for row in rows], dtype=np.int64),
            np.array([behind(row) for row in rows], dtype=np.bool_),
            np.array([row.values for row in outside]).reshape(len(outside), self._d),
        )

    def _left(self) -> dict[int, int]:
        return families_left(self._state.body(LEFT)) if self._state.keys(LEFT) else {}

    def _read(self, kind: str, rank: str) -> KeptRow:
        assert self.vault is not None  # asked before
        return KeptRow.from_bytes(self.vault.unlock(f"{kind} {rank}", self._state.body(kind, rank)), self._d)


def first_outside(vault: Vault, first: Sequence[Batch], most: int, share: float) -> NDArray[np.bool_]:
    """Mark which of the first records are not taken in."""
    ranks = [_ranks(vault, batch, row)[0] for batch, row in _places(first)]
    stay = set(heapq.nsmallest(most, [rank for rank in ranks if _is_outside(rank, share)]))
    return np.array([rank in stay for rank in ranks], dtype=np.bool_)


def entries_of_first(
    vault: Vault,
    first: Sequence[Batch],
    most: int,
    inside: tuple[Counts, Matrix, Counts, Counts],
    outside: tuple[Counts, Matrix, Counts],
) -> list[StateEntry]:
    """Entries of the rows kept of the first records.

    Parameters
    ----------
    first : sequence of (str, pyarrow.Table)
        All first records.
    inside : tuple of ndarray
        Of those taken in their places among all, their values, levels and families.
    outside : tuple of ndarray
        Of the others their places, values and levels.
    """
    places = list(_places(first))
    made = [
        (_ranks(vault, *places[place])[1], _first_row(places[place], level, family, row))
        for place, row, level, family in zip(inside[0].tolist(), *inside[1:], strict=True)
    ]
    entries = [_entry(vault, SAMPLE, *each) for each in heapq.nsmallest(most, made, key=lambda each: each[0])]
    for place, row, level in zip(outside[0].tolist(), *outside[1:], strict=True):
        row_outside = _first_row(places[place], level, UNKNOWN, row)
        entries.append(_entry(vault, OUTSIDE, _ranks(vault, *places[place])[0], row_outside))
    return entries


def _first_row(place: tuple[str, int], level: int, family: int, values: Matrix) -> KeptRow:
    return KeptRow(place[0], place[1], int(level), 0, int(family), values)


def _places(first: Iterable[Batch]) -> Iterator[tuple[str, int]]:
    return ((batch, row) for batch, table in first for row in range(table.num_rows))


def _ranks(vault: Vault, batch: str, row: int) -> tuple[str, str]:
    """Two numbers by chance in hexadecimal digits: by the first people stay outside, by the second they are sampled."""
    digest = vault.digest(f"{row} {batch}").hex()
    return digest[:32], digest[32:]


def _is_outside(rank: str, share: float) -> bool:
    return int(rank[:16], 16) < share * _ROOM


def _entry(vault: Vault, kind: str, rank: str, row: KeptRow) -> StateEntry:
    return StateEntry(kind, rank, vault.lock(f"{kind} {rank}", row.to_bytes()))
