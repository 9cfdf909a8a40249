"""The waiting room of a stream: who waits in the pool, who waits for a replay of their batch, and their entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.condense.maintainer import Maintainer
from sfumato.documents import Unparsable, from_json, write_json
from sfumato.errors import OptionError
from sfumato.stream.book import Book
from sfumato.stream.format import Entry, StateError, whole_number
from sfumato.stream.pool import Vault, Waiting, from_hex, who_is_left
from sfumato.stream.settings import Progress, Settings, document_of

__all__ = ["WaitingRoom", "open_vault"]

_PENDING = "pending"

Encode = Callable[[pa.Table], tuple[NDArray[np.float64], NDArray[np.int64]]]


class WaitingRoom:
    """Records that no group is large enough for yet.

    In memory mode the state holds batch and row of each, and a new session has nobody at hand until their batches are
    given again. In encrypted mode it holds the record itself under the key.
    """

    def __init__(self, book: Book, settings: Settings, vault: Vault | None) -> None:
        self._d, self._vault = settings.d, vault
        self.next_place = document_of(Progress, book.body("progress")).next_place
        self._here: list[Waiting] = []
        self._values, self._levels = np.empty((0, self._d)), np.empty(0, dtype=np.int64)
        self._away: dict[str, list[Waiting]] = {}
        self._recalled: list[tuple[Waiting, NDArray[np.float64], int]] = []
        for place, key in sorted((whole_number(key), key) for key in book.keys(_PENDING)):
            body = book.body(_PENDING, key)
            if settings.pending == "memory":
                batch, row = _batch_and_row(body)
                self._away.setdefault(batch, []).append(Waiting(place, batch, row))
            elif vault is None:
                self._away.setdefault("", []).append(Waiting(place, "", 0))
            else:
                self._recalled.append((Waiting(place, "", 0), *vault.open(place, body, self._d)))
        self._encrypted = settings.pending == "encrypted"

    @property
    def is_open(self) -> bool:
        """Whether there is a key."""
        return self._vault is not None

    @property
    def away(self) -> int:
        """Records that are not at hand."""
        return sum(map(len, self._away.values()))

    @property
    def awaited(self) -> frozenset[str]:
        """Batches that must be given again before their waiting records are at hand."""
        return frozenset(batch for batch in self._away if batch)

    @property
    def recalled(self) -> int:
        """Records that are at hand again and not yet in the pool."""
        return len(self._recalled)

    @property
    def count(self) -> int:
        """All that wait."""
        return len(self._here) + self.recalled + self.away

    def pool(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Give all that are at hand in order of arrival; they are in the pool from now on."""
        held = [*zip(self._here, self._values, self._levels.tolist(), strict=True), *self._recalled]
        held.sort(key=lambda each: each[0].place)
        self._here, self._recalled = [waiting for waiting, _, _ in held], []
        self._values = np.array([values for _, values, _ in held], dtype=np.float64).reshape(len(held), self._d)
        self._levels = np.array([level for _, _, level in held], dtype=np.int64)
        return self._values, self._levels

    def recall(self, batch: str, table: pa.Table, encode: Encode) -> None:
        """Take the waiting records of a batch from its rows."""
        waiting = self._away.pop(batch, [])
        if not waiting:
            return
        values, levels = encode(table.take(pa.array([each.row for each in waiting])))
        self._recalled.extend(zip(waiting, values, levels.tolist(), strict=True))

    def arrivals(self) -> tuple[list[Waiting], NDArray[np.float64], NDArray[np.int64]]:
        """Give those that were recalled, in order, to come in as new arrivals do."""
        held = sorted(self._recalled, key=lambda each: each[0].place)
        self._recalled = []
        values = np.array([values for _, values, _ in held], dtype=np.float64).reshape(len(held), self._d)
        return [waiting for waiting, _, _ in held], values, np.array([level for _, _, level in held], dtype=np.int64)

    def settle(
        self,
        maintainer: Maintainer,
        came: Callable[[int], Waiting],
        values: NDArray[np.float64],
        levels: NDArray[np.int64],
        places: Iterable[int] = (),
    ) -> tuple[list[Entry], list[tuple[str, str]]]:
        """Find out who waits after some have come, and give the entries to write and to drop.

        ``came`` tells who the i-th of them is, ``places`` where those had waited who come back. Those of them who wait
        get new places, at the end of the order.
        """
        known = len(self._here)
        gone = {*places, *(waiting.place for waiting in self._here)}
        all_values, all_levels = np.concatenate([self._values, values]), np.concatenate([self._levels, levels])
        left = np.empty(0, dtype=np.int64)
        if maintainer.pending:
            state = maintainer.state()
            left = who_is_left(all_values, all_levels, state.pending_values, state.pending_levels)
        put, here = [], []
        for place in left.tolist():
            waiting = self._here[place] if place < known else came(place - known)
            if place < known:
                gone.remove(waiting.place)
            else:
                waiting = Waiting(self.next_place, waiting.batch, waiting.row)
                put.append(
                    Entry(_PENDING, str(waiting.place), self._body(waiting, all_values[place], all_levels[place]))
                )
                self.next_place += 1
            here.append(waiting)
        drop = [(_PENDING, str(place)) for place in sorted(gone)]
        self._here, self._values, self._levels = here, all_values[left], all_levels[left]
        return put, drop

    def _body(self, waiting: Waiting, values: NDArray[np.float64], level: int) -> bytes:
        if not self._encrypted:
            return write_json([waiting.batch, waiting.row], escaped=True).encode()
        assert self._vault is not None  # ingest asks for the key first
        return self._vault.close_over(waiting.place, values, int(level))


def _batch_and_row(body: bytes) -> tuple[str, int]:
    try:
        batch, row = from_json(tuple[str, int], body)
        if 0 <= row < 2**63:
            return batch, row
    except Unparsable:
        pass
    raise StateError("a waiting record in the state tells no batch and row; bring back a whole copy of it")


def open_vault(settings: Settings, pending_key: str | Path | None) -> Vault | None:
    """Read the key of waiting records, if one is given; refuse one that is of no use or not the one.

    Raises
    ------
    OptionError, StateError
    """
    if pending_key is None:
        return None
    if settings.pending != "encrypted" or settings.pending_key is None:
        raise OptionError("waiting records of this state are kept in memory only; leave out --pending-key")
    vault = Vault.from_file(pending_key, settings.state_id)
    vault.unlock("-1", from_hex(settings.pending_key))
    return vault
