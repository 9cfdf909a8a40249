"""Records that wait for a group large enough: who they are, and what the state keeps of them.

That is a place in a batch, or the record under the user's key.
"""

from __future__ import annotations

import dataclasses
import hmac
import os
import secrets
import stat
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.documents import MOST_BYTES, Unparsable, from_json, open_regular, write_json
from sfumato.core.errors import OptionError
from sfumato.methods.condense.maintainer import Maintainer
from sfumato.stream.rare import StreamTails
from sfumato.stream.settings import Progress, StateEntry, StateError, StreamSettings, document_of, whole_number
from sfumato.stream.state import State

__all__ = ["PendingRecord", "PendingRecords", "Purpose", "Vault", "open_vault"]

_KEY_BYTES = 32
_NONCE = 12

_PENDING = "pending"

Encode = Callable[[pa.Table], tuple[NDArray[np.float64], NDArray[np.int64]]]


@dataclass(frozen=True)
class PendingRecord:
    """A record that waits: its place in the order of arrival, and the row of the batch that it came in.

    ``step`` tells which cut-offs its numbers were coded to; see `sfumato.stream.rare.StreamTails`.
    """

    place: int
    batch: str
    row: int
    step: int = 0


class Purpose(StrEnum):
    """What a key file is used for; one file may serve all, and no use opens what another closed."""

    POOL = "pool"
    MEASURING = "measuring"
    PERSONS = "persons"


_CLOSED = {
    Purpose.POOL: "the waiting records were",
    Purpose.MEASURING: "the rows kept for measuring were",
    Purpose.PERSONS: "the persons of this state were",
}
_USELESS = {
    Purpose.POOL: "waiting records of this state are kept in memory only; drop --pending-key",
    Purpose.MEASURING: "this state keeps no rows for measuring; drop --measure-key",
    Purpose.PERSONS: "this state takes each row for a person; drop --person-key",
}


class Vault:
    """Records at rest: AES-256-GCM under a key derived from the user's key file, the state's own id and a purpose."""

    def __init__(self, secret: bytes, state_id: str, purpose: Purpose = Purpose.POOL) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        def derived(use: str) -> bytes:
            return HKDF(SHA256(), _KEY_BYTES, state_id.encode(), f"sfumato stream {use}".encode()).derive(secret)

        self._cipher, self._choice = AESGCM(derived(purpose)), derived(f"{purpose} choice")
        self._state_id, self._purpose = state_id, purpose
        self._given = secret, state_id, purpose

    def __reduce__(self) -> tuple[type[Vault], tuple[bytes, str, Purpose]]:
        """As it is sent to a worker of the owner's cluster."""
        return Vault, self._given

    def __repr__(self) -> str:
        return "Vault(redacted)"

    @classmethod
    def from_file(cls, path: str | Path, state_id: str, purpose: Purpose = Purpose.POOL) -> Vault:
        """Read the key from a file of at least 32 bytes that only its owner may read.

        Raises
        ------
        OptionError
            For a file that is not there, too short, or open to others.
        """
        place = Path(path)
        try:
            with open_regular(place) as file:
                mode, secret = stat.S_IMODE(os.fstat(file.fileno()).st_mode), file.read(MOST_BYTES)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else type(error).__name__
            raise OptionError(
                f"the key file {str(place)!r} cannot be read ({reason}); make one with 'head -c 32 /dev/urandom > FILE'"
            ) from None
        if os.name == "posix" and mode & 0o077:
            raise OptionError(f"the key file {str(place)!r} is open to others (mode {mode:o}); close it with chmod 600")
        if len(secret) < _KEY_BYTES:
            raise OptionError(
                f"the key file {str(place)!r} holds {len(secret)} bytes and a key has at least {_KEY_BYTES}; make one "
                "with 'head -c 32 /dev/urandom > FILE'"
            )
        return cls(secret, state_id, purpose)

    def digest(self, text: str) -> bytes:
        """32 bytes that whoever lacks the key can neither foretell nor tell from chance; the same for the same text."""
        return hmac.digest(self._choice, text.encode(), "sha256")

    def lock(self, name: str, plain: bytes) -> bytes:
        """Encrypt bytes; the name that they are kept under is bound to them."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher.encrypt(nonce, plain, self._bound(name))

    def unlock(self, name: str, body: bytes) -> bytes:
        """Decrypt bytes; raises StateError where the key is not the one that they were encrypted with."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(body[:_NONCE], body[_NONCE:], self._bound(name))
        except (InvalidTag, ValueError):
            raise StateError(
                f"the key is not the one that {_CLOSED[self._purpose]} encrypted with; give that"
            ) from None

    def close_over(self, place: int, values: NDArray[np.float64], level: int) -> bytes:
        """Encrypt a record; its place in the order is bound to it."""
        return self.lock(str(place), struct.pack("<q", level) + np.ascontiguousarray(values, dtype="<f8").tobytes())

    def open(self, place: int, body: bytes, d: int) -> tuple[NDArray[np.float64], int]:
        """Decrypt a record.

        Raises
        ------
        StateError
            If the key is not the one that it was encrypted with, or the record is not as long.
        """
        plain = self.unlock(str(place), body)
        if len(plain) != 8 * (1 + d):
            raise StateError(f"a waiting record is not of {d} coordinates; restore a complete copy of the state")
        return np.frombuffer(plain[8:], dtype="<f8").astype(np.float64), int(struct.unpack("<q", plain[:8])[0])

    def _bound(self, name: str) -> bytes:
        return f"{self._state_id} {name}".encode()


