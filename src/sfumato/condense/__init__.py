"""Condensation: groups of records, their statistics, and new records drawn from them [AY05]."""

from __future__ import annotations

from sfumato.condense.mechanism import Condensation

__all__ = ["Condensation"]
