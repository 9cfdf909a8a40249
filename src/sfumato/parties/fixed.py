"""Numbers as whole multiples of 2^-bits, so that owners can add and compare them modulo 2^64."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BadInput

__all__ = ["MOST_BITS", "bits_for", "decode", "encode"]

MOST_BITS = 62
"""Bits of a number with its fraction: one is left for the sign and one for a difference."""

_FINEST = 40  # a double has no more behind a number of some thousands


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