def _who_is_left(
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
    left_values: NDArray[np.float64],
    left_levels: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Find which candidates are those left in the pool, both in order of arrival.

    The pool takes the first of equal records first, so those left are the last of them: matched from the end.

    Examples
    --------
    >>> one = np.array([[1.0], [2.0], [1.0]])
    >>> _who_is_left(one, np.array([5, 5, 5]), np.array([[2.0], [1.0]]), np.array([5, 5])).tolist()
    [1, 2]
    """
    found = np.empty(len(left_levels), dtype=np.int64)
    candidate = len(levels)
    for place in range(len(left_levels) - 1, -1, -1):
        candidate -= 1
        while candidate >= 0 and not (
            levels[candidate] == left_levels[place] and np.array_equal(values[candidate], left_values[place])
        ):
            candidate -= 1
        if candidate < 0:
            raise ValueError(f"{place + 1} waiting records were never given")
        found[place] = candidate
    return found


class PendingRecords:
    """Records that no group is large enough for yet.

    In memory mode the state holds batch and row of each, and a new session has nobody at hand until their batches are
    given again. In encrypted mode it holds the record itself under the key.
    """

    def __init__(self, state: State, settings: StreamSettings, vault: Vault | None) -> None:
        self._d, self.vault = settings.d, vault
        self.next_place = document_of(Progress, state.body("progress")).next_place
        self._here: list[PendingRecord] = []
        self._values, self._levels = np.empty((0, self._d)), np.empty(0, dtype=np.int64)
        self._away: dict[str, list[PendingRecord]] = {}
        self._recalled: list[tuple[PendingRecord, NDArray[np.float64], int]] = []
        for place, key in sorted((whole_number(key), key) for key in state.keys(_PENDING)):
            body = state.body(_PENDING, key)
            if settings.pending == "memory":
                self._away.setdefault((found := _in_memory(place, body)).batch, []).append(found)
            elif vault is None:
                self._away.setdefault("", []).append(PendingRecord(place, "", 0))
            else:
                self._recalled.append((PendingRecord(place, "", 0), *vault.open(place, body, self._d)))
        self._encrypted = settings.pending == "encrypted"

    @property
    def away(self) -> int:
        """Records that are not at hand."""
        return sum(map(len, self._away.values()))

    @property
    def recalled(self) -> int:
        """Records that are at hand again and not yet in the pool."""
        return len(self._recalled)

    @property
    def count(self) -> int:
        """All that wait."""
        return len(self._here) + self.recalled + self.away

    def pool(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """All that are at hand in order of arrival; they are in the pool from now on."""
        held = [*zip(self._here, self._values, self._levels.tolist(), strict=True), *self._recalled]
        held.sort(key=lambda each: each[0].place)
        self._here, self._recalled = [waiting for waiting, _, _ in held], []
        self._values = np.array([values for _, values, _ in held], dtype=np.float64).reshape(len(held), self._d)
        self._levels = np.array([level for _, _, level in held], dtype=np.int64)
        return self._values, self._levels

    def recall(self, batch: str, table: pa.Table, encode: Encode, tails: StreamTails) -> None:
        """Take the waiting records of a batch from its rows, coded to the cut-offs of when they came."""
        waiting = self._away.pop(batch, [])
        if not waiting:
            return
        values, levels = encode(table.take(pa.array([each.row for each in waiting])))
        values = tails.code(values, np.array([min(each.step, max(0, len(tails.steps) - 1)) for each in waiting]))
        self._recalled.extend(zip(waiting, values, levels.tolist(), strict=True))

    def arrivals(self) -> tuple[list[PendingRecord], NDArray[np.float64], NDArray[np.int64]]:
        """Those that were recalled, in order, to come in as new arrivals do."""
        held = sorted(self._recalled, key=lambda each: each[0].place)
        self._recalled = []
        values = np.array([values for _, values, _ in held], dtype=np.float64).reshape(len(held), self._d)
        return [waiting for waiting, _, _ in held], values, np.array([level for _, _, level in held], dtype=np.int64)

    def update(
        self,
        maintainer: Maintainer,
        came: Callable[[int], PendingRecord],
        values: NDArray[np.float64],
        levels: NDArray[np.int64],
        places: Iterable[int] = (),
    ) -> tuple[list[StateEntry], list[tuple[str, str]]]:
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
            left = _who_is_left(all_values, all_levels, state.pending_values, state.pending_levels)
        put, here = [], []
        for place in left.tolist():
            waiting = self._here[place] if place < known else came(place - known)
            if place < known:
                gone.remove(waiting.place)
            else:
                waiting = dataclasses.replace(waiting, place=self.next_place)
                put.append(
                    StateEntry(_PENDING, str(waiting.place), self._body(waiting, all_values[place], all_levels[place]))
                )
                self.next_place += 1
            here.append(waiting)
        drop = [(_PENDING, str(place)) for place in sorted(gone)]
        self._here, self._values, self._levels = here, all_values[left], all_levels[left]
        return put, drop

    def _body(self, waiting: PendingRecord, values: NDArray[np.float64], level: int) -> bytes:
        if not self._encrypted:
            return write_json([waiting.batch, waiting.row, waiting.step], escaped=True).encode()
        assert self.vault is not None  # ingest asks for the key first
        return self.vault.close_over(waiting.place, values, int(level))


def _in_memory(place: int, body: bytes) -> PendingRecord:
    try:
        batch, row, step = from_json(tuple[str, int, int], body)
        if 0 <= row < 2**63 and 0 <= step < 2**31:
            return PendingRecord(place, batch, row, step)
    except Unparsable:
        pass
    raise StateError("a waiting record in the state lacks its batch or row; restore a complete copy of it")


def open_vault(settings: StreamSettings, key: str | Path | None, purpose: Purpose = Purpose.POOL) -> Vault | None:
    """Read the key of a purpose, if one is given; refuse one that is of no use or not the one."""
    if key is None:
        return None
    locks = {
        Purpose.POOL: settings.pending_key if settings.pending == "encrypted" else None,
        Purpose.MEASURING: settings.measure_key,
        Purpose.PERSONS: settings.person_key,
    }
    if (lock := locks[purpose]) is None:
        raise OptionError(_USELESS[purpose])
    try:
        locked = bytes.fromhex(lock)
    except ValueError:
        raise StateError("the settings of the state lack its key; restore a complete copy of it") from None
    vault = Vault.from_file(key, settings.state_id, purpose)
    vault.unlock("-1" if purpose is Purpose.POOL else "", locked)
    return vault
