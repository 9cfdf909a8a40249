"""How large the groups are, and whether every record got the level it asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.assess.findings import Direction, Family, Finding, not_run
from sfumato.facts import Fact, Grouped
from sfumato.mechanism import Workings

__all__ = ["TINY", "group_findings"]

TINY = 3
"""Mean and covariance of two records give both away, and three are not far from it."""

_SMALLEST = "The number of records in the smallest group; nobody was condensed together with fewer."
_MEANINGS = {
    "group-size-smallest": _SMALLEST,
    "group-size-median": "Half of the groups hold at least this many records.",
    "group-size-largest": "The number of records in the largest group; detail is lost where groups are large.",
    "level-met": "The share of records whose group is at least as large as the level asked for; it must be all.",
    "groups-tiny": f"The number of groups of {TINY} records or fewer, whose statistics nearly give the members away.",
}
_DIRECTIONS = {"group-size-largest": Direction.LOWER, "groups-tiny": Direction.LOWER}


def group_findings(workings: Workings | None, facts: Sequence[Fact] = ()) -> tuple[Finding, ...]:
    """Count group sizes, records that got their level, and groups too small to protect.

    Where only the groups are known, each of their records is taken to ask for the highest level inside. Without
    workings only the smallest group is known, and that only where a fact states it. All are exact counts.
    The baselines of the sizes are the smallest, median and largest level asked for.
    """
    if workings is not None and workings.labels is not None and workings.levels is not None:
        asked = workings.levels
        _, places, sizes = np.unique(workings.labels, return_inverse=True, return_counts=True)
        got = sizes[places]
    elif workings is not None and workings.sizes is not None and workings.highest is not None:
        sizes, asked, got = (
            workings.sizes,
            np.repeat(workings.highest, workings.sizes),
            np.repeat(workings.sizes, workings.sizes),
        )
    else:
        return _from_facts(facts)
    n, g = float(len(got)), float(len(sizes))
    tiny = int((sizes <= TINY).sum())
    low, middle, high = float(asked.min()), float(np.median(asked)), float(asked.max())
    return (
        _finding("group-size-smallest", float(sizes.min()), (1.0, n), low, public=True),
        _finding("group-size-median", float(np.median(sizes)), (1.0, n), middle),
        _finding("group-size-largest", float(sizes.max()), (1.0, n), high),
        _finding("level-met", float((got >= asked).mean()), (0.0, 1.0), 1.0, unit="share"),
        _finding("groups-tiny", float(tiny), (0.0, g), 0.0),
    )


def _from_facts(facts: Sequence[Fact]) -> tuple[Finding, ...]:
    because = "no groups came with the table; they are known only to the run that made it"
    findings = [
        not_run(name, Family.PRIVACY, _direction(name), meaning, because, public=name == "group-size-smallest")
        for name, meaning in _MEANINGS.items()
    ]
    for fact in facts:
        if isinstance(fact, Grouped):
            bounds = (1.0, float(fact.records))
            smallest = float(fact.smallest)
            findings[0] = _finding("group-size-smallest", smallest, bounds, float(fact.asked_min), public=True)
    return tuple(findings)


def _direction(name: str) -> Direction:
    return _DIRECTIONS.get(name, Direction.HIGHER)


def _finding(
    name: str, value: float, bounds: tuple[float, float], baseline: float, *, public: bool = False, unit: str = "count"
) -> Finding:
    return Finding(
        name,
        Family.PRIVACY,
        value,
        _direction(name),
        bounds,
        _MEANINGS[name],
        baseline=baseline,
        public=public,
        unit=unit,
    )
