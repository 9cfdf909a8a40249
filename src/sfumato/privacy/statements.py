"""What may and what must not be said of a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Claim", "Refused"]


@dataclass(frozen=True)
class Claim:
    """What may be said of a release."""

    claim: str
    kind: Literal["proved", "assumed"]
    basis: str
    assumes: str


@dataclass(frozen=True)
class Refused:
    """What must not be said of a release, and why."""

    claim: str
    because: str
