"""Arithmetic of secure computation: shares and masks modulo 2^64, fixed point, and the operations of an engine.

Everything linear is computed on shares, in fixed point. Of secure sums, every two parties have masks that cancel
[BCG10, lines 2, 5 and 13]. Comparisons and products of hidden numbers need an engine for secure computation, which
takes shares, returns fresh shares, and keeps nothing between two calls.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import BadInput
from sfumato.parties.channel import PartyError

__all__ = [
    "MOST_BITS",
    "OPERATIONS",
    "SECRET_BYTES",
    "Engine",
    "Operation",
    "add_masks",
    "check_range",
    "evaluate",
    "expand_mask",
    "expand_share",
    "fraction_bits",
    "from_fixed_point",
    "read_secret",
    "read_words",
    "result_shapes",
    "to_fixed_point",
    "to_words",
]

Shape = tuple[int, ...]
Words = NDArray[np.uint64]

OPERATIONS = ("less_than", "argmin", "extremes", "top", "cross")
"""Names of the operations."""


@dataclass(frozen=True)
class Operation:
    """One call of an engine.

    Parameters
    ----------
    name : str
        - ``less_than``: of two equal shapes, 1 where the first is less, else 0;
        - ``argmin``: of (n, g) the place of the least in each row, of equal ones the first;
        - ``extremes``: of (n, m) the minima and the maxima of the columns;
        - ``top``: of (n,) numbers from 0 to below 2^bits a mask with exactly ``count`` ones at the smallest, of equal
          ones the lower places;
        - ``cross``: of (s, p) and (s, q) the products a^T b modulo 2^64, or of (g, s, p) and (g, s, q) those of each.
    shapes : tuple of shapes
        Of the inputs.
    count, bits : int
        Of ``top``.
    """

    name: str
    shapes: tuple[Shape, ...]
    count: int = 0
    bits: int = 0

    def __post_init__(self) -> None:
        result_shapes(self)


class Engine(Protocol):
    """Does an operation on shares; all computing parties call it together.

    Attributes
    ----------
    sent : int
        Bytes that this party's engine has sent.
    """

    sent: int

    def run(self, operation: Operation, inputs: Sequence[Words | None]) -> tuple[Words | None, ...]:
        """Fresh shares of the results for shares of the inputs.

        The first and the last party hold shares; a third one that helps to compute passes and gets None.
        """

    def close(self) -> None:
        """End the engine."""


def result_shapes(operation: Operation) -> tuple[Shape, ...]:
    """Shapes of what comes out; refuses shapes that do not fit."""
    name, shapes, count = operation.name, operation.shapes, operation.count
    if name == "less_than" and len(shapes) == 2 and shapes[0] == shapes[1]:
        return (shapes[0],)
    if name == "argmin" and len(shapes) == 1 and len(shapes[0]) == 2 and shapes[0][1] > 0:
        return ((shapes[0][0],),)
    if name == "extremes" and len(shapes) == 1 and len(shapes[0]) == 2 and shapes[0][0] > 0:
        return ((shapes[0][1],), (shapes[0][1],))
    if (
        name == "top"
        and len(shapes) == 1
        and len(shapes[0]) == 1
        and 0 <= count <= shapes[0][0]
        and 0 < operation.bits < 62
    ):
        return (shapes[0],)
    if name == "cross" and len(shapes) == 2:
        a, b = shapes
        if len(a) == len(b) and len(a) in (2, 3) and a[:-1] == b[:-1]:
            return ((*a[:-2], a[-1], b[-1]),)
    raise ValueError(f"no operation {name!r} on shapes {shapes} with count {count}")


def evaluate(operation: Operation, inputs: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], ...]:
    """Do an operation in the clear: what every engine must give.

    Examples
    --------
    >>> evaluate(Operation("top", ((4,),), count=2, bits=3), [np.array([5, 1, 1, 1])])[0].tolist()
    [0, 1, 1, 0]
    """
    first = np.asarray(inputs[0], dtype=np.int64)
    if operation.name == "less_than":
        return ((first < inputs[1]).astype(np.int64),)
    if operation.name == "argmin":
        return (np.argmin(first, axis=1).astype(np.int64),)
    if operation.name == "extremes":
        return first.min(axis=0), first.max(axis=0)
    if operation.name == "top":
        mask = np.zeros(first.shape, dtype=np.int64)
        mask[np.argsort(first, kind="stable")[: operation.count]] = 1
        return (mask,)
    a, b = first.view(np.uint64), np.asarray(inputs[1], dtype=np.int64).view(np.uint64)
    return ((np.swapaxes(a, -1, -2) @ b).view(np.int64),)  # whole numbers wrap as the ring does


MOST_BITS = 62
"""Bits of a number with its fraction: one is left for the sign and one for a difference."""

_FINEST = 40  # a double has no more behind a number of some thousands

SECRET_BYTES = 32
"""Length of the secret of two parties."""


def fraction_bits(bound: float, *, products: int = 1) -> int:
    """Fraction bits of fixed point that leave room for numbers up to a bound.

    Parameters
    ----------
    bound : float
        No sum that is formed exceeds it in size.
    products : int
        How many fixed-point factors make up a term: each brings its own bits.

    Examples
    --------
    >>> fraction_bits(1_000), fraction_bits(1_000, products=2)
    (40, 26)
    """
    room = MOST_BITS - max(0, math.ceil(math.log2(max(bound, 1.0))))
    if room < products:
        raise BadInput(f"numbers up to 2^{MOST_BITS - room} leave no room for fixed point; use fewer rows or columns")
    return min(_FINEST, room // products)


def to_fixed_point(values: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
    """Round numbers to whole multiples of 2^-bits.

    Examples
    --------
    >>> to_fixed_point(np.array([0.5, -1.25]), 4).tolist()
    [8, -20]
    """
    scaled = np.rint(np.ldexp(np.asarray(values, dtype=np.float64), bits))
    outside = int((~(np.abs(scaled) < 2.0**MOST_BITS)).sum())
    if outside:
        raise BadInput(f"{outside} numbers are too large for fixed point with {bits} bits behind the point")
    return scaled.astype(np.int64)


def from_fixed_point(places: NDArray[np.int64], bits: int) -> NDArray[np.float64]:
    """Numbers in fixed point as floats."""
    return np.ldexp(np.asarray(places, dtype=np.int64).astype(np.float64), -bits)


def expand_mask(secret: bytes, sequence: int, count: int) -> NDArray[np.uint64]:
    """Masks expanded from the secret of two parties; no two sums of a run use the same masks."""
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"a secret of two parties has {SECRET_BYTES} bytes")
    stream = hashlib.shake_256(b"sfumato secure sum" + secret + sequence.to_bytes(8, "little")).digest(8 * count)
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64)


def add_masks(values: NDArray[np.int64], rank: int, secrets: Mapping[int, bytes], sequence: int) -> NDArray[np.uint64]:
    """Mask numbers so that only the sum over all parties can be read.

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
    >>> here = add_masks(np.array([3, -4]), 1, secret, 0)
    >>> there = add_masks(np.array([10, 1]), 0, {1: b"s" * 32}, 0)
    >>> (here + there).view(np.int64).tolist()
    [13, -3]
    """
    hidden = np.ascontiguousarray(values, dtype=np.int64).view(np.uint64).copy()
    for other, secret in secrets.items():
        mask = expand_mask(secret, sequence, hidden.size).reshape(hidden.shape)
        hidden = hidden + mask if rank < other else hidden - mask
    return hidden


def to_words(values: NDArray[np.int64]) -> Words:
    """Integers as words modulo 2^64.

    Examples
    --------
    >>> int(to_words(np.array([-1]))[0]) == 2**64 - 1
    True
    """
    return np.ascontiguousarray(values, dtype=np.int64).view(np.uint64)


def expand_share(seed: bytes, shape: Shape) -> Words:
    """Share expanded from its secret."""
    count = int(np.prod(shape, dtype=np.int64))
    stream = hashlib.shake_256(b"sfumato share" + seed).digest(8 * count)
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64).reshape(shape)


def read_words(payload: bytes, shape: Shape, sender: str) -> Words:
    """Words that a party sent; refuses another number of them."""
    count = int(np.prod(shape, dtype=np.int64))
    if len(payload) != 8 * count:
        raise PartyError(f"party {sender!r} sent {len(payload)} bytes instead of {8 * count}; start all parties again")
    return np.frombuffer(payload, dtype="<u8").astype(np.uint64).reshape(shape)


def read_secret(payload: bytes, sender: str) -> bytes:
    """Secret that a party sent; refuses one of another length, which would expand into a wrong share."""
    if len(payload) != SECRET_BYTES:
        raise PartyError(f"party {sender!r} sent {len(payload)} bytes instead of a secret; start all parties again")
    return payload


def check_range(
    values: NDArray[Any],
    low: float | NDArray[np.float64],
    high: float | NDArray[np.int64] | NDArray[np.float64],
    label: str,
    *,
    sender: str | None = None,
) -> NDArray[Any]:
    """The numbers, if all lie within bounds that hold whenever every party follows the protocol.

    Invalid shares and invented numbers add up to anything. Whose they were cannot be found out of a sum; ``sender`` is
    the party that sent them in the clear. Nothing is computed from impossible numbers.

    Raises
    ------
    PartyError
        With how many lie outside.
    """
    outside = int((~((values >= low) & (values <= high))).sum())
    if outside:
        who = "a party sent or computed" if sender is None else f"party {sender!r} sent"
        raise PartyError(
            f"{outside} numbers of {label!r} are beyond what they can be, so {who} wrong ones; run the same versions "
            "at all parties and start again"
        )
    return values
