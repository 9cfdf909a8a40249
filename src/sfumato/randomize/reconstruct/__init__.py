"""The distribution behind randomized values [JS07, ch. 4]: sees released values and the declared law, nothing else."""

from __future__ import annotations

from sfumato.randomize.reconstruct.channel import Channel
from sfumato.randomize.reconstruct.counts import Estimate, reconstruct_counts
from sfumato.randomize.reconstruct.estimate import reconstruct
from sfumato.randomize.reconstruct.model import Reconstruction

__all__ = ["Channel", "Estimate", "Reconstruction", "reconstruct", "reconstruct_counts"]
