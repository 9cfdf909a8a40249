"""Secure sums: masks that each two parties share and that cancel in the sum, modulo 2^64 [BCG10, lines 2, 5 and 13]."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["SECRET_BYTES", "masked", "pad"]

SECRET_BYTES = 32
"""Length of the secret of two parties."""


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
