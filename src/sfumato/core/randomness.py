"""Source of randomness: the operating system for a release, a seed for a dry run.

Whoever knows the seed of a sanitized table can subtract its noise, so a seeded run is a dry run:
reproducible to the bit and marked as not for release. Without a seed every generator is ChaCha20
under a fresh 256-bit key from the operating system.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from sfumato.core.errors import OptionError

__all__ = ["Mode", "Randomness"]


class Mode(StrEnum):
    """Whether the result may be released."""

    RELEASE = "release"
    DRY_RUN = "dry-run"


@dataclass(frozen=True, repr=False)
class Randomness:
    """A source of independent generators, one per purpose.

    Parameters
    ----------
    seed : int or None
        None draws from the operating system. A number makes a dry run.
    root : bytes, optional
        256 bits from the operating system that all generators hang on, so that each purpose can be drawn again within a
        run; it is to be forgotten with the run. Without it every generator has a key of its own, known to nobody.

    Examples
    --------
    >>> Randomness().mode.value
    'release'
    >>> Randomness(7).generator("demo").integers(10) == Randomness(7).generator("demo").integers(10)
    np.True_
    """

    seed: int | None = None
    root: bytes | None = None

    def __post_init__(self) -> None:
        if self.seed is not None and self.seed < 0:
            raise OptionError("the seed is below 0; use a whole number from 0 on")

    def __repr__(self) -> str:
        return f"Randomness(mode={self.mode.value!r})"

    @property
    def mode(self) -> Mode:
        """Release or dry run."""
        return Mode.RELEASE if self.seed is None else Mode.DRY_RUN

    @property
    def algorithm(self) -> str:
        """The generator's algorithm, as a certificate names it."""
        return "ChaCha20" if self.seed is None else "PCG64"

    def generator(self, purpose: str) -> np.random.Generator:
        """Generator for one purpose; no two purposes share a stream."""
        if self.seed is None:
            from randomgen import ChaCha

            return np.random.Generator(ChaCha(key=self._key(purpose), rounds=20))
        return np.random.Generator(np.random.PCG64([self.seed, zlib.crc32(purpose.encode())]))

    def repeatable(self, root: bytes | None = None) -> Randomness:
        """A source whose generators repeat the same draws for a purpose during the run."""
        return replace(self, root=root or self.root or secrets.token_bytes(32))

    def _key(self, purpose: str) -> int:
        if self.root is None:
            return secrets.randbits(256)
        return int.from_bytes(hashlib.blake2b(purpose.encode(), key=self.root, digest_size=32).digest(), "big")
