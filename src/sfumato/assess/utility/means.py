"""What a release does to the means of numeric columns, and so to sums over as many rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.assess.algebra import Measure, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family
from sfumato.assess.study import Study
from sfumato.tables.field import Kind

__all__ = ["MEANS"]

_NORMAL = 1.96


def _run(study: Study) -> Iterator[Stated]:
    changes = []
    for pair in study.pairs:
        if pair.field.kind not in (Kind.CONTINUOUS, Kind.INTEGER):
            continue
        before, after = pair.original.present, pair.released.present
        if len(before) < 2 or len(after) < 2 or not (mean := float(before.mean())):
            continue
        moved = float(after.mean()) - mean
        change = abs(moved) / abs(mean)
        error = float(np.hypot(before.std() / len(before) ** 0.5, after.std() / len(after) ** 0.5)) / abs(mean)
        reach = _NORMAL * error
        changes.append((change, reach))
        note = f"; the mean of {pair.name} became {'larger' if moved > 0 else 'smaller'}" if moved else ""
        yield f"mean-change/{pair.name}", Values(change, (max(0.0, change - reach), change + reach), reach, note=note)
    if not changes:
        raise NotRun("no column holds numbers with a mean other than 0", applies=False)
    largest, reach = max(changes)
    yield "mean-change-largest", Values(largest, baseline=reach)


_CHANGE = Scale((0.0, None), "share", public=False)

MEANS = Measure("means", Family.UTILITY, "after Hundepool et al. 2012, section 3", _run, exact=True).finds(
    Number("mean-change-largest", "Change of a mean, largest", _CHANGE).means(
        "The largest relative change of the mean of a numeric column; sums over as many rows change alike. Baseline: "
        "chance alone"
    ),
    Number("mean-change/", "Change of the mean", _CHANGE).means(
        "The relative change of the mean of {column}. Top and bottom coding of a long tail lowers it. Baseline: "
        "chance alone"
    ),
)
