"""Miners that work on `Groups` themselves, without generating records [AY05, sec. 1, second use], and Chameleon."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sfumato.mine.clusters import GroupKMeans
from sfumato.mine.cuts import cut_groups
from sfumato.mine.mixtures import GroupMixture
from sfumato.mine.neighbours import CentroidNeighbours, GroupNeighbours

if TYPE_CHECKING:
    from sfumato.mine.chameleon import Chameleon

__all__ = ["CentroidNeighbours", "Chameleon", "GroupKMeans", "GroupMixture", "GroupNeighbours", "cut_groups"]


def __getattr__(name: str) -> Any:
    if name != "Chameleon":  # the only miner whose class needs scikit-learn before it is used
        raise AttributeError(f"module 'sfumato.mine' has no attribute {name!r}")
    globals()[name] = value = import_module("sfumato.mine.chameleon").Chameleon
    return value
