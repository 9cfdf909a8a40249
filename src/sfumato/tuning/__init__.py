"""The group size that is right for a table [KCG12]."""

from __future__ import annotations

from sfumato.tuning.model import Tuning
from sfumato.tuning.run import tune

__all__ = ["Tuning", "tune"]
