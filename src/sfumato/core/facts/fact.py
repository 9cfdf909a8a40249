"""What every fact is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

__all__ = ["Fact"]


@dataclass(frozen=True)
class Fact:
    """One deed."""

    fact: ClassVar[str] = ""
