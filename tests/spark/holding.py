"""Condensation that tells when it has begun with a cell, and waits: for a test that kills who does it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.methods.condense import Condensation

if TYPE_CHECKING:
    import numpy as np

    from sfumato.core.records import Records
    from sfumato.methods.protocol import MethodResult


@dataclass(frozen=True)
class HoldingCondensation(Condensation):
    """Writes the number of its process into the folder ``HOLD`` and goes on once there is no file ``hold`` in it."""

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        folder = os.environ.get("HOLD")
        if folder is not None:
            Path(folder, f"begun-{os.getpid()}").touch()
            while Path(folder, "hold").exists():
                time.sleep(0.05)
        return super().sanitize(records, rng=rng)
