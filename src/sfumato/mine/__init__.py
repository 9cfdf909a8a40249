"""Miners that work on `Groups` themselves, without generating records [AY05, sec. 1, second use]."""

from __future__ import annotations

from sfumato.mine.clusters import GroupKMeans
from sfumato.mine.cuts import cut_groups
from sfumato.mine.mixtures import GroupMixture
from sfumato.mine.neighbours import CentroidNeighbours, GroupNeighbours

__all__ = ["CentroidNeighbours", "GroupKMeans", "GroupMixture", "GroupNeighbours", "cut_groups"]
