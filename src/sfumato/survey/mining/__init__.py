"""Classifiers on randomized data, by reconstructed distributions [AS00; JS07, ch. 3]."""

from __future__ import annotations

from sfumato.survey.calculator import noise_for_privacy
from sfumato.survey.mining.intervals import ReconstructedNaiveBayes
from sfumato.survey.mining.tree import ReconstructedTree

__all__ = ["ReconstructedNaiveBayes", "ReconstructedTree", "noise_for_privacy"]
