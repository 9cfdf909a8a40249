"""The group size that is right for a table [KCG12]."""

from __future__ import annotations

from sfumato.tune.model import Tuning
from sfumato.tune.run import tune

__all__ = ["Tuning", "tune"]
