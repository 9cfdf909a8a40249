"""Whole numbers modulo 2^64: fixed point, masks that cancel in a sum, shares that grow from a secret, and bounds.

Of secure sums every two parties share masks that cancel [BCG10, lines 2, 5 and 13].
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import BadInput
from sfumato.engines.parties.ports import PartyError

__all__ = [
    "MOST_BITS",
    "SECRET_BYTES",
    "bits_for",
    "decode",
    "encode",
    "grown",
    "masked",
    "pad",
    "possible",
    "read_secret",
    "read_words",
    "words_of",
]

MOST_BITS = 62
"""Bits of a number with its fraction: one is left for the sign and one for a difference."""

_FINEST = 40  # a double has no more behind a number of some thousands

SECRET_BYTES = 32
"""Length of the secret of two parties."""

Shape = tuple[int, ...]
Words = NDArray[np.uint64]


def bits_for(bound: float, *, products: int = 1) -> int:
    """Bits behind the point that leave room for numbers up to a bound.

    Parameters
    ----------
    bound : float
        No sum that is formed exceeds it in size.
    products : int
        How many fixed-point factors make up a term: each brings its own bits.

    Examples
    --------
    >>> bits_for(1_000), bits_for(1_000, products=2)
    (40, 26)
    """
    room = MOST_BITS - max(0, math.ceil(math.log2(max(bound, 1.0))))
    if room < products:
        raise BadInput(f"numbers up to 2^{MOST_BITS - room} leave no room for fixed point; bring fewer rows or columns")
    return min(_FINEST, room // products)


def encode(values: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
    """Round numbers to whole multiples of 2^-bits.

    Examples
    --------
    >>> encode(np.array([0.5, -1.25]), 4).tolist()
    [8, -20]
    """
    scaled = np.rint(np.ldexp(np.asarray(values, dtype=np.float64), bits))
    outside = int((~(np.abs(scaled) < 2.0**MOST_BITS)).sum())
    if outside:
        raise BadInput(f"{outside} numbers are too large for fixed point with {bits} bits behind the point")
    return scaled.astype(np.int64)


def decode(places: NDArray[np.int64], bits: int) -> NDArray[np.float64]:
    """Numbers that were encoded."""
    return np.ldexp(np.asarray(places, dtype=np.int64).astype(np.float64), -bits)


def pad(secret: bytes, sequence: int, count: int) -> NDArray[np.uint64]:
    """Expand the secret of two parties into masks; no two sums of a run use the same ones."""
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"a secret of two parties has {SECRET_BYTES} bytes")
    stream = hashlib.shake_256(b"sfumato secure sum" + secret + sequence.to_bytes(8, "little")).digest(8 * count)
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64)


def masked(values: NDArray[np.int64], rank: int, secrets: Mapping[int, bytes], sequence: int) -> NDArray[np.uint64]:
    """Hide numbers so that only the sum over all parties tells something.

    Of two parties the lower adds their common mask and the higher subtracts it.

    Parameters
    ----------
    values : ndarray
        Whole numbers of this party.
    secrets : mapping of int to bytes
        The secret that this party has in common with each other one.
    sequence : int
        Number of the sum in this run.

    Examples
    --------
    >>> secret = {0: b"s" * 32}
    >>> here = masked(np.array([3, -4]), 1, secret, 0)
    >>> there = masked(np.array([10, 1]), 0, {1: b"s" * 32}, 0)
    >>> (here + there).view(np.int64).tolist()
    [13, -3]
    """
    hidden = np.ascontiguousarray(values, dtype=np.int64).view(np.uint64).copy()
    for other, secret in secrets.items():
        mask = pad(secret, sequence, hidden.size).reshape(hidden.shape)
        hidden = hidden + mask if rank < other else hidden - mask
    return hidden


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
