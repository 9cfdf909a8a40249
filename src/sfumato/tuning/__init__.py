"""The most useful release that meets a policy, searched for by trying."""

from __future__ import annotations

from sfumato.tuning.model import Tuning
from sfumato.tuning.run import tune

__all__ = ["Tuning", "tune"]
