"""Data mining on group statistics [AY05, sec. 1, second use]."""

from __future__ import annotations

from sfumato.mining.clusters import GroupKMeans, GroupMixture, cut_groups
from sfumato.mining.neighbours import CentroidNeighbours, GroupNeighbours

__all__ = ["CentroidNeighbours", "GroupKMeans", "GroupMixture", "GroupNeighbours", "cut_groups"]
