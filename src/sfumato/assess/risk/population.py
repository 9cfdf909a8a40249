"""Risk in the population that a table is a sample of: how many people elsewhere are alike in the quasi-identifiers.

Given f people of the sample in an equivalence class and a sampling fraction p, the F people of the population in it are
taken as f plus a negative binomial number of failures at p [Benedetti & Franconi 1998; Franconi & Polettini 2004]. An
intruder who picks one of them is right with probability E(1 / F), and a class of one person is unique in the population
with probability p. The least f / p is the k of a k-map [Sweeney 2002].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints

__all__ = ["PopulationRisk", "individual_risk", "population_risk"]


@dataclass(frozen=True)
class PopulationRisk:
    """Expected figures of a sample in its population."""

    reidentified: float  # people of the sample whom an intruder would name, who picks one of each class
    unique: float  # people who are unique in the sample and in the population
    smallest: float  # estimated people of the population in its smallest class


def individual_risk(sample: Ints, fraction: float | Floats) -> NDArray[np.float64]:
    """E(1 / F) of people in classes of f people of a sample, which is one in ``fraction`` of its population.

    Examples
    --------
    >>> individual_risk(np.array([1, 1, 2]), np.array([1 / 17, 1 / 8, 2 / 110])).round(3).tolist()
    [0.177, 0.297, 0.017]
    """
    from scipy.special import hyp2f1

    count = np.asarray(sample, dtype=np.float64)
    share = np.broadcast_to(np.asarray(fraction, dtype=np.float64), count.shape)
    safe = np.where(share < 1.0, share, 0.5)
    value = safe**count / count * hyp2f1(count, count, count + 1.0, 1.0 - safe)
    return np.asarray(np.where(share < 1.0, value, 1.0 / count))


def population_risk(classes: Ints, fraction: float) -> PopulationRisk:
    """Risk of rows by the number of their class, of a sample with a sampling fraction."""
    sizes = np.unique(np.asarray(classes), return_counts=True)[1]
    kinds, many = np.unique(sizes, return_counts=True)
    return PopulationRisk(
        reidentified=float((many * kinds) @ individual_risk(kinds, fraction)),
        unique=float(fraction * (sizes == 1).sum()),
        smallest=float(sizes.min() / fraction),
    )
