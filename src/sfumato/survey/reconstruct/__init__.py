"""The distribution behind randomized values [JS07, ch. 4]: sees released values and the declared law, nothing else."""

from __future__ import annotations

from sfumato.survey.reconstruct.answers import Reconstruction
from sfumato.survey.reconstruct.channel import Channel
from sfumato.survey.reconstruct.estimate import reconstruct
from sfumato.survey.reconstruct.iterate import Estimate, reconstruct_counts
from sfumato.survey.reconstruct.joint import CrossTable, Regression, cross_table, regress

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
