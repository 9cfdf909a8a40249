"""Whether a released row is near to one original row and to no other: the nearest-neighbour distance ratio.

A diagnostic: a table can pass it and still be open to membership inference [Yao et al. 2025, "The DCR Delusion"].
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure
from sfumato.assess.intervals import median_interval
from sfumato.assess.neighbours import nearest
from sfumato.assess.study import Study, sample

__all__ = ["RATIO", "distance_ratio"]

_Values = NDArray[np.float64]

_MEANING = (
    "How far a released row typically is from the nearest original row by how far from the second nearest, beside the "
    "same for original rows (baseline) and for people held out (control); 0 means that it copies one person, 1 that it "
    "is like several, and passing this proves nothing, for tables that pass have still given people away (Yao et al. "
    "2025)"
)


def distance_ratio(rows: _Values, queries: _Values, own: NDArray[np.int64] | None = None) -> _Values:
    """Divide each query's distance to its nearest row by that to its second nearest.

    A row that equals two others has ratio 0: it is as near as can be.

    Examples
    --------
    >>> distance_ratio(np.array([[0.0], [3.0]]), np.array([[1.0], [0.0]])).tolist()
    [0.5, 0.0]
    """
    near, second = nearest(rows, queries, 2, own=own)[1].T
    return np.asarray(np.divide(near, second, out=np.zeros(len(near)), where=second > 0))


def _run(study: Study) -> Iterable[Finding]:
    if len(study.original) < 3:
        return RATIO.not_run("the original has fewer than three rows and so no two neighbours of one")
    rng, most = study.generator("ratio"), study.sizes.attempts
    queries = study.released[sample(len(study.released), most, rng)]
    own = sample(len(study.original), most, rng)
    outside = None if study.holdout is None else study.holdout[sample(len(study.holdout), most, rng)]
    both = distance_ratio(study.original, queries if outside is None else np.concatenate([queries, outside]))
    baseline = distance_ratio(study.original, study.original[own], own)
    ratios, control = both[: len(queries)], None if outside is None else both[len(queries) :]
    note = "; control not run because no rows were held out" if control is None else ""
    if len(queries) < len(study.released):
        note = f"; counted on {len(queries)} rows drawn at random" + note
    return (_finding(ratios, float(np.median(baseline)), control, note),)


def _finding(ratios: _Values, baseline: float, control: _Values | None, note: str) -> Finding:
    return Finding(
        "neighbour-distance-ratio",
        Family.PRIVACY,
        float(np.median(ratios)),
        Direction.HIGHER,
        (0.0, 1.0),
        _MEANING + note + ".",
        interval=_interval(ratios),
        baseline=baseline,
        control=None if control is None else float(np.median(control)),
        control_interval=None if control is None else _interval(control),
        attempts=len(ratios),
    )


def _interval(ratios: _Values) -> tuple[float, float]:
    (low, high), middle = median_interval(ratios), float(np.median(ratios))
    return min(low, middle), max(high, middle)


RATIO = Measure(
    name="ratio",
    family=Family.PRIVACY,
    source="Zhao et al. 2021; Yao et al. 2025",
    findings={"neighbour-distance-ratio": _MEANING + "."},
    run=_run,
    higher=frozenset({"neighbour-distance-ratio"}),
)
