"""What a release costs: cells changed, seconds taken, bytes that owners exchanged [JS07, sec. 2.4]."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.assess.algebra import COUNT, SHARE, SIZE, Measure, Need, NotRun, Number, Stated, Values
from sfumato.assess.findings import Family, Finding
from sfumato.assess.study import ColumnPair, Places, Study

__all__ = ["CHANGES", "COSTS", "cost_findings"]

_SOURCE = "Jain and Sharma 2007, section 2.4"


def _run(study: Study) -> Iterator[Stated]:
    known, origin = study.descent()
    if not len(known):
        raise NotRun("no released row descends from an original one")
    mixed = study.generator("changes").permutation(origin)
    own, chance = (sum(_changed(pair, known, rows) for pair in study.pairs) for rows in (origin, mixed))
    cells = len(known) * len(study.pairs)
    yield "cells-changed", Values(own / cells, baseline=chance / cells, attempts=len(known))


def _changed(pair: ColumnPair, released: Places, original: Places) -> int:
    """Cells of released rows that are others than those of original rows."""
    here, there = pair.released.take(released), pair.original.take(original)
    other = (here.absent != there.absent) | (~here.absent & ~there.absent & (here.values != there.values))
    return int(np.count_nonzero(other))


CHANGES = Measure("changes", Family.UTILITY, _SOURCE, _run, needs=(Need.ORIGIN,)).finds(
    Number("cells-changed", "Cells that are not the row's own", SHARE).means(
        "The share of cells that are another value than in the original row that the released one descends from, or "
        "became missing: how much was done to the rows, beside the same had rows been shuffled among people "
        "(baseline); less is better"
    )
)

COSTS = Measure("costs", Family.UTILITY, _SOURCE, lambda _: ()).finds(
    Number("seconds-taken", "Seconds that sanitizing took", SIZE.owners).means(
        "How many seconds the method took on this machine, reading and measuring aside; less is better"
    ),
    Number("bytes-exchanged", "Bytes that owners exchanged", COUNT.owners).means(
        "How many bytes all owners of a joint run sent each other until the table was made; less is better"
    ),
)


def cost_findings(seconds: float, sent: int | None) -> tuple[Finding, ...]:
    """What was measured of a run and not of its rows: seconds where they were taken, bytes where owners sent some."""
    stated: list[Stated] = []
    if seconds > 0:
        stated.append(("seconds-taken", Values(seconds)))
    if sent is not None:
        stated.append(("bytes-exchanged", Values(float(sent))))
    return COSTS.findings(stated)
