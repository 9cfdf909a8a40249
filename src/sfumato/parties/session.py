"""The port between the protocols and the parties: what owners can do together with numbers that none may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.parties.transcript import Transcript

__all__ = ["Session", "Shared"]

Shape = tuple[int, ...]
Whole = NDArray[np.int64]


class Shared:
    """Numbers that nobody sees: the first and the last party hold words that add up to them modulo 2^64."""

    __slots__ = ("_words", "shape")

    def __init__(self, shape: Shape, words: NDArray[np.uint64] | None) -> None:
        if words is not None and words.shape != shape:
            raise ValueError(f"a share of shape {words.shape} does not fit {shape}")
        self.shape = shape
        self._words = words

    def __repr__(self) -> str:
        return f"Shared(shape={self.shape})"


class Session(Protocol):
    """What the protocols are written against; all parties call the same methods in the same order.

    Numbers are whole, modulo 2^64; `sfumato.parties.fixed` makes them of others. Those that are compared differ by less
    than 2^62.

    Attributes
    ----------
    rank : int
        Place of this party.
    names : tuple of str
        Of all parties.
    """

    rank: int
    names: tuple[str, ...]
    transcript: Transcript

    @property
    def parties(self) -> int:
        """Number of parties."""

    @property
    def computing(self) -> tuple[int, ...]:
        """The parties that hold shares or help to compute."""

    def phase(self, name: str) -> None:
        """Say what comes now, for the transcript and the progress."""

    def share(self, values: Whole | None, owner: int, shape: Shape, label: str) -> Shared:
        """Split the owner's numbers between the first and the last party; the others pass None."""

    def add(self, *terms: Shared) -> Shared:
        """Add numbers of equal shapes."""

    def subtract(self, left: Shared, right: Shared) -> Shared:
        """Subtract numbers of equal shapes."""

    def scale(self, shared: Shared, factor: int | Whole) -> Shared:
        """Multiply with public whole numbers."""

    def join(self, parts: Sequence[Shared]) -> Shared:
        """Concatenate along the first axis."""

    def part(self, shared: Shared, rows: slice | Whole) -> Shared:
        """Take public rows along the first axis."""

    def arrange(self, shared: Shared, shape: Shape, axes: tuple[int, ...] | None = None) -> Shared:
        """Reshape, then transpose if axes are given."""

    def less_than(self, left: Shared, right: Shared) -> Shared:
        """1 where left is less, else 0."""

    def argmin(self, shared: Shared) -> Shared:
        """Place of the least of each row, of equal ones the first."""

    def extremes(self, shared: Shared) -> tuple[Shared, Shared]:
        """Minimum and maximum of each column."""

    def top(self, shared: Shared, count: int, bits: int) -> Shared:
        """Mark the smallest with 1; numbers lie from 0 to below 2^bits, of equal ones the lower places are taken."""

    def cross(self, left: Shared, right: Shared) -> Shared:
        """Left^T right modulo 2^64; of three axes for each place of the first."""

    def open(self, shared: Shared, label: str, to: tuple[int, ...] | None = None) -> Whole | None:
        """Show numbers to some parties, by default to all; None at the others."""

    def sum(self, values: Whole, label: str) -> Whole:
        """Add the numbers that each party has, and show the sum to all."""

    def tell(self, payload: bytes | None, owner: int, label: str, count: int) -> bytes:
        """Send the owner's message to all; it holds so many numbers."""

    def public_rng(self, label: str) -> np.random.Generator:
        """Generator that all parties have alike and none could choose."""

    def private_rng(self, purpose: str) -> np.random.Generator:
        """Generator that only this party has."""

    def secret(self, label: str) -> bytes:
        """32 bytes that all parties have and nobody else; the first party draws them."""
