"""Condensation: groups of records, their statistics, and new records drawn from them [AY05, KCG12]."""

from __future__ import annotations

from sfumato.condense.classwise import ClasswiseCondensation
from sfumato.condense.mechanism import Condensation

__all__ = ["ClasswiseCondensation", "Condensation"]
