"""One number for each row, by which equal rows are found without comparing all with all."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["bits_of", "row_keys"]

_ODD = np.uint64(0x9E37_79B9_7F4A_7C15)
_MIX = np.uint64(0xBF58_476D_1CE4_E5B9)


def bits_of(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Give the bits of numbers, the two zeros as one.

    Examples
    --------
    >>> bits_of(np.array([0.0, -0.0])).tolist()
    [0, 0]
    """
    return (values + 0.0).view(np.uint64)


def row_keys(columns: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Mix the cells of each row into one number; equal rows have equal keys, and others as good as never.

    Examples
    --------
    >>> keys = row_keys([np.array([1, 1, 2], dtype=np.uint64), np.array([5, 5, 5], dtype=np.uint64)])
    >>> keys[0] == keys[1], keys[0] == keys[2]
    (np.True_, np.False_)
    """
    keys: NDArray[np.uint64] | None = None
    for bits in columns:
        keys = np.zeros(len(bits), dtype=np.uint64) if keys is None else keys
        keys = (keys ^ bits) * _ODD
        keys = (keys ^ (keys >> np.uint64(29))) * _MIX
        keys ^= keys >> np.uint64(32)
    if keys is None:
        raise ValueError("rows without columns have no keys")
    return keys
