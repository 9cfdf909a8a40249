"""Records that wait: what the state keeps of them, which is a place in a batch, or the record under the user's key."""

from __future__ import annotations

import hmac
import os
import secrets
import stat
import struct
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.documents import MOST_BYTES, open_regular
from sfumato.errors import OptionError
from sfumato.stream.format import StateError

__all__ = ["MODES", "Purpose", "Vault", "Waiting", "from_hex", "who_is_left"]

MODES = ("memory", "encrypted")
"""How waiting records are kept: in memory only, or in the state under a key."""

_KEY_BYTES = 32
_NONCE = 12


@dataclass(frozen=True)
class Waiting:
    """A record that waits: its place in the order of arrival, and the row of the batch that it came in."""

    place: int
    batch: str
    row: int


class Purpose(StrEnum):
    """What a key file is used for; one file may serve both, and neither use opens what the other closed."""

    POOL = "pool"
    MEASURING = "measuring"


_CLOSED = {Purpose.POOL: "the waiting records were", Purpose.MEASURING: "the rows kept for measuring were"}


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
        """Decrypt bytes.

        Raises
        ------
        StateError
            Where the key is not the one that they were encrypted with.
        """
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
        """Decrypt a record of so many coordinates.

        Raises
        ------
        StateError
            Where the key is not the one that it was encrypted with, or the record is not as long.
        """
        plain = self.unlock(str(place), body)
        if len(plain) != 8 * (1 + d):
            raise StateError(f"a waiting record is not of {d} coordinates; bring back a whole copy of the state")
        return np.frombuffer(plain[8:], dtype="<f8").astype(np.float64), int(struct.unpack("<q", plain[:8])[0])

    def _bound(self, name: str) -> bytes:
        return f"{self._state_id} {name}".encode()


def from_hex(text: str) -> bytes:
    """Bytes that settings hold in hexadecimal: something encrypted, by which a key is known.

    Raises
    ------
    StateError
    """
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise StateError("the settings of the state do not tell its key; bring back a whole copy of it") from None


def who_is_left(
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
    >>> who_is_left(one, np.array([5, 5, 5]), np.array([[2.0], [1.0]]), np.array([5, 5])).tolist()
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
