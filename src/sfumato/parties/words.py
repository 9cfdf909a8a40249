"""Words of 64 bits: how shares are written, read and grown from a secret."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from sfumato.parties.channel import PartyError
from sfumato.parties.masks import SECRET_BYTES

__all__ = ["grown", "read_secret", "read_words", "words_of"]

Shape = tuple[int, ...]
Words = NDArray[np.uint64]


def words_of(values: NDArray[np.int64]) -> Words:
    """Take whole numbers as words.

    Examples
    --------
    >>> int(words_of(np.array([-1]))[0]) == 2**64 - 1
    True
    """
    return np.ascontiguousarray(values, dtype=np.int64).view(np.uint64)


def grown(seed: bytes, shape: Shape) -> Words:
    """Grow a share from its secret."""
    count = int(np.prod(shape, dtype=np.int64))
    stream = hashlib.shake_256(b"sfumato share" + seed).digest(8 * count)
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64).reshape(shape)


def read_words(payload: bytes, shape: Shape, sender: str) -> Words:
    """Read the words that a party sent, or say that they are not as many as were due."""
    count = int(np.prod(shape, dtype=np.int64))
    if len(payload) != 8 * count:
        raise PartyError(
            f"party {sender!r} sent {len(payload)} bytes where {8 * count} were due; start all parties again"
        )
    return np.frombuffer(payload, dtype="<u8").astype(np.uint64).reshape(shape)


def read_secret(payload: bytes, sender: str) -> bytes:
    """Take the secret that a party sent, or say that it is none: what grew from another would be wrong, and fit."""
    if len(payload) != SECRET_BYTES:
        raise PartyError(f"party {sender!r} sent {len(payload)} bytes where a secret was due; start all parties again")
    return payload
