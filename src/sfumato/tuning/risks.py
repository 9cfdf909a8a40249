"""How far an intruder gets at a group size: the interval metric of the paper, and links to released rows."""

from __future__ import annotations

import numpy as np

from sfumato.assess.attacks.linkage import linkage_tries
from sfumato.assess.intervals import Tries
from sfumato.assess.risk.interval import counterparts, interval_privacy
from sfumato.assess.study import Study

__all__ = ["interval_of", "linkage_of"]


def interval_of(study: Study) -> float | None:
    """Give the mean of the 95 % interval metric over the columns of numbers; None where there is none.

    Each record is compared with a row drawn from its own group, the paper's reading [KCG12, "Metrics"].
    """
    workings = study.workings
    columns = [pair for pair in study.pairs if pair.is_number]
    if not columns or workings is None or workings.labels is None or workings.drawn_from is None:
        return None
    sides = [
        np.column_stack([np.where(cells.absent, np.nan, cells.values) for cells in side])
        for side in ([pair.original for pair in columns], [pair.released for pair in columns])
    ]
    partners = counterparts(workings.labels, workings.drawn_from, study.generator("counterparts"))
    return float(interval_privacy(sides[0], sides[1], partners=partners).mean())


def linkage_of(study: Study) -> tuple[Tries, Tries]:
    """Count the people of the original who are linked to a released row, and those of the people held out."""
    attack, control = linkage_tries(study)
    assert control is not None
    return attack, control
