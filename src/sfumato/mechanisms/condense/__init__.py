"""Condensation: groups of records, their statistics, and new records drawn from them [AY05, KCG12]."""

from __future__ import annotations

from sfumato.mechanisms.condense.classwise import ClasswiseCondensation
from sfumato.mechanisms.condense.mechanism import Condensation

__all__ = ["ClasswiseCondensation", "Condensation"]
