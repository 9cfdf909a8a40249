"""How many people a release exposes, for the owner: the distribution of excess risk over people.

A person is attacked as member in most shadow releases and as control in few, so that the difference of both rates says
little of one person. The distribution over all people is estimated instead: rates without and with a person are drawn
from a grid, whose weights have the largest likelihood [Kiefer & Wolfowitz 1956; Efron 2014].
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import Measure, Number, Scale, Stated, Values
from sfumato.assess.audit.intervals import RateSeries
from sfumato.assess.findings import Family, Finding
from sfumato.core.arrays import Floats

__all__ = ["ABOVE", "EXPOSURE", "exposure_findings", "share_above"]

ABOVE = (0.01, 0.05, 0.20)
"""Excess risks above which people are counted."""

_BASES = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 0.95])
_EXCESSES = np.array([0.005, 0.02, 0.04, 0.07, 0.15, 0.3, 0.6, 0.9])
_ROUNDS = 300
_CERTAIN = 1e-3  # how far rates of 0 and 1 are moved, so that one unlikely hit excludes nothing
_LINKED = "shadow-linkage-"
_INFERRED = "shadow-attribute-inference/"
_OWNER = Scale((0.0, None), "count", public=False)
_NAMES = {above: f"exposed-people-{100 * above:.0f}" for above in ABOVE}


def share_above(counts: Floats) -> NDArray[np.float64]:
    """Probability of each person to have an excess risk above each of `ABOVE`, less that of one as far below 0.

    Nobody is safer in the table than out of it, so that what lies below 0 is chance, and as much of it lies above. The
    columns of ``counts`` are successes and attempts as member, then as control.
    """
    both_ways = np.concatenate([-_EXCESSES, [0.0], _EXCESSES])
    base, excess = (each.ravel() for each in np.meshgrid(_BASES, both_ways, indexing="ij"))
    kept = (base + excess <= 1.0) & (base + excess >= 0.0)
    base, excess = base[kept], excess[kept]
    rates = [np.clip(rate, _CERTAIN, 1.0 - _CERTAIN) for rate in (base + excess, base)]
    kinds, whose = np.unique(counts, axis=0, return_inverse=True)
    likelihood = np.zeros((len(kinds), len(base)))
    for hits, tries, rate in ((kinds[:, 0], kinds[:, 1], rates[0]), (kinds[:, 2], kinds[:, 3], rates[1])):
        likelihood += np.outer(hits, np.log(rate)) + np.outer(tries - hits, np.log(1.0 - rate))
    likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    people = np.bincount(whose.ravel(), minlength=len(kinds))
    weights = np.full(len(base), 1.0 / len(base))
    for _ in range(_ROUNDS):
        posterior = likelihood * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = people @ posterior / people.sum()
    above = np.column_stack([posterior @ ((excess > limit) * 1.0 - (excess < -limit)) for limit in ABOVE])
    return np.asarray(above[whose.ravel()])


def _numbers() -> tuple[Number, ...]:
    people = tuple(
        Number(name, f"People with an excess risk above {100 * above:.0f}\u00a0%", _OWNER).means(
            f"Estimated number of people whose record is linked above {100 * above:.0f} points more "
            "often if they are in the table than if not"
        )
        for above, name in _NAMES.items()
    )
    column = Number("exposed-by-column/", "People exposed in a column", _OWNER, figure="").means(
        "Estimated number of people whose value of {column} is inferred above 5 points more often if they are "
        "in the table than if not"
    )
    return (*people, column)


EXPOSURE = Measure("exposed-people", Family.ATTACK, "Kiefer & Wolfowitz 1956; Efron 2014", lambda _: ()).finds(
    *_numbers()
)


def exposure_findings(series: Mapping[str, RateSeries]) -> tuple[Finding, ...]:
    """How many people are exposed, and by which columns; for the owner alone."""
    linked = [share_above(each.counts) for name, each in series.items() if name.startswith(_LINKED)]
    if not linked:
        return ()
    worst = max(linked, key=lambda shares: float(shares.sum()))
    columns = {
        name.removeprefix(_INFERRED): max(0.0, float(share_above(each.counts)[:, ABOVE.index(0.05)].sum()))
        for name, each in series.items()
        if name.startswith(_INFERRED)
    }
    return tuple(EXPOSURE.findings(_stated(worst, columns)))


def _stated(worst: Floats, columns: Mapping[str, float]) -> list[Stated]:
    people = len(worst)
    found: list[Stated] = []
    for place, name in enumerate(_NAMES.values()):
        number = max(0.0, float(worst[:, place].sum()))
        found.append((name, Values(number, aside=_costs(number, people, columns) if place == 1 else "")))
    found += [(f"exposed-by-column/{name}", Values(number)) for name, number in columns.items()]
    return found


def _costs(number: float, people: int, columns: Mapping[str, float]) -> str:
    """What it would cost to protect them, and what it would tell."""
    if number < 1.0:
        return ""
    names = [f'"{name}"' for name, count in sorted(columns.items(), key=lambda item: -item[1])[:3] if count >= 1.0]
    exposing = (
        f" The columns that expose most people are {', '.join(names)}; drop or coarsen them first." if names else ""
    )
    return (
        f"{exposing} A higher --level for {number:,.0f} people lowers the utility of their groups alone. Leaving "
        f"them out costs {number / people:.1%} of the people, exposes those who are next, and tells that "
        "whoever is missing was found exposed."
    )
