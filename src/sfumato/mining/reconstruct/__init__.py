"""The distribution behind randomized values [JS07, ch. 4]: sees released values and the declared law, nothing else."""

from __future__ import annotations

from sfumato.mining.reconstruct.answers import Reconstruction
from sfumato.mining.reconstruct.channel import Channel
from sfumato.mining.reconstruct.estimate import reconstruct
from sfumato.mining.reconstruct.iterate import Estimate, reconstruct_counts
from sfumato.mining.reconstruct.joint import CrossTable, Regression, cross_table, regress

__all__ = [
    "Channel",
    "CrossTable",
    "Estimate",
    "Reconstruction",
    "Regression",
    "cross_table",
    "reconstruct",
    "reconstruct_counts",
    "regress",
]
