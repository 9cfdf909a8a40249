"""Miners on `Groups` themselves [AY05, sec. 1, second use], on reconstructed distributions [JS07, AS00]."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sfumato.mine.clusters import GroupKMeans, GroupMixture, cut_groups
from sfumato.mine.neighbours import CentroidNeighbours, GroupNeighbours

if TYPE_CHECKING:
    from sfumato.core.laws.calculator import noise_for_privacy
    from sfumato.mine.bayes import ReconstructedNaiveBayes
    from sfumato.mine.tree import ReconstructedTree

__all__ = [
    "CentroidNeighbours",
    "GroupKMeans",
    "GroupMixture",
    "GroupNeighbours",
    "ReconstructedNaiveBayes",
    "ReconstructedTree",
    "cut_groups",
    "noise_for_privacy",
]

_HOMES = {  # the miners of groups need neither scikit-learn nor laws before they are used
    "ReconstructedNaiveBayes": "sfumato.mine.bayes",
    "ReconstructedTree": "sfumato.mine.tree",
    "noise_for_privacy": "sfumato.core.laws.calculator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.mine' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOMES[name]), name)
    return value
