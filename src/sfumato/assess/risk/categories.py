"""How few people hold a category that stands in the released table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.assess.columns import ColumnPair
from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure
from sfumato.assess.study import Study
from sfumato.tables.schema import Kind

__all__ = ["RAREST_CATEGORY"]

_KINDS = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
_NAME = "rarest-category"
_MEANING = (
    "How many people of the original hold the rarest of their categories that stand in the released table: a category "
    "of one or a few people shows that they were in it, and more is better; the baseline is the rarest category of all"
)


def _run(study: Study) -> Iterator[Finding]:
    found = [_holders(pair) for pair in study.pairs if pair.field.kind in _KINDS]
    fewest = [(shown, all_) for shown, all_ in found if shown is not None]
    if not fewest:
        lacking = "no category of the original stands in the released table" if found else "there are no categories"
        yield from RAREST_CATEGORY.not_run(lacking, applies=False)
        return
    shown, all_ = (float(min(side)) for side in zip(*fewest, strict=True))
    yield Finding(
        _NAME,
        Family.PRIVACY,
        shown,
        Direction.HIGHER,
        (1.0, None),
        _MEANING + ".",
        baseline=all_,
        public=False,
        unit="count",
    )


def _holders(pair: ColumnPair) -> tuple[int | None, int]:
    """How many hold the rarest category that is released, and the rarest of all."""
    values, counts = np.unique(pair.original.present, return_counts=True)
    released = np.isin(values, pair.released.present)
    return (int(counts[released].min()), int(counts.min())) if released.any() else (None, 0)


RAREST_CATEGORY = Measure(
    name=_NAME,
    family=Family.PRIVACY,
    source="the threshold rule of statistical offices: Hundepool et al. 2012, sec. 4.2",
    findings={_NAME: _MEANING + "."},
    run=_run,
    higher=frozenset({_NAME}),
    public=False,
)
