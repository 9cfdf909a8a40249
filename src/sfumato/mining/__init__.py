"""Miners on `Groups` themselves [AY05, sec. 1, second use], on reconstructed distributions [JS07, AS00]."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sfumato.mining.clusters import GroupKMeans, GroupMixture, cut_groups
from sfumato.mining.neighbours import CentroidNeighbours, GroupNeighbours

if TYPE_CHECKING:
    from sfumato.core.distributions.calculator import noise_for_privacy
    from sfumato.mining.bayes import ReconstructedNaiveBayes
    from sfumato.mining.tree import ReconstructedTree

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
    "ReconstructedNaiveBayes": "sfumato.mining.bayes",
    "ReconstructedTree": "sfumato.mining.tree",
    "noise_for_privacy": "sfumato.core.distributions.calculator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.mining' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOMES[name]), name)
    return value
