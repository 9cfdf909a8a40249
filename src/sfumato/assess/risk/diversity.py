"""How surely a group tells the target of its members: l-diversity and t-closeness inside groups, for the owner.

[Machanavajjhala et al. 2007; Li, Li & Venkatasubramanian 2007]. Class-wise groups hold one class by design, so that
the class of every synthetic row is certain (errata KCG12.5).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import Cells
from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.study import Study

__all__ = ["DIVERSITY", "Diversity", "measure_diversity"]

_SHUFFLES = 5
_MANY = 200_000  # people of whom one shuffle is enough

_Values = NDArray[np.float64]
_Places = NDArray[np.int64]

_MEANINGS = {
    "diversity-smallest": (
        "The fewest different values of the target that a group holds, a missing cell counting as one; 1 means that "
        "whoever is known to be in that group has a target that is known too."
    ),
    "diversity-median": "Half of the groups hold at least this many different values of the target; more is better.",
    "diversity-entropy-smallest": (
        "As the fewest values of the target in a group, but values that few members have count little; 1 is worst."
    ),
    "diversity-entropy-median": (
        "Half of the groups hold as good as this many equally frequent values of the target; more is better."
    ),
    "groups-of-one-class": (
        "The share of groups whose members all have the same value of the target, so that finding a person's group "
        "gives it away; less is better, and groups made for each class apart always have 1."
    ),
    "closeness-largest": (
        "How far the target's distribution in a group is from that in the whole table, in the group where it is "
        "farthest; 0 means that groups tell nothing about the target, 1 that one tells all."
    ),
    "closeness-mean": (
        "How far the target's distribution in a group is from that in the whole table, on average over people; less "
        "is better."
    ),
}
_HIGHER = frozenset(name for name in _MEANINGS if name.startswith("diversity"))


@dataclass(frozen=True, eq=False, repr=False)
class Diversity:
    """Size, different values, 2^entropy and distance to the whole table, of each group."""

    sizes: _Places
    distinct: _Places
    effective: _Values
    closeness: _Values

    def summary(self) -> dict[str, float]:
        """Give the numbers of the findings."""
        return {
            "diversity-smallest": float(self.distinct.min()),
            "diversity-median": float(np.median(self.distinct)),
            "diversity-entropy-smallest": float(self.effective.min()),
            "diversity-entropy-median": float(np.median(self.effective)),
            "groups-of-one-class": float((self.distinct == 1).mean()),
            "closeness-largest": float(self.closeness.max()),
            "closeness-mean": float(np.average(self.closeness, weights=self.sizes)),
        }


def measure_diversity(labels: _Places, codes: _Places, *, ordered: bool) -> Diversity:
    """Measure each group's diversity and closeness from the places of the target's values, 0 to v - 1.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        The group of each record.
    codes : ndarray of shape (n,)
        The place of each record's target among its different values.
    ordered : bool
        Whether the values have an order. Then closeness is the earth mover's distance between ranks, else total
        variation.

    Examples
    --------
    >>> found = measure_diversity(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]), ordered=False)
    >>> found.distinct.tolist(), found.closeness.tolist()
    ([1, 2], [0.25, 0.25])
    """
    groups, sizes = np.unique(labels, return_inverse=True, return_counts=True)[1:]
    order = np.lexsort((codes, groups))
    where, what = groups[order], codes[order]
    fresh = np.flatnonzero((np.diff(where, prepend=-1) != 0) | (np.diff(what, prepend=-1) != 0))
    counts = np.diff(np.append(fresh, len(codes)))
    group, value = where[fresh], what[fresh]  # one entry a value that a group holds
    share = counts / sizes[group]
    entropy = np.bincount(group, -share * np.log2(share), len(sizes))
    whole = np.bincount(codes) / len(codes)
    if ordered:
        closeness = _movers(where, what, sizes, whole)
    else:
        inside = np.bincount(group, np.abs(share - whole[value]) - whole[value], len(sizes))
        closeness = np.clip((inside + 1.0) / 2, 0.0, 1.0)
    distinct = np.bincount(group, minlength=len(sizes))
    return Diversity(sizes, distinct, np.minimum(np.exp2(entropy), distinct), closeness)


def _movers(where: _Places, what: _Places, sizes: _Places, whole: _Values) -> _Values:
    """Measure the earth mover's distance between each group's ranks and the whole table's, ranks from 0 to 1.

    It is the area between two quantile functions. Member i of a group is constant between (i - 1)/k and i/k, where the
    whole table's function is below it up to a point and above it from there, so its part comes from an integral.
    """
    ranks = np.arange(len(whole)) / max(len(whole) - 1, 1)
    knots = np.append(0.0, np.cumsum(whole))
    areas = np.append(0.0, np.cumsum(whole * ranks))
    size, place = sizes[where], np.arange(len(where)) - np.append(0, np.cumsum(sizes))[where]
    begin, end, own = place / size, (place + 1) / size, ranks[what]
    cut = np.clip(knots[what + 1], begin, end)
    low, middle, high = (np.interp(at, knots, areas) for at in (begin, cut, end))
    parts = own * (cut - begin) - (middle - low) + (high - middle) - own * (end - cut)
    return np.clip(np.bincount(where, parts, len(sizes)), 0.0, 1.0)


def _run(study: Study) -> Iterable[Finding]:
    if study.workings is None or study.workings.labels is None:
        return DIVERSITY.not_run(Need.GROUPS.value)
    assert study.target is not None
    pair, labels = study.pair(study.target), study.workings.labels
    codes = _codes(pair.original)
    found = measure_diversity(labels, codes, ordered=pair.is_number).summary()
    rng, shuffles = study.generator("diversity"), _SHUFFLES if len(codes) < _MANY else 1
    by_chance = [
        measure_diversity(labels, rng.permutation(codes), ordered=pair.is_number).summary() for _ in range(shuffles)
    ]
    most = float(codes.max() + 1)
    return tuple(
        _finding(name, found[name], float(np.mean([chance[name] for chance in by_chance])), most) for name in _MEANINGS
    )


def _codes(cells: Cells) -> _Places:
    """Give the target's values numbers in their order; a missing cell is one more value, above all others."""
    values, codes = np.unique(cells.values, return_inverse=True)
    codes = np.where(cells.absent, len(values), codes.ravel())
    return np.unique(codes, return_inverse=True)[1].ravel().astype(np.int64)


def _finding(name: str, value: float, baseline: float, most: float) -> Finding:
    diverse = name in _HIGHER
    return Finding(
        name,
        Family.PRIVACY,
        value,
        Direction.HIGHER if diverse else Direction.LOWER,
        (1.0, most) if diverse else (0.0, 1.0),
        _MEANINGS[name],
        baseline=baseline,
        public=False,
        unit="share" if name == "groups-of-one-class" else "",
    )


DIVERSITY = Measure(
    name="diversity",
    family=Family.PRIVACY,
    source="Machanavajjhala et al. 2007; Li, Li & Venkatasubramanian 2007",
    findings=_MEANINGS,
    run=_run,
    higher=_HIGHER,
    needs=(Need.TARGET,),
    public=False,
)
