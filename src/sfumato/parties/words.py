"""Words of 64 bits: how shares are written, read and grown from a secret, and whether the numbers they make can be."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.parties.channel import PartyError
from sfumato.parties.masks import SECRET_BYTES

__all__ = ["grown", "possible", "read_secret", "read_words", "words_of"]

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


def possible(values: NDArray[Any], low: float, high: float | NDArray[np.int64], label: str) -> NDArray[Any]:
    """The numbers as they are, where all lie between bounds that hold whenever every party does its part.

    Shares that are no shares, or told numbers that were made up, add up to anything. Nobody can tell whose they were,
    but nothing is computed from what cannot be.

    Raises
    ------
    PartyError
        With how many lie outside.
    """
    outside = int((~((values >= low) & (values <= high))).sum())
    if outside:
        raise PartyError(
            f"{outside} numbers of {label!r} are beyond what they can be, so a party sent or computed wrong ones; run "
            "the same versions at all parties and start again"
        )
    return values
